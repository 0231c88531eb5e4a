"""What repeated trials say: a mean or a root mean square, with its own error."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import Bits

Floats = NDArray[np.float64]
_WIDE = 2.0  # standard errors that a band reaches to either side


class Measured(NamedTuple):
    """A number from trials, with the ends of its band: two standard errors to either side."""

    value: float
    lower: float
    upper: float


def mean(trials: ArrayLike) -> Measured:
    """The mean of trials."""
    array = np.asarray(trials, float)
    error = _WIDE * float(array.std(ddof=1)) / math.sqrt(len(array))
    return Measured(float(array.mean()), float(array.mean()) - error, float(array.mean()) + error)


def root_mean_square(errors: ArrayLike) -> Measured:
    """The root of the mean squared error, its band taken on the squares.

    >>> root_mean_square([3.0, -3.0])
    Measured(value=3.0, lower=3.0, upper=3.0)
    """
    squares = mean(np.asarray(errors, float) ** 2)
    low = max(squares.lower, squares.value / 4)  # few trials with one far off may reach below 0
    return Measured(math.sqrt(squares.value), math.sqrt(low), math.sqrt(squares.upper))


def frequency(hits: int, trials: int) -> Measured:
    """How often something happened, with its score interval (Wilson 1927)."""
    share, square = hits / trials, _WIDE**2 / trials
    middle = (share + square / 2) / (1 + square)
    reach = math.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    return Measured(share, max(0.0, middle - reach), min(1.0, middle + reach))


def uniform(size: int, bits: Bits) -> Floats:
    """So many values in [0, 1)."""
    return np.asarray((bits.words(size) >> np.uint64(11)) * 2.0**-53, np.float64)
