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
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.rank_counts import GroupRanks, RankSource, SeparateRanks, SortedPlaces
from sourdine.tables.quantiles.inverse import draw_places, moved_by_one
from sourdine.tables.quantiles.method import (
    MOST_PLACES,
    WHOLE,
    FinePlaces,
    FineRanks,
    Ints,
    Jittered,
    JitteredGroups,
    QuantileMethod,
    SetApart,
    Targets,
    batches,
    fine_bits,
    nearest,
)

EXAMPLE_BITS = 2  # that values are set apart by in the examples, so that their laws can be written out


@dataclass(frozen=True)
class ValueRanges(GroupRanks):
    """Parts of groups: the values from one place up to and without another, counted from the first."""

    whole: GroupRanks
    groups: Ints
    first: Ints
    last: Ints

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def _before(self) -> Ints:
        """How many values of the whole group lie below the first place."""
        return self.whole.count_below(self.groups, self.first)

    @cached_property
    def sizes(self) -> Ints:
        return self.whole.count_below(self.groups, self.last) - self._before

    def count_below(self, groups: Ints, places: Ints) -> Ints:
        first = self.first[groups]
        inside = np.clip(places + first, first, self.last[groups])
        return self.whole.count_below(self.groups[groups], inside) - self._before[groups]

    def values_between(self, groups: Ints, first: Ints, last: Ints) -> Ints:
        before = self._before[groups]
        places = self.whole.values_between(self.groups[groups], before + first, before + last)
        return places - np.repeat(self.first[groups], last - first)

    def part(self, group: int) -> SortedPlaces:
        return SortedPlaces(self.values_of(np.array([group])))


@dataclass(frozen=True, kw_only=True)
class RecursiveQuantiles(QuantileMethod):
    """Finds the middle level by inverse sensitivity, splits the values there, and goes on in both parts.

    Each of ceil(log2(m + 1)) rounds gets a like part of epsilon (Kaplan, Schnapp, Stemmer 2022).
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

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> Ints:
        """So many independent answers; the values are set apart anew for each."""
        return self.draw_groups(SeparateRanks((), (source,) * count), bits)

    def draw_groups(self, values: GroupRanks, bits: Bits = SYSTEM) -> Ints:
        """An answer for each group: those of few values side by side, large ones by themselves."""
        out = np.empty((len(values), len(self.levels)), np.int64)
        for group in np.flatnonzero(values.sizes > WHOLE).tolist():
            out[group] = self.draw_apart(Jittered(values.part(group), self.places, bits), 1, bits)[0]
        for groups in batches(np.flatnonzero(values.sizes <= WHOLE), values.sizes, self.places):
            fine = JitteredGroups.of(values, groups, self.places, bits)
            out[groups] = self._halved(fine.ranks(self.places), np.arange(len(groups)), bits)
        return out

    def draw_apart(self, values: FinePlaces, count: int, bits: Bits) -> Ints:
        """So many answers for values that have been set apart; like parts go on together."""
        alone = SeparateRanks.alone(FineRanks(values))
        return self._halved(alone, np.zeros(count, np.int64), bits, values.shift)

    def _halved(self, fine: GroupRanks, owner: Ints, bits: Bits, shift: int | None = None) -> Ints:
        """An answer of each owner's group of values that have been set apart, by so many bits."""
        shift, count = fine_bits(self.places) if shift is None else shift, len(owner)
        out = np.empty((count, len(self.levels)), np.int64)
        whole = np.full(count, self.places << shift)
        todo = [(0, len(self.levels), np.zeros(count, np.int64), whole, np.arange(count))]
        while todo:
            first, last, begins, ends, answers = todo.pop()
            middle = (first + last) // 2
            ranges = np.stack([owner[answers], begins, ends])
            (groups, low, high), part = np.unique(ranges, axis=1, return_inverse=True)
            parts = ValueRanges((), fine, groups, low, high)
            radius = min(self.radius, self.places) << shift
            places = begins + self._split(parts, first, last, radius=radius, owner=part.ravel(), bits=bits)
            out[answers, middle] = places
            low = places == begins  # nothing lies below it, and no other place is left
            out[answers[low], first:middle] = places[low, None]
            if first < middle and not low.all():
                todo.append((first, middle, begins[~low], places[~low], answers[~low]))
            if middle + 1 < last:
                todo.append((middle + 1, last, places, ends, answers))
        answered: Ints = out >> shift
        return answered

    def _split(
        self, parts: ValueRanges, first: int, last: int, *, radius: int, owner: Ints, bits: Bits
    ) -> Ints:
        """The places in each owner's part of the middle one of the levels first .. last - 1."""
        low, high = ([Fraction(0), *self.levels, Fraction(1)][i] for i in (first, last + 1))
        level = nearest((self.levels[(first + last) // 2] - low) / (high - low))
        root = first == 0 and last == len(self.levels)
        relation = self.neighbours if root else Neighbours.ADD_REMOVE
        return draw_places(
            parts,
            Targets.of(level, parts.sizes, relation),
            places=parts.last - parts.first,
            rate=self._price(root) / (2 * moved_by_one(level, relation)),
            radius=radius,
            owner=owner,
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
    def rho_at_one(cls, count: int) -> Fraction:
        return Fraction(1, 8 * count.bit_length())

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
                draw=partial(_draw_apart, mechanism),
            )


def _draw_apart(mechanism: RecursiveQuantiles, value: ArrayLike, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many answers for values that are set apart by where they stand, in rising order."""
    fine = SetApart.evenly(value, mechanism.places, EXAMPLE_BITS)
    return np.sort(mechanism.draw_apart(fine, count, bits), axis=-1)
