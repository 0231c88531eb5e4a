"""Places on a finer grid, where values that are equal stand apart.

Each value gets a random place among the fine steps of its own. The random part depends on no value, so with
the same random parts neighbours still differ in one value only, and the guarantee of what is done with the
fine places is that of the whole. Rounding back to the coarse grid is post-processing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from sourdine.core.random.bits import Bits
from sourdine.frames.rank_counts import GroupRanks, RankSource, SortedGroups, runs

Ints = NDArray[np.int64]
_FINE = 20  # bits a step is cut into, at most
_LONGEST = 61  # bits of a fine place, at most
_BLOCK = 1 << 10  # ranks whose random parts are drawn together
_WORD = 64  # bits
WHOLE = 1 << 15  # values of a group that are all set apart at once
_TOGETHER = 1 << 20  # values of all groups that are set apart together
_FREE = 62  # bits of a fine place beside the number of its group
_GOLDEN = 648_055  # near the golden section of 2^20 and odd, so that its multiples stand far apart


def fine_bits(places: int) -> int:
    """Into how many bits each step of a grid is cut."""
    return max(0, min(_FINE, _LONGEST - (places - 1).bit_length()))


class FinePlaces(Protocol):
    """Values on the finer grid."""

    @property
    def count(self) -> int:
        """How many values there are."""

    @property
    def shift(self) -> int:
        """Into how many bits a step is cut."""

    @property
    def size(self) -> int:
        """How many fine places there are."""

    def between(self, first: int, last: int) -> Ints:
        """The fine places of the ranks first .. last - 1, counted from 0, in rising order."""

    def below(self, fine: Ints) -> Ints:
        """How many values lie below each fine place."""


@dataclass(frozen=True)
class FineRanks:
    """Values on the finer grid as a method for quantiles sees them: a RankSource."""

    values: FinePlaces

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.values.count

    def count_below(self, places: ArrayLike) -> Ints:
        """How many lie below each fine place."""
        return self.values.below(np.asarray(places, np.int64))

    def values_between(self, first: int, last: int) -> Ints:
        """The fine places of these ranks, counted from 0, the last left out."""
        return self.values.between(first, last)


@dataclass
class Jittered:
    """The fine places of values by rank; each value's random part is drawn once, when first looked at."""

    source: RankSource
    places: int
    bits: Bits

    def __post_init__(self) -> None:
        self._blocks: dict[int, Ints] = {}  # random parts, by blocks of ranks
        self._sorted: dict[tuple[int, int], Ints] = {}  # fine places, by the ranks from which to which

    @property
    def count(self) -> int:
        return self.source.size

    @property
    def shift(self) -> int:
        return fine_bits(self.places)

    @property
    def size(self) -> int:
        return self.places << self.shift

    def between(self, first: int, last: int) -> Ints:
        low, high = max(first, 0), min(last, self.count)
        if low >= high:
            return np.zeros(0, np.int64)
        ends = (self.source.values_between(rank, rank + 1)[0] for rank in (low, high - 1))
        least, most = (int(value) for value in ends)
        # all that are equal to the first and to the last
        begin, end = (int(count) for count in self.source.count_below([least, most + 1]))
        return self._run(begin, end)[low - begin : high - begin]

    def below(self, fine: Ints) -> Ints:
        steps, which = np.unique(fine >> self.shift, return_inverse=True)
        first, last = self.source.count_below(steps), self.source.count_below(steps + 1)
        ranks: Ints = first[which.reshape(fine.shape)]
        occupied = np.flatnonzero(last > first)
        # steps whose ranks are near each other are looked at together
        for run in np.split(occupied, np.flatnonzero(first[occupied][1:] - last[occupied][:-1] > _BLOCK) + 1):
            if run.size:
                begin, end = int(first[run[0]]), int(last[run[-1]])
                here = np.isin(which, run).reshape(fine.shape)
                ranks[here] = begin + np.searchsorted(self._run(begin, end), fine[here])
        return ranks

    def _run(self, begin: int, end: int) -> Ints:
        """The fine places of all values of some steps, by the ranks of those."""
        if (begin, end) not in self._sorted:
            coarse = self.source.values_between(begin, end) << self.shift
            self._sorted[begin, end] = np.sort(coarse + self._parts(begin, end))
        return self._sorted[begin, end]

    def _parts(self, first: int, last: int) -> Ints:
        """The random parts of these ranks: among equal values it does not matter whose is whose."""
        blocks = range(first // _BLOCK, -(-last // _BLOCK))
        fine = np.uint64(_WORD - self.shift)
        for block in blocks:
            if block not in self._blocks:
                words = self.bits.words(_BLOCK) >> fine if fine < _WORD else np.zeros(_BLOCK, np.uint64)
                self._blocks[block] = words.astype(np.int64)
        joined = np.concatenate([self._blocks[block] for block in blocks])
        start = first - blocks[0] * _BLOCK
        return joined[start : start + last - first]


def batches(groups: Ints, sizes: Ints, places: int, most: int = _TOGETHER) -> Iterator[Ints]:
    """Groups in the order given, so many at a time as have no more values than that and fit into one grid."""
    room = 1 << (_FREE - (places << fine_bits(places)).bit_length())
    start = 0
    while start < len(groups):
        filled = np.cumsum(sizes[groups[start : start + room]] + 2)
        end = start + max(1, int(np.searchsorted(filled, most, side="right")))
        yield groups[start:end]
        start = end


@dataclass(frozen=True)
class NumberedGroups(SortedGroups):
    """Groups that have no keys of their own."""

    many: int

    def __len__(self) -> int:
        return self.many


@dataclass(frozen=True)
class JitteredGroups:
    """All values of some groups on the finer grid, the ends of the grid before and after those of each.

    `places` are the fine places of one group after the other, each with -1 before and the last one after;
    `starts` is where a group's begin.
    """

    places: Ints
    starts: Ints
    counts: Ints

    @classmethod
    def of(cls, values: GroupRanks, groups: Ints, places: int, bits: Bits) -> "JitteredGroups":
        """Each value gets its random part; one sort serves all groups, kept apart by what is added."""
        shift, counts = fine_bits(places), values.sizes[groups]
        size, spare = places << shift, np.uint64(_WORD - shift)
        coarse = values.values_of(groups) << shift
        parts = bits.words(coarse.size) >> spare if shift else np.zeros(coarse.size, np.uint64)
        apart = np.repeat(np.arange(len(groups)) * size, counts)
        fine = np.sort(coarse + parts.astype(np.int64) + apart) - apart
        starts = np.cumsum(counts + 2) - (counts + 2)
        padded = np.full(int((counts + 2).sum()), -1, np.int64)
        padded[starts + counts + 1] = size - 1
        padded[runs(starts + 1, counts)] = fine
        return cls(padded, starts, counts)

    def ranks(self, places: int) -> SortedGroups:
        """The fine places as methods for quantiles see them; groups go by their numbers here."""
        size = places << fine_bits(places)
        fine = self.places[runs(self.starts + 1, self.counts)]
        apart = np.repeat(np.arange(len(self.counts)) * size, self.counts)
        return NumberedGroups((), fine + apart, size, len(self.counts))

    def edges(self, low: Ints, high: Ints) -> Ints:
        """The fine places that bound the ranks low .. high of each group: one row for each of them.

        Rows are as long as the longest; what is beyond the others' ends does not count.
        """
        wide = int((high - low).max(initial=0)) + 2
        padded = np.append(self.places, np.full(wide, self.places[-1]))
        edges: Ints = sliding_window_view(padded, wide)[self.starts[:, None] + low]
        return edges

    def astray(
        self, below: Ints, above: Ints, aims: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], Ints, Ints]:
        """How far from each aim the nearest rank is that leaves places, that rank, and how many it leaves.

        The aim lies between two ranks, below and above.
        """
        sizes = np.append(np.diff(self.places), 0)
        free = sizes > 0
        free[self.starts + self.counts + 1] = False  # from one group to the next there is no rank
        here, none = np.arange(free.size), free.size
        before = np.maximum.accumulate(np.where(free, here, -1))
        after = np.minimum.accumulate(np.where(free, here, none)[::-1])[::-1]
        first, last = self.starts[:, None], (self.starts + self.counts)[:, None]
        lower, upper = before[first + below], after[first + above]
        down = np.where(lower >= first, aims - (lower - first), np.inf)
        up = np.where(upper <= last, upper - first - aims, np.inf)
        nearest = np.where(down <= up, lower, np.minimum(upper, none - 1))
        return np.minimum(down, up), nearest - first, sizes[nearest]


@dataclass(frozen=True)
class SetApart:
    """Fine places that are known already, in rising order."""

    fine: Ints
    places: int
    shift: int

    @classmethod
    def evenly(cls, values: ArrayLike, places: int, shift: int | None = None) -> "SetApart":
        """Values set apart by a part that depends on where in the list each stands.

        Of a value that is replaced, or of the last if it is removed, the others keep their parts. So this is
        how neighbours look that were set apart by the same random parts. They have 20 bits as elsewhere, or
        as few as are asked for.
        """
        coarse, bits = np.asarray(values, np.int64), fine_bits(places) if shift is None else shift
        parts = np.arange(1, coarse.size + 1) * _GOLDEN % (1 << bits)
        return cls(np.sort((coarse << bits) + parts), places, bits)

    @property
    def count(self) -> int:
        return int(self.fine.size)

    @property
    def size(self) -> int:
        return self.places << self.shift

    def between(self, first: int, last: int) -> Ints:
        return self.fine[max(first, 0) : max(last, 0)]

    def below(self, fine: Ints) -> Ints:
        return np.searchsorted(self.fine, fine).astype(np.int64)
