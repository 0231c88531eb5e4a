"""Charges that wait for a standby: waits that are canceled, standbys that are away, and failovers."""

import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from time import monotonic, sleep

import pytest

psycopg = pytest.importorskip("psycopg")

from benchmarks.servers import Server, Standby  # noqa: E402
from sourdine.accounting.ledger import Ledger, Receipt  # noqa: E402
from sourdine.accounting.ledger.server import session, store, tables  # noqa: E402
from sourdine.core.errors import LedgerError, LedgerWait  # noqa: E402
from tests.campaigns.ledger.crash import one_spend  # noqa: E402
from tests.campaigns.ledger.failover import failovers  # noqa: E402

SPEND = one_spend()
_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Standby]]:
    primary = Server.start()
    standby = primary.follow()
    yield primary, standby
    for server in (standby, primary):
        server.signal(signal.SIGCONT)
        server.remove()


@pytest.fixture
def primary(pair: tuple[Server, Standby]) -> Server:
    return pair[0]


@pytest.fixture
def standby(pair: tuple[Server, Standby]) -> Iterator[Standby]:
    yield pair[1]
    pair[1].signal(signal.SIGCONT)


@pytest.fixture
def ledger(primary: Server, standby: Standby) -> Iterator[Ledger]:
    with Ledger.create(primary.new(), epsilon=1) as ledger:
        ledger.charge(SPEND, purpose="first")
        yield ledger
        standby.signal(signal.SIGCONT)


def waiting(primary: Server) -> int:
    """The session that waits for the standby."""
    for _ in range(1000):
        if rows := primary.execute(_WAITING):
            return int(rows[0][0])
        sleep(0.01)
    raise AssertionError("nobody waits")


def begun(act: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """An act in another thread, and what comes of it."""
    answers = list[object]()

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LedgerWait)
            try:
                answers.append(act())
            except LedgerError as problem:
                answers.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers


@pytest.mark.parametrize("quiet", [False, True])
def test_a_charge_whose_wait_was_canceled_is_not_acknowledged_before_the_standby_has_it(
    primary: Server, standby: Standby, ledger: Ledger, quiet: bool
) -> None:
    """A role may be set to be told of errors only, and then would never see the warning."""
    if quiet:
        primary.execute("ALTER ROLE postgres SET client_min_messages = error")
        ledger.close()
    try:
        standby.signal(signal.SIGSTOP)
        thread, answers = begun(lambda: ledger.charge(SPEND, purpose="p"))
        for _ in range(3):
            primary.execute(f"SELECT pg_cancel_backend({waiting(primary)})")
            sleep(0.1)
        assert answers == []
        standby.signal(signal.SIGCONT)
        thread.join()
    finally:
        primary.execute("ALTER ROLE postgres RESET client_min_messages")
    (receipt,) = answers
    assert isinstance(receipt, Receipt)
    assert receipt.number == 2
    assert [entry.number for entry in ledger.history()] == [1, 2]
    rows = standby.execute(f"SELECT fingerprint FROM {schema(ledger)}.lines WHERE number = 2")
    assert rows == [(receipt.fingerprint,)]


def schema(ledger: Ledger) -> str:
    assert isinstance(ledger._store, store.ServerStore)
    return ledger._store.path.schema


def test_a_session_that_is_ended_while_it_waits_charges_once(
    primary: Server, standby: Standby, ledger: Ledger
) -> None:
    standby.signal(signal.SIGSTOP)
    thread, answers = begun(lambda: ledger.charge(SPEND, purpose="p"))
    primary.execute(f"SELECT pg_terminate_backend({waiting(primary)})")
    waiting(primary)  # again
    assert answers == []
    standby.signal(signal.SIGCONT)
    thread.join()
    assert [getattr(each, "number", each) for each in answers] == [2]
    assert len(ledger.history()) == 2


def test_a_standby_that_is_away_is_named_and_waited_for_no_longer_than_for_others(
    primary: Server, standby: Standby, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.ServerStore, "quiet", 0.1)
    monkeypatch.setattr(store.ServerStore, "patience", 1.0)
    standby.signal(signal.SIGSTOP)
    begin = monotonic()
    with Ledger.open(str(primary.address) + "#" + ledger.path.name) as other:
        assert monotonic() - begin < 30
        with (
            pytest.raises(LedgerError, match="could not confirm that a synchronous standby has"),
            pytest.warns(LedgerWait, match="waits for a synchronous standby"),
        ):
            other.status()
        with (
            pytest.raises(LedgerError, match=r"is not known to be replicated.*Release nothing"),
            pytest.warns(LedgerWait, match="waits for a synchronous standby"),
        ):
            other.charge(SPEND, purpose="p")
        assert monotonic() - begin < 30
        standby.signal(signal.SIGCONT)
        monkeypatch.undo()
        assert other.charge(SPEND, purpose="p").number == 2  # the same again takes its line
        assert other.status().blocks == 2


def test_a_standby_that_stays_away_makes_no_later_look_wait_longer(
    primary: Server, standby: Standby, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.ServerStore, "quiet", 0.05)
    monkeypatch.setattr(store.ServerStore, "patience", 0.12)
    limits, start = list[float | None](), session.Session.start

    def note(held: session.Session, limit: float | None = None) -> None:
        limits.append(limit)
        start(held, limit)

    monkeypatch.setattr(session.Session, "start", note)
    standby.signal(signal.SIGSTOP)
    for _ in range(3):
        thread, answers = begun(ledger.status)
        thread.join()
        assert "could not confirm" in str(answers[0])
    assert max(filter(None, limits)) <= 0.1


def test_a_ledger_that_is_made_or_moved_waits_for_the_standby_with_an_end(
    primary: Server, standby: Standby, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SHORT", 0.1)
    monkeypatch.setattr(tables, "PATIENCE", 1.0)
    monkeypatch.setattr(store.ServerStore, "quiet", 0.1)
    monkeypatch.setattr(store.ServerStore, "patience", 1.0)
    standby.signal(signal.SIGSTOP)
    place = primary.new()
    acts: list[Callable[[], object]] = [
        lambda: Ledger.create(place, epsilon=1),
        lambda: ledger.move(primary.new()),
    ]
    for act in acts:
        with pytest.raises(LedgerError, match="could not confirm"), pytest.warns(LedgerWait):
            act()
    standby.signal(signal.SIGCONT)
    monkeypatch.undo()
    with Ledger.open(place) as made:
        assert made.charge(SPEND, purpose="p").number == 1


def test_a_server_that_answers_nothing_is_left(
    primary: Server, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a statement nor its cancellation is answered by a server that hangs."""
    monkeypatch.setattr(session.Session, "longest", 0.2)
    monkeypatch.setattr(session, "_GRACE", 0.2)
    monkeypatch.setattr(store.ServerStore, "quiet", 0.2)
    monkeypatch.setattr(store.ServerStore, "patience", -1.0)
    ledger.status()
    primary.signal(signal.SIGSTOP)
    try:
        with pytest.raises(LedgerError, match="does not answer a cancellation"):
            ledger.status()
    finally:
        primary.signal(signal.SIGCONT)
    monkeypatch.undo()
    assert ledger.status().blocks == 1


def test_a_table_that_its_owner_keeps_is_waited_for_and_the_owner_is_named(
    primary: Server, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL bounds no wait of a reader, as while a table is rewritten."""
    ledger.status()
    monkeypatch.setattr(store.ServerStore, "quiet", 0.1)
    monkeypatch.setattr(session.Session, "quiet", 0.1)
    with psycopg.connect(primary.address) as owner:
        kept = rf"kept busy by the role 'postgres' in its session {owner.info.backend_pid}\."
        owner.execute(f"LOCK TABLE {schema(ledger)}.lines IN ACCESS EXCLUSIVE MODE")
        with monkeypatch.context() as patch:
            patch.setattr(store.ServerStore, "patience", 1.0)
            with pytest.raises(LedgerError, match=kept), pytest.warns(LedgerWait) as announced:
                ledger.status()
            assert any(re.search(kept, str(each.message)) for each in announced)
        thread = threading.Timer(0.5, owner.rollback)
        thread.start()
        with pytest.warns(LedgerWait, match="does not answer"):
            assert len(list(ledger._store._rows(0, 1, 1))) == 1
        thread.join()


def test_a_server_that_is_gone_is_announced_and_charged_once_it_is_back(
    primary: Server, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.ServerStore, "quiet", 0.0)
    primary.kill()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(store.ServerStore, "patience", 0.2)
            with pytest.raises(LedgerError), pytest.warns(LedgerWait, match="does not answer"):
                ledger.charge(SPEND, purpose="p")
    finally:
        primary.restart()
    monkeypatch.undo()
    thread, answers = begun(lambda: ledger.charge(SPEND, purpose="p"))
    thread.join()  # until the standby is back too
    assert [getattr(each, "number", each) for each in answers] == [2]


@pytest.mark.slow
def test_no_acknowledged_charge_is_lost_in_a_failover() -> None:
    found = failovers(6, seconds=8, seed=3, progress=lambda done, found: None)
    assert (found.lost, found.twice, found.acknowledged > 100) == (0, 0, True)
