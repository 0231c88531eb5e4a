"""Shares brought into shape: none below 0, or all of them together 1.

Each of these functions takes the values of an `Estimate` along the last axis. They see reports only through
it, so they are post-processing and cost no privacy. But they are not linear, so what comes out is biased,
small shares upwards and large ones down, and the variances and intervals of the estimate do not hold for it.
Sums over many categories are best taken of the estimate itself.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.local.estimate import Estimate

Floats = NDArray[np.float64]


def non_negative(values: ArrayLike) -> Floats:
    """The shares with 0 for all below it; their sum is mostly above 1.

    >>> non_negative([0.75, 0.5, -0.25])
    array([0.75, 0.5 , 0.  ])
    """
    return np.maximum(_shares(values), 0.0)


def simplex(values: ArrayLike) -> Floats:
    """The nearest shares that are not negative and sum to 1, in Euclidean distance.

    They are max(value - shift, 0) for one shift (Held, Wolfe, Crowder 1974). With the values in falling order
    and s_j the sum of the first j, the shift is the largest (s_j - 1)/j.

    >>> simplex([0.75, 0.5, -0.25])
    array([0.625, 0.375, 0.   ])
    """
    shares = _shares(values)
    falling = -np.sort(-shares, axis=-1)
    counts = np.arange(1, shares.shape[-1] + 1)
    shift = ((np.cumsum(falling, axis=-1) - 1) / counts).max(axis=-1, keepdims=True)
    near: Floats = np.maximum(shares - shift, 0.0)
    return near


def norm_sub(values: ArrayLike) -> Floats:
    """The shares cut at 0, and those above it shifted by a common amount and cut again, until the sum is 1.

    The Norm-Sub of Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li 2020. Where the shares above 0 sum to 1 or more,
    as they mostly do, it is `simplex`. Where they sum to less, it adds to them alone and leaves what was cut
    at 0; if none is above 0, all are given the same.

    >>> norm_sub([0.75, 0.5, -0.25]), norm_sub([0.5, 0.25, -0.0625])
    (array([0.625, 0.375, 0.   ]), array([0.625, 0.375, 0.   ]))
    """
    shares = _shares(values)
    above = shares > 0
    above |= ~above.any(axis=-1, keepdims=True)
    cut = np.maximum(shares, 0.0)
    missing = 1 - cut.sum(axis=-1, keepdims=True)
    raised = np.where(above, cut + missing / above.sum(axis=-1, keepdims=True), 0.0)
    return np.where(missing > 0, raised, simplex(shares))


def shares_of_all(estimate: Estimate) -> Floats | None:
    """The nearest shares of a whole to the estimates of several categories; None for a single number."""
    return simplex(estimate.value) if estimate.value.ndim == 1 and estimate.value.size > 1 else None


def is_mostly_noise(estimate: Estimate) -> bool:
    """Whether the noise of all categories together exceeds their shares, as with many categories.

    The expected sum of squared errors is the sum of the variances. If it is larger than the sum of the
    squares of the constrained shares, an answer of 0 everywhere would be nearer than the estimates.
    """
    constrained = shares_of_all(estimate)
    return constrained is not None and float(estimate.variance.sum()) > float(constrained @ constrained)


def _shares(values: ArrayLike) -> Floats:
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim < 1 or shares.shape[-1] < 1 or not np.isfinite(shares).all():
        raise InvalidParameter(
            "Shares to bring into shape must be finite numbers, one a category. "
            "Pass the value of an estimate of several categories."
        )
    return shares
