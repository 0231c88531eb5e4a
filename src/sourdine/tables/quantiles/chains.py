"""Sums and draws over chains of ranks, in time linear in ranks, for many groups of values at once.

Outputs t_1 <= ... <= t_m lie in segments of places with equally many values below, i_1 <= ... <= i_m of them.
A chain's weight is the number of places it leaves, times e^{-rate |i_j - i_{j-1} - s_j|} for each step, s_j
being the values that should lie between. Everything is kept as logarithms. All terms are positive, so each
sum is good to a relative error of a few units for each term, and nothing is ever taken away from a sum. Ranks
are counted from the beginning of their stretch and steps taken between such beginnings, exactly, so that
floats only ever see small numbers, however many values there are.

Groups stand side by side, the stretches of all padded to one length with ranks that leave no place: those
weigh nothing, so no group feels another.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.randomness.bits import Bits
from sourdine.core.randomness.selection import pick

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_EXACT = 1 << 52  # whole numbers below it are floats, and so are differences of two
_MANY = 16  # rows from which running sums are quicker as floats
_COLUMNS = 64  # that are added up together
_FOLDS = 600.0  # e-folds below which a float is still as good as any
_CELLS = 1 << 22  # log weights that are looked at together when chains are drawn


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
        found: Ints = np.where(inside, np.diff(self.edges, axis=2), 0)
        return found


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

    def _step(self, j: int) -> tuple[Floats, Ints]:
        """The step before output j, between the beginnings of the stretches around it, and it rounded up."""
        first = self.stretches.first
        before = first[:, j - 1] if j else np.zeros_like(self.total)
        after = first[:, j] if j < self.outputs else self.total
        exact = self.steps[:, j] - (after - before).astype(self.steps.dtype) * self.unit
        return self._floats(exact), (-(-exact // self.unit)).astype(np.int64)

    def _floats(self, exact: NDArray[Any]) -> Floats:
        """The nearest floats to whole numbers of one over the unit."""
        if exact.dtype != object:
            return exact / self.unit
        return np.array([float(Fraction(each, self.unit)) for each in exact.tolist()])

    def forward(self) -> tuple[list[Floats], list[Floats]]:
        """For each output j and each number r of outputs up to it in one segment, log weights by rank.

        Row r - 1 of item j sums over all chains of outputs 1 .. j whose last r share the segment. Beside them
        are the sums of all rows.
        """
        first, length, sizes = self.stretches.first, self.stretches.length, self.stretches.sizes
        ranks = np.arange(sizes.shape[2])
        found: list[Floats] = []
        sums: list[Floats] = []
        arrived: list[Floats] = []  # by output: log weights of reaching each rank of the next stretch anew
        for j in range(self.outputs):
            if j == 0:
                reached = -self.rate * np.abs(ranks - self._step(0)[0][:, None])
            else:
                reached = self._moved(j, sums[j - 1])
            arrived.append(np.where(ranks < length[:, j, None], reached, -np.inf))
            rows = np.empty((j + 1, *sizes[:, j].shape))
            stay, choices = np.zeros_like(self.steps[:, 0]), np.zeros(sizes[:, j].shape)
            with np.errstate(divide="ignore"):
                for r in range(1, j + 2):
                    choices = choices + np.log((sizes[:, j] + (r - 1)) / r)
                    begun = _shifted(arrived[j - r + 1], first[:, j] - first[:, j - r + 1])
                    rows[r - 1] = choices + begun - (self.rate * self._floats(stay))[:, None]
                    stay = stay + self.steps[:, j - r + 1]
            found.append(np.where(sizes[:, j] > 0, rows, -np.inf))
            sums.append(log_sum(found[j]))
        return found, sums

    def _moved(self, j: int, log_weights: Floats) -> Floats:
        """Reaching rank i of stretch j from a lower rank k before: sums of weight(k) e^{-rate |i - k - s|}.

        Ranks k up to i - s fall under a running sum; those between i - s and i under a sliding one, made of
        sums over blocks so that nothing is subtracted.
        """
        rate, half = self.rate, self.stretches.length[:, j - 1, None] / 2
        places = np.arange(log_weights.shape[1])
        old, (step, above) = places - half, self._step(j)
        ranks = places + (self.stretches.first[:, j] - self.stretches.first[:, j - 1])[:, None]
        split = np.minimum(places - above[:, None], ranks - 1)  # the last k of the running sum
        aims = places - step[:, None] - half
        rising = log_running_sum(log_weights + rate * old)
        place = np.clip(split, -1, len(places) - 1)
        far = np.take_along_axis(rising, np.maximum(place, 0), axis=1)
        far = np.where(place >= 0, far, -np.inf) - rate * aims
        near = sliding(log_weights - rate * old, split + 1, ranks)
        found: Floats = np.logaddexp(far, near + rate * aims)
        return found

    def draw(self, owner: Ints, bits: Bits) -> Ints:
        """A chain of each owner's group: the rank of each output, one row a chain.

        Of the last output that is not drawn yet the rank is drawn, then how many before it share its segment.
        """
        (tables, sums), m = self.forward(), self.outputs
        out = np.empty((len(owner), m), np.int64)
        at, after = np.full(len(owner), m), np.full(len(owner), -1)
        for j in range(m, 0, -1):
            step = self._step(j)[0]
            for chains, group, ahead, which in self._alike(np.flatnonzero(at == j), owner, after):
                ranks = np.arange(sums[0].shape[1])
                first = self.stretches.first[group, j - 1, None]
                begun = ahead - self.stretches.first[group, j] if j < m else np.zeros_like(ahead)
                tail = -self.rate * np.abs(begun[:, None] - ranks - step[group, None])
                if j < m:
                    tail = np.where(first + ranks < ahead[:, None], tail, -np.inf)
                place = pick(sums[j - 1][group] + tail, which, bits)
                rank, each = first[which, 0] + place, np.arange(len(place))
                shared = 1 + pick(tables[j - 1][:, group[which], place].T, each, bits)
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
        many = max(1, _CELLS // self.stretches.edges.shape[2])
        for start in range(0, len(pairs), many):
            low, high = np.searchsorted(ordered, [start, start + many])
            here = pairs[start : start + many]
            yield chains[order[low:high]], here[:, 0], here[:, 1], ordered[low:high] - start


def _shifted(log_weights: Floats, by: Ints) -> Floats:
    """Each row moved to the left by so many; none where it does not reach."""
    size = log_weights.shape[1]
    if not by.any():
        return log_weights
    place = np.arange(size) + by[:, None]
    held = np.take_along_axis(log_weights, np.clip(place, 0, size - 1), axis=1)
    return np.where((place >= 0) & (place < size), held, -np.inf)


def sliding(log_weights: Floats, first: Ints, last: Ints) -> Floats:
    """In each row the log sums of the items first .. last - 1.

    The ranges of a row have one length, and their ends rise together by one. Rows alike in that length are
    summed together.
    """
    lengths = np.clip((last - first).max(axis=1, initial=1), 1, log_weights.shape[1])
    found = np.empty(first.shape)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        found[rows] = _in_blocks(log_weights[rows], first[rows], last[rows], length)
    return found


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
