"""An append-only file of lines, shared by many processes: SQLite with a write-ahead log and full sync.

A line is committed, and on the disk, before `append` returns. Lines form a chain: each carries a
fingerprint of its content and of the line before, so that a changed or missing line shows. The file refuses
updates and deletions by itself.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sourdine.core.errors import LedgerError

APPLICATION = 0x536F7264  # "Sord", in the header of the file
VERSION = 1
_WAIT = 60.0  # seconds to wait for other writers
_INHERITED: list[sqlite3.Connection] = []
_TABLES = """
CREATE TABLE terms (content TEXT NOT NULL, fingerprint TEXT NOT NULL) STRICT;
CREATE TABLE lines (
    number INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    total TEXT NOT NULL,
    fingerprint TEXT NOT NULL
) STRICT;
CREATE TRIGGER terms_stay BEFORE UPDATE ON terms BEGIN SELECT RAISE(ABORT, 'the terms never change'); END;
CREATE TRIGGER terms_last BEFORE DELETE ON terms BEGIN SELECT RAISE(ABORT, 'the terms never change'); END;
CREATE TRIGGER lines_stay BEFORE UPDATE ON lines BEGIN SELECT RAISE(ABORT, 'lines never change'); END;
CREATE TRIGGER lines_last BEFORE DELETE ON lines BEGIN SELECT RAISE(ABORT, 'lines never go'); END;
"""


@dataclass(frozen=True)
class Line:
    """One entry: its number from 1, its content as JSON, the total after it, and its fingerprint."""

    number: int
    content: str
    total: str
    fingerprint: str


class Store:
    """The file behind a ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._identity = (0, 0)
        self._turn = threading.Lock()  # threads of one process share the connection

    @classmethod
    def create(cls, path: Path, terms: str) -> "Store":
        """A new file with its terms; an existing one is never touched."""
        try:
            path.open("xb").close()
        except FileExistsError:
            raise LedgerError(
                f"There is a file at {path} already. A ledger is never overwritten, since its past spends "
                "still count. Open it, or choose another name."
            ) from None
        except OSError as problem:
            raise _cannot("create", path, problem) from problem
        store = cls(path)
        try:
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.executescript(_TABLES)
            connection.execute("INSERT INTO terms VALUES (?, ?)", (terms, fingerprint("", terms)))
            connection.execute("PRAGMA journal_mode = WAL")  # last: the header must be in the file itself
            connection.close()
        except sqlite3.Error as problem:
            raise _cannot("create", path, problem) from problem
        return store

    def terms(self) -> str:
        """The terms the file was made with."""
        with self._reading() as connection:
            rows = connection.execute("SELECT content, fingerprint FROM terms").fetchall()
        if len(rows) != 1 or fingerprint("", rows[0][0]) != rows[0][1]:
            raise _damaged(self.path)
        return str(rows[0][0])

    def append(self, build: Callable[[Line | None], tuple[str, str]]) -> Line:
        """One more line, on the disk when this returns.

        `build` gets the last line and gives the new content and total, or raises to refuse; no other process
        can write in between.
        """
        with self._alone():
            return self._append(build)

    def _append(self, build: Callable[[Line | None], tuple[str, str]]) -> Line:
        try:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as problem:
            raise _cannot("write to", self.path, problem) from problem
        try:
            last = self._checked_last(connection)
            content, total = build(last)
            line = Line(
                number=last.number + 1 if last else 1,
                content=content,
                total=total,
                fingerprint=fingerprint(last.fingerprint if last else "", f"{content}\n{total}"),
            )
            row = (line.number, line.content, line.total, line.fingerprint)
            connection.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", row)
            connection.execute("COMMIT")
        except sqlite3.Error as problem:
            self._abandon()
            raise _cannot("write to", self.path, problem) from problem
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return line

    def last(self) -> Line | None:
        """The newest line."""
        with self._reading() as connection:
            return self._checked_last(connection)

    def _checked_last(self, connection: sqlite3.Connection) -> Line | None:
        """The newest line, if its mark fits its content and the line before; `lines` checks all of them."""
        last = _last(connection)
        if last is not None:
            row = connection.execute(
                "SELECT fingerprint FROM lines WHERE number = ?", (last.number - 1,)
            ).fetchone()
            before = row[0] if row else ""
            if last.fingerprint != fingerprint(before, f"{last.content}\n{last.total}"):
                raise _damaged(self.path)
        return last

    def lines(self) -> list[Line]:
        """Every line, checked against the chain."""
        with self._reading() as connection:
            found = [Line(*row) for row in connection.execute("SELECT * FROM lines ORDER BY number")]
        before = ""
        for number, line in enumerate(found, start=1):
            mark = fingerprint(before, f"{line.content}\n{line.total}")
            if line.number != number or line.fingerprint != mark:
                raise _damaged(self.path)
            before = line.fingerprint
        return found

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._alone():
            try:
                yield self._connect()
            except sqlite3.Error as problem:
                raise _cannot("read", self.path, problem) from problem

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; after a fork the child leaves the parent's lock and connection alone."""
        if self._process != os.getpid():
            if self._connection is not None:
                _INHERITED.append(self._connection)  # closing it here could touch the parent's file locks
            self._connection, self._turn, self._process = None, threading.Lock(), os.getpid()
        with self._turn:
            yield

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            if not self.path.exists():
                raise LedgerError(
                    f"There is no ledger at {self.path}. Make one with `sourdine ledger create`."
                )
            self._connection, self._identity = self._open(), self._found()
        if self._found() != self._identity:
            self._abandon()
            raise LedgerError(
                f"The file at {self.path} is no longer the ledger that was opened. Nothing was spent. "
                "Open it again."
            )
        return self._connection

    def _found(self) -> tuple[int, int]:
        """Which file the path leads to; one with two names has two logs, and each would forget the other."""
        try:
            held = self.path.stat()
        except OSError as problem:
            raise _cannot("find", self.path, problem) from problem
        if held.st_nlink > 1:
            raise LedgerError(
                f"The ledger {self.path} has a second name on this disk. Charges through one would be missed "
                "through the other. Remove the other name."
            )
        return held.st_dev, held.st_ino

    def _open(self) -> sqlite3.Connection:
        """A connection to a ledger, recognised before anything is written.

        The header is read through SQLite: opening the file beside it and closing it again would drop the
        locks that other connections of this process hold.
        """
        connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION:
            connection.close()
            raise LedgerError(
                f"The file {self.path} is not a ledger of Sourdine. Nothing was changed. Check the path."
            )
        if version > VERSION:
            connection.close()
            raise LedgerError(
                f"The ledger {self.path} was made by a newer Sourdine (format {version}). "
                "This version might misread it. Upgrade Sourdine."
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def fingerprint(before: str, content: str) -> str:
    """The mark of a line: SHA-256 over the mark before and the content."""
    return hashlib.sha256(json.dumps([before, content]).encode()).hexdigest()


def _last(connection: sqlite3.Connection) -> Line | None:
    row = connection.execute("SELECT * FROM lines ORDER BY number DESC LIMIT 1").fetchone()
    return Line(*row) if row else None


def _damaged(path: Path) -> LedgerError:
    return LedgerError(
        f"The ledger {path} was changed outside Sourdine, or damaged. Its totals cannot be trusted. "
        "Restore it from a copy, and keep this one."
    )


def _cannot(act: str, path: Path, problem: Exception) -> LedgerError:
    text = str(problem).lower()
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return LedgerError(
            f"The file {path} is damaged or is not a ledger. Nothing was spent. Restore it from a copy."
        )
    if "full" in text or "no space" in text:
        return LedgerError(f"There is no room left on the disk of {path}. Nothing was spent. Make room.")
    if "readonly" in text or "read-only" in text or "permission" in text or "unable to open" in text:
        return LedgerError(
            f"The ledger {path} cannot be written here. Nothing was spent. "
            "Check the rights on it and on its folder."
        )
    if "locked" in text or "busy" in text:
        return LedgerError(f"Other processes kept the ledger {path} busy. Nothing was spent. Try again.")
    return LedgerError(f"Could not {act} the ledger {path} ({problem}). Nothing was spent.")
