"""Gaussian noise rounded to whole numbers, exactly in law, by arrays.

A pair of normal numbers is r cos(2 pi V) and r sin(2 pi V) with r^2 = -2 log U, for U and V uniform with
endless binary digits (Box and Muller 1958). The first 64 bits of each fix both but for less than floats can
tell; whole numbers follow wherever what is unknown, rounding of floats and all, does not reach from one to
the next. The others get more digits, in balls, until they do. So no probability is rounded anywhere.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from sourdine.core.balls import ball, precision
from sourdine.core.randomness.bits import Bits

_CHUNK = 1 << 15  # pairs at a time, so that the arrays stay in the cache
_NEAREST = 1 << 44
_EDGE = np.uint64(_NEAREST)  # a U so near to 0 or to 1 is left to balls: its logarithm has too few digits
_MARGIN = 2.0**-36  # of a deviation, see rounded_normal
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
    for start in range(0, count, 2 * _CHUNK):
        _fill(out[start : start + 2 * _CHUNK], sigma, bits)
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
            if abs(real - whole) < 0.5 - min(_MARGIN * self._float, 0.5):
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
    margin = 0.5 - min(_MARGIN * float(sigma), 0.5)
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
