"""A test of gradients is made again where the model or its losses change, and from time to time."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter, VoidRun
from sourdine.learning import Execution, Flat, Progress, Step, TrainingPlan, check, fit, loader, plan
from sourdine.learning.gradients.self_test import compare_gradients
from sourdine.learning.task import cross_entropy
from tests.learning.zoo.case import Written

X = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()
MIXED = False
GROWN: list[int] = []


def centred(x: Tensor, mixed: object) -> Tensor:
    return x - x.mean(0) if mixed else x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
        self.mode, self.strength, self.calls = "apart", 0.0, 0
        self.options = {"mix": [False]}

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.mode == "together" or self.strength > 0 or self.options["mix"][0]
        out: Tensor = self.last(self.first(centred(x, mixed)).tanh())
        return out


class Owner:
    """Somebody's class around a model, whose method gives the losses."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.mixed = model, False

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        x = centred(x, self.mixed or MIXED or len(GROWN) > 5)
        return cross_entropy(self.model(x), y)


def _global(model: Any, owner: Owner) -> None:
    globals()["MIXED"] = True


def _hook(model: Any, owner: Owner) -> None:
    model.last.register_forward_hook(lambda layer, args, out: out - out.mean(0))


def _forward(model: Any, owner: Owner) -> None:
    plain = model.forward
    model.forward = lambda x: plain(x) - plain(x).mean(0)


CHANGES: dict[str, Callable[[Any, Owner], Any]] = {
    "a switch of the module": _global,
    "a list that grows": lambda model, owner: GROWN.extend(range(10)),
    "an attribute of the model": lambda model, owner: setattr(model, "mode", "together"),
    "a number of the model": lambda model, owner: setattr(model, "strength", 0.5),
    "an option deep in the model": lambda model, owner: model.options["mix"].__setitem__(0, True),
    "an attribute of the owner": lambda model, owner: setattr(owner, "mixed", True),
    "a layer": lambda model, owner: setattr(model, "first", nn.BatchNorm1d(4)),
    "a hook": _hook,
    "the forward": _forward,
}


@pytest.fixture(autouse=True)
def _as_it_was() -> Any:
    yield
    globals()["MIXED"] = False
    GROWN.clear()


def moved(step: Step, owner: Owner) -> float:
    """By how many norms one example moves the sum."""
    sums = []
    for x in (X, torch.cat([100 * X[:1], X[1:]])):
        step.add(owner.losses, x.clone(), Y.clone())
        sums.append(torch.cat([each.flatten() for each in step._sums.values()]))
        step.close()
    return float((sums[0] - sums[1]).norm())


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_the_test_is_refused_before_examples_are_seen(change: str) -> None:
    model = Net()
    owner = Owner(model)
    step = Step(model, noise_multiplier=1, batch_size=40, steps=9, clipping=Flat(norm=1.0))
    assert moved(step, owner) <= 2.01
    before = copy.deepcopy(model.state_dict())
    CHANGES[change](model, owner)
    with pytest.raises(InvalidParameter):
        step.add(owner.losses, X, Y)
    assert not step._sums
    assert step.left == 7
    if change != "a layer":
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_change_that_is_taken_back_is_let_pass() -> None:
    model = Net()
    owner = Owner(model)
    step = Step(model, noise_multiplier=1, batch_size=40, steps=9)
    step.add(owner.losses, X, Y)
    step.close()
    owner.mixed = True
    with pytest.raises(InvalidParameter):
        step.add(owner.losses, X, Y)
    owner.mixed = False
    step.add(owner.losses, X, Y)
    step.close()


@pytest.mark.parametrize("change", ["a switch of the module", "a list that grows", "a hook", "the forward"])
def test_a_change_while_examples_are_taken_in_voids_the_step(change: str) -> None:
    model = Net()
    owner = Owner(model)

    def losses(x: Tensor, y: Tensor) -> Tensor:
        found = owner.losses(x, y)
        if float(x.abs().max()) > 50:  # as no made-up example has it
            CHANGES[change](model, owner)
        return found

    step = Step(model, noise_multiplier=1, batch_size=40, steps=9)
    step.add(losses, X, Y)
    step.close()
    with pytest.raises(VoidRun, match="nothing is claimed from step 2 on"):
        step.add(losses, torch.cat([100 * X[:1], X[1:]]), Y)
    with pytest.raises(VoidRun):
        step.close()


@pytest.mark.parametrize("kept", ["closure", "global"])
def test_what_mixes_from_some_call_on_is_found_when_the_test_is_due(kept: str) -> None:
    calls = 0
    model = nn.Linear(4, 2)

    def losses(x: Tensor, y: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if kept == "global":
            GROWN.append(0)
        late = (len(GROWN) if kept == "global" else calls) > 150
        return cross_entropy(model(centred(x, late)), y)

    step = Step(model, noise_multiplier=1, batch_size=40, steps=90)

    def train() -> None:
        while step.left:
            step.add(losses, X.clone(), Y.clone())
            step.close()

    with pytest.raises(VoidRun, match=r"passed its test before step \d+ and fails it at step \d+"):
        train()
    assert calls > 150
    assert 1 <= step.claimed <= 90 - step.left


def test_what_mixes_after_the_last_power_of_two_is_found_in_the_last_step() -> None:
    model = nn.Linear(4, 2)

    class Odd:
        """An object whose attributes are not looked at."""

        __slots__ = ("late",)

    odd = Odd()
    odd.late = False  # type: ignore[attr-defined]

    def losses(x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(model(centred(x, odd.late)), y)  # type: ignore[attr-defined]

    step = Step(model, noise_multiplier=1, batch_size=40, steps=7)
    for _ in range(6):
        step.add(losses, X.clone(), Y.clone())
        step.close()
    odd.late = True  # type: ignore[attr-defined]
    assert step.claimed == 6
    with pytest.raises(VoidRun, match="nothing is claimed from step 5 on"):
        step.add(losses, X.clone(), Y.clone())
    assert step.claimed == 4


def test_fit_hands_out_nothing_if_the_model_changes_on_the_way(tmp_path: Any) -> None:
    switch = {"mixed": False}
    model = Written(lambda m, x: m.inner(centred(x, switch["mixed"])), inner=nn.Linear(4, 2))

    def watch(now: Progress) -> None:
        switch["mixed"] = now.step >= 5

    ledger = Ledger.create(tmp_path / "l", order=8, divergence=50, delta=1e-3)
    with pytest.raises((VoidRun, InvalidParameter)):
        fit(
            model,
            (X, Y),
            TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=2, batch_size=4),
            execution=Execution(physical_batch_size=8),
            progress=watch,
            ledger=ledger,
        )
    assert ledger.status().blocks == 1


def test_fit_ends_if_the_loss_is_switched() -> None:
    owner = Owner(nn.Identity())
    switch = lambda now: setattr(owner, "mixed", now.step >= 3)
    with pytest.raises((VoidRun, InvalidParameter)):
        fit(
            nn.Linear(4, 2),
            (X, Y),
            TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=2, batch_size=8),
            loss=owner.losses,
            execution=Execution(physical_batch_size=8),
            progress=switch,
        )


def test_fit_ends_if_the_model_mixes_late() -> None:
    calls = 0

    def run(m: Any, x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        found: Tensor = m.inner(centred(x, calls > 300))
        return found

    model = Written(run, inner=nn.Linear(4, 2))
    with pytest.raises(VoidRun, match="The charge stands"):
        fit(
            model,
            (X, Y),
            TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=20, batch_size=4),
            execution=Execution(physical_batch_size=8),
        )


def test_tests_neither_read_data_by_index_nor_move_anything() -> None:
    read, model = list[Tensor](), nn.Linear(4, 2)

    class Watched(Tensor):
        """Notes each row that is looked up."""

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is Tensor.__getitem__:
                read.append(torch.as_tensor(args[1]))
            return super().__torch_function__(func, types, args, kwargs)

    data, targets = X.as_subclass(Watched), Y
    places = torch.arange(7, 17)

    def losses(at: Tensor) -> Tensor:
        return cross_entropy(model(data[at]), targets[at])

    step = Step(model, noise_multiplier=1, batch_size=10, steps=3)
    for _ in range(3):
        state = torch.get_rng_state()
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        step.add(losses, places.clone())
        assert torch.equal(state, torch.get_rng_state())
        assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
        step.close()
    assert read
    assert {place for each in read for place in each.tolist()} == set(places.tolist())


def test_examples_that_the_losses_hold_are_tested_as_they_are() -> None:
    class Case(Owner):
        batch = X[:6].clone(), Y[:6].clone()

    owner = Case(nn.Linear(4, 2))
    owner.__dict__["batch"] = Case.batch
    step = Step(owner.model, noise_multiplier=1, batch_size=6, steps=1)
    step.check(owner.losses, *owner.batch)
    way = compare_gradients(owner.model, owner.losses, owner.batch)
    assert way.reason is None


class Experts(nn.Module):
    """Two experts with room for a part of the batch each; what finds no room is left out."""

    def __init__(self, room: float) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.room, self.gate = room, nn.Linear(4, 2)
        self.experts = nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)])

    def forward(self, x: Tensor) -> Tensor:
        share = self.gate(x).softmax(1)
        chosen = share.detach().argmax(1)
        out = torch.zeros(len(x), 2)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            fits = mine & (mine.cumsum(0) <= max(6, self.room * len(x)))
            out = out + expert(x) * (share[:, number] * (0.1 + fits.float())).unsqueeze(1)
        return out


@pytest.mark.parametrize("room", [0.5, 0.75, 0.95])
def test_experts_with_room_for_a_part_of_the_batch_are_refused(room: float) -> None:
    model = Experts(room)
    losses = lambda x, y: cross_entropy(model(x), y)
    step = Step(model, noise_multiplier=1, batch_size=20, steps=3)
    with pytest.raises(InvalidParameter, match="In a batch of 56 examples"):
        step.add(losses, X, Y)
    whole = Experts(1.0)
    Step(whole, noise_multiplier=1, batch_size=20, steps=3).add(lambda x, y: cross_entropy(whole(x), y), X, Y)


def test_no_batch_larger_than_tested_is_taken_whole() -> None:
    sizes, model = list[int](), nn.Linear(4, 2)

    def losses(x: Tensor, y: Tensor) -> Tensor:
        sizes.append(len(x))
        return cross_entropy(model(x), y)

    step = Step(model, noise_multiplier=1, batch_size=4, steps=3)
    step.add(losses, X, Y)
    assert max(sizes) == 24
    assert sizes[-2:] == [24, 16]


def test_weights_that_became_large_do_not_end_an_honest_run() -> None:
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    priced = plan(TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=3, batch_size=4), size=40)
    step = Step.of(model, priced, clipping=Flat(norm=100.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=100.0)
    losses = lambda x, y: cross_entropy(model(x), y)
    for x, y in loader((X, Y), priced):
        step.add(losses, x, y)
        step.close()
        optimizer.step()
    assert step.left == 0
    with pytest.raises(InvalidParameter):
        check(Experts(0.5), None, (X[:0], Y[:0]))
