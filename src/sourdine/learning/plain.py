"""Ordinary training, without any protection: what private training is compared with."""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from sourdine.core.bits import SYSTEM, Bits
from sourdine.learning.loader import Examples, examples_of
from sourdine.learning.losses import cross_entropy
from sourdine.learning.run import MakeOptimizer, Watch
from sourdine.learning.samplers import ShuffledBatches
from sourdine.learning.task import Task
from sourdine.learning.trained import Progress

_AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True)
class Unprotected:
    """A model that was trained without privacy: it may hold anything about anybody."""

    model: nn.Module
    history: tuple[Progress, ...]

    @property
    def accuracy(self) -> float | None:
        """The accuracy of the finished model on the examples to judge by, if there were some."""
        return self.history[-1].accuracy


def fit_without_privacy(
    model: nn.Module,
    data: object,
    *,
    epochs: int,
    batch: int,
    optimizer: MakeOptimizer,
    public: object = None,
    watch: Watch | None = None,
    bits: Bits = SYSTEM,
) -> Unprotected:
    """Train a copy of a model by shuffled epochs, on the mean cross entropy of each batch.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> found = fit_without_privacy(
    ...     nn.Linear(1, 2),
    ...     (x, torch.tensor([0, 1])),
    ...     epochs=20,
    ...     batch=2,
    ...     optimizer=lambda values: torch.optim.SGD(values, lr=1.0),
    ...     public=(x, torch.tensor([0, 1])),
    ... )
    >>> found.accuracy
    1.0
    """
    task = Task(copy.deepcopy(model).train(), cross_entropy)
    examples = examples_of(data)
    judges = None if public is None else examples_of(public)
    batches = ShuffledBatches(size=examples.size, batch=batch, epochs=epochs)
    stepper = optimizer(task.model.parameters())
    each = batches.steps // epochs
    history: list[Progress] = []
    for step, places in enumerate(batches.drawn(bits), start=1):
        stepper.zero_grad()
        task.losses(examples.batch(places)).mean().backward()  # type: ignore[no-untyped-call]
        stepper.step()
        now = Progress(step=step, steps=batches.steps, epoch=step // each, epsilon=math.inf)
        if step % each == 0:
            now = now if judges is None else _judged(task, now, judges)
            history.append(now)
        if watch is not None:
            watch(now)
    stepper.zero_grad()
    return Unprotected(model=task.model.eval(), history=tuple(history))


def _judged(task: Task, now: Progress, public: Examples) -> Progress:
    losses, hits = 0.0, 0
    task.model.eval()
    with torch.no_grad():
        for start in range(0, public.size, _AT_ONCE):
            batch = public.batch(np.arange(start, min(start + _AT_ONCE, public.size)))
            outputs, targets = task.outputs(batch)
            losses += float(cross_entropy(outputs, targets).sum())
            hits += int((outputs.argmax(1) == targets).sum())
    task.model.train()
    return Progress(
        step=now.step,
        steps=now.steps,
        epoch=now.epoch,
        epsilon=now.epsilon,
        loss=losses / public.size,
        accuracy=hits / public.size,
    )
