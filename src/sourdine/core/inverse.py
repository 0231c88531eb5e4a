"""Exact sampling of a place near a given one, inside a range, by inverse distribution function.

From place x the answer y in 0 .. last has probability w(|y - x|)/Z(x), with the weights of a `Decay`. Let U
be uniform on [0, 1) with endless binary digits: y is the number of outcomes whose cumulative probability is
at most U. Its first 64 bits give a guess of y in floats, and the distribution function on both sides of the
guess proves it. What is not proven, `last` times in 2^41 or so, goes to balls. Nothing is ever rejected: the
words used do not tell how near to an end x lies, and time only by that rare path, which a dense law near an
end takes a little less often.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.core.certified import precision
from sourdine.core.decay import Decay, Floats

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
