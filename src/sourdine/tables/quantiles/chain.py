"""Sums and draws over chains of ranks: the heart of the joint exponential mechanism, in time linear in ranks.

Outputs t_1 <= ... <= t_m lie in segments of places with equally many values below, i_1 <= ... <= i_m of them.
A chain's weight is the number of places it leaves, times e^{-rate |i_j - i_{j-1} - s_j|} for each step, s_j
being the values that should lie between. Everything is kept as logarithms. All terms are positive, so each
sum is good to a relative error of a few units for each term, and nothing is ever taken away from a sum.
Ranks are counted from the beginning of their stretch and steps taken between such beginnings, exactly, so
that floats only ever see small numbers, however many values there are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.core.pick import pick

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
