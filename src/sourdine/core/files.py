"""Files that appear whole or not at all, are on the disk when they appear, and are for their owner.

A file is written in a private folder beside its place, forced to the disk, and then renamed, which systems
do in one step. Whoever is killed meanwhile leaves what was there before, and perhaps that hidden folder.
Files are readable for their owner alone, unless they are `shared`: then as the system's umask says. A file
that is written over keeps the rights that it has.
"""

import contextlib
import errno
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import FrameType, TracebackType

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import either

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

OWNER, OWNERS_FOLDER = 0o600, 0o700
UNFINISHED = ".unfinished"  # how the place ends that is taken beside a folder until its files are whole
WAITING = ".part"  # how the name of the folder ends in which a file is written
_ANYBODY = 0o666
_shared: ContextVar[bool] = ContextVar("shared", default=False)


def unreadable(path: Path | str, problem: OSError, what: str = "file") -> str:
    """Why a file cannot be read, as the beginning of a sentence that says what to do.

    >>> unreadable("a.json", FileNotFoundError(2, "No such file or directory"))
    'The file a.json does not exist.'
    >>> unreadable("a.json", PermissionError(13, "Permission denied"))
    'The file a.json cannot be read (Permission denied).'
    """
    if isinstance(problem, FileNotFoundError):
        return f"The {what} {path} does not exist."
    return f"The {what} {path} cannot be read ({problem.strerror or 'no reason is known'})."


@contextlib.contextmanager
def shared(yes: bool = True) -> Iterator[None]:
    """Files that are written meanwhile are readable for others too, as far as the umask lets them be.

    >>> with shared():
    ...     is_shared()
    True
    """
    before = _shared.set(yes)
    try:
        yield
    finally:
        _shared.reset(before)


def is_shared() -> bool:
    """Whether files are written for others as well."""
    return _shared.get()


def unfinished(folder: Path) -> Path:
    """The place beside a folder where its files wait until all of them are whole.

    >>> unfinished(Path("a/published")).as_posix()
    'a/.published.unfinished'
    """
    return folder.with_name(f".{folder.name}{UNFINISHED}")


def write_whole(path: Path, content: str | bytes, *, over: bool = True) -> None:
    """Keep a text or bytes in a file, which appears whole, is on the disk, and is for its owner.

    Without `over`, a file that is there stays, and FileExistsError is raised.
    """
    with whole_file(path, over=over) as place:
        write_new(place, content)


def write_new(path: Path, content: str | bytes) -> None:
    """A new file with this content, forced to the disk; what is there already is never opened."""
    write_parts(path, [content])


def write_parts(path: Path, parts: Iterable[str | bytes]) -> None:
    """A new file of some parts, one after the other, forced to the disk."""
    rights = _ANYBODY if is_shared() else OWNER
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), rights)
    with os.fdopen(handle, "wb") as file:
        for part in parts:
            file.write(part.encode("utf-8") if isinstance(part, str) else part)
        file.flush()
        _sync(file.fileno())


@contextlib.contextmanager
def whole_file(path: Path, *, over: bool = True) -> Iterator[Path]:
    """A place to write a file at, of the same name; when the block ends it gets its own place, in one step.

    If the block raises, nothing is changed. A link is followed: the file that it leads to is replaced. What
    is no file, such as a pipe, is written to as it is.
    """
    final = Path(os.path.realpath(path))
    if final.exists() and not final.is_file():
        if final.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        yield from _poured(final)
        return
    if not over and final.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    beside = Path(tempfile.mkdtemp(prefix=f".{final.name[:100]}.", suffix=WAITING, dir=final.parent))
    try:
        place = beside / final.name
        yield place
        settle(place, like=final if final.exists() else None)
        if over:
            place.replace(final)
        else:
            _name(place, final)
        sync(final.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _poured(final: Path) -> Iterator[Path]:
    """What was written into a file of its own goes into something that only takes bytes."""
    with tempfile.TemporaryDirectory(prefix="sourdine-") as folder:
        place = Path(folder) / "content"
        yield place
        with place.open("rb") as source, final.open("wb") as sink:
            shutil.copyfileobj(source, sink)


def _name(place: Path, final: Path) -> None:
    """Give a file its name unless something has it: a link is refused then, where a rename is not."""
    try:
        os.link(place, final)
    except (AttributeError, OSError) as problem:
        if isinstance(problem, FileExistsError) or final.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(final)) from None
        place.rename(final)  # a disk without links


def settle(place: Path, *, like: Path | None = None) -> None:
    """Give a file that waits the rights it shall have, and force it to the disk."""
    if like is not None:
        place.chmod(stat.S_IMODE(like.stat().st_mode))
    elif not is_shared():
        place.chmod(OWNER)
    sync(place)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk. Where a system has no such act, none is done."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except PermissionError:
        if path.is_dir():  # on Windows folders are not opened
            return
        raise
    try:
        _sync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While this lasts, no other process or thread is in here for the folder, where systems have such locks.

    >>> with alone(Path(".")):
    ...     pass
    """
    lock = getattr(fcntl, "flock", None)
    if lock is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        lock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync(handle: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)  # on macOS, whose fsync stops short of the disk
    if full is not None:
        with contextlib.suppress(OSError):  # a disk that does not know it
            fcntl.fcntl(handle, full)
            return
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # of what cannot be synced
            raise


# A folder of its own for all files of a release: they appear at once, or not at all.


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
        self._beside = unfinished(self.folder)
        self._waiting = self._beside / self.folder.name
        self._keep = False

    def __enter__(self) -> "Outbox":
        self._check()
        try:
            self._beside.mkdir(mode=OWNERS_FOLDER)
        except FileExistsError:
            raise InvalidParameter(self._cut_short()) from None
        try:
            self._waiting.mkdir(mode=0o777 if is_shared() else OWNERS_FOLDER)
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
                sync(self.folder.parent)
        return [self._name / name for name in self._names if (self.folder / name).is_file()]

    def _settle(self, place: Path) -> None:
        for name in self._names:
            if (place / name).is_file():
                settle(place / name)
        sync(place)

    def _elsewhere(self, fill: Callable[[Path], None], reason: str | None, paid: str) -> SourdineError:
        """The same files where the system keeps what is temporary, and where that is."""
        why = reason or "the disk is full, or cannot be written"
        sentence = f"{paid}The files could not be written beside {self._name} ({why}), and none is there. "
        place: Path | None = None
        try:
            place = Path(tempfile.mkdtemp(prefix="sourdine-kept-")) / self.folder.name
            place.mkdir(mode=OWNERS_FOLDER)
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
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER)
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
