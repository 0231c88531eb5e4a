"""A step takes the batches that its plan drew: each once, in order, whole or in parts."""

import copy
import io
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.learning import (
    Banded,
    Flat,
    PricedPlan,
    Step,
    TrainingPlan,
    loader,
    plan,
)
from sourdine.testing import SeededBits
from tests.narrow import some

SIZE, STEPS = 40, 8
UNITS = torch.eye(SIZE)


def priced(**given: object) -> PricedPlan:
    wanted = {"noise_multiplier": 2.0**-20, "delta": 1e-3, "epochs": 2, "batch_size": 10}
    return plan(TrainingPlan(**wanted | given), size=SIZE)  # type: ignore[arg-type]


class Loop:
    """A model with a number for each unit: its gradient tells how often each unit was added."""

    def __init__(self, **given: object) -> None:
        self.model = nn.Linear(SIZE, 1, bias=False)
        nn.init.zeros_(self.model.weight)
        self.plan = priced(**given)
        self.step = Step.of(self.model, self.plan, clipping=Flat(norm=1.0), bits=SeededBits(3))
        self.drawn = [set(each.tolist()) for each in self.plan.drawing(SeededBits(5)).each()]
        self.loader = loader((UNITS,), self.plan, bits=SeededBits(5))

    def losses(self, x: Tensor) -> Tensor:
        return 4 * self.model(x).squeeze(1)

    def add(self, x: Tensor, **given: int) -> bool:
        return self.step.add(self.losses, x, **given)

    @property
    def counts(self) -> Tensor:
        """How often each unit is in the gradient, in clipping norms."""
        return (some(self.model.weight.grad)[0] * self.step.batch_size).round(decimals=2)

    def taken(self) -> list[set[int]]:
        """Take the rest of the batches, and tell whom each step counted."""
        found = []
        for (x,) in self.loader:
            self.add(x)
            self.step.close()
            found.append(self.units)
        return found

    @property
    def units(self) -> set[int]:
        """Whom the last step counted, each once."""
        assert set(self.counts.tolist()) <= {0.0, 1.0}
        return set(torch.nonzero(self.counts).flatten().tolist())


def test_each_step_counts_the_batch_that_was_drawn_for_it() -> None:
    loop = Loop()
    assert loop.taken() == loop.drawn
    assert loop.step.left == 0
    with pytest.raises(BudgetExceeded, match="All 8 batches"):
        next(iter(loop.loader))


def test_batches_added_before_one_close_are_refused() -> None:
    loop = Loop()
    batches = iter(loop.loader)
    loop.add(*next(batches))
    with pytest.raises(InvalidParameter, match=r"out of turn.*physical_batch_size"):
        loop.add(*next(batches))
    loop.step.close()
    assert loop.units == loop.drawn[0]


@pytest.mark.parametrize(
    "again", [lambda x: x, lambda x: x[:2], lambda x: x[-1:], lambda x: x.view(-1, SIZE)]
)
def test_a_batch_added_twice_is_refused(again: Callable[[Tensor], Tensor]) -> None:
    loop = Loop()
    (x,) = next(iter(loop.loader))
    loop.add(x)
    with pytest.raises(InvalidParameter, match="added twice"):
        loop.add(again(x))
    loop.step.close()
    assert loop.units == loop.drawn[0]
    with pytest.raises(InvalidParameter, match="closed before"):
        loop.add(x)


def test_parts_of_a_batch_count_once_each() -> None:
    loop = Loop()
    for (x,), drawn in zip(loop.loader, loop.drawn, strict=True):
        for part in x.split(3):
            loop.add(part)
        loop.step.close()
        assert loop.units == drawn


def test_copies_of_a_batch_count_as_the_batch_that_is_open() -> None:
    loop = Loop()
    batches = iter(loop.loader)
    (x,) = next(batches)
    loop.add(x.clone())
    with pytest.raises(InvalidParameter, match="more units than the batch"):
        loop.add(x.clone())
    loop.step.close()
    assert loop.units == loop.drawn[0]
    (first,), (second,) = next(batches), next(batches)
    with pytest.raises(InvalidParameter, match="2 batches of the loader are open"):
        loop.add(torch.cat([first, second]))


def test_a_batch_that_was_skipped_is_closed_or_dropped_first() -> None:
    loop = Loop()
    batches = iter(loop.loader)
    next(batches)
    (x,) = next(batches)
    with pytest.raises(InvalidParameter, match="neither added nor closed"):
        loop.add(x)
    loop.step.close()
    assert loop.units == set()
    loop.add(x)
    loop.step.close()
    assert loop.units == loop.drawn[1]
    with pytest.raises(InvalidParameter, match="no batch was open"):
        loop.step.close()
    assert loop.step.left == STEPS - 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_loop_goes_on_where_it_broke_off(when: str) -> None:
    loop, found = Loop(), list[set[int]]()
    for _ in range(4):
        for turn, (x,) in enumerate(loop.loader):
            if turn == 2 and when == "before":
                break
            loop.add(x)
            loop.step.close()
            found.append(loop.units)
            if turn == 2:
                break
        if loop.step.left == 0:
            break
    assert found == loop.drawn[: len(found)]
    assert len(found) == STEPS


def test_a_look_at_the_first_batch_takes_none() -> None:
    loop = Loop()
    next(iter(loop.loader))
    assert loop.taken() == loop.drawn


def test_workers_that_read_ahead_lose_no_batch() -> None:
    loop = Loop()
    loop.loader = loader((UNITS,), loop.plan, bits=SeededBits(5), num_workers=1)
    for (x,) in loop.loader:
        loop.add(x)
        loop.step.close()
        break
    assert [loop.units, *loop.taken()] == loop.drawn


@pytest.mark.parametrize("copied", [False, True])
def test_parts_that_the_loader_gives_close_by_themselves(copied: bool) -> None:
    loop, found = Loop(), list[set[int]]()
    for (x,) in loader((UNITS,), loop.plan, physical_batch_size=3, bits=SeededBits(5)):
        assert len(x) <= 3
        if loop.add(x.clone() if copied else x):
            found.append(loop.units)
        elif not copied:
            with pytest.raises(InvalidParameter, match="before all parts"):
                loop.step.close()
    assert found == loop.drawn


def test_a_loop_over_parts_goes_on_where_it_broke_off() -> None:
    loop, found = Loop(), list[set[int]]()
    parts = loader((UNITS,), loop.plan, physical_batch_size=3, bits=SeededBits(5))
    while loop.step.left:
        for turn, (x,) in enumerate(parts):
            if loop.add(x):
                found.append(loop.units)
            if turn == 4:
                break
    assert found == loop.drawn


def test_a_step_that_is_dropped_counts_as_taken() -> None:
    loop = Loop()
    batches = iter(loop.loader)
    loop.add(*next(batches))
    loop.step.drop()
    assert loop.model.weight.grad is None
    assert not loop.step._sums
    assert loop.step.left == STEPS - 1
    loop.add(*next(batches))
    loop.step.close()
    assert loop.units == loop.drawn[1]
    while loop.step.left:
        next(batches, None)
        loop.step.drop()
    with pytest.raises(BudgetExceeded):
        loop.step.drop()


def test_the_noise_of_a_step_that_is_dropped_is_used_up() -> None:
    grads = []
    for dropped in (False, True):
        model = nn.Linear(3, 1)
        wanted = TrainingPlan(
            noise_multiplier=1, delta=1e-3, epochs=2, batch_size=10, correlation=Banded(bands=3)
        )
        step = Step.of(model, plan(wanted, size=SIZE), bits=SeededBits(1))
        step.drop() if dropped else step.close()
        step.close()
        grads.append(some(model.weight.grad).clone())
    assert torch.equal(*grads)


def test_a_step_of_a_plan_takes_no_other_batches() -> None:
    loop = Loop()
    with pytest.raises(InvalidParameter, match="those that the plan draws"):
        Step.of(loop.model, priced()).add(loop.losses, UNITS)
    large = priced(batch_size=40)
    with pytest.raises(InvalidParameter, match="another plan"):
        loop.add(*next(iter(loader((UNITS,), large))))
    (x,) = next(iter(loop.loader))
    loop.add(x)
    other = Step.of(loop.model, loop.plan)
    with pytest.raises(InvalidParameter, match="another Step"):
        other.add(loop.losses, x)
    with pytest.raises(InvalidParameter, match="another loader"):
        loop.add(*next(iter(loader((UNITS,), loop.plan))))


def test_places_that_a_plan_draws_are_a_loader_too() -> None:
    loop, found = Loop(), list[set[int]]()
    for places in loop.plan.draw(SeededBits(5)):
        with pytest.raises(InvalidParameter, match="more units than the batch"):
            loop.add(UNITS)
        loop.add(UNITS[places])
        loop.step.close()
        found.append(loop.units)
    assert found == loop.drawn


def test_inputs_and_targets_of_different_rows_are_refused() -> None:
    loop = Loop()
    both = loader((UNITS, torch.arange(SIZE)), loop.plan, bits=SeededBits(5))
    x, y = next(iter(both))
    with pytest.raises(InvalidParameter, match="made of two units"):
        loop.step.add(lambda x, y: loop.losses(x) * y, x[:2], y[1:3])


def test_two_batches_in_one_call_are_refused() -> None:
    loop = Loop()
    batches = iter(loop.loader)
    (first,), (second,) = next(batches), next(batches)
    with pytest.raises(InvalidParameter, match="two logical batches"):
        loop.step.add(lambda x, y: loop.losses(x + y), first[:3], second[:3])


def test_rows_of_one_unit_stand_together() -> None:
    loop = Loop()
    (x,) = next(iter(loop.loader))
    with pytest.raises(InvalidParameter, match="added twice"):
        loop.add(x[:1].expand(4, -1))
    with pytest.raises(InvalidParameter, match="added twice"):
        loop.add(x.as_strided((4, SIZE), (0, 1), x.storage_offset()))
    views = x.unsqueeze(1).expand(-1, 2, -1).reshape(-1, SIZE)
    loop.add(views, examples_per_unit=2)
    loop.step.close()
    assert loop.units == loop.drawn[0]


def test_the_same_tensors_are_added_once_by_a_step_without_plan_too() -> None:
    model = nn.Linear(SIZE, 1)
    step = Step(model, noise_multiplier=1, batch_size=4, steps=3)
    losses = lambda x, w: (model(x).squeeze(1) * w).sin()
    ones = torch.ones(4)
    for start in (0, 4):  # what all share is no example
        step.add(losses, UNITS[start : start + 4], ones)
    with pytest.raises(InvalidParameter, match="added twice"):
        step.add(losses, UNITS[2:6], ones)
    buffer = torch.empty(4, SIZE)
    for start in (8, 12):
        buffer.copy_(UNITS[start : start + 4])
        step.add(losses, buffer, ones)
    step.close()
    step.add(losses, UNITS[2:6], ones)


COPIES: list[Callable[[object], object]] = [
    copy.copy,
    copy.deepcopy,
    pickle.dumps,
    lambda each: torch.save(each, io.BytesIO()),
]


@pytest.mark.parametrize("act", COPIES)
def test_neither_step_nor_loader_can_be_copied(act: Callable[[object], object]) -> None:
    loop = Loop()
    for each in (loop.step, loop.plan.drawing()):
        with pytest.raises(InvalidParameter, match="cannot be copied or pickled"):
            act(each)


def test_a_step_is_used_in_one_thread() -> None:
    loop, problems = Loop(), list[Exception]()
    (x,) = next(iter(loop.loader))
    loop.add(x)

    def use(act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as problem:
            problems.append(problem)

    for act in (lambda: loop.add(x), loop.step.close, loop.step.drop):
        thread = threading.Thread(target=use, args=(act,))
        thread.start()
        thread.join()
    assert ["several threads" in str(each) for each in problems] == [True] * 3
    loop.step.close()
    assert loop.units == loop.drawn[0]


def test_a_step_is_not_used_within_its_own_losses() -> None:
    loop = Loop()
    (x,) = next(iter(loop.loader))

    def losses(part: Tensor) -> Tensor:
        loop.step.close()
        return loop.losses(part)

    with pytest.raises(InvalidParameter, match="within the losses"):
        loop.step.add(losses, x)
    assert loop.step.left == STEPS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX alone")
def test_a_forked_process_takes_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop()
    (x,) = next(iter(loop.loader))
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(InvalidParameter, match="forked process"):
        loop.add(x)


@pytest.mark.parametrize("problem", [MemoryError, KeyboardInterrupt])
def test_an_add_that_fails_is_repeated_or_dropped(problem: type[BaseException]) -> None:
    loop, left = Loop(), 1000
    loop.step.physical_batch_size = 2

    def losses(x: Tensor) -> Tensor:
        nonlocal left
        left -= 1
        if not left:
            raise problem
        return loop.losses(x)

    batches = iter(loop.loader)
    loop.step.add(losses, *next(batches))
    loop.step.close()
    (x,) = next(batches)
    left = 3
    with pytest.raises(problem):
        loop.step.add(losses, x)
    loop.step.add(losses, x)
    loop.step.close()
    assert loop.units == loop.drawn[1]
    (x,) = next(batches)
    left = 3
    with pytest.raises(problem):
        loop.step.add(losses, x)
    loop.step.drop()
    assert loop.model.weight.grad is None
    assert loop.taken() == loop.drawn[3:]


def test_an_empty_batch_is_added_and_closed_like_any_other() -> None:
    loop = Loop(batch_size=1, epochs=1)
    sizes = list[int]()
    for (x,), drawn in zip(loop.loader, loop.drawn, strict=True):
        loop.add(x) if len(sizes) % 2 else None
        loop.step.close()
        assert loop.units == (drawn if len(sizes) % 2 else set())
        sizes.append(len(x))
    assert 0 in sizes


def test_correlated_noise_that_was_interrupted_ends_the_run() -> None:
    class Interrupted(SeededBits):
        def words(self, count: int, /) -> Any:
            raise KeyboardInterrupt

    wanted = TrainingPlan(
        noise_multiplier=1, delta=1e-3, epochs=2, batch_size=10, correlation=Banded(bands=3)
    )
    step = Step.of(nn.Linear(3, 1), plan(wanted, size=SIZE), bits=Interrupted(1))
    with pytest.raises(KeyboardInterrupt):
        step.close()
    with pytest.raises(Exception, match="goes on no further"):
        step.close()
