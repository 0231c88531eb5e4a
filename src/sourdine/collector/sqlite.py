"""Reports in a file of SQLite: a write-ahead log, forced to the disk at every commit."""

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sourdine.collector.announcement import SignedAnnouncement
from sourdine.collector.blocks import (
    Snapshot,
    loose_block,
    random_numbers,
    sealed_counts,
    sealed_text,
    unpacked_block,
)
from sourdine.collector.store import (
    MIGRATION,
    MOST_BYTES,
    OLDEST,
    VERSION,
    Place,
    ReportStore,
    StoredQuestion,
    StoreError,
    check_version,
)
from sourdine.collector.submission import Submission
from sourdine.core import files as disk
from sourdine.local.estimate import Counts
from sourdine.local.lines import Numbers
from sourdine.local.oracle import Bytes

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_APPLICATION = 0x536F7243  # "SorC"
_BUSY = 30.0  # seconds that a writer waits for another process
_PURGE_BUSY = 200  # milliseconds that the emptying of the log waits for readers, while writers wait for it
_ASKED = 500  # keys that are looked up at once
_TABLES = """
CREATE TABLE questions (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    closed TEXT NOT NULL DEFAULT '',
    sealed TEXT
);
CREATE TABLE submissions (key BLOB PRIMARY KEY, body BLOB NOT NULL, question INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE loose (
    number INTEGER PRIMARY KEY, question INTEGER NOT NULL, period TEXT NOT NULL, report BLOB NOT NULL
);
CREATE TABLE blocks (
    number INTEGER PRIMARY KEY,
    question INTEGER NOT NULL,
    period TEXT NOT NULL,
    reports INTEGER NOT NULL,
    mixed INTEGER NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX blocks_of ON blocks (question, period, reports);
CREATE TABLE events (question INTEGER, kind TEXT, count INTEGER NOT NULL, PRIMARY KEY (question, kind))
    WITHOUT ROWID;
"""


class SqliteStore(ReportStore):
    """A store in a file, for its owner alone. Several processes may have it open; they take turns."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._turn: int | None = None
        self._connection = self._connect()

    def _connect(self) -> sqlite3.Connection:
        new = not self.path.exists()
        if new:
            handle = os.open(self.path, os.O_CREAT | os.O_RDWR, disk.OWNER)
            os.close(handle)
        connection = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # what is removed is gone from the file as well
            connection.execute("PRAGMA cache_size = -65536")
            connection.execute("PRAGMA temp_store = MEMORY")  # what is sorted leaves no file
            self._form(connection)
        except BaseException as problem:
            connection.close()
            if isinstance(problem, sqlite3.Error):
                raise self.trouble(problem) from None
            raise
        if new:
            disk.sync(self.path.parent)
        return connection

    def _form(self, connection: sqlite3.Connection) -> None:
        """Make the tables if there are none; refuse those of another program or a later version."""
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    connection.execute("ROLLBACK")
                    raise StoreError(f"{self.path} is no store of reports. Name another file.")
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {OLDEST}")
            connection.execute("COMMIT")
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise StoreError(f"{self.path} is no store of reports. Name another file.")
        check_version(connection.execute("PRAGMA user_version").fetchone()[0], str(self.path))
        if connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:
            self._connection = connection
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:  # nobody was quicker
                script = (
                    MIGRATION.replace("{schema}.", "")
                    .replace("{bytes}", "blob")
                    .replace("{integer}", "integer")
                )
                for statement in script.replace("{integer}", "integer").split(";"):
                    connection.execute(statement)
                self._migrate()
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")

    def trouble(self, problem: sqlite3.Error) -> StoreError:
        """What went wrong, without a word of what was stored."""
        name = getattr(problem, "sqlite_errorname", "") or type(problem).__name__
        return StoreError(f"The store {self.path} cannot be used ({name}). Check the file and its disk.")

    def close(self) -> None:
        self._connection.close()

    def questions(self) -> list[StoredQuestion]:
        rows = self._connection.execute("SELECT number, content, closed FROM questions ORDER BY number")
        return [
            StoredQuestion(number, SignedAnnouncement.from_text(text), closed)
            for number, text, closed in rows
        ]

    def close_question(self, number: int, day: str) -> None:
        self._connection.execute(
            "UPDATE questions SET closed = ? WHERE number = ? AND closed = ''", (day, number)
        )

    def begin(self) -> None:
        self._take_turn()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._end_turn()
            raise

    def begin_alone(self) -> None:
        self.begin()

    def commit(self) -> None:
        self._connection.execute("COMMIT")
        self._end_turn()

    def rollback(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        """Wait for other processes by a lock of the system: SQLite itself would sleep and try again."""
        lock = getattr(fcntl, "flock", None)
        if lock is not None and self._turn is None:
            self._turn = os.open(f"{self.path}-turn", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, disk.OWNER)
            lock(self._turn, fcntl.LOCK_EX)

    def _end_turn(self) -> None:
        if self._turn is not None:
            turn, self._turn = self._turn, None
            os.close(turn)  # which lets the next one in

    def closed(self) -> set[int]:
        return {row[0] for row in self._connection.execute("SELECT number FROM questions WHERE closed <> ''")}

    def add_keys(self, submissions: Sequence[Submission]) -> dict[bytes, bytes]:
        keys = [each.key for each in submissions]
        old: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _ASKED):
            part = keys[start : start + _ASKED]
            marks = ",".join("?" * len(part))
            old.update(
                self._connection.execute(f"SELECT key, body FROM submissions WHERE key IN ({marks})", part)
            )
        self._connection.executemany(
            "INSERT INTO submissions VALUES (?, ?, ?)",
            sorted(
                (key, each.check, each.question)
                for key, each in zip(keys, submissions, strict=True)
                if key not in old
            ),
        )
        return old

    def has_keys(self, number: int) -> bool:
        rows = self._connection.execute("SELECT 1 FROM submissions WHERE question = ? LIMIT 1", (number,))
        return rows.fetchone() is not None

    def add_loose(self, place: Place, numbers: Numbers, rows: Bytes) -> None:
        content = rows.tobytes()
        width = rows.shape[1]
        self._connection.executemany(
            "INSERT INTO loose VALUES (?, ?, ?, ?)",
            [
                (number, *place, content[i * width : (i + 1) * width])
                for i, number in enumerate(numbers.tolist())
            ],
        )

    def take_loose(self, place: Place, count: int | None = None) -> list[tuple[int, bytes]]:
        return self._connection.execute(
            "DELETE FROM loose WHERE number IN "
            "(SELECT number FROM loose WHERE question = ? AND period = ? LIMIT ?) RETURNING number, report",
            (*place, -1 if count is None else count),
        ).fetchall()

    def count_loose(self, place: Place) -> int:
        row = self._connection.execute(
            "SELECT count(*) FROM loose WHERE question = ? AND period = ?", place
        ).fetchone()
        return int(row[0])

    def add_block(self, place: Place, reports: int, content: bytes, *, mixed: bool = False) -> None:
        number = int(random_numbers(1)[0])
        self._connection.execute(
            "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", (number, *place, reports, int(mixed), content)
        )

    def unmixed(self, place: Place) -> list[tuple[int, int]]:
        return self._connection.execute(
            "SELECT number, reports FROM blocks WHERE question = ? AND period = ? AND mixed = 0 "
            "ORDER BY number",
            place,
        ).fetchall()

    def take_block(self, number: int) -> bytes:
        rows = self._connection.execute("DELETE FROM blocks WHERE number = ? RETURNING content", (number,))
        return bytes(rows.fetchall()[0][0])

    def add_events(self, events: Mapping[tuple[int, str], int]) -> None:
        self._connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
            [(*event, count) for event, count in events.items()],
        )

    def events(self) -> dict[tuple[int, str], int]:
        rows = self._connection.execute("SELECT question, kind, count FROM events")
        return {(number, kind): count for number, kind, count in rows}

    def snapshot(self, number: int, known: frozenset[int]) -> Snapshot:
        connection = self._connection
        with self._reading():
            rows = connection.execute("SELECT number, period FROM blocks WHERE question = ?", (number,))
            blocks: dict[int, str] = dict(rows)
            new: dict[int, bytes] = {}
            size = 0
            for block in blocks.keys() - known:
                if size > MOST_BYTES:
                    break
                row = connection.execute("SELECT content FROM blocks WHERE number = ?", (block,)).fetchone()
                new[block] = row[0]
                size += len(row[0])
            loose = connection.execute("SELECT period, report FROM loose WHERE question = ?", (number,))
            return Snapshot(blocks, new, loose.fetchall(), self.sealed(number))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """All that is read meanwhile is of one moment."""
        inner = self._connection.in_transaction
        if not inner:
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if not inner:
                self._connection.execute("COMMIT")

    def periods(self, number: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT period FROM blocks WHERE question = ? UNION SELECT period FROM loose WHERE question = ?",
            (number, number),
        )
        return sorted(row[0] for row in rows)

    def stream(self, number: int, period: str | None = None) -> Iterator[tuple[Numbers, Bytes]]:
        width = self._question(number).oracle.width
        connection, where = self._connection, "question = ?" + ("" if period is None else " AND period = ?")
        values = (number,) if period is None else (number, period)
        with self._reading():
            for (content,) in connection.execute(f"SELECT content FROM blocks WHERE {where}", values):
                yield unpacked_block(content, width)
            loose = connection.execute(f"SELECT number, report FROM loose WHERE {where}", values).fetchall()
            yield loose_block(loose, width)

    def sealed(self, number: int) -> dict[str, Counts]:
        row = self._connection.execute("SELECT sealed FROM questions WHERE number = ?", (number,)).fetchone()
        return sealed_counts(None if row is None else row[0])

    def forget(
        self, number: int, periods: Sequence[str], sealed: Mapping[str, Counts], *, keys: bool
    ) -> None:
        connection = self._connection
        connection.execute("UPDATE questions SET sealed = ? WHERE number = ?", (sealed_text(sealed), number))
        for period in periods:
            self.drop(number, period)
        if keys:
            self.forget_submissions(number)

    def drop(self, number: int, period: str) -> None:
        self._loose.pop((number, period), None)
        for table in ("blocks", "loose"):
            self.run(f"DELETE FROM {table} WHERE question = ? AND period = ?", number, period)
            self.leave(table)

    def run(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(text.replace("{schema}.", ""), values).fetchall()

    def run_many(self, text: str, rows: Sequence[tuple[object, ...]]) -> None:
        self._connection.executemany(text.replace("{schema}.", ""), rows)

    def _purge_tables(self, tables: Collection[str]) -> bool:
        return True  # by secure_delete, as they are removed

    def _purge_log(self) -> bool:
        """Empty the log into the file, whose removed rows are overwritten by zeros, and look at its length.

        A reader of an older state keeps the log, and the checkpoint says so in its row and raises nothing.
        """
        connection = self._connection
        self._take_turn()
        try:
            connection.execute(f"PRAGMA busy_timeout = {_PURGE_BUSY}")
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError:
            busy = 1
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * _BUSY)}")
            self._end_turn()
        log = self.path.with_name(f"{self.path.name}-wal")
        return busy == 0 and (not log.exists() or log.stat().st_size == 0)
