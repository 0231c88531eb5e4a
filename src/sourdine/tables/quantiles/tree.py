"""A tree of bins over a grid: noisy counts at every level, and quantiles found by walking down.

Every level cuts the grid into bins, and every value lies in one bin of each. All counts of the tree get the
same noise; only those on the way are ever drawn, since the others would never be looked at.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sourdine.core.mechanism import Mechanism
from sourdine.core.randomness.bits import Bits
from sourdine.frames.statistics.ranks import RankSource
from sourdine.tables.estimate import GroupEstimate
from sourdine.tables.noise import deviation, like_noises

_FAN = 16  # near e^3, where the error of a rank is least for a grid of given size


@dataclass(frozen=True)
class BinTree:
    """How a grid of `size` places is cut: `height` levels of bins, each with `fan` bins of the next.

    The finest bins hold `leaf` places: one each, or more where there are too few values to tell places apart.
    """

    size: int
    fan: int
    height: int
    leaf: int = 1

    @classmethod
    def over(cls, size: int) -> "BinTree":
        """The tree for a grid.

        >>> BinTree.over(121)
        BinTree(size=121, fan=11, height=2, leaf=1)
        """
        height = max(1, math.ceil(math.log(max(size, 2)) / math.log(_FAN) - 1e-9))
        fan = max(2, math.ceil(size ** (1 / height) - 1e-9))
        while fan**height < size:
            fan += 1
        return cls(size, fan, height)

    @classmethod
    def flat(cls, size: int, bins: int) -> "BinTree":
        """One level of at most so many bins of one width; as many as there are places, if those are fewer.

        All noise goes into one level, so ranks are exact to fewer values, and places to a bin.

        >>> BinTree.flat(121, 16)
        BinTree(size=121, fan=16, height=1, leaf=8)
        """
        leaf = -(-size // max(bins, 2))
        return cls(size, max(2, -(-size // leaf)), 1, leaf)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many places the bins of each level hold, from the widest."""
        return tuple(self.leaf * self.fan**depth for depth in reversed(range(self.height)))

    @property
    def near(self) -> int:
        """How many steps from an answer another place of its bin may lie."""
        return self.leaf - 1

    def spread(self, level: float) -> float:
        """About the variance of the noisy count below a quantile, in variances of one noise."""
        return max(1.0, self.fan * level * (1 - level) + (self.height - 1) * self.fan / 4)


@dataclass
class TreeWalk:
    """The noisy counts of one group as far as they were looked at, and what is read off them."""

    tree: BinTree
    values: RankSource
    noisy: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    deviation: float
    seen: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict)

    def total(self) -> float:
        """The noisy number of values."""
        return float(self._bins(0, 0).sum())

    def find(self, rank: float, level: float, last: bool = False) -> "Place":
        """The first place where the noisy count reaches a rank, or the last before it is passed for good.

        Noisy counts of the bins in a bin are first made to add up to its own. A bin that holds less than the
        noise is not cut further, nor is one of the finest: its values are taken as spread evenly.
        """
        fan, widths = self.tree.fan, self.tree.widths
        start, below, whole, spread, inside = 0, 0.0, self.total(), 0.0, 0.0
        for depth, width in enumerate(widths):
            counts = self._bins(depth, start)
            if depth:
                counts = counts + (whole - counts.sum()) / fan
            sums = below + np.cumsum(counts)
            j = _last_before(sums - counts, rank) if last else _first_reaching(sums, rank)
            spread += self._added(depth, j, level)
            below, whole = float(sums[j] - counts[j]), float(counts[j])
            start += j * width
            if whole < 3 * self.deviation or width == widths[-1]:
                inside = min(max((rank - below) / whole, 0.0), 1.0) if whole > 0 else 0.5
                break
        first = min(start, self.tree.size - 1)
        held = min(width, self.tree.size - first)  # the last bin may reach beyond the grid
        middle, end = (float(first + part * (held - 1)) for part in (inside, 1.0))
        return Place(float(first), middle, end, max(spread, 1.0))

    def _added(self, depth: int, j: int, level: float) -> float:
        """What a level adds to the variance of the count below a place less a share of the total, in noises.

        Of the first level, bins below the place count with 1 - level and the others with -level. Below it the
        bins before the place count but for the share j / fan of what makes them add up, and with that share
        the bin that they are in.
        """
        fan = self.tree.fan
        if depth == 0:
            return (1 - level) ** 2 * j + level**2 * (fan - j)
        outer = (j / fan - level) ** 2 - level**2 if depth == 1 else (j / fan) ** 2
        return j * (1 - j / fan) + outer

    def _bins(self, depth: int, start: int) -> NDArray[np.float64]:
        key = (depth, start)
        if key not in self.seen:
            edges = start + self.tree.widths[depth] * np.arange(self.tree.fan + 1, dtype=np.int64)
            self.seen[key] = self.noisy(np.diff(self.values.count_below(edges))).astype(float)
        return self.seen[key]


@dataclass(frozen=True)
class Place:
    """A place, the first and the last that the tree does not tell from it, and the variance of its count."""

    first: float
    middle: float
    last: float
    spread: float


def _first_reaching(sums: NDArray[np.float64], rank: float) -> int:
    found = np.flatnonzero(sums >= rank)
    return int(found[0]) if found.size else len(sums) - 1


def _last_before(starts: NDArray[np.float64], rank: float) -> int:
    found = np.flatnonzero(starts <= rank)
    return int(found[-1]) if found.size else 0


def quantiles(
    walk: TreeWalk, at: Sequence[float], reach: Callable[[float], float]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Places of quantiles and the ends of their intervals, each in rising order.

    An interval holds every place whose noisy count lies within reach of the rank. `reach` tells what a sum of
    so many noises stays within, for each unit of the square root of their number.
    """
    found = []
    for level in at:
        rank = level * walk.total()  # even below 0, so that a count less its rank is a sum of noises alone
        place = walk.find(rank, level)

        def end(last: bool, rank: float = rank, level: float = level, place: Place = place) -> Place:
            """The count at an end may have more noise than that at the place: the larger one is taken."""
            sign, spread = 1 if last else -1, place.spread
            for _ in range(2):
                margin = reach(spread) * math.sqrt(spread)
                reached = walk.find(rank + sign * margin, level, last)
                spread = max(spread, reached.spread)
            return reached

        low, high = end(False).first, end(True).last
        found.append((min(low, place.middle), place.middle, max(high, place.middle)))
    lows, places, highs = np.maximum.accumulate(np.array(found), axis=0).T
    return places, lows, highs


def read_quantiles(
    values: RankSource,
    tree: BinTree,
    *,
    mechanism: Mechanism,
    at: Sequence[float],
    confidence: float,
    bits: Bits,
) -> GroupEstimate:
    """Places of quantiles with their intervals, by a noisy tree; whole numbers, the ends going outwards."""
    walk = TreeWalk(tree, values, lambda counts: mechanism.sample(counts, bits), deviation(mechanism))
    reach = lambda many: float(like_noises(mechanism, many, confidence))
    place, lower, upper = quantiles(walk, at, reach)
    return GroupEstimate(np.rint(place), np.floor(lower), np.ceil(upper))
