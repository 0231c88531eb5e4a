"""Training that is broken on purpose, with the claim of the honest run: an audit must catch it.

A model that was trained by one of them protects nobody, so each trains on canaries alone.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from sourdine.audit.training import TrainingAudit, audit_training, trace
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning import Clipping, FixedBatches, Flat, PoissonBatches, Step, TrainingPlan
from sourdine.learning.data.batches import Batches, Indices, shuffled
from sourdine.learning.data.trees import Tree, count_of
from sourdine.learning.running.run import Run

_LOOSE = 10.0


class Unclipped(Clipping):
    """Every gradient counts as it is, however long, beside noise for clipped ones."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {name: torch.ones_like(each) for name, each in squares.items()}


class Loose(Flat):
    """Gradients are clipped to ten times the norm that the noise is made for."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return Flat(norm=_LOOSE * self.norm).weights(squares)


class Doubled(Flat):
    """Gradients are clipped to twice the norm that the noise is made for."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return Flat(norm=2 * self.norm).weights(squares)


class HalfNoise(Step):
    """Half of the noise."""

    def _noise(self, count: int) -> Tensor:
        return 0.5 * super()._noise(count)


class NearlyEnoughNoise(Step):
    """Nine tenths of the noise."""

    def _noise(self, count: int) -> Tensor:
        return 0.9 * super()._noise(count)


class NoiseOfTheMean(Step):
    """Noise for the mean of a batch, added to the sum."""

    def _noise(self, count: int) -> Tensor:
        return super()._noise(count) / self.batch_size


class ReusedNoise(Step):
    """The noise of the first step, in every step."""

    _first: Tensor | None = None

    def _noise(self, count: int) -> Tensor:
        if self._first is None:
            self._first = super()._noise(count)
        return self._first


class RepeatedNoise(Step):
    """Half as many numbers as there are parameters, each used for two."""

    def _noise(self, count: int) -> Tensor:
        return super()._noise(-(-count // 2)).repeat_interleave(2)[:count]


class NoiseInTurn(Step):
    """The noise of every second step is left out."""

    _turn = 0

    def _noise(self, count: int) -> Tensor:
        self._turn += 1
        return super()._noise(count) * (self._turn % 2)


class BareLayer(Step):
    """Biases get no noise: they are easily forgotten."""

    def _noise(self, count: int) -> Tensor:
        noise = super()._noise(count)
        at = 0
        for name, value in self._wanted.items():
            if name.endswith("bias"):
                noise[at : at + value.numel()] = 0
            at += value.numel()
        return noise


class EvenNoise(Step):
    """Uniform noise of the right deviation, which ends."""

    def _noise(self, count: int) -> Tensor:
        even: Tensor = 2 * torch.special.ndtr(super()._noise(count)) - 1
        return even * math.sqrt(3)


class DividedByDrawn(Step):
    """The noisy sum is divided by how many were drawn, which is a secret, and not by the declared batch."""

    _count = 0

    def take(self, losses: Callable[..., Tensor], batch: Tree, *, examples_per_unit: int = 1) -> None:
        self._count += count_of(batch)
        super().take(losses, batch, examples_per_unit=examples_per_unit)

    def close(self) -> None:
        super().close()
        for value in self._wanted.values():
            if value.grad is not None:
                value.grad.mul_(self.batch_size / max(1, self._count))
        self._count = 0


@dataclass(frozen=True, kw_only=True)
class _Broken(PoissonBatches):
    """Batches of another law than they claim."""


class FullBatches(_Broken):
    """Everybody, in every step."""

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        for _ in range(after, self.steps):
            yield np.arange(self.population)


class OrderedBatches(_Broken):
    """One random order, cut into batches, and the same in every epoch."""

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        parts = np.array_split(shuffled(self.population, bits), max(1, round(self.size / self.batch_size)))
        for step in range(after, self.steps):
            yield np.sort(parts[step % len(parts)])


class OneBatch(_Broken):
    """A Poisson batch that is drawn once, and used in every step."""

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        first = next(super().draw(bits))
        for _ in range(after, self.steps):
            yield first


class EvenBatches(_Broken):
    """As many units in every batch, drawn afresh."""

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        size = round(self.population * self.batch_size / self.size)
        yield from FixedBatches(size=self.population, batch_size=size, epochs=self.epochs).draw(
            bits, after=after
        )


class OftenBatches(_Broken):
    """Units come in a tenth more often than claimed."""

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        often = min(self.size, round(1.1 * self.batch_size))
        steps = self.steps
        more = PoissonBatches(size=self.size, batch_size=often, epochs=2 * self.epochs, present=self.present)
        for _, units in zip(range(after, steps), more.draw(bits), strict=False):
            yield units


class BatchesOfNeighbours(_Broken):
    """Units come in by pairs that stand next to each other."""

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        half = replace(self, present=-(-self.population // 2))
        for units in PoissonBatches.draw(half, bits, after=after):
            both = (2 * units[:, None] + np.arange(2)).ravel()
            yield both[both < self.population]


@dataclass(frozen=True)
class BrokenTraining:
    """A fault of training: the clipping, the step or the batches that are wrong."""

    name: str
    fault: str
    clipping: Clipping | None = None
    step: type[Step] = Step
    batches: type[_Broken] | None = None

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the fault in the runs that an audit watches, for as long as the context lasts."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(trace, "Step", self.step))
            if self.batches is not None:
                drawn = cached_property(self._batches_of)
                drawn.__set_name__(trace.TracedRun, "_batches")
                stack.enter_context(patch.object(trace.TracedRun, "_batches", drawn))
            yield

    def _batches_of(self, run: Run) -> Batches:
        honest: Batches = vars(Run)["_batches"].func(run)
        present = honest.present if isinstance(honest, PoissonBatches) else None
        assert self.batches is not None
        return self.batches(
            size=honest.size, batch_size=honest.batch_size, epochs=honest.epochs, present=present
        )

    def audited(self, model: nn.Module, plan: TrainingPlan, **settings: Any) -> TrainingAudit:
        """Audit the fault on canaries alone, with the claim of the honest run."""
        with self.planted():
            return audit_training(model, None, plan, **(settings | {"clipping": self.clipping}))


BROKEN = (
    BrokenTraining("unclipped", "gradients are not clipped", Unclipped(norm=1.0)),
    BrokenTraining("loose", "gradients are clipped to ten times the declared norm", Loose(norm=1.0)),
    BrokenTraining("doubled", "gradients are clipped to twice the declared norm", Doubled(norm=1.0)),
    BrokenTraining("half-noise", "half of the noise", step=HalfNoise),
    BrokenTraining("less-noise", "nine tenths of the noise", step=NearlyEnoughNoise),
    BrokenTraining("noise-of-mean", "noise for the mean of a batch on its sum", step=NoiseOfTheMean),
    BrokenTraining("reused-noise", "the same noise in every step", step=ReusedNoise),
    BrokenTraining(
        "repeated-noise", "each number of the noise is used for two parameters", step=RepeatedNoise
    ),
    BrokenTraining("noise-in-turn", "no noise in every second step", step=NoiseInTurn),
    BrokenTraining("bare-layer", "no noise on the bias", step=BareLayer),
    BrokenTraining("even-noise", "uniform noise of the right deviation", step=EvenNoise),
    BrokenTraining("divided-by-drawn", "sums are divided by how many were drawn", step=DividedByDrawn),
    BrokenTraining("full-batches", "everybody in every batch", batches=FullBatches),
    BrokenTraining("ordered-batches", "batches of one shuffled order", batches=OrderedBatches),
    BrokenTraining("one-batch", "the same batch in every step", batches=OneBatch),
    BrokenTraining("even-batches", "batches of one size", batches=EvenBatches),
    BrokenTraining("often", "units are drawn a tenth more often", batches=OftenBatches),
    BrokenTraining("neighbours", "units are drawn by pairs", batches=BatchesOfNeighbours),
)
