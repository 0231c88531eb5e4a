"""A ledger in an SQLite file, shared by many processes and threads of one machine.

A line is committed, and on the disk, before `append` returns. The file refuses updates and deletions by
itself, and a backup refuses new lines too.
"""

import os
import sqlite3
import threading
from pathlib import Path
from time import monotonic, sleep

from sourdine.accounting.ledger import problems
from sourdine.accounting.ledger.chain import Build, LedgerLine, Mark, Row, mark_of, next_line
from sourdine.accounting.ledger.file import database, names
from sourdine.accounting.ledger.file.guard import Busy, Guard
from sourdine.accounting.ledger.gate import GATE
from sourdine.accounting.ledger.store import Store
from sourdine.core.errors import LedgerError
from sourdine.core.format import either

_PAUSE = 0.0002  # seconds between two tries to commit
_READERS = 1.0  # seconds in which those who read are waited for, and no fork may pass
_NEWEST = f"SELECT {database.COLUMNS} FROM lines ORDER BY number DESC LIMIT 2"
_NEWEST_AND_MARK = f"SELECT * FROM ({_NEWEST}) UNION ALL SELECT number, '', '', fingerprint FROM mark"
_AFTER = f"SELECT {database.COLUMNS} FROM lines WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
_INSERT = f"INSERT INTO lines ({database.COLUMNS}) VALUES (?, ?, ?, ?)"
_TURNS: dict[Path, threading.RLock] = {}
"""Threads take turns at a file, whoever opened it, and need not ask the system for it."""
_ABANDONED: list[sqlite3.Connection | None] = []  # never closed, nor by a finalizer


class FileStore(Store[sqlite3.Connection]):
    """The file behind a ledger."""

    failures = problems.FAILURES
    longest_pause = 0.005
    path: Path

    def __init__(self, path: Path) -> None:
        place = names.resolve(path)
        super().__init__(path, place, _TURNS.setdefault(place, threading.RLock()))
        self._place: Path = place
        self._ready: sqlite3.Connection | None = None  # the connection, once seen to be fit for charges
        self._guard: Guard | None = None  # open as long as the connection is, and held while it is used
        self._has_log = False  # as older forms have it
        self._version = database.VERSION
        self._look = False  # a connection that sees no later change, good for one look

    @classmethod
    def create(cls, path: Path, terms: str) -> "FileStore":
        """A new file with its terms; an existing one is never touched."""
        database.create(path, terms)
        return cls(path)

    def _read_terms(self, connection: sqlite3.Connection) -> list[Row]:
        return connection.execute("SELECT 1, content, '', fingerprint FROM terms").fetchall()

    def _append(self, connection: sqlite3.Connection, build: Build, digest: str) -> LedgerLine:
        if self.is_backup:
            raise problems.backup(self.path)
        if self._ready is not connection:
            connection = self._bring_up(connection)
        connection.execute("BEGIN IMMEDIATE")
        last = self._newest(connection)
        content, total = build(last)
        line = next_line(mark_of(last), content, total)
        connection.execute(_INSERT, line)
        self._commit(connection, line)
        self._checked = (line, last.fingerprint if last else "")
        self._remember(line)
        return line

    def _commit(self, connection: sqlite3.Connection, line: LedgerLine) -> None:
        """Make the line count; what is not known after a failure is looked up, and never guessed."""
        until = monotonic() + self.patience
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
        """What is known of a line whose commit failed: SQLite may have finished it, or taken it back.

        The guard stays, so that nobody else is at the file before this is known.
        """
        self._disconnect()
        try:
            self._connection = database.connect(self._place, guarded=True)
            rows = self._connection.execute(
                "SELECT fingerprint FROM lines WHERE number = ?", (line.number,)
            ).fetchall()
        except problems.FAILURES:
            self._disconnect()
            return problems.unknown(self.path, line.number, problem)
        if (line.fingerprint,) in rows:
            return problems.recorded(self.path, line.number, problem)
        return problems.explain("write", self.path, problem)

    def _bring_up(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """See that the file has no log, as other software may give it, and is of the newest form."""
        if not os.access(self._place, os.W_OK):
            raise problems.explain("write", self.path, PermissionError("permission denied"))
        if self._has_log:
            connection = self._take_log_away()
        connection.execute("PRAGMA journal_mode = DELETE")
        if self._version < database.VERSION:
            connection.execute("BEGIN IMMEDIATE")
            self._version = database.header(connection)[1]
            if self._version < database.VERSION:
                database.bring_up(connection, self._version, mark_of(self._newest(connection)))
            connection.execute("COMMIT")
            self._version = database.VERSION
        self._ready = connection
        return connection

    def _take_log_away(self) -> sqlite3.Connection:
        """Put the log into the file, which nobody else may have open now; a connection that knows of none."""
        self._disconnect()  # which removes the log where no other connection has it
        if self._log().exists():
            raise Busy
        self._guard = Guard(self._place)
        self._guard.take(self._short_patience)
        database.take_log_away(self._place)
        self._has_log = False
        self._connection = database.connect(self._place, guarded=True)
        return self._connection

    def _end(self, connection: sqlite3.Connection) -> tuple[list[Row], Mark | None]:
        if self._version < database.MARKED:
            return connection.execute(_NEWEST).fetchall(), None
        *rows, mark = connection.execute(_NEWEST_AND_MARK).fetchall() or [()]
        if not mark:
            raise problems.damaged(self.path)
        return rows, Mark(mark[0], mark[3])

    def _between(self, connection: sqlite3.Connection, first: int, last: int, most: int) -> list[Row]:
        return connection.execute(_AFTER, (first, last, most)).fetchall()

    def _retire(self, connection: sqlite3.Connection, end: Mark, move: str) -> None:
        if self._ready is not connection:
            connection = self._bring_up(connection)
        connection.execute("BEGIN IMMEDIATE")
        live = database.header(connection)[0] == database.APPLICATION  # now: others may move it too
        if not live or mark_of(self._newest(connection)) != end:
            raise problems.charged_meanwhile(self.path)
        database.retire(connection, move)
        connection.execute("COMMIT")

    def _activate(self, connection: sqlite3.Connection, move: str) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if database.move_of(connection) != move:
            raise problems.damaged(self.path)
        database.activate(connection)
        connection.execute("COMMIT")

    def _read_move(self, connection: sqlite3.Connection) -> str:
        return database.move_of(connection)

    def _passes(self, problem: Exception) -> bool:
        return problems.is_busy(problem)

    def _explain(self, act: str, problem: Exception) -> LedgerError:
        return problems.explain(act, self.path, problem)

    def let_go(self) -> None:
        GATE.holders.discard(self)
        guard, self._guard = self._guard, None
        try:
            self._disconnect()
        finally:
            if guard is not None:
                guard.close()

    def _disconnect(self) -> None:
        connection, self._connection, self._ready = self._connection, None, None
        if connection is not None:
            connection.close()

    def _look_again(self) -> None:
        if self._look and self._log_holds_lines():
            raise LedgerError(f"The ledger {self.path} changed while it was read. Try again.")

    def _settle(self) -> None:
        """Leave no transaction open, no connection that keeps a log from being taken away, and no lock."""
        if self._guard is None or self._connection is None or self._connection.in_transaction:
            self.let_go()
            return
        try:
            self._guard.give_back()
        except OSError:  # closing the file takes its lock away for certain
            self.let_go()

    def _connect(self) -> sqlite3.Connection:
        """The connection, with the file locked for one use: alone if it may be written, else with readers."""
        try:
            if self._guard is not None and self._guard.is_lost:
                self._abandon()
            if self._guard is None:
                names.identify(self._place)
                GATE.holders.add(self)
                self._guard = self._new_guard()
            if self._guard is not None:
                self._guard.take(self._short_patience)
            identity = names.identify(self._place)  # which nobody changes while they wait for the lock
        except FileNotFoundError:
            raise LedgerError(
                f"There is no ledger at {self.path}. Nothing was spent. If it was moved, name its new place. "
                f"A first one is made with {either('Ledger.create', '`sourdine ledger create`')}."
            ) from None
        except OSError as problem:
            raise problems.explain("read", self.path, problem) from problem
        if self._guard is not None and identity != self._guard.identity:
            self.let_go()
            raise LedgerError(
                f"The file at {self.path} is no longer the ledger that was opened. Nothing was spent. "
                "Open it again."
            )
        if self._connection is None:
            self._connection = self._open()
            if self._guard is not None and names.identify(self._place) != identity:
                self.let_go()  # SQLite may have opened the file that was put in place meanwhile
                raise Busy
        else:
            database.forget_pages(self._connection)
        return self._connection

    def _abandon(self) -> None:
        """Leave a connection alone whose descriptors other code has closed, as a program does that becomes
        a daemon: their numbers may be of other files now, and to close them would close those.
        """
        _ABANDONED.append(self._connection)
        self._connection, self._ready, self._guard = None, None, None

    def _new_guard(self) -> Guard | None:
        """A guard, or none for a file with a log: each of its connections holds a lock of SQLite while it is
        open, and those of this process would be lost when the guard is closed.
        """
        self._has_log = self._log().exists()
        if self._has_log:
            return None
        guard = Guard(self._place)
        self._has_log = guard.has_log
        if self._has_log:  # and nobody has it open
            guard.close()
            return None
        return guard

    @property
    def _short_patience(self) -> float:
        return min(_READERS, self.patience)

    def _open(self) -> sqlite3.Connection:
        """A connection to a ledger, recognised before anything is written.

        With a log, or where the file may only be read, SQLite takes its own locks.
        """
        names.refuse_mounted(self._place)
        self._look = self._has_log and not self._may_write() and not self._log_holds_lines()
        guarded = self._guard is not None and self._guard.is_writable
        try:
            connection = database.connect(self._place, look=self._look, guarded=guarded)
            try:
                self._recognise(*database.header(connection))
                self._recognise_terms(str(connection.execute("SELECT fingerprint FROM terms").fetchone()))
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

    def _may_write(self) -> bool:
        """Whether SQLite may write here; else it would make a log that belonged to somebody who does not."""
        return os.access(self._place, os.W_OK) and os.access(self._place.parent, os.W_OK)

    def _log(self) -> Path:
        return Path(f"{self._place}-wal")

    def _log_holds_lines(self) -> bool:
        try:
            return self._log().stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as problem:
            raise problems.explain("read", self.path, problem) from problem

    def _recognise(self, application: int, version: int) -> None:
        if application not in (database.APPLICATION, database.BACKUP):
            raise LedgerError(
                f"The file {self.path} is not a ledger of Sourdine. Nothing was spent or "
                "changed. Check the path."
            )
        if version > database.VERSION:
            raise problems.newer(self.path, version)
        self.is_backup, self._version = application == database.BACKUP, version

    def _recognise_terms(self, terms: str) -> None:
        """Hold on to the terms first seen: what this process knows of the ledger is filed under them."""
        if self._terms not in ("", terms):
            raise LedgerError(
                f"The terms of the ledger {self.path} are no longer those it was opened with. Nothing was "
                "spent. Open it again; if that fails, the file is damaged: keep it, and see in a backup what "
                "was spent."
            )
        self._terms = terms
