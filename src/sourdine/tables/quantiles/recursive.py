"""Quantiles by halving: the middle one splits the values, and each half is asked for its own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.frames.statistics.group_ranks import RankSource
from sourdine.tables.quantiles.inverse import draw_places, moved_by_one
from sourdine.tables.quantiles.jitter import FinePlaces, FineRanks, Jittered, SetApart, fine_bits
from sourdine.tables.quantiles.method import MOST_PLACES, QuantileMethod, Target, nearest

EXAMPLE_BITS = 2  # that values are set apart by in the examples, so that their laws can be written out


@dataclass(frozen=True)
class ValueRange:
    """The values from one place up to and without another, counted from the first."""

    source: RankSource
    first: int
    last: int

    @cached_property
    def _ranks(self) -> tuple[int, int]:
        """How many of all values lie below the first place, and below the last."""
        before, upto = self.source.count_below([self.first, self.last])
        return int(before), int(upto)

    @property
    def size(self) -> int:
        """How many there are."""
        return self._ranks[1] - self._ranks[0]

    def count_below(self, places: ArrayLike) -> NDArray[np.int64]:
        """How many lie below each place."""
        inside = np.clip(np.asarray(places, np.int64) + self.first, self.first, self.last)
        return self.source.count_below(inside) - self._ranks[0]

    def values_between(self, first: int, last: int) -> NDArray[np.int64]:
        """The places of these ranks, counted from 0, the last left out."""
        before, begin, end = self._ranks[0], max(first, 0), min(last, self.size)
        return self.source.values_between(before + begin, before + max(begin, end)) - self.first


def _parts(
    source: RankSource, begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.intp], ValueRange]]:
    """The different parts among these, and who is in each."""
    distinct, who = np.unique(np.stack([begins, ends], axis=1), axis=0, return_inverse=True)
    for i, (begin, end) in enumerate(distinct.tolist()):
        yield np.flatnonzero(who.ravel() == i), ValueRange(source, begin, end)


@dataclass(frozen=True, kw_only=True)
class RecursiveQuantiles(QuantileMethod):
    """Finds the middle level by inverse sensitivity, splits the values there, and goes on in both parts.

    Each of ceil(log2(m + 1)) rounds gets a like part of epsilon (Kaplan, Schnapp, Stemmer 2022, theorem 3.3).
    A value that is added or removed lies in one part of a round. One that is replaced may leave one part and
    enter another, so below the first round each part is asked at half the price, as for a value more or less.
    Equal values are set apart at random on a finer grid, as the joint method does: were they to go to one
    side of a split all together, the other side would hold fewer than its levels count on. A radius is in
    steps of the coarse grid.

    >>> quartiles = tuple(Fraction(i, 4) for i in (1, 2, 3))
    >>> RecursiveQuantiles(epsilon=1, levels=quartiles, places=101).rounds
    2
    """

    name: ClassVar[str] = "recursive-quantiles/1"
    radius: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        radius = check.integer("RecursiveQuantiles", "radius", self.radius, 0, MOST_PLACES)
        object.__setattr__(self, "radius", radius)

    @property
    def rounds(self) -> int:
        """How often the values are split."""
        return len(self.levels).bit_length()

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        """So many independent answers; the values are set apart anew for each."""
        return np.concatenate(
            [self.given(Jittered(source, self.places, bits), 1, bits) for _ in range(count)]
        )

    def given(self, values: FinePlaces, count: int, bits: Bits) -> NDArray[np.int64]:
        """So many answers for values that have been set apart; like parts go on together."""
        found = np.empty((count, len(self.levels)), np.int64)
        source, radius = FineRanks(values), min(self.radius, self.places) << values.shift
        todo = [
            (0, len(self.levels), np.zeros(count, np.int64), np.full(count, values.size), np.arange(count))
        ]
        while todo:
            first, last, begins, ends, answers = todo.pop()
            middle = (first + last) // 2
            places = np.empty(len(answers), np.int64)
            for rows, part in _parts(source, begins, ends):
                places[rows] = part.first + self._split(
                    part, first, last, radius=radius, count=len(rows), bits=bits
                )
            found[answers, middle] = places
            low = places == begins  # nothing lies below it, and no other place is left
            found[answers[low], first:middle] = places[low, None]
            if first < middle and not low.all():
                todo.append((first, middle, begins[~low], places[~low], answers[~low]))
            if middle + 1 < last:
                todo.append((middle + 1, last, places, ends, answers))
        return found >> values.shift

    def _split(
        self, part: ValueRange, first: int, last: int, *, radius: int, count: int, bits: Bits
    ) -> NDArray[np.int64]:
        """The places in a part of the middle one of the levels first .. last - 1."""
        low, high = ([Fraction(0), *self.levels, Fraction(1)][i] for i in (first, last + 1))
        level = nearest((self.levels[(first + last) // 2] - low) / (high - low))
        root = first == 0 and last == len(self.levels)
        relation = self.neighbours if root else Neighbours.ADD_REMOVE
        return draw_places(
            part,
            Target.of(level, part.size, relation),
            places=part.last - part.first,
            rate=self._price(root) / (2 * moved_by_one(level, relation)),
            radius=radius,
            count=count,
            bits=bits,
        )

    def _price(self, root: bool) -> Fraction:
        """The epsilon of one part: half of a round's where a replaced value touches two parts."""
        touched = 1 if root or self.neighbours is not Neighbours.REPLACE else 2
        return self.epsilon / self.rounds / touched

    def loss(self, distance: Distance) -> PrivacyLoss:
        epsilon = self.spent(distance)
        rho = epsilon**2 * self.rho_at_one(len(self.levels))
        return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours, rho=rho)

    @classmethod
    def rho_at_one(cls, levels: int) -> Fraction:
        return Fraction(1, 8 * levels.bit_length())

    def error(self, confidence: float = 0.95) -> float:
        """How many ranks any answer is off at most: the errors of all rounds on its way add up.

        It is so without a radius: a place within the radius of a good one may split equal values badly.
        """
        beta = (1 - check.confidence("RecursiveQuantiles", confidence)) / len(self.levels)
        fine = self.places << fine_bits(self.places)
        each = 2 * math.log(fine / beta) / float(self._price(False))
        return self.rounds * each

    def ranks_off(self, confidence: float = 0.95) -> float | None:
        crowded = fine_bits(self.places) < fine_bits(1)  # a step has too few fine places to set many apart
        return None if self.radius or crowded else self.error(confidence)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        """Given how equal values are set apart, by two bits: the claim holds for each way.

        There are ties, a value that goes from one bound to the other, and one that is removed.
        """
        quartiles = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
        for one, other, relation in (
            ([2, 2, 0], [2, 2, 4], Neighbours.REPLACE),
            ([0, 0, 4, 4], [0, 4, 4, 4], Neighbours.REPLACE),
            ([0, 4, 0], [0, 4], Neighbours.ADD_REMOVE),
        ):
            mechanism = cls(epsilon=Fraction(4, 3), levels=quartiles, places=5, neighbours=relation)
            yield Example(
                mechanism=mechanism,
                value=one,
                neighbour=other,
                distance=Distance.hamming(neighbours=relation),
                code=lambda answers: answers @ [25, 5, 1],
                draw=partial(_given, mechanism),
            )


def _given(mechanism: RecursiveQuantiles, value: ArrayLike, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many answers for values that are set apart by where they stand, in rising order."""
    held = SetApart.evenly(value, mechanism.places, EXAMPLE_BITS)
    return np.sort(mechanism.given(held, count, bits), axis=-1)
