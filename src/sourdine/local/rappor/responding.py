"""Both responses drawn for many filters at once, eight bits to a byte; each filter is a device of its own."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core import packed
from sourdine.core.bits import Bits
from sourdine.local.rappor.coins import Coins

Rows = NDArray[np.uint8]


def permanent(filters: Rows, coins: Coins, bits: Bits) -> Rows:
    """Each bit turned over with probability f/2: the law of 1, 0 or the truth with f/2, f/2 and 1 - f."""
    if coins.f == 0:
        return filters
    return filters ^ _draw(filters, coins.flip, bits)


def instantaneous(held: Rows, coins: Coins, bits: Bits) -> Rows:
    """A 1 with probability q where the permanent bit is 1, p where it is 0; both coins are always tossed."""
    if not coins.instantaneous:
        return held
    likely, unlikely = (_draw(held, share, bits) for share in (coins.q, coins.p))
    return (held & likely) | (~held & unlikely)


def trimmed(rows: Rows, size: int) -> Rows:
    """The rows with nothing beyond their last bit."""
    if spare := -size % 8:
        rows[..., -1] &= np.uint8(256 - (1 << spare))
    return rows


def _draw(rows: Rows, share: Fraction, bits: Bits) -> Rows:
    words = packed.bernoulli(share, -(-rows.size // 8), bits)
    return words.view(np.uint8)[: rows.size].reshape(rows.shape)
