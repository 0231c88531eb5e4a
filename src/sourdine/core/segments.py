"""Choosing a whole number by weights e^{-gap * rate} that are constant along segments.

Floats decide which segment when they provably can; the rest goes to balls of any precision, so the law is
exactly the one stated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from flint import arb, fmpz
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.core.certified import exponential, precision

_GUARD = 128  # bits of precision beyond those drawn
_FAR = 700.0  # an exponent beyond which a float has no weight left; see `weights`


@dataclass(frozen=True)
class Segments:
    """Runs of whole numbers: where each begins, how many it holds, and the gap of all of them."""

    first: NDArray[np.int64]
    size: NDArray[np.int64]
    gap: NDArray[np.int64]

    @classmethod
    def of(cls, first: Sequence[int], last: Sequence[int], gap: Sequence[int]) -> "Segments":
        """The segments from their ends, without those that hold nothing."""
        begin, end = np.asarray(first, np.int64), np.asarray(last, np.int64)
        held = end >= begin
        return cls(begin[held], (end - begin + 1)[held], np.asarray(gap, np.int64)[held])


def choose_segments(segments: Segments, rate: Fraction, count: int, bits: Bits) -> NDArray[np.int64]:
    """The places of segments, i with probability proportional to size_i e^{-gap_i * rate}.

    As in `select.choose`, in units of 2^-53 of the total T >= 1: an exponent x is off by at most 3 x, its
    weight by 3 x + 5 times itself. Sizes add up to at most 2^62, so what has x >= 48 weighs at most e^-5, and
    is off by less than T; the rest by at most 149 T. Adding m weights adds 1.01 m T. So a sum is off by less
    than (150 + 1.01 m) T, the total as well, and cutting U to 53 bits by 3 T: the margin of (8 m + 512) T is
    wider than all together. Exponents are cut at 700, which moves no sum by as much as a unit.
    """
    sizes = segments.size.astype(np.float64)
    gaps = (segments.gap - segments.gap.min()) * float(rate)
    sums = np.cumsum(sizes * np.exp(-np.minimum(gaps, _FAR)))
    margin = (8 * sums.size + 512) * 2.0**-53 * sums[-1]
    words = bits.words(count)
    points = (words >> np.uint64(11)) * 2.0**-53 * sums[-1]
    found = np.searchsorted(sums[:-1], points, side="right")
    below = np.where(found > 0, sums[np.maximum(found - 1, 0)], -np.inf)
    above = np.where(found < sums.size - 1, sums[np.minimum(found, sums.size - 1)], np.inf)
    for i in np.flatnonzero(np.minimum(points - below, above - points) <= margin):
        found[i] = _settle(int(words[i]), segments, rate, bits)
    answer: NDArray[np.int64] = found.astype(np.int64)
    return answer


def _settle(word: int, segments: Segments, rate: Fraction, bits: Bits) -> int:
    """The choice of a U that begins with this word."""
    size = 64
    while True:
        with precision(size + _GUARD + len(segments.gap).bit_length()):
            *sums, total = _sums(segments, rate)
            low, high = (arb(fmpz(word + end)) / arb(fmpz(1) << size) * total for end in (0, 1))
            choice = next((k for k, at in enumerate(sums) if not low >= at), len(sums))
            if choice == len(sums) or high <= sums[choice]:
                return choice
        word = word << 64 | int(bits.words(1)[0])
        size += 64


def _sums(segments: Segments, rate: Fraction) -> list[arb]:
    gaps, sizes = segments.gap.tolist(), segments.size.tolist()
    weight = {gap: exponential((min(gaps) - gap) * rate) for gap in set(gaps)}
    return list(accumulate(weight[gap] * size for gap, size in zip(gaps, sizes, strict=True)))


def places_in(segments: Segments, chosen: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """A uniform whole number in each chosen segment.

    Words are cut to the length of the size, and those too large drawn again. How often that happens says
    nothing about the number that comes out.
    """
    sizes = segments.size[chosen]
    spare = (64 - _bit_lengths(sizes - 1)).astype(np.uint64)
    out = np.zeros(len(chosen), np.int64)
    todo = np.flatnonzero(sizes > 1)
    while len(todo):
        drawn = bits.words(len(todo)) >> spare[todo]
        fits = drawn < sizes[todo].astype(np.uint64)
        out[todo[fits]] = drawn[fits].astype(np.int64)
        todo = todo[~fits]
    return segments.first[chosen] + out


def _bit_lengths(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many bits each number has, or one more beyond 2^53 where a float rounds it up."""
    return np.where(numbers > 0, np.frexp(numbers.astype(np.float64))[1], 0).astype(np.int64)
