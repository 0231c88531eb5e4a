"""All quantiles at once, by one exponential mechanism over sorted tuples of places.

Equal values are set apart on a finer grid, the ranks near each quantile looked up there, and chains of such
ranks drawn (`float_sums`). Groups of few values go side by side; large ones by themselves, since of those
only what lies near the quantiles is ever looked at.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import BoundedRangeLaw, PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.selection import pick, pick_weights, uniform_below
from sourdine.frames.rank_counts import GroupRanks, RankSource, SeparateRanks
from sourdine.tables.quantiles.method import (
    WHOLE,
    FinePlaces,
    Jittered,
    JitteredGroups,
    QuantileMethod,
    SetApart,
    batches,
    fine_bits,
    shares,
)

Ints = NDArray[np.int64]

_RARE = 40  # bits of the chance that the answer ignores the values
_MARGIN = 30  # e-folds by which what the window leaves out is below that chance's share
_SNAP = 16  # long windows begin at multiples, so that those of groups of like sizes lie alike
_NEAR = 64  # ranks around an aim that are looked at first
_CROWD = 1 << 12  # values that may share a fine place, or twice the e-folds below
_CELLS = 1 << 17  # weights that are kept together for each level
_MOST_PLACES = 1 << 41  # so that a step has 2^20 fine places, and values seldom share one


@dataclass(frozen=True)
class Stretches:
    """For each group and output the ranks that the output may have, and the places that each leaves for it.

    They go from `first` on, `length` of them; `edges` are the places that bound theirs, one more than ranks,
    and what lies beyond the length does not count.
    """

    first: Ints
    length: Ints
    edges: Ints

    @property
    def sizes(self) -> Ints:
        """How many places each rank leaves: none beyond the length."""
        inside = np.arange(self.edges.shape[2] - 1) < self.length[:, :, None]
        sizes: Ints = np.where(inside, np.diff(self.edges, axis=2), 0)
        return sizes


@dataclass(frozen=True, kw_only=True)
class JointExponential(QuantileMethod):
    """Chooses places t_1 <= ... <= t_m with probability proportional to e^{-rate gap}.

    The gap is the sum over j of |#values in [t_{j-1}, t_j) - (q_j - q_{j-1}) n| (Gillenwater, Joseph,
    Kulesza 2021). One value replaced moves it by 2, one added or removed by twice one less the
    smallest of the shares, and 2 rate times that is epsilon, less a small slack for what floats and a
    window of ranks leave open (docs/guarantees/quantiles.md). Equal values are set apart at random.

    >>> deciles = tuple(Fraction(i, 10) for i in range(1, 10))
    >>> JointExponential(epsilon=1, levels=deciles, places=1001).loss(Distance.hamming()).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "joint-exponential/1"

    def __post_init__(self) -> None:
        super().__post_init__()
        name = "JointExponential"
        check.keep(self, places=check.integer(name, "places", self.places, 1, _MOST_PLACES))
        if self.slack * 10 > min(self.epsilon, Fraction(1)):
            remedy = "Use the recursive method, or fewer levels."
            change = "larger" if self.slack < Fraction(1, 10) else "smaller"
            must = f"be {change} for so many levels, or floats would not do"
            raise check.fail(name, "epsilon", must, self.epsilon, remedy)

    @property
    def rate(self) -> Fraction:
        """What a unit of the gap takes off the logarithm of a tuple's weight."""
        return (self.epsilon - self.slack) / (2 * self.moved)

    @property
    def slack(self) -> Fraction:
        """The part of epsilon that pays for floats and for the window.

        A sum of logarithms is off by at most two units in the last place of the largest for each term and
        each level. A draw meets each level's sum once going up and once going down, so the logarithm of a
        probability is off by twice that, and its differences between neighbours by eight times.
        """
        m, folds, rate = len(self.levels), self._folds(), float(self.epsilon / (2 * self.moved))
        crowd = m * max(_CROWD, 2 * folds)  # what the strays of all levels add up to
        ranks = 2 * (folds / (1.8 * rate) + crowd + 2 * m + 16) + _SNAP
        largest = 4 * (folds + math.lgamma(m + 1)) + rate * (4 * crowd + 8 * m + 64) + 8
        error = m * (ranks + m + 64) * largest * 2.0**-51
        return Fraction(8 * error + 2.0**-30)

    def _folds(self) -> float:
        """How many e-folds less than the best a chain must weigh to be left out."""
        return self._tuples() + _RARE * math.log(2) + _MARGIN

    def _tuples(self) -> float:
        """No less than the logarithm of how many rising tuples of fine places there are."""
        m, size = len(self.levels), self.places << fine_bits(self.places)
        return m * math.log(size + m) - math.lgamma(m + 1)

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> Ints:
        """So many independent answers; the values are set apart anew for each."""
        return self.draw_groups(SeparateRanks((), (source,) * count), bits)

    def draw_groups(self, values: GroupRanks, bits: Bits = SYSTEM) -> Ints:
        """An answer for each group, those of like sizes together, so that few ranks are padded."""
        out = np.empty((len(values), len(self.levels)), np.int64)
        sizes = values.sizes
        for group in np.flatnonzero(sizes > WHOLE).tolist():
            out[group] = self.draw_apart(Jittered(values.part(group), self.places, bits), 1, bits)[0]
        small = np.flatnonzero(sizes <= WHOLE)
        small = small[np.argsort(sizes[small], kind="stable")]
        even = np.log((self.places << fine_bits(self.places)) / (sizes + 1.0))  # places of a rank
        reach = self._reach(np.zeros(len(sizes)), len(self.levels) * even)
        for groups in batches(small, np.minimum(sizes, 2 * reach), self.places, _CELLS):
            fine = JitteredGroups.of(values, groups, self.places, bits)
            windows = self._windows(fine)
            order = np.lexsort((fine.counts, *windows.first.T))  # those that lie alike are summed together
            alike = Stretches(windows.first[order], windows.length[order], windows.edges[order])
            each = np.arange(len(groups))
            out[groups[order]] = self._answers(alike, fine.counts[order], each, bits)
        return out

    def draw_apart(self, fine: FinePlaces, count: int, bits: Bits) -> Ints:
        """So many answers for values that have been set apart."""
        total = np.array([fine.count])
        return self._answers(self._window(fine), total, np.zeros(count, np.int64), bits)

    def _answers(self, windows: Stretches, total: Ints, owner: Ints, bits: Bits) -> Ints:
        """An answer of each owner's group."""
        chains = Chains.toward(windows, self.levels, total, float(self.rate))
        ranks = draw_chains(chains, owner, self._folds(), bits)
        place = ranks - windows.first[owner]
        outputs = np.arange(len(self.levels))
        before = windows.edges[owner[:, None], outputs, place]
        size = windows.edges[owner[:, None], outputs, place + 1] - before
        out = before + 1 + uniform_below(size.ravel(), bits).reshape(size.shape)
        _share(out, ranks, before, size, bits)
        ignored = np.flatnonzero(bits.words(len(owner)) >> np.uint64(64 - _RARE) == 0)
        fine = fine_bits(self.places)
        out[ignored] = multisets(np.full(ignored.size, self.places << fine), len(self.levels), bits)
        answers: Ints = out >> fine
        return answers

    def _window(self, values: FinePlaces) -> Stretches:
        """The ranks near each quantile of one group, and the fine places that bound them."""
        n = values.count
        aims = [level * n for level in self.levels]
        near = [self._astray(values, float(aim)) for aim in aims]
        far, ranks, sizes = (np.array(each)[None] for each in zip(*near, strict=True))
        reach = int(self._reach(far.sum(axis=1), _log_tuples(ranks, sizes))[0])
        lows = [int(_begin(np.int64(math.floor(aim)), np.int64(reach))) for aim in aims]
        ends = [(low, min(math.ceil(aim) + reach, n)) for low, aim in zip(lows, aims, strict=True)]
        edges = [self._edges(values, low, high) for low, high in ends]
        length = np.array([len(each) - 1 for each in edges])
        padded = np.zeros((1, len(edges), int(length.max()) + 1), np.int64)
        for j, each in enumerate(edges):
            padded[0, j, : len(each)] = each
        return Stretches(np.array([[low for low, _ in ends]]), length[None], padded)

    def _windows(self, fine: JitteredGroups) -> Stretches:
        """The same of groups whose values are all set apart."""
        unit = math.lcm(*(level.denominator for level in self.levels))
        parts = np.array([int(level * unit) for level in self.levels], object)
        small = unit * WHOLE < 1 << 52
        kind = np.int64 if small else object
        aims = np.outer(fine.counts.astype(kind), parts.astype(kind))  # in one over the unit: exact
        below = (aims // unit).astype(np.int64)
        above = (-(-aims // unit)).astype(np.int64)
        far, ranks, sizes = fine.astray(below, above, (aims / unit).astype(float))
        reach = self._reach(far.sum(axis=1), _log_tuples(ranks, sizes))[:, None]
        low = _begin(below, reach)
        high = np.minimum(above + reach, fine.counts[:, None])
        return Stretches(low, high - low + 1, fine.edges(low, high))

    def _reach(self, astray: NDArray[np.float64], tuples: NDArray[np.float64]) -> Ints:
        """How far from the aims ranks are looked at.

        An output d ranks off makes a gap of 2 d. All tuples together weigh no less than those of the nearest
        ranks to the aims that leave places, whose distances add up to `astray`, and the logarithm of whose
        number is `tuples`. Rounded up to three digits of two, so that groups of like sizes mostly have
        windows that lie alike, but to no more than would do if there were only one such tuple.
        """
        m, rate = len(self.levels), float(self.rate)
        enough, most = (
            np.ceil((self._folds() - known) / (2 * rate) + astray) + 2 * m + 8
            for known in (np.maximum(tuples, 0.0), 0.0)
        )
        digit = np.exp2(np.floor(np.log2(enough)) - 2)
        rounded = np.minimum(digit * np.ceil(enough / digit), 8 * np.ceil(most / 8))
        reach: Ints = rounded.astype(np.int64)
        return reach

    def _edges(self, values: FinePlaces, low: int, high: int) -> Ints:
        """The fine places before rank low, between, and after rank high; or the ends of the grid."""
        n = values.count
        inner = values.between(max(low - 1, 0), min(high + 1, n))
        before = [-1] if low == 0 else []
        after = [values.size - 1] if high == n else []
        return np.concatenate([before, inner, after]).astype(np.int64)

    def _astray(self, values: FinePlaces, aim: float) -> tuple[float, int, int]:
        """How far the nearest rank is that leaves places, since equal ones leave none; it, and how many."""
        n, around = values.count, _NEAR
        while True:
            low, high = max(math.floor(aim) - around, 0), min(math.ceil(aim) + around, n)
            sizes = np.diff(self._edges(values, low, high))
            free = np.flatnonzero(sizes > 0)
            if free.size:
                far = np.abs(free + low - aim)
                nearest = int(free[far.argmin()])
                return float(far.min()), nearest + low, int(sizes[nearest])
            around *= 8

    def loss(self, distance: Distance) -> PrivacyLoss:
        epsilon = self.spent(distance)
        law = BoundedRangeLaw(float(epsilon))
        return PrivacyLoss.symmetric(
            law,
            neighbours=distance.neighbours,
            epsilon=epsilon,
            rho=epsilon**2 * self.rho_at_one(len(self.levels)),
        )

    @classmethod
    def rho_at_one(cls, count: int) -> Fraction:
        return Fraction(1, 8)

    @property
    def moved(self) -> Fraction:
        """How far one value moves the gap."""
        if self.neighbours is Neighbours.REPLACE:
            return Fraction(2)
        return 2 * (1 - min(shares(self.levels)))

    def error(self, confidence: float = 0.95) -> float:
        """How many ranks all steps are off together at most: ln(#tuples / beta) / rate, beside the best.

        The best tuple is off too, since ranks are whole: each by half at most, which two steps feel.
        """
        beta = 1 - check.confidence("JointExponential.error", confidence)
        return len(self.levels) + (self._tuples() - math.log(beta)) / float(self.rate)

    def ranks_off(self, confidence: float = 0.95) -> float | None:
        """An answer that is off by some ranks makes a gap of twice as many."""
        return self.error(confidence) / 2

    @classmethod
    def examples(cls) -> Iterator[Example]:
        """Given how equal values are set apart: the claim holds for each way, and draws are quick.

        There are ties, a value that goes from one bound to the other, and one that is removed.
        """
        thirds = (Fraction(1, 3), Fraction(2, 3))
        for one, other, relation in (
            ([1, 1, 3, 5], [1, 3, 3, 5], Neighbours.REPLACE),
            ([0, 0, 0, 5, 5], [0, 0, 5, 5, 5], Neighbours.REPLACE),
            ([5, 0, 5, 0, 0], [5, 0, 5, 0], Neighbours.ADD_REMOVE),
        ):
            mechanism = cls(epsilon=Fraction(4, 3), levels=thirds, places=6, neighbours=relation)
            yield Example(
                mechanism=mechanism,
                value=one,
                neighbour=other,
                distance=Distance.hamming(neighbours=relation),
                code=lambda answers: answers[..., 0] * 6 + answers[..., 1],
                draw=partial(_draw_apart, mechanism),
            )


def _draw_apart(mechanism: JointExponential, value: ArrayLike, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many answers for values that are set apart by where they stand."""
    return mechanism.draw_apart(SetApart.evenly(value, mechanism.places), count, bits)


def _log_tuples(ranks: Ints, sizes: Ints) -> NDArray[np.float64]:
    """No more than the logarithm of how many tuples have these ranks, which leave so many places.

    Outputs that share a rank make a multiset of its places.
    """
    shared = (np.diff(ranks, axis=1) == 0).any(axis=1)
    logs: NDArray[np.float64] = np.log(sizes).sum(axis=1) - shared * math.lgamma(ranks.shape[1] + 1)
    return logs


def _begin(below: np.int64 | Ints, reach: np.int64 | Ints) -> Ints:
    """Where the windows of aims begin: at the reach, or at a multiple of about an eighth of it before."""
    digit = np.exp2(np.clip(np.floor(np.log2(reach)) - 3, 0, math.log2(_SNAP))).astype(np.int64)
    first: Ints = np.maximum(below - reach, 0) // digit * digit
    return first


def _share(out: Ints, ranks: Ints, before: Ints, size: Ints, bits: Bits) -> None:
    """Outputs that share a segment are a uniform multiset of its places, drawn for all runs of one length."""
    apart = np.ones((len(ranks), ranks.shape[1] + 1), bool)
    apart[:, 1:-1] = np.diff(ranks, axis=1) != 0
    row, start = np.nonzero(apart[:, :-1])
    ends = np.append(start[1:], 0)
    lengths = np.where(ends > start, ends, ranks.shape[1]) - start
    for length in np.unique(lengths[lengths > 1]).tolist():
        here, first = row[lengths == length], start[lengths == length]
        places = multisets(size[here, first], length, bits)
        out[here[:, None], first[:, None] + np.arange(length)] = before[here, first][:, None] + 1 + places


def multisets(sizes: Ints, count: int, bits: Bits) -> Ints:
    """For each size a row of so many numbers below it, rising, all multisets equally likely.

    They are the subsets of size + count - 1 numbers with what comes before each taken away; a subset is drawn
    one number at a time, the last of those in question standing in for one that is taken (Floyd).
    """
    subset = np.empty((len(sizes), count), np.int64)
    for j in range(count):
        top = sizes - 1 + j
        number = uniform_below(top + 1, bits)
        again = (subset[:, :j] == number[:, None]).any(axis=1)
        subset[:, j] = np.where(again, top, number)
    return np.sort(subset, axis=1) - np.arange(count)


# Draws of chains of ranks, in time linear in ranks, for many groups of values at once.
#
# Outputs t_1 <= ... <= t_m lie in segments of places with equally many values below, i_1 <= ... <= i_m of
# them. A chain's weight is the number of places it leaves, times e^{-rate |i_j - i_{j-1} - s_j|} for each
# step, s_j being the values that should lie between. Ranks are counted from the beginning of their stretch
# and steps taken between such beginnings, exactly, so that floats only ever see small numbers, however many
# values there are.
#
# What the outputs up to each rank weigh is summed going up, and a chain drawn going down. The sums are
# floats (`float_sums`) or, where their range does not do, logarithms of them (`log_sums`).
#
# Groups stand side by side, the stretches of all padded to one length with ranks that leave no place: those
# weigh nothing, so no group feels another.


Floats = NDArray[np.float64]
_EXACT = 1 << 52  # whole numbers below it are floats, and so are differences of two
_CHAINS_CELLS = 1 << 20  # weights that are looked at together when chains are drawn


@dataclass(frozen=True)
class Chains:
    """The chains of some groups: the steps wanted before, between and after their outputs.

    `steps` are whole numbers of one over `unit`, a row for each group; where 64 bits are too few, as objects.
    """

    stretches: Stretches
    steps: NDArray[Any]
    unit: int
    total: Ints
    rate: float

    @classmethod
    def toward(cls, stretches: Stretches, levels: Sequence[Fraction], total: Ints, rate: float) -> "Chains":
        """Chains whose outputs should have given shares of all values below them."""
        unit = math.lcm(*(level.denominator for level in levels))
        ends = [0, *(int(level * unit) for level in levels), unit]
        small = unit * int(total.max(initial=1)) < _EXACT
        steps = np.outer(total.astype(np.int64 if small else object), np.diff(np.array(ends, object)))
        return cls(stretches, steps.astype(np.int64) if small else steps, unit, total, rate)

    @property
    def outputs(self) -> int:
        """How many there are."""
        return int(self.stretches.first.shape[1])

    def step(self, j: int) -> tuple[Floats, Ints]:
        """The step before output j, between the beginnings of the stretches around it, and it rounded up."""
        first = self.stretches.first
        before = first[:, j - 1] if j else np.zeros_like(self.total)
        after = first[:, j] if j < self.outputs else self.total
        exact = self.steps[:, j] - (after - before).astype(self.steps.dtype) * self.unit
        return self.floats(exact), (-(-exact // self.unit)).astype(np.int64)

    def shift(self, j: int) -> Ints:
        """How far rank i of output j lies from the last rank before it whose step to i is not too short.

        That one is lower than i, whatever the step.
        """
        first = self.stretches.first
        shift: Ints = np.maximum(self.step(j)[1], 1 - (first[:, j] - first[:, j - 1]))
        return shift

    def floats(self, exact: NDArray[Any]) -> Floats:
        """The nearest floats to whole numbers of one over the unit."""
        if exact.dtype != object:
            return exact / self.unit
        return np.array([float(Fraction(each, self.unit)) for each in exact.tolist()])

    def part(self, groups: Ints) -> "Chains":
        """Some of the groups."""
        whole = self.stretches
        stretches = Stretches(whole.first[groups], whole.length[groups], whole.edges[groups])
        return replace(self, stretches=stretches, steps=self.steps[groups], total=self.total[groups])


class ChainSums(ABC):
    """What the chains of outputs up to each rank weigh together, for every output."""

    chains: Chains

    @abstractmethod
    def pick_rank(self, j: int, group: Ints, tail: Floats, which: Ints, bits: Bits) -> Ints:
        """A rank of output j for each future that is named, by the sums and what the log of the rest adds."""

    @abstractmethod
    def pick_shared(self, j: int, group: Ints, place: Ints, bits: Bits) -> Ints:
        """How many outputs up to j, itself among them, share the segment of a rank that was picked."""

    def draw(self, owner: Ints, bits: Bits) -> Ints:
        """A chain of each owner's group: the rank of each output, one row a chain.

        Of the last output that is not drawn yet the rank is drawn, then how many before it share its segment.
        """
        stretches, m = self.chains.stretches, self.chains.outputs
        out = np.empty((len(owner), m), np.int64)
        at, after = np.full(len(owner), m), np.full(len(owner), -1)
        ranks = np.arange(stretches.edges.shape[2] - 1)
        for j in range(m, 0, -1):
            step = self.chains.step(j)[0]
            for chains, group, ahead, which in self._alike(np.flatnonzero(at == j), owner, after):
                first = stretches.first[group, j - 1]
                begun = ahead - stretches.first[group, j] if j < m else np.zeros_like(ahead)
                tail = np.abs(ranks - (begun - step[group])[:, None])
                tail *= -self.chains.rate
                if j < m:
                    tail[ranks >= (ahead - first)[:, None]] = -np.inf
                place = self.pick_rank(j - 1, group, tail, which, bits)
                rank = first[which] + place
                shared = self.pick_shared(j - 1, group[which], place, bits)
                for i in range(j):
                    here = shared >= j - i
                    out[chains[here], i] = rank[here]
                at[chains], after[chains] = j - shared, rank
        return out

    def _alike(self, chains: Ints, owner: Ints, after: Ints) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Chains that are to draw the same output, some at a time, by the futures that they have.

        With them the group and the next rank of each different future, and which one each chain has.
        """
        if not chains.size:
            return
        pairs, future = np.unique(
            np.stack([owner[chains], after[chains]], axis=1), axis=0, return_inverse=True
        )
        order = np.argsort(future.ravel(), kind="stable")
        ordered = future.ravel()[order]
        many = max(1, _CHAINS_CELLS // self.chains.stretches.edges.shape[2])
        for start in range(0, len(pairs), many):
            low, high = np.searchsorted(ordered, [start, start + many])
            here = pairs[start : start + many]
            yield chains[order[low:high]], here[:, 0], here[:, 1], ordered[low:high] - start


# What chains of ranks weigh up to each rank, as floats: several times quicker than logarithms.
#
# A segment's places are counted in parts of all places, so that the chains before a rank weigh at most 1,
# and so do those after it. Nothing is taken away from a sum, so a sum is off by no more than a unit for
# each of its terms, or else by what floats cannot tell from nothing, 2^-1000. What that can add up to is
# compared with what all chains of a group weigh; if it is not far less than what may be left out, the group
# is not trusted.


_LEAST = 1000 * math.log(2)  # e-folds down to which floats are good


def draw_chains(chains: Chains, owner: Ints, folds: float, bits: Bits) -> Ints:
    """A chain of each owner's group; what weighs so many e-folds less than all chains may be left out."""
    sums = FloatSums.of(chains, folds)
    trusted = sums.trusted[owner]
    if trusted.all():
        return sums.draw(owner, bits)
    out = np.empty((len(owner), chains.outputs), np.int64)
    out[trusted] = sums.draw(owner[trusted], bits)
    others, place = np.unique(owner[~trusted], return_inverse=True)
    out[~trusted] = LogSums.of(chains.part(others)).draw(place, bits)
    return out


@dataclass(frozen=True)
class FloatSums(ChainSums):
    """For each output the weights of arriving at each rank from a lower one, and of all chains up to it.

    Sizes are in parts of all places, one place being `part`.
    """

    chains: Chains
    part: float
    sizes: list[Floats]
    arrived: list[Floats]
    sums: list[Floats]
    trusted: NDArray[np.bool_]

    @classmethod
    def of(cls, chains: Chains, folds: float) -> "FloatSums":
        """The sums of all outputs, one after the other, and of which groups they are good."""
        stretches, m, rate = chains.stretches, chains.outputs, chains.rate
        groups, wide = len(stretches.first), stretches.edges.shape[2] - 1
        part = math.ldexp(1.0, -int(stretches.edges.max(initial=1) + 1 + m).bit_length())
        ranks = np.arange(wide)
        lost = folds - _LEAST + rate * (wide / 2 + 2) + 2 * math.log(2 * m * (wide + m))
        trusted = np.full(groups, lost < 0)
        sums = cls(chains, part, [], [], [], trusted)
        if lost >= 0:
            return sums
        for j in range(m):
            sizes = np.diff(stretches.edges[:, j], axis=1) * part
            outside = ranks >= stretches.length[:, j, None]
            sizes[outside] = 0.0
            if j == 0:
                reached = np.exp(-rate * np.abs(ranks - chains.step(0)[0][:, None]))
            else:
                reached = _moved(chains, j, sums.sums[j - 1], trusted)
            reached[outside] = 0.0
            sums.sizes.append(sizes)
            sums.arrived.append(reached)
            sums.sums.append(sums._summed(j))
        tail = np.exp(-rate * np.abs(ranks + chains.step(m)[0][:, None]))
        whole = (sums.sums[-1] * tail).sum(axis=1)
        back = max((int(-chains.shift(j).min(initial=0)) for j in range(1, m)), default=0)
        trusted &= np.log(whole, out=np.full(groups, -np.inf), where=whole > 0) > lost + rate * back
        return sums

    def _summed(self, j: int) -> Floats:
        """All chains up to each rank of output j, by how many outputs share its segment.

        r outputs among s places have s (s + 1) ... (s + r - 1) / r! ways: the products are taken from within.
        """
        sizes, first = self.sizes[j], self.chains.stretches.first
        total, place = np.zeros_like(sizes), np.empty_like(sizes)
        for r, factor in reversed(list(enumerate(self._stays(j), 1))):
            by = first[:, j] - first[:, j - r + 1]
            if by.min(initial=0) < sizes.shape[1]:
                np.multiply(_shifted(self.arrived[j - r + 1], by), factor[:, None], out=place)
                total += place
            if r > 1:
                np.add(sizes, (r - 1) * self.part, out=place)
                total *= place
            else:
                total *= sizes
        return total

    def _stays(self, j: int) -> Iterator[Floats]:
        """What r = 1, 2, ... outputs up to j in one segment weigh, for the steps that they do not take."""
        stay = np.zeros_like(self.chains.steps[:, 0])
        for r in range(1, j + 2):
            yield np.exp(-self.chains.rate * self.chains.floats(stay)) / math.factorial(r)
            stay = stay + self.chains.steps[:, j - r + 1]

    def pick_rank(self, j: int, group: Ints, tail: Floats, which: Ints, bits: Bits) -> Ints:
        np.exp(tail, out=tail)
        tail *= self.sums[j][group]
        return pick_weights(tail, which, bits)

    def pick_shared(self, j: int, group: Ints, place: Ints, bits: Bits) -> Ints:
        size, first = self.sizes[j][group, place], self.chains.stretches.first[group]
        weights, ways = np.zeros((len(place), j + 1)), np.ones(len(place))
        for r, factor in enumerate(self._stays(j), 1):
            ways = ways * (size + (r - 1) * self.part)
            arrived = self.arrived[j - r + 1]
            at = place + (first[:, j] - first[:, j - r + 1])
            begun = np.where(at < arrived.shape[1], arrived[group, np.minimum(at, arrived.shape[1] - 1)], 0.0)
            weights[:, r - 1] = ways * begun * factor[group]
        return 1 + pick_weights(weights, np.arange(len(place)), bits)


def _moved(chains: Chains, j: int, weights: Floats, trusted: NDArray[np.bool_]) -> Floats:
    """Reaching rank i of stretch j from a lower rank k before: sums of weight(k) e^{-rate |i - k - s|}.

    Groups that lie alike are summed together.
    """
    first = chains.stretches.first
    apart, step, shift = first[:, j] - first[:, j - 1], chains.step(j)[0], chains.shift(j)
    trusted &= apart >= 0
    moved = np.zeros_like(weights)
    for begin, end in _runs(shift, apart):
        if trusted[begin]:
            by, lag = int(shift[begin]), (shift - step)[begin:end, None]
            length = int(apart[begin]) + by - 1
            moved[begin:end] = _reach(weights[begin:end], by, length, lag, chains.rate)
    return moved


def _reach(weights: Floats, shift: int, length: int, lag: Floats, rate: float) -> Floats:
    """What reaches each rank i of the next stretch.

    With q = i - shift, ranks k up to q fall under a running sum, and the next `length` under a sliding one:
    the end of one block as long as that and the beginning of the next, so that nothing is subtracted.
    """
    rows, wide = weights.shape
    ranks = np.arange(wide)
    up, out = np.exp(rate * (ranks - wide / 2)), np.zeros_like(weights)
    totals = np.cumsum(weights * up, axis=1)
    totals *= 1 / up
    totals *= np.exp(-rate * lag)
    inside = max(wide - abs(shift), 0)
    if shift >= 0:
        out[:, wide - inside :] = totals[:, :inside]
    else:  # beyond the last rank the running sum stays what it was, and falls off
        out[:, :inside] = totals[:, wide - inside :]
        out[:, inside:] = totals[:, -1:] * np.exp(-rate * (np.arange(inside, wide) - shift - wide + 1))
    if length <= 0 or wide + shift <= 1:
        return out
    length = min(length, wide + shift - 1)  # beyond the last item there is nothing to sum
    blocks = -(-(wide - 1 + length) // length)
    padded = np.zeros((rows, blocks * length))
    begin = max(1 - shift, 0)  # the item for k stands at k + shift - 1, where the range of rank i begins at i
    near = padded[:, begin + shift - 1 : wide + shift - 1]
    np.multiply(weights[:, begin : begin + near.shape[1]], (1 / up)[begin : begin + near.shape[1]], out=near)
    grid = padded.reshape(rows, blocks, length)
    heads = np.cumsum(grid, axis=2)
    heads[:, :, -1] = 0.0  # a range that is a whole block is the end of it alone
    tails = np.cumsum(grid[:, :, ::-1], axis=2)[:, :, ::-1].reshape(rows, -1)
    sums = tails[:, :wide] + heads.reshape(rows, -1)[:, length - 1 : length - 1 + wide]
    sums *= np.exp(rate * (ranks - shift - wide / 2))
    sums *= np.exp(rate * lag)
    out += sums
    return out


def _shifted(weights: Floats, by: Ints) -> Floats:
    """Each row moved to the left by so many; none where it does not reach."""
    if not by.any():
        return weights
    moved, wide = np.zeros_like(weights), weights.shape[1]
    for begin, end in _runs(by):
        if 0 <= by[begin] < wide:
            moved[begin:end, : wide - by[begin]] = weights[begin:end, by[begin] :]
    return moved


def _runs(*keys: Ints) -> Iterator[tuple[int, int]]:
    """From where to where rows have the same keys."""
    fresh = np.zeros(len(keys[0]) - 1, bool)
    for key in keys:
        fresh |= key[1:] != key[:-1]
    return pairwise([0, *(np.flatnonzero(fresh) + 1).tolist(), len(keys[0])])


# Logarithms of what chains of ranks weigh up to each rank, where floats have not the range for the weights.
#
# All terms are positive, so each sum is good to a relative error of a few units for each term, and nothing
# is ever taken away from a sum: no weight is lost, however small.


_MANY = 16  # rows from which running sums are quicker as floats
_COLUMNS = 64  # that are added up together
_FOLDS = 600.0  # e-folds below which a float is still as good as any


@dataclass(frozen=True)
class LogSums(ChainSums):
    """For each output j and each number r of outputs up to it in one segment, log weights by rank.

    Row r - 1 of item j of `tables` sums over all chains of outputs 1 .. j whose last r share the segment;
    `sums` are the sums of all rows.
    """

    chains: Chains
    tables: list[Floats]
    sums: list[Floats]

    @classmethod
    def of(cls, chains: Chains) -> "LogSums":
        """The sums of all outputs, one after the other."""
        first, length, sizes = chains.stretches.first, chains.stretches.length, chains.stretches.sizes
        ranks = np.arange(sizes.shape[2])
        log_sums: list[Floats] = []
        sums: list[Floats] = []
        arrived: list[Floats] = []  # by output: log weights of reaching each rank of the next stretch anew
        for j in range(chains.outputs):
            if j == 0:
                reached = -chains.rate * np.abs(ranks - chains.step(0)[0][:, None])
            else:
                reached = _log_sums_moved(chains, j, sums[j - 1])
            arrived.append(np.where(ranks < length[:, j, None], reached, -np.inf))
            rows = np.empty((j + 1, *sizes[:, j].shape))
            stay, choices = np.zeros_like(chains.steps[:, 0]), np.zeros(sizes[:, j].shape)
            with np.errstate(divide="ignore"):
                for r in range(1, j + 2):
                    choices = choices + np.log((sizes[:, j] + (r - 1)) / r)
                    begun = _log_sums_shifted(arrived[j - r + 1], first[:, j] - first[:, j - r + 1])
                    rows[r - 1] = choices + begun - (chains.rate * chains.floats(stay))[:, None]
                    stay = stay + chains.steps[:, j - r + 1]
            log_sums.append(np.where(sizes[:, j] > 0, rows, -np.inf))
            sums.append(log_sum(log_sums[j]))
        return cls(chains, log_sums, sums)

    def pick_rank(self, j: int, group: Ints, tail: Floats, which: Ints, bits: Bits) -> Ints:
        return pick(self.sums[j][group] + tail, which, bits)

    def pick_shared(self, j: int, group: Ints, place: Ints, bits: Bits) -> Ints:
        return 1 + pick(self.tables[j][:, group, place].T, np.arange(len(place)), bits)


def _log_sums_moved(chains: Chains, j: int, log_weights: Floats) -> Floats:
    """Reaching rank i of stretch j from a lower rank k before: sums of weight(k) e^{-rate |i - k - s|}.

    Ranks k up to i - s fall under a running sum; those between i - s and i under a sliding one, made of
    sums over blocks so that nothing is subtracted.
    """
    rate, half = chains.rate, chains.stretches.length[:, j - 1, None] / 2
    places = np.arange(log_weights.shape[1])
    old, (step, above) = places - half, chains.step(j)
    ranks = places + (chains.stretches.first[:, j] - chains.stretches.first[:, j - 1])[:, None]
    split = np.minimum(places - above[:, None], ranks - 1)  # the last k of the running sum
    aims = places - step[:, None] - half
    rising = log_running_sum(log_weights + rate * old)
    place = np.clip(split, -1, len(places) - 1)
    far = np.take_along_axis(rising, np.maximum(place, 0), axis=1)
    far = np.where(place >= 0, far, -np.inf) - rate * aims
    near = sliding(log_weights - rate * old, split + 1, ranks)
    moved: Floats = np.logaddexp(far, near + rate * aims)
    return moved


def _log_sums_shifted(log_weights: Floats, by: Ints) -> Floats:
    """Each row moved to the left by so many; none where it does not reach."""
    size = log_weights.shape[1]
    if not by.any():
        return log_weights
    place = np.arange(size) + by[:, None]
    weights = np.take_along_axis(log_weights, np.clip(place, 0, size - 1), axis=1)
    return np.where((place >= 0) & (place < size), weights, -np.inf)


def sliding(log_weights: Floats, first: Ints, last: Ints) -> Floats:
    """In each row the log sums of the items first .. last - 1.

    The ranges of a row have one length, and their ends rise together by one. Rows alike in that length are
    summed together.
    """
    lengths = np.clip((last - first).max(axis=1, initial=1), 1, log_weights.shape[1])
    sums = np.empty(first.shape)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        sums[rows] = _in_blocks(log_weights[rows], first[rows], last[rows], length)
    return sums


def _in_blocks(log_weights: Floats, first: Ints, last: Ints, length: int) -> Floats:
    """The items are cut into blocks as long as a range: it is the end of one and the beginning of the next.

    A range that is cut off by the first item begins a block, one by the last ends the last.
    """
    rows, size = log_weights.shape
    blocks = -(-size // length) + 2
    padded = np.full((rows, blocks * length), -np.inf)
    padded[:, :size] = log_weights
    grid = padded.reshape(rows, blocks, length)
    heads = log_running_sum(grid.reshape(-1, length)).reshape(rows, -1)
    back = log_running_sum(grid[:, :, ::-1].reshape(-1, length))
    tails = back[:, ::-1].reshape(rows, -1)
    begin, end = np.clip(first, 0, size), np.clip(last, 0, size)
    inside = end > begin
    begin, end = np.where(inside, begin, 0), np.where(inside, end, 1)
    same = begin // length == (end - 1) // length
    head, tail = np.take_along_axis(heads, end - 1, axis=1), np.take_along_axis(tails, begin, axis=1)
    one = np.where(begin % length == 0, head, tail)
    return np.where(inside, np.where(same, one, np.logaddexp(tail, head)), -np.inf)


def log_sum(logs: Floats) -> Floats:
    """The logarithms of sums along the first axis.

    What is too small to be seen beside the largest term moves a sum by less than its last digit.
    """
    most = logs.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        total: Floats = np.log(np.exp(logs - most).sum(axis=0)) + most
    return np.where(most > -np.inf, total, -np.inf)


def log_running_sum(logs: Floats) -> Floats:
    """The logarithms of running sums along each row.

    A few columns at a time are added up as floats, in units of the largest term among them and what came
    before, where no sum within lies so far below it that it would be lost; else as logarithms, one by one.
    """
    if len(logs) < _MANY:
        return np.logaddexp.accumulate(logs, axis=1)
    out, before = np.empty_like(logs), np.full((len(logs), 1), -np.inf)
    for start in range(0, logs.shape[1], _COLUMNS):
        part = np.concatenate([before, logs[:, start : start + _COLUMNS]], axis=1)
        least = np.maximum.accumulate(part, axis=1)  # no sum is below its largest term
        unit = least[:, -1:]
        lost = (least < unit - _FOLDS) & (least > -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = np.log(np.cumsum(np.exp(part - unit), axis=1)) + unit
        sums = np.where(least > -np.inf, sums, -np.inf)
        if lost.any():
            rows = lost.any(axis=1)
            sums[rows] = np.logaddexp.accumulate(part[rows], axis=1)
        out[:, start : start + _COLUMNS], before = sums[:, 1:], sums[:, -1:]
    return out
