"""Gaussian noise for gradients: float32, from the words of a `Bits`.

Unlike the noise of published numbers it is not exact: it is a rounded Gaussian that ends at 7.4 standard
deviations, added to a sum that float32 has rounded before (docs/guarantees/learning.md says what that leaves
open). Its words come from where all randomness comes from, and a training run never repeats them.
"""

import math

import torch
from torch import Tensor

from sourdine.core.randomness.bits import SYSTEM, Bits

_RADIUS, _ANGLE = 40, 24  # bits of a word for the length of a pair of normal numbers, and for its direction
_CHUNK = 1 << 17  # pairs at a time: what they pass through stays in the cache


def gaussian(shape: torch.Size, bits: Bits = SYSTEM) -> Tensor:
    """Independent standard normal numbers, by the polar form of pairs (Box and Muller 1958)."""
    out = torch.empty(math.prod(shape))
    for start in range(0, len(out), 2 * _CHUNK):
        _fill(out[start : start + 2 * _CHUNK], bits)
    return out.view(shape)


def _fill(out: Tensor, bits: Bits) -> None:
    """First all pairs' cosines, then their sines; the last sine is left out if the count is odd."""
    half = (len(out) + 1) // 2
    words = bits.words(half)
    # -2 log((k + 1)/2^40); float64, since float32 would make the shortest lengths all alike
    uniform = torch.from_numpy((words >> _ANGLE).view("int64")).to(torch.float64).add_(1.0)
    length = torch.rsub(uniform.log_(), 2 * _RADIUS * math.log(2), alpha=2).to(torch.float32)
    length.clamp_(min=0.0).sqrt_()
    turn = torch.from_numpy((words & ((1 << _ANGLE) - 1)).view("int64")).to(torch.float32)
    turn.mul_(2 * math.pi * 2.0**-_ANGLE)
    torch.mul(turn.cos(), length, out=out[:half])
    torch.mul(turn[: len(out) - half].sin_(), length[: len(out) - half], out=out[half:])
