"""Ledgers on a server as version 0.2.0 made them: read as they are, and brought up once by their owner."""

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

psycopg = pytest.importorskip("psycopg")

from benchmarks.servers import Server  # noqa: E402
from sourdine.accounting.ledger import Ledger  # noqa: E402
from sourdine.accounting.ledger.address import Address  # noqa: E402
from sourdine.accounting.ledger.chain import LedgerLine, mark_of, next_line  # noqa: E402
from sourdine.accounting.ledger.server import tables  # noqa: E402
from sourdine.cli import app  # noqa: E402
from sourdine.core.errors import InvalidParameter, LedgerError  # noqa: E402
from tests.accounting.ledger.files import forget  # noqa: E402
from tests.campaigns.ledger.crash import one_spend  # noqa: E402

SPEND = one_spend()
_BACK = """
DROP TRIGGER lines_marked ON {0}.lines;
DROP TABLE {0}.checkpoints;
DROP FUNCTION {0}.derive, {0}.allowances_of, {0}.allowances_after, {0}.parsed, {0}.spend, {0}.refuse_line,
    {0}.is_punctual, {0}.stretch, {0}.plus, {0}.less, {0}.fraction;
CREATE FUNCTION {0}.move_mark() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM {0}.terms WHERE kind = 'ledger') THEN
        RAISE EXCEPTION 'a backup takes no lines';
    END IF;
    UPDATE {0}.mark SET number = NEW.number, fingerprint = NEW.fingerprint WHERE number = NEW.number - 1;
    IF NOT FOUND THEN RAISE EXCEPTION 'lines follow one another'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER lines_marked AFTER INSERT ON {0}.lines FOR EACH ROW EXECUTE FUNCTION {0}.move_mark();
SET session_replication_role = replica;
UPDATE {0}.terms SET version = 1;
"""
"""From form 2 back to the tables of version 0.2.0."""


@pytest.fixture
def address(server: Server) -> Iterator[str]:
    """A ledger of form 1 with three lines, that a role may charge and another may read."""
    for role in ("reader", "writer"):
        server.execute(f"DROP ROLE IF EXISTS {role}", f"CREATE ROLE {role} LOGIN")
    address = server.new()
    with Ledger.create(address, epsilon=1) as ledger:
        for number in range(3):
            ledger.charge(SPEND, purpose=f"p{number}")
    server.execute(_BACK.format(schema(address)))
    for role, right in (("reader", ""), ("writer", ", INSERT (number, content, total, fingerprint, key)")):
        server.execute(
            f"GRANT USAGE ON SCHEMA {schema(address)} TO {role}",
            f"GRANT SELECT ON {schema(address)}.terms, {schema(address)}.mark TO {role}",
            f"GRANT SELECT{right} ON {schema(address)}.lines TO {role}",
        )
    forget()
    yield address
    server.execute("DROP OWNED BY reader, writer", "DROP ROLE reader, writer")


def schema(address: str) -> str:
    return Address.parse(address).schema


def test_a_ledger_of_form_1_is_read_and_not_charged_before_it_is_brought_up(address: str) -> None:
    with Ledger.open(address) as ledger:
        assert (ledger.status().blocks, len(ledger.history())) == (3, 3)
        with pytest.raises(LedgerError, match=r"of form 1.*Nothing was spent.*upgrade"):
            ledger.charge(SPEND, purpose="p")
        marks = [entry.fingerprint for entry in ledger.history()]
        ledger.upgrade()
        ledger.upgrade()  # which changes nothing
        assert [entry.fingerprint for entry in ledger.history()] == marks
        assert ledger.charge(SPEND, purpose="p").number == 4


def test_roles_keep_their_rights_and_totals_are_derived_from_then_on(server: Server, address: str) -> None:
    done = CliRunner().invoke(app, ["ledger", "upgrade", address])
    assert (done.exit_code, "3 charges replayed" in done.stdout) == (0, True)
    assert server.execute(f"SELECT number FROM {schema(address)}.checkpoints") == [(3,)]
    writer = address.replace("postgres:@", "writer@")
    with Ledger.open(writer) as ledger, Ledger.open(address.replace("postgres:@", "reader@")) as reader:
        assert ledger.charge(SPEND, purpose="p").number == 4
        assert len(reader.history()) == 4
        (last,) = server.execute(
            f"SELECT number, content, total, fingerprint FROM {schema(address)}.lines WHERE number = 4"
        )
    line = LedgerLine._make(last)
    forged = next_line(mark_of(line), line.content, "0")
    with (
        psycopg.connect(writer.partition("#")[0]) as connection,
        pytest.raises(psycopg.Error, match="is not the sum"),
    ):
        connection.execute(
            f"INSERT INTO {schema(address)}.lines (number, content, total, fingerprint) "
            "VALUES (%s, %s, %s, %s)",
            forged,
        )


def test_a_ledger_that_does_not_replay_is_not_brought_up(server: Server, address: str) -> None:
    (last,) = server.execute(
        f"SELECT number, content, total, fingerprint FROM {schema(address)}.lines WHERE number = 3"
    )
    line = LedgerLine._make(last)
    server.execute(
        f"INSERT INTO {schema(address)}.lines (number, content, total, fingerprint) VALUES "
        + str(tuple(next_line(mark_of(line), line.content, "1/1000"))).replace("\\'", "''")
    )
    with Ledger.open(address) as ledger, pytest.raises(LedgerError, match="does not replay"):
        ledger.upgrade()
    assert server.execute(f"SELECT version FROM {schema(address)}.terms") == [(1,)]


def test_only_the_owner_brings_it_up(server: Server, address: str) -> None:
    with (
        Ledger.open(address.replace("postgres:@", "writer@")) as ledger,
        pytest.raises(LedgerError, match="cannot be written by this role"),
    ):
        ledger.upgrade()
    assert server.execute(f"SELECT version FROM {schema(address)}.terms") == [(1,)]


def test_a_ledger_of_form_1_moves(address: str, server: Server) -> None:
    with Ledger.open(address) as ledger, ledger.move(server.new()) as moved:
        assert moved.charge(SPEND, purpose="p").number == 4
        assert tables.VERSION == 2


def test_a_file_needs_no_upgrade(tmp_path: object) -> None:
    with (
        Ledger.create(f"{tmp_path}/a.ledger", epsilon=1) as ledger,
        pytest.raises(InvalidParameter, match="brought up by its first charge"),
    ):
        ledger.upgrade()
