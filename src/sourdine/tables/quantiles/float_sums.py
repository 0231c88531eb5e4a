"""What chains of ranks weigh up to each rank, as floats: several times quicker than logarithms.

A segment's places are counted in parts of all places, so that the chains before a rank weigh at most 1, and
so do those after it. Nothing is taken away from a sum, so a sum is off by no more than a unit for each of its
terms, or else by what floats cannot tell from nothing, 2^-1000. What that can add up to is compared with what
all chains of a group weigh; if it is not far less than what may be left out, the group is not trusted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.core.random.selection import pick_weights
from sourdine.tables.quantiles.chains import Chains, ChainSums, Floats, Ints
from sourdine.tables.quantiles.log_sums import LogSums

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
