"""Mechanisms that are not of this package: charged by their names, shown as what they are."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sourdine.accounting import Spend
from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.receipt import foreign_lines
from sourdine.accounting.release import Release
from sourdine.accounting.spend import foreign_names
from sourdine.cli import app
from sourdine.core import serialization as registry
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.mechanisms import Laplace
from sourdine.report.pages.ledger import spending_page
from tests.campaigns.ledger.crash import new_ledger, one_spend
from tests.own_mechanism import NAME, OWN, Unregistered

OURS = one_spend()
TOLD = f"Not of this package: {NAME} (line 2). What is claimed of it is the word of its author."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a line of ours and one of another's."""
    place = tmp_path / "survey.ledger"
    with new_ledger(place, Fraction(1)) as ledger:
        ledger.charge(OURS, purpose="ours")
        ledger.charge(OURS, OWN, purpose="theirs")
    return place


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def certified(path: Path) -> Certificate:
    with Ledger.open(path) as ledger:
        receipt = ledger.charge(OWN, purpose="certified", secure=True)
        made = Release(values=[0], intervals=None, spends=(OWN,), receipt=receipt)
        assert f"Not of this package: {NAME}." in made._repr_html_()
        return made.certificate(ledger)


def test_the_ledger_names_it(path: Path) -> None:
    entries = Ledger.open(path).history()
    assert [entry.foreign for entry in entries] == [(), (NAME,)]
    assert entries[1].spends == (OURS, OWN)
    assert foreign_lines(entries) == TOLD
    assert foreign_lines(entries[:1]) == ""
    assert foreign_names([OURS]) == ()


def test_many_lines_are_not_listed_each(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.charge(OWN, purpose="again")
    assert f"{NAME} (2 lines, the first line 2)" in foreign_lines(ledger.history())


def test_history_and_pages_say_so(path: Path, tmp_path: Path) -> None:
    assert TOLD in " ".join(run("ledger", "history", path, "-o", tmp_path / "page.html").split())
    assert TOLD in (tmp_path / "page.html").read_text(encoding="utf-8")
    told = json.loads(run("ledger", "history", path, "--json"))["entries"]
    assert [entry["not_of_this_package"] for entry in told] == [[], [NAME]]
    run("ledger", "export", path, "-o", tmp_path / "all.csv")
    assert NAME in (tmp_path / "all.csv").read_text(encoding="utf-8")


def test_nothing_is_said_of_ours(tmp_path: Path) -> None:
    with new_ledger(tmp_path / "own.ledger", Fraction(1)) as ledger:
        ledger.charge(OURS, purpose="ours")
        page = spending_page(ledger.terms, ledger.status(), ledger.history())
    assert "ot of this package" not in page.html()
    assert "ot of this package" not in run("ledger", "history", tmp_path / "own.ledger")


def test_a_certificate_says_so(path: Path, tmp_path: Path) -> None:
    made = certified(path)
    held = json.loads(made.to_json())
    assert made.foreign == (NAME,)
    assert held["not_of_this_package"] == [NAME]
    assert Certificate.from_json(made.to_json()) == made
    (tmp_path / "certificate.json").write_text(made.to_json())
    words = ("certificate", "verify", tmp_path / "certificate.json", "--ledger", path)
    assert f"Not of this package: {NAME}." in " ".join(run(*words).split())
    assert json.loads(run(*words, "--json"))["not_of_this_package"] == [NAME]
    for changed in ([], ["acme.example/other/1"], "none"):
        with pytest.raises(LedgerError, match="was changed"):
            Certificate.from_json(json.dumps(held | {"not_of_this_package": changed}))


def test_without_the_registration_status_and_charges_go_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Ledger.open(path).status()
    made = certified(path).to_json()
    forget(monkeypatch)
    ledger = Ledger.open(path)
    assert ledger.status().spent == before.spent + Fraction(1, 4)
    assert ledger.charge(OURS, purpose="goes on").number == 4
    with pytest.raises(LedgerError, match=rf"Line 2 .* '{NAME}' is not of this.*serialization\.register"):
        ledger.history()
    with pytest.raises(LedgerError, match=rf"certificate cannot be read\. The name '{NAME}'"):
        Certificate.from_json(made)
    copy = path.with_name("copy.ledger")
    assert ledger.backup(copy).status().blocks == 4


@pytest.mark.parametrize("spends", [(OURS, "unregistered"), ("unregistered",), ("louder",)])
def test_what_has_no_name_is_refused_before_anything_is_spent(
    path: Path, spends: tuple[Spend | str, ...]
) -> None:
    class Louder(Laplace):
        pass

    made = {
        "unregistered": Spend(mechanism=Unregistered(scale=Fraction(4)), distance=Distance.l1(1)),
        "louder": Spend(mechanism=Louder(scale=Fraction(4)), distance=Distance.l1(1)),
    }
    ledger = Ledger.open(path)
    before = ledger.status()
    block = [made[each] if isinstance(each, str) else each for each in spends]
    with pytest.raises(InvalidParameter, match=r"has no name .* Register it first"):
        ledger.charge(*block, purpose="refused")
    assert ledger.status() == before
