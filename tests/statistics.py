"""Goodness of fit for the tests: one chi-square, with small cells merged."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

ALARM = 1e-6  # how often a right law may be called wrong


def fit(samples: NDArray[np.int64], law: Mapping[int, float]) -> float:
    """The p-value of a chi-square test that integer samples follow a law on finitely many cells.

    Cells are merged along their order until each expects at least 20; what the law leaves out is one cell.
    """
    keys = np.array(sorted(law), dtype=np.int64)
    expected = np.array([law[int(key)] for key in keys]) * len(samples)
    found = np.searchsorted(keys, samples)
    found = np.where(
        (found < len(keys)) & (keys[np.minimum(found, len(keys) - 1)] == samples), found, len(keys)
    )
    observed = np.bincount(found, minlength=len(keys) + 1).astype(float)
    expected = np.append(expected, max(0.0, len(samples) - expected.sum()))
    if observed[-1] and expected[-1] < 1e-7:
        return 0.0  # an outcome that the law does not have would vanish in the last cell
    groups = np.floor(np.cumsum(expected) / 20).astype(np.int64)
    groups = np.unique(groups, return_inverse=True)[1]
    observed, expected = np.bincount(groups, observed), np.bincount(groups, expected)
    if expected[-1] < 20 and len(expected) > 1:
        observed = np.append(observed[:-2], observed[-2] + observed[-1])
        expected = np.append(expected[:-2], expected[-2] + expected[-1])
    if len(expected) == 1:
        return 1.0 if observed[0] == len(samples) else 0.0
    return float(chdtrc(len(expected) - 1, ((observed - expected) ** 2 / expected).sum()))
