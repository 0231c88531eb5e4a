"""A norm that follows a quantile: no unit's vector is longer for it, and the share is found under noise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import (
    Banded,
    Checkpoint,
    Execution,
    Processes,
    Progress,
    QuantileClipping,
    Step,
    Trained,
    TrainingPlan,
    fit,
)
from sourdine.learning.gradients.adaptive import WITHIN, FollowingNorm
from sourdine.learning.gradients.way import GradientWay
from sourdine.testing import SeededBits
from tests.narrow import some

_FOLLOWED: dict[str, Any] = {
    "noise_multiplier": 1,
    "batch_size": 2,
    "steps": 1,
    "clipping": QuantileClipping(),
}


def step_of(model: nn.Module, clipping: QuantileClipping, *, noise: float = 1.0, steps: int = 1) -> Step:
    return Step(
        model, noise_multiplier=noise, batch_size=100, steps=steps, clipping=clipping, bits=SeededBits(1)
    )


def losses(model: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda x: model(x).squeeze(1)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.7, 1.0, 50.0, 1e30, float("inf"), float("nan")])
def test_no_unit_moves_gradient_and_count_together_by_more_than_the_norm(scale: float) -> None:
    model = nn.Linear(4, 1, bias=False)
    step = step_of(model, QuantileClipping(norm=0.7))
    step.norm = 3.0  # in the midst of a run
    step.take(losses(model), (torch.tensor([[0.6, 0.8, 0, 0]]) * scale,))
    sums = dict(step._sums)
    assert step._follower is not None
    count = float(sums.pop(WITHIN))
    assert abs(count) == 1
    assert (count == 1) == (scale <= 3.0)
    gradient = float(sums["weight"].double().norm())
    assert gradient**2 + (step._follower.clipping.sine * count * 0.7) ** 2 <= 0.7**2


def test_the_mean_is_that_of_gradients_clipped_to_the_norm_of_the_step() -> None:
    model = nn.Linear(3, 1, bias=False)
    step = step_of(model, QuantileClipping(norm=1.0), noise=1e-6)
    step.norm = 2.0
    step.take(losses(model), (torch.tensor([[1.0, 0, 0], [0, 8.0, 0]]),))
    step.close()
    assert model.weight.grad is not None
    torch.testing.assert_close(model.weight.grad * 100, torch.tensor([[1.0, 2.0, 0.0]]), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("quantile", [0.2, 0.8])
def test_the_norm_comes_to_the_quantile(quantile: float) -> None:
    model = nn.Linear(2, 1, bias=False)
    step = step_of(model, QuantileClipping(norm=10.0, quantile=quantile, rate=0.5), steps=40)
    lengths = torch.linspace(0.01, 1.0, 100)
    for _ in range(40):
        step.take(losses(model), (torch.stack([lengths, torch.zeros(100)], 1),))
        step.close()
    assert abs(step.norm - quantile) < 0.12


def test_an_empty_batch_is_a_step_like_any_other() -> None:
    model = nn.Linear(2, 1)
    step = step_of(model, QuantileClipping())
    step.close()
    assert model.weight.grad is not None
    assert step.norm != 1.0


def test_the_count_takes_little_of_a_large_batch_and_at_most_half_of_the_length() -> None:
    clipping = QuantileClipping()
    large = FollowingNorm(limit=1.0, sine=clipping.sine(1.0, 1000))
    small = FollowingNorm(limit=1.0, sine=clipping.sine(5.0, 10))
    assert 0.9999 < large.cosine < 1
    assert 0.86 < small.cosine < 0.87


def test_fixed_norms_only_with_exact_steps() -> None:
    with pytest.raises(InvalidParameter, match="fixed norm"):
        Step(nn.Linear(2, 1), **_FOLLOWED, exact=True)


def test_units_run_one_at_a_time_count_alike() -> None:
    sums = []
    for way in (GradientWay(), GradientWay(reason="they mix")):
        torch.manual_seed(1)
        model = nn.Linear(3, 1)
        step = step_of(model, QuantileClipping(norm=0.5))
        step.ready(way)
        step.take(losses(model), (torch.tensor([[0.1, 0, 0], [0, 8.0, 0], [9.0, 0, 0], [0, 0, torch.nan]]),))
        sums.append(step._sums)
    assert float(sums[0][WITHIN]) == float(sums[1][WITHIN]) == -4.0  # a bias alone is as long as 1
    for name in ("weight", "bias"):
        torch.testing.assert_close(sums[0][name], sums[1][name])


X = torch.randn(60, 3, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()


def trained(path: Path, *, killed_at: int = 0, **plan: object) -> Trained:
    def watch(now: Progress) -> None:
        if now.step == killed_at:
            raise KeyboardInterrupt

    return fit(
        nn.Linear(3, 2),
        (X, Y),
        TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=2, batch_size=20, **plan),  # type: ignore[arg-type]
        clipping=QuantileClipping(norm=0.1),
        checkpoint=path,
        execution=Execution(physical_batch_size=7),
        progress=watch,
        bits=SeededBits(3),
    )


def test_a_run_goes_on_with_the_norm_that_it_had(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        trained(path, killed_at=3)
    first = some(Checkpoint(path).load()).parts["norm"]
    assert first > 0.1  # gradients are longer than that
    done = trained(path)
    assert done.resumed
    assert some(Checkpoint(path).load()).parts["norm"] > first
    fixed = fit(
        nn.Linear(3, 2), (X, Y), TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=2, batch_size=20)
    )
    assert done.epsilon == fixed.epsilon  # the count is part of what was paid


def test_correlated_noise_and_several_processes_have_a_fixed_norm(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="fixed norm"):
        trained(tmp_path / "run.pt", correlation=Banded(bands=2))
    assert not (tmp_path / "run.pt").exists()
    with pytest.raises(InvalidParameter, match="fixed norm"):
        Step(nn.Linear(2, 1), **_FOLLOWED, processes=Pair(alone=True))


class Pair(Processes):
    """One of two, as far as a step asks."""

    @property
    def count(self) -> int:
        return 2
