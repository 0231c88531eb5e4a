import math

import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Execution, Progress, TrainingPlan, fit
from sourdine.learning.data.examples import Tensors
from sourdine.learning.evaluation.judging import Judge, check_metrics
from sourdine.learning.task import Task, cross_entropy

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(2))
Y = (X[:, 0] > 0).long()
PLAN = TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=2, batch_size=20)
FEW = Execution(physical_batch_size=20)


def hits(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (outputs.argmax(1) == targets).float().mean()


def test_metrics_are_told_of_all_public_examples_after_each_epoch() -> None:
    trained = fit(
        nn.Linear(3, 2),
        (X, Y),
        PLAN,
        public=(X, Y),
        metrics={"hits": hits, "count": lambda outputs, targets: len(targets)},
        execution=FEW,
    )
    assert len(trained.history) == 2
    for now in trained.history:
        assert now.accuracy is not None
        assert now.metrics["hits"] == pytest.approx(now.accuracy)
        assert now.metrics["count"] == 40


def test_a_metric_that_fails_later_does_not_end_a_run_that_is_paid() -> None:
    sound = [True]

    def fragile(outputs: torch.Tensor, targets: torch.Tensor) -> float:
        return 1.0 / sound.pop()

    judge = Judge(Task(nn.Linear(3, 2), cross_entropy), Tensors(X, Y), {"fragile": fragile})
    judge.rehearse()
    now = judge.judged(Progress(step=1, steps=1, epoch=1, epsilon=1.0))
    assert math.isnan(now.metrics["fragile"])
    assert now.loss is not None


def test_a_metric_that_cannot_be_computed_is_refused_before_anything_is_paid() -> None:
    with pytest.raises(InvalidParameter, match="The metric 'both' cannot be computed"):
        fit(nn.Linear(3, 2), (X, Y), PLAN, public=(X, Y), metrics={"both": lambda o, t: o}, execution=FEW)
    with pytest.raises(InvalidParameter, match="need 'public' examples"):
        fit(nn.Linear(3, 2), (X, Y), PLAN, metrics={"hits": hits}, execution=FEW)
    with pytest.raises(InvalidParameter, match="a dict from names to functions"):
        check_metrics([hits], (X, Y))
