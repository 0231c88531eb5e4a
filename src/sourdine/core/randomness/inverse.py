"""Exact sampling of a place near a given one, inside a range, by inverse distribution function.

From place x the answer y in 0 .. last has probability w(|y - x|)/Z(x), with the weights of a `Decay`. Let U
be uniform on [0, 1) with endless binary digits: y is the number of outcomes whose cumulative probability is
at most U. Its first 64 bits give a guess of y in floats, and the distribution function on both sides of the
guess proves it. What is not proven, `last` times in 2^41 or so, goes to balls. Nothing is ever rejected: the
words used do not tell how near to an end x lies, and time only by that rare path, which a dense law near an
end takes a little less often.

A `Decay` has weights that never rise with the distance: so a mechanism on a bounded range favours what is
near. It states the sums of its first weights twice: as floats, for arrays, with a stated error; and as balls
at any precision, for the few cases that floats cannot settle.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from sourdine.core.balls import ball, exponential, precision
from sourdine.core.randomness.bits import Bits

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


_CHUNK = 1 << 14  # places handled at once, so that the arrays stay in the cache
_FEW = 1 << 12  # places whose masses stay in the first cache, where all are found equally soon
_GUARD = 128  # bits of precision beyond those drawn
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
        for start in range(0, len(places), _CHUNK):
            part = slice(start, start + _CHUNK)
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
