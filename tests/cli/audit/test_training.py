import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.cli import app
from sourdine.core.distance import Neighbours
from tests.learning.idx_files import write_digits

QUICK = ("--canaries", "400", "--gradients", "400", "--steps", "2", "--seed", "1")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["audit", "training", *map(str, words)])


def test_canaries_alone_with_a_page(tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    shown = run(*QUICK, "--html", page)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(
        "The trained model can show an epsilon of at most "
    )  # before it is trained
    assert "Not refuted: ε is at least" in shown.stdout
    assert "about 400 canaries" in shown.stdout
    assert "of 400 gradient canaries guessed right" in shown.stdout
    assert "a faultless run shows" in shown.stdout
    for name in ("noise scale", "noise law", "noise reuse", "batch sizes", "drawing", "clipping", "steps"):
        assert name in shown.stdout
    assert "FAILS" not in shown.stdout
    assert f"Wrote {page}." in shown.stdout
    text = page.read_text(encoding="utf-8")
    assert "Who was there?" in text
    assert "Every step, checked against the claim" in text


def test_json_repeats_with_the_seed() -> None:
    first, again = (json.loads(run(*QUICK, "--epsilon", 2, "--json").stdout) for _ in range(2))
    assert first == again
    assert first["audited"] <= first["claimed"] <= 2 < first["reach"]
    assert first["roc"]["true_positives"][-1] == 1
    assert not first["refuted"]
    assert not any(each["failed"] for each in first["checks"])
    assert len(first["checks"]) == 8
    assert first["every_step"]["canaries"] == 400


def test_on_data_it_is_paid_or_says_that_it_was_not(tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "digits", 200, 50)
    words = (
        digits,
        "--epsilon",
        8,
        "--epochs",
        1,
        "--batch-size",
        100,
        "--canaries",
        100,
        "--gradients",
        100,
    )
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert "It was not paid from a ledger." in shown.stdout
    assert "not told beside data" in " ".join(shown.stdout.split())
    terms = Terms(
        budget=RenyiBudget(limit=100, order=4), unit="example", neighbours=Neighbours.ADD_REMOVE, delta=1e-6
    )
    Ledger.create(tmp_path / "paid.ledger", terms).close()
    shown = run(*words, "--ledger", tmp_path / "paid.ledger")
    assert "not paid" not in shown.stdout
    assert "The checks of noise and batches are left out" in " ".join(shown.stdout.split())
    assert "noise scale" not in shown.stdout
    with Ledger.open(tmp_path / "paid.ledger") as ledger:
        assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("digits", "--seed", "1"), "Noise that can be repeated protects nobody."),
        (("--model", "cnn"), "Name data for the model cnn."),
        (("--model", "scattering"), "must see its examples as they are"),
        (("--canaries", "3"), "'canaries' of audit training must lie between 64"),
        (("--gradients", "3"), "'gradients' of audit training must lie between 64"),
        (("--confidence", "2"), "'confidence' of audit training must lie strictly between 0 and 1"),
        (("--score", "luck"), "'score' of audit_training must be one of gradient, loss"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], told: str) -> None:
    shown = run(*words)
    assert shown.exit_code == 2
    assert told in " ".join(shown.stderr.split())
