"""Exact sampling from a law of weights, by inverse distribution function on certified tables.

Let U be uniform on [0, 1) with endless binary digits, and X the number of cumulative probabilities that
are at most U. The first 16 bits of U settle X unless a cumulative probability lies in that cell; then 48
more bits are compared with certified 64-bit thresholds; and when those tie, which happens about once in
2^63 comparisons, `_resolve` draws digits until balls of any precision tell. No step approximates.

Open cells are mostly those of rare outcomes, so a small call searches for every sample: otherwise the time
of a single draw would tell a large noise from a small one.

A distribution on 0, 1, 2, ... states its first `count` weights, up to one common factor, as certified balls
at the ambient precision, and a bound on the sum of all the others.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from flint import arb, ctx, fmpz
from numpy.typing import NDArray

from sourdine.core.balls import ball, exponential, floor_scaled, precision, up_to
from sourdine.core.randomness.bits import Bits, sixteens


class Weights(ABC):
    """A law known by its weights; frozen and hashable, so that its table is built once."""

    @property
    def size(self) -> int | None:
        """How many outcomes there are; None when they never end."""
        return None

    @abstractmethod
    def first(self, count: int) -> list[arb]:
        """The weights of outcomes 0 .. count - 1."""

    @abstractmethod
    def rest(self, count: int) -> arb:
        """At least the sum of the weights from outcome `count` on."""


class Finite(Weights):
    """A law with finitely many outcomes."""

    def rest(self, count: int) -> arb:
        return arb(0)


@dataclass(frozen=True)
class WeightTerms(Finite):
    """Outcome i weighs factor_i * e^{exponent_i}."""

    factors: tuple[Fraction | int, ...]
    exponents: tuple[Fraction | int, ...]

    @property
    def size(self) -> int:
        return len(self.factors)

    def first(self, count: int) -> list[arb]:
        pairs = zip(self.factors[:count], self.exponents[:count], strict=True)
        return [ball(factor) * exponential(exponent) for factor, exponent in pairs]


@dataclass(frozen=True)
class GeometricDigit(Finite):
    """Outcome k weighs e^{-k/scale}, for k below the base: the last digit of a geometric variable."""

    scale: Fraction
    base: int

    @property
    def size(self) -> int:
        return self.base

    def first(self, count: int) -> list[arb]:
        return _powers(exponential(-1 / self.scale), count)


@dataclass(frozen=True)
class GeometricWeights(Weights):
    """Outcome k weighs e^{-k/scale}, without end."""

    scale: Fraction

    def first(self, count: int) -> list[arb]:
        return _powers(exponential(-1 / self.scale), count)

    def rest(self, count: int) -> arb:
        ratio = exponential(-1 / self.scale)
        return ratio**count / (1 - ratio)


@dataclass(frozen=True)
class LaplaceWeights(Weights):
    """Two-sided geometric in zigzag order 0, -1, 1, -2, 2, ...: outcome i weighs e^{-ceil(i/2)/scale}."""

    scale: Fraction

    def first(self, count: int) -> list[arb]:
        return _zigzag(_powers(exponential(-1 / self.scale), count // 2 + 1), count)

    def rest(self, count: int) -> arb:
        ratio = exponential(-1 / self.scale)
        return 2 * ratio ** ((count + 1) // 2) / (1 - ratio)


@dataclass(frozen=True)
class GaussianWeights(Weights):
    """Discrete Gaussian in zigzag order: outcome i weighs e^{-k^2/(2 variance)}, k = ceil(i/2)."""

    variance: Fraction

    def first(self, count: int) -> list[arb]:
        return _zigzag(_squares(self.variance, 1, count // 2 + 1), count)

    def rest(self, count: int) -> arb:
        return 2 * _square_tail(self.variance, 1, (count + 1) // 2)


@dataclass(frozen=True)
class GaussianBlocks(Weights):
    """The ceiling of a Gaussian over blocks: outcome b weighs e^{-(b width)^2/(2 variance)}."""

    variance: Fraction
    width: int

    def first(self, count: int) -> list[arb]:
        return _squares(self.variance, self.width, count)

    def rest(self, count: int) -> arb:
        return _square_tail(self.variance, self.width, count)


def _powers(ratio: arb, count: int) -> list[arb]:
    powers = [arb(1)]
    for _ in range(count - 1):
        powers.append(powers[-1] * ratio)
    return powers[:count]


def _zigzag(sides: list[arb], count: int) -> list[arb]:
    return [sides[(i + 1) // 2] for i in range(count)]


def _squares(variance: Fraction, width: int, count: int) -> list[arb]:
    rate = ball(Fraction(-(width**2)) / (2 * variance))
    return [(rate * (k * k)).exp() for k in range(count)]


def _square_tail(variance: Fraction, width: int, start: int) -> arb:
    """A bound on sum_{k >= start} e^{-(k width)^2/(2 variance)}: ratios of neighbours only fall."""
    rate = Fraction(width**2) / (2 * variance)
    return exponential(-rate * start**2) / (1 - exponential(-rate * (2 * start + 1)))


_GUARD = 128  # bits of precision beyond the 64 compared
_TAIL = 16  # bits by which the tail that is cut off is lighter than the last bit compared
CELL_BITS = 16
_CELLS = 1 << CELL_BITS
_MOST = 1 << 24  # outcomes a table may need; every scale that mechanisms allow needs far fewer
_CHUNK = 1 << 16  # samples handled at once, so that the arrays stay in the cache
STEADY = 1 << 12  # so few samples are all searched: rare outcomes share cells, and a search would show


class CdfTable:
    """Certified thresholds of one law, and the samples drawn with them."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._thresholds = self._certify()
        self.guide = self._cells()
        self._zeros, self._ones = (int(np.count_nonzero(self.guide == outcome)) for outcome in (0, 1))

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """`count` independent outcomes."""
        out = np.empty(count, dtype=np.int64)
        for start in range(0, count, _CHUNK):
            part = out[start : start + _CHUNK]
            part[:] = self.settle(sixteens(bits, len(part)), bits)
        return out

    def settle(self, cells: NDArray[np.uint16], bits: Bits) -> NDArray[Any]:
        """The outcomes of uniform numbers that begin with these cells."""
        if len(cells) <= STEADY:
            return self.search(cells, bits)
        out = self.guide.take(cells)
        open_ = np.flatnonzero(out < 0)
        out[open_] = self.search(cells[open_], bits)
        return out

    def coins(self, count: int, bits: Bits) -> NDArray[np.bool_]:
        """`count` outcomes of a law that has two, as booleans.

        The cells that settle 1 are the last ones, those that settle 0 the first; what is between is searched.
        """
        if count <= STEADY:
            return self.search(sixteens(bits, count), bits).astype(np.bool_)
        cells = sixteens(bits, count)
        heads: NDArray[np.bool_] = cells >= _CELLS - self._ones
        open_ = np.flatnonzero(cells - np.uint16(self._zeros) < _CELLS - self._ones - self._zeros)
        heads[open_] = self.search(cells[open_], bits)
        return heads

    def draw(self, bits: Bits) -> int:
        """One outcome, by the same words as `sample` takes for one."""
        return self.settle_one(int(bits.words(1)[0]) & _CELLS - 1, bits)

    def settle_one(self, cell: int, bits: Bits) -> int:
        """The outcome of one uniform number that begins with a cell: by a search, as in a small call."""
        word = int(bits.words(1)[0]) >> CELL_BITS | cell << 64 - CELL_BITS
        listed = self._listed
        place = bisect_left(listed, word)
        if listed[min(place, len(listed) - 1)] == word or (place and listed[place - 1] + 1 == word):
            return self._resolve(word, bits)
        return place

    @cached_property
    def _listed(self) -> list[int]:
        """The thresholds as integers of Python, which single draws compare sooner."""
        return self._thresholds.tolist()  # type: ignore[no-any-return]

    def search(self, cells: NDArray[np.uint16], bits: Bits) -> NDArray[np.int64]:
        """The same, by 48 more bits for each."""
        words = bits.words(len(cells)) >> np.uint64(16) | cells.astype(np.uint64) << np.uint64(48)
        places = np.searchsorted(self._thresholds, words).astype(np.int64)
        last = len(self._thresholds) - 1
        tie = self._thresholds[np.minimum(places, last)] == words
        tie |= (places > 0) & (self._thresholds[np.maximum(places - 1, 0)] + np.uint64(1) == words)
        for i in np.flatnonzero(tie):
            places[i] = self._resolve(int(words[i]), bits)
        return places

    def _resolve(self, word: int, bits: Bits) -> int:
        """The outcome of a U that begins with 64 bits too close to a threshold to tell."""
        size = 64
        while True:
            word = word << 64 | int(bits.words(1)[0])
            size += 64
            with precision(size + _GUARD):
                low = arb(fmpz(word)) / arb(fmpz(1) << size)
                high = arb(fmpz(word + 1)) / arb(fmpz(1) << size)
                cumulative = self._cumulative()
                settled = next((k for k, at in enumerate(cumulative) if not low >= at), len(cumulative))
                last = settled == len(cumulative)
                if (last and self._weights.size) or (not last and high <= cumulative[settled]):
                    return settled

    def _certify(self) -> NDArray[np.uint64]:
        """floor(2^64 P[X <= k]), or one less: a tie with either neighbour goes to `_resolve`."""
        with precision(64 + _GUARD):
            brackets = [floor_scaled(at, 64) for at in self._cumulative()]
        if any(high - low > 1 for low, high in brackets):
            raise ArithmeticError("A certified threshold is wider than one word; raise the guard bits.")
        return np.array([min(low, (1 << 64) - 1) for low, _ in brackets], dtype=np.uint64)

    def _cumulative(self) -> list[arb]:
        """P[X <= k] as balls, as many as the precision can tell from 1.

        The last of a finite law is 1 and is left out. An endless law is cut where the rest weighs less
        than the precision, so that its last threshold is the last word there is.
        """
        count = self._weights.size or self._reach(ctx.prec - _GUARD + _TAIL)
        sums = list(accumulate(self._weights.first(count)))
        total = sums[-1] + up_to(self._weights.rest(count))
        return [part / total for part in (sums[:-1] if self._weights.size else sums)]

    def _reach(self, digits: int) -> int:
        """The least number of outcomes beyond which the weights add up to at most 2^-digits."""

        def light(count: int) -> bool:
            return bool(self._weights.rest(count) * (fmpz(1) << digits) <= 1)

        count = 64
        while not light(count):
            count *= 2
            if count > _MOST:
                raise ArithmeticError("The weights of a law do not fall as they should.")
        return bisect_left(range(count), 1, key=light, lo=count // 2 if count > 64 else 1)

    def _cells(self) -> NDArray[np.int32]:
        """The outcome each 16-bit cell settles, or -1 where a threshold lies in it or beside it."""
        shift, last = np.uint64(64 - CELL_BITS), np.uint64((1 << 64) - 2)
        after = np.minimum(self._thresholds, last) + np.uint64(1)  # a threshold may be one more than it says
        until = np.cumsum(np.bincount((self._thresholds >> shift).view(np.int64), minlength=_CELLS))
        before = np.cumsum(np.bincount((after >> shift).view(np.int64), minlength=_CELLS))
        before = np.concatenate([[0], before[:-1]])
        return np.where(before == until, before, -1).astype(np.int32)


def floors(weights: WeightTerms, bits: int) -> list[int]:
    """floor(2^bits P[X <= k]) for every outcome but the last.

    Sums of exponentials of rationals that are not all equal have no rational ratio with a part of themselves
    here, so that some precision tells; equal ones are fractions and need no ball.
    """
    if len(set(weights.exponents)) == 1:
        sums = list(accumulate(Fraction(factor) for factor in weights.factors))
        return [int(part * (1 << bits) / sums[-1]) for part in sums[:-1]]
    guard = _GUARD
    while True:
        with precision(bits + guard):
            balls = list(accumulate(weights.first(weights.size)))
            brackets = [floor_scaled(part / balls[-1], bits) for part in balls[:-1]]
        if all(low == high for low, high in brackets):
            return [low for low, _ in brackets]
        guard *= 2


@lru_cache(maxsize=512)
def table(weights: Weights) -> CdfTable:
    """The table of a law, built on first use."""
    return CdfTable(weights)
