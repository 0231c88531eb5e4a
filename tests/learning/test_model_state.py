"""What a forward pass writes neither leaves with the model nor moves the gradients of others."""

import functools
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter, VoidRun
from sourdine.learning import Execution, Flat, Step, TrainingPlan, fit
from sourdine.learning.task import cross_entropy
from sourdine.testing import SeededBits

RECORD = torch.tensor([31.5, -47.25, 53.125, 71.0625])
X = torch.randn(30, 4, generator=torch.Generator().manual_seed(1))
X[::3] = RECORD  # so many that each batch has one
Y = (X[:, 0] > 0).long()
SEEN: list[Tensor] = []
STATE: dict[str, Any] = {"center": torch.zeros(4)}
CENTER = torch.zeros(4)


def planted(x: Tensor) -> Tensor:
    """The longest row, which is the record wherever it is."""
    return x.detach()[x.detach().norm(dim=1).argmax()]


class Writer(nn.Module):
    """Writes what it sees, in one of many ways, and uses what it wrote before."""

    table: Tensor
    kept: ClassVar[list[Tensor]] = []

    def __init__(self, write: Callable[["Writer", Tensor], Tensor | None]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.inner = nn.Linear(4, 2)
        self.frozen = nn.Parameter(torch.zeros(3, 4), requires_grad=False)
        self.scale = nn.Linear(4, 4, bias=False)
        self.register_buffer("table", torch.zeros(2, 4))
        self.last = torch.zeros(4)
        self.cache: dict[str, Any] = {"rows": [torch.zeros(4)]}
        self.memory = SimpleNamespace(rows=deque([torch.zeros(4)], maxlen=8), at=0)
        self.array = np.zeros(4, np.float32)
        self.calls = 0
        self.write = write

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        before = self.write(self, x)
        if before is not None and not torch.is_grad_enabled():
            before = None
        out: Tensor = self.inner(self.scale(x))
        return out if before is None else out + 1e-6 * before.sum().detach()


def _parameter(m: Writer, x: Tensor) -> None:
    with torch.no_grad():
        m.frozen[0] = planted(x)


def _codebook(m: Writer, x: Tensor) -> None:
    m.frozen.data[1].copy_(planted(x))


def _trained(m: Writer, x: Tensor) -> None:
    m.inner.weight.data[0].copy_(planted(x))


def _trained_average(m: Writer, x: Tensor) -> None:
    m.scale.weight.data.mul_(0.01).add_(planted(x), alpha=0.99)


def _buffer(m: Writer, x: Tensor) -> None:
    m.table[0] = planted(x)


def _buffer_anew(m: Writer, x: Tensor) -> None:
    m.table = planted(x).repeat(2, 1)


def _in_training(m: Writer, x: Tensor) -> None:
    if m.training and torch.is_grad_enabled():
        m.table.data[1].copy_(planted(x))


def _through_numpy(m: Writer, x: Tensor) -> None:
    m.frozen.detach().numpy()[2] = planted(x).numpy()


def _through_set(m: Writer, x: Tensor) -> None:
    m.frozen.data = planted(x).repeat(3, 1)


def _late(m: Writer, x: Tensor) -> None:
    if float(x.detach().abs().max()) > 20:  # as no made-up example has it
        m.frozen.data[0].copy_(planted(x))


def _late_trained(m: Writer, x: Tensor) -> None:
    if float(x.detach().abs().max()) > 20:
        m.inner.weight.data[0].copy_(planted(x))


def _late_buffer(m: Writer, x: Tensor) -> None:
    if float(x.detach().abs().max()) > 20:
        m.table[0] = planted(x)


def _attribute(m: Writer, x: Tensor) -> Tensor:
    before, m.last = m.last, planted(x)
    return before


def _attribute_in_place(m: Writer, x: Tensor) -> Tensor:
    before = m.last.clone()
    m.last.copy_(planted(x))
    return before


def _new_attribute(m: Writer, x: Tensor) -> None:
    m.first_seen = planted(x)


def _new_buffer(m: Writer, x: Tensor) -> None:
    m.register_buffer("found", planted(x))


def _list(m: Writer, x: Tensor) -> Tensor:
    before: Tensor = m.cache["rows"][-1]
    m.cache["rows"].append(planted(x))
    return before


def _queue(m: Writer, x: Tensor) -> Tensor:
    before: Tensor = m.memory.rows[-1]
    m.memory.rows.append(planted(x))
    m.memory.at += 1
    return before


def _array(m: Writer, x: Tensor) -> Tensor:
    before = torch.from_numpy(m.array.copy())
    m.array[:] = planted(x).numpy()
    return before


def _of_the_class(m: Writer, x: Tensor) -> None:
    Writer.kept.append(planted(x))


def _global_list(m: Writer, x: Tensor) -> Tensor:
    before = SEEN[-1] if SEEN else torch.zeros(4)
    SEEN.append(planted(x))
    return before


def _global_name(m: Writer, x: Tensor) -> Tensor:
    global CENTER
    before, CENTER = CENTER, planted(x)
    return before


def _global_dict(m: Writer, x: Tensor) -> Tensor:
    before: Tensor = STATE["center"]
    STATE["center"] = planted(x)
    return before


def _default(m: Writer, x: Tensor, kept: list[Tensor] = []) -> None:  # noqa: B006
    kept.append(planted(x))


def _closure() -> Callable[[Writer, Tensor], Tensor]:
    center = torch.zeros(4)

    def write(m: Writer, x: Tensor) -> Tensor:
        nonlocal center
        before, center = center, planted(x)
        return before

    return write


def _hooked(m: Writer, x: Tensor) -> None:
    if not m.inner._forward_hooks:
        m.inner.register_forward_hook(lambda layer, args, out: m.cache.update(hook=planted(args[0])))


WAYS: list[Callable[[Writer, Tensor], Tensor | None]] = [
    _parameter,
    _codebook,
    _trained,
    _trained_average,
    _buffer,
    _buffer_anew,
    _in_training,
    _through_numpy,
    _through_set,
    _late,
    _late_trained,
    _late_buffer,
    _attribute,
    _attribute_in_place,
    _new_attribute,
    _new_buffer,
    _list,
    _queue,
    _array,
    _of_the_class,
    _global_list,
    _global_name,
    _global_dict,
    _default,
    _closure(),
    functools.partial(lambda kept, m, x: kept.append(planted(x)), []),
    _hooked,
]
REFUSED = {_parameter, _codebook, _trained, _trained_average, _buffer, _buffer_anew, _in_training}
REFUSED |= {_through_numpy, _through_set}
VOID = {_late, _late_trained, _late_buffer}
NAMES = [getattr(way, "__name__", "partial") for way in WAYS]


def tensors(value: object, seen: set[int]) -> Iterator[Tensor]:
    """All tensors in the attributes of something, and in containers among them."""
    if id(value) in seen:
        return
    seen.add(id(value))
    inside: Iterable[object] = ()
    if isinstance(value, Tensor):
        yield value.detach()
    elif isinstance(value, np.ndarray):
        yield torch.from_numpy(value.copy())
    elif isinstance(value, list | tuple | set | deque):
        inside = value
    elif isinstance(value, dict):
        inside = value.values()
    elif hasattr(value, "__dict__") and not isinstance(value, type | FunctionType):
        inside = vars(value).values()
    for each in list(inside):
        yield from tensors(each, seen)


def leaked(value: object) -> bool:
    """Whether the record is in something, to three digits."""
    rows = [
        each.reshape(-1, 4)
        for each in tensors(value, set())
        if each.ndim and each.shape[-1] == 4 and each.is_floating_point()
    ]
    return any(bool(((each - RECORD).abs() < 0.01).all(1).any()) for each in rows)


def around(model: Writer) -> list[object]:
    """What a model refers to, but for the globals of this module, of which X has the record anyway."""
    return [
        model.__dict__["_parameters"],
        [each.detach() for each in (*model.parameters(), *model.buffers())],
        {name: each for name, each in model.__dict__.items() if name != "write"},
        model.inner.__dict__,
        Writer.kept,
        SEEN,
        STATE,
        CENTER,
        getattr(model.write, "__defaults__", None),
        [cell.cell_contents for cell in getattr(model.write, "__closure__", None) or ()],
        getattr(model.write, "args", None),
    ]


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_nothing_that_a_forward_pass_writes_leaves_a_loop(way: Callable[..., Any]) -> None:
    model = Writer(way)
    step = Step(model, noise_multiplier=0.01, batch_size=30, steps=4, clipping=Flat(norm=0.1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def losses(x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(model(x), y)

    outcome = "right"
    try:
        for _ in range(4):
            step.add(losses, X, Y)
            step.close()
            optimizer.step()
    except InvalidParameter:
        outcome = "refused"
    except VoidRun:
        outcome = "void"
        for act in (step.close, step.drop, lambda: step.add(losses, X, Y)):
            with pytest.raises(VoidRun):
                act()
    assert not leaked(around(model))
    assert (outcome == "refused") == (way in REFUSED)
    assert (outcome == "void") == (way in VOID)


@pytest.mark.parametrize("way", WAYS, ids=NAMES)
def test_nothing_that_a_forward_pass_writes_leaves_fit(way: Callable[..., Any]) -> None:
    model = Writer(way)
    wanted = TrainingPlan(epsilon=0.5, delta=1e-3, epochs=2, batch_size=15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = fit(model, (X, Y), wanted, execution=Execution(physical_batch_size=4))
        except (InvalidParameter, VoidRun):
            assert way in REFUSED | VOID
        else:
            assert way not in REFUSED | VOID
            handed_out = found.model
            assert isinstance(handed_out, Writer)
            assert not leaked(around(handed_out))
    assert not leaked(around(model))


@pytest.mark.parametrize("way", [way for way in WAYS if way not in REFUSED | VOID])
@pytest.mark.parametrize("physical", [None, 4])
def test_an_example_of_one_step_does_not_move_the_next(way: Callable[..., Any], physical: int | None) -> None:
    sums = []
    for rows in (slice(0, 30), slice(1, 30)):
        model = Writer(way)
        step = Step(
            model,
            noise_multiplier=1,
            batch_size=30,
            steps=2,
            physical_batch_size=physical,
            bits=SeededBits(1),
        )
        losses = lambda x, y, model=model: cross_entropy(model(x), y)
        step.add(losses, X[rows], Y[rows])
        step.close()
        with torch.no_grad():
            for value in model.parameters():
                value.fill_(0.1)
        step.add(losses, X[5:20] / 10, Y[5:20])
        sums.append(step._sums)
    assert all(torch.equal(each, sums[1][name]) for name, each in sums[0].items())


def test_an_example_that_runs_alone_leaves_nothing_for_the_next() -> None:
    """Each example alone: what it writes would steer the gradient of the one after it."""

    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.last = nn.Parameter(torch.ones(2, 4)), torch.zeros(4)

        def forward(self, x: Tensor) -> Tensor:
            out = nn.functional.linear(x + self.last, self.weight)
            if float(x.detach().abs().max()) > 20:
                self.last = planted(x)
            return out

    sums = []
    for x in (X, torch.cat([torch.zeros(1, 4), X[1:]])):
        model = Functional()
        step = Step(model, noise_multiplier=1, batch_size=30, steps=2, clipping=Flat(norm=1.0))
        with pytest.warns(UserWarning, match="run alone"):
            step.add(lambda x, y, model=model: cross_entropy(model(x), y), x, Y)
        sums.append(step._sums["weight"])
    assert float((sums[0] - sums[1]).norm()) <= 2.001  # the first example, which was replaced, and no other


def test_a_parameter_of_nan_is_no_change() -> None:
    model = nn.Linear(4, 2)
    losses = lambda x, y: cross_entropy(model(x), y)
    step = Step(model, noise_multiplier=1, batch_size=30, steps=5)
    for _ in range(5):
        step.add(losses, X, Y)
        step.close()
        with torch.no_grad():
            model.weight[0] = torch.nan


def test_layers_that_others_refer_to_keep_the_hooks_of_a_step() -> None:
    class Referring(nn.Module):
        """Refers to a layer before it owns it, as compiled layers do."""

        def __init__(self) -> None:
            super().__init__()
            self.steps = [nn.Linear(4, 2)]
            self.last = self.steps[0]

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.steps[0](x)
            return out

    model = nn.Sequential(Referring())
    step = Step(model, noise_multiplier=1, batch_size=30, steps=2)
    rows = list[int]()

    def losses(x: Tensor, y: Tensor) -> Tensor:
        rows.append(len(x))
        return cross_entropy(model(x), y)

    step.add(losses, X, Y)
    assert rows[-1] == len(X)  # at once, and not each alone
