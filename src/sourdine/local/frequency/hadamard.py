"""Hadamard response: the report is a column of a Hadamard matrix, and one fast transform reads them all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.shuffling.blanket import Favours
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.core.random.tables import WeightTerms, table
from sourdine.core.serialization import added
from sourdine.local.estimate import Counts, Estimate, between, shares
from sourdine.local.frequency.field import walsh_hadamard
from sourdine.local.frequency.supports import CodedOracle, Ints
from sourdine.local.intervals.inversion import PeopleRange
from sourdine.local.intervals.votes import Votes
from sourdine.mechanisms.randomized_response import Channel, mean_error

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class HadamardResponse(CodedOracle):
    """Reports a column of one of several Hadamard matrices, e^epsilon times as often where the row has a 1.

    A changed answer costs epsilon (Acharya, Sun, Zhang 2019). Category x is row 1 + x // B of the
    matrix x mod B, of the B = `blocks` there are; each has b = `columns` columns, a power of two. Votes for x
    are reports where its row has 1, votes against it those where it has -1, and their difference is unbiased,
    since any two rows agree as often as not. One block is one-bit Hadamard response. Unless given (0), B is
    the number of least variance at a frequency of 1/k, near (e^epsilon - 1)/2.

    In one block column 0 votes for every category: it tells nothing, and whoever sends it raises all of them
    at once. With `trivial=False` there is none, and the report is the column less 1.

    >>> HadamardResponse(epsilon=1, categories=1000).columns
    1024
    >>> HadamardResponse(epsilon=3, categories=1000).blocks
    10
    """

    name: ClassVar[str] = "hadamard/1"
    epsilon: Fraction
    categories: int
    blocks: int = 0
    trivial: bool = added(True)

    def __post_init__(self) -> None:
        self.check_declared()
        check.boolean("HadamardResponse", "trivial", self.trivial)
        blocks = check.integer("HadamardResponse", "blocks", self.blocks, 0, self.categories) or self._best()
        object.__setattr__(self, "blocks", blocks)

    def _best(self) -> int:
        """The variance over all categories falls until 2B = e^epsilon - 1, and grows from there."""
        turn = math.floor(min(math.expm1(self.epsilon) / 2, float(self.categories)))
        near = {max(1, turn), min(turn + 1, self.categories)}
        return min(near, key=lambda blocks: float(self._spread(1 / blocks, _votes(self.epsilon, blocks))))

    @property
    def columns(self) -> int:
        """How many columns a block has: rows for its categories, and the row of ones that tells nothing."""
        return 1 << (-(-self.categories // self.blocks)).bit_length()

    @property
    def codes(self) -> int:
        return self.blocks * self.columns - self._left_out

    @property
    def _left_out(self) -> int:
        """The columns that no report has: column 0 of a single block, unless it is wanted."""
        return int(self.blocks == 1 and not self.trivial)

    @property
    def channel(self) -> Channel:
        """A report from another block counts as half a vote for a category.

        Without column 0, which all rows agree on, two rows agree on fewer columns by one.
        """
        if self._left_out:
            decay, quarter = math.exp(-self.epsilon), self.columns // 4
            total = 2 * quarter - 1 + 2 * quarter * decay
            return Channel((2 * quarter - 1) / total, (quarter - 1 + quarter * decay) / total)
        return Channel((1 + self._votes.lean) / 2, 0.5)

    @property
    def _votes(self) -> Votes:
        return _votes(self.epsilon, self.blocks)

    @property
    def revealing(self) -> float:
        """Rows of two blocks share no vote, and rows of one block agree on half of them."""
        if self._left_out:
            return self.channel.p * self.columns / (2 * self.columns - 4)
        votes = self._votes
        return (votes.own + votes.lean) / (2 if self.blocks > 1 else 4)

    @property
    def favours(self) -> tuple[Favours, ...]:
        """Two rows of a block agree on half of its columns, and the third row is their product."""
        if self._left_out:
            alone, both = (each / self.codes for each in (self.columns // 4, self.columns // 4 - 1))
            third = alone if self.categories > 2 else 0.0
            return (Favours(each=alone + both, alone=alone, both=both, third=third),)
        share, more = 1 / (2 * self.blocks), self.categories > 2
        same = Favours(each=share, alone=share / 2, both=share / 2, third=share / 2 if more else 0.0)
        if self.blocks == 1:
            return (same,)
        other = Favours(each=share, alone=share, both=0.0, third=share if self.blocks > 2 else 0.0)
        return (other, same) if self.categories > self.blocks else (other,)

    def encode(self, truth: Ints, bits: Bits) -> Ints:
        codes = self._drawn(truth, bits)
        if not self._left_out:
            return codes
        while len(again := np.flatnonzero(codes == 0)):  # as often whatever the truth is
            codes[again] = self._drawn(truth[again], bits)
        return codes - 1

    def _drawn(self, truth: Ints, bits: Bits) -> Ints:
        """A column of a block, column 0 among them."""
        row, block = np.divmod(truth, self.blocks)
        row += 1
        others = 2 * (self.blocks - 1)  # columns of other blocks, for each column that votes for the truth
        ways = (
            WeightTerms((1, 1, others), (self.epsilon, 0, 0))
            if others
            else WeightTerms((1, 1), (self.epsilon, 0))
        )
        way = table(ways).sample(truth.size, bits)  # 0 votes for the truth, 1 against it, 2 goes elsewhere
        column = exact.uniform(self.columns, truth.size, bits)
        wrong = (_parity(row & column) != way) & (way < 2)
        column ^= np.where(wrong, row & -row, 0)  # one bit of the row, turned over, turns the sign
        away = 1 + exact.uniform(max(1, self.blocks - 1), truth.size, bits)
        block = (block + np.where(way < 2, 0, away)) % self.blocks
        return block * self.columns + column

    def variance(self, frequency: ArrayLike, reports: int, mass: ArrayLike | None = None) -> Floats:
        """The variance of the estimate of a category that has this frequency, in a block of this mass.

        Unless given, the mass is what it is on average when everybody else is spread over the others.
        """
        count = check.integer("HadamardResponse.variance", "reports", reports, 1, 1 << 62)
        if self._left_out:
            return self.channel.variance(frequency, count)
        f = np.clip(np.asarray(frequency, float), 0.0, 1.0)
        others = (self.categories / self.blocks - 1) / (self.categories - 1)
        m = f + (1 - f) * others if mass is None else np.clip(np.asarray(mass, float), f, 1.0)
        return np.asarray((self._spread(m, self._votes) - f) / count)

    @staticmethod
    def _spread(mass: ArrayLike, votes: Votes) -> Floats:
        """What the variance of one report would be if nobody had the category."""
        m = np.asarray(mass, float)
        spread: Floats = (m * votes.own + (1 - m) * votes.other) / votes.lean**2
        return spread

    def error(self, confidence: float = 0.95, reports: int = 1) -> float:
        """The half-width of an interval around the estimated frequency of one answer, whatever all are."""
        owner = "HadamardResponse.error"
        level = check.confidence(owner, confidence)
        count = check.integer(owner, "reports", reports, 1, 1 << 62)
        if self._left_out:
            return self.channel.half_width(level, count)
        most = 1 / self._votes.lean
        return mean_error(2 * most, most + 1, float(self._spread(1.0, self._votes)), level, count)

    def supports(self, counts: Counts) -> Ints:
        """How many reports vote for each category."""
        signs, totals = self._signs(counts)
        return (signs + totals) // 2

    def estimate(self, counts: Counts, confidence: float = 0.95) -> Estimate:
        """Unbiased shares of the categories; the variance is by the mass of each block, estimated as well."""
        level = check.confidence("HadamardResponse.estimate", confidence)
        known = self.known(counts)
        if self.blocks == 1:
            return shares(self.channel, self.supports(known), known.reports, level)
        signs, totals = self._signs(known)
        votes, n = self._votes, known.reports
        mass = np.clip((totals / n - votes.other) / (votes.own - votes.other), 0.0, 1.0)
        value = signs / (n * votes.lean)
        variance = (self._spread(mass, votes) - np.clip(value, 0.0, 1.0)) / n
        people = votes.people(signs, totals, self._alone, n, level)
        return between(value, variance, people, n, level)

    def honest_people(self, estimate: Estimate, attackers: int) -> PeopleRange | None:
        """Honest people with each category, if so many of the reports were made up.

        Each of those votes for a category, against it or not at all, so the honest votes for it less those
        against it are at most that many away from all. How many people the block holds is taken as unknown.
        """
        owner = "HadamardResponse.honest_people"
        made_up = check.integer(owner, "attackers", attackers, 0, estimate.reports - 1)
        signs = np.rint(estimate.value * self._votes.lean * estimate.reports).astype(np.int64)
        honest = estimate.reports - made_up
        return self._votes.people_between(
            signs - made_up, signs + made_up, self._alone, honest, estimate.confidence
        )

    @property
    def _alone(self) -> NDArray[np.bool_]:
        """Which categories have a block of their own: all blocks have one, or one more the first of them."""
        size, more = divmod(self.categories, self.blocks)
        block = np.arange(self.categories) % self.blocks
        return np.asarray(size + (block < more) == 1)

    def _signs(self, counts: Counts) -> tuple[Ints, Ints]:
        """For each category the votes for it less those against it, and all reports of its block."""
        sums = np.concatenate([np.zeros(self._left_out, np.int64), counts.sums])
        rows = walsh_hadamard(sums.reshape(self.blocks, self.columns))
        row, block = np.divmod(np.arange(self.categories), self.blocks)
        return rows[block, row + 1], rows[block, 0]

    def support_sizes(self) -> Ints:
        row, block = np.divmod(np.arange(self.categories), self.blocks)
        every = np.zeros((self.blocks, self.columns), np.int64)
        every[block, row + 1] = 1
        votes = (every.sum(axis=1, keepdims=True) + walsh_hadamard(every)) // 2
        sizes: Ints = votes.reshape(-1)[self._left_out :]
        return sizes

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), categories=6, blocks=1),
            value=0,
            neighbour=5,
            distance=Distance.hamming(),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), categories=6, blocks=1, trivial=False),
            value=2,
            neighbour=1,
            distance=Distance.hamming(),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(2), categories=8, blocks=3),
            value=7,
            neighbour=2,
            distance=Distance.hamming(),
        )


def _votes(epsilon: Fraction, blocks: int) -> Votes:
    """Half the columns of the own block weigh e^epsilon, the other half and all other blocks 1."""
    decay = math.exp(-epsilon)
    total = 1 + (2 * blocks - 1) * decay
    return Votes((1 + decay) / total, 2 * decay / total, (1 - decay) / total)


def _parity(numbers: Ints) -> Ints:
    """Whether an odd number of bits is set, for numbers below 2^32."""
    for shift in (16, 8, 4, 2, 1):
        numbers = numbers ^ numbers >> shift
    return numbers & 1
