import json
from functools import partial
from pathlib import Path

import torch
from torch import nn

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.learning import TrainingPlan, UnitIds, card_of, fit
from sourdine.testing import SeededBits

DATA = (torch.randn(100, 3), torch.zeros(100, dtype=torch.int64))
run_plan = partial(TrainingPlan, noise_multiplier=1.0, delta=1e-3, epochs=1, batch_size=20)


def test_a_card_holds_the_claim_and_the_certificate(tmp_path: Path) -> None:
    budget = RenyiBudget(limit=50, order=4)
    terms = Terms(budget=budget, unit="person", neighbours=Neighbours.ADD_REMOVE, delta=1e-5)
    ledger = Ledger.create(tmp_path / "l", terms)
    trained = fit(nn.Linear(3, 2), DATA, run_plan(), ledger=ledger, public=DATA)
    card = card_of(trained, ledger, name="Toy")
    assert Certificate.from_json(json.dumps(json.loads(card.to_json())["certificate"])).verify(ledger) == ()
    text = card.text()
    assert text.startswith("# Toy\n")
    assert f"{trained.epsilon.upper:.6g}" in text
    assert "| unit | example |" in text
    assert "| accuracy on public data | " in text
    assert all(note in text for note in trained.notes)
    assert "32-bit" in text


def test_an_unpaid_card_says_so_and_so_does_a_seeded_one() -> None:
    card = card_of(fit(nn.Linear(3, 2), DATA, run_plan(), bits=SeededBits(1)))
    assert "No ledger paid" in card.text()
    assert "protects nobody" in card.text()
    assert json.loads(card.to_json())["certificate"] is None


def test_people_are_named() -> None:
    card = card_of(
        fit(nn.Linear(3, 2), DATA, run_plan(), units=UnitIds(torch.arange(100) // 2, max_examples=2))
    )
    assert "| unit | person, at most 2 examples of each at a time |" in card.text()


def test_the_card_of_an_exact_run_does_not_speak_of_floats() -> None:
    text = card_of(fit(nn.Linear(3, 2), DATA, run_plan(exact=True), bits=SeededBits(1))).text()
    assert "whole numbers" in text
    assert "32-bit" not in text
    assert "real numbers" not in text
