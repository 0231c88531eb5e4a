"""All quantiles at once, by one exponential mechanism over sorted tuples of places.

Equal values are set apart on a finer grid, the ranks near each quantile looked up there, and chains of such
ranks drawn (`float_sums`). Groups of few values go side by side; large ones by themselves, since of those
only what lies near the quantiles is ever looked at.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import BoundedRangeLaw, PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.selection import uniform_below
from sourdine.frames.rank_counts import GroupRanks, RankSource, SeparateRanks
from sourdine.tables.quantiles.chains import Chains, Stretches
from sourdine.tables.quantiles.float_sums import draw_chains
from sourdine.tables.quantiles.jitter import (
    WHOLE,
    FinePlaces,
    Jittered,
    JitteredGroups,
    SetApart,
    batches,
    fine_bits,
)
from sourdine.tables.quantiles.method import QuantileMethod, shares

Ints = NDArray[np.int64]


_RARE = 40  # bits of the chance that the answer ignores the values
_MARGIN = 30  # e-folds by which what the window leaves out is below that chance's share
_SNAP = 16  # long windows begin at multiples, so that those of groups of like sizes lie alike
_NEAR = 64  # ranks around an aim that are looked at first
_CROWD = 1 << 12  # values that may share a fine place, or twice the e-folds below
_CELLS = 1 << 17  # weights that are kept together for each level
_MOST_PLACES = 1 << 41  # so that a step has 2^20 fine places, and values seldom share one


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
