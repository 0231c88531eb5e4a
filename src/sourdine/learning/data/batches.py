"""How batches are drawn, each way tied to the accounting that is true for it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.dpsgd.training import Sampler, Training
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Batches(ABC):
    """Batches of about `batch_size` out of `size` units, for so many epochs; its type decides the accounting.

    It draws the batches and states the run that is paid for, so that the two cannot differ. `neighbours` and
    `group` say whom the price protects, as in `Training`.
    """

    size: int
    batch_size: int
    epochs: int
    neighbours: Neighbours | None = None
    group: int = 1
    hides_size: ClassVar[bool] = False  # whether there may be more or fewer units than was declared

    def __post_init__(self) -> None:
        name = type(self).__name__
        check.keep(self, size=check.integer(name, "size", self.size, 1, 1 << 40))
        check.keep(self, batch_size=check.integer(name, "batch_size", self.batch_size, 1, 1 << 40))
        if self.batch_size > self.size:
            remedy = f"There are {self.size:,} examples."
            raise check.fail(name, "batch_size", "not be larger than the data", self.batch_size, remedy)
        check.keep(self, epochs=check.integer(name, "epochs", self.epochs, 1, 1 << 30))
        check.keep(self, group=self.training(1.0).group)  # which refuses what is not accounted for

    @property
    @abstractmethod
    def sampler(self) -> Sampler:
        """Its name in the accounting."""

    @abstractmethod
    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        """The batches one after the other, each a row of places in the data; some may be empty.

        `after` so many that were drawn before, the rest follow.
        """

    @staticmethod
    def _counted(after: int) -> int:
        return check.integer("drawn", "after", after, 0, 1 << 40)

    def _epochs_done(self, after: int) -> int:
        """Where a whole epoch is drawn at once, nobody can go on within one."""
        done, within = divmod(self._counted(after), self.steps // self.epochs)
        if within:
            raise check.fail(type(self).__name__, "after", "be a whole number of epochs", after)
        return done

    def training(self, noise_multiplier: float) -> Training:
        """The run that the accountants are asked about."""
        return Training(
            size=self.size,
            batch_size=self.batch_size,
            noise_multiplier=noise_multiplier,
            epochs=self.epochs,
            sampler=self.sampler,
            max_batch_size=self.largest,
            neighbours=self.neighbours,
            group=self.group,
        )

    @property
    def largest(self) -> int | None:
        """The most units that a batch is cut to, where it is."""
        return None

    @property
    def steps(self) -> int:
        """How many batches there are."""
        return self.epochs * -(-self.size // self.batch_size)


@dataclass(frozen=True, kw_only=True)
class IndependentBatches(Batches):
    """Batches in which each unit comes or not whatever the others do, so that their number stays private.

    `present` is how many units there really are, where only the `size` that was declared is public.
    """

    present: int | None = None
    hides_size: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.present is not None:
            name = type(self).__name__
            check.keep(self, present=check.integer(name, "present", self.present, 0, 1 << 40))

    @property
    def population(self) -> int:
        """How many units are drawn from."""
        return self.size if self.present is None else self.present


@dataclass(frozen=True, kw_only=True)
class PoissonBatches(IndependentBatches):
    """Each unit comes into each batch with probability batch_size/size, independently of all else."""

    @property
    def sampler(self) -> Sampler:
        return Sampler.POISSON

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        rate = Fraction(self.batch_size, self.size)
        for _ in range(self._counted(after), self.steps):
            yield np.flatnonzero(exact.bernoulli(rate, self.population, bits))


@dataclass(frozen=True, kw_only=True)
class TruncatedBatches(Batches):
    """Poisson batches, of which any `max_batch_size` units are kept, every choice alike, where more came."""

    max_batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, max_batch_size=self.training(1.0).max_batch_size)

    @property
    def sampler(self) -> Sampler:
        return Sampler.TRUNCATED

    @property
    def largest(self) -> int | None:
        return self.max_batch_size

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        rate, most = Fraction(self.batch_size, self.size), self.max_batch_size or self.size
        for _ in range(self._counted(after), self.steps):
            came = np.flatnonzero(exact.bernoulli(rate, self.size, bits))
            if len(came) > most:
                came = np.sort(came[shuffled(len(came), bits)[:most]])
            yield came


@dataclass(frozen=True, kw_only=True)
class AllocatedBatches(IndependentBatches):
    """Each epoch puts each unit into one of its batches, every one alike, independently of all else."""

    @property
    def sampler(self) -> Sampler:
        return Sampler.ALLOCATION

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        many = self.steps // self.epochs
        for _ in range(self._epochs_done(after), self.epochs):
            chosen = exact.uniform(many, self.population, bits)
            order = np.argsort(chosen, kind="stable").astype(np.int64, copy=False)
            ends = np.cumsum(np.bincount(chosen, minlength=many))
            yield from np.split(order, ends[:-1])


@dataclass(frozen=True, kw_only=True)
class CyclicBatches(Batches):
    """Batches in a fixed order, the same in each epoch; the last may be smaller.

    With `parts` the units are cut into so many, which take turns, and each unit of the part whose turn it is
    comes in with the same probability, independently of all else. The order depends on the number of units
    alone, and nothing that is claimed needs it to be secret.
    """

    parts: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, parts=self.training(1.0).parts)

    @property
    def sampler(self) -> Sampler:
        return Sampler.CYCLIC

    def training(self, noise_multiplier: float) -> Training:
        return replace(super().training(noise_multiplier), parts=self.parts)

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        order = mixed_order(self.size)
        if self.parts is None:
            pieces = [
                order[start : start + self.batch_size] for start in range(0, self.size, self.batch_size)
            ]
        else:
            pieces = np.array_split(order, self.parts)
        rate = self.training(1.0).turn_rate
        for step in range(self._counted(after), self.steps):
            piece = pieces[step % len(pieces)]
            yield piece if self.parts is None else piece[exact.bernoulli(rate, len(piece), bits)]


@dataclass(frozen=True, kw_only=True)
class FixedBatches(Batches):
    """Each batch is a fresh choice of exactly `batch_size` units, every choice alike."""

    @property
    def sampler(self) -> Sampler:
        return Sampler.FIXED

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        for _ in range(self._counted(after), self.steps):
            yield np.sort(shuffled(self.size, bits)[: self.batch_size])


@dataclass(frozen=True, kw_only=True)
class ShuffledBatches(Batches):
    """Each epoch puts all units in a random order and cuts it into batches; the last may be smaller."""

    @property
    def sampler(self) -> Sampler:
        return Sampler.SHUFFLE

    def draw(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        for _ in range(self._epochs_done(after), self.epochs):
            order = shuffled(self.size, bits)
            for start in range(0, self.size, self.batch_size):
                yield order[start : start + self.batch_size]


def mixed_order(size: int) -> Indices:
    """An order that depends on the number of places alone: neighbours in the data come far from each other.

    Places are sorted by a fixed mixing of their bits (the last steps of MurmurHash3, by Appleby), which
    anybody can repeat.
    """
    words = np.arange(1, size + 1, dtype=np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        words ^= words >> np.uint64(33)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(33)
    return np.argsort(words, kind="stable").astype(np.int64, copy=False)


def shuffled(size: int, bits: Bits) -> Indices:
    """A uniform order of so many places: by random words, drawn again in the rare case that two are equal."""
    while True:
        words = bits.words(size)
        order = np.argsort(words, kind="stable")
        in_order = words[order]
        if not (in_order[1:] == in_order[:-1]).any():
            return order.astype(np.int64, copy=False)
