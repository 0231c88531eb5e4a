"""Samplers whose law is exactly the one they state, by arrays.

None of them rounds a probability: floats only ever decide what they provably decide, and what they cannot
goes to big numbers. The time of a call does not depend on the values of the noise.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from sourdine.core.balls import exponential, precision
from sourdine.core.randomness.bits import Bits, coins
from sourdine.core.randomness.table import (
    GaussianBlocks,
    GaussianWeights,
    GeometricDigit,
    GeometricWeights,
    LaplaceWeights,
    WeightTerms,
    table,
)

_SMALL = 32  # up to this scale one table holds the whole law
_BASE = 256  # digits of a larger geometric variable
_MARGIN = 2.0**-40  # far above the error of a float64 exponential, see bernoulli_exp


def bernoulli(p: Fraction, count: int, bits: Bits) -> NDArray[np.bool_]:
    """True with probability p, a rational."""
    return table(WeightTerms((1 - p, p), (0, 0))).coins(count, bits)


def bernoulli_odds(log_odds: Fraction, factor: Fraction, count: int, bits: Bits) -> NDArray[np.bool_]:
    """True with odds factor * e^{log_odds}."""
    return table(WeightTerms((1, factor), (0, log_odds))).coins(count, bits)


def bernoulli_exp(units: NDArray[np.int64], rate: Fraction, bits: Bits) -> NDArray[np.bool_]:
    """True with probability e^{-units * rate}, each element on its own; units are not negative.

    A float64 decides when it is sure. With x = units * rate, three roundings (units, rate and their
    product) perturb x by less than 2^-51 x, hence e^-x by less than 2^-51 x e^-x < 2^-52; the library's
    exponential and the 53-bit uniform add less than 2^-48. The margin is 2^-40, and what falls inside it
    is settled by balls.
    """
    words = bits.words(len(units))
    gap = (words >> np.uint64(11)) * 2.0**-53 - np.exp(-(units * float(rate)))
    out: NDArray[np.bool_] = gap < 0
    for i in np.flatnonzero(np.abs(gap) <= _MARGIN):
        out[i] = exp_coin(int(words[i]), int(units[i]) * rate, bits)
    return out


def exp_coin(word: int, x: Fraction, bits: Bits) -> bool:
    """Whether the U that begins with this word is below e^-x."""
    size = 64
    while True:
        with precision(2 * size + 64):
            p = exponential(-x)
            scale = arb(fmpz(1) << size)
            if arb(fmpz(word + 1)) / scale <= p:
                return True
            if arb(fmpz(word)) / scale >= p:
                return False
        word = word << 64 | int(bits.words(1)[0])
        size += 64


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


def geometric(scale: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """k = 0, 1, 2, ... with probability proportional to e^{-k/scale}.

    The digits of such a variable are independent, whatever the base: e^{-(l + B h)/s} is a product. So a
    large scale is drawn digit by digit, in base 256.
    """
    if scale <= _SMALL:
        return table(GeometricWeights(scale)).sample(count, bits)
    low = table(GeometricDigit(scale, _BASE)).sample(count, bits)
    low += _BASE * geometric(scale / _BASE, count, bits)
    return low


def laplace(scale: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """Discrete Laplace: any integer k with probability proportional to e^{-|k|/scale}.

    A large scale is the difference of two independent geometric variables, which has this law.
    """
    if scale <= _SMALL:
        return _unzigzag(table(LaplaceWeights(scale)).sample(count, bits))
    out = geometric(scale, count, bits)
    out -= geometric(scale, count, bits)
    return out


def gaussian(variance: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """Discrete Gaussian: any integer k with probability proportional to e^{-k^2/(2 variance)}.

    A large sigma is drawn under the ceiling of blocks of equal width: a block, a place in it, and a coin
    that keeps it with the ratio of the weight to the ceiling (above 0.99). Negative numbers begin at -1,
    so that 0 is not counted twice. A try that is refused says nothing about the one that is kept.
    """
    width = _block_width(variance)
    if width == 1:
        return _unzigzag(table(GaussianWeights(variance)).sample(count, bits))
    out = np.empty(count, dtype=np.int64)
    todo = np.arange(count)
    while len(todo):
        start = table(GaussianBlocks(variance, width)).sample(len(todo), bits) * width
        negative = coins(bits, len(todo))
        within = uniform(width, len(todo), bits) + negative
        heads = bernoulli_exp(within * (2 * start + within), 1 / (2 * variance), bits)
        size = (start + within)[heads]
        out[todo[heads]] = np.where(negative[heads], -size, size)
        todo = todo[~heads]
    return out


def _block_width(variance: Fraction) -> int:
    """A power of two between sigma/181 and sigma/90; 1 below sigma 181, where one table will do."""
    return 1 << max(0, int(variance).bit_length() // 2 - 7)


def _unzigzag(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2, 3, 4, ... to 0, -1, 1, -2, 2, ..."""
    return (codes >> 1) ^ -(codes & 1)
