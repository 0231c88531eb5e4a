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
from sourdine.core.random.bits import Bits
from sourdine.frames.rank_counts import GroupRanks
from sourdine.tables.intervals import GroupEstimate, deviation, like_noises

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_GROUPS = 1 << 10  # that are walked side by side, so that what was looked at stays small
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
    """The noisy counts of some groups as far as they were looked at, and what is read off them.

    Many walks go down side by side, each in its own group. Those that meet in a bin see the same counts.
    """

    tree: BinTree
    values: GroupRanks
    noisy: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    deviation: float
    levels: dict[int, "NoisyBins"] = field(default_factory=dict)

    def total(self, group: Ints) -> Floats:
        """The noisy number of values of each group."""
        total: Floats = self._bins(0, group, np.zeros_like(group)).sum(axis=1)
        return total

    def find(self, group: Ints, rank: Floats, level: Floats, last: bool = False) -> "Places":
        """The first places where the noisy counts reach some ranks, or the last before they are passed.

        Noisy counts of the bins in a bin are first made to add up to its own. A bin that holds less than the
        noise is not cut further, nor is one of the finest: its values are taken as spread evenly.
        """
        size, fan, widths = len(rank), self.tree.fan, self.tree.widths
        start, wide = np.zeros(size, np.int64), np.zeros(size, np.int64)
        below, spread, inside = np.zeros((3, size))
        whole, todo = self.total(group), np.arange(size)
        for depth, width in enumerate(widths):
            counts = self._bins(depth, group[todo], start[todo])
            if depth:
                counts = counts + ((whole[todo] - counts.sum(axis=1)) / fan)[:, None]
            sums = below[todo, None] + np.cumsum(counts, axis=1)
            j = _last_before(sums - counts, rank[todo]) if last else _first_reaching(sums, rank[todo])
            here = np.arange(len(todo)), j
            spread[todo] += self._added(depth, j, level[todo])
            below[todo], whole[todo] = (sums - counts)[here], counts[here]
            start[todo] += j * width
            wide[todo] = width
            todo = todo[whole[todo] >= 3 * self.deviation]
        holds = whole > 0
        inside[~holds] = 0.5
        inside[holds] = np.clip((rank[holds] - below[holds]) / whole[holds], 0.0, 1.0)
        first = np.minimum(start, self.tree.size - 1)
        size = np.minimum(wide, self.tree.size - first)  # the last bin may reach beyond the grid
        end = (first + size - 1).astype(float)
        return Places(first.astype(float), first + inside * (size - 1), end, np.maximum(spread, 1.0))

    def _added(self, depth: int, j: Ints, level: Floats) -> Floats:
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

    def _bins(self, depth: int, group: Ints, start: Ints) -> Floats:
        """The noisy counts of the bins within the bin that begins at each start: one row each.

        Those that were not looked at before are counted and drawn now, each once.
        """
        width, fan = self.tree.widths[depth], self.tree.fan
        nodes = fan**depth  # also those beyond the grid, where noise may lead
        bins = self.levels.setdefault(depth, NoisyBins.empty(fan))
        code = group * nodes + start // (width * fan)
        fresh = bins.lacking(code)
        if fresh.size:
            edges = (fresh % nodes * (width * fan))[:, None] + width * np.arange(fan + 1, dtype=np.int64)
            owner = np.broadcast_to((fresh // nodes)[:, None], edges.shape)
            exact = np.diff(self.values.count_below(owner, edges), axis=1)
            counts = self.noisy(exact.ravel()).reshape(exact.shape).astype(float)
            bins = self.levels[depth] = bins.joined(fresh, counts)
        rows: Floats = bins.counts[np.searchsorted(bins.codes, code)]
        return rows


@dataclass(frozen=True)
class NoisyBins:
    """Bins of one level that were looked at, in rising order, and the noisy counts of those within each."""

    codes: Ints
    counts: Floats

    @classmethod
    def empty(cls, fan: int) -> "NoisyBins":
        return cls(np.zeros(0, np.int64), np.zeros((0, fan)))

    def lacking(self, codes: Ints) -> Ints:
        """The bins among these that were not looked at, each once."""
        return np.setdiff1d(codes, self.codes)

    def joined(self, codes: Ints, counts: Floats) -> "NoisyBins":
        """With others beside them."""
        at = np.searchsorted(self.codes, codes)
        return NoisyBins(np.insert(self.codes, at, codes), np.insert(self.counts, at, counts, axis=0))


@dataclass(frozen=True)
class Places:
    """Places, the first and the last that the tree does not tell from each, and the variance of its count."""

    first: Floats
    middle: Floats
    last: Floats
    spread: Floats


def _first_reaching(sums: Floats, rank: Floats) -> Ints:
    """In each row the first sum that reaches a rank, or the last of all."""
    reached = sums >= rank[:, None]
    first: Ints = np.where(reached.any(axis=1), reached.argmax(axis=1), sums.shape[1] - 1)
    return first


def _last_before(starts: Floats, rank: Floats) -> Ints:
    """In each row the last start that does not pass a rank, or the first of all."""
    before = starts <= rank[:, None]
    last: Ints = np.where(before.any(axis=1), starts.shape[1] - 1 - before[:, ::-1].argmax(axis=1), 0)
    return last


def quantiles(
    walk: TreeWalk, groups: Ints, levels: Sequence[float], reach: Callable[[Floats], Floats]
) -> tuple[Floats, Floats, Floats]:
    """Places of quantiles and the ends of their intervals: a row for each group, rising along each.

    An interval holds every place whose noisy count lies within reach of the rank. `reach` tells what a sum of
    so many noises stays within, for each unit of the square root of their number.
    """
    group, level = np.repeat(groups, len(levels)), np.tile(np.array(levels, float), len(groups))
    rank = level * walk.total(group)  # even below 0, so that a count less its rank is a sum of noises alone
    place = walk.find(group, rank, level)

    def end(last: bool) -> Places:
        """The count at an end may have more noise than that at the place: the larger one is taken."""
        sign, spread = 1 if last else -1, place.spread
        for _ in range(2):
            margin = reach(spread) * np.sqrt(spread)
            reached = walk.find(group, rank + sign * margin, level, last)
            spread = np.maximum(spread, reached.spread)
        return reached

    middle = place.middle
    ends = middle, np.minimum(end(False).first, middle), np.maximum(end(True).last, middle)
    places, lows, highs = (
        np.maximum.accumulate(part.reshape(len(groups), len(levels)), axis=1) for part in ends
    )
    return places, lows, highs


def read_quantiles(
    values: GroupRanks,
    tree: BinTree,
    *,
    mechanism: Mechanism,
    levels: Sequence[float],
    confidence: float,
    bits: Bits,
) -> GroupEstimate:
    """Places of quantiles with their intervals, by a noisy tree; whole numbers, the ends going outwards.

    The groups come one after the other, each with all its levels.
    """
    reach = lambda many: like_noises(mechanism, many, confidence)
    parts = [(np.zeros((0, len(levels))),) * 3]
    for first in range(0, len(values), _GROUPS):
        groups = np.arange(first, min(first + _GROUPS, len(values)))
        walk = TreeWalk(tree, values, lambda counts: mechanism.sample(counts, bits), deviation(mechanism))
        parts.append(quantiles(walk, groups, levels, reach))
    place, lower, upper = (np.concatenate(part).ravel() for part in zip(*parts, strict=True))
    return GroupEstimate(np.rint(place), np.floor(lower), np.ceil(upper))
