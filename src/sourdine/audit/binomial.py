"""Bounds on an unknown probability from counts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.lazy import betaincinv

Floats = NDArray[np.float64]


def least(hits: int, trials: int, beta: float) -> float:
    """A number the probability is below with chance at most beta (Clopper and Pearson 1934).

    >>> round(least(10, 10, 0.05), 4)
    0.7411
    """
    return float(betaincinv(hits, trials - hits + 1, beta)) if hits else 0.0


def most(hits: int, trials: int, beta: float) -> float:
    """A number the probability is above with chance at most beta (Clopper and Pearson 1934).

    >>> round(most(0, 10, 0.05), 4)
    0.2589
    """
    return 1 - float(betaincinv(trials - hits, hits + 1, beta)) if hits < trials else 1.0


def both(hits: ArrayLike, trials: int, beta: float) -> tuple[Floats, Floats]:
    """Both bounds for each of many counts, which need not be whole.

    >>> [round(float(bound), 4) for bound in both(10, 10, 0.05)]
    [0.7411, 1.0]
    """
    counts = np.asarray(hits, float)
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1e-9), trials - counts + 1, beta), 0.0)
    high = np.where(counts < trials, betaincinv(counts + 1, np.maximum(trials - counts, 1e-9), 1 - beta), 1.0)
    return low, high
