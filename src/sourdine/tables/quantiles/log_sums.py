"""Logarithms of what chains of ranks weigh up to each rank, where floats have not the range for the weights.

All terms are positive, so each sum is good to a relative error of a few units for each term, and nothing is
ever taken away from a sum: no weight is lost, however small.
"""

from dataclasses import dataclass

import numpy as np

from sourdine.core.random.bits import Bits
from sourdine.core.random.selection import pick
from sourdine.tables.quantiles.chains import Chains, ChainSums, Floats, Ints

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
                reached = _moved(chains, j, sums[j - 1])
            arrived.append(np.where(ranks < length[:, j, None], reached, -np.inf))
            rows = np.empty((j + 1, *sizes[:, j].shape))
            stay, choices = np.zeros_like(chains.steps[:, 0]), np.zeros(sizes[:, j].shape)
            with np.errstate(divide="ignore"):
                for r in range(1, j + 2):
                    choices = choices + np.log((sizes[:, j] + (r - 1)) / r)
                    begun = _shifted(arrived[j - r + 1], first[:, j] - first[:, j - r + 1])
                    rows[r - 1] = choices + begun - (chains.rate * chains.floats(stay))[:, None]
                    stay = stay + chains.steps[:, j - r + 1]
            log_sums.append(np.where(sizes[:, j] > 0, rows, -np.inf))
            sums.append(log_sum(log_sums[j]))
        return cls(chains, log_sums, sums)

    def pick_rank(self, j: int, group: Ints, tail: Floats, which: Ints, bits: Bits) -> Ints:
        return pick(self.sums[j][group] + tail, which, bits)

    def pick_shared(self, j: int, group: Ints, place: Ints, bits: Bits) -> Ints:
        return 1 + pick(self.tables[j][:, group, place].T, np.arange(len(place)), bits)


def _moved(chains: Chains, j: int, log_weights: Floats) -> Floats:
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


def _shifted(log_weights: Floats, by: Ints) -> Floats:
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
