"""An append-only file of lines, shared by many processes and threads.

A line is committed, and on the disk, before `append` returns. Lines form a chain, and a mark in another part
of the file tells where it ends, so that a changed or missing line shows, the newest too. The file refuses
updates and deletions by itself, and a backup refuses new lines too.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from sourdine.accounting.ledger import database, names, problems
from sourdine.accounting.ledger.chain import (
    START,
    Build,
    LedgerLine,
    Mark,
    Row,
    fingerprint,
    follows,
    next_line,
    sound,
)
from sourdine.accounting.ledger.gate import GATE
from sourdine.core.errors import LedgerError
from sourdine.core.notation import either

T = TypeVar("T")
_WAIT = 60.0  # seconds to wait for other processes
_PAUSE, _LONGEST_PAUSE = 0.0002, 0.005  # seconds between two tries
_CHUNK = 2000  # lines read at a time: a charge waits while others read
_NEWEST = "SELECT * FROM lines ORDER BY number DESC LIMIT 2"
_NEWEST_AND_MARK = f"SELECT * FROM ({_NEWEST}) UNION ALL SELECT number, '', '', fingerprint FROM mark"
_AFTER = "SELECT * FROM lines WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
_TURNS: dict[Path, threading.RLock] = {}
"""Threads take turns at a file, whoever opened it: before SQLite 3.41 one could read while another puts a
file in order that a crash left half-written. A finalizer may take a turn within another."""
_MARKS: dict[tuple[Path, str], Mark] = {}
"""How far this process has seen each ledger come, by its place and the fingerprint of its terms."""


class Store:
    """The file behind a ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_backup = False
        self._place = names.resolve(path)
        self._turn = _TURNS.setdefault(self._place, threading.RLock())
        self._in_use = False
        self._connection: sqlite3.Connection | None = None
        self._ready: sqlite3.Connection | None = None  # the same, once it was seen to be fit for charges
        self._identity = (0, 0)
        self._version = database.VERSION
        self._terms = ""
        self._look = False  # a connection that sees no later change, good for one look
        self._checked: tuple[LedgerLine, str] | None = None  # a line found right, with the mark before it

    @classmethod
    def create(cls, path: Path, terms: str) -> "Store":
        """A new file with its terms; an existing one is never touched."""
        database.create(path, terms)
        return cls(path)

    def terms(self) -> str:
        """The terms the file was made with."""
        rows = self._rows("SELECT 1, content, '', fingerprint FROM terms")
        if len(rows) != 1 or not sound(rows[0]) or fingerprint("", rows[0][1]) != rows[0][3]:
            raise problems.damaged(self.path)
        return rows[0][1]

    def append(self, build: Build) -> LedgerLine:
        """One more line, on the disk when this returns.

        `build` gets the last line and gives the new content and total, or raises to refuse; no other process
        can write in between.
        """
        return self._patiently("write", lambda connection: self._append(connection, build))

    def _append(self, connection: sqlite3.Connection, build: Build) -> LedgerLine:
        if self.is_backup:
            raise problems.backup(self.path)
        if self._ready is not connection:
            self._bring_up(connection)
        connection.execute("BEGIN IMMEDIATE")
        last = self._newest(connection)
        content, total = build(last)
        line = next_line(_mark(last), content, total)
        connection.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", line)
        self._commit(connection, line)
        self._checked = (line, last.fingerprint if last else "")
        _MARKS[self._place, self._terms] = _mark(line)
        return line

    def _commit(self, connection: sqlite3.Connection, line: LedgerLine) -> None:
        """Make the line count; what is not known after a failure is looked up, and never guessed."""
        until = monotonic() + _WAIT
        while True:
            try:
                connection.execute("COMMIT")
                return
            except problems.FAILURES as problem:
                if problems.is_busy(problem) and connection.in_transaction:
                    if monotonic() < until:  # readers are quick, and no new ones are let in now
                        sleep(_PAUSE)
                        continue
                    connection.execute("ROLLBACK")
                    raise
                raise self._after_failure(line, problem) from problem

    def _after_failure(self, line: LedgerLine, problem: Exception) -> LedgerError:
        """What is known of a line whose commit failed: SQLite may have finished it, or taken it back."""
        self.let_go()
        try:
            rows = (
                self._connect()
                .execute("SELECT fingerprint FROM lines WHERE number = ?", (line.number,))
                .fetchall()
            )
        except (*problems.FAILURES, LedgerError):
            return problems.unknown(self.path, line.number, problem)
        if (line.fingerprint,) in rows:
            return problems.recorded(self.path, line.number, problem)
        return problems.explain("write", self.path, problem)

    def _bring_up(self, connection: sqlite3.Connection) -> None:
        """See that the file has no log, as other software may give it, and a mark: older forms have none."""
        if not os.access(self._place, os.W_OK):
            raise problems.explain("write", self.path, PermissionError("permission denied"))
        connection.execute("PRAGMA journal_mode = DELETE")
        if self._version < database.VERSION:
            connection.execute("BEGIN IMMEDIATE")
            if database.header(connection)[1] < database.VERSION:
                database.bring_up(connection, _mark(self._newest(connection)))
            connection.execute("COMMIT")
            self._version = database.VERSION
        self._ready = connection

    def last(self) -> LedgerLine | None:
        """The newest line."""
        return self._patiently("read", self._newest)

    def _newest(self, connection: sqlite3.Connection) -> LedgerLine | None:
        """The newest line: it must fit the line before, the mark, and what this process has seen."""
        key = self._place, self._terms
        known = _MARKS.get(key, START)  # before the file is read: another thread may charge meanwhile
        if self._version < database.VERSION:
            rows = connection.execute(_NEWEST).fetchall()
            line = self._fitting(rows) if rows else None
        else:
            *rows, mark = connection.execute(_NEWEST_AND_MARK).fetchall() or [()]
            line = self._fitting(rows) if rows else None
            if not mark or _mark(line) != (mark[0], mark[3]):
                raise problems.damaged(self.path)
        if not self.is_backup and _mark(line) != known:
            self._check_seen(connection, _mark(line), known)
            _MARKS[key] = _mark(line)
        return line

    def _check_seen(self, connection: sqlite3.Connection, end: Mark, known: Mark) -> None:
        row = connection.execute("SELECT fingerprint FROM lines WHERE number = ?", (known.number,)).fetchone()
        if known != START and (end.number < known.number or row != (known.fingerprint,)):
            raise problems.shortened(self.path, end.number, known.number)

    def line(self, number: int) -> LedgerLine | None:
        """One line, if its mark fits its content and the line before."""
        rows = self._rows(_AFTER, number - 2, number, 2)
        return self._fitting(rows[::-1]) if rows and rows[-1][0] == number else None

    def _fitting(self, rows: list[Row]) -> LedgerLine:
        """A line that goes with the one before; a pair found right once needs no second proof."""
        if not all(map(sound, rows)):
            raise problems.damaged(self.path)
        line = LedgerLine._make(rows[0])
        before = Mark(rows[1][0], rows[1][3]) if len(rows) > 1 else START
        if (line, before.fingerprint) != self._checked or line.number != before.number + 1:
            if not follows(line, before):
                raise problems.damaged(self.path)
            self._checked = (line, before.fingerprint)
        return line

    def lines(self) -> Iterator[LedgerLine]:
        """Every line there is now, in order, checked against the chain and the mark."""
        end, before = _mark(self.last()), START
        while before.number < end.number:
            rows = self._rows(_AFTER, before.number, end.number, _CHUNK)
            for row in rows:
                line = LedgerLine._make(row)
                if not sound(row) or not follows(line, before):
                    raise problems.damaged(self.path)
                before = _mark(line)
                yield line
            if not rows:
                break
        if before != end:
            raise problems.damaged(self.path)

    def backup(self, path: Path) -> None:
        """Another file with the terms and every line, each checked on the way; it takes no more lines."""
        database.create(path, self.terms(), self.lines(), backup=True)

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with GATE.inside(), self._alone():
            self.let_go()

    def let_go(self) -> None:
        """Close the connection, if there is one; the next use opens another."""
        GATE.holders.discard(self)
        if self._connection is not None:
            connection, self._connection, self._ready = self._connection, None, None
            connection.close()

    def _rows(self, query: str, *values: int) -> list[Row]:
        return self._patiently("read", lambda connection: connection.execute(query, values).fetchall())

    def _patiently(self, act: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do some work with the file, again and again while others have it; in between a fork may pass."""
        until, pause = monotonic() + _WAIT, _PAUSE
        while True:
            with GATE.inside(), self._alone():
                try:
                    result = work(self._connect())
                    if self._look and self._log_holds_lines():
                        raise LedgerError(f"The ledger {self.path} changed while it was read. Try again.")
                    return result
                except problems.FAILURES as problem:
                    if not problems.is_busy(problem) or monotonic() > until:
                        self.let_go()
                        raise problems.explain(act, self.path, problem) from problem
                finally:
                    self._settle()
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _settle(self) -> None:
        """Leave no transaction open, and no connection that keeps an older form from being brought up."""
        connection = self._connection
        if connection is not None and (connection.in_transaction or self._version < database.VERSION):
            self.let_go()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; the same thread only once."""
        with self._turn:
            if self._in_use:
                raise LedgerError(
                    f"The ledger {self.path} was used by a signal handler in the middle of a charge. "
                    "Nothing was spent by the handler. Use it outside of signal handlers."
                )
            self._in_use = True
            try:
                yield
            finally:
                self._in_use = False

    def _connect(self) -> sqlite3.Connection:
        try:
            identity = names.identify(self._place)
        except FileNotFoundError:
            raise LedgerError(
                f"There is no ledger at {self.path}. Nothing was spent. If it was moved, name its new place. "
                f"A first one is made with {either('Ledger.create', '`sourdine ledger create`')}."
            ) from None
        except OSError as problem:
            raise problems.explain("read", self.path, problem) from problem
        if self._connection is None:
            self._connection, self._identity = self._open(), identity
            GATE.holders.add(self)
        elif identity != self._identity:
            self.let_go()
            raise LedgerError(
                f"The file at {self.path} is no longer the ledger that was opened. Nothing was spent. "
                "Open it again."
            )
        else:
            database.forget_pages(self._connection)
        return self._connection

    def _open(self) -> sqlite3.Connection:
        """A connection to a ledger, recognised before anything is written.

        The header is read through SQLite: opening the file beside it and closing it again would drop the
        locks that other connections of this process hold.
        """
        names.refuse_mounted(self._place)
        self._look = self._needs_look()
        try:
            connection = database.connect(self._place, look=self._look)
            try:
                self._recognise(*database.header(connection))
                self._terms = str(connection.execute("SELECT fingerprint FROM terms").fetchone())
            except BaseException:
                connection.close()
                raise
        except sqlite3.OperationalError as problem:
            cannot = problem.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if cannot and self._log_holds_lines():
                raise LedgerError(
                    f"The newest charges of the ledger {self.path} are in its log, which cannot be read "
                    "here. Ask for a backup, or for the right to write into its folder."
                ) from problem
            raise
        return connection

    def _needs_look(self) -> bool:
        """Whether this is an older form, with an empty log, that may not be written here.

        SQLite would make a log for nothing, which belonged to somebody other than those who write.
        """
        if os.access(self._place, os.W_OK) and os.access(self._place.parent, os.W_OK):
            return False
        try:
            with closing(database.connect(self._place, look=True)) as connection:
                application, version = database.header(connection)
        except problems.FAILURES:
            return False  # somebody is at it, or it is no ledger: to be found out in the usual way
        old = application == database.APPLICATION and version < database.VERSION
        return old and not self._log_holds_lines()

    def _log_holds_lines(self) -> bool:
        try:
            return Path(f"{self._place}-wal").stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as problem:
            raise problems.explain("read", self.path, problem) from problem

    def _recognise(self, application: int, version: int) -> None:
        if application not in (database.APPLICATION, database.BACKUP):
            raise LedgerError(
                f"The file {self.path} is not a ledger of Sourdine. Nothing was changed. Check the path."
            )
        if version > database.VERSION:
            raise LedgerError(
                f"The ledger {self.path} was made by a newer Sourdine (format {version}). "
                "This version might misread it. Upgrade Sourdine."
            )
        self.is_backup, self._version = application == database.BACKUP, version


def _mark(line: LedgerLine | None) -> Mark:
    return START if line is None else Mark(line.number, line.fingerprint)
