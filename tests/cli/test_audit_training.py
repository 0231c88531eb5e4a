import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.cli import app
from sourdine.core.distance import Neighbours
from tests.learning.idx_files import write_digits

QUICK = ("--canaries", "400", "--steps", "2", "--seed", "1")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["audit", "training", *map(str, words)])


def test_canaries_alone_with_a_page(tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    shown = run(*QUICK, "-o", page)
    assert shown.exit_code == 0, shown.output
    assert "Not refuted: ε is at least" in shown.stdout
    assert "about 400 canaries" in shown.stdout
    assert f"Wrote {page}." in shown.stdout
    assert "Who was there?" in page.read_text(encoding="utf-8")


def test_json_repeats_with_the_seed() -> None:
    first, again = (json.loads(run(*QUICK, "--epsilon", 2, "--json").stdout) for _ in range(2))
    assert first == again
    assert first["audited"] <= first["claimed"] <= 2 < first["reach"]
    assert first["roc"]["true_positives"][-1] == 1


def test_training_that_is_broken_is_caught() -> None:
    shown = run("--mutants", *QUICK, "--epsilon", 2, "--json")
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)
    assert (told["caught"], told["of"]) == (2, 2)
    assert [each["exceeded"] for each in told["results"]] == [False, True, True]


def test_mutants_that_get_away_end_in_code_1() -> None:
    shown = run("--mutants", "--canaries", 64, "--steps", 1, "--seed", 1, "--epsilon", 8)
    assert shown.exit_code == 1  # such a claim is beyond what so few canaries can show
    assert "caught 0/2" in shown.stdout
    assert "gradients are not clipped" in shown.stdout


def test_on_data_it_is_paid_or_says_that_it_was_not(tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "digits", 200, 50)
    words = (digits, "--epsilon", 8, "--epochs", 1, "--batch", 100, "--canaries", 100)
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert "It was not paid from a ledger." in shown.stdout
    terms = Terms(
        budget=RenyiBudget(limit=100, order=4), unit="example", neighbours=Neighbours.ADD_REMOVE, delta=1e-6
    )
    Ledger.create(tmp_path / "paid.ledger", terms).close()
    shown = run(*words, "--ledger", tmp_path / "paid.ledger")
    assert "not paid" not in shown.stdout
    with Ledger.open(tmp_path / "paid.ledger") as ledger:
        assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--mutants", "digits"), "takes no data"),
        (("digits", "--seed", "1"), "Noise that can be repeated protects nobody."),
        (("--model", "cnn"), "Name data for the model cnn."),
        (("--model", "scattering"), "must see its examples as they are"),
        (("--canaries", "3"), "'canaries' of audit training must lie between 64"),
        (("--confidence", "2"), "'confidence' of audit training must lie between 0 and 1"),
        (("--score", "luck"), "'score' of audit_training must be one of gradient, loss"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], told: str) -> None:
    shown = run(*words)
    assert shown.exit_code == 2
    assert told in " ".join(shown.stderr.split())
