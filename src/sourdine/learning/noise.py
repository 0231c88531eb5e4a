"""Gaussian noise for gradients: float32, from the words of a `Bits`.

Unlike the noise of published numbers it is not exact: it is a rounded Gaussian that ends at 7.4 standard
deviations, added to a sum that float32 has rounded before (docs/guarantees/learning.md says what that leaves
open). Its words come from where all randomness comes from, and a training run never repeats them.
"""

import math

import torch
from torch import Tensor

from sourdine.core.bits import SYSTEM, Bits

_RADIUS, _ANGLE = 40, 24  # bits of a word for the length of a pair of normal numbers, and for its direction


def gaussian(shape: torch.Size, bits: Bits = SYSTEM) -> Tensor:
    """Independent standard normal numbers, by the polar form of pairs (Box and Muller 1958)."""
    count = math.prod(shape)
    words = torch.from_numpy(bits.words((count + 1) // 2).view("int64").copy())
    uniform = ((words >> _ANGLE) & ((1 << _RADIUS) - 1)).add_(1).to(torch.float64).mul_(2.0**-_RADIUS)
    length = uniform.log_().mul_(-2.0).sqrt_().to(torch.float32)
    turn = (words & ((1 << _ANGLE) - 1)).to(torch.float32).mul_(2 * math.pi * 2.0**-_ANGLE)
    pairs = torch.empty(len(words), 2)
    torch.mul(turn.cos(), length, out=pairs[:, 0])
    torch.mul(turn.sin_(), length, out=pairs[:, 1])
    return pairs.view(-1)[:count].view(shape)
