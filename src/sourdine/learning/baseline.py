"""Ordinary training, without any protection: what private training is compared with.

The same training is run several times, to tell luck from skill.
"""

import copy
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.spend import plan_cost
from sourdine.core import check
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.data.augmentation import Augmentation, AugmentedExamples
from sourdine.learning.data.batches import ShuffledBatches
from sourdine.learning.data.examples import Examples, examples_of
from sourdine.learning.result import Progress, Trained
from sourdine.learning.running.moving import MakeOptimizer
from sourdine.learning.running.run import ReportProgress
from sourdine.learning.task import Task, cross_entropy

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
    batch_size: int,
    optimizer: MakeOptimizer,
    augmentation: Augmentation | None = None,
    public: object = None,
    progress: ReportProgress | None = None,
    bits: Bits = SYSTEM,
) -> Unprotected:
    """Train a copy of a model by shuffled epochs, on the mean cross entropy of each batch.

    >>> x = torch.tensor([[-1.0], [1.0]])
    >>> found = fit_without_privacy(
    ...     nn.Linear(1, 2),
    ...     (x, torch.tensor([0, 1])),
    ...     epochs=20,
    ...     batch_size=2,
    ...     optimizer=lambda values: torch.optim.SGD(values, lr=1.0),
    ...     public=(x, torch.tensor([0, 1])),
    ... )
    >>> found.accuracy
    1.0
    """
    task = Task(copy.deepcopy(model).train(), cross_entropy)
    examples = examples_of(data)
    shown = examples if augmentation is None else AugmentedExamples(examples, augmentation, bits)
    judges = None if public is None else examples_of(public)
    batches = ShuffledBatches(size=examples.size, batch_size=batch_size, epochs=epochs)
    stepper = optimizer(task.model.parameters())
    each = batches.steps // epochs
    history: list[Progress] = []
    for step, places in enumerate(batches.draw(bits), start=1):
        stepper.zero_grad()
        task.losses(shown.batch(places)).mean().backward()  # type: ignore[no-untyped-call]
        stepper.step()
        now = Progress(step=step, steps=batches.steps, epoch=step // each, epsilon=math.inf)
        if step % each == 0:
            now = now if judges is None else _judged(task, now, judges)
            history.append(now)
        if progress is not None:
            progress(now)
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


@dataclass(frozen=True)
class Repeats:
    """Several runs. Each has its own epsilon; whoever sees them all has seen `epsilon`."""

    runs: tuple[Trained, ...]

    @property
    def epsilon(self) -> Bracket:
        """What all of them cost together, at the delta of one."""
        spends = [spend for run in self.runs for spend in run.spends]
        return PLD().epsilon(plan_cost(spends, PLD()), self.runs[0].plan.delta)

    @property
    def mean(self) -> float | None:
        """The mean of the accuracies on public data."""
        accuracies = self._accuracies
        return statistics.mean(accuracies) if accuracies else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the accuracies on public data."""
        accuracies = self._accuracies
        return statistics.stdev(accuracies) if len(accuracies) > 1 else None

    @property
    def _accuracies(self) -> list[float]:
        return [run.accuracy for run in self.runs if run.accuracy is not None]


def repeat(times: int, train: Callable[[], Trained]) -> Repeats:
    """So many runs, each from a fresh start: `train` makes a model and fits it.

    >>> import torch
    >>> from sourdine.learning import TrainingPlan, fit
    >>> data = (torch.zeros(50, 2), torch.zeros(50, dtype=torch.int64))
    >>> plan = TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=1, batch_size=10)
    >>> found = repeat(2, lambda: fit(torch.nn.Linear(2, 2), data, plan))
    >>> len(found.runs), found.epsilon.upper > found.runs[0].epsilon.upper
    (2, True)
    """
    times = check.integer("repeat", "times", times, 1, 1 << 20)
    return Repeats(tuple(train() for _ in range(times)))
