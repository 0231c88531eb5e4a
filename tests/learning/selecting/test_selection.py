"""The best of several trainings is told, paid once, and nothing else of them."""

from pathlib import Path

import pytest
import torch
from torch import nn

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.learning import Candidate, Execution, Trained, TrainingPlan, fit, plan, select_best
from sourdine.testing import SeededBits

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()
WANTED = TrainingPlan(noise_multiplier=4, delta=1e-3, epochs=1, batch_size=20)


def train() -> Trained:
    return fit(nn.Linear(3, 2), (X, Y), WANTED, public=(X, Y), execution=Execution(physical_batch_size=20))


def test_the_best_is_told_and_the_ledger_pays_before_the_first_run(tmp_path: Path) -> None:
    scores, told = iter([float("nan"), 0.9, 0.5, *[0.1] * 50]), []
    path = tmp_path / "one.ledger"
    Ledger.create(path, divergence=60, delta=1e-3, order=8).close()

    def score(trained: Trained) -> float:
        with Ledger.open(path) as ledger:
            assert len(ledger.history()) == 1
        told.append(next(scores))
        return told[-1]

    candidates = [Candidate(plan=plan(WANTED, size=40), train=train)] * 2
    found = select_best(candidates, mean=4, score=score, ledger=path, bits=SeededBits(27))
    assert len(told) > 1
    assert found.score == 0.9
    assert found.receipt is not None
    assert found.trained.epsilon.upper < found.epsilon < 4 * found.trained.epsilon.upper


def test_a_candidate_that_ran_another_plan_is_refused() -> None:
    other = TrainingPlan(noise_multiplier=5, delta=1e-3, epochs=1, batch_size=20)
    with pytest.raises(InvalidParameter, match="by the plan that it states"):
        select_best([Candidate(plan=plan(other, size=40), train=train)], mean=2, bits=SeededBits(1))
    with pytest.raises(InvalidParameter, match="hold one at least"):
        select_best([], mean=2)
