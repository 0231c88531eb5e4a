"""How batches are drawn, each way tied to the accounting that is true for it, by example or by person."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.dpsgd.training import Sampler, Training
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.randomness import exact
from sourdine.core.randomness.bits import SYSTEM, Bits

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Batches(ABC):
    """Batches of about `batch` out of `size` units, for so many epochs; its type decides the accounting.

    It draws the batches and states the run that is paid for, so that the two cannot differ. `neighbours` and
    `group` say whom the price protects, as in `Training`.
    """

    size: int
    batch: int
    epochs: int
    neighbours: Neighbours | None = None
    group: int = 1
    hides_size: ClassVar[bool] = False  # whether there may be more or fewer units than was declared

    def __post_init__(self) -> None:
        name = type(self).__name__
        check.keep(self, size=check.integer(name, "size", self.size, 1, 1 << 40))
        check.keep(self, batch=check.integer(name, "batch", self.batch, 1, 1 << 40))
        if self.batch > self.size:
            remedy = f"There are {self.size:,} examples."
            raise check.fail(name, "batch", "not be larger than the data", self.batch, remedy)
        check.keep(self, epochs=check.integer(name, "epochs", self.epochs, 1, 1 << 30))
        check.keep(self, group=self.training(1.0).group)  # which refuses what is not accounted for

    @property
    @abstractmethod
    def sampler(self) -> Sampler:
        """Its name in the accounting."""

    @abstractmethod
    def drawn(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
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

    def training(self, noise: float) -> Training:
        """The run that the accountants are asked about."""
        return Training(
            size=self.size,
            batch_size=self.batch,
            noise_multiplier=noise,
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
        return self.epochs * -(-self.size // self.batch)


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
    """Each unit comes into each batch with probability batch/size, independently of all else."""

    @property
    def sampler(self) -> Sampler:
        return Sampler.POISSON

    def drawn(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        rate = Fraction(self.batch, self.size)
        for _ in range(self._counted(after), self.steps):
            yield np.flatnonzero(exact.bernoulli(rate, self.population, bits))


@dataclass(frozen=True, kw_only=True)
class TruncatedBatches(Batches):
    """Poisson batches, of which any `most` units are kept, every choice alike, where more came."""

    most: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, most=self.training(1.0).max_batch_size)

    @property
    def sampler(self) -> Sampler:
        return Sampler.TRUNCATED

    @property
    def largest(self) -> int | None:
        return self.most

    def drawn(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        rate, most = Fraction(self.batch, self.size), self.most or self.size
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

    def drawn(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        many = self.steps // self.epochs
        for _ in range(self._epochs_done(after), self.epochs):
            chosen = exact.uniform(many, self.population, bits)
            order = np.argsort(chosen, kind="stable").astype(np.int64, copy=False)
            ends = np.cumsum(np.bincount(chosen, minlength=many))
            yield from np.split(order, ends[:-1])


@dataclass(frozen=True, kw_only=True)
class FixedBatches(Batches):
    """Each batch is a fresh choice of exactly `batch` units, every choice alike."""

    @property
    def sampler(self) -> Sampler:
        return Sampler.FIXED

    def drawn(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        for _ in range(self._counted(after), self.steps):
            yield np.sort(shuffled(self.size, bits)[: self.batch])


@dataclass(frozen=True, kw_only=True)
class ShuffledBatches(Batches):
    """Each epoch puts all units in a random order and cuts it into batches; the last may be smaller."""

    @property
    def sampler(self) -> Sampler:
        return Sampler.SHUFFLE

    def drawn(self, bits: Bits = SYSTEM, *, after: int = 0) -> Iterator[Indices]:
        for _ in range(self._epochs_done(after), self.epochs):
            order = shuffled(self.size, bits)
            for start in range(0, self.size, self.batch):
                yield order[start : start + self.batch]


def shuffled(size: int, bits: Bits) -> Indices:
    """A uniform order of so many places: by random words, drawn again in the rare case that two are equal."""
    while True:
        words = bits.words(size)
        order = np.argsort(words, kind="stable")
        held = words[order]
        if not (held[1:] == held[:-1]).any():
            return order.astype(np.int64, copy=False)


@dataclass(frozen=True)
class Drawn:
    """Examples of some people, equally many places for each; those that only fill up weigh nothing."""

    places: Indices
    weights: NDArray[np.float32]


class UnitExamples:
    """The units of the data, and where the examples of each are.

    Each time a person is drawn, at most `most` of their examples count, chosen afresh at random, each with a
    weight of one over their number. So a person moves a sum by one clipped gradient, whatever they own.
    Examples without an id (None, NaN) belong to nobody and are left out.

    >>> people = UnitExamples(["ann", "bob", "ann", None], most=2)
    >>> len(people), people.drawn(np.array([1])).weights.tolist()
    (2, [1.0, 0.0])
    """

    def __init__(self, ids: ArrayLike | Iterable[object], most: int) -> None:
        self.most = check.integer("fit", "examples_per_unit", most, 1, 1 << 20)
        codes: dict[object, int] = {}
        listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)  # type: ignore[arg-type]
        held = np.array([_code(each, codes) for each in listed], np.int64)
        self.examples = len(held)
        order = np.argsort(held, kind="stable")
        self._places = order[np.searchsorted(held[order], 0) :]
        self._counts = np.bincount(held[self._places], minlength=len(codes))
        self._starts = np.cumsum(self._counts) - self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def drawn(self, people: Indices, bits: Bits = SYSTEM) -> Drawn:
        """The examples that count when these people are drawn."""
        counts = self._counts[people]
        owner = np.repeat(np.arange(len(people)), counts)
        first = np.cumsum(counts) - counts
        rank = np.arange(len(owner)) - first[owner]
        found = self._places[self._starts[people][owner] + rank]
        order = np.lexsort(
            (bits.words(len(owner)), owner)
        )  # each person's examples stay together, in any order
        kept = rank < self.most
        places = np.repeat(found[order][first], self.most).reshape(len(people), self.most)
        places[owner[kept], rank[kept]] = found[order][kept]
        taken = np.minimum(counts, self.most)
        filled = np.arange(self.most) < taken[:, None]
        weights = np.where(filled, 1 / taken[:, None], 0.0).astype(np.float32)
        return Drawn(places.ravel(), weights.ravel())


def _code(one: object, codes: dict[object, int]) -> int:
    if one is None or (isinstance(one, float) and math.isnan(one)):
        return -1
    return codes.setdefault(one, len(codes))
