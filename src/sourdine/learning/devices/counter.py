"""Gaussian noise made on a device: from a cipher that is computed there, under a fresh key of the bits.

The words are those of ChaCha20 (RFC 8439) in torch's whole numbers, which every device has; before its first
use on a device it is held against the vector of the RFC there.
"""

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from sourdine.core.errors import SourdineError
from sourdine.core.random.bits import SYSTEM, Bits

_NAME = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)  # "expand 32-byte k"
_DOUBLE_ROUNDS = 10
_MOST_BLOCKS = 1 << 32  # of the counter under one key
_BLOCK = 16  # words of 32 bits
_CHUNK = 1 << 17  # blocks at a time: some 70 MB pass through
_RADIUS, _ANGLE = 40, 24  # bits of 64 for the length of a pair of normal numbers, and for its direction


def chacha20(key: bytes, count: int, *, nonce: bytes = bytes(12), start: int = 0, device: str) -> Tensor:
    """So many blocks of sixteen 32-bit words, the counter beginning at `start`, as int32 on a device.

    >>> chacha20(bytes(32), 1, device="cpu")[0, 0].item() & 0xFFFFFFFF == 0xADE0B876
    True
    """
    if start + count > _MOST_BLOCKS:
        raise ValueError("the counter would begin anew under the same key")
    words = np.frombuffer(key + nonce, "<i4")
    rows = torch.empty(_BLOCK, count, dtype=torch.int32, device=device)
    for place, word in enumerate((*_NAME, *words[:8].tolist(), 0, *words[8:].tolist())):
        rows[place] = word
    rows[12] = (torch.arange(start, start + count, device=device) - 2**31).to(torch.int32) ^ -(2**31)
    a, b, c, d = rows.clone().view(4, 4, count)
    for _ in range(_DOUBLE_ROUNDS):
        for turn in (1, -1):
            a = a + b
            d = _rotated(d ^ a, 16)
            c = c + d
            b = _rotated(b ^ c, 12)
            a = a + b
            d = _rotated(d ^ a, 8)
            c = c + d
            b = _rotated(b ^ c, 7)
            # columns, then diagonals
            b, c, d = (each.roll(-turn * by, 0) for each, by in ((b, 1), (c, 2), (d, 3)))
    return (torch.cat([a, b, c, d]) + rows).t()


def _rotated(words: Tensor, by: int) -> Tensor:
    """The bits of 32-bit words turned to the left; the shift to the right is that of signed numbers."""
    return (words << by) | ((words >> (32 - by)) & ((1 << by) - 1))


def counter_gaussian(count: int, device: torch.device, bits: Bits = SYSTEM) -> Tensor:
    """Independent standard normal float32 numbers on a device, by the polar form of pairs.

    >>> counter_gaussian(5, torch.device("cpu")).shape
    torch.Size([5])
    """
    check_cipher(str(device))
    key = bits.words(4).tobytes()
    out = torch.empty(count, device=device)
    each = _BLOCK * _CHUNK  # numbers of a chunk: two of 32 bits a word of 64
    for chunk, start in enumerate(range(0, count, each)):
        part = out[start : start + each]
        blocks = -(-len(part) // _BLOCK)
        words = chacha20(key, blocks, start=chunk * _CHUNK, device=str(device)).reshape(-1, 2)
        _fill(part, words.to(torch.int64))
    return out


def _fill(out: Tensor, halves: Tensor) -> None:
    """First all pairs' cosines, then their sines; float64 as long as lengths would else be all alike."""
    half = (len(out) + 1) // 2
    low, high = (halves[:half, side] & 0xFFFFFFFF for side in (0, 1))
    length = ((high << 8) | (low >> _ANGLE)).to(torch.float64).add_(1.0).log_()
    length = (2 * _RADIUS * math.log(2) - 2 * length).clamp_(min=0.0).sqrt_().to(torch.float32)
    turn = (low & ((1 << _ANGLE) - 1)).to(torch.float32).mul_(2 * math.pi * 2.0**-_ANGLE)
    out[:half] = turn.cos() * length
    out[half:] = (turn.sin() * length)[: len(out) - half]


@cache
def check_cipher(device: str) -> None:
    """Refuse a device whose whole numbers do not give the vector of RFC 8439, section 2.3.2."""
    nonce = bytes.fromhex("000000090000004a00000000")
    block = chacha20(bytes(range(32)), 1, nonce=nonce, start=1, device=device)
    if block.cpu().numpy().astype("<i4").tobytes() != _VECTOR:
        raise SourdineError(
            f"The device {device} computes a cipher wrongly, so no noise can be made on it. "
            "Take device='cpu'."
        )


_VECTOR = bytes.fromhex(
    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
)
