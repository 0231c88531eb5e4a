"""Samplers whose law is exactly the one they state, by arrays.

None of them rounds a probability: floats only ever decide what they provably decide, and what they cannot
goes to big numbers. The time of a call does not depend on the values of the noise.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from sourdine.core.interval_arithmetic import ball, exponential, floor_scaled, precision
from sourdine.core.random.bits import Bits, Branch, in_branches, room
from sourdine.core.random.tables import (
    CELL_BITS,
    STEADY,
    CdfTable,
    GaussianBlocks,
    GaussianWeights,
    GeometricDigit,
    GeometricWeights,
    LaplaceWeights,
    WeightTerms,
    table,
)

# Noise of large scale, exactly: under a ceiling of equal blocks.
#
# The law is drawn from its ceiling, which is flat over blocks of a power of two: a block by a certified
# table, a place in it by fair bits. It is kept with the ratio of the law to the ceiling, which is hardly
# below 1. All of that fits in one word:
#
# 1 bit: the side | bits of the coin that keeps it | bits of the place | 16 bits: the cell of the table
#
# The coin is true where its uniform number lies below the ratio. Where the bits in the word say that it
# lies below the least ratio of all blocks that cells settle, no ratio is computed. All else is open: its
# block is searched, its ratio is computed, and its coin goes on by 64 more bits, and by as many as it
# takes. What is refused is drawn anew, and says nothing about what is kept.
#
# Open samples lie a little further out than the others. So a small call treats all its samples as open:
# otherwise the time of a single draw would tell of its size.

_MARGIN = 2.0**-40  # far above the error of a float64 exponential, see `bernoulli_exp`
_CHUNK = 1 << 17  # samples handled at once: with fewer, threads wait for each other longer than they work
_COIN = 10  # bits of the coin in the word, at least
_FREE = 63 - CELL_BITS  # bits of a word for the place and the coin
MOST_PLACES = _FREE - _COIN

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Whole = TypeVar("Whole", Ints, int)


@dataclass(frozen=True)
class GeometricCeiling:
    """e^{-k/scale}; on two sides the negative numbers begin at -1."""

    scale: Fraction
    places: int  # bits of a place in a block
    two_sided: bool

    @property
    def rate(self) -> Fraction:
        return 1 / self.scale

    @property
    def table(self) -> CdfTable:
        return table(GeometricWeights(self.scale / (1 << self.places)))

    def excess(self, start: Whole, within: Whole) -> Whole:
        """The exponent of a number in a block minus that of the ceiling, in units of the rate."""
        return within


@dataclass(frozen=True)
class GaussianCeiling:
    """e^{-k^2/(2 variance)}; the negative numbers begin at -1."""

    variance: Fraction
    places: int
    two_sided: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.variance >= 1 << 63:  # the excess stays below a third of it
            raise ArithmeticError("The exponents of so large a Gaussian do not fit in 64 bits.")

    @property
    def rate(self) -> Fraction:
        return 1 / (2 * self.variance)

    @property
    def table(self) -> CdfTable:
        return table(GaussianBlocks(self.variance, 1 << self.places))

    def excess(self, start: Whole, within: Whole) -> Whole:
        return within * (2 * start + within)


Ceiling = GeometricCeiling | GaussianCeiling


class CeilingSampler:
    """Draws of one law; made once by `sampler`."""

    def __init__(self, ceiling: Ceiling) -> None:
        if not 0 <= ceiling.places <= MOST_PLACES:
            raise ArithmeticError("A block of a law is too wide for one word; draw its digits apart.")
        self._ceiling = ceiling
        self._table = ceiling.table
        self._digits = _FREE - ceiling.places  # of the coin
        self._rate = float(ceiling.rate)
        self._place = np.int64((1 << ceiling.places) - 1)
        self._sure = np.uint64(self._least() << 64 - self._digits)

    def _least(self) -> int:
        """A coin whose bits are below this lies below every ratio of the blocks that cells settle."""
        last = int(self._table.guide.max()) << self._ceiling.places
        worst = self._ceiling.excess(np.array([last]), np.array([1 << self._ceiling.places]))
        with precision(128):
            return floor_scaled(exponential(-int(worst[0]) * self._ceiling.rate), self._digits)[0]

    def sample(self, count: int, bits: Bits) -> Ints:
        """`count` independent numbers, the same for the same bits with any number of threads."""
        out = np.empty(count, dtype=np.int64)
        if count <= STEADY:
            self._fill(out, np.arange(count), bits.words(count), bits)
        else:
            in_branches(lambda part, branch: self._block(out[part], branch), count, bits)
        return out

    def draw(self, bits: Bits) -> int:
        """One number, by the same words as `sample` takes for one."""
        while True:
            word = int(bits.words(1)[0])
            start = self._table.settle_one(word & (1 << CELL_BITS) - 1, bits) << self._ceiling.places
            within = word >> CELL_BITS & (1 << self._ceiling.places) - 1
            side = -(word >> 63) if self._ceiling.two_sided else 0
            coin = (word << 1 & (1 << 64) - 1) >> 64 - self._digits
            if self._keeps(self._ceiling.excess(start, within - side), coin, bits):
                return (start | within) ^ side

    def _keeps(self, units: int, coin: int, bits: Bits) -> bool:
        """What `bernoulli_exp` says of one number."""
        word = int(bits.words(1)[0])
        gap = (coin + (word >> 11) * 2.0**-53) * 2.0**-self._digits - math.exp(-(units * self._rate))
        if abs(gap) > _MARGIN:
            return gap < 0
        return exp_coin(coin << 64 | word, units * self._ceiling.rate, bits, 64 + self._digits)

    def _block(self, out: Ints, branch: Branch) -> None:
        """Fill in what one word settles, and then the rest together."""
        space = _Space(min(_CHUNK, len(out)))
        chunks = [self._quick(out, start, space, branch) for start in range(0, len(out), _CHUNK)]
        places, words = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
        self._fill(out, places, words, branch)

    def _fill(self, out: Ints, places: NDArray[np.intp], words: Words, bits: Bits) -> None:
        """Fill in open places, as often as some are refused."""
        while len(places):
            numbers, heads = self._settle(words, bits)
            out[places] = numbers
            places = places[~heads]
            words = bits.words(len(places))

    def _quick(
        self, whole: Ints, start: int, space: "_Space", branch: Branch
    ) -> tuple[NDArray[np.intp], Words]:
        """Fill in one chunk, and tell which places are open, with their words."""
        out = whole[start : start + _CHUNK]
        if len(out) < len(space.cells):
            space = _Space(len(out))
        words = branch.fill(space.words)
        signed = words.view(np.int64)
        np.copyto(space.cells, words, casting="unsafe")
        self._table.guide.take(space.cells, out=space.blocks, mode="wrap")
        np.left_shift(space.blocks, self._ceiling.places, out=out, dtype=np.int64)
        coin = np.left_shift(words, np.uint64(1), out=space.work)
        doubt = np.greater_equal(coin, self._sure, out=space.doubt)
        doubt |= np.less(space.blocks, 0, out=space.open)
        open_ = np.flatnonzero(doubt)
        within = np.right_shift(signed, CELL_BITS, out=space.work.view(np.int64))
        within &= self._place
        out |= within
        if self._ceiling.two_sided:
            out ^= np.right_shift(signed, 63, out=within)
        return start + open_, words[open_]

    def _settle(self, words: Words, bits: Bits) -> tuple[Ints, NDArray[np.bool_]]:
        """The numbers of some words, and whether their coins keep them."""
        signed = words.view(np.int64)
        start = self._table.settle(words.astype(np.uint16), bits).astype(np.int64) << self._ceiling.places
        within = signed >> CELL_BITS & self._place
        side = signed >> 63 if self._ceiling.two_sided else np.zeros_like(signed)
        coin = words << np.uint64(1) >> np.uint64(64 - self._digits)
        excess = self._ceiling.excess(start, within - side)
        return (start | within) ^ side, bernoulli_exp(excess, self._ceiling.rate, bits, coin, self._digits)


class _Space:
    """Memory for one chunk, used again for all chunks of a block."""

    def __init__(self, count: int) -> None:
        self.words = room(count)
        self.work = np.empty(count, np.uint64)
        self.cells = np.empty(count, np.uint16)
        self.blocks = np.empty(count, np.int32)
        self.doubt, self.open = np.empty(count, np.bool_), np.empty(count, np.bool_)


@lru_cache(maxsize=512)
def sampler(ceiling: Ceiling) -> CeilingSampler:
    """The sampler of a law, made on first use."""
    return CeilingSampler(ceiling)


def bernoulli_exp(
    units: Ints, rate: Fraction, bits: Bits, first: NDArray[np.uint64] | None = None, digits: int = 0
) -> NDArray[np.bool_]:
    """True with probability e^{-units * rate}, each element on its own; units are not negative.

    The uniform number of a coin may begin with binary digits that were drawn before. A float64 decides when
    it is sure. With x = units * rate, three roundings (units, rate and their product) perturb x by less than
    2^-51 x, hence e^-x by less than 2^-51 x e^-x < 2^-52; the library's exponential and the 53-bit uniform
    add less than 2^-48. The margin is 2^-40, and what falls inside it is settled by balls.
    """
    words = bits.words(len(units))
    uniform = (words >> np.uint64(11)) * 2.0**-53
    if first is not None:
        uniform = (first + uniform) * 2.0**-digits
    gap = uniform - np.exp(-(units * float(rate)))
    out: NDArray[np.bool_] = gap < 0
    for i in np.flatnonzero(np.abs(gap) <= _MARGIN):
        begin = 0 if first is None else int(first[i])
        out[i] = exp_coin(begin << 64 | int(words[i]), int(units[i]) * rate, bits, 64 + digits)
    return out


def exp_coin(word: int, x: Fraction, bits: Bits, size: int = 64) -> bool:
    """Whether the U that begins with these `size` bits is below e^-x."""
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


# Gaussian noise rounded to whole numbers, exactly in law, by arrays.
#
# A pair of normal numbers is r cos(2 pi V) and r sin(2 pi V) with r^2 = -2 log U, for U and V uniform with
# endless binary digits (Box and Muller 1958). The first 64 bits of each fix both but for less than floats
# can tell; whole numbers follow wherever what is unknown, rounding of floats and all, does not reach from
# one to the next. The others get more digits, in balls, until they do. So no probability is rounded
# anywhere.


_NORMAL_CHUNK = 1 << 15  # pairs at a time, so that the arrays stay in the cache
_NEAREST = 1 << 44
_EDGE = np.uint64(_NEAREST)  # a U so near to 0 or to 1 is left to balls: its logarithm has too few digits
_NORMAL_MARGIN = 2.0**-36  # of a deviation, see rounded_normal
_TURN = 2 * np.pi * 2.0**-64


def rounded_normal(sigma: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """The nearest whole number to sigma Z, for independent standard normal Z; sigma is at most 2^30.

    A float64 decides when it is sure. Between 2^-20 and 1 - 2^-20, U is known within 2^-44 of itself by its
    first 64 bits, and within 2^-52 above 1/2. So r^2 is known within 2^-42, and r within 2^-41, since it is
    at least 1 below 1/2 and at least 2^-10 above. The turn is known within 2^-48 and r is at most 5.3, so
    both products are within 2^-40 of a deviation, for logarithms, sines and cosines that err by up to 4 units
    in the last place. The margin is sixteen times that. For a sigma of 2^20 three numbers in a hundred
    thousand are settled by balls.

    >>> from sourdine.testing import SeededBits
    >>> rounded_normal(Fraction(1000), 4, SeededBits(3)).tolist()
    [938, -752, 209, 362]
    """
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, 2 * _NORMAL_CHUNK):
        _fill(out[start : start + 2 * _NORMAL_CHUNK], sigma, bits)
    return out


@dataclass(frozen=True)
class RoundedNormal:
    """Draws of `rounded_normal`."""

    sigma: Fraction

    @cached_property
    def _float(self) -> float:
        return float(self.sigma)

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """So many draws."""
        return rounded_normal(self.sigma, count, bits)

    def draw(self, bits: Bits) -> int:
        """One draw, by the words that `sample` takes for one."""
        length, turn = map(int, bits.words(2))
        if _NEAREST < length < (1 << 64) - _NEAREST:
            real = math.cos(turn * _TURN) * math.sqrt(-2.0 * math.log(length * 2.0**-64)) * self._float
            whole = round(real)
            if abs(real - whole) < 0.5 - min(_NORMAL_MARGIN * self._float, 0.5):
                return whole
        return _settled(length, turn, self.sigma, bits)[0]


def _fill(out: NDArray[np.int64], sigma: Fraction, bits: Bits) -> None:
    """First all cosines, then their sines; the last sine is left out if the count is odd."""
    half = (len(out) + 1) // 2
    words = bits.words(2 * half)
    lengths, turns = words[:half], words[half:]
    near = (lengths < _EDGE) | (lengths > ~_EDGE)
    radius = np.log(np.maximum(lengths, np.uint64(1)) * 2.0**-64)
    np.sqrt(np.multiply(radius, -2.0, out=radius), out=radius)
    radius *= float(sigma)
    turn = turns * _TURN
    margin = 0.5 - min(_NORMAL_MARGIN * float(sigma), 0.5)
    for part, wave in ((out[:half], np.cos), (out[half:], np.sin)):
        size = len(part)
        real = wave(turn[:size]) * radius[:size]
        whole = np.rint(real)
        part[:] = whole
        unsure = np.abs(real - whole) >= margin
        unsure |= near[:size]
        near[:size] |= unsure
    for place in np.flatnonzero(near):
        cosine, sine = _settled(int(lengths[place]), int(turns[place]), sigma, bits)
        out[place] = cosine
        if half + place < len(out):
            out[half + place] = sine


def _settled(length: int, turn: int, sigma: Fraction, bits: Bits) -> tuple[int, int]:
    """The whole numbers of a pair whose U and V begin with these words."""
    size = 64
    while True:
        with precision(size + 128):
            scale = fmpz(1) << size
            u = arb(fmpz(2 * length + 1), 1) / (2 * scale)
            v = arb(fmpz(2 * turn + 1), 1) / (2 * scale)
            if length:
                radius = ball(sigma) * (-2 * u.log()).sqrt()
                whole = [
                    ((2 * v).cos_pi() * radius + arb(0.5)).floor().unique_fmpz(),
                    ((2 * v).sin_pi() * radius + arb(0.5)).floor().unique_fmpz(),
                ]
                if whole[0] is not None and whole[1] is not None:
                    return int(whole[0]), int(whole[1])
        more = bits.words(2)
        length, turn = length << 64 | int(more[0]), turn << 64 | int(more[1])
        size += 64
