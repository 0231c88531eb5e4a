import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Certificate, Release
from sourdine.accounting.spend import Spend
from sourdine.cli import app
from sourdine.core.distance import Distance
from sourdine.mechanisms import Geometric

COUNT = Spend(mechanism=Geometric(scale=Fraction(10)), distance=Distance.l1(1))


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "survey.ledger"
    assert run("ledger", "create", place, "--epsilon", "1")[0] == 0
    return place


def test_status_says_what_is_left(path: Path) -> None:
    Ledger.open(path).charge(COUNT, purpose="how many said yes", author="Ada")
    code, out, _ = run("ledger", "status", path)
    assert code == 0
    assert "1/10 (10%) in 1 charges" in out
    assert "Left         9/10" in out
    found = json.loads(run("ledger", "status", path, "--json")[1])
    assert (found["spent"], found["left"], found["currency"]) == ("1/10", "9/10", "epsilon")


def test_history_export_and_page_agree(path: Path, tmp_path: Path) -> None:
    for k in range(3):
        Ledger.open(path).charge(COUNT, purpose=f"count {k}", author="Ada")
    code, out, _ = run("ledger", "history", path)
    assert code == 0
    assert "3 charges replayed to epsilon 3/10" in out
    listed = json.loads(run("ledger", "history", path, "--json")[1])["entries"]
    assert [entry["purpose"] for entry in listed] == ["count 0", "count 1", "count 2"]
    table = tmp_path / "spends.csv"
    assert run("ledger", "export", path, "-o", table)[0] == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["total"] for row in rows] == ["1/10", "1/5", "3/10"]
    assert Spend.from_json(json.loads(rows[0]["spends"])[0]) == COUNT
    page = tmp_path / "spending.html"
    assert run("ledger", "history", path, "-o", page)[0] == 0
    text = page.read_text()
    assert "30% of the budget is spent, in 3 charges" in text
    assert "count 2" in text


def test_forecast_counts_releases(path: Path, tmp_path: Path) -> None:
    assert "10 more fit" in run("ledger", "forecast", path, "--epsilon", "0.1")[1]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps([COUNT.to_json(), COUNT.to_json()]))
    assert json.loads(run("ledger", "forecast", path, "--spends", plan, "--json")[1])["fits"] == 5


def test_a_budget_with_delta_is_kept_in_rho(tmp_path: Path) -> None:
    place = tmp_path / "z.ledger"
    code, out, _ = run(
        "ledger", "create", place, "--epsilon", "3", "--delta", "1e-6", "--each", "month", "--limit", "0.01"
    )
    assert code == 0
    assert "that is epsilon 3 at delta 1e-06" in out
    assert "1/100 of 1/100 left" in out
    assert json.loads(run("ledger", "forecast", place, "--rho", "0.001", "--json")[1])["fits"] == 10


def test_a_certificate_is_confirmed_or_refused(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path)
    receipt = ledger.charge(COUNT, purpose="yes")
    release = Release(values=[5], intervals=[(3, 7)], spends=(COUNT,), receipt=receipt)
    paper = tmp_path / "certificate.json"
    paper.write_text(release.certificate(ledger, {"upper": "10"}).to_json())
    code, out, _ = run("certificate", "verify", paper, "--ledger", path)
    assert (code, out.split(",")[0]) == (0, "Paid: line 1 of the ledger")
    held = json.loads(paper.read_text())
    for change in (
        {"price": "1/1000"},
        {"fingerprint": "0" * 64},
        {"ledger": "another"},
        {"spends": []},
        {"unit": "flat"},
        {"epsilon": 1e-4},
        {"delta": 1e-30},
        {"left": "1"},
        {"format": 99},
        {"price": "1/0"},
    ):
        paper.write_text(json.dumps(held | change))
        code, out, err = run("certificate", "verify", paper, "--ledger", path)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
    paper.write_text("{}")
    assert run("certificate", "verify", paper, "--ledger", path)[0] == 2


def test_a_certificate_survives_json(path: Path) -> None:
    ledger = Ledger.open(path)
    receipt = ledger.charge(COUNT, purpose="yes")
    made = Release(values=1, intervals=None, spends=(COUNT,), receipt=receipt, secure=False).certificate(
        ledger
    )
    read = Certificate.from_json(made.to_json())
    assert read.spends == made.spends
    assert not read.secure
    assert "seeded" in Release(values=1, intervals=None, spends=(), receipt=None, secure=False)._repr_html_()
    assert "Paid epsilon 1/10" in receipt._repr_html_()
    assert "<table>" in ledger._repr_html_()


@pytest.mark.parametrize(
    "words",
    [
        ("create", "{tmp}/a"),
        ("create", "{tmp}/a", "--epsilon", "-1"),
        ("create", "{tmp}/a", "--epsilon", "nan"),
        ("create", "{tmp}/a", "--epsilon", "1", "--rho", "1"),
        ("create", "{tmp}/a", "--rho", "1"),
        ("create", "{tmp}/a", "--order", "8"),
        ("create", "{tmp}/a", "--epsilon", "1", "--neighbours", "twins"),
        ("create", "{tmp}/a", "--epsilon", "1", "--each", "month"),
        ("create", "{tmp}/survey.ledger", "--epsilon", "1"),
        ("create", "{tmp}/none/a", "--epsilon", "1"),
        ("status", "{tmp}/missing"),
        ("history", "{tmp}"),
        ("forecast", "{tmp}/survey.ledger"),
        ("forecast", "{tmp}/survey.ledger", "--spends", "{tmp}/missing.json"),
        ("forecast", "{tmp}/survey.ledger", "--rho", "1"),
    ],
)
def test_bad_input_gets_a_sentence_and_code_2(path: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    code, out, err = run("ledger", *(word.format(tmp=tmp_path) for word in words))
    assert code == 2
    assert out == ""
    assert err.strip()
    assert "Traceback" not in err


def test_help_shows_an_example() -> None:
    for verb in ("create", "status", "history", "export", "forecast"):
        assert f"sourdine ledger {verb}" in " ".join(run("ledger", verb, "--help")[1].split())
    assert "sourdine certificate verify" in " ".join(run("certificate", "verify", "--help")[1].split())


@pytest.mark.parametrize(
    "budget",
    [
        ("--epsilon", "1"),
        ("--epsilon", "3", "--delta", "1e-6"),
        ("--order", "8", "--divergence", "2", "--delta", "1e-6"),
    ],
)
def test_a_ledger_is_explained(tmp_path: Path, budget: tuple[str, ...]) -> None:
    place = tmp_path / "a.ledger"
    assert run("ledger", "create", place, *budget)[0] == 0
    assert json.loads(run("budget", "explain", "--ledger", place, "--json")[1])["epsilon"]["upper"] == 0
    Ledger.open(place).charge(COUNT, purpose="yes")
    told = json.loads(run("budget", "explain", "--ledger", place, "--json")[1])
    assert told["epsilon"]["upper"] == pytest.approx(Ledger.open(place).status().epsilon, abs=2e-3)
    assert run("budget", "explain", "1", "--ledger", place)[0] == 2
    assert run("budget", "explain", "--ledger", place, "--delta", "1e-5")[0] == 2


def test_a_page_that_cannot_be_written_is_one_sentence(path: Path, tmp_path: Path) -> None:
    for words in (
        ("export", path, "-o", tmp_path / "no" / "a.csv"),
        ("history", path, "-o", tmp_path / "no" / "a.html"),
    ):
        code, _, err = run("ledger", *words)
        assert (code, err.count("\n")) == (2, 1)
