"""How many ranks both methods are off when there are very many values, by exact laws.

Near a decile of many values, counts rise evenly with the cut points, by log n / 1.5 values each. So what the
histogram answers depends on n through that width alone, and what inverse sensitivity answers not at all.
"""

import math

import numpy as np
from numpy.typing import NDArray

DECILES = 9
_THRESHOLD, _QUERY = 2, 4  # scales of the noise, in units of one over a decile's epsilon
_REACH = 40  # scales of the noise beyond which nothing happens
_LEVELS = 2000  # of the threshold's noise
_BLOCKS, _BLOCK_LEVELS = 2000, 200


def histogram_ranks(size: float, epsilon: float) -> float:
    """The root mean squared error of one of nine deciles in ranks, by the law of the first count above.

    >>> round(histogram_ranks(1e8, 1.0)), round(histogram_ranks(1e100, 1.0))
    (63, 111)
    """
    width = math.log(size) / 1.5
    threshold, query = (scale * DECILES / epsilon for scale in (_THRESHOLD, _QUERY))
    cuts = np.arange(-math.ceil(_REACH * query / width), math.ceil(_REACH * query / width) + 1)
    below = cuts * width  # values between the decile and a cut point
    short = _noise(threshold, _LEVELS)[:, None] - below[None, :]
    tail = 0.5 * np.exp(-np.abs(short) / query)
    stays = np.cumprod(np.where(short < 0, tail, 1 - tail), axis=1)
    stops = np.diff(stays, prepend=1.0, axis=1)
    return math.sqrt(float((-stops * below**2).sum(axis=1).mean()))


def histogram_distance(size: float, epsilon: float, *, decile: int) -> float:
    """The mean distance of the answer for uniform values from the decile in parts of the range, at least.

    For sizes at which the counts are as good as n times their cut points. Cut points are taken in blocks:
    each is crossed as late as by the count at its lower end, and told as near as its nearer end.

    >>> round(histogram_distance(2e6, 0.001, decile=5), 3)
    0.145
    """
    aim, edges = decile / 10, np.linspace(0, 1, _BLOCKS + 1)
    low, high = edges[:-1], edges[1:]
    threshold, query = (scale * DECILES / (epsilon * size) for scale in (_THRESHOLD, _QUERY))
    short = aim + _noise(threshold, _BLOCK_LEVELS)[:, None] - low[None, :]
    tail = 0.5 * np.exp(-np.abs(short) / query)
    cuts = 1.5 * size / math.log(size) / _BLOCKS  # in each block
    stays = np.exp(cuts * np.cumsum(np.log(np.where(short < 0, tail, 1 - tail)), axis=1))
    stops = -np.diff(stays, prepend=1.0, axis=1)
    nearer = np.minimum(np.abs(low - aim), np.abs(high - aim))
    return float((stops @ nearer + stays[:, -1] * (1 - aim)).mean())


def _noise(scale: float, levels: int) -> NDArray[np.float64]:
    """Laplace noise at evenly spread levels."""
    share = (np.arange(levels) + 0.5) / levels
    noise: NDArray[np.float64] = -scale * np.sign(share - 0.5) * np.log1p(-2 * np.abs(share - 0.5))
    return noise


def inverse_ranks(epsilon: float) -> float:
    """The same for inverse sensitivity: a two-sided geometric law, whatever n.

    >>> round(inverse_ranks(1.0), 1)
    25.5
    """
    ratio = math.exp(-epsilon / (2 * DECILES))
    return math.sqrt(2 * ratio) / (1 - ratio)
