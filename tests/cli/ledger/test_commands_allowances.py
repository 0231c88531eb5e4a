"""Allowances on the command line."""

import getpass
import json
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger
from sourdine.cli import app
from sourdine.core.distance import Distance
from sourdine.mechanisms import Geometric
from tests.cli.table_case import build

COUNT = Spend(mechanism=Geometric(scale=Fraction(10)), distance=Distance.l1(1))


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "survey.ledger"
    assert run("ledger", "create", place, "--epsilon", "1")[0] == 0
    code, out, _ = run(
        "ledger", "allow", place, "growth", "--epsilon", ".3", "--to", "ana", "--author", "olga"
    )
    assert (code, out) == (0, "growth: 0.3 of 0.3 left, for ana\n")
    return place


def test_status_and_history_are_told_by_name(path: Path) -> None:
    run("ledger", "allow", path, "rest", "--epsilon", "0.5", "--author", "olga")
    with Ledger.open(path) as ledger:
        ledger.charge(COUNT, purpose="how many", author="ana")
        ledger.charge(COUNT, purpose="and who", author="ben")
    code, out, _ = run("ledger", "status", path)
    assert code == 0
    assert "0.2 (20 %) in 2 charges\n" in out
    assert "Allowances   growth: 0.2 of 0.3 left, for ana\n" in out
    assert "             rest: 0.4 of 0.5 left, for everybody\n" in out
    assert "kept by olga" in out
    out = run("ledger", "history", path, "--allowance", "growth")[1]
    assert "how many" in out
    assert "and who" not in out
    assert "allow 'growth' 0.3 for ana" in out
    assert "'rest'" not in out
    found = json.loads(run("ledger", "status", path, "--json")[1])
    assert [each["spent"] for each in found["allowances"]["each"]] == ["1/10", "1/10"]
    listed = json.loads(run("ledger", "history", path, "--json")[1])["entries"]
    assert [each["allowance"] for each in listed] == [None, None, "growth", "rest"]
    assert "no allowance 'grwth'" in run("ledger", "history", path, "--allowance", "grwth")[2]


def test_pages_and_views_tell_charges_from_rules(path: Path, tmp_path: Path) -> None:
    page = tmp_path / "spending.html"
    with Ledger.open(path) as ledger:
        assert run("ledger", "history", path, "--html", page)[0] == 0  # with no charge yet
        ledger.charge(COUNT, purpose="how many", author="ana")
        assert "how many" in ledger._repr_html_()
        assert ledger.chart() is not None
    assert run("ledger", "history", path, "--html", page)[0] == 0
    text = page.read_text()
    assert "1 charge, replayed and checked" in text
    assert "Shares of the budget" in text
    assert "growth" in text


def test_a_request_waits_until_another_keeper_approves_it(path: Path) -> None:
    code, out, _ = run(
        "ledger", "request", path, "growth", "--epsilon", "0.2", "--purpose", "by region", "--author", "ana"
    )
    assert code == 0
    assert "The request is line 2." in out
    assert "line 2 asks for 0.2 more for growth, by ana" in run("ledger", "status", path)[1]
    code, _, problem = run("ledger", "approve", path, 2, "--author", "ana")
    assert code != 0
    assert "'ana' may not approve requests: the keepers of this ledger are olga" in problem
    assert run("ledger", "approve", path, 2, "--author", "olga")[1] == ("growth: 0.5 of 0.5 left, for ana\n")
    run("ledger", "request", path, "growth", "--epsilon", "0.1", "--purpose", "x", "--author", "ana")
    assert "declined" in run("ledger", "decline", path, 4, "--author", "olga")[1]
    history = run("ledger", "history", path, "--allowance", "growth")[1]
    assert "approve the request of line 2" in history
    assert "0 charges replayed" in history


def test_an_allowance_is_named_for_any_verb(tmp_path: Path) -> None:
    case = build(tmp_path)
    for name, cap in (("growth", ".6"), ("other", ".3")):
        words = ("--epsilon", cap, "--to", getpass.getuser(), "--author", "olga")
        assert run("ledger", "allow", case.ledger, name, *words)[0] == 0
    code, _, problem = run("release", case.spec, "-o", tmp_path / "out")
    assert code != 0
    assert "has more than one. Nothing was spent. Name one of 'growth', 'other'." in problem
    code, _, problem = run("--allowance", "other", "release", case.spec, "-o", tmp_path / "out")
    assert code != 0
    assert "the allowance 'other' has 0.3 left" in problem
    assert run("--allowance", "growth", "release", case.spec, "-o", tmp_path / "out")[0] == 0
    with Ledger.open(case.ledger) as ledger:
        assert ledger.allowances.by_name["growth"].spent == Fraction(1, 2)


def test_mistakes_are_sentences(path: Path) -> None:
    for words, told in [
        (("allow", path, "a", "--rho", "1", "--author", "olga"), "is given by --epsilon alone"),
        (("allow", path, "a", "--epsilon", "2", "--author", "olga"), "be at most the whole budget"),
        (("allow", path, "a", "--epsilon", ".1", "--author", "ana"), "'ana' may not allow anything"),
        (("allow", path, "a", "--epsilon", ".1", "--period", "day", "--author", "olga"), "go together"),
        (("request", path, "b", "--epsilon", ".1", "--purpose", "p"), "no allowance 'b'"),
        (("approve", path, "9", "--author", "olga"), "No request of line 9 waits"),
        (("grant", path, "role"), "this ledger is a file"),
    ]:
        code, _, problem = run("ledger", *words)
        assert code != 0
        assert told in problem, problem
