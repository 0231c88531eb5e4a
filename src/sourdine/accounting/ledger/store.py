"""An append-only file of lines, shared by many processes: SQLite with a write-ahead log and full sync.

A line is committed, and on the disk, before `append` returns. Lines form a chain: each carries a
fingerprint of its content and of the line before, so that a changed or missing line shows. The file refuses
updates and deletions by itself, and a backup refuses new lines too.
"""

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sourdine.core.errors import LedgerError

APPLICATION = 0x536F7264  # "Sord", in the header of the file
BACKUP = 0x536F7263  # "Sorc": software that does not know backups will not take one for a ledger
VERSION = 2
"""The newest form that is understood: 1, or 2 for a ledger whose lines also have deltas.

Software that knows only 1 would leave them out, so it must not take a ledger of form 2 for one of its own.
"""
_WAIT = 60.0  # seconds to wait for other writers
_LOG_PAGES = 250  # a log that grows is slower to sync than one written over, so it is emptied early
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
_NO_MORE = """
CREATE TRIGGER lines_end BEFORE INSERT ON lines BEGIN SELECT RAISE(ABORT, 'a backup takes no lines'); END;
"""
Row = tuple[int, str, str, str]


class Line(NamedTuple):
    """One entry: its number from 1, its content as JSON, the total after it, and its fingerprint."""

    number: int
    content: str
    total: str
    fingerprint: str


Build = Callable[[Line | None], tuple[str, str]]


class Store:
    """The file behind a ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_backup = False
        self._version = VERSION
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._identity = (0, 0)
        self._passing = False  # a connection that sees no later change, good for one look
        self._checked: tuple[Line, str] | None = None  # a line found right, with the mark before it
        self._turn = threading.Lock()  # threads of one process share the connection

    @classmethod
    def create(cls, path: Path, terms: str, version: int = 1) -> "Store":
        """A new file with its terms; an existing one is never touched."""
        with _new_file(path, APPLICATION, version, terms) as connection:
            connection.execute("PRAGMA journal_mode = WAL")  # last: the header must be in the file itself
        return cls(path)

    def terms(self) -> str:
        """The terms the file was made with."""
        with self._reading() as connection:
            rows = connection.execute("SELECT content, fingerprint FROM terms").fetchall()
        if len(rows) != 1 or fingerprint("", rows[0][0]) != rows[0][1]:
            raise _damaged(self.path)
        return str(rows[0][0])

    def append(self, build: Build) -> Line:
        """One more line, on the disk when this returns.

        `build` gets the last line and gives the new content and total, or raises to refuse; no other process
        can write in between.
        """
        with self._alone():
            try:
                connection = self._connect()
                if self.is_backup:
                    raise LedgerError(
                        f"The file {self.path} is a backup, and a backup pays for nothing. "
                        "Nothing was spent. Charge the ledger itself."
                    )
                return self._append(connection, build)
            except sqlite3.Error as problem:
                self._abandon()
                raise _cannot("write", self.path, problem) from problem

    def _append(self, connection: sqlite3.Connection, build: Build) -> Line:
        connection.execute("BEGIN IMMEDIATE")
        try:
            last = self._newest(connection)
            content, total = build(last)
            number, before = (last.number + 1, last.fingerprint) if last else (1, "")
            line = Line(number, content, total, fingerprint(before, f"{content}\n{total}"))
            connection.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", line)
            connection.execute("COMMIT")
        except sqlite3.Error:
            raise
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        self._checked = (line, before)
        return line

    def last(self) -> Line | None:
        """The newest line."""
        with self._reading() as connection:
            return self._newest(connection)

    def _newest(self, connection: sqlite3.Connection) -> Line | None:
        """The newest line, if its mark fits its content and the line before; `lines` checks all of them."""
        rows = connection.execute("SELECT * FROM lines ORDER BY number DESC LIMIT 2").fetchall()
        return self._fitting(rows) if rows else None

    def line(self, number: int) -> Line | None:
        """One line, if its mark fits its content and the line before."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT * FROM lines WHERE number <= ? ORDER BY number DESC LIMIT 2", (number,)
            ).fetchall()
        return self._fitting(rows) if rows and rows[0][0] == number else None

    def _fitting(self, rows: list[Row]) -> Line:
        """A line that goes with the one before; a pair found right once needs no second proof."""
        line = Line._make(rows[0])
        number, mark = (rows[1][0], rows[1][3]) if len(rows) > 1 else (0, "")
        if (line, mark) != self._checked or line.number != number + 1:
            expected = fingerprint(mark, f"{line.content}\n{line.total}")
            if line.number != number + 1 or line.fingerprint != expected:
                raise _damaged(self.path)
            self._checked = (line, mark)
        return line

    def lines(self) -> list[Line]:
        """Every line, checked against the chain."""
        with self._reading() as connection:
            found = [Line._make(row) for row in connection.execute("SELECT * FROM lines ORDER BY number")]
        before = ""
        for number, line in enumerate(found, start=1):
            mark = fingerprint(before, f"{line.content}\n{line.total}")
            if line.number != number or line.fingerprint != mark:
                raise _damaged(self.path)
            before = line.fingerprint
        return found

    def backup(self, path: Path) -> None:
        """Another file with the terms and every line, each checked on the way; it takes no more lines.

        It is marked as a backup from its first byte on: a whole copy that is marked afterwards would be a
        second budget if the process died in between.
        """
        terms, lines = self.terms(), self.lines()
        with _new_file(path, BACKUP, self._version, terms, lines) as connection:
            connection.executescript(_NO_MORE)

    def close(self) -> None:
        """Put the log into the file and let go of both; the next use opens them again."""
        with self._alone():
            if self._connection is not None:
                with suppress(sqlite3.Error):  # the log is as durable as the file: this is for tidiness
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._abandon()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._alone():
            try:
                yield self._connect()
                if self._passing and self._log_holds_lines():
                    raise LedgerError(f"The ledger {self.path} changed while it was read. Try again.")
            except sqlite3.Error as problem:
                self._abandon()
                raise _cannot("read", self.path, problem) from problem
            finally:
                if self._passing:
                    self._abandon()

    def _alone(self) -> threading.Lock:
        """One thread at a time; after a fork the child leaves the parent's lock and connection alone."""
        if self._process != os.getpid():
            if self._connection is not None:
                _INHERITED.append(self._connection)  # closing it here could touch the parent's file locks
            self._connection, self._turn, self._process = None, threading.Lock(), os.getpid()
        return self._turn

    def _connect(self) -> sqlite3.Connection:
        found = self._found()
        if self._connection is None:
            self._connection, self._identity = self._open(), found
        elif found != self._identity:
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
        except FileNotFoundError:
            raise LedgerError(
                f"There is no ledger at {self.path}. Make one with `sourdine ledger create`."
            ) from None
        except OSError as problem:
            raise _cannot("read", self.path, problem) from problem
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
        connection, self._passing = self._look() if self._only_to_read() else self._stay()
        try:
            application = _header(connection, "application_id")
            version = _header(connection, "user_version")
            self._recognise(application, version)
            self.is_backup, self._version = application == BACKUP, version
            if not self.is_backup and not self._passing:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _stay(self) -> tuple[sqlite3.Connection, bool]:
        """A connection to keep; only a look where SQLite cannot put its log into the folder."""
        connection = _connection(os.fspath(self.path))
        try:
            _header(connection, "application_id")
        except sqlite3.OperationalError as problem:
            connection.close()
            if problem.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            if self._log_holds_lines():
                raise LedgerError(
                    f"The newest charges of the ledger {self.path} are in its log, which cannot be read "
                    "here. Ask for a backup, or for the right to write into its folder."
                ) from problem
            return self._look()
        except BaseException:
            connection.close()
            raise
        return connection, False

    def _look(self) -> tuple[sqlite3.Connection, bool]:
        """A connection for one look, as if nobody could change the file; its log must be empty throughout."""
        return _connection(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True), True

    def _only_to_read(self) -> bool:
        """Whether a log would be made for nothing, and belong to somebody other than those who write."""
        return not os.access(self.path, os.W_OK) and not self._log_holds_lines()

    def _log_holds_lines(self) -> bool:
        try:
            return Path(f"{self.path}-wal").stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as problem:
            raise _cannot("read", self.path, problem) from problem

    def _recognise(self, application: int, version: int) -> None:
        if application not in (APPLICATION, BACKUP):
            raise LedgerError(
                f"The file {self.path} is not a ledger of Sourdine. Nothing was changed. Check the path."
            )
        if version > VERSION:
            raise LedgerError(
                f"The ledger {self.path} was made by a newer Sourdine (format {version}). "
                "This version might misread it. Upgrade Sourdine."
            )

    def _abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def fingerprint(before: str, content: str) -> str:
    """The mark of a line: SHA-256 over the mark before and the content, as a JSON list of two texts."""
    return hashlib.sha256(f"[{json.dumps(before)}, {json.dumps(content)}]".encode()).hexdigest()


@contextmanager
def _new_file(
    path: Path, application: int, version: int, terms: str, lines: Iterable[Line] = ()
) -> Iterator[sqlite3.Connection]:
    try:
        path.open("xb").close()
    except FileExistsError:
        raise LedgerError(
            f"There is a file at {path} already. A ledger is never overwritten, since its past spends "
            "still count. Open it, or choose another name."
        ) from None
    except OSError as problem:
        raise _cannot("write", path, problem) from problem
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA application_id = {application}")
            connection.execute(f"PRAGMA user_version = {version}")
            connection.executescript(_TABLES)
            connection.execute("BEGIN")
            connection.execute("INSERT INTO terms VALUES (?, ?)", (terms, fingerprint("", terms)))
            connection.executemany("INSERT INTO lines VALUES (?, ?, ?, ?)", lines)
            connection.execute("COMMIT")
            yield connection
    except sqlite3.Error as problem:
        raise _cannot("write", path, problem) from problem


def _connection(place: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(place, timeout=_WAIT, isolation_level=None, check_same_thread=False, uri=uri)


def _header(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _damaged(path: Path) -> LedgerError:
    return LedgerError(
        f"The ledger {path} was changed outside Sourdine, or damaged. Its totals cannot be trusted. "
        "Keep it, and see in a backup what was spent."
    )


def _cannot(act: str, path: Path, problem: Exception) -> LedgerError:
    text = str(problem).lower()
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return LedgerError(
            f"The file {path} is damaged or is not a ledger. Nothing was spent. "
            "Keep it, and see in a backup what was spent."
        )
    if "full" in text or "no space" in text:
        return LedgerError(f"There is no room left on the disk of {path}. Nothing was spent. Make room.")
    if "readonly" in text or "read-only" in text or "permission" in text or "unable to open" in text:
        done = "read" if act == "read" else "written"
        return LedgerError(
            f"The ledger {path} cannot be {done} here. Nothing was spent. "
            "Check the rights on it and on its folder."
        )
    if "no such file" in text and act == "write":
        return LedgerError(f"The folder of {path} does not exist. Nothing was spent. Make it first.")
    if "locked" in text or "busy" in text:
        return LedgerError(f"Other processes kept the ledger {path} busy. Nothing was spent. Try again.")
    return LedgerError(f"Could not {act} the ledger {path} ({problem}). Nothing was spent.")
