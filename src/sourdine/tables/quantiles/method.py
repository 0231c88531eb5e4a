"""What every method for quantiles shares: it draws places of a grid for values seen through their ranks.

The gap of a place is how far it is from being the quantile, in values that would have to change. With c(t)
values below t and C(t) up to t, it is

    max(0, D c(t) - H, L - D C(t))

in units of 1/D. Where a value may be replaced, D = 1, L = k and H = k - 1 for the rank k = ceil(q n) within
1 .. n: the number of values to replace so that t is the quantile (Asi and Duchi 2020). Where one may be
added or removed, D is the denominator of q and L = H = D q n: the distance of q n from the ranks of t.
Places of an array are sorted when they must be, and found by selection where that is enough.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import numbers
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.selection import Segments
from sourdine.frames.rank_counts import GroupRanks, RankSource, SortedGroups, SortedPlaces, runs

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Targets:
    """The ranks that a quantile of the values of each group should have, in units of one over `unit`."""

    unit: int
    low: Ints
    high: Ints

    @classmethod
    def of(cls, level: Fraction, sizes: Ints, neighbours: Neighbours) -> "Targets":
        """The targets of a level among so many values."""
        whole = level.numerator * sizes  # at most 2^20 times 2^40
        if neighbours is Neighbours.REPLACE:
            rank = np.clip(-(-whole // level.denominator), 1, np.maximum(sizes, 1))
            return cls(1, rank, rank - 1)
        return cls(level.denominator, whole, whole)

    def gaps(self, groups: Ints, below: Ints, upto: Ints) -> Ints:
        """The gaps of places of these groups with so many values below them, and up to them."""
        over, under = self.unit * below - self.high[groups], self.low[groups] - self.unit * upto
        gaps: Ints = np.maximum(np.maximum(over, under), 0)
        return gaps

    def window(self, reach: int) -> tuple[Ints, Ints]:
        """The ranks, from the first to one past the last, whose gap is at most `reach` units."""
        first = (self.low - reach) // self.unit - 1
        last = -(-(self.high + reach) // self.unit) + 1
        return np.maximum(first, 0), np.maximum(last, 0)


@dataclass(frozen=True)
class Around:
    """Segments of a grid by their gaps; of a tail, only the least gap that any of its places can have."""

    segments: Segments
    tail: NDArray[np.bool_]


def around(
    values: GroupRanks, groups: Ints, targets: Targets, *, places: Ints, reach: int, radius: int = 0
) -> Around:
    """The gaps of all places of each group's grid: exact within a reach of the target, bounds in the tails.

    Targets and places are those of all groups. With a radius, the gap of a place is the least of any place
    within that radius. Gaps fall and then rise, so what lies left of the least ones moves left by the radius,
    what lies right of them right, and they spread over what is left free.
    """
    sizes, numbers = values.sizes[groups], np.arange(len(groups))
    first, last = (np.minimum(ends[groups], sizes) for ends in targets.window(reach))
    owner = np.repeat(numbers, np.maximum(last - first, 0))
    nearest = values.values_between(groups, first, np.maximum(last, first))
    fresh = np.ones(nearest.size, bool)
    fresh[1:] = (nearest[1:] != nearest[:-1]) | (owner[1:] != owner[:-1])
    nearest, owner = nearest[fresh], owner[fresh]
    below = values.count_below(groups[owner], nearest)
    upto = values.count_below(groups[owner], nearest + 1)
    # the left tail, then each value followed by what lies between it and the next, the last by the right tail
    many = np.bincount(owner, minlength=len(groups))
    at = 1 + 2 * (np.arange(nearest.size) - (np.cumsum(many) - many)[owner])
    wide = 1 + 2 * int(many.max(initial=0))
    column = np.arange(wide)
    inside = column < (1 + 2 * many)[:, None]
    gaps = np.zeros((len(groups), wide), np.int64)
    starts = np.zeros((len(groups), wide), np.int64)
    gaps[owner, at] = targets.gaps(groups[owner], below, upto)
    gaps[owner, at + 1] = targets.gaps(groups[owner], upto, upto)
    starts[owner, at], starts[owner, at + 1] = nearest, nearest + 1
    ends = np.empty_like(starts)
    ends[:, :-1] = starts[:, 1:] - 1
    ends[numbers, 2 * many] = places[groups] - 1
    few, most = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    few[owner[at == 1]] = below[at == 1]
    last_of = at == (2 * many - 1)[owner]
    most[owner[last_of]] = upto[last_of]
    gaps[:, 0] = np.maximum(targets.low[groups] - targets.unit * few, 0)
    some = many > 0
    right = np.maximum(targets.unit * most - targets.high[groups], 0)
    gaps[numbers[some], 2 * many[some]] = right[some]
    tail = np.zeros(gaps.shape, bool)
    tail[:, 0] = few > 0
    tail[numbers, 2 * many] = most < sizes
    if radius:
        least = np.min(gaps, axis=1, keepdims=True, where=inside, initial=np.iinfo(np.int64).max)
        best = inside & (ends >= starts) & (gaps == least)
        one, other = best.argmax(axis=1)[:, None], wide - 1 - best[:, ::-1].argmax(axis=1)[:, None]
        starts += radius * ((column > other).astype(np.int64) - (column <= one))
        ends += radius * ((column >= other).astype(np.int64) - (column < one))
    starts, ends = np.maximum(starts, 0), np.minimum(ends, places[groups][:, None] - 1)
    spread = np.where(inside, np.maximum(ends - starts + 1, 0), 0)
    return Around(Segments(starts, spread, gaps), tail)


def gap_at(values: GroupRanks, group: int, targets: Targets, place: int) -> int:
    """The exact gap of one place of a group."""
    groups = np.array([group, group])
    below, upto = values.count_below(groups, np.array([place, place + 1]))
    return int(targets.gaps(groups[:1], below, upto)[0])


Values = ArrayLike | RankSource


def ranked(
    values: Values, places: int, draw: Callable[[RankSource, int], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """One draw for a RankSource; for arrays one for each row of places along the last axis.

    Rows that are one and the same, as a broadcast makes them, share the work. What is masked is left out.
    """
    if not isinstance(values, np.ndarray | list | tuple):
        return draw(values, 1)[0]  # type: ignore[arg-type, no-any-return]
    if isinstance(values, np.ma.MaskedArray) and values.ndim:
        data, shown = np.asarray(values.data), ~np.ma.getmaskarray(values)
        each = zip(data.reshape(-1, data.shape[-1]), shown.reshape(-1, data.shape[-1]), strict=True)
        left = [ranked(row[mask], places, draw) for row, mask in each]
        return np.stack(left).reshape(*data.shape[:-1], -1) if left else ranked(data, places, draw)
    array = numbers(values)
    whole = array.dtype.kind in "iu" or all(isinstance(item, int) for item in array.flat)
    if array.ndim == 0 or not whole:
        raise InvalidParameter(
            "Quantiles are taken of places on a grid, whole numbers along the last axis. "
            "Use sourdine.quantiles for values with bounds."
        )
    outer = array.shape[:-1]
    if 0 in outer:
        answer = draw(SortedPlaces(np.zeros(0, np.int64)), 1)[0]
        return np.zeros((*outer, answer.size), np.int64)
    if all(stride == 0 for stride in array.strides[:-1]):
        row = array[(0,) * len(outer)]
        answers = draw(
            SortedPlaces(np.sort(np.clip(row, 0, places - 1).astype(np.int64))), int(np.prod(outer))
        )
        return answers.reshape(*outer, *answers.shape[1:])
    rows = array.reshape(-1, array.shape[-1])
    sources = (SortedPlaces(np.sort(np.clip(row, 0, places - 1).astype(np.int64))) for row in rows)
    answers = np.stack([draw(source, 1)[0] for source in sources])
    return answers.reshape(*outer, *answers.shape[1:])


MOST_LEVELS = 999
FINEST = 1 << 20  # the largest denominator of a level, so that ranks in units of one over it stay small


def check_levels(owner: str, levels: Sequence[object], name: str = "levels") -> tuple[Fraction, ...]:
    """Rising levels strictly between 0 and 1, each as the nearest fraction of denominators up to 2^20.

    So 0.1 is a tenth and 1/3 a third, though no float is.
    """
    if not isinstance(levels, tuple | list) or not 1 <= len(levels) <= MOST_LEVELS:
        raise check.fail(owner, name, f"be 1 to {MOST_LEVELS} numbers", levels)
    exact = tuple(nearest(check.inside(owner, name, level, 0, 1)) for level in levels)
    if not all(a < b for a, b in pairwise([Fraction(0), *exact, Fraction(1)])):
        must = "rise from above 0 to below 1, by no less than 2^-20"
        raise check.fail(owner, name, must, [float(level) for level in exact])
    return exact


def nearest(level: Fraction) -> Fraction:
    """The nearest fraction with a denominator up to 2^20."""
    return level.limit_denominator(FINEST)


def shares(levels: Sequence[Fraction]) -> list[Fraction]:
    """What lies before the first level, between two, and after the last."""
    return [b - a for a, b in pairwise([Fraction(0), *levels, Fraction(1)])]


MOST_PLACES = 1 << 52
EPSILONS = (Fraction(1, 1 << 20), Fraction(1 << 20))


@dataclass(frozen=True, kw_only=True)
class QuantileMethod(Mechanism):
    """Quantiles at some levels, as places 0 .. places - 1 of a grid.

    The unit is a value; neighbours have one value replaced, or one more or less. Distances count the values
    that change. Where it is made for values that come and go, one replaced is one that goes and one that
    comes.
    """

    norm: ClassVar[Norm] = Norm.HAMMING
    epsilon: Fraction
    levels: tuple[Fraction, ...]
    places: int
    neighbours: Neighbours = Neighbours.REPLACE

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "epsilon", check.between(name, "epsilon", self.epsilon, *EPSILONS))
        object.__setattr__(self, "levels", check_levels(name, self.levels))
        object.__setattr__(self, "places", check.integer(name, "places", self.places, 1, MOST_PLACES))
        check.member(name, "neighbours", self.neighbours, Neighbours)
        if self.neighbours is Neighbours.ZERO_OUT:
            must = "be replace or add-remove"
            raise check.fail(name, "neighbours", must, str(self.neighbours), "Quantiles have no other.")

    @abstractmethod
    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        """So many independent answers for the same values: one row an answer, one column a level."""

    @abstractmethod
    def draw_groups(self, values: GroupRanks, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        """An independent answer for each group: one row a group, one column a level."""

    def sample_groups(self, values: GroupRanks, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        """The places of the quantiles of each group in rising order, one row a group."""
        return np.sort(self.draw_groups(values, bits), axis=-1)

    def sample(self, values: Values, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The places of the quantiles of a RankSource, or of places along the last axis of an array.

        They come in rising order, which is post-processing where the method does not see to it.
        """
        answers = ranked(values, self.places, lambda source, count: self.draw(source, count, bits))
        return np.sort(answers, axis=-1)

    def spent(self, distance: Distance) -> Fraction:
        """The epsilon of a distance; one for neighbours that it was not made for is refused."""
        self.require(distance)
        if distance.neighbours is self.neighbours:
            return self.epsilon * distance.amount
        if distance.neighbours is Neighbours.REPLACE:
            return self.epsilon * distance.amount * 2
        must = f"be those it was made for, {self.neighbours}"
        raise check.fail(type(self).__name__, "neighbours", must, str(distance.neighbours))

    @classmethod
    def rho_at_one(cls, count: int) -> Fraction:
        """The rho of epsilon 1 for so many levels; that of another epsilon grows with its square."""
        return Fraction(1, 2)

    def ranks_off(self, confidence: float = 0.95) -> float | None:
        """How many ranks any answer is off at most, all at once, whatever the values; None if not known.

        A place is off by as many values as lie between it and a quantile, none of those equal to either.
        Where answers are coarser than the grid, it is so of some place within `near` steps of each.
        """
        return self.error(confidence)

    @property
    def near(self) -> int:
        """How many steps from an answer the place may lie that `ranks_off` is about."""
        return 0


# Places on a finer grid, where values that are equal stand apart.
#
# Each value gets a random place among the fine steps of its own. The random part depends on no value, so
# with the same random parts neighbours still differ in one value only, and the guarantee of what is done
# with the fine places is that of the whole. Rounding back to the coarse grid is post-processing.


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
