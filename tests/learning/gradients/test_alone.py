import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sourdine.learning import Clipping, Flat
from sourdine.learning.gradients.alone import Alone
from tests.learning import reference
from tests.learning.sums import CLIPPINGS, layer_of, losses_of


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("examples_per_unit", [1, 2])
def test_the_sum_is_that_of_the_definitions(
    clipping: Callable[[float], Clipping], examples_per_unit: int
) -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    x, losses = torch.randn(6, 4), losses_of(model)
    each = reference.merged(reference.gradients(model, losses, x), examples_per_unit)
    norms = [math.sqrt(sum(float(value.square().sum()) for value in one.values())) for one in each]
    made = clipping(sorted(norms)[len(norms) // 2])
    found = Alone(model, made).clipped_sum(losses, (x,), examples_per_unit=examples_per_unit)
    expected = reference.clipped(each, made, {name: layer_of(name) for name in each[0]})
    assert reference.distance(found, expected) < 1e-5


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_unit_that_fails_or_is_not_finite_adds_exactly_nothing(odd: float) -> None:
    model, x = nn.Linear(3, 1), torch.randn(5, 3)

    def losses(x: Tensor) -> Tensor:
        if bool((x > 50).any() & (x < 1000).any()):
            raise ValueError("too large")
        return model(x).squeeze(1)

    spoilt = x.clone()
    spoilt[1], spoilt[3] = odd, 99.0
    alone = Alone(model, Flat())
    found = alone.clipped_sum(losses, (spoilt,), strict=False)
    expected = alone.clipped_sum(losses, (x[[0, 2, 4]],))
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    with pytest.raises(ValueError, match="too large"):
        alone.clipped_sum(losses, (spoilt,))


def test_memory_that_runs_out_is_told() -> None:
    model = nn.Linear(3, 1)

    def losses(x: Tensor) -> Tensor:
        raise RuntimeError("can't allocate memory")

    with pytest.raises(RuntimeError, match="allocate"):
        Alone(model, Flat()).clipped_sum(losses, (torch.ones(2, 3),), strict=False)
