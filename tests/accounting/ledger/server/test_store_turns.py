"""Turns at a server whose roles read old snapshots, doubts that a fork inherits, and ledgers made at once."""

import os
import threading
from pathlib import Path
from time import sleep

import pytest

psycopg = pytest.importorskip("psycopg")

from benchmarks.servers import Server  # noqa: E402
from sourdine.accounting.ledger import Ledger  # noqa: E402
from sourdine.accounting.ledger.address import Address  # noqa: E402
from sourdine.accounting.ledger.chain import Mark, next_line  # noqa: E402
from sourdine.accounting.ledger.server import store, tables  # noqa: E402
from sourdine.core.errors import LedgerError  # noqa: E402
from tests.accounting.ledger.server.test_store import Cut, charged  # noqa: E402
from tests.campaigns.ledger.crash import one_spend  # noqa: E402

SPEND = one_spend()
LEVELS = ["repeatable%20read", "serializable"]


@pytest.fixture
def address(server: Server) -> str:
    return server.new()


def at_level(address: str, level: str) -> str:
    """An address whose sessions begin transactions at another level, as a role or a database may."""
    escaped = level.replace("%20", "%5C%20")
    return address.replace("#", f"&options=-cdefault_transaction_isolation%3D{escaped}#")


def waits(server: Server) -> None:
    """Until somebody waits for a turn."""
    for _ in range(500):
        if server.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
            return
        sleep(0.01)
    raise AssertionError("nobody waits")


def held_store(ledger: Ledger) -> store.ServerStore:
    assert isinstance(ledger._store, store.ServerStore)
    return ledger._store


@pytest.mark.parametrize("level", LEVELS)
def test_who_waited_for_a_turn_sees_what_was_written_meanwhile(
    server: Server, address: str, level: str
) -> None:
    numbers = list[int]()
    with charged(address, 1) as ledger, Ledger.open(at_level(address, level)) as other:
        other.status()
        held = held_store(ledger)
        rows, _ = held._take_turn(held._connect())
        thread = threading.Thread(target=lambda: numbers.append(other.charge(SPEND, purpose="p").number))
        thread.start()
        waits(server)
        line = next_line(Mark(rows[0][0], rows[0][3]), rows[0][1], "1/500")
        held._execute(held._connect(), store._WRITE, *line, "key")
        thread.join()
        assert numbers == [3]
        assert other._store.line(3) is not None


@pytest.mark.parametrize("level", LEVELS)
def test_nobody_charges_a_ledger_that_was_moved_while_they_waited(
    server: Server, address: str, level: str
) -> None:
    told = list[str]()
    with charged(address, 1) as ledger, Ledger.open(at_level(address, level)) as other:
        other.status()
        held = held_store(ledger)
        held._take_turn(held._connect())

        def charge() -> None:
            try:
                other.charge(SPEND, purpose="late")
            except LedgerError as problem:
                told.append(str(problem))

        thread = threading.Thread(target=charge)
        thread.start()
        waits(server)
        held._execute(held._connect(), store._MOVE, tables.BACKUP, "to:b", tables.LIVE)
        held._execute(held._connect(), "COMMIT")
        thread.join()
        assert len(told) == 1
        assert "a backup pays for nothing" in told[0]
        assert len(ledger.history()) == 1


def test_a_child_does_not_take_the_line_that_its_parent_asks_for(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with charged(address, 1) as ledger:
        with monkeypatch.context() as patch:
            Cut(patch, "INSERT", after=True)
            patch.setattr(store.ServerStore, "patience", -1.0)
            with pytest.raises(LedgerError, match="not known whether"):
                ledger.charge(SPEND, purpose="once")
        child = os.fork()
        if child == 0:
            try:
                (tmp_path / "number").write_text(str(ledger.charge(SPEND, purpose="once").number))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert (tmp_path / "number").read_text() == "3"  # two releases, two charges
        assert ledger.charge(SPEND, purpose="once").number == 2


def test_of_two_who_make_the_same_ledger_one_is_told_that_it_is_there(server: Server, address: str) -> None:
    parsed = Address.parse(address)
    told = list[str]()

    def create() -> None:
        try:
            Ledger.create(address, epsilon=1)
        except LedgerError as problem:
            told.append(str(problem))

    with tables.connect(parsed) as first:
        first.execute("BEGIN")
        first.execute(f"CREATE SCHEMA {parsed.schema}")
        thread = threading.Thread(target=create)
        thread.start()
        for _ in range(500):
            if server.execute("SELECT 1 FROM pg_locks WHERE NOT granted"):
                break
            sleep(0.01)
        first.execute("COMMIT")
        thread.join()
    assert len(told) == 1
    assert "already. A ledger is never overwritten" in told[0]
