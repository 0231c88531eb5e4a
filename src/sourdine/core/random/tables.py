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
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from flint import arb, ctx, fmpz
from numpy.typing import NDArray

from sourdine.core.interval_arithmetic import ball, exponential, floor_scaled, precision, up_to
from sourdine.core.random.bits import Bits, sixteens


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


# Exact sampling of a place near a given one, inside a range, by inverse distribution function.
#
# From place x the answer y in 0 .. last has probability w(|y - x|)/Z(x), with the weights of a `Decay`. Let
# U be uniform on [0, 1) with endless binary digits: y is the number of outcomes whose cumulative
# probability is at most U. Its first 64 bits give a guess of y in floats, and the distribution function on
# both sides of the guess proves it. What is not proven, `last` times in 2^41 or so, goes to balls. Nothing
# is ever rejected: the words used do not tell how near to an end x lies, and time only by that rare path,
# which a dense law near an end takes a little less often.
#
# A `Decay` has weights that never rise with the distance: so a mechanism on a bounded range favours what is
# near. It states the sums of its first weights twice: as floats, for arrays, with a stated error; and as
# balls at any precision, for the few cases that floats cannot settle.


Floats = NDArray[np.float64]


class Decay(ABC):
    """Weights w(0) >= w(1) >= ... > 0 of the distances 0, 1, ..., up to one common factor; frozen."""

    @abstractmethod
    def mass(self, count: NDArray[np.int64]) -> Floats:
        """w(0) + ... + w(count - 1), with a relative error below 2^-46; the empty sum is 0."""

    @abstractmethod
    def guess(self, mass: Floats) -> Floats:
        """About how many of the first weights make this mass; finite whatever comes in."""

    @abstractmethod
    def certified(self, count: int) -> arb:
        """The same sum as `mass`, as a ball at the ambient precision."""


@dataclass(frozen=True)
class GeometricDecay(Decay):
    """w(m) = e^{-m/scale}; masses carry the factor 1 - e^{-1/scale}.

    Two roundings perturb the argument t of the exponential by less than 2^-52 t, hence 1 - e^-t by a
    relative 2^-52 at most; the library's expm1 is good to a few units in the last place.
    """

    scale: Fraction

    def mass(self, count: NDArray[np.int64]) -> Floats:
        mass: Floats = -np.expm1(-(count * float(1 / self.scale)))
        return mass

    def guess(self, mass: Floats) -> Floats:
        return -np.log1p(-np.minimum(mass, 1 - 2.0**-53)) * float(self.scale)

    def certified(self, count: int) -> arb:
        return -ball(-count / self.scale).expm1()


@dataclass(frozen=True)
class StepDecay(Decay):
    """A staircase: the first `inner` distances weigh 1, the next `period` e^{-drop}, then e^{-2 drop}, ...

    All terms of a mass are positive. The exponent of a step is off by less than a relative 2^-52, and its
    weight by that times the exponent, of which period * e^{-exponent} reaches the mass: for periods up to
    2^28 and inner >= 1 that is below 21 * 2^-52, and below 2^-47 with the errors of the library.
    """

    drop: Fraction
    period: int
    inner: int

    def mass(self, count: NDArray[np.int64]) -> Floats:
        drop = float(self.drop)
        full, part = np.divmod(np.maximum(count - self.inner, 0), self.period)
        steps = self.period * np.exp(-drop) / np.expm1(-drop) * np.expm1(-drop * full)
        mass: Floats = np.minimum(count, self.inner) + steps + part * np.exp(-drop * (full + 1))
        return mass

    def guess(self, mass: Floats) -> Floats:
        drop = float(self.drop)
        beyond = np.maximum(mass - self.inner, 0.0)
        share = np.minimum(beyond * np.expm1(drop) / self.period, 1 - 2.0**-53)
        full = np.floor(-np.log1p(-share) / drop)
        steps = self.period * np.expm1(-drop * full) / -np.expm1(drop)
        part = np.clip((beyond - steps) * np.exp(drop * (full + 1)), 0.0, self.period)
        count: Floats = np.minimum(mass, self.inner) + self.period * full + part
        return count

    def certified(self, count: int) -> arb:
        full, part = divmod(max(count - self.inner, 0), self.period)
        first, last = exponential(-self.drop), exponential(-self.drop * full)
        return min(count, self.inner) + self.period * first * (1 - last) / (1 - first) + part * first * last


_INVERSE_CHUNK = 1 << 14  # places handled at once, so that the arrays stay in the cache
_FEW = 1 << 12  # places whose masses stay in the first cache, where all are found equally soon
_MARGIN = 2.0**-42  # of the total mass; see Truncated
_SLACK = 2.0**-40  # of a probability, in the forecast of the error


@dataclass(frozen=True)
class Truncated:
    """A decay around each place, renormalised on 0 .. last.

    A mass of the decay has a relative error below 2^-46. The total Z, the level U Z and an edge of the
    distribution function are sums of at most three masses, none of them above Z: the level and the edge are
    each off by less than (3 * 2^-46 + 2^-50) Z, with the 53-bit U and the roundings of the sums. Together
    that is below 2^-43 Z, half the margin.
    """

    decay: Decay
    last: int

    def sample(self, places: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
        """One answer for each place of a flat array; places lie in 0 .. last."""
        out = np.empty(len(places), dtype=np.int64)
        mass = self._masses(len(places))
        for start in range(0, len(places), _INVERSE_CHUNK):
            part = slice(start, start + _INVERSE_CHUNK)
            out[part] = self._draw(places[part], mass, bits)
        return out

    def _masses(self, count: int) -> Callable[[NDArray[np.int64]], Floats]:
        """The decay's masses: where values outnumber a few places, the same floats off a table."""
        if self.last > min(count, _FEW):
            return self.decay.mass
        return self.decay.mass(np.arange(self.last + 2)).take

    def _draw(
        self, x: NDArray[np.int64], mass: Callable[[NDArray[np.int64]], Floats], bits: Bits
    ) -> NDArray[np.int64]:
        words = bits.words(len(x))
        left = mass(x + 1)  # of x and what lies below it
        total = left + (mass(self.last - x + 1) - self._top)
        level = (words >> np.uint64(11)) * 2.0**-53 * total
        down = level < left
        guess = self.decay.guess(np.where(down, left - level, level - left + self._top))
        reach = np.where(down, x, self.last - x)
        m = np.minimum(np.maximum(guess, 0.0), reach).astype(np.int64)
        near, far = mass(m), mass(m + 1)
        below = left + np.where(down, -far, near - self._top)
        until = left + np.where(down, -near, far - self._top)
        margin = _MARGIN * total
        y = x + np.where(down, -m, m)
        for i in np.flatnonzero((level < below + margin) | (level > until - margin)):
            y[i] = self._settle(int(words[i]), int(x[i]), bits)
        return y

    def _settle(self, word: int, x: int, bits: Bits) -> int:
        """The answer of a U that begins with this word."""
        size = 64
        while True:
            with precision(size + _GUARD):
                total = self.certified_total(x)
                low, high = (arb(fmpz(word + end)) / arb(fmpz(1) << size) * total for end in (0, 1))
                y = bisect_left(range(self.last), 1, key=lambda k: not low >= self._until(x, k))
                if y == self.last or high <= self._until(x, y):
                    return y
            word = word << 64 | int(bits.words(1)[0])
            size += 64

    def _until(self, x: int, y: int) -> arb:
        """The mass of the answers 0 .. y."""
        left = self.decay.certified(x + 1)
        if y <= x:
            return left - self.decay.certified(x - y)
        return left + self.decay.certified(y - x + 1) - self.decay.certified(1)

    @property
    def _top(self) -> float:
        return float(self.decay.mass(np.asarray(1)))

    def total(self, x: NDArray[np.int64]) -> Floats:
        """Z(x), the mass of the whole range around x, with a relative error below 2^-44."""
        return self.decay.mass(x + 1) + (self.decay.mass(self.last - x + 1) - self._top)

    def certified_total(self, x: int) -> arb:
        """Z(x) as a ball at the ambient precision."""
        return self._until(x, self.last)

    def reach(self, confidence: float) -> int:
        """The least distance that the answer stays within, with this confidence, from every place.

        Let A(k) be the mass of the distances up to k. From a place x in the lower half, the mass beyond k is
        Z(x) + w(0) - 2 A(k) for k < x, a share of Z(x) that grows with Z and so is largest in the middle;
        for x <= k < last - x it is A(last - x) - A(k), which falls with x as Z(x) grows: largest at x = 0.
        So the end and the middle of the range are the worst places.
        """
        ends = np.array([0, self.last // 2])
        totals = self.total(ends)
        down, up = self.decay.mass(ends + 1), self.decay.mass(self.last - ends + 1)

        def covers(k: int) -> bool:
            within = self.decay.mass(np.asarray(k + 1))
            beyond = np.maximum(down - within, 0.0) + np.maximum(up - within, 0.0)
            return bool(np.all(beyond / totals + _SLACK <= 1 - confidence))

        return bisect_left(range(self.last), 1, key=covers)
