"""A ledger's tables as PostgreSQL keeps them: their form, and what its server must promise.

Each ledger is a schema with the tables of the file: terms, lines and a mark. Lines are only ever added:
whoever may charge has the right to insert, and triggers refuse the rest to the owner too.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from sourdine.accounting.ledger.address import Address
from sourdine.accounting.ledger.chain import START, LedgerLine, Mark, fingerprint
from sourdine.accounting.ledger.problems import charged_meanwhile
from sourdine.accounting.ledger.server import problems
from sourdine.accounting.ledger.server.derivation import FUNCTIONS
from sourdine.core.errors import LedgerError

if TYPE_CHECKING:
    import psycopg

    from sourdine.accounting.ledger.server.session import Session

    Connection = Session
    Cursor = psycopg.Cursor[tuple[Any, ...]]

VERSION = 2
"""The newest form that is understood, in which the database derives every total.

Form 1 took totals as they were written; it is read, and must be brought up by its owner before a charge.
"""
_OLDEST = 130000  # the first PostgreSQL that is tried here is 13, as its server_version_num
_APPLICATION = 0x536F7264  # "Sord": the upper half of the number of a ledger's lock
LIVE, BACKUP = "ledger", "backup"
PATIENCE = 60.0  # seconds to wait for a standby
SHORT = 2.0  # seconds of the first wait, after which people are told what is waited for
_REACH = {
    "application_name": "sourdine",
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "40000",
}
"""What an address may say otherwise: a server that is gone is noticed within a minute."""
_TABLES = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.terms (
    content text NOT NULL,
    fingerprint text NOT NULL,
    version integer NOT NULL,
    kind text NOT NULL CHECK (kind IN ('ledger', 'backup')),
    move text NOT NULL
);
CREATE TABLE {schema}.lines (
    number bigint PRIMARY KEY,
    content text NOT NULL,
    total text NOT NULL,
    fingerprint text NOT NULL,
    key text UNIQUE,
    role name DEFAULT session_user
);
CREATE TABLE {schema}.mark (number bigint NOT NULL, fingerprint text NOT NULL) WITH (fillfactor = 10);

CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the % of a ledger never change', TG_TABLE_NAME; END $$;
CREATE FUNCTION {schema}.stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF ROW(NEW.content, NEW.fingerprint, NEW.version) IS DISTINCT FROM
       ROW(OLD.content, OLD.fingerprint, OLD.version) THEN
        RAISE EXCEPTION 'the terms of a ledger never change';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION {schema}.go_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.number <> OLD.number + 1 THEN RAISE EXCEPTION 'the mark goes on line by line'; END IF;
    RETURN NEW;
END $$;
"""
_TRIGGERS = """
CREATE TRIGGER terms_stay BEFORE UPDATE ON {schema}.terms
    FOR EACH ROW EXECUTE FUNCTION {schema}.stay();
CREATE TRIGGER terms_last BEFORE DELETE OR TRUNCATE ON {schema}.terms
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse();
CREATE TRIGGER lines_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.lines
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse();
CREATE TRIGGER lines_marked AFTER INSERT ON {schema}.lines
    FOR EACH ROW EXECUTE FUNCTION {schema}.derive();
CREATE TRIGGER mark_stays BEFORE UPDATE ON {schema}.mark
    FOR EACH ROW EXECUTE FUNCTION {schema}.go_on();
CREATE TRIGGER mark_last BEFORE INSERT OR DELETE OR TRUNCATE ON {schema}.mark
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse();
"""
_CHECKPOINTS = """
CREATE TABLE {schema}.checkpoints (number bigint PRIMARY KEY, fingerprint text NOT NULL);
CREATE TRIGGER checkpoints_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.checkpoints
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse();
"""
"""Lines up to which the owner has priced every line again; a process that begins goes on from the newest."""
_UPGRADE = """
DROP TRIGGER lines_marked ON {schema}.lines;
DROP FUNCTION {schema}.move_mark();
CREATE TRIGGER lines_marked AFTER INSERT ON {schema}.lines
    FOR EACH ROW EXECUTE FUNCTION {schema}.derive();
DROP TRIGGER terms_stay ON {schema}.terms;
UPDATE {schema}.terms SET version = 2;
CREATE TRIGGER terms_stay BEFORE UPDATE ON {schema}.terms
    FOR EACH ROW EXECUTE FUNCTION {schema}.stay();
DO $$ DECLARE role text; BEGIN
    FOR role IN SELECT DISTINCT grantee::regrole::text FROM pg_class, aclexplode(relacl)
        WHERE oid = '{schema}.lines'::regclass AND privilege_type = 'SELECT' AND grantee <> 0
    LOOP EXECUTE format('GRANT SELECT ON {schema}.checkpoints TO %s', role); END LOOP;
END $$;
"""
"""From form 1, which took each total as it was written. Who could read its lines can read its checkpoints."""
_READ = """
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON {schema}.terms, {schema}.lines, {schema}.mark, {schema}.checkpoints TO {role};
"""
_CHARGE = "GRANT INSERT (number, content, total, fingerprint, key) ON {schema}.lines TO {role};"


class Promises(NamedTuple):
    """What the server says of itself within a transaction."""

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    is_standby: bool

    def check(self, address: Address) -> None:
        """Refuse a server that may lose what it has called written."""
        for name, value in self._asdict().items():
            if name != "is_standby" and value not in ("on", "remote_apply"):
                raise LedgerError(
                    f"The server of the ledger {address} has {name} = {value}, so a charge that it has "
                    f"confirmed may be lost in a crash. Nothing was spent. Set {name} to on, for the server "
                    "and for this role."
                )


PROMISES = """
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    pg_is_in_recovery()
"""


def script(address: Address, text: str, **names: str) -> str:
    """A statement about a ledger; a schema's name is of letters and digits, and needs no quotes."""
    return text.format(schema=address.schema, **names)


def connect(address: Address) -> "Connection":
    """A connection that commits each statement by itself, unless told otherwise."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from sourdine.accounting.ledger.server import session

    known = conninfo_to_dict(address.reach)
    reach = make_conninfo(address.reach, **{key: text for key, text in _REACH.items() if key not in known})
    try:
        connection = session.Session.connect(reach, autocommit=True, cursor_factory=psycopg.ClientCursor)
        connection.announce = partial(problems.announce_silence, address)
        return connection
    except psycopg.OperationalError as problem:
        raise problems.unreachable(address, problem, str(known.get("password") or "")) from None


WAIT_FOR_DISK = """
SELECT pg_logical_emit_message(true, 'sourdine', ''), set_config('synchronous_commit', 'on', true),
    set_config('client_min_messages', 'warning', true)
"""
"""Something behind all that came before in the server's log; its commit waits for the disk and standbys.

A role may be set to get no warnings, and then would not learn that the wait was canceled.
"""


def check_confirmed(connection: "Connection", address: Address) -> None:
    """Refuse a wait for the disk and standbys that the server has ended with a warning."""
    if connection.warnings:
        raise problems.Unconfirmed(address, "; ".join(connection.warnings))


def confirm(connection: "Connection", address: Address) -> None:
    """Wait until all that was committed so far is on the disk and on synchronous standbys, or raise."""
    until, limit = monotonic() + PATIENCE, SHORT
    while True:
        connection.start(limit)
        connection.execute(WAIT_FOR_DISK)
        try:
            check_confirmed(connection, address)
            return
        except problems.Unconfirmed as problem:
            if monotonic() > until:
                raise
            problem.announce()
        limit *= 2


def in_transaction(connection: "Connection") -> bool:
    """Whether a connection is within a transaction, or in an unknown state."""
    from psycopg.pq import TransactionStatus

    return connection.info.transaction_status is not TransactionStatus.IDLE


def lock_number(connection: "Connection", address: Address) -> int:
    """The number of the lock by which charges take turns: one for each ledger of a database."""
    row = connection.execute("SELECT to_regclass(%s)::oid::bigint", (f"{address.schema}.lines",)).fetchone()
    if row is None or row[0] is None:
        raise problems.missing(address)
    return (_APPLICATION << 32) | int(row[0])


def check_form(connection: "Connection", address: Address) -> None:
    """Refuse a server that is too old, and tables that a crash would empty."""
    if connection.info.server_version < _OLDEST:
        raise LedgerError(
            f"The server of the ledger {address} is older than PostgreSQL {_OLDEST // 10000}. "
            "Nothing was spent. Use a newer one."
        )
    row = connection.execute(
        "SELECT bool_and(relpersistence = 'p') FROM pg_class "
        "WHERE relnamespace = to_regnamespace(%s) AND relname IN ('terms', 'lines', 'mark')",
        (address.schema,),
    ).fetchone()
    if row is None or row[0] is not True:
        raise LedgerError(
            f"The tables of the ledger {address} are unlogged, so a crash would empty them. "
            "Nothing was spent. Ask the owner to alter them: SET LOGGED."
        )


def create(
    address: Address, terms: str, lines: Iterable[LedgerLine] = (), *, kind: str = LIVE, move: str = ""
) -> None:
    """A new ledger with its terms; an existing one is never touched, and a failure leaves none."""
    import psycopg

    with connect(address) as connection:
        try:
            with connection.transaction():
                promises(connection, address)
                connection.execute("SELECT set_config('synchronous_commit', 'off', true)")
                connection.execute(script(address, _TABLES + FUNCTIONS + _CHECKPOINTS))
                _fill(connection, address, (terms, fingerprint("", terms), VERSION, kind, move), lines)
                connection.execute(script(address, _TRIGGERS))
            confirm(connection, address)
        except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):  # of somebody just now
            raise LedgerError(
                f"There is a ledger at {address} already. A ledger is never overwritten, since its past "
                "spends still count. Open it, or choose another name after '#'."
            ) from None
        except psycopg.errors.InsufficientPrivilege:
            raise problems.no_schema(address) from None
        except psycopg.Error as problem:
            raise problems.explain("write", address, problem) from problem


def remove_copy(address: Address, move: str) -> None:
    """Remove the backup that a move has made, and that never became a ledger."""
    with connect(address) as connection, connection.transaction():
        row = connection.execute(script(address, "SELECT kind, move FROM {schema}.terms")).fetchone()
        if row == (BACKUP, move):
            connection.execute(script(address, "DROP SCHEMA {schema} CASCADE"))


def _fill(
    connection: "Connection", address: Address, terms: Sequence[object], lines: Iterable[LedgerLine]
) -> None:
    connection.execute(script(address, "INSERT INTO {schema}.terms VALUES (%s, %s, %s, %s, %s)"), terms)
    number, mark = START
    with connection.cursor() as cursor:
        target = "COPY {schema}.lines (number, content, total, fingerprint) FROM STDIN"
        with cursor.copy(script(address, target)) as rows:
            for line in lines:
                rows.write_row(line)
                number, mark = line.number, line.fingerprint
    connection.execute(script(address, "INSERT INTO {schema}.mark VALUES (%s, %s)"), (number, mark))


def promises(connection: "Connection", address: Address) -> Promises:
    """What the server promises, if that is enough."""
    row = connection.execute(f"SELECT {PROMISES}").fetchone()
    assert row is not None
    answer = Promises._make(row)
    answer.check(address)
    return answer


def grant(address: Address, role: str, *, charge: bool) -> None:
    """Let a role read a ledger, and perhaps charge it; never more."""
    import psycopg
    from psycopg import sql

    with connect(address) as connection:
        quoted = sql.Identifier(role).as_string(connection)
        try:
            with connection.transaction():
                connection.execute(script(address, _READ + (_CHARGE if charge else ""), role=quoted))
        except psycopg.Error as problem:
            raise problems.explain("write", address, problem) from problem


def upgrade(address: Address, verified: Mark) -> None:
    """Bring a ledger of form 1 to the newest form, if it still ends where every line was verified.

    Nobody can charge meanwhile, and what was verified is its first checkpoint.
    """
    import psycopg

    with connect(address) as connection:
        try:
            with connection.transaction():
                promises(connection, address)
                connection.execute("SELECT set_config('lock_timeout', '10s', true)")
                connection.execute(script(address, "LOCK TABLE {schema}.lines IN SHARE ROW EXCLUSIVE MODE"))
                row = connection.execute(
                    script(
                        address, "SELECT version, number, mark.fingerprint FROM {schema}.terms, {schema}.mark"
                    )
                ).fetchone()
                if row is None or row[1:] != verified:
                    raise charged_meanwhile(address)
                if row[0] >= VERSION:
                    return
                connection.execute("SELECT set_config('synchronous_commit', 'off', true)")
                connection.execute(script(address, FUNCTIONS + _CHECKPOINTS + _UPGRADE))
                if verified != START:
                    connection.execute(script(address, ADD_CHECKPOINT), verified)
            confirm(connection, address)
        except psycopg.Error as problem:
            raise problems.explain("write", address, problem) from problem


ADD_CHECKPOINT = """
SELECT set_config('synchronous_commit', 'off', true);
INSERT INTO {schema}.checkpoints VALUES (%s, %s) ON CONFLICT DO NOTHING
"""
"""Nobody waits for it: a crash that takes it leaves the one before."""
