"""Quantiles by halving: the middle one splits the values, and each half is asked for its own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import Loss
from sourdine.core.mechanism import Example
from sourdine.frames.ranks import RankSource
from sourdine.tables.quantiles.inverse import draw_places, moved_by_one
from sourdine.tables.quantiles.levels import nearest
from sourdine.tables.quantiles.method import EPSILONS, MOST_PLACES, QuantileMethod
from sourdine.tables.quantiles.target import Target


@dataclass(frozen=True)
class Part:
    """The values from one place up to and without another, counted from the first."""

    source: RankSource
    first: int
    last: int

    @property
    def size(self) -> int:
        """How many there are."""
        low, high = self.source.count_below([self.first, self.last])
        return int(high - low)

    def count_below(self, places: ArrayLike) -> NDArray[np.int64]:
        """How many lie below each place."""
        inside = np.clip(np.asarray(places, np.int64) + self.first, self.first, self.last)
        return self.source.count_below(inside) - self.source.count_below([self.first])

    def values_between(self, first: int, last: int) -> NDArray[np.int64]:
        """The places of these ranks, counted from 0, the last left out."""
        before = int(self.source.count_below([self.first])[0])
        begin, end = max(first, 0), min(last, self.size)
        return self.source.values_between(before + begin, before + max(begin, end)) - self.first


@dataclass(frozen=True, kw_only=True)
class RecursiveQuantiles(QuantileMethod):
    """Finds the middle level by inverse sensitivity, splits the values there, and goes on in both parts.

    Each of ceil(log2(m + 1)) rounds gets a like part of epsilon (Kaplan, Schnapp, Stemmer 2022, theorem 3.3).
    A value that is added or removed lies in one part of a round. One that is replaced may leave one part and
    enter another, so below the first round each part is asked at half the price, as for a value more or less.
    A value equal to the split goes to the upper part.

    >>> quartiles = tuple(Fraction(i, 4) for i in (1, 2, 3))
    >>> RecursiveQuantiles(epsilon=1, levels=quartiles, places=101).rounds
    2
    """

    epsilon: Fraction
    radius: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        name = "RecursiveQuantiles"
        object.__setattr__(self, "epsilon", check.between(name, "epsilon", self.epsilon, *EPSILONS))
        object.__setattr__(self, "radius", check.integer(name, "radius", self.radius, 0, MOST_PLACES))

    @property
    def rounds(self) -> int:
        """How often the values are split."""
        return len(self.levels).bit_length()

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        whole = Part(source, 0, self.places)
        return np.stack([self._one(whole, bits) for _ in range(count)])

    def _one(self, whole: Part, bits: Bits) -> NDArray[np.int64]:
        found = np.empty(len(self.levels), np.int64)
        todo: list[tuple[Part, int, int, Fraction, Fraction]] = [
            (whole, 0, len(self.levels), Fraction(0), Fraction(1))
        ]
        while todo:
            part, first, last, low, high = todo.pop()
            middle = (first + last) // 2
            level = nearest((self.levels[middle] - low) / (high - low))
            root = first == 0 and last == len(self.levels)
            place = part.first + self._split(part, level, root, bits)
            found[middle] = place
            if place == part.first:  # nothing lies below it, and no other place is left
                found[first:middle] = place
            elif first < middle:
                below = Part(part.source, part.first, place)
                todo.append((below, first, middle, low, self.levels[middle]))
            if middle + 1 < last:
                above = Part(part.source, place, part.last)
                todo.append((above, middle + 1, last, self.levels[middle], high))
        return found

    def _split(self, part: Part, level: Fraction, root: bool, bits: Bits) -> int:
        relation = self.neighbours if root else Neighbours.ADD_REMOVE
        return int(
            draw_places(
                part,
                Target.of(level, part.size, relation),
                places=part.last - part.first,
                rate=self._price(root) / (2 * moved_by_one(level, relation)),
                radius=self.radius,
                count=1,
                bits=bits,
            )[0]
        )

    def _price(self, root: bool) -> Fraction:
        """The epsilon of one part: half of a round's where a replaced value touches two parts."""
        touched = 1 if root or self.neighbours is not Neighbours.REPLACE else 2
        return self.epsilon / self.rounds / touched

    def loss(self, distance: Distance) -> Loss:
        epsilon = self.epsilon * self.amount(distance)
        rho = (epsilon / self.rounds) ** 2 / 8 * self.rounds
        return Loss.pure(epsilon, neighbours=distance.neighbours, rho=rho)

    def error(self, confidence: float = 0.95) -> float:
        """How many ranks any answer is off at most: the errors of all rounds on its way add up."""
        beta = (1 - check.confidence("RecursiveQuantiles", confidence)) / len(self.levels)
        each = 2 * math.log(self.places / beta) / float(self._price(False))
        return self.rounds * each

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), levels=(Fraction(1, 2),), places=5),
            value=[1, 1, 3],
            neighbour=[1, 3, 3],
            distance=Distance.hamming(),
            code=lambda answers: answers[..., 0],
        )
