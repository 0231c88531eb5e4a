import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Release
from sourdine.cli import app
from sourdine.core.distance import Distance
from sourdine.mechanisms import PartitionThreshold

KEYS = Spend(
    mechanism=PartitionThreshold.within(rho=Fraction(1, 100), delta=2e-7, keys=2), distance=Distance.linf(1)
)


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "survey.ledger"
    given = ("--epsilon", 3, "--delta", "1e-6", "--selection-delta", "5e-7")
    assert run("ledger", "create", place, *given)[0] == 0
    return place


def test_the_budget_is_for_what_the_selection_delta_leaves(path: Path) -> None:
    ledger = Ledger.open(path)
    assert ledger.terms.selection_delta == Fraction(5, 10**7)
    assert 2.999 < ledger.status().epsilon_limit <= 3
    code, out, _ = run("ledger", "status", path)
    assert code == 0
    assert "that is epsilon 3 at delta 1e-6" in out
    assert "For keys     delta 5e-7 of 5e-7 left" in out


def test_history_and_export_tell_the_deltas(path: Path, tmp_path: Path) -> None:
    Ledger.open(path).charge(KEYS, purpose="which towns", author="Ada")
    delta = str(Fraction(KEYS.one_loss().delta))
    assert "delta" in run("ledger", "history", path)[1]
    entry = json.loads(run("ledger", "history", path, "--json")[1])["entries"][0]
    assert (entry["delta"], entry["delta_total"]) == (delta, delta)
    table, page = tmp_path / "spends.csv", tmp_path / "spending.html"
    assert run("ledger", "export", path, "-o", table)[0] == 0
    with table.open(newline="") as file:
        assert next(csv.DictReader(file))["delta"] == delta
    assert run("ledger", "history", path, "--html", page)[0] == 0
    assert "For choosing keys privately" in page.read_text()
    status = json.loads(run("ledger", "status", path, "--json")[1])
    assert (status["selection_delta"], status["selection_delta_spent"]) == ("1/2000000", delta)


def test_the_word_of_0_1_is_read_and_told(tmp_path: Path) -> None:
    words = ("ledger", "create", tmp_path / "old.ledger", "--epsilon", 3, "--delta", "1e-6")
    code, _, err = run(*words, "--reserve=5e-7")
    assert code == 0
    assert "'--reserve' is called '--selection-delta' now" in " ".join(err.split())
    assert Ledger.open(tmp_path / "old.ledger").terms.selection_delta == Fraction(5, 10**7)


def test_a_forecast_stops_at_the_selection_delta(path: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps([KEYS.to_json()]))
    code, out, _ = run("ledger", "forecast", path, "--spends", plan)
    fits = Fraction(5, 10**7) // Fraction(KEYS.one_loss().delta)
    assert code == 0
    assert f"{fits} more fit" in out
    assert "and delta" in out


def test_a_certificate_says_what_went_into_keys(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path)
    receipt = ledger.charge(KEYS, purpose="which towns", author="Ada")
    release = Release(values=None, intervals=None, spends=(KEYS,), receipt=receipt)
    place = tmp_path / "certificate.json"
    place.write_text(release.certificate(ledger).to_json())
    code, out, _ = run("certificate", "verify", place, "--ledger", path)
    assert code == 0
    assert "went into choosing keys" in out


def test_a_pure_budget_with_a_selection_delta(tmp_path: Path) -> None:
    code, out, _ = run("ledger", "create", tmp_path / "a.ledger", "--epsilon", 1, "--selection-delta", "1e-6")
    assert code == 0
    assert "epsilon 1 at delta 1e-6" in out


@pytest.mark.parametrize("selection_delta", ["1e-6", "2e-6", "0", "half"])
def test_a_selection_delta_that_leaves_nothing_is_refused(tmp_path: Path, selection_delta: str) -> None:
    place = tmp_path / "b.ledger"
    code, _, err = run(
        "ledger", "create", place, "--rho", "0.1", "--delta", "1e-6", "--selection-delta", selection_delta
    )
    assert code != 0
    assert "'selection_delta' of ledger create" in err
    assert not place.exists()
