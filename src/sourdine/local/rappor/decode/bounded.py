"""Least squares with bounds from below and a price on every share, from a Gram matrix."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
_STEPS = 300
_TOLERANCE = 1e-9  # of the largest share, by which no share alone would still move
_RIDGE = 1e-10  # relative; it keeps a step finite where columns depend on each other
_ENOUGH = 1e-4  # of the gain that the slope promises


def solve_bounded(gram: Floats, moment: Floats, prices: Floats, lower: Floats, start: Floats) -> Floats:
    """The b >= lower that minimises b'Gb/2 - (c - prices)'b, from a start, by projected Newton steps.

    Shares at their bound that would fall below it stay; all others take the step that solves for them, cut
    at the bounds, and half of it until that is a gain (Bertsekas 1982).
    """
    b = np.maximum(start, lower)
    diagonal = np.maximum(np.diag(gram), 1e-300)
    slope = moment - prices - gram @ b
    for _ in range(_STEPS):
        free = np.flatnonzero((b > lower) | (slope > 0))
        wanted = np.maximum(b[free] + slope[free] / diagonal[free], lower[free]) - b[free]
        if np.max(np.abs(wanted), initial=0.0) <= _TOLERANCE * max(np.max(np.abs(b)), 1e-12):
            break
        part = gram[np.ix_(free, free)]
        part[np.diag_indices(len(free))] *= 1 + _RIDGE
        step = cho_solve(
            cho_factor(part, overwrite_a=True, check_finite=False), slope[free], check_finite=False
        )
        for _ in range(50):
            move = np.maximum(b[free] + step, lower[free]) - b[free]
            pull = gram[:, free] @ move
            promise = float(slope[free] @ move)
            if promise - float(move @ pull[free]) / 2 >= _ENOUGH * promise:
                break
            step /= 2
        b[free] += move
        slope -= pull
    return b
