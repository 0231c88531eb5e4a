"""A folder of its own for all files of a release: they appear at once, or not at all."""

import contextlib
import errno
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType

from sourdine.core import disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.text.notation import either

CERTIFICATE = "certificate.json"  # the last file that is written: where it lies, all others are whole
_BALLAST = "ballast"
_ROOM = 1 << 22  # bytes: the page of a release with its charts, and all that is short


class Outbox:
    """A place beside a folder, taken before anything is paid; files wait there until all of them are whole.

    They are forced to the disk, and the place is then renamed to the folder: one step for all of them. What
    is there already is never written over, and two processes cannot take the same folder. Room on the disk
    is taken with the place, so that a full disk is found before anything is paid.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        room: int = 0,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._name = folder
        self._names = names
        self._room = _ROOM + room
        self._warn = warn
        self._beside = disk.unfinished(self.folder)
        self._waiting = self._beside / self.folder.name
        self._keep = False

    def __enter__(self) -> "Outbox":
        self._check()
        try:
            self._beside.mkdir(mode=disk.OWNERS_FOLDER)
        except FileExistsError:
            raise InvalidParameter(self._cut_short()) from None
        try:
            self._waiting.mkdir(mode=0o777 if disk.is_shared() else disk.OWNERS_FOLDER)
            if self.folder.exists():  # empty, and replaced: whoever made it chose its rights
                self._waiting.chmod(self.folder.stat().st_mode & 0o7777)
            self._take_room()
        except OSError as problem:
            self._leave()
            raise InvalidParameter(
                f"There is no room for the files beside {self._name} ({problem.strerror})."
                f"{either('', ' Nothing was spent.')} Make room, or name another folder{_option()}."
            ) from None
        return self

    def _check(self) -> None:
        """Refuse a folder that could not appear in one step later."""
        parent = self.folder.parent
        try:
            parent.mkdir(parents=True, exist_ok=True)
            names = sorted(each.name for each in self.folder.iterdir()) if self.folder.exists() else []
        except OSError as problem:
            raise InvalidParameter(
                f"{self._name} cannot be a folder ({problem.strerror}). Choose another."
            ) from None
        if names:
            named = next((name for name in self._names if name in names), names[0])
            raise InvalidParameter(
                f"{self._name} already holds a file {named}, which is not written over: these files get a "
                f"folder of their own, so that they appear all at once. Name another folder{_option()}."
            )
        if self.folder.exists() and (self.folder == Path.cwd() or os.path.ismount(self.folder)):
            raise InvalidParameter(
                f"{self._name} is where you are, or a disk of its own, and cannot be put in place in one "
                f"step. Name a new folder in it, as in {either('', '-o ')}{self._name / 'published'}."
            )
        if not os.access(parent, os.W_OK | os.X_OK):
            raise InvalidParameter(f"You have no right to write into {parent}. Choose another folder.")

    def _cut_short(self) -> str:
        whole = (self._waiting / CERTIFICATE).is_file()
        advice = (
            f" It was written whole, so you may move it: {self._waiting} holds all of its files."
            if whole
            else " It holds no certificate, so it is not whole and must not be used."
        )
        return (
            f"A release into {self._name} is under way, or was cut short after it was paid.{advice} Name "
            f"another folder{_option()}, or remove {self._beside} if nothing writes there any more."
        )

    def _take_room(self) -> None:
        ballast = self._beside / _BALLAST
        take = getattr(os, "posix_fallocate", None)
        if take is None or not _allocates(ballast, self._room, take):
            ballast.unlink(missing_ok=True)
            if shutil.disk_usage(self._beside).free < self._room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def deliver(self, fill: Callable[[Path], None], paid: str = "") -> list[Path]:
        """Have all files written into a folder, then let it appear. Their places are returned.

        `fill` writes them, the certificate last. If they cannot be written here, they are once more
        elsewhere, since what was paid for is not to be lost, and the error says where. `paid` tells of the
        payment.
        """
        with _uninterrupted():
            (self._beside / _BALLAST).unlink(missing_ok=True)
            try:
                fill(self._waiting)
                self._settle(self._waiting)
            except (OSError, InvalidParameter) as problem:
                raise self._elsewhere(fill, getattr(problem, "strerror", None), paid) from None
            except Exception:
                if paid:
                    self._warn(f"{paid}Nothing of it is in {self._name}, and what was charged stays charged.")
                raise
            try:
                if os.name == "nt" and self.folder.exists():
                    self.folder.rmdir()  # an empty folder is not replaced there
                self._waiting.rename(self.folder)
            except OSError as problem:
                self._keep = True
                raise SourdineError(
                    f"{paid}The files could not be put into {self._name} ({problem.strerror}). They lie "
                    f"whole in {self._waiting}: move that folder to where you want it."
                ) from None
            with contextlib.suppress(OSError):  # they are there; at worst a crash of the system undoes it
                disk.sync(self.folder.parent)
        return [self._name / name for name in self._names if (self.folder / name).is_file()]

    def _settle(self, place: Path) -> None:
        for name in self._names:
            if (place / name).is_file():
                disk.settle(place / name)
        disk.sync(place)

    def _elsewhere(self, fill: Callable[[Path], None], reason: str | None, paid: str) -> SourdineError:
        """The same files where the system keeps what is temporary, and where that is."""
        why = reason or "the disk is full, or cannot be written"
        sentence = f"{paid}The files could not be written beside {self._name} ({why}), and none is there. "
        place: Path | None = None
        try:
            place = Path(tempfile.mkdtemp(prefix="sourdine-kept-")) / self.folder.name
            place.mkdir(mode=disk.OWNERS_FOLDER)
            fill(place)
            self._settle(place)
        except (OSError, InvalidParameter):
            if place is not None:
                shutil.rmtree(place.parent, ignore_errors=True)
            last = "What was charged stays charged, and once more would be other noise for another payment. "
            return SourdineError(f"{sentence}{last if paid else ''}Make room before you run it again.")
        return SourdineError(f"{sentence}They lie whole in {place}: move that folder to where you want it.")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._keep:
            self._leave()

    def _leave(self) -> None:
        shutil.rmtree(self._beside, ignore_errors=True)


def _option() -> str:
    """How another folder is named on a command line."""
    return either("", " with -o")


def _allocates(path: Path, room: int, take: Callable[[int, int, int], None]) -> bool:
    """Whether a file of so many bytes is there now; False where that cannot be told."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.OWNER)
    try:
        take(handle, 0, room)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        return False
    finally:
        os.close(handle)
    return True


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and a polite end wait until what is paid for is in its place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def later(number: int, frame: FrameType | None) -> None:
        waiting.append(number)

    before = {number: signal.signal(number, later) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for late in waiting[:1]:
            signal.raise_signal(late)
