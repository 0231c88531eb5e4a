"""All quantiles at once, by one exponential mechanism over sorted tuples of places.

Its heart is sums and draws over chains of ranks, in time linear in ranks. Outputs t_1 <= ... <= t_m lie in
segments of places with equally many values below, i_1 <= ... <= i_m of them. A chain's weight is the number
of places it leaves, times e^{-rate |i_j - i_{j-1} - s_j|} for each step, s_j being the values that should
lie between. Everything is kept as logarithms. All terms are positive, so each sum is good to a relative
error of a few units for each term, and nothing is ever taken away from a sum. Ranks are counted from the
beginning of their stretch and steps taken between such beginnings, exactly, so that floats only ever see
small numbers, however many values there are.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.loss import BoundedRangeLaw, PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.core.randomness.exact import uniform
from sourdine.core.randomness.selection import Segments, pick, places_in
from sourdine.frames.statistics.group_ranks import RankSource
from sourdine.tables.quantiles.jitter import FinePlaces, Jittered, SetApart, fine_bits
from sourdine.tables.quantiles.method import QuantileMethod, shares

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Stretch:
    """The ranks that one output may have, from `first` on, and how many places each leaves for it."""

    first: int
    sizes: Ints

    @property
    def last(self) -> int:
        """One past the last rank."""
        return self.first + len(self.sizes)


@dataclass(frozen=True)
class Chain:
    """Stretches of ranks for m outputs, and the steps wanted before, between and after them."""

    stretches: Sequence[Stretch]
    steps: Sequence[Fraction]
    total: int
    rate: float

    def _step(self, j: int) -> Fraction:
        """The step before output j, between the beginnings of the stretches around it."""
        before = self.stretches[j - 1].first if j else 0
        after = self.stretches[j].first if j < len(self.stretches) else self.total
        return self.steps[j] - (after - before)

    def forward(self) -> list[Floats]:
        """For each output j and each number r of outputs up to it in one segment, log weights by rank.

        Row r - 1 of item j sums over all chains of outputs 1 .. j whose last r share the segment.
        """
        found: list[Floats] = []
        arrived: list[Floats] = []  # by output: log weights of reaching each rank of the next stretch anew
        for j, stretch in enumerate(self.stretches):
            ranks = np.arange(len(stretch.sizes), dtype=float)
            if j == 0:
                arrived.append(-self.rate * np.abs(ranks - float(self._step(0))))
            else:
                arrived.append(self._moved(j, np.logaddexp.reduce(found[j - 1], axis=0)))
            rows = np.full((j + 1, len(ranks)), -np.inf)
            stay, choices = Fraction(0), np.zeros(len(ranks))
            with np.errstate(divide="ignore"):
                for r in range(1, j + 2):
                    choices = choices + np.log((stretch.sizes + (r - 1)) / r)
                    choices = np.where(stretch.sizes > 0, choices, -np.inf)
                    begun = self._aligned(arrived[j - r + 1], self.stretches[j - r + 1], stretch)
                    rows[r - 1] = choices + begun - self.rate * float(stay)
                    stay += self.steps[j - r + 1]
            found.append(rows)
        return found

    def _aligned(self, log_weights: Floats, held: Stretch, wanted: Stretch) -> Floats:
        """Log weights of one stretch at the ranks of another; none where it does not reach."""
        out = np.full(wanted.last - wanted.first, -np.inf)
        low, high = max(held.first, wanted.first), min(held.last, wanted.last)
        if low < high:
            out[low - wanted.first : high - wanted.first] = log_weights[low - held.first : high - held.first]
        return out

    def _moved(self, j: int, log_weights: Floats) -> Floats:
        """Reaching rank i of stretch j from a lower rank k before: sums of weight(k) e^{-rate |i - k - s|}.

        Ranks k up to i - s fall under a running sum; those between i - s and i under a sliding one, made of
        sums over blocks so that nothing is subtracted.
        """
        here, rate = self.stretches[j], self.rate
        old = np.arange(len(log_weights)) - len(log_weights) / 2
        places, step = np.arange(len(here.sizes)), self._step(j)
        ranks = places + (here.first - self.stretches[j - 1].first)
        split = np.minimum(places + math.floor(-step), ranks - 1)  # the last k of the running sum
        aims = places - float(step) - len(log_weights) / 2
        rising = np.logaddexp.accumulate(log_weights + rate * old)
        place = np.clip(split, -1, len(old) - 1)
        far = np.where(place >= 0, rising[np.maximum(place, 0)], -np.inf) - rate * aims
        near = _sliding(log_weights - rate * old, split + 1, ranks)
        found: Floats = np.logaddexp(far, near + rate * aims)
        return found

    def draw(self, count: int, bits: Bits) -> Ints:
        """So many chains: the rank of each output, one row a chain."""
        tables = self.forward()
        m = len(self.stretches)
        out = np.empty((count, m), np.int64)
        # chains at the same output and rank have the same future, so they are drawn together
        states: dict[tuple[int, int], Ints] = {(m, -1): np.arange(count)}
        while states:
            (j, after), chains = states.popitem()
            if j == 0:
                continue
            stretch, rows = self.stretches[j - 1], tables[j - 1]
            ranks = np.arange(stretch.first, stretch.last)
            ahead = 0 if after < 0 else after - self.stretches[j].first
            tail = -self.rate * np.abs(ahead - np.arange(len(ranks)) - float(self._step(j)))
            if after >= 0:
                tail = np.where(ranks < after, tail, -np.inf)
            chosen = pick((rows + tail).ravel(), len(chains), bits)
            shared, rank = chosen // len(ranks) + 1, ranks[chosen % len(ranks)]
            for r, i in set(zip(shared.tolist(), rank.tolist(), strict=True)):
                these = chains[(shared == r) & (rank == i)]
                out[these, j - r : j] = i
                if j > r:
                    key = (j - r, i)
                    states[key] = np.concatenate([states[key], these]) if key in states else these
        return out


def _sliding(log_weights: Floats, first: Ints, last: Ints) -> Floats:
    """Log sums of the items first .. last - 1, for ranges of one length whose ends rise together by one.

    The items are cut into blocks as long as a range: a range is the end of one block and the beginning of
    the next. One that is cut off by the first item begins a block, one by the last ends the last.
    """
    size = len(log_weights)
    length = min(max(int((last - first).max()), 1), size) if len(first) else 1
    blocks = -(-size // length) + 2
    padded = np.full(blocks * length, -np.inf)
    padded[:size] = log_weights
    grid = padded.reshape(blocks, length)
    heads = np.logaddexp.accumulate(grid, axis=1).ravel()
    tails = np.logaddexp.accumulate(grid[:, ::-1], axis=1)[:, ::-1].ravel()
    begin, end = np.clip(first, 0, size), np.clip(last, 0, size)
    inside = end > begin
    begin, end = np.where(inside, begin, 0), np.where(inside, end, 1)
    same = begin // length == (end - 1) // length
    one = np.where(begin % length == 0, heads[end - 1], tails[begin])
    both = np.logaddexp(tails[begin], heads[end - 1])
    return np.where(inside, np.where(same, one, both), -np.inf)


_RARE = 40  # bits of the chance that the answer ignores the values
_MARGIN = 30  # e-folds by which what the window leaves out is below that chance's share
_NEAR = 64  # ranks around an aim that are looked at first
_CROWD = 1 << 12  # values that may share a fine place, or twice the e-folds below
_MOST_PLACES = 1 << 41  # so that a step has 2^20 fine places, and values seldom share one


@dataclass(frozen=True, kw_only=True)
class JointExponential(QuantileMethod):
    """Chooses places t_1 <= ... <= t_m with probability proportional to e^{-rate gap}.

    The gap is the sum over j of |#values in [t_{j-1}, t_j) - (q_j - q_{j-1}) n| (Gillenwater, Joseph,
    Kulesza 2021, algorithm 1). One value replaced moves it by 2, one added or removed by twice one less the
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
        ranks = 2 * (folds / (1.8 * rate) + crowd + 2 * m + 16)
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

    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        """So many independent answers; the values are set apart anew for each."""
        return np.concatenate(
            [self.given(Jittered(source, self.places, bits), 1, bits) for _ in range(count)]
        )

    def given(self, jittered: FinePlaces, count: int, bits: Bits) -> NDArray[np.int64]:
        """So many answers for values that have been set apart."""
        chain, edges = self._chain(jittered)
        ranks = chain.draw(count, bits)
        out = np.empty(ranks.shape, np.int64)
        for j, (stretch, held) in enumerate(zip(chain.stretches, edges, strict=True)):
            place = ranks[:, j] - stretch.first
            begin = held[place] + 1
            out[:, j] = begin + _below(held[place + 1] - held[place], bits)
        self._share(out, ranks, chain, edges, bits)
        ignored = np.flatnonzero(bits.words(count) >> np.uint64(64 - _RARE) == 0)
        for i in ignored:
            out[i] = multisets(jittered.size, len(self.levels), 1, bits)
        return out >> fine_bits(self.places)

    def _share(
        self,
        out: NDArray[np.int64],
        ranks: NDArray[np.int64],
        chain: Chain,
        edges: list[NDArray[np.int64]],
        bits: Bits,
    ) -> None:
        """Outputs that share a segment are a uniform multiset of its places, drawn for all like answers."""
        shared = np.diff(ranks, axis=1) == 0
        if not shared.any():
            return
        like, who = np.unique(shared, axis=0, return_inverse=True)
        for i, together in enumerate(like):
            rows = np.flatnonzero(who.ravel() == i)
            starts = np.flatnonzero(np.append(True, ~together))
            for a, b in pairwise([*starts.tolist(), ranks.shape[1]]):
                if b - a == 1:
                    continue
                for rank in np.unique(ranks[rows, a]).tolist():
                    here, place = rows[ranks[rows, a] == rank], rank - chain.stretches[a].first
                    low, high = int(edges[a][place]), int(edges[a][place + 1])
                    out[here, a:b] = low + 1 + multisets(high - low, b - a, len(here), bits)

    def _chain(self, values: FinePlaces) -> tuple[Chain, list[NDArray[np.int64]]]:
        """The ranks near each quantile, and the fine places that bound them."""
        n, m = values.count, len(self.levels)
        steps = [share * n for share in shares(self.levels)]
        aims = [level * n for level in self.levels]
        astray = sum(self._astray(values, float(aim)) for aim in aims)
        # an output d ranks off makes a gap of 2 d; neighbours' aims and near places differ by a few ranks
        reach = math.ceil(self._folds() / (2 * float(self.rate)) + astray) + 2 * m + 8
        stretches, edges = [], []
        for aim in aims:
            low, high = max(math.floor(aim) - reach, 0), min(math.ceil(aim) + reach, n)
            held = self._edges(values, low, high)
            edges.append(held)
            stretches.append(Stretch(low, np.diff(held)))
        return Chain(stretches, steps, n, float(self.rate)), edges

    def _edges(self, values: FinePlaces, low: int, high: int) -> NDArray[np.int64]:
        """The fine places before rank low, between, and after rank high; or the ends of the grid."""
        n = values.count
        inner = values.between(max(low - 1, 0), min(high + 1, n))
        before = [-1] if low == 0 else []
        after = [values.size - 1] if high == n else []
        return np.concatenate([before, inner, after]).astype(np.int64)

    def _astray(self, values: FinePlaces, aim: float) -> float:
        """How far the nearest rank is that leaves a place, since equal fine places leave none between."""
        n, around = values.count, _NEAR
        while True:
            low, high = max(math.floor(aim) - around, 0), min(math.ceil(aim) + around, n)
            held = np.flatnonzero(np.diff(self._edges(values, low, high)) > 0) + low
            if held.size:
                return float(np.abs(held - aim).min())
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
    def rho_at_one(cls, levels: int) -> Fraction:
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
                draw=partial(_given, mechanism),
            )


def _given(mechanism: JointExponential, value: ArrayLike, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many answers for values that are set apart by where they stand."""
    return mechanism.given(SetApart.evenly(value, mechanism.places), count, bits)


def multisets(size: int, count: int, rows: int, bits: Bits) -> NDArray[np.int64]:
    """Rows of so many of the numbers 0 .. size - 1, each rising, all multisets equally likely.

    They are the subsets of size + count - 1 numbers with what comes before each taken away; a subset is drawn
    one number at a time, the last of those in question standing in for one that is taken (Floyd).
    """
    taken = np.empty((rows, count), np.int64)
    for j in range(count):
        top = size - 1 + j
        drawn = uniform(top + 1, rows, bits)
        again = (taken[:, :j] == drawn[:, None]).any(axis=1)
        taken[:, j] = np.where(again, top, drawn)
    return np.sort(taken, axis=1) - np.arange(count)


def _below(sizes: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """A uniform whole number below each size."""
    segments = Segments(np.zeros(len(sizes), np.int64), np.maximum(sizes, 1), np.zeros(len(sizes), np.int64))
    return places_in(segments, np.arange(len(sizes)), bits)
