"""The memory of training forecast for any batch, from a few dry steps on small ones, stage by stage."""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from sourdine.core import check
from sourdine.learning.data.examples import Batch, Examples, examples_of
from sourdine.learning.devices.placement import Placement
from sourdine.learning.devices.processes import ALONE
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.self_test import REHEARSED
from sourdine.learning.gradients.way import GradientWay, way_of
from sourdine.learning.memory.allocations import Allocations, Moment, StageMemory
from sourdine.learning.memory.model import FIRST, Course, Memory, MemoryLine, Stage, highest
from sourdine.learning.step import Step
from sourdine.learning.task import Losses, Task, check_loss, cross_entropy


class Steps(Protocol):
    """What is needed of an optimizer."""

    def step(self) -> object: ...

    def zero_grad(self) -> object: ...


MakeSteps = Callable[[Iterable[nn.Parameter]], Steps]


class StageWatch(Protocol):
    """Is told when a stage ends."""

    def __call__(self, stage: Stage, /) -> None: ...


def cycle(
    model: Callable[[], nn.Module],
    batch: Callable[[], Batch],
    *,
    loss: Losses,
    optimizer: MakeSteps,
    watch: StageWatch,
    clipping: Clipping | None = None,
    private: bool = True,
    examples_per_unit: int = 1,
    later: bool = True,
    autocast: torch.dtype | None = None,
    way: GradientWay | None = None,
    names: tuple[str, ...] | None = None,
) -> None:
    """Train for one step or, with `later`, for two, of which the second takes its batch in two parts."""
    task = Task(model().train(), loss, autocast, names)
    watch(Stage.MODEL)
    taken = batch()
    watch(Stage.BATCH)
    stepper = optimizer([value for value in task.model.parameters() if value.requires_grad])
    size = len(taken[0])
    step = (
        Step(task.model, noise_multiplier=1.0, batch_size=size, steps=2, clipping=clipping, processes=ALONE)
        if private
        else None
    )
    if step is not None:
        step.ready(way or GradientWay())

    def add() -> None:
        if step is None:
            task.losses(taken).mean().backward()  # type: ignore[no-untyped-call]
        else:
            step.take(task.losses, (taken,), examples_per_unit=examples_per_unit)

    def close() -> None:
        if step is not None:
            step.close()
        stepper.step()

    add()
    watch(Stage.GRADIENT)
    close()
    watch(Stage.STEP)
    if not later:
        return
    if step is None:
        stepper.zero_grad()
    taken = ()  # between steps no batch is held; within one, the next part comes before the last goes
    taken = batch()
    add()
    watch(Stage.AGAIN)
    taken = batch()
    add()
    watch(Stage.MORE)
    close()
    watch(Stage.CLOSE)


class Keeping:
    """Steps along the gradient that keep so many copies of the parameters: one for momentum, two for Adam.

    It stands for an optimizer where only memory matters: those of torch take seconds to load.
    """

    def __init__(self, values: Iterable[nn.Parameter], copies: int = 0) -> None:
        self._values, self._copies = list(values), copies
        self._state: list[Tensor] = []

    def step(self) -> None:
        """Move the parameters, and make the copies if there are none."""
        with torch.no_grad():
            for value in self._values:
                if value.grad is not None:
                    value.add_(value.grad, alpha=-0.01)
        if not self._state:
            self._state = [value.detach().clone() for value in self._values for _ in range(self._copies)]

    def zero_grad(self) -> None:
        """Let the gradients go."""
        for value in self._values:
            value.grad = None


# primes: no size of one layer is by chance that of another in a larger run
_UNITS = (2, 5, 11, 23, 47, 97, 193, 389, 769, 1543)
_RUNS = 3
_STRAIGHT = 0.01  # how far the first of three points may lie from the line through the others
# what is computed in pieces of a fixed size (some megabytes) must have reached it, or its growth would be
# taken for that of all batches
_ENOUGH = 1 << 26
_AMPLE = 4  # how often a batch must fit into the room there is if nobody need know more of it


def memory_of(
    model: nn.Module,
    data: object,
    *,
    loss: Losses | None = None,
    clipping: Clipping | None = None,
    optimizer: MakeSteps | None = None,
    examples_per_unit: int = 1,
    private: bool = True,
    device: torch.device | str | None = None,
    dtype: torch.dtype | str | None = None,
    way: GradientWay | None = None,
    batch_size: int | None = None,
    room: int | None = None,
) -> Memory:
    """The memory of training a model on examples shaped like these, of which only shapes and types are read.

    Dry steps on 2, 5 and 11 made-up examples, and on more while their tensors take less than 64 MiB. For
    every moment of a step a line goes through the last two of them, so that moments count that matter for
    large batches only. Without an optimizer, one that keeps nothing is taken. `device` and `dtype` are as in
    `Execution`; what counts is the memory of that device. A model without numbers, on the device 'meta', gets
    some for the forecast. `way` is how gradients are taken, if a test has told. If it is told that no more
    than `batch_size` units come at a time, dry steps end there; or before, where what they forecast for
    those fits several times into a `room` of so many bytes.

    >>> import torch
    >>> memory = memory_of(nn.Linear(1000, 2), (torch.zeros(1, 1000), torch.zeros(1, dtype=torch.int64)))
    >>> memory.live[Stage.MODEL], memory.live[Stage.BATCH].each
    (MemoryLine(fixed=8008.0, each=0.0), 4008.0)
    """
    where = Placement(device=device, dtype=dtype)
    most = _UNITS[-1]
    if batch_size is not None:
        most = check.integer("memory_of", "batch_size", batch_size, 1, 1 << 40)
    if room is not None:
        room = check.integer("memory_of", "room", room, 0, 1 << 62)
    if device is not None or dtype is not None or any(value.is_meta for value in model.parameters()):
        model = where.copy_of(model)
    examples, losses = examples_of(data), cross_entropy if loss is None else check_loss(loss)
    if private and way is None:
        task = Task(copy.deepcopy(model).train(), losses, where.autocast, examples.names)
        way = way_of(task.model, task.losses, (examples.made_up(REHEARSED),))
    dry = _Dry(
        model=model,
        autocast=where.autocast,
        examples=examples,
        loss=losses,
        way=way,
        clipping=clipping,
        optimizer=Keeping if optimizer is None else optimizer,
        examples_per_unit=check.integer("memory_of", "examples_per_unit", examples_per_unit, 1, 1 << 20),
        private=private,
    )
    runs: dict[int, dict[str, StageMemory]] = {}
    for count in _UNITS:
        stages = runs[count] = dry.run(count)
        grown = max(each.most for each in stages.values()) - stages[Stage.MODEL].live
        if len(runs) >= _RUNS and (grown >= _ENOUGH or count >= most):
            break
        if len(runs) >= _RUNS and room is not None and _AMPLE * _memory(runs).peak(most, parts=True) <= room:
            break
    return _memory(runs)


def _memory(runs: Mapping[int, Mapping[str, StageMemory]]) -> Memory:
    """What dry steps on so many units tell of all others."""
    return Memory(
        live={
            stage: MemoryLine.through(*((units, run[stage].live) for units, run in runs.items()))
            for stage in FIRST
        },
        most={stage: _course({units: run[stage] for units, run in runs.items()}) for stage in Stage},
    )


@dataclass(frozen=True, kw_only=True)
class _Dry:
    """All that a dry step needs but the number of its units."""

    model: nn.Module
    examples: Examples
    loss: Losses
    clipping: Clipping | None
    optimizer: MakeSteps
    examples_per_unit: int
    private: bool
    autocast: torch.dtype | None
    way: GradientWay | None

    def run(self, units: int) -> dict[str, StageMemory]:
        where = next(self.model.parameters()).device.type
        with Allocations(units=units, device=where) as taken:
            cycle(
                lambda: copy.deepcopy(self.model),
                lambda: self.examples.made_up(units * self.examples_per_unit),
                loss=self.loss,
                optimizer=self.optimizer,
                watch=taken.mark,
                clipping=self.clipping,
                private=self.private,
                examples_per_unit=self.examples_per_unit,
                autocast=self.autocast,
                names=self.examples.names,
                way=self.way,
            )
        return taken.stages


def _course(runs: dict[int, StageMemory]) -> Course:
    """What was measured, and beyond it the lines of the moments that grew in a straight line to the last.

    Where the most was at a moment that did not, as in the middle of a computation in pieces, the lines are
    raised by what they are short of it.
    """
    points = [(units, run.most) for units, run in runs.items()]
    by_moment: defaultdict[Moment, list[tuple[int, int]]] = defaultdict(list)
    for units, run in list(runs.items())[-_RUNS:]:
        for moment, much in run.moments.items():
            by_moment[moment].append((units, much))
    straight = [
        each for each in (points[-_RUNS:], *by_moment.values()) if len(each) == _RUNS and _straight(each)
    ]
    lines = highest(MemoryLine.through(*each) for each in straight or [points])
    last, much = points[-1]
    short = max(0, much - max(line.at(last) for line in lines))
    return Course(tuple(points), tuple(MemoryLine(line.fixed + short, line.each) for line in lines))


def _straight(points: list[tuple[int, int]]) -> bool:
    """Whether three points are on a line: if not, they are not the same moment, or not only that one."""
    (units, much), *_ = points
    return abs(MemoryLine.through(*points).at(units) - much) <= _STRAIGHT * much
