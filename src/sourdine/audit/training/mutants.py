"""Training that is broken on purpose, with the claim of the honest one: an audit must catch it.

Nothing outside the audit uses these. A model that was trained by one of them protects nobody.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from sourdine.audit.training.trace import TrainingFault
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.learning.data.batches import Batches, FixedBatches, Indices, PoissonBatches, shuffled
from sourdine.learning.data.trees import Tree, count_of
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.step import Step

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
    """A way to break training, and what is wrong with it."""

    name: str
    fault: str
    clipping: Clipping | None = None
    how: TrainingFault = field(default_factory=TrainingFault)


def _faulty(kind: type[_Broken]) -> TrainingFault:
    def broken(honest: Batches) -> Batches:
        present = honest.present if isinstance(honest, PoissonBatches) else None
        return kind(size=honest.size, batch_size=honest.batch_size, epochs=honest.epochs, present=present)

    return TrainingFault(batches=broken)


def _of(name: str, fault: str, step: type[Step]) -> BrokenTraining:
    return BrokenTraining(name, fault, how=TrainingFault(step=step))


BROKEN = (
    BrokenTraining("unclipped", "gradients are not clipped", Unclipped(norm=1.0)),
    BrokenTraining("loose", "gradients are clipped to ten times the declared norm", Loose(norm=1.0)),
    BrokenTraining("doubled", "gradients are clipped to twice the declared norm", Doubled(norm=1.0)),
    _of("half-noise", "half of the noise", HalfNoise),
    _of("less-noise", "nine tenths of the noise", NearlyEnoughNoise),
    _of("noise-of-mean", "noise for the mean of a batch on its sum", NoiseOfTheMean),
    _of("reused-noise", "the same noise in every step", ReusedNoise),
    _of("repeated-noise", "each number of the noise is used for two parameters", RepeatedNoise),
    _of("noise-in-turn", "no noise in every second step", NoiseInTurn),
    _of("bare-layer", "no noise on the bias", BareLayer),
    _of("even-noise", "uniform noise of the right deviation", EvenNoise),
    _of("divided-by-drawn", "sums are divided by how many were drawn", DividedByDrawn),
    BrokenTraining("full-batches", "everybody in every batch", how=_faulty(FullBatches)),
    BrokenTraining("ordered-batches", "batches of one shuffled order", how=_faulty(OrderedBatches)),
    BrokenTraining("one-batch", "the same batch in every step", how=_faulty(OneBatch)),
    BrokenTraining("even-batches", "batches of one size", how=_faulty(EvenBatches)),
    BrokenTraining("often", "units are drawn a tenth more often", how=_faulty(OftenBatches)),
    BrokenTraining("neighbours", "units are drawn by pairs", how=_faulty(BatchesOfNeighbours)),
)
