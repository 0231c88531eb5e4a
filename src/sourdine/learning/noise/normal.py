"""Gaussian noise for gradients: float32, from the words of a `Bits`.

Unlike the noise of published numbers it is not exact: it is a rounded Gaussian that ends at 7.4 standard
deviations, added to a sum that float32 has rounded before (docs/guarantees/learning_methods.md says what that
leaves open). Its words come from where all randomness comes from, and a training run never repeats them.

numpy makes it, by several threads: its logarithms, sines and roots took a third of the time of torch's.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sourdine.core.random.bits import SYSTEM, Bits, Branch, in_branches, room

_RADIUS, _ANGLE = 40, 24  # bits of a word for the length of a pair of normal numbers, and for its direction
_FRACTION = 52  # bits of a float64 below its exponent
_LENGTH_BITS = np.uint64(((1 << _RADIUS) - 1) << (_FRACTION - _RADIUS))
_ONE_BITS = np.uint64(1023 << _FRACTION)  # of 1.0
_TURN_BITS = np.uint64((1 << _ANGLE) - 1)
_TURN = np.float32(2 * math.pi * 2.0**-_ANGLE)
_CHUNK = 1 << 17  # pairs at a time: with fewer, threads wait for each other more than caches save
_FEW = 1 << 16  # numbers for which words are taken as they come

Floats = NDArray[np.float32]
Taker = Callable[[int, Floats], object]


def gaussian(shape: torch.Size, bits: Bits = SYSTEM) -> Tensor:
    """Independent standard normal numbers, by the polar form of pairs (Box and Muller 1958)."""
    out = np.empty(math.prod(shape), dtype=np.float32)

    def keep(start: int, noise: Floats) -> None:
        out[start : start + len(noise)] = noise

    _draw(len(out), bits, keep)
    return torch.from_numpy(out).view(shape)


def make_noisy_means(totals: Sequence[Tensor], deviation: float, count: int, bits: Bits = SYSTEM) -> None:
    """Add to sums of float32, in place, what `gaussian` draws for all, times a deviation; divide by a count.

    All of it happens while numbers are in the cache, by several threads if there are many.
    """
    rows: list[Floats] = [total.view(-1).numpy() for total in totals]
    ends = list(accumulate(len(row) for row in rows))
    scale, size = np.float32(deviation), np.float32(count)

    def add(start: int, noise: Floats) -> None:
        noise *= scale
        stop = start + len(noise)
        for place in range(bisect_right(ends, start), len(rows)):
            first = ends[place] - len(rows[place])
            if first >= stop:
                break
            low, high = max(start, first), min(stop, ends[place])
            part = rows[place][low - first : high - first]
            part += noise[low - start : high - start]
            part /= size

    _draw(ends[-1] if ends else 0, bits, add)


def _draw(count: int, bits: Bits, take: Taker) -> None:
    """Hand out so many normal numbers chunk by chunk, each with its place; by threads if there are many."""

    def block(part: slice, source: Bits | Branch) -> None:
        space = _Space(min(_CHUNK, (part.stop - part.start + 1) // 2))
        for start in range(part.start, part.stop, 2 * _CHUNK):
            size = min(2 * _CHUNK, part.stop - start)
            take(start, space.normal(source, size))

    if count <= _FEW:
        block(slice(0, count), bits)
    else:
        in_branches(block, count, bits)


class _Space:
    """Where pairs pass through: taking memory anew for each chunk would take longer than filling it."""

    def __init__(self, pairs: int) -> None:
        self._room, self._whole = room(pairs), np.empty(pairs, dtype=np.uint64)
        self._out = np.empty(2 * pairs, dtype=np.float32)
        self._turn, self._length = np.empty(pairs, dtype=np.float32), np.empty(pairs, dtype=np.float32)

    def _words(self, source: Bits | Branch, count: int) -> NDArray[np.uint64]:
        if isinstance(source, Branch) and count == len(self._whole):
            return source.fill(self._room)
        return source.words(count)

    def normal(self, source: Bits | Branch, count: int) -> Floats:
        """First all pairs' cosines, then their sines; the last sine is left out if the count is odd."""
        half = (count + 1) // 2
        words = self._words(source, half)
        whole, turn, length = self._whole[:half], self._turn[:half], self._length[:half]
        np.copyto(turn, np.bitwise_and(words, _TURN_BITS, out=whole), casting="unsafe")
        turn *= _TURN
        # 1 + k/2^40 has the bits of k after an exponent of 0. The logarithm of (k + 1)/2^40 is taken in
        # float64, since float32 would make the shortest lengths all alike
        np.right_shift(words, np.uint64(64 - _FRACTION), out=whole)
        whole &= _LENGTH_BITS
        whole |= _ONE_BITS
        share = whole.view(np.float64)
        share -= 1 - 2.0**-_RADIUS
        np.copyto(length, np.log(share, out=share), casting="unsafe")
        length *= np.float32(-2.0)
        np.sqrt(length, out=length)
        np.multiply(np.cos(turn, out=self._out[:half]), length, out=self._out[:half])
        np.multiply(np.sin(turn, out=self._out[half : 2 * half]), length, out=self._out[half : 2 * half])
        return self._out[:count]
