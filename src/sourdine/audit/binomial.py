"""Bounds on an unknown probability from counts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

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


def about(hits: ArrayLike, trials: int, beta: float) -> tuple[Floats, Floats]:
    """Both bounds by Wilson's score: quick over arrays, and close enough to *choose* an event with."""
    z = -float(ndtri(beta))
    middle = np.asarray(hits, float) + z * z / 2
    spread = z * np.sqrt(np.asarray(hits, float) * (1 - np.asarray(hits, float) / trials) + z * z / 4)
    return np.maximum(middle - spread, 0.0) / (trials + z * z), (middle + spread) / (trials + z * z)
