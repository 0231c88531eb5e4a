"""The first steps of training with their stages, watched by whoever counts bytes."""

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from sourdine.learning.clipping import Clipping
from sourdine.learning.loader import Batch
from sourdine.learning.losses import Losses
from sourdine.learning.memory import Stage
from sourdine.learning.step import Step
from sourdine.learning.task import Task


class Steps(Protocol):
    """What is needed of an optimizer."""

    def step(self) -> object: ...

    def zero_grad(self) -> object: ...


MakeSteps = Callable[[Iterable[nn.Parameter]], Steps]


class Watch(Protocol):
    """Is told when a stage ends."""

    def __call__(self, stage: Stage, /) -> None: ...


def cycle(
    model: Callable[[], nn.Module],
    batch: Callable[[], Batch],
    *,
    loss: Losses,
    optimizer: MakeSteps,
    watch: Watch,
    clipping: Clipping | None = None,
    private: bool = True,
    examples_per_unit: int = 1,
    later: bool = True,
) -> None:
    """Train for one step or, with `later`, for two, of which the second takes its batch in two parts."""
    task = Task(model().train(), loss)
    watch(Stage.MODEL)
    taken = batch()
    watch(Stage.BATCH)
    stepper = optimizer([value for value in task.model.parameters() if value.requires_grad])
    step = Step(task.model, noise=1.0, batch=len(taken[0]), clipping=clipping) if private else None

    def add() -> None:
        if step is None:
            task.losses(taken).mean().backward()  # type: ignore[no-untyped-call]
        else:
            step.add(lambda: task.losses(taken), examples_per_unit=examples_per_unit)

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
        self._held: list[Tensor] = []

    def step(self) -> None:
        """Move the parameters, and make the copies if there are none."""
        with torch.no_grad():
            for value in self._values:
                if value.grad is not None:
                    value.add_(value.grad, alpha=-0.01)
        if not self._held:
            self._held = [value.detach().clone() for value in self._values for _ in range(self._copies)]

    def zero_grad(self) -> None:
        """Let the gradients go."""
        for value in self._values:
            value.grad = None
