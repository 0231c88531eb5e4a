"""A test holds for what was tested: where a model or its losses change, examples wait for another."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Banded, Flat, Step, TrainingPlan, loader, plan
from sourdine.learning.task import cross_entropy
from sourdine.learning.tested import fingerprint
from tests.learning.zoo.case import Written
from tests.narrow import some

QUIET = 2.0**-30
X = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()


def step_of(model: nn.Module, physical_batch_size: int | None = None) -> Step:
    return Step(
        model,
        noise_multiplier=QUIET,
        batch_size=1,
        steps=9,
        clipping=Flat(norm=0.3),
        physical_batch_size=physical_batch_size,
    )


def losses_of(model: nn.Module, *, mixed: bool = False) -> Callable[[Tensor, Tensor], Tensor]:
    def losses(x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(model(x - x.mean(0) if mixed else x), y)

    return losses


def test_a_function_with_another_switch_is_tested_again() -> None:
    model = nn.Linear(4, 2)
    step = step_of(model)
    step.add(losses_of(model), X, Y)
    before = some(step._sums.get("weight")).clone()
    with pytest.raises(InvalidParameter, match="mixes examples"):
        step.add(losses_of(model, mixed=True), X, Y)
    assert torch.equal(before, step._sums["weight"])


def test_layers_that_mix_in_training_alone_are_found_when_they_begin_to_train() -> None:
    model = Written(lambda m, x: m.inner(x - x.mean(0) if m.training else x), inner=nn.Linear(4, 2))
    step = step_of(model.eval())
    step.add(losses_of(model), X, Y)
    step.close()
    model.train()
    with pytest.raises(InvalidParameter, match="mixes examples"):
        step.add(losses_of(model), X, Y)


def test_each_function_has_its_own_way() -> None:
    model = Written(lambda m, x: m.out(m.inner(x)), inner=nn.Linear(4, 3), out=nn.Linear(3, 2))
    at_once = losses_of(model)

    def by_hand(x: Tensor, y: Tensor) -> Tensor:
        hidden = nn.functional.linear(x, model.inner.weight, model.inner.bias)
        return cross_entropy(model.out(hidden), y)

    step, sums = step_of(model), list[Tensor]()
    for losses in (at_once, by_hand, at_once, by_hand):
        if losses is by_hand and len(sums) < 2:
            with pytest.warns(UserWarning, match="Each example is run alone"):
                step.add(losses, X, Y)
        else:
            step.add(losses, X, Y)
        step.close()
        sums.append(some(model.inner.weight.grad).clone())
    for each in sums[1:]:
        assert torch.allclose(each, sums[0], atol=1e-6)


def test_functions_that_do_the_same_are_tested_once() -> None:
    model, runs = nn.Linear(4, 2), 0

    def make(scale: float) -> Callable[[Tensor, Tensor], Tensor]:
        def losses(x: Tensor, y: Tensor) -> Tensor:
            nonlocal runs
            runs += 1
            return scale * cross_entropy(model(x), y)

        return losses

    step = step_of(model)
    step.add(make(2.0), X[:6], Y[:6])
    once = runs
    step.add(make(3.0), X[6:], Y[6:])
    assert runs == once + 1
    step.close()
    of = partial(fingerprint, model)
    assert of(partial(make(2.0), X)) == of(partial(make(3.0), X + 1))
    assert of(model.forward) != of(nn.Linear(4, 2).forward)


def test_layers_frozen_or_unfrozen_between_steps_are_followed() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    step = step_of(model)
    for frozen in (True, False, True):
        model[0].requires_grad_(not frozen)
        step.add(losses_of(model), X, Y)
        step.close()
        fresh = step_of(model)
        found = {name: value.grad for name, value in model.named_parameters()}
        fresh.add(losses_of(model), X, Y)
        fresh.close()
        for name, value in model.named_parameters():
            if value.requires_grad:
                assert torch.allclose(some(found[name]), some(value.grad), atol=1e-6)
            else:
                assert found[name] is None
    assert step.left == 6
    step.add(losses_of(model), X, Y)
    model[0].requires_grad_(True)
    for act in (lambda: step.add(losses_of(model), X, Y), step.close):
        with pytest.raises(InvalidParameter, match="after a close"):
            act()
    model[0].requires_grad_(False)
    step.close()


def test_noise_that_hangs_together_has_one_set_of_parameters() -> None:
    model = nn.Linear(4, 2)
    wanted = TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=2, batch_size=4, correlation=Banded(bands=2))
    priced = plan(wanted, size=12)
    step = Step.of(model, priced)
    step.add(losses_of(model), *next(iter(loader((X, Y), priced))))
    step.close()
    model.bias.requires_grad_(False)
    with pytest.raises(InvalidParameter, match="before the Step is made"):
        step.close()


@pytest.mark.parametrize("problem", [MemoryError, KeyboardInterrupt])
def test_a_batch_that_is_added_again_after_a_failure_counts_once(problem: type[BaseException]) -> None:
    model, left = nn.Linear(4, 2), 1000

    def losses(x: Tensor, y: Tensor) -> Tensor:
        nonlocal left
        left -= 1
        if not left:
            raise problem
        return cross_entropy(model(x), y)

    step = step_of(model, physical_batch_size=2)
    step.add(losses, X[:4], Y[:4])
    left = 3
    with pytest.raises(problem):
        step.add(losses, X[4:], Y[4:])
    step.add(losses, X[4:], Y[4:])
    step.close()
    whole = some(model.weight.grad).clone()
    step.add(losses, X, Y)
    step.close()
    assert torch.allclose(whole, some(model.weight.grad), atol=1e-6)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_whatever_a_model_raises_for_an_example_is_not_told(exact: bool, alone: bool) -> None:
    model = nn.Linear(4, 2)

    class Odd(Exception):
        """Of a kind that nobody foresaw."""

    def losses(x: Tensor, y: Tensor) -> Tensor:
        assert float(x[:, 0].max()) < 50, "somebody is large"
        if float(x[:, 0].min()) < -50:
            raise Odd("somebody is small")
        out = nn.functional.linear(x, model.weight, model.bias) if alone and not exact else model(x)
        return cross_entropy(out, y)

    step = Step(model, noise_multiplier=2.0**-10, batch_size=1, steps=9, clipping=Flat(norm=0.3), exact=exact)
    odd = X.clone()
    odd[3], odd[7] = 100.0, -100.0
    fits = [place for place in range(12) if place not in (3, 7)]
    sums = list[Tensor]()
    for x, y in ((X[fits], Y[fits]), (odd, Y)):
        if alone and not exact and not sums:
            with pytest.warns(UserWarning, match="Each example is run alone"):
                step.add(losses, x, y)
        else:
            step.add(losses, x, y)
        step.close()
        sums.append(some(model.weight.grad).clone())
    assert torch.allclose(sums[0], sums[1], atol=0.02)


def test_what_mixes_from_some_size_on_is_refused() -> None:
    model = Written(lambda m, x: m.inner(x - x.mean(0) if len(x) > 8 else x), inner=nn.Linear(4, 2))
    step = step_of(model)
    with pytest.raises(InvalidParameter, match="In a batch of 18 examples"):
        step.add(losses_of(model), X, Y)
    with pytest.raises(InvalidParameter, match="In a batch of 18 examples"):
        step.check(losses_of(model), X, Y)
    step_of(model, physical_batch_size=8).add(losses_of(model), X, Y)  # as it advises


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_not_finite_from_some_size_on_is_refused(number: float) -> None:
    """No difference of such losses tells that one depends on the others, so that it would pass."""

    def mixing(m: Written, x: torch.Tensor) -> torch.Tensor:
        out = m.inner(x - x.mean(0) if len(x) > 8 else x)
        return out + number if len(x) > 8 else out

    model = Written(mixing, inner=nn.Linear(4, 2))
    with pytest.raises(InvalidParameter, match="18 made-up examples a loss is not finite"):
        step_of(model).add(losses_of(model), X, Y)
