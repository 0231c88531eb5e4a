"""Noise of large scale, exactly: under a ceiling of equal blocks.

The law is drawn from its ceiling, which is flat over blocks of a power of two: a block by a certified table,
a place in it by fair bits. It is kept with the ratio of the law to the ceiling, which is hardly below 1. All
of that fits in one word:

    1 bit: the side | bits of the coin that keeps it | bits of the place | 16 bits: the cell of the table

The coin is true where its uniform number lies below the ratio. Where the bits in the word say that it lies
below the least ratio of all blocks that cells settle, no ratio is computed. All else is open: its block is
searched, its ratio is computed, and its coin goes on by 64 more bits, and by as many as it takes. What is
refused is drawn anew, and says nothing about what is kept.

Open samples lie a little further out than the others. So a small call treats all its samples as open:
otherwise the time of a single draw would tell of its size.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeVar

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from sourdine.core.balls import exponential, floor_scaled, precision
from sourdine.core.randomness.bits import Bits
from sourdine.core.randomness.branches import Branch, in_branches, room
from sourdine.core.randomness.table import (
    CELL_BITS,
    STEADY,
    CdfTable,
    GaussianBlocks,
    GeometricWeights,
    table,
)

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
