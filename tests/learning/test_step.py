from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Flat, Step
from sourdine.testing import SeededBits
from tests.narrow import some

QUIET = 2.0**-30


def small() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def losses(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], torch.Tensor]:
    return lambda: nn.functional.cross_entropy(model(x), y, reduction="none")


def clipped_by_hand(model: nn.Module, x: torch.Tensor, y: torch.Tensor, norm: float) -> list[torch.Tensor]:
    total = [torch.zeros_like(value) for value in model.parameters()]
    for i in range(len(x)):
        loss = nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
        found = torch.autograd.grad(loss, list(model.parameters()))
        length = torch.sqrt(sum(((each**2).sum() for each in found), torch.zeros(())))
        for so_far, add in zip(total, found, strict=True):
            so_far.add_(add * min(1.0, norm / float(length)))
    return total


@pytest.mark.parametrize("cuts", [[20], [1, 19], [7, 7, 6]])
def test_physical_batches_of_any_size_add_up(cuts: list[int]) -> None:
    model, x, y = small(), torch.randn(20, 4), torch.randint(0, 3, (20,))
    step = Step(model, noise_multiplier=QUIET, batch_size=32, clipping=Flat(norm=0.3))
    for xs, ys in zip(x.split(cuts), y.split(cuts), strict=True):
        step.add(losses(model, xs, ys))
    step.close()
    for value, expected in zip(model.parameters(), clipped_by_hand(model, x, y, 0.3), strict=True):
        assert torch.allclose(some(value.grad), expected / 32, atol=1e-6)


def test_steps_do_not_remember_each_other() -> None:
    model, x, y = small(), torch.randn(5, 4), torch.randint(0, 3, (5,))
    step = Step(model, noise_multiplier=QUIET, batch_size=5)
    step.add(losses(model, x, y))
    step.close()
    first = [some(value.grad).clone() for value in model.parameters()]
    step.add(losses(model, x, y))
    step.close()
    for value, before in zip(model.parameters(), first, strict=True):
        assert torch.allclose(some(value.grad), before, atol=1e-6)


def test_an_empty_batch_is_noise_of_the_right_law() -> None:
    model = nn.Linear(200, 100)
    step = Step(model, noise_multiplier=1.5, batch_size=10, clipping=Flat(norm=2.0), bits=SeededBits(1))
    step.close()
    found = torch.cat([some(value.grad).flatten() for value in model.parameters()]).numpy()
    assert kstest(found, "norm", args=(0, 1.5 * 2.0 / 10)).pvalue > 1e-6
    assert kstest(found, "norm", args=(0, 1.1 * 1.5 * 2.0 / 10)).pvalue < 1e-6


def test_noise_is_drawn_once_a_batch_and_afresh_each_time() -> None:
    model, x, y = nn.Linear(50, 100), torch.zeros(6, 50), torch.zeros(6, dtype=torch.int64)
    step = Step(model, noise_multiplier=1.0, batch_size=1, clipping=Flat(norm=1.0), bits=SeededBits(2))
    spreads, first = [], None
    for parts in (1, 6):
        for part in torch.arange(6).chunk(parts):
            step.add(losses(model, x[part], y[part]))
        step.close()
        grad = some(model.weight.grad).numpy().copy()
        spreads.append(grad.std())  # the weight's own gradient is 0 where the input is
        assert first is None or not np.array_equal(first, grad)
        first = grad
    assert spreads == pytest.approx([1.0, 1.0], rel=0.05)


def test_nothing_is_left_on_the_model_and_frozen_parts_stay() -> None:
    model = small()
    model[0].requires_grad_(False)
    before = set(model.__dict__), [set(layer.__dict__) for layer in model]
    step = Step(model, noise_multiplier=1.0, batch_size=4)
    step.add(losses(model, torch.randn(4, 4), torch.zeros(4, dtype=torch.int64)))
    step.close()
    assert before == (set(model.__dict__), [set(layer.__dict__) for layer in model])
    assert not model._forward_hooks
    assert not model[2]._forward_hooks
    assert model[0].weight.grad is None
    assert model[2].weight.grad is not None


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.AdamW])
def test_any_optimizer_steps_on_it(kind: type) -> None:
    model = small()
    before = [value.detach().clone() for value in model.parameters()]
    step = Step(model, noise_multiplier=1.0, batch_size=4)
    optimizer = kind(model.parameters(), lr=0.01)
    step.close()
    optimizer.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_half_precision_gets_noise_in_single() -> None:
    model = nn.Linear(3, 2).to(torch.bfloat16)
    step = Step(model, noise_multiplier=1.0, batch_size=1)
    step.close()
    assert some(model.weight.grad).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("field", "bad"),
    [("noise_multiplier", 0), ("noise_multiplier", -1), ("batch_size", 0), ("batch_size", 2.5)],
)
def test_bad_parameters_name_themselves(field: str, bad: Any) -> None:
    with pytest.raises(InvalidParameter, match=f"'{field}' of Step"):
        Step(small(), **{"noise_multiplier": 1.0, "batch_size": 4, field: bad})


def test_a_mean_over_the_batch_is_refused() -> None:
    model = small()
    step = Step(model, noise_multiplier=1.0, batch_size=4)
    with pytest.raises(InvalidParameter, match="one number for each example"):
        step.add(lambda: nn.functional.cross_entropy(model(torch.randn(4, 4)), torch.zeros(4).long()))


def test_noise_hides_all_digits_of_a_double() -> None:
    # float32 noise on a float64 sum would leave the sum's last digits to be read off
    model = nn.Linear(3, 2).double()
    step = Step(model, noise_multiplier=1.0, batch_size=1)
    step.add(lambda: model(torch.rand(5, 3, dtype=torch.float64)).sum(1))
    step.close()
    for value in model.parameters():
        grad = some(value.grad)
        assert grad.dtype == torch.float64
        assert torch.equal(grad, grad.float().double())


def test_losses_that_were_computed_before_are_refused() -> None:
    model = small()
    computed = losses(model, torch.randn(5, 4), torch.zeros(5, dtype=torch.int64))()
    with pytest.raises(InvalidParameter, match="lambda"):
        Step(model, noise_multiplier=1.0, batch_size=5).add(computed)  # type: ignore[arg-type]
