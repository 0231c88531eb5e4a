"""Draws of chains of ranks, in time linear in ranks, for many groups of values at once.

Outputs t_1 <= ... <= t_m lie in segments of places with equally many values below, i_1 <= ... <= i_m of them.
A chain's weight is the number of places it leaves, times e^{-rate |i_j - i_{j-1} - s_j|} for each step, s_j
being the values that should lie between. Ranks are counted from the beginning of their stretch and steps
taken between such beginnings, exactly, so that floats only ever see small numbers, however many values there
are.

What the outputs up to each rank weigh is summed going up, and a chain drawn going down. The sums are floats
(`float_sums`) or, where their range does not do, logarithms of them (`log_sums`).

Groups stand side by side, the stretches of all padded to one length with ranks that leave no place: those
weigh nothing, so no group feels another.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_EXACT = 1 << 52  # whole numbers below it are floats, and so are differences of two
_CELLS = 1 << 20  # weights that are looked at together when chains are drawn


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
        many = max(1, _CELLS // self.chains.stretches.edges.shape[2])
        for start in range(0, len(pairs), many):
            low, high = np.searchsorted(ordered, [start, start + many])
            here = pairs[start : start + many]
            yield chains[order[low:high]], here[:, 0], here[:, 1], ordered[low:high] - start
