"""A ledger on a PostgreSQL server, shared by many hosts.

Charges take turns by a lock of the server. Within its turn a charge reads the newest line, adds one and
commits; the receipt waits until the server has that on its disk. Turns do not wait for the disk: a later
commit that does is behind all earlier lines in the server's log, so many charges share one wait, and none is
acknowledged before its own is over. A lost connection is resolved by asking for the key of the charge.
"""

import os
import secrets
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sourdine.accounting.ledger import problems
from sourdine.accounting.ledger import store as base
from sourdine.accounting.ledger.address import Address
from sourdine.accounting.ledger.chain import (
    START,
    Build,
    LedgerLine,
    Mark,
    Row,
    follows,
    mark_of,
    next_line,
    sound,
)
from sourdine.accounting.ledger.gate import GATE
from sourdine.accounting.ledger.server import problems as trouble
from sourdine.accounting.ledger.server import tables
from sourdine.accounting.ledger.store import Store
from sourdine.core.errors import LedgerError, SourdineError

if TYPE_CHECKING:
    from sourdine.accounting.ledger.server.tables import Connection, Cursor

T = TypeVar("T")
LOCK_WAIT = "2s"  # in which no fork may pass; then the turn is asked for again
_IDLE = "10s"  # after which the server ends a turn whose holder is gone
_NEWEST = """
SELECT * FROM (
    SELECT number, content, total, fingerprint FROM {schema}.lines
    WHERE number >= least({since}, (SELECT max(number) - 1 FROM {schema}.lines))
    ORDER BY number DESC LIMIT {most}
) AS newest UNION ALL SELECT number, '', '', fingerprint FROM {schema}.mark
"""
"""Lines since the one that was verified last, at least two and no more than a few, and the mark."""
_MOST = 50  # lines that are read with the turn; where more are new, the rest is read apart
_OFTEN = 1000  # lines from one checkpoint to the next
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Whatever a role is set to: at other levels, who waits for a turn would see what was there before it."""
_TURN = f"""
{_BEGIN};
SELECT {tables.PROMISES},
    set_config('lock_timeout', '{{wait}}', true),
    set_config('idle_in_transaction_session_timeout', '{_IDLE}', true),
    set_config('synchronous_commit', 'off', true);
SELECT pg_advisory_xact_lock({{lock}});
{_NEWEST}
"""
_WAIT_FOR_OTHERS = """
SELECT CASE
    WHEN pg_is_in_recovery() THEN NULL
    WHEN current_setting('synchronous_standby_names') = ''
        AND pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() THEN NULL
    ELSE pg_logical_emit_message(true, 'sourdine', '')
END, set_config('synchronous_commit', 'on', true), set_config('client_min_messages', 'warning', true)
"""
"""The same for what was only read, if it may not be on the disk yet: what was seen must stay."""
_WRITE_AFTER = f"""
{_BEGIN};
SELECT 1 / CASE WHEN ({tables.PROMISES}) IN (
    ('on', 'on', 'on', false), ('on', 'on', 'remote_apply', false)) THEN 1 ELSE 0 END,
    set_config('lock_timeout', '{{wait}}', true),
    set_config('synchronous_commit', 'off', true);
SELECT pg_advisory_xact_lock({{lock}});
SELECT 1 / CASE WHEN (SELECT count(*) = 1 AND bool_and((number, fingerprint) = (%s, %s)) FROM {{schema}}.mark)
    AND (SELECT (content, total, fingerprint) = (%s, %s, %s) FROM {{schema}}.lines WHERE number = %s)
    AND coalesce((SELECT fingerprint FROM {{schema}}.lines WHERE number = %s), '') = %s
    AND NOT EXISTS (SELECT 1 FROM {{schema}}.lines WHERE number = %s) THEN 1 ELSE 0 END;
INSERT INTO {{schema}}.lines (number, content, total, fingerprint, key) VALUES (%s, %s, %s, %s, %s);
COMMIT;
{tables.WAIT_FOR_DISK}
"""
"""A turn and a line in one message, if the newest line is the one that was built on: else it divides by 0."""
_WRITE = f"""
INSERT INTO {{schema}}.lines (number, content, total, fingerprint, key) VALUES (%s, %s, %s, %s, %s);
COMMIT;
{tables.WAIT_FOR_DISK}
"""
_BETWEEN = """
SELECT number, content, total, fingerprint FROM {schema}.lines WHERE number > %s AND number <= %s
ORDER BY number LIMIT %s
"""
_TERMS = """
SELECT fingerprint, version, kind, to_regclass('{schema}.checkpoints') IS NOT NULL
    AND has_table_privilege('{schema}.lines', 'DELETE') FROM {schema}.terms
"""
"""Only the owner, who may do anything, makes checkpoints."""
_CHECKPOINT = """
SELECT number, content, total, fingerprint FROM {schema}.lines JOIN {schema}.checkpoints
    USING (number, fingerprint) ORDER BY number DESC LIMIT 1
"""
_MARK = "SELECT number, fingerprint FROM {schema}.mark"
_HOLDERS = """
SELECT DISTINCT rolname::text, pid FROM pg_locks JOIN pg_stat_activity USING (pid)
    JOIN pg_roles ON pg_roles.oid = usesysid
WHERE granted AND pid <> pg_backend_pid()
    AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32) + objid::bigint = {lock}
        OR locktype = 'relation' AND relation = to_regclass('{schema}.lines') AND mode NOT IN (
            'AccessShareLock', 'RowShareLock'))
"""
"""Who has the lock of the turns, or a line that is not committed."""
_MOVE = "UPDATE {schema}.terms SET kind = %s, move = %s WHERE kind = %s"
_BY_KEY = "SELECT number, content, total, fingerprint FROM {schema}.lines WHERE key = %s"


@dataclass
class _Charge:
    """One charge, however often it is tried: its key, and whether a try may have been written."""

    key: str
    is_doubtful: bool = False


class ServerStore(Store["Connection"]):
    """The tables behind a ledger."""

    longest_pause: ClassVar[float] = 0.25
    quiet: ClassVar[float] = tables.SHORT
    path: Address

    def __init__(self, path: Address) -> None:
        import psycopg

        super().__init__(path, str(path), threading.RLock())
        self.failures = (psycopg.Error, trouble.Unreachable, trouble.Unconfirmed)
        self._lock = 0
        self._was_reached = False
        self._own: LedgerLine | None = None  # the line that was written here last
        self._is_alone = False  # whether it was still the newest, the last time
        self._doubts: dict[str, list[str]] = {}
        """By the digest of what was asked for, keys of charges of which nothing is known."""
        self._doubter = os.getpid()
        self._version = tables.VERSION
        self._makes_checkpoints = False
        self._unmarked = 0  # lines verified since the newest checkpoint
        self._limit = tables.SHORT  # seconds of the next wait for a standby

    @classmethod
    def create(cls, path: Address, terms: str) -> "ServerStore":
        """A new ledger with its terms; an existing one is never touched."""
        tables.create(path, terms)
        return cls(path)

    def append(self, build: Build, digest: str = "") -> LedgerLine:
        """One more line, on the server's disk when this returns.

        Its key is drawn here and holds the digest. If the server is lost before it has answered, the next
        try, or the next charge of the same digest, takes the line that has the key.
        """
        if self._doubter != os.getpid():  # what a parent asks for is not its child's too
            self._doubts, self._doubter = {}, os.getpid()
        doubts = self._doubts.setdefault(digest, [])
        charge = (
            _Charge(doubts.pop(), True) if doubts else _Charge(f"{secrets.token_hex(16)}:{digest}", False)
        )
        try:
            return self._patiently("write", lambda connection: self._try(connection, build, charge))
        except trouble.Recorded:
            raise
        except trouble.Unconfirmed as problem:
            raise trouble.unreplicated(self.path) from problem
        except LedgerError as problem:
            if charge.is_doubtful:
                raise trouble.unknown(self.path) from problem
            raise
        finally:
            if charge.is_doubtful:
                doubts.append(charge.key)

    def _append(self, connection: "Connection", build: Build, digest: str) -> LedgerLine:
        raise NotImplementedError  # a charge keeps its key over several tries

    def _try(self, connection: "Connection", build: Build, charge: _Charge) -> LedgerLine:
        if self.is_backup:
            raise problems.backup(self.path)
        if self._version < tables.VERSION:
            raise trouble.old_form(self.path)
        if self._key not in base._VERIFIED:
            self._catch_up(connection)  # before the turn, since it may take a while
        if not charge.is_doubtful and self._is_alone:
            line = self._write_after(connection, build, charge)
            if line is not None:
                return line
        last = self._fitting_end(connection, self._take_turn)
        self._is_alone = last is not None and self._checked is not None and last == self._own
        if charge.is_doubtful:  # whoever tried before had the turn that is ours now, so that try is over
            rows = self._rows_of(connection, _BY_KEY, charge.key)
            if rows:
                self._execute(connection, f"COMMIT; {tables.WAIT_FOR_DISK}")
                tables.check_confirmed(connection, self.path)
                return self._acknowledge(connection, LedgerLine._make(rows[0]), charge)
            charge.is_doubtful = False
        content, total = build(last)
        line = next_line(mark_of(last), content, total)
        charge.is_doubtful = True
        try:
            self._execute(connection, _WRITE, *line, charge.key)
            tables.check_confirmed(connection, self.path)
        except self.failures as problem:
            if not trouble.is_lost(problem):
                self._check_unwritten(connection, line, problem)
                charge.is_doubtful = False  # it was refused, and will be rolled back
            raise
        self._checked, self._own = (line, last.fingerprint if last else ""), line
        return self._acknowledge(connection, line, charge)

    def _write_after(self, connection: "Connection", build: Build, charge: _Charge) -> LedgerLine | None:
        """A line after the one that was written here last, without asking for it first; None if it is not."""
        assert self._checked is not None
        last, before = self._checked
        if last != self._own or self._known_mark() != mark_of(last):
            return None
        try:
            content, total = build(last)
        except SourdineError:
            return None  # as things stood then: they are looked at before it is told
        line = next_line(mark_of(last), content, total)
        charge.is_doubtful = True
        try:
            number, text, sum_before, mark = last
            there = (number, mark, text, sum_before, mark, number, number - 1, before, number + 1)
            self._execute(connection, _WRITE_AFTER, *there, *line, charge.key)
            tables.check_confirmed(connection, self.path)
        except self.failures as problem:
            if trouble.is_lost(problem):
                raise
            self._check_unwritten(connection, line, problem)
            charge.is_doubtful = self._is_alone = False
            if getattr(problem, "sqlstate", None) != trouble.DIVISION:
                raise
            self._execute(connection, "ROLLBACK")
            return None
        self._checked, self._own = (line, last.fingerprint), line
        return self._acknowledge(connection, line, charge)

    def _check_unwritten(self, connection: "Connection", line: LedgerLine, problem: Exception) -> None:
        """Refuse to go on from a failure after the commit: the line is there, and its wait has ended."""
        if isinstance(problem, trouble.Unconfirmed):
            raise problem
        if tables.in_transaction(connection):
            return
        if getattr(problem, "sqlstate", None) == trouble.CANCELED:
            raise trouble.Unconfirmed(self.path, "the wait was canceled") from problem
        raise trouble.recorded(self.path, line.number, problem) from problem

    def _acknowledge(self, connection: "Connection", line: LedgerLine, charge: _Charge) -> LedgerLine:
        charge.is_doubtful = False
        self._remember(line)
        if line == self._own:  # which follows what was verified, and was priced here
            base._VERIFIED[self._key] = line
            self._make_checkpoint(connection, mark_of(line), 1)
        return line

    # what others have written, priced again

    @property
    def _key(self) -> tuple[Hashable, str]:
        return self._place, self._terms

    def _verify_since(self, connection: "Connection", rows: list[Row]) -> None:
        if self.is_backup or not rows or self._version < tables.VERSION:
            return
        verified = self._verified(connection, rows)
        first = verified.number if verified else 0
        pending = [LedgerLine._make(row) for row in reversed(rows) if row[0] > first]
        if pending and pending[0].number > first + 1:
            verified = self._verify_between(connection, verified, pending[0].number - 1)
        self._verify(connection, verified, pending)

    def _verified(self, connection: "Connection", rows: list[Row]) -> LedgerLine | None:
        """The line that was verified last, if it is still there; else that of the newest checkpoint.

        A line that a crash took back may have been verified before: nobody was told that it is there.
        """
        line = base._VERIFIED.get(self._key)
        if line is not None:
            same = [row for row in rows if row[0] == line.number] or self._between(
                connection, line.number - 1, line.number, 1
            )
            if same == [tuple(line)]:
                return line
            del base._VERIFIED[self._key]
        found = self._rows_of(connection, _CHECKPOINT)
        if not found:
            return None
        line = LedgerLine._make(found[0])
        before = self._between(connection, line.number - 2, line.number - 1, 1)
        if not sound(found[0]) or not follows(line, Mark(before[0][0], before[0][3]) if before else START):
            raise problems.damaged(self.path)
        return line

    def _catch_up(self, connection: "Connection") -> None:
        """Verify what is there now, but what others add meanwhile."""
        if self._version < tables.VERSION:
            return
        mark = self._execute(connection, _MARK).fetchall()
        if mark:
            self._verify_between(connection, self._verified(connection, []), mark[0][0])

    def _verify_between(
        self, connection: "Connection", verified: LedgerLine | None, last: int
    ) -> LedgerLine | None:
        while (first := verified.number if verified else 0) < last:
            rows = self._between(connection, first, last, _OFTEN)
            if not rows:
                raise problems.damaged(self.path)
            verified = self._verify(connection, verified, list(map(LedgerLine._make, rows)))
        return verified

    def _verify(
        self, connection: "Connection", before: LedgerLine | None, lines: list[LedgerLine]
    ) -> LedgerLine | None:
        """Verify lines, and keep how far this came."""
        mark = mark_of(before)
        for line in lines:
            if not sound(line) or not follows(line, mark):
                raise problems.damaged(self.path)
            mark = mark_of(line)
        self.verify(before, lines)
        verified = lines[-1] if lines else before
        if verified is not None:
            base._VERIFIED[self._key] = verified
        self._make_checkpoint(connection, mark, len(lines))
        return verified

    def _make_checkpoint(self, connection: "Connection", mark: Mark, added: int) -> None:
        """Let others go on from here, if this is the owner and the newest checkpoint is far behind.

        If it fails, the next one is made: what was charged before is paid all the same.
        """
        self._unmarked += added
        if self._makes_checkpoints and self._unmarked >= _OFTEN and not tables.in_transaction(connection):
            with suppress(*self.failures):
                self._execute(connection, tables.ADD_CHECKPOINT, *mark)
                self._unmarked = 0

    def _take_turn(self, connection: "Connection") -> tuple[list[Row], Mark | None]:
        """Have the ledger for oneself until the transaction ends; what the server promises is checked."""
        cursor = self._execute(connection, _TURN)
        cursor.nextset()
        row = cursor.fetchone()
        assert row is not None
        promises = tables.Promises._make(row[: len(tables.Promises._fields)])
        promises.check(self.path)
        if promises.is_standby:
            raise trouble.standby(self.path)
        cursor.nextset()
        cursor.nextset()
        return _parted(cursor.fetchall())

    def _end(self, connection: "Connection") -> tuple[list[Row], Mark | None]:
        cursor = self._execute(connection, f"{_NEWEST}; {_WAIT_FOR_OTHERS}")
        tables.check_confirmed(connection, self.path)
        return _parted(cursor.fetchall())

    def _between(self, connection: "Connection", first: int, last: int, most: int) -> list[Row]:
        return self._rows_of(connection, _BETWEEN, first, last, most)

    def _read_terms(self, connection: "Connection") -> list[Row]:
        return self._rows_of(connection, "SELECT 1, content, '', fingerprint FROM {schema}.terms")

    def _rows_of(self, connection: "Connection", text: str, *values: object) -> list[Row]:
        rows: list[Row] = self._execute(connection, text, *values).fetchall()
        return rows

    def _execute(self, connection: "Connection", text: str, *values: object) -> "Cursor":
        connection.start(self._limit if "pg_logical_emit_message" in text else None)
        return connection.execute(tables.script(self.path, text, **self._names()), values or None)

    def _names(self) -> dict[str, str]:
        """What a statement is filled in with: among others, since which line it is to read."""
        verified = base._VERIFIED.get(self._key)
        since = verified.number - 1 if verified else 0
        return {"wait": LOCK_WAIT, "lock": str(self._lock), "since": str(since), "most": str(_MOST)}

    def _retire(self, connection: "Connection", end: Mark, move: str) -> None:
        if self.is_backup or mark_of(self._fitting_end(connection, self._take_turn)) != end:
            raise problems.charged_meanwhile(self.path)
        if self._execute(connection, _MOVE, tables.BACKUP, move, tables.LIVE).rowcount != 1:
            raise problems.charged_meanwhile(self.path)
        self._execute(connection, f"COMMIT; {tables.WAIT_FOR_DISK}")
        tables.check_confirmed(connection, self.path)

    def _activate(self, connection: "Connection", move: str) -> None:
        self._take_turn(connection)
        if self._read_move(connection) != move:
            raise problems.damaged(self.path)
        self._execute(connection, _MOVE, tables.LIVE, "", tables.BACKUP)
        self._execute(connection, f"COMMIT; {tables.WAIT_FOR_DISK}")
        tables.check_confirmed(connection, self.path)

    def _read_move(self, connection: "Connection") -> str:
        cursor = self._execute(connection, f"SELECT move FROM {{schema}}.terms; {_WAIT_FOR_OTHERS}")
        tables.check_confirmed(connection, self.path)
        return str(cursor.fetchall()[0][0])

    def _patiently(self, act: str, work: "Callable[[Connection], T]") -> T:
        self._limit = self.quiet
        return super()._patiently(act, work)

    def _passes(self, problem: Exception) -> bool:
        if trouble.is_lost(problem):
            self.let_go()
            return self._was_reached  # a wrong address is told at once
        if isinstance(problem, trouble.Unconfirmed):
            self.let_go()  # what this was, a ledger or a backup, may have been committed all the same
            self._limit *= 2  # a standby that is only slow comes up with a longer wait
        elif self._was_cut_short(problem):
            self._limit *= 2
            return True
        return trouble.is_passing(problem)

    def _was_cut_short(self, problem: Exception) -> bool:
        """Whether the session itself has canceled a statement that took long, and not somebody else."""
        canceled = getattr(problem, "sqlstate", None) == trouble.CANCELED
        return canceled and self._connection is not None and self._connection.was_canceled

    def _announce(self, problem: Exception) -> None:
        if isinstance(problem, trouble.Unconfirmed):
            problem.announce()
        elif trouble.is_lost(problem):
            trouble.announce_silence(self.path)
        else:
            self._find_holders().announce()

    def _find_holders(self) -> trouble.Held:
        """Who has what was waited for: any role that may charge can keep it, by SQL of its own."""
        connection = self._connection
        if connection is None:
            return trouble.Held(self.path, ())
        try:
            self._execute(connection, "ROLLBACK")
            return trouble.Held(self.path, self._execute(connection, _HOLDERS).fetchall())
        except self.failures:
            return trouble.Held(self.path, ())

    def _explain(self, act: str, problem: Exception) -> LedgerError:
        if getattr(problem, "sqlstate", None) == trouble.LOCKED or self._was_cut_short(problem):
            return self._find_holders()
        return trouble.explain(act, self.path, problem)

    def let_go(self) -> None:
        GATE.holders.discard(self)
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _settle(self) -> None:
        """Leave no transaction open: the server ends one whose connection is closed."""
        connection = self._connection
        if connection is not None and (connection.was_canceled or tables.in_transaction(connection)):
            self.let_go()

    def _connect(self) -> "Connection":
        if self._connection is None:
            self._connection = self._open()
            GATE.holders.add(self)
        return self._connection

    def _open(self) -> "Connection":
        connection = tables.connect(self.path)
        self._was_reached = True
        try:
            self._lock = tables.lock_number(connection, self.path)
            tables.check_form(connection, self.path)
            tables.promises(connection, self.path)
            rows = self._execute(connection, _TERMS).fetchall()  # which never change: nothing to wait for
            if len(rows) != 1:
                raise problems.damaged(self.path)
            self._terms, self._version, kind, self._makes_checkpoints = rows[0]
            if self._version > tables.VERSION:
                raise problems.newer(self.path, self._version)
        except BaseException:
            connection.close()
            raise
        self.is_backup = kind != tables.LIVE
        return connection


def _parted(rows: "list[tuple[Any, ...]]") -> tuple[list[Row], Mark | None]:
    """Lines, the newest first, and the mark."""
    *lines, mark = rows or [()]
    return lines, Mark(mark[0], mark[3]) if mark else Mark(-1, "")
