"""The lock on a ledger's file, which no reader can take away.

SQLite locks a file by POSIX locks, and those belong to the process: when any descriptor of the file is closed
anywhere in the process (a copy, a hash, an upload), every lock that the process has on it is gone. Another
process then takes the journal of a charge that is under way for one that was cut off, and undoes the charge.

So SQLite opens a ledger without locks (its `unix-none`), and a guard takes the very bytes that SQLite would
lock, through a descriptor of its own. Its locks are open-file-description locks: they belong to that one
descriptor, wherever else the file is opened and closed, and they exclude the POSIX locks of other software
and of earlier versions as those exclude each other (https://sqlite.org/lockingv3.html). They are on the file
itself, so a link or another mount of its folder leads to the same lock.
"""

import errno
import os
import sqlite3
import struct
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from sourdine.accounting.ledger.file.names import Identity

if sys.platform != "win32":
    import fcntl

LOCKS = os.name == "posix"
"""Whether a guard locks the file; on Windows a lock belongs to its handle, and SQLite's own is enough."""
VFS = "unix-none" if LOCKS else ""
"""The file system of SQLite for a file that a guard has locked; empty where SQLite locks by itself."""
_PENDING, _SHARED, _END = 0x40000000, 0x40000002, 0x40000200
"""SQLite's bytes: PENDING, which keeps new readers out, RESERVED behind it, and 510 that readers share."""
_BY_DESCRIPTION = sys.platform == "linux"
_LAYOUT = "hhqqi0q"  # struct flock of Linux: type, whence, start, length, process
_HELD = (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_PAUSE = 0.0002  # seconds between two tries
_HEADER = 20  # bytes, of which the last two name the way of committing
_LOG = 2  # what they are for a write-ahead log


class Busy(sqlite3.OperationalError):
    """The refusal that SQLite gives where others have the file."""

    sqlite_errorcode = sqlite3.SQLITE_BUSY

    def __init__(self) -> None:
        super().__init__("database is locked")


class Guard:
    """A descriptor of one file and the locks that it has, which a forked child does not let go of."""

    def __init__(self, path: Path) -> None:
        flags = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY if LOCKS else 0
        try:
            self._handle, self.is_writable = os.open(path, os.O_RDWR | flags), True
        except OSError as problem:
            if problem.errno not in _READ_ONLY:
                raise
            self._handle, self.is_writable = os.open(path, os.O_RDONLY | flags), False
        self._process = os.getpid()
        self._is_held = False
        self.identity: Identity = _identity(self._handle)
        """The file that is open, whatever its name leads to now."""

    @property
    def is_lost(self) -> bool:
        """Whether other code has closed the descriptor, whose number may be of another file now."""
        try:
            return _identity(self._handle) != self.identity
        except OSError:
            return True

    @property
    def has_log(self) -> bool:
        """Whether SQLite commits to a write-ahead log beside the file."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        return _LOG in os.read(self._handle, _HEADER)[-2:]

    def take(self, patience: float) -> None:
        """Keep all others out of the file; or only writers, where it may only be read; else Busy.

        Who already reads is waited for, and nobody new comes in meanwhile.
        """
        if not LOCKS:
            return
        # before the first lock: an interrupt may come between a lock and the next statement, and whoever
        # catches it would keep all others out
        self._is_held = True
        if not self.is_writable:
            self._share()
            return
        try:
            self._lock(fcntl.F_WRLCK, _PENDING, _END)
        except Busy:
            self._lock(fcntl.F_WRLCK, _PENDING, _SHARED)
            self._wait_for_readers(patience)

    def _share(self) -> None:
        self._lock(fcntl.F_RDLCK, _PENDING, _PENDING + 1)
        try:
            self._lock(fcntl.F_RDLCK, _SHARED, _END)
        except BaseException:
            self._unlock(_PENDING, _END)
            raise
        self._unlock(_PENDING, _PENDING + 1)

    def _wait_for_readers(self, patience: float) -> None:
        until = monotonic() + patience
        while True:
            try:
                self._lock(fcntl.F_WRLCK, _SHARED, _END)
                return
            except Busy:
                if monotonic() >= until:
                    self._unlock(_PENDING, _END)
                    raise
                sleep(_PAUSE)
            except BaseException:
                self._unlock(_PENDING, _END)
                raise

    def give_back(self) -> None:
        """Let others in."""
        if self._is_held and self._process == os.getpid():  # a child would let go of its parent's
            self._unlock(_PENDING, _END)
        self._is_held = False

    def close(self) -> None:
        """Let others in, and close the file, unless other code has done so."""
        if self.is_lost:
            return
        try:
            with suppress(OSError):  # of a file system that has no locks: then none is left either
                self.give_back()
        finally:
            os.close(self._handle)

    def _lock(self, kind: int, start: int, end: int) -> None:
        try:
            _set(self._handle, kind, start, end)
        except OSError as problem:
            if problem.errno in _HELD:
                raise Busy from None
            raise

    def _unlock(self, start: int, end: int) -> None:
        _set(self._handle, fcntl.F_UNLCK, start, end)


def _identity(handle: int) -> Identity:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


def _set(handle: int, kind: int, start: int, end: int) -> None:
    """Change the lock on a stretch of bytes; where the system has no such locks, `flock` on the whole file.

    That too belongs to the descriptor. On macOS it excludes POSIX locks, as these do.
    """
    if _BY_DESCRIPTION:
        words = struct.pack(_LAYOUT, kind, os.SEEK_SET, start, end - start, 0)
        try:
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, words)
            return
        except OSError as problem:
            if problem.errno != errno.EINVAL:  # of a kernel that does not know them
                raise
    if (start, end) == (_PENDING, _PENDING + 1) and kind == fcntl.F_UNLCK:
        return
    whole: dict[int, Any] = {
        fcntl.F_RDLCK: fcntl.LOCK_SH | fcntl.LOCK_NB,
        fcntl.F_WRLCK: fcntl.LOCK_EX | fcntl.LOCK_NB,
        fcntl.F_UNLCK: fcntl.LOCK_UN,
    }
    fcntl.flock(handle, whole[kind])
