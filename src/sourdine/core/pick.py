"""Choosing an index by logarithms of weights, each with its own relative accuracy, however small it is.

A cumulative sum would swallow small weights. Here the weights are the leaves of a tree of sums, and a way
down it is tossed: at each node the lighter side is taken with its share of the two, by a coin that is exact
for the logarithm of that share. All is kept as logarithms, so nothing underflows. Each level of the tree adds
two roundings; an index has its weight's probability within a factor e^(+-4 depth u), u being a unit in the
last place of the largest logarithm in question.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.core.exact import exp_coin

Floats = NDArray[np.float64]


def pick(logs: Floats, count: int, bits: Bits) -> NDArray[np.int64]:
    """So many indices, i with probability proportional to e^logs[i]; at least one is not minus infinity."""
    levels = _levels(logs)
    place = np.zeros(count, np.int64)
    for sums in levels[-2::-1]:
        left, right = sums[2 * place], sums[2 * place + 1]
        small = _coins(np.minimum(left, right) - np.logaddexp(left, right), bits)
        place = 2 * place + np.where(left <= right, ~small, small)
    return place


def _levels(logs: Floats) -> list[Floats]:
    """Sums of pairs, and of pairs of pairs, up to the whole."""
    size = 1 << max(len(logs) - 1, 0).bit_length()
    levels = [np.concatenate([logs, np.full(size - len(logs), -np.inf)])]
    while len(levels[-1]) > 1:
        levels.append(np.logaddexp(levels[-1][0::2], levels[-1][1::2]))
    return levels


def _coins(log_shares: Floats, bits: Bits) -> NDArray[np.bool_]:
    """True with exactly the probability e^x of each float x; what lies close to the draw needs more bits.

    A lighter side has at most half, or a little more by rounding. Both sides of the comparison are off by
    less than 2^13 of 2^64.
    """
    words = bits.words(len(log_shares))
    ahead = words.astype(np.float64) - np.ldexp(np.exp(log_shares), 64)
    heads: NDArray[np.bool_] = ahead < 0
    for i in np.flatnonzero((np.abs(ahead) <= 2.0**14) & (log_shares > -np.inf)):
        heads[i] = exp_coin(int(words[i]), -Fraction(float(log_shares[i])), bits)
    return heads
