"""Samplers whose law is exactly the one they state, by arrays.

None of them rounds a probability: floats only ever decide what they provably decide, and what they cannot
goes to big numbers. The time of a call does not depend on the values of the noise.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sourdine.core.randomness.bits import Bits
from sourdine.core.randomness.ceiling import MOST_PLACES, GaussianCeiling, GeometricCeiling, sampler
from sourdine.core.randomness.table import (
    CdfTable,
    GaussianWeights,
    GeometricDigit,
    GeometricWeights,
    LaplaceWeights,
    WeightTerms,
    table,
)

_LARGE = 1 << MOST_PLACES + 6  # up to this scale a block fits in one word
_SMALL = 32  # up to this scale one table holds the whole law
_BASE = 256  # digits of a larger geometric variable


def bernoulli(p: Fraction, count: int, bits: Bits) -> NDArray[np.bool_]:
    """True with probability p, a rational."""
    return table(WeightTerms((1 - p, p), (0, 0))).coins(count, bits)


def bernoulli_odds(log_odds: Fraction, factor: Fraction, count: int, bits: Bits) -> NDArray[np.bool_]:
    """True with odds factor * e^{log_odds}."""
    return table(WeightTerms((1, factor), (0, log_odds))).coins(count, bits)


def uniform(size: int, count: int, bits: Bits) -> NDArray[np.int64]:
    """Whole numbers 0 .. size - 1, all equally likely, without modulo bias."""
    return narrow_uniform(size, count, bits).astype(np.int64)


def narrow_uniform(size: int, count: int, bits: Bits) -> NDArray[Any]:
    """The same in the shortest unsigned words of 16, 32 or 64 bits that hold them, and size itself.

    Short words are cut to the length of size - 1 and those too large are drawn again. How often that happens
    says nothing about the numbers that come out.
    """
    length = (size - 1).bit_length()
    if length == 0:
        return np.zeros(count, dtype=np.uint16)
    kind = np.uint16 if size < 1 << 16 else np.uint32 if size < 1 << 32 else np.uint64
    out = _words(kind, length, count, bits)
    if size & (size - 1):
        again = np.flatnonzero(out >= size)
        while len(again):
            out[again] = _words(kind, length, len(again), bits)
            again = again[out[again] >= size]
    return out


def _words(kind: type[np.unsignedinteger[Any]], length: int, count: int, bits: Bits) -> NDArray[Any]:
    """Words of a kind, of which the first `length` bits are kept."""
    width = np.dtype(kind).itemsize
    words = bits.words(-(-count * width // 8)).view(kind)[:count]
    top: NDArray[Any] = words >> kind(8 * width - length)
    return top


class Noise(Protocol):
    """A sampler of noise in whole steps: many draws, or one by the words that many of one would take."""

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """Return so many independent draws."""

    def draw(self, bits: Bits) -> int:
        """Return one draw."""


@dataclass(frozen=True)
class _GeometricDigits:
    """A geometric variable of a large scale, digit by digit in base 256.

    The digits are independent, whatever the base: e^{-(l + B h)/s} is a product.
    """

    scale: Fraction

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        low = table(GeometricDigit(self.scale, _BASE)).sample(count, bits)
        low += _BASE * geometric(self.scale / _BASE, count, bits)
        return low

    def draw(self, bits: Bits) -> int:
        low = table(GeometricDigit(self.scale, _BASE)).draw(bits)
        return low + _BASE * geometric_noise(self.scale / _BASE).draw(bits)


def one_uniform(size: int, bits: Bits) -> int:
    """One whole number 0 .. size - 1, by the words that `uniform` takes for one."""
    length = (size - 1).bit_length()
    if length == 0:
        return 0
    width = 16 if size < 1 << 16 else 32 if size < 1 << 32 else 64
    while True:
        number = (int(bits.words(1)[0]) & (1 << width) - 1) >> width - length
        if number < size:
            return number


def geometric_noise(scale: Fraction) -> Noise:
    """k = 0, 1, 2, ... with probability proportional to e^{-k/scale}.

    A large scale is drawn under a ceiling of blocks, and one that is too large for one word by its digits.
    """
    if scale <= _SMALL:
        return table(GeometricWeights(scale))
    if scale <= _LARGE:
        return sampler(GeometricCeiling(scale, _places(scale), two_sided=False))
    return _GeometricDigits(scale)


def geometric(scale: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many draws of a geometric variable."""
    return geometric_noise(scale).sample(count, bits)


@dataclass(frozen=True)
class _Zigzag:
    """Noise of both signs from a table of 0, -1, 1, -2, 2, ..."""

    table: CdfTable

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        codes = self.table.sample(count, bits)
        return (codes >> 1) ^ -(codes & 1)

    def draw(self, bits: Bits) -> int:
        code = self.table.draw(bits)
        return (code >> 1) ^ -(code & 1)


@dataclass(frozen=True)
class _GeometricDifference:
    """The difference of two independent geometric variables."""

    scale: Fraction

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        out = geometric(self.scale, count, bits)
        out -= geometric(self.scale, count, bits)
        return out

    def draw(self, bits: Bits) -> int:
        noise = geometric_noise(self.scale)
        return noise.draw(bits) - noise.draw(bits)


def laplace_noise(scale: Fraction) -> Noise:
    """Discrete Laplace: any integer k with probability proportional to e^{-|k|/scale}.

    A large scale is drawn under a ceiling of blocks on both sides. One too large for that is the difference
    of two independent geometric variables, which has this law.
    """
    if scale <= _SMALL:
        return _Zigzag(table(LaplaceWeights(scale)))
    if scale <= _LARGE:
        return sampler(GeometricCeiling(scale, _places(scale), two_sided=True))
    return _GeometricDifference(scale)


def laplace(scale: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many draws of discrete Laplace noise."""
    return laplace_noise(scale).sample(count, bits)


def gaussian_noise(variance: Fraction) -> Noise:
    """Discrete Gaussian: any integer k with probability proportional to e^{-k^2/(2 variance)}.

    A large sigma is drawn under a ceiling of blocks, between sigma/181 and sigma/90 wide.
    """
    places = max(0, int(variance).bit_length() // 2 - 7)
    if places == 0:
        return _Zigzag(table(GaussianWeights(variance)))
    return sampler(GaussianCeiling(variance, places))


def gaussian(variance: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many draws of discrete Gaussian noise."""
    return gaussian_noise(variance).sample(count, bits)


def _places(scale: Fraction) -> int:
    """Bits of a place in a block between scale/128 and scale/64 wide, or of width 1."""
    return max(0, int(scale).bit_length() - 7)
