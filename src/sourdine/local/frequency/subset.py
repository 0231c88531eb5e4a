"""Subset selection: a report is a set of categories, more often with the true one in it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.shuffling.blanket import Favours
from sourdine.core import check
from sourdine.core.mechanism import Example
from sourdine.core.random import packed
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits, Branch
from sourdine.core.random.selection import sets, spots
from sourdine.core.random.tables import WeightTerms, table
from sourdine.local.frequency.supports import BitwiseOracle, bitwise_examples
from sourdine.local.oracle import Bytes
from sourdine.mechanisms.randomized_response import Channel

_FEW = 16  # categories of which 16 bits hold a set


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(BitwiseOracle):
    """Reports `size` of the categories: e^epsilon times as often a set with the true one as any without it.

    A changed answer costs epsilon (Ye, Barg 2018; Wang et al. 2016; proof in docs/guarantees/subset.md). With
    d = size out of k, the true category is in the set with probability p = d e^epsilon/(d e^epsilon + k - d),
    any other with q = (d - p)/(k - 1). Unless given (0), d is the whole number that makes the variances of
    all shares together least, next to k/(e^epsilon + 1).

    >>> SubsetSelection(epsilon=1, categories=1000).size
    269
    """

    name: ClassVar[str] = "subset-selection/1"
    epsilon: Fraction
    categories: int
    size: int = 0
    memory: ClassVar[int] = 1 << 22

    def __post_init__(self) -> None:
        self.check_declared()
        size = check.integer("SubsetSelection", "size", self.size, 0, self.categories // 2)
        object.__setattr__(self, "size", size or best_size(self.epsilon, self.categories))

    @property
    def channel(self) -> Channel:
        d, k, fall = self.size, self.categories, math.exp(-float(self.epsilon))
        total = d + (k - d) * fall
        return Channel(d / total, d * (d - 1 + (k - d) * fall) / (total * (k - 1)))

    @property
    def revealing(self) -> float:
        return self.channel.p * (self.categories - self.size) / (self.categories - 1)

    @property
    def favours(self) -> tuple[Favours, ...]:
        d, k = self.size, self.categories
        alone, both = d * (k - d) / (k * (k - 1)), d * (d - 1) / (k * (k - 1))
        third = alone * (k - d - 1) / (k - 2) if k > 2 else 0.0
        return (Favours(each=d / k, alone=alone, both=both, third=third),)

    def encode(self, truth: NDArray[np.int64], bits: Bits) -> Bytes:
        """A coin tells whether the true category is in; the others are those of a random set one larger.

        Take the true category out of size + 1 different ones in random order. What is left are others in
        random order, as many as are needed or up to two more: those at the end are dropped.
        """
        odds = Fraction(self.size, self.categories - self.size)
        among = exact.bernoulli_odds(self.epsilon, odds, truth.size, bits)
        rows, last, before = sets(self.size + 1, self.categories, truth.size, bits)
        flat, first = rows.reshape(-1), np.arange(truth.size) * rows.shape[1]
        at, bit = spots(first, truth)
        octets = flat[at]
        surplus = among + ((octets & bit) == 0).astype(np.int8)
        flat[at] = octets & ~bit | bit * among
        for element, drop in (
            (np.where(last == truth, before, last), surplus > 0),
            (before, surplus > 1),
        ):
            at, bit = spots(first, element)
            flat[at] &= ~(bit * drop)
        return rows[:, : self.width]

    def fill(self, reports: Bytes, truth: NDArray[np.int64], branch: Branch) -> None:
        """Of few categories, sets drawn whole from a table and turned around the circle, 0 to the truth."""
        if self.categories > _FEW:
            super().fill(reports, truth, branch)
            return
        short = np.empty(truth.size, np.uint16)
        _turned_sets(self.epsilon, self.categories, self.size).fill(short, branch)
        twice = short * np.uint32((1 << self.categories) + 1)
        twice >>= truth.astype(np.uint32)
        twice <<= np.uint32(8 * self.width - self.categories)
        turned = twice.astype(np.uint8 if self.width == 1 else ">u2")
        reports[:] = turned.view(np.uint8).reshape(-1, self.width)

    def sound(self, rows: Bytes) -> NDArray[np.bool_]:
        """Sets of the right size."""
        return np.asarray(super().sound(rows) & (packed.by_row(rows) == self.size))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        return bitwise_examples(
            cls(epsilon=Fraction(4, 3), categories=7, size=2),
            cls(epsilon=Fraction(3, 4), categories=11),
            cls(epsilon=Fraction(2, 3), categories=4, size=2),
        )


@lru_cache(maxsize=16)
def _turned_sets(epsilon: Fraction, categories: int, size: int) -> packed.ShortTable:
    """Sets as they are where the truth is category 0, the first category in the highest bit."""
    chosen = [sum(1 << categories - 1 - c for c in each) for each in combinations(range(categories), size)]
    inside = math.comb(categories - 1, size - 1)  # combinations with 0 come first
    weights = WeightTerms((1,) * len(chosen), (epsilon,) * inside + (0,) * (len(chosen) - inside))
    return packed.ShortTable(table(weights), np.array(chosen, np.uint16))


def best_size(epsilon: Fraction, categories: int) -> int:
    """The size of a subset with the least variance of all shares together.

    With x = d/(k - d) that sum grows with e^{2 epsilon} x + 1/x, which is convex in x and least at
    d = k/(e^epsilon + 1). The next d is better where e^{2 epsilon} d (d+1) < (k-d) (k-d-1).

    >>> best_size(Fraction(1), 10), best_size(Fraction(512), 10)
    (3, 1)
    """
    k = categories
    d = max(1, math.floor(k / (math.exp(float(epsilon)) + 1)))
    if k == 2 or 2 * float(epsilon) + math.log(d * (d + 1)) >= math.log((k - d) * (k - d - 1)):
        return d
    return d + 1
