"""A ledger moved between a file and a server: one of them can be charged, whatever is cut off."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers import Server
from sourdine.accounting.ledger import Ledger, moving
from sourdine.accounting.ledger.chain import Mark
from sourdine.accounting.ledger.file import store as file_store
from sourdine.accounting.ledger.store import Store
from sourdine.core.errors import LedgerError
from tests.campaigns.ledger.crash import one_spend

SPEND = one_spend()


def charged(place: Path | str) -> Ledger:
    ledger = Ledger.create(place, epsilon=1)
    for number in range(3):
        ledger.charge(SPEND, purpose=f"p{number}")
    return ledger


def test_a_file_goes_into_a_server_and_back(server: Server, tmp_path: Path) -> None:
    with charged(tmp_path / "a.ledger") as first:
        terms, marks = first.terms, [entry.fingerprint for entry in first.history()]
        second = first.move(server.new())
    assert second.terms == terms
    assert [entry.fingerprint for entry in second.history()] == marks
    with pytest.raises(LedgerError, match="is a backup"):
        Ledger.open(tmp_path / "a.ledger").charge(SPEND, purpose="twice")
    assert second.charge(SPEND, purpose="later").number == 4
    third = second.move(tmp_path / "b.ledger")
    with pytest.raises(LedgerError, match="is a backup"):
        second.charge(SPEND, purpose="twice")
    assert third.charge(SPEND, purpose="last").number == 5
    assert [entry.fingerprint for entry in third.history()][:3] == marks
    second.close()
    third.close()


def test_who_has_it_open_elsewhere_is_refused_too(server: Server, tmp_path: Path) -> None:
    places: list[Path | str] = [tmp_path / "a.ledger", server.new()]
    for place in places:
        with charged(place) as ledger, Ledger.open(place) as other:
            other.charge(SPEND, purpose="p")
            ledger.move(tmp_path / f"moved-{type(place).__name__}.ledger").close()
            with pytest.raises(LedgerError, match=r"a backup pays for nothing. Nothing was spent"):
                other.charge(SPEND, purpose="twice")


def test_nothing_is_overwritten_and_a_backup_does_not_become_a_ledger(tmp_path: Path) -> None:
    with charged(tmp_path / "a.ledger") as ledger:
        ledger.backup(tmp_path / "kept.ledger").close()
        with pytest.raises(LedgerError, match="already"):
            ledger.move(tmp_path / "kept.ledger")
        ledger.charge(SPEND, purpose="p")
    with pytest.raises(LedgerError, match="a backup does not become a ledger"):
        moving.move(tmp_path / "kept.ledger", tmp_path / "b.ledger")
    assert not (tmp_path / "b.ledger").exists()


def test_a_charge_in_between_keeps_the_ledger_where_it_is(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    retire = file_store.FileStore.retire
    with charged(tmp_path / "a.ledger") as ledger, Ledger.open(tmp_path / "a.ledger") as other:
        targets: list[Path | str] = [tmp_path / "b.ledger", server.new()]

        def late(held: file_store.FileStore, *words: object) -> None:
            other.charge(SPEND, purpose="in between")
            retire(held, *words)  # type: ignore[arg-type]

        monkeypatch.setattr(file_store.FileStore, "retire", late)
        for target in targets:
            with pytest.raises(LedgerError, match="was charged while it was copied"):
                ledger.move(target)
            with pytest.raises(LedgerError, match="There is no ledger"):
                Ledger.open(target)
        assert ledger.charge(SPEND, purpose="p").number == 6


@pytest.mark.parametrize("back", [False, True])
def test_a_move_that_was_cut_off_is_finished_and_never_doubles(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    places: list[Path | str] = [tmp_path / "a.ledger", server.new()]
    source, target = places[::-1] if back else places
    charged(source).close()
    with monkeypatch.context() as patch:
        patch.setattr(moving, "_activate", lambda place, token: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            moving.move(source, target)
    for place in (source, target):  # neither of them can be charged now
        with Ledger.open(place) as ledger, pytest.raises(LedgerError, match="pays for nothing"):
            ledger.charge(SPEND, purpose="p")
    with pytest.raises(LedgerError):
        moving.move(source, tmp_path / "elsewhere.ledger")
    moving.move(source, target)
    with Ledger.open(target) as ledger:
        assert ledger.charge(SPEND, purpose="p").number == 4
    with pytest.raises(LedgerError, match="has been moved already"):
        moving.move(source, target)


@pytest.mark.parametrize("on_server", [False, True])
def test_of_two_moves_at_once_one_is_refused_and_leaves_nothing(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, on_server: bool
) -> None:
    source = server.new() if on_server else tmp_path / "a.ledger"
    charged(source).close()
    copy, targets = moving._copy, [tmp_path / "first.ledger", tmp_path / "second.ledger"]

    def slow(*words: object) -> object:
        end = copy(*words)  # type: ignore[arg-type]
        monkeypatch.setattr(moving, "_copy", copy)
        moving.move(source, targets[1])  # somebody else is quicker
        return end

    monkeypatch.setattr(moving, "_copy", slow)
    with pytest.raises(LedgerError, match="moved by somebody else"):
        moving.move(source, targets[0])
    assert not targets[0].exists()
    with Ledger.open(targets[1]) as ledger:
        assert ledger.charge(SPEND, purpose="p").number == 4


@pytest.mark.parametrize("on_server", [False, True])
def test_a_copy_is_kept_where_the_ledger_may_have_been_given_up(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, on_server: bool
) -> None:
    source, target = (server.new() if on_server else tmp_path / "a.ledger"), tmp_path / "b.ledger"
    charged(source).close()
    retire = Store.retire

    def lost(held: Store[Any], end: Mark, name: str) -> None:
        retire(held, end, name)
        raise LedgerError("The server was lost.")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "retire", lost)
        with pytest.raises(LedgerError, match="was lost"):
            moving.move(source, target)
    moving.move(source, target)  # it is finished by asking again
    with Ledger.open(target) as ledger:
        assert ledger.charge(SPEND, purpose="p").number == 4
