"""The mends of a ledger, each of which can be taken out: the simulator must notice."""

import json
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sourdine.accounting import Spend
from sourdine.accounting.ledger import balance, charge, gate, problems, store
from sourdine.accounting.ledger.chain import LedgerLine
from sourdine.accounting.ledger.file import database, guard, names
from sourdine.accounting.ledger.file import store as file_store
from sourdine.accounting.ledger.server import problems as server_problems
from sourdine.accounting.ledger.server import store as server_store


def _nothing() -> None:
    pass


def _fork() -> None:
    """A fork waits for nobody, and connections cross it."""
    gate.Gate.before_fork.__code__ = (lambda self: None).__code__  # the system holds the function itself
    gate.Gate.after_fork_there.__code__ = (lambda self: setattr(self, "_process", os.getpid())).__code__


def _threads() -> None:
    """Threads do not take turns at a file."""

    class Free:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *problem: object) -> None:
            pass

    file_store.threading.RLock = Free  # type: ignore[attr-defined]
    store.Store._in_use = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]


def _hard_links() -> None:
    """A file may have two names on one disk."""

    def identify(path: Path) -> tuple[int, int]:
        held = path.stat()
        return held.st_dev, held.st_ino

    names.identify = identify


def _mounts() -> None:
    """A file may be mounted by itself."""
    names.refuse_mounted = lambda path: None


def _extra() -> None:
    """A commit does not wait until the journal is gone from the disk."""
    connect = database.connect

    def less(path: Path, **how: bool) -> sqlite3.Connection:
        connection = connect(path, **how)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    database.connect = less


def _mark() -> None:
    """The end of the lines is where they end."""
    newest = "(SELECT {0} FROM lines ORDER BY number DESC LIMIT 1)"
    number, mark = newest.format("number"), newest.format("fingerprint")
    made = f"SELECT ifnull({number}, 0), '', '', ifnull({mark}, '')"
    file_store._NEWEST_AND_MARK = f"SELECT * FROM ({file_store._NEWEST}) UNION ALL {made}"


def _known() -> None:
    """Whatever fails, nothing was spent."""

    def say(held: file_store.FileStore, line: LedgerLine, problem: sqlite3.Error) -> Exception:
        held._disconnect()
        return problems.explain("write", held.path, problem)

    file_store.FileStore._after_failure = say  # type: ignore[assignment,method-assign]


def _seen() -> None:
    """A process forgets what it has seen."""
    store.Store._check_seen = lambda *words: None  # type: ignore[method-assign]


def _chain() -> None:
    """A line is as it stands there."""
    store.follows = lambda line, before: line.number == before.number + 1  # type: ignore[attr-defined]


def _symbolic_links() -> None:
    """A link is a name like any other."""
    names.resolve = lambda path: path.absolute()


def _guard() -> None:
    """SQLite locks the file by itself, with locks that a reader drops."""
    guard.VFS = ""
    guard.Guard.take = lambda self, patience: None  # type: ignore[method-assign]


def _journal() -> None:
    """Lines are in a write-ahead log, which needs SQLite's own locks."""
    _guard()
    guard.Guard.has_log = False  # type: ignore[assignment,method-assign]
    file_store.FileStore._log = lambda held: Path("/none")  # type: ignore[assignment,method-assign]

    class Logged(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(statement.replace("journal_mode = DELETE", "journal_mode = WAL"), *values)

    made = partial(sqlite3.connect, factory=Logged)
    database.sqlite3 = SimpleNamespace(**{**vars(sqlite3), "connect": made})  # type: ignore[attr-defined, assignment]


def _read_back() -> None:
    """What is given is priced, and not what will be read."""

    def keep(held: charge.Blocks, spends: tuple[Spend, ...]) -> charge.Block:
        return charge.Block(spends, json.dumps([spend.to_json() for spend in spends]), held._terms)

    charge.Blocks.keep = keep  # type: ignore[method-assign, assignment]


def _pages() -> None:
    """What was read once is not read again while the file's counter says so."""
    database.forget_pages = lambda connection: None


def _clock() -> None:
    """A clock that is set back opens the budget of an old day again."""
    balance.max = lambda now, before: now  # type: ignore[attr-defined]


def _key() -> None:
    """A charge that was lost on its way is simply tried again."""
    try_once = server_store.ServerStore._try

    def try_again(held: Any, connection: Any, build: Any, charge: Any) -> LedgerLine:
        charge.is_doubtful = False
        return try_once(held, connection, build, charge)

    server_store.ServerStore._try = try_again  # type: ignore[assignment,method-assign]


def _doubt() -> None:
    """What was lost on its way was not spent."""
    server_store.ServerStore._passes = lambda held, problem: False  # type: ignore[assignment,method-assign]
    server_problems.unknown = lambda address: server_problems.explain("write", address, ValueError("lost"))


MENDS: dict[str, Callable[[], None]] = {
    "": _nothing,
    "guard": _guard,
    "fork": _fork,
    "threads": _threads,
    "hard links": _hard_links,
    "mounts": _mounts,
    "waiting for the disk": _extra,
    "journal": _journal,
    "mark": _mark,
    "chain": _chain,
    "symbolic links": _symbolic_links,
    "read back": _read_back,
    "what is known": _known,
    "what was seen": _seen,
    "reading again": _pages,
    "clock": _clock,
    "key": _key,
    "doubt": _doubt,
}
ON_SERVER = {"key": "kill", "doubt": "kill", "what was seen": "copies", "clock": "clock"}
"""The same of mends that a server needs."""
FOUND_IN = {
    "guard": "kill",
    "fork": "forks",
    "threads": "kill",
    "hard links": "names",
    "mounts": "names",
    "symbolic links": "copies",
    "waiting for the disk": "power",
    "journal": "damage",
    "mark": "damage",
    "chain": "damage",
    "read back": "kill",
    "what is known": "kill",
    "what was seen": "copies",
    "reading again": "copies",
    "clock": "clock",
}
"""The style of schedules in which each is missed soon."""
