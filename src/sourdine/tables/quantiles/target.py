"""How far each place of a grid is from being a quantile, in values that would have to change.

With c(t) values below t and C(t) up to t, the gap of a place t is

    max(0, D c(t) - H, L - D C(t))

in units of 1/D. Where a value may be replaced, D = 1, L = k and H = k - 1 for the rank k = ceil(q n) within
1 .. n: the number of values to replace so that t is the quantile (Asi and Duchi 2020). Where one may be added
or removed, D is the denominator of q and L = H = D q n: the distance of q n from the ranks of t.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Neighbours
from sourdine.core.segments import Segments
from sourdine.frames.ranks import RankSource

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Target:
    """The ranks that a quantile of some values should have."""

    unit: int
    low: int
    high: int

    @classmethod
    def of(cls, level: Fraction, size: int, neighbours: Neighbours) -> "Target":
        """The target of a level among so many values."""
        if neighbours is Neighbours.REPLACE:
            rank = min(max(-(-level.numerator * size // level.denominator), 1), max(size, 1))
            return cls(1, rank, rank - 1)
        whole = level.numerator * size
        return cls(level.denominator, whole, whole)

    def gaps(self, below: Ints, upto: Ints) -> Ints:
        """The gaps of places with so many values below them, and up to them."""
        found: Ints = np.maximum(np.maximum(self.unit * below - self.high, self.low - self.unit * upto), 0)
        return found

    def window(self, reach: int) -> tuple[int, int]:
        """The ranks, from the first to one past the last, whose gap is at most `reach` units."""
        first = (self.low - reach) // self.unit - 1
        last = -(-(self.high + reach) // self.unit) + 1
        return max(first, 0), max(last, 0)


@dataclass(frozen=True)
class Around:
    """Segments of a grid by their gaps; of a tail, only the least gap that any of its places can have."""

    segments: Segments
    tail: NDArray[np.bool_]


def around(source: RankSource, target: Target, size: int, reach: int, radius: int = 0) -> Around:
    """The gaps of all places of a grid: exact for those within a reach of the target, bounds in the tails.

    With a radius, the gap of a place is the least of any place within that radius. Gaps fall and then rise,
    so what lies left of the least ones moves left by the radius, what lies right of them right, and they
    spread over what is left free.
    """
    values = np.unique(source.values_between(*target.window(reach)))
    below, upto = source.count_below(values), source.count_below(values + 1)
    few, many = (int(below[0]), int(upto[-1])) if values.size else (0, 0)
    # the left tail, then each value followed by what lies between it and the next, the last by the right tail
    between = target.gaps(upto, upto)
    gaps = np.empty(1 + 2 * values.size, np.int64)
    gaps[0] = max(0, target.low - target.unit * few)
    gaps[1::2] = target.gaps(below, upto)
    gaps[2::2] = between
    starts = np.zeros(gaps.size, np.int64)
    starts[1::2], starts[2::2] = values, values + 1
    ends = np.append(starts[1:], size) - 1
    if values.size:
        gaps[-1] = max(0, target.unit * many - target.high)
    tail = np.zeros(gaps.size, bool)
    tail[0], tail[-1] = few > 0, many < source.size
    if radius:
        best = np.flatnonzero((gaps == gaps.min()) & (ends >= starts))
        starts[: best[0] + 1] -= radius
        ends[: best[0]] -= radius
        starts[best[-1] + 1 :] += radius
        ends[best[-1] :] += radius
    starts, ends = np.maximum(starts, 0), np.minimum(ends, size - 1)
    held = ends >= starts
    return Around(Segments(starts[held], (ends - starts + 1)[held], gaps[held]), tail[held])


def gap_at(source: RankSource, target: Target, place: int) -> int:
    """The exact gap of one place."""
    below, upto = source.count_below([place]), source.count_below([place + 1])
    return int(target.gaps(below, upto)[0])
