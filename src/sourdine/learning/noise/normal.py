"""Gaussian noise for gradients: float32, from the words of a `Bits`.

Unlike the noise of published numbers it is not exact: it is a rounded Gaussian that ends at 7.4 standard
deviations, added to a sum that float32 has rounded before (docs/guarantees/learning_methods.md says what that
leaves open). Its words come from where all randomness comes from, and a training run never repeats them.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from sourdine.core.randomness.bits import SYSTEM, Bits

_RADIUS, _ANGLE = 40, 24  # bits of a word for the length of a pair of normal numbers, and for its direction
_FRACTION = 52  # bits of a float64 below its exponent
_LENGTH_BITS = ((1 << _RADIUS) - 1) << (_FRACTION - _RADIUS)
_ONE_BITS = 1023 << _FRACTION  # of 1.0
_CHUNK = 1 << 17  # pairs at a time: what they pass through stays in the cache

Taker = Callable[[int, Tensor], object]


def gaussian(shape: torch.Size, bits: Bits = SYSTEM) -> Tensor:
    """Independent standard normal numbers, by the polar form of pairs (Box and Muller 1958)."""
    out = torch.empty(math.prod(shape))
    _draw(len(out), bits, lambda start, noise: out[start : start + len(noise)].copy_(noise))
    return out.view(shape)


def make_noisy_means(totals: Sequence[Tensor], deviation: float, count: int, bits: Bits = SYSTEM) -> None:
    """Add to sums of float32, in place, what `gaussian` draws for all, times a deviation; divide by a count.

    All of it happens while numbers are in the cache: for millions, memory takes longer than arithmetic.
    """
    rows = [total.view(-1) for total in totals]
    ends = list(accumulate(len(row) for row in rows))

    def add(start: int, noise: Tensor) -> None:
        stop = start + len(noise)
        for row, end in zip(rows, ends, strict=True):
            first = end - len(row)
            low, high = max(start, first), min(stop, end)
            if low < high:
                part = row[low - first : high - first]
                part.add_(noise[low - start : high - start], alpha=deviation).div_(count)

    _draw(ends[-1] if ends else 0, bits, add)


def _draw(count: int, bits: Bits, take: Taker) -> None:
    """Hand out so many normal numbers block by block, each with its place."""
    room = _Room(min(_CHUNK, (count + 1) // 2))
    for start in range(0, count, 2 * _CHUNK):
        size = min(2 * _CHUNK, count - start)
        words = torch.from_numpy(bits.words((size + 1) // 2).view("int64"))
        take(start, room.normal(words, size))


class _Room:
    """Where pairs pass through: taking memory anew for each block would take longer than filling it."""

    def __init__(self, pairs: int) -> None:
        self._whole, self._out = torch.empty(pairs, dtype=torch.int64), torch.empty(2 * pairs)
        self._turn, self._length = torch.empty(pairs), torch.empty(pairs)

    def normal(self, words: Tensor, count: int) -> Tensor:
        """First all pairs' cosines, then their sines; the last sine is left out if the count is odd."""
        half = len(words)
        whole, turn, length = self._whole[:half], self._turn[:half], self._length[:half]
        turn.copy_(torch.bitwise_and(words, (1 << _ANGLE) - 1, out=whole)).mul_(2 * math.pi * 2.0**-_ANGLE)
        # 1 + k/2^40 has the bits of k after an exponent of 0. The logarithm of (k + 1)/2^40 is taken in
        # float64, since float32 would make the shortest lengths all alike
        torch.bitwise_right_shift(words, 64 - _FRACTION, out=whole)
        share = whole.bitwise_and_(_LENGTH_BITS).bitwise_or_(_ONE_BITS).view(torch.float64)
        length.copy_(share.sub_(1 - 2.0**-_RADIUS).log_()).mul_(-2.0).sqrt_()
        torch.cos(turn, out=self._out[:half]).mul_(length)
        torch.sin(turn, out=self._out[half : 2 * half]).mul_(length)
        return self._out[:count]
