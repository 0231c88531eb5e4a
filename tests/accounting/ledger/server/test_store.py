"""Ledgers on a real PostgreSQL server, reached by many, changed behind their back, and lost in the middle."""

import json
import os
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg")

from benchmarks.servers import Server  # noqa: E402
from sourdine.accounting.ledger import Ledger  # noqa: E402
from sourdine.accounting.ledger.address import Address  # noqa: E402
from sourdine.accounting.ledger.server import store, tables  # noqa: E402
from sourdine.accounting.release import Release  # noqa: E402
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, LedgerWait  # noqa: E402
from tests.accounting.ledger.files import forget  # noqa: E402
from tests.campaigns.ledger.crash import one_spend  # noqa: E402

SPEND = one_spend()


@pytest.fixture
def address(server: Server) -> str:
    return server.new()


def charged(address: str, count: int = 3) -> Ledger:
    ledger = Ledger.create(address, epsilon=1)
    for number in range(count):
        ledger.charge(SPEND, purpose=f"p{number}")
    return ledger


def schema(address: str) -> str:
    return Address.parse(address).schema


def behind(server: Server, *statements: str) -> None:
    """Change tables as somebody can who owns the server: without triggers."""
    server.execute("SET session_replication_role = replica", *statements)
    forget()


def test_a_ledger_on_a_server_is_a_ledger(address: str) -> None:
    with charged(address) as ledger, Ledger.open(address) as found:
        assert found.terms == ledger.terms
        assert [entry.purpose for entry in found.history()] == ["p0", "p1", "p2"]
        assert found.charge(SPEND, purpose="p").number == 4
        assert ledger.charge(SPEND, purpose="p").left == Fraction(995, 1000)
        assert (found.status().blocks, found.forecast(SPEND)) == (5, 995)


def test_limits_hold_and_a_refusal_leaves_the_ledger_free_for_others(address: str) -> None:
    with Ledger.create(address, epsilon="0.0015") as ledger, Ledger.open(address) as other:
        ledger.charge(SPEND, purpose="p")
        with pytest.raises(BudgetExceeded, match=r"has 0.0005 left"):
            ledger.charge(SPEND, purpose="p")
        with pytest.raises(BudgetExceeded):
            other.charge(SPEND, purpose="p")
        assert other.status().blocks == 1


def test_several_ledgers_live_in_one_database_by_their_names(address: str) -> None:
    with charged(address, 1) as first, Ledger.create(f"{address}_b", epsilon=2) as second:
        second.charge(SPEND, purpose="p")
        second.charge(SPEND, purpose="p")
        assert (first.status().blocks, second.status().blocks) == (1, 2)


def test_an_existing_ledger_is_never_touched_and_a_missing_one_is_one_sentence(address: str) -> None:
    with charged(address, 1) as ledger:
        with pytest.raises(LedgerError, match=r"There is a ledger at .* already"):
            Ledger.create(address, epsilon=9)
        assert ledger.status().limit == 1
    with pytest.raises(LedgerError, match="There is no ledger at"):
        Ledger.open(f"{address}_none")


def test_a_certificate_is_held_against_a_server(address: str) -> None:
    with Ledger.create(address, epsilon=1) as ledger:
        receipt = ledger.charge(SPEND, purpose="p", secure=True, declared={})
        release = Release(values=1, intervals=None, spends=(SPEND,), receipt=receipt)
        assert release.certificate(address).verify(ledger) == ()


def test_a_backup_of_a_server_is_a_file(address: str, tmp_path: Path) -> None:
    with charged(address) as ledger, ledger.backup(tmp_path / "kept.ledger") as kept:
        assert [each.fingerprint for each in kept.history()] == [
            each.fingerprint for each in ledger.history()
        ]
        with pytest.raises(LedgerError, match="a backup pays for nothing"):
            kept.charge(SPEND, purpose="p")


# who reaches it, and secrets


def test_threads_of_one_ledger_and_forks_take_turns(address: str) -> None:
    ledger = Ledger.create(address, epsilon=1)
    ledger.charge(SPEND, purpose="p")
    threads = [threading.Thread(target=lambda: ledger.charge(SPEND, purpose="p")) for _ in range(4)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if child == 0:
        try:
            ledger.charge(SPEND, purpose="child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    for thread in threads:
        thread.join()
    assert len(ledger.history()) == 6
    ledger.close()


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:secret@host.invalid/db",
        "postgresql://u@host.invalid/db?password=secret",
        "postgresql://u:sec%40ret@host.invalid/db",
    ],
)
def test_no_password_is_told(text: str) -> None:
    address = Address.parse(text)
    with pytest.raises(LedgerError) as caught:
        Ledger.open(text)
    told = [str(caught.value), str(address), repr(address)]
    error: BaseException | None = caught.value
    while error is not None:
        told.append(repr(error))
        error = error.__cause__
    assert not any("secret" in words or "sec%40ret" in words or "sec@ret" in words for words in told)
    assert "postgresql://u@host.invalid/db#main" in told[0]


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:sec@ret@host.invalid/db",
        "postgresql://u:sec/ret@host.invalid/db",
        "postgresql://u:1/secret@host.invalid/db",
        "postgresql://host:secret/db",
        "postgresql://host/db?secret=1",
        "postgresql://host/db#Secret",
        "postgresql://host/db#a b secret",
    ],
)
def test_a_malformed_address_is_not_quoted(text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Ledger.open(text)
    assert "secret" not in str(caught.value).lower()
    assert "sec" not in str(caught.value).replace("second", "")
    assert caught.value.__suppress_context__ or caught.value.__cause__ is None


def test_a_path_that_was_an_address_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="as a text, not as a Path"):
        Ledger.open(Path("postgresql://host/db"))


def test_a_server_that_is_not_there_is_told_at_once(server: Server) -> None:
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger.open(f"postgresql://postgres@/postgres?host={server.folder}/nowhere")


# append-only by role and by trigger


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {0}.lines SET total = '0'",
        "DELETE FROM {0}.lines",
        "TRUNCATE {0}.lines",
        "UPDATE {0}.terms SET content = '{{}}'",
        "DELETE FROM {0}.terms",
        "TRUNCATE {0}.terms",
        "UPDATE {0}.mark SET number = 0",
        "DELETE FROM {0}.mark",
        "TRUNCATE {0}.mark",
        "INSERT INTO {0}.mark VALUES (9, '')",
        "INSERT INTO {0}.lines VALUES (9, '', '', '')",
        "INSERT INTO {0}.lines VALUES (1, '', '', '')",
    ],
)
def test_the_owner_too_only_adds_lines(server: Server, address: str, statement: str) -> None:
    with charged(address) as ledger:
        with pytest.raises(psycopg.Error):
            server.execute(statement.format(schema(address)))
        assert len(ledger.history()) == 3


def test_a_role_that_may_charge_can_only_add_and_one_that_may_read_only_read(
    server: Server, address: str
) -> None:
    for role in ("analyst", "officer", "stranger"):
        server.execute(f"DROP ROLE IF EXISTS {role}", f"CREATE ROLE {role} LOGIN")
    with charged(address) as ledger:
        ledger.grant("analyst")
        ledger.grant("officer", charge=False)
        as_role = {
            role: address.replace("postgres:@", f"{role}@") for role in ("analyst", "officer", "stranger")
        }
        with Ledger.open(as_role["analyst"]) as analyst, Ledger.open(as_role["officer"]) as officer:
            assert analyst.charge(SPEND, purpose="p").number == 4
            assert len(officer.history()) == 4
            with pytest.raises(LedgerError, match="cannot be written by this role"):
                officer.charge(SPEND, purpose="p")
        with pytest.raises(LedgerError, match=r"may not see it|cannot be read by this role"):
            Ledger.open(as_role["stranger"])
        with pytest.raises(LedgerError, match=r"may not make a ledger .*GRANT CREATE ON DATABASE"):
            Ledger.create(f"{as_role['stranger']}_b", epsilon=1)
        for statement in ("UPDATE {0}.lines SET total = '0'", "DELETE FROM {0}.lines", "TRUNCATE {0}.lines"):
            with (
                psycopg.connect(as_role["analyst"].partition("#")[0]) as connection,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                connection.execute(statement.format(schema(address)))
        roles = server.execute(f"SELECT role FROM {schema(address)}.lines ORDER BY number")
        assert [role for (role,) in roles] == ["postgres"] * 3 + ["analyst"]
    server.execute(f"DROP SCHEMA {schema(address)} CASCADE", *(f"DROP ROLE {role}" for role in as_role))


# durable before noise


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
def test_a_server_that_may_lose_what_it_confirms_is_refused(
    server: Server, address: str, setting: str
) -> None:
    with charged(address, 1) as ledger:
        server.set(setting, "off")
        try:
            with pytest.raises(LedgerError, match=f"has {setting} = off.* Nothing was spent"):
                ledger.charge(SPEND, purpose="p")  # also in a connection that was open before
            with pytest.raises(LedgerError, match=f"has {setting} = off"):
                Ledger.open(address)
            with pytest.raises(LedgerError, match=f"has {setting} = off"):
                Ledger.create(f"{address}_b", epsilon=1)
        finally:
            server.set(setting, "on")
        assert ledger.charge(SPEND, purpose="p").number == 2


@pytest.mark.parametrize("value", ["local", "remote_write"])
def test_a_role_that_does_not_wait_is_refused(server: Server, address: str, value: str) -> None:
    charged(address, 1).close()
    with pytest.raises(LedgerError, match=f"has synchronous_commit = {value}"):
        Ledger.open(address.replace("#", f"&options=-csynchronous_commit%3D{value}#"))


def test_tables_that_a_crash_would_empty_are_refused(server: Server, address: str) -> None:
    charged(address, 1).close()
    server.execute(f"ALTER TABLE {schema(address)}.lines SET UNLOGGED")
    with pytest.raises(LedgerError, match="are unlogged"):
        Ledger.open(address)


# damage


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {0}.lines SET total = '1/1000' WHERE number = 3",
        "UPDATE {0}.lines SET content = content || ' ' WHERE number = 3",
        "DELETE FROM {0}.lines WHERE number = 3",
        "DELETE FROM {0}.lines WHERE number = 2",
        "UPDATE {0}.mark SET number = 2",
        "UPDATE {0}.mark SET fingerprint = 'x'",
        "DELETE FROM {0}.mark",
        "INSERT INTO {0}.mark VALUES (3, '')",
    ],
)
def test_what_was_changed_behind_its_back_shows(server: Server, address: str, statement: str) -> None:
    with charged(address) as ledger:
        behind(server, statement.format(schema(address)))
        for act in (ledger.status, ledger.history, lambda: ledger.charge(SPEND, purpose="p")):
            with pytest.raises(LedgerError, match="changed outside Sourdine"):
                act()


def test_who_has_seen_a_line_is_never_shown_a_ledger_without_it(server: Server, address: str) -> None:
    """A restore, or a standby that takes over and lacks the newest charges."""
    name = schema(address)
    with charged(address) as ledger:
        mark = json.dumps(server.execute(f"SELECT fingerprint FROM {name}.lines WHERE number = 2")[0][0])
        server.execute(
            "SET session_replication_role = replica",
            f"DELETE FROM {name}.lines WHERE number = 3",
            f"UPDATE {name}.mark SET number = 2, fingerprint = '{json.loads(mark)}'",
        )
        with pytest.raises(LedgerError, match=r"ends at line 2, .* and line 3 was there before"):
            ledger.charge(SPEND, purpose="p")
        forget()  # somebody who is new cannot know
        assert Ledger.open(address).status().blocks == 2


# a lost connection is resolved by asking again


class Cut:
    """A connection that is cut before, or after, a statement has done its work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, words: str, *, after: bool, times: int = 1) -> None:
        self.left, self.seen = times, list[str]()
        execute = store.ServerStore._execute

        def cut(held: Any, connection: Any, text: str, *values: object) -> Any:
            if words not in text or not self.left:
                return execute(held, connection, text, *values)
            self.left -= 1
            self.seen += [str(value) for value in values if ":" in str(value) and "{" not in str(value)]
            if after:
                execute(held, connection, text, *values)
            connection.close()
            raise psycopg.OperationalError("the connection is lost")

        monkeypatch.setattr(store.ServerStore, "_execute", cut)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("times", [1, 3])
def test_a_connection_lost_at_the_commit_charges_once(
    address: str, monkeypatch: pytest.MonkeyPatch, after: bool, times: int
) -> None:
    with charged(address, 1) as ledger:
        cut = Cut(monkeypatch, "INSERT", after=after, times=times)
        receipt = ledger.charge(SPEND, purpose="once")
        assert cut.left == (times - 1 if after else 0)  # what is found is not written again
        assert len(set(cut.seen)) == 1
        assert receipt.number == 2
        found = ledger.history()
        assert [entry.purpose for entry in found] == ["p0", "once"]
        assert (found[1].fingerprint, found[1].time) == (receipt.fingerprint, receipt.time)
        assert (found[1].total, receipt.left) == (receipt.spent, Fraction(998, 1000))


def test_a_charge_of_which_nothing_is_known_is_told_so_and_the_same_again_takes_its_line(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with charged(address, 1) as ledger:
        with monkeypatch.context() as patch:
            Cut(patch, "INSERT", after=True)
            patch.setattr(store.ServerStore, "patience", -1.0)
            with pytest.raises(LedgerError, match=r"not known whether the charge is spent. Release nothing"):
                ledger.charge(SPEND, purpose="once")
        other = ledger.charge(SPEND, purpose="another")
        again = ledger.charge(SPEND, purpose="once")
        assert (again.number, other.number) == (2, 3)
        assert again.spent == Fraction(2, 1000)  # what was spent when it was written
        assert ledger.charge(SPEND, purpose="once").number == 4  # and this is another
        assert [entry.fingerprint for entry in ledger.history()][1] == again.fingerprint


def test_a_turn_that_is_lost_is_given_to_others(address: str, server: Server) -> None:
    with charged(address, 1) as ledger, Ledger.open(address) as other:
        held = ledger._store
        assert isinstance(held, store.ServerStore)
        held._take_turn(held._connect())
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        )
        assert other.charge(SPEND, purpose="p").number == 2
        assert ledger.charge(SPEND, purpose="p").number == 3


def test_a_turn_that_others_keep_is_waited_for_and_then_told(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with charged(address, 1) as ledger, Ledger.open(address) as other:
        held = ledger._store
        assert isinstance(held, store.ServerStore)
        held._take_turn(held._connect())
        pid = held._connect().info.backend_pid
        with monkeypatch.context() as patch:
            patch.setattr(store, "LOCK_WAIT", "20ms")
            patch.setattr(store.ServerStore, "quiet", 0.0)
            patch.setattr(store.ServerStore, "patience", 0.5)
            kept = rf"kept busy by the role 'postgres' in its session {pid}\."
            with (
                pytest.raises(LedgerError, match=rf"{kept} Nothing was spent"),
                pytest.warns(LedgerWait, match=kept),
            ):
                other.charge(SPEND, purpose="p")
        ledger.close()
        assert other.charge(SPEND, purpose="p").number == 2


def test_the_key_of_a_charge_holds_its_digest_and_no_caller_gives_it(server: Server, address: str) -> None:
    with charged(address, 2):
        keys = [key for (key,) in server.execute(f"SELECT key FROM {schema(address)}.lines")]
        nonces, digests = zip(*(key.split(":") for key in keys), strict=True)
        assert len(set(nonces)) == len(set(digests)) == 2
        assert {len(nonce) for nonce in nonces} == {32}


def test_a_newer_form_is_refused(server: Server, address: str) -> None:
    charged(address, 1).close()
    behind(server, f"UPDATE {schema(address)}.terms SET version = {tables.VERSION + 1}")
    with pytest.raises(LedgerError, match="made by a newer Sourdine"):
        Ledger.open(address)


def test_acts_of_a_ledger_say_the_same_of_a_file_and_of_a_server(address: str, tmp_path: Path) -> None:
    made: list[Callable[[], Ledger]] = [
        lambda: Ledger.create(tmp_path / "a.ledger", epsilon=1, period="day", period_limit="0.0015"),
        lambda: Ledger.create(address, epsilon=1, period="day", period_limit="0.0015"),
    ]
    told = []
    for make in made:
        with make() as ledger:
            ledger.charge(SPEND, purpose="p")
            with pytest.raises(BudgetExceeded) as caught:
                ledger.charge(SPEND, purpose="p")
            told.append((str(caught.value), ledger.forecast(SPEND), ledger.status().period_spent))
    assert told[0] == told[1]
