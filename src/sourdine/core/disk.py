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
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path

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
