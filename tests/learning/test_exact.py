"""Exact training: a person moves whole sums by no more than the bound, digit for digit."""

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.learning import Augmentation, Banded, Execution, Step, TrainingPlan, fit, plan
from sourdine.learning.noise.noisy_gradient import GRID_STEPS
from sourdine.mechanisms import RoundedGaussian
from sourdine.testing import SeededBits


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


def losses(model: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, y: nn.functional.cross_entropy(model(x), y, reduction="none")


def images(count: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(4)
    return torch.randn(count, 1, 6, 6, generator=source), torch.arange(count) % 3


def whole_sums(x: Tensor, y: Tensor, places: int | None, model: nn.Module | None = None) -> dict[str, Tensor]:
    model = network() if model is None else model
    step = Step(
        model,
        noise_multiplier=1,
        batch_size=64,
        steps=1,
        physical_batch_size=places,
        exact=True,
        bits=SeededBits(5),
    )
    step.take(losses(model), (x, y))
    return step._sums


@pytest.mark.parametrize("places", [1, 4, 8])
@pytest.mark.parametrize("scale", [1.0, 1e18, float("nan"), 1e-30])
def test_a_person_moves_the_sum_by_the_bound_at_most_and_nobody_else(places: int, scale: float) -> None:
    x, y = images(30)
    x[-1] *= scale
    without = whole_sums(x[:-1], y[:-1], places)
    moved = {name: each - without[name] for name, each in whole_sums(x, y, places).items()}
    square = sum(int(each) ** 2 for part in moved.values() for each in part.flatten())
    assert square <= GRID_STEPS**2
    if scale == 1:
        assert square > 0.99 * GRID_STEPS**2  # it was clipped, and hardly anything is lost


def test_the_noise_is_whole_and_of_the_planned_size() -> None:
    model = nn.Linear(60, 50)
    step = Step(model, noise_multiplier=2, batch_size=8, steps=2, exact=True, bits=SeededBits(6))
    assert step.mechanism == RoundedGaussian(sigma=2 * GRID_STEPS)
    step.close()  # an empty batch is a step like any other
    assert model.weight.grad is not None
    steps = model.weight.grad.double() * 8 * GRID_STEPS
    assert abs(float(steps.std()) / (2 * GRID_STEPS) - 1) < 0.1


def test_the_gradient_is_that_of_floats() -> None:
    """Where there is hardly any noise, the exact step and the float one differ by the grid."""
    found = []
    for exact in (False, True):
        model = network()
        step = Step(model, noise_multiplier=1e-4, batch_size=20, steps=1, exact=exact, bits=SeededBits(7))
        step.add(losses(model), *images(20))
        step.close()
        found.append(
            torch.cat([value.grad.flatten() for value in model.parameters() if value.grad is not None])
        )
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-2


def test_a_unit_on_which_the_model_fails_adds_nothing_and_changes_no_other() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 3))
    x = torch.randint(0, 5, (9, 2), generator=torch.Generator().manual_seed(1))
    y = torch.arange(9) % 3
    without = whole_sums(x[:-1], y[:-1], 4, model)
    x[-1] = 77  # no such row
    with_one = whole_sums(x, y, 4, model)
    assert all(torch.equal(with_one[name], without[name]) for name in without)


class Beside(nn.Module):
    """Mixes examples by less than the test of gradients sees, but not by less than the last digits."""

    def forward(self, x: Tensor) -> Tensor:
        return x * (1 + 1e-4 * torch.sigmoid(x.detach().sum()))


def test_a_model_whose_last_digits_hang_on_others_is_refused() -> None:
    model = nn.Sequential(nn.Linear(3, 3), Beside(), nn.Linear(3, 2))
    x, y = torch.randn(8, 3, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 2
    step = Step(model, noise_multiplier=1, batch_size=4, steps=1, physical_batch_size=4, exact=True)
    with pytest.raises(InvalidParameter, match="physical_batch_size of 1"):
        step.add(losses(model), x, y)
    Step(model, noise_multiplier=1, batch_size=4, steps=1, physical_batch_size=1, exact=True).check(
        losses(model), x, y
    )


@pytest.mark.slow
def test_fit_refuses_it_before_anything_is_paid() -> None:
    model = nn.Sequential(nn.Linear(3, 3), Beside(), nn.Linear(3, 2))
    data = (torch.randn(8, 3, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 2)
    wanted = TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=1, batch_size=4, exact=True)
    with pytest.raises(InvalidParameter, match="physical_batch_size of 1"):
        fit(model, data, wanted, execution=Execution(physical_batch_size=4))


def test_fit_pays_for_rounded_noise_at_the_same_price() -> None:
    x, y = images(60)
    float_plan = TrainingPlan(noise_multiplier=1.5, delta=1e-3, epochs=1, batch_size=12)
    exact_plan = TrainingPlan(noise_multiplier=1.5, delta=1e-3, epochs=1, batch_size=12, exact=True)
    trained = fit(network(), (x, y), exact_plan, execution=Execution(physical_batch_size=2))
    spend = trained.spends[0]
    assert spend.mechanism == RoundedGaussian(sigma=Fraction(3, 2) * GRID_STEPS)
    assert spend.distance == Distance.l2(GRID_STEPS)
    assert trained.epsilon == plan(float_plan, size=60).epsilon
    assert spend.one_loss() == plan(float_plan, size=60).spend(7.0).one_loss()
    assert trained.declarations is not None
    assert trained.declarations["exact"] == f"grid of {GRID_STEPS} steps"


def test_changed_images_and_people_with_several() -> None:
    x, y = images(24)
    trained = fit(
        network(),
        (x, y),
        TrainingPlan(noise_multiplier=1, delta=1e-2, epochs=1, batch_size=4, exact=True),
        units=[i // 3 for i in range(24)],
        augmentation=Augmentation(flip=True, copies=2),
        execution=Execution(physical_batch_size=2),
    )
    assert all(bool(torch.isfinite(value).all()) for value in trained.model.parameters())


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="not be given with a 'correlation'"):
        TrainingPlan(epsilon=1, delta=1e-5, epochs=1, exact=True, correlation=Banded())
    for noise in (1e-9, 5000):
        with pytest.raises(InvalidParameter, match="in exact training"):
            TrainingPlan(noise_multiplier=noise, delta=1e-5, epochs=1, batch_size=2, exact=True)
