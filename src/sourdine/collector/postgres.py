"""Reports on a PostgreSQL server, to which several processes on several machines may write at once."""

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sourdine.accounting.ledger.address import Address
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
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.local.estimate import Counts
from sourdine.local.lines import Numbers
from sourdine.local.oracle import Bytes

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_TABLES = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.form (version integer NOT NULL);
INSERT INTO {schema}.form VALUES ({version});
CREATE TABLE {schema}.questions (
    number serial PRIMARY KEY,
    fingerprint text NOT NULL UNIQUE,
    version integer NOT NULL,
    content text NOT NULL,
    closed text NOT NULL DEFAULT '',
    sealed text
);
CREATE TABLE {schema}.submissions (key bytea PRIMARY KEY, body bytea NOT NULL, question integer NOT NULL);
CREATE TABLE {schema}.loose (
    number bigint PRIMARY KEY, question integer NOT NULL, period text NOT NULL, report bytea NOT NULL
);
CREATE TABLE {schema}.blocks (
    number bigint PRIMARY KEY,
    question integer NOT NULL,
    period text NOT NULL,
    reports integer NOT NULL,
    mixed boolean NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE {schema}.blocks ALTER content SET STORAGE EXTERNAL;
CREATE INDEX blocks_of ON {schema}.blocks (question, period, reports);
CREATE TABLE {schema}.events (
    question integer, kind text, count bigint NOT NULL, PRIMARY KEY (question, kind)
);
"""
_PURGE_LOCK = "2s"  # that the rewriting of a table waits for others, who then wait for it
_PURGED: dict[str, float] = {}  # when the log was last purged, by schema
_MOST_SEGMENTS = 8  # that are left behind in one try: at the least size of a log there are five
_REACH = {"application_name": "sourdine collector", "connect_timeout": "10", "keepalives_idle": "20"}


class PostgresStore(ReportStore):
    """A store in a schema of a database. Whoever lost the server connects again at the next transaction."""

    purge_pause = 30.0

    def __init__(self, address: str) -> None:
        super().__init__()
        try:
            self._address = Address.parse(address)
        except (InvalidParameter, LedgerError) as problem:
            raise StoreError(str(problem).replace("a ledger", "a store")) from None
        self._schema = f"sourdine_reports_{self._address.name}"
        self._live: Connection | None = None
        self._make()

    def __str__(self) -> str:
        return str(self._address)

    def _connection(self) -> "Connection":
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        if self._live is None or self._live.closed:
            known = conninfo_to_dict(self._address.reach)
            more = {key: text for key, text in _REACH.items() if key not in known}
            try:
                self._live = psycopg.connect(make_conninfo(self._address.reach, **more), autocommit=True)
            except psycopg.OperationalError:  # whose words may quote the password
                raise StoreError(
                    f"The server of the store {self._address} cannot be reached. Check the address, the user "
                    "and that it runs."
                ) from None
            try:
                self._check_promises(self._live)
            except BaseException:
                self.rollback()
                raise
        return self._live

    def _check_promises(self, connection: "Connection") -> None:
        """Refuse a server that may lose what it has called written, and let no role change that later."""
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
            if row is None or row[0] not in ("on", "local", "remote_apply", "remote_write"):
                raise StoreError(
                    f"The server of the store {self._address} has {name} off, so reports that it has "
                    f"confirmed may be lost in a crash. Set {name} to on, for the server and for this role."
                )
            if name == "synchronous_commit":
                connection.execute("SELECT set_config(%s, %s, false)", (name, row[0]))

    def _run(self, text: str, *values: object) -> "psycopg.Cursor[tuple[Any, ...]]":
        return self._connection().execute(text.replace("{schema}", self._schema), values or None, binary=True)

    def _make(self) -> None:
        """Make the tables if there are none."""
        import psycopg

        script = _TABLES.replace("{schema}", self._schema).replace("{version}", str(OLDEST))
        migration = MIGRATION.replace("{schema}", self._schema)
        try:
            with self._connection().transaction():
                self._run("SELECT pg_advisory_xact_lock(hashtext(%s))", self._schema)
                row = self._run("SELECT to_regnamespace(%s) IS NULL", self._schema).fetchone()
                if row is not None and row[0]:
                    self._connection().execute(script)
                row = self._run("SELECT version FROM {schema}.form").fetchone()
                check_version(0 if row is None else int(row[0]), str(self._address))
                if row is not None and row[0] < VERSION:
                    self._connection().execute(
                        migration.replace("{bytes}", "bytea").replace("{integer}", "bigint")
                    )
                    self._migrate()
                    self._run(f"UPDATE {{schema}}.form SET version = {VERSION}")
        except psycopg.Error as problem:
            raise self.trouble(problem) from None

    def trouble(self, problem: Exception) -> StoreError:
        """What went wrong, without a word of what was stored."""
        state = getattr(problem, "sqlstate", None) or type(problem).__name__
        return StoreError(
            f"The store {self._address} cannot be used ({state}). Check the server and the role."
        )

    def close(self) -> None:
        if self._live is not None:
            self._live.close()

    def questions(self) -> list[StoredQuestion]:
        rows = self._run("SELECT number, content, closed FROM {schema}.questions ORDER BY number")
        return [
            StoredQuestion(number, SignedAnnouncement.from_text(text), closed)
            for number, text, closed in rows
        ]

    def close_question(self, number: int, day: str) -> None:
        self._run("UPDATE {schema}.questions SET closed = %s WHERE number = %s AND closed = ''", day, number)

    def begin(self) -> None:
        self._run("BEGIN ISOLATION LEVEL READ COMMITTED")

    def begin_alone(self) -> None:
        self.begin()
        self._run("LOCK TABLE {schema}.blocks, {schema}.loose IN SHARE ROW EXCLUSIVE MODE")

    def commit(self) -> None:
        self._run("COMMIT")

    def rollback(self) -> None:
        """A connection that failed is let go: it is not known what became of the transaction."""
        if self._live is not None:
            self._live.close()
            self._live = None

    def closed(self) -> set[int]:
        return {row[0] for row in self._run("SELECT number FROM {schema}.questions WHERE closed <> ''")}

    def add_keys(self, submissions: Sequence[Submission]) -> dict[bytes, bytes]:
        """In the order of keys, so that two writers of the same ones never wait in a ring."""
        lines = sorted((each.key, each.check, each.question) for each in submissions)
        keys, checks, questions = (list(column) for column in zip(*lines, strict=True))
        rows = self._run(
            "INSERT INTO {schema}.submissions SELECT * FROM unnest(%s::bytea[], %s::bytea[], %s::integer[]) "
            "ON CONFLICT DO NOTHING RETURNING key",
            keys,
            checks,
            questions,
        )
        new = {bytes(row[0]) for row in rows}
        others = [key for key in keys if key not in new]
        if not others:
            return {}
        old = self._run("SELECT key, body FROM {schema}.submissions WHERE key = ANY(%s::bytea[])", others)
        return {bytes(key): bytes(check) for key, check in old}

    def has_keys(self, number: int) -> bool:
        rows = self._run("SELECT 1 FROM {schema}.submissions WHERE question = %s LIMIT 1", number)
        return rows.fetchone() is not None

    def add_loose(self, place: Place, numbers: Numbers, rows: Bytes) -> None:
        width, content = rows.shape[1], rows.tobytes()
        self._run(
            "INSERT INTO {schema}.loose SELECT number, %s, %s, report "
            "FROM unnest(%s::bigint[], %s::bytea[]) AS new (number, report)",
            *place,
            numbers.tolist(),
            [content[i * width : (i + 1) * width] for i in range(len(rows))],
        )

    def take_loose(self, place: Place, count: int | None = None) -> list[tuple[int, bytes]]:
        rows = self._run(
            "DELETE FROM {schema}.loose WHERE number IN (SELECT number FROM {schema}.loose "
            "WHERE question = %s AND period = %s LIMIT %s) RETURNING number, report",
            *place,
            count,
        )
        return [(number, bytes(report)) for number, report in rows]

    def may_pack(self) -> bool:
        # Without waiting: this transaction has rows in the table that mixing locks as a whole.
        return bool(self.run("SELECT pg_try_advisory_xact_lock(hashtext(?))", f"{self._schema} pack")[0][0])

    def count_loose(self, place: Place) -> int:
        row = self._run(
            "SELECT count(*) FROM {schema}.loose WHERE question = %s AND period = %s", *place
        ).fetchone()
        return 0 if row is None else int(row[0])

    def add_block(self, place: Place, reports: int, content: bytes, *, mixed: bool = False) -> None:
        number = int(random_numbers(1)[0])
        self._run(
            "INSERT INTO {schema}.blocks VALUES (%s, %s, %s, %s, %s, %s)",
            number,
            *place,
            reports,
            mixed,
            content,
        )

    def unmixed(self, place: Place) -> list[tuple[int, int]]:
        return self._run(
            "SELECT number, reports FROM {schema}.blocks WHERE question = %s AND period = %s AND NOT mixed "
            "ORDER BY number",
            *place,
        ).fetchall()

    def take_block(self, number: int) -> bytes:
        row = self._run("DELETE FROM {schema}.blocks WHERE number = %s RETURNING content", number).fetchone()
        assert row is not None
        return bytes(row[0])

    def add_events(self, events: Mapping[tuple[int, str], int]) -> None:
        lines = sorted(events.items())
        self._run(
            "INSERT INTO {schema}.events AS e SELECT * FROM unnest(%s::integer[], %s::text[], %s::bigint[]) "
            "ON CONFLICT (question, kind) DO UPDATE SET count = e.count + excluded.count",
            [number for (number, _), _ in lines],
            [kind for (_, kind), _ in lines],
            [count for _, count in lines],
        )

    def events(self) -> dict[tuple[int, str], int]:
        rows = self._run("SELECT question, kind, count FROM {schema}.events")
        return {(number, kind): count for number, kind, count in rows}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """All that is read meanwhile is of one moment, also within a transaction."""
        from psycopg.pq import TransactionStatus

        inner = self._connection().info.transaction_status is not TransactionStatus.IDLE
        if not inner:
            self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        if not inner:
            self._run("COMMIT")

    def snapshot(self, number: int, known: frozenset[int]) -> Snapshot:
        with self._reading():
            rows = self._run("SELECT number, period FROM {schema}.blocks WHERE question = %s", number)
            blocks: dict[int, str] = dict(rows)
            new: dict[int, bytes] = {}
            size = 0
            for block in blocks.keys() - known:
                if size > MOST_BYTES:
                    break
                row = self._run("SELECT content FROM {schema}.blocks WHERE number = %s", block).fetchone()
                assert row is not None
                new[block] = bytes(row[0])
                size += len(new[block])
            loose = self._run("SELECT period, report FROM {schema}.loose WHERE question = %s", number)
            listed = [(period, bytes(report)) for period, report in loose]
            return Snapshot(blocks, new, listed, self.sealed(number))

    def periods(self, number: int) -> list[str]:
        rows = self._run(
            "SELECT period FROM {schema}.blocks WHERE question = %s "
            "UNION SELECT period FROM {schema}.loose WHERE question = %s",
            number,
            number,
        )
        return sorted(row[0] for row in rows)

    def stream(self, number: int, period: str | None = None) -> Iterator[tuple[Numbers, Bytes]]:
        width = self._question(number).oracle.width
        where = "question = %s" + ("" if period is None else " AND period = %s")
        values = (number,) if period is None else (number, period)
        with self._reading():
            blocks = self._run(f"SELECT number FROM {{schema}}.blocks WHERE {where}", *values).fetchall()
            for (block,) in blocks:
                row = self._run("SELECT content FROM {schema}.blocks WHERE number = %s", block).fetchone()
                assert row is not None
                yield unpacked_block(bytes(row[0]), width)
            loose = self._run(
                f"SELECT number, report FROM {{schema}}.loose WHERE {where}", *values
            ).fetchall()
            yield loose_block([(number, bytes(report)) for number, report in loose], width)

    def sealed(self, number: int) -> dict[str, Counts]:
        row = self._run("SELECT sealed FROM {schema}.questions WHERE number = %s", number).fetchone()
        return sealed_counts(None if row is None else row[0])

    def forget(
        self, number: int, periods: Sequence[str], sealed: Mapping[str, Counts], *, keys: bool
    ) -> None:
        self._run(
            "UPDATE {schema}.questions SET sealed = %s WHERE number = %s",
            sealed_text(sealed),
            number,
        )
        for period in periods:
            self.drop(number, period)
        if keys:
            self.forget_submissions(number)

    def drop(self, number: int, period: str) -> None:
        self._loose.pop((number, period), None)
        for table in ("blocks", "loose"):
            self._run(f"DELETE FROM {{schema}}.{table} WHERE question = %s AND period = %s", number, period)
            self.leave(table)

    def run(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self._run(text.replace("%", "%%").replace("?", "%s") if values else text, *values)
        return cursor.fetchall() if cursor.description else []

    def run_many(self, text: str, rows: Sequence[tuple[object, ...]]) -> None:
        cursor = self._connection().cursor()
        cursor.executemany(text.replace("{schema}", self._schema).replace("?", "%s"), rows)

    def _purge_tables(self, tables: Collection[str]) -> bool:
        """Write tables anew without removed rows, of which a plain VACUUM leaves the bytes in their pages."""
        import psycopg

        try:
            if self._has_older_snapshots():
                return False
            for table in sorted(tables):
                self._rewrite(table)
            return True
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
            self.rollback()
            return False

    def _purge_log(self) -> bool:
        """Let the server drop the segments of the log that have removed rows, and look at what is left.

        It needs rights that an operator may give to the role (`docs/how_to/back_up_and_restore.md`), and
        takes a segment of 16 MB each time: not more often than every `purge_pause` seconds. Archives and
        replicas are out of reach.
        """
        import psycopg

        if time.monotonic() - _PURGED.get(self._schema, -math.inf) < self.purge_pause:
            return False
        _PURGED[self._schema] = time.monotonic()
        try:
            return self._drop_log()
        except psycopg.errors.InsufficientPrivilege:
            self.rollback()
            return False

    def _has_older_snapshots(self) -> bool:
        """Return whether somebody reads a state in which removed rows are still there, as far as is known.

        A session of another role may, if it is shown to members of `pg_read_all_stats` alone. A sender to a
        replica is in no database; its slot and a prepared transaction are in no session.
        """
        older = "::text <> pg_snapshot_xmax(pg_current_snapshot())::text"
        rows = self.run(
            "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL AND ("
            f"coalesce(datname, current_database()) = current_database() AND backend_xmin{older} "
            "OR datname = current_database() AND query = '<insufficient privilege>') "
            f"UNION ALL SELECT 1 FROM pg_replication_slots WHERE xmin{older} "
            "UNION ALL SELECT 1 FROM pg_prepared_xacts WHERE database = current_database() LIMIT 1"
        )
        return bool(rows)

    def _rewrite(self, table: str) -> None:
        with self._connection().transaction():
            self._run(f"SET LOCAL lock_timeout = '{_PURGE_LOCK}'")
            self._run(f"LOCK TABLE {{schema}}.{table} IN ACCESS EXCLUSIVE MODE")
            if not self.run(f"SELECT 1 FROM {{schema}}.{table} LIMIT 1"):
                self._run(f"TRUNCATE {{schema}}.{table}")  # at once, where VACUUM FULL copies
                return
        self._run(f"SET lock_timeout = '{_PURGE_LOCK}'")
        try:
            self._run(f"VACUUM FULL {{schema}}.{table}")
        finally:
            self._run("SET lock_timeout = 0")

    def _drop_log(self) -> bool:
        """Begin a new segment of the log and have the older ones removed; whether it is the only one."""
        if self.run("SELECT current_setting('wal_recycle')")[0][0] != "off":
            return False  # old segments get new names, and keep their content
        for _ in range(_MOST_SEGMENTS):
            self._run("SELECT pg_switch_wal()")
            self._run("CHECKPOINT")
            rows = self.run(
                "SELECT count(*) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' "
                "AND name <> pg_walfile_name(pg_current_wal_insert_lsn())"
            )
            if rows[0][0] == 0:
                return True
        return False
