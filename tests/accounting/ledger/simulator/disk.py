"""SQLite's own file system with a hook before each act that changes anything, and locks of its own.

Every act goes on to SQLite's functions for this system, unless the hook says otherwise: only what a disk may
do is made up. Locks are made up too, where the processes are: within one true process SQLite before 3.41 may
read a file that another thread is putting in order. As with POSIX locks, a process has no lock left on a file
when any descriptor of it is closed there. A ledger's guard has true locks: each belongs to its descriptor.
"""

import ctypes
import sqlite3
from collections.abc import Callable
from contextlib import closing
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, cast
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from sourdine.accounting.ledger.file import guard

OK = 0
WRITE_FAILED = sqlite3.SQLITE_IOERR_WRITE
SYNC_FAILED = sqlite3.SQLITE_IOERR_FSYNC
NOT_DELETED = sqlite3.SQLITE_IOERR_DELETE
NAME_NOT_SYNCED = sqlite3.SQLITE_IOERR_DIR_FSYNC
FULL = sqlite3.SQLITE_FULL
_RESERVED, _PENDING, _EXCLUSIVE = 2, 3, 4
_MAIN = 0x100  # of the flags of an open: the database itself


class Act(NamedTuple):
    """What SQLite is about to do to a file."""

    verb: str  # open, write, truncate, sync, lock or delete
    path: str
    data: bytes = b""
    offset: int = 0
    waits: bool = False  # of a delete: for the disk


class Order(NamedTuple):
    """What becomes of an act: done or not, how much of a write, and what SQLite is told."""

    done: bool = True
    code: int = OK
    length: int = -1
    deadly: bool = False  # the process ends here, after what is done
    reads: str = ""  # a file that another thread of the process opens, reads and closes meanwhile


PASS = Order()
Hook = Callable[[Act], Order]


class Locks:
    """Who holds which lock: handles of files, each as if it were of another process."""

    def __init__(self) -> None:
        self._levels: dict[tuple[int, int], dict[int, int]] = {}  # by file and handle
        self._files: dict[int, tuple[int, int]] = {}
        self._owners: dict[int, object] = {}

    def add(self, handle: int, path: str, owner: object) -> None:
        """A handle of a file, whatever its name, that a process has opened."""
        held = Path(path).stat()
        self._files[handle] = held.st_dev, held.st_ino
        self._owners[handle] = owner

    def drop(self, path: str, owner: object) -> None:
        """A process has closed another descriptor of a file."""
        held = Path(path).stat()
        levels = self._levels.get((held.st_dev, held.st_ino), {})
        for handle in [each for each in levels if self._owners.get(each) is owner]:
            del levels[handle]

    def others(self, handle: int) -> int:
        """The highest lock that somebody else has."""
        levels = self._levels.get(self._files[handle], {})
        return max((level for held, level in levels.items() if held != handle), default=0)

    def raise_to(self, handle: int, level: int) -> int:
        """Take a lock, or be told that the file is busy, as SQLite's documentation has it."""
        levels = self._levels.setdefault(self._files[handle], {})
        own, others = levels.get(handle, 0), self.others(handle)
        if own >= level:
            return OK
        if others >= (_RESERVED if level == _RESERVED else _PENDING):
            return sqlite3.SQLITE_BUSY
        if level == _EXCLUSIVE and others:
            levels[handle] = _PENDING if own >= _RESERVED else own
            return sqlite3.SQLITE_BUSY
        levels[handle] = level
        return OK

    def lower_to(self, handle: int, level: int) -> int:
        """Let go of a lock, or of all."""
        levels = self._levels.get(self._files.get(handle, (0, 0)), {})
        if handle in levels:
            levels[handle] = min(level, levels[handle])
        return OK

    def remove(self, handle: int) -> None:
        """A handle is closed."""
        self._levels.get(self._files.pop(handle, (0, 0)), {}).pop(handle, None)
        self._owners.pop(handle, None)


class _Methods(Structure):
    _names = ("close", "read", "write", "truncate", "sync", "size", "lock", "unlock", "check_reserved")
    _fields_ = [
        ("version", c_int),
        *((name, c_void_p) for name in _names),
        *((f"more{number}", c_void_p) for number in range(9)),
    ]


class _File(Structure):
    _fields_ = [("methods", POINTER(_Methods))]


class _System(Structure):
    _fields_ = [
        ("version", c_int),
        ("file_size", c_int),
        ("longest", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        *((name, c_void_p) for name in ("open", "delete")),
        *((f"more{number}", c_void_p) for number in range(14)),
    ]


_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_CLOSE = CFUNCTYPE(c_int, c_void_p)
_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_FLAG = CFUNCTYPE(c_int, c_void_p, c_int)
_ANSWER = CFUNCTYPE(c_int, c_void_p, POINTER(c_int))
_kept: list[object] = []  # what SQLite holds pointers to


class Watched:
    """The functions that SQLite calls instead of its own, here and in processes forked from this."""

    def __init__(self, hook: Hook, owner: Callable[[], object] = lambda: None) -> None:
        self._hook = hook
        self._owner = owner  # the process that goes on now
        self.locks: Locks | None = Locks()  # none: those of the system
        self._paths: dict[int, str] = {}
        self._tables: dict[tuple[int, bool], _Methods] = {}

    def install(self) -> bool:
        """Have SQLite call them from now on; whether that works: Python may hold another library inside."""
        try:
            library = ctypes.CDLL("libsqlite3.so.0")
        except OSError:
            return False
        library.sqlite3_libversion.restype = c_char_p
        if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
            return False
        library.sqlite3_vfs_find.restype = POINTER(_System)
        library.sqlite3_vfs_find.argtypes = [c_char_p]
        library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
        for name, vfs, makes_default in ((None, b"watched", 1), (b"unix-none", b"watched-none", 0)):
            real = library.sqlite3_vfs_find(name)
            system = _System.from_buffer_copy(real.contents)
            opens, deletes = _OPEN(real.contents.open), _DELETE(real.contents.delete)
            place = cast(real, c_void_p).value or 0
            system.name = vfs
            ours = (
                _OPEN(partial(self._open, place, opens, has_locks=name is None)),
                _DELETE(partial(self._delete, place, deletes)),
            )
            system.open, system.delete = (cast(each, c_void_p) for each in ours)
            _kept.extend((system, ours))
            library.sqlite3_vfs_register(byref(system), makes_default)
        guard.VFS = "watched-none"
        with TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/a.db")) as connection:
            connection.execute("CREATE TABLE a (b)")
        return bool(self._paths)

    def _open(
        self,
        place: int,
        opens: Any,
        system: int,
        name: int | None,
        file: int,
        flags: int,
        told: int,
        *,
        has_locks: bool,
    ) -> int:
        path = cast(name, c_char_p).value if name else None
        known = path.decode() if path else ""
        order = self._hook(Act("open", known))
        held = cast(file, POINTER(_File)).contents
        if not order.done:
            held.methods = None
            return sqlite3.SQLITE_CANTOPEN
        code = int(opens(place, name, file, flags, told))
        if code == OK and held.methods:
            self._paths[file] = known
            if self.locks is not None and flags & _MAIN and has_locks:
                self.locks.add(file, known, self._owner())
            held.methods = ctypes.pointer(self._table(held.methods, has_locks))
        return order.code or code

    def _delete(self, place: int, deletes: Any, system: int, name: bytes, waits: int) -> int:
        order = self._hook(Act("delete", name.decode(), waits=bool(waits)))
        return _carried_out(order, lambda: deletes(place, name, waits))

    def _table(self, methods: Any, has_locks: bool) -> _Methods:
        """SQLite's table of functions for a file, with ours for what is watched."""
        key = ctypes.addressof(methods.contents), has_locks  # journals have the table of files without locks
        if key not in self._tables:
            table = self._tables[key] = _Methods.from_buffer_copy(methods.contents)
            ours = self._watching(table, has_locks)
            _kept.append(ours)
            for name, function in ours.items():
                setattr(table, name, cast(function, c_void_p))
        return self._tables[key]

    def _watching(self, table: _Methods, has_locks: bool) -> dict[str, Any]:
        write, truncate, sync = _WRITE(table.write), _TRUNCATE(table.truncate), _FLAG(table.sync)
        lock, unlock, close = _FLAG(table.lock), _FLAG(table.unlock), _CLOSE(table.close)
        check = _ANSWER(table.check_reserved)

        def on_write(file: int, data: int, length: int, offset: int) -> int:
            order = self._hook(Act("write", self._paths[file], ctypes.string_at(data, length), offset))
            size = length if order.length < 0 else min(order.length, length)
            return _carried_out(order, lambda: write(file, data, size, offset))

        def on_truncate(file: int, size: int) -> int:
            order = self._hook(Act("truncate", self._paths[file], offset=size))
            return _carried_out(order, lambda: truncate(file, size))

        def on_sync(file: int, flags: int) -> int:
            order = self._hook(Act("sync", self._paths[file]))
            return _carried_out(order, lambda: sync(file, flags))

        def on_lock(file: int, level: int) -> int:
            order = self._hook(Act("lock", self._paths[file]))
            if not order.done:
                return order.code
            return self.locks.raise_to(file, level) if self.locks and has_locks else lock(file, level)

        def on_unlock(file: int, level: int) -> int:
            if self.locks is None or not has_locks:
                return int(unlock(file, level))
            return int(_undisturbed(self.locks.lower_to, file, level))

        def on_check(file: int, answer: Any) -> int:
            if self.locks is None or not has_locks:
                return int(check(file, answer))
            answer[0] = self.locks.others(file) >= _RESERVED
            return OK

        def on_close(file: int) -> int:
            if self.locks is not None:
                _undisturbed(self.locks.remove, file)
            return int(close(file))

        return {
            "write": _WRITE(on_write),
            "truncate": _TRUNCATE(on_truncate),
            "sync": _FLAG(on_sync),
            "lock": _FLAG(on_lock),
            "unlock": _FLAG(on_unlock),
            "check_reserved": _ANSWER(on_check),
            "close": _CLOSE(on_close),
        }


def _undisturbed(act: Callable[..., Any], *words: int) -> Any:
    """Let go of a lock although Python's sqlite3 has an error pending, as of a message that is no UTF-8.

    Such an error, set before SQLite calls us, is raised in the midst of what runs here. Letting go can be
    done again.
    """
    try:
        return act(*words)
    except UnicodeDecodeError:
        return act(*words)


def _carried_out(order: Order, act: Callable[[], int]) -> int:
    code = int(act()) if order.done else OK
    return order.code or code
