"""A ledger in an SQLite file, shared by many processes and threads of one machine.

A line is committed, and on the disk, before `append` returns. The file refuses updates and deletions by
itself, and a backup refuses new lines too.
"""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep

from sourdine.accounting.ledger import problems
from sourdine.accounting.ledger.chain import Build, LedgerLine, Mark, Row, mark_of, next_line
from sourdine.accounting.ledger.file import database, names
from sourdine.accounting.ledger.gate import GATE
from sourdine.accounting.ledger.store import Store
from sourdine.core.errors import LedgerError
from sourdine.core.text.notation import either

_PAUSE = 0.0002  # seconds between two tries to commit
_NEWEST = "SELECT * FROM lines ORDER BY number DESC LIMIT 2"
_NEWEST_AND_MARK = f"SELECT * FROM ({_NEWEST}) UNION ALL SELECT number, '', '', fingerprint FROM mark"
_AFTER = "SELECT * FROM lines WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
_TURNS: dict[Path, threading.RLock] = {}
"""Threads take turns at a file, whoever opened it: before SQLite 3.41 one could read while another puts a
file in order that a crash left half-written."""


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
        self._identity = (0, 0)
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
            self._bring_up(connection)
        connection.execute("BEGIN IMMEDIATE")
        last = self._newest(connection)
        content, total = build(last)
        line = next_line(mark_of(last), content, total)
        connection.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", line)
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
                database.bring_up(connection, mark_of(self._newest(connection)))
            connection.execute("COMMIT")
            self._version = database.VERSION
        self._ready = connection

    def _end(self, connection: sqlite3.Connection) -> tuple[list[Row], Mark | None]:
        if self._version < database.VERSION:
            return connection.execute(_NEWEST).fetchall(), None
        *rows, mark = connection.execute(_NEWEST_AND_MARK).fetchall() or [()]
        if not mark:
            raise problems.damaged(self.path)
        return rows, Mark(mark[0], mark[3])

    def _between(self, connection: sqlite3.Connection, first: int, last: int, most: int) -> list[Row]:
        return connection.execute(_AFTER, (first, last, most)).fetchall()

    def _retire(self, connection: sqlite3.Connection, end: Mark, move: str) -> None:
        if self._ready is not connection:
            self._bring_up(connection)
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
        if self._connection is not None:
            connection, self._connection, self._ready = self._connection, None, None
            connection.close()

    def _look_again(self) -> None:
        if self._look and self._log_holds_lines():
            raise LedgerError(f"The ledger {self.path} changed while it was read. Try again.")

    def _settle(self) -> None:
        """Leave no transaction open, and no connection that keeps an older form from being brought up."""
        connection = self._connection
        if connection is not None and (connection.in_transaction or self._version < database.VERSION):
            self.let_go()

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
