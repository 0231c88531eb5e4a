"""The true law of every mechanism's answer, written down a second time.

Each function gives the probability of every coded answer (see Example.code) from the definition of the
mechanism alone, by floats or enumeration, without the code under test. The contract compares samples with
these. A mechanism without an entry fails the contract.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sourdine import mechanisms

Law = dict[int, float]


def normalised(codes: np.ndarray, weights: np.ndarray) -> Law:
    total: Law = {}
    for code, weight in zip(codes.tolist(), (weights / weights.sum()).tolist(), strict=True):
        total[code] = total.get(code, 0.0) + weight
    return total


def around(value: Any, granularity: Any, log_weight: Callable[[np.ndarray], np.ndarray], reach: int) -> Law:
    """Noise with a weight by size in grid steps; a vector is coded by its sum."""
    units = np.rint(np.atleast_1d(np.asarray(value, float)) / float(granularity or 1)).astype(np.int64)
    k = np.arange(-reach, reach + 1)
    one = np.exp(log_weight(np.abs(k)))
    law = one / one.sum()
    for _ in units[1:]:
        law = np.convolve(law, one / one.sum())
    shift = int(units.sum()) - reach * len(units)
    return normalised(np.arange(len(law)) + shift, law)


def laplace(m: Any, value: Any) -> Law:
    scale = float(m.scale / (m.granularity or 1))
    return around(value, m.granularity, lambda k: -k / scale, int(45 * scale) + 2)


def gaussian(m: Any, value: Any) -> Law:
    sigma = float(m.sigma / (m.granularity or 1))
    return around(value, m.granularity, lambda k: -(k**2) / (2 * sigma**2), int(12 * sigma) + 2)


def geometric(m: Any, value: Any) -> Law:
    scale = float(m.scale)
    law = around(value, 1, lambda k: -k / scale, int(45 * scale) + 2)
    codes = np.clip(np.array(list(law)), m.lower, m.upper)
    return normalised(codes, np.array(list(law.values())))


LAWS: dict[type, Callable[[Any, Any], Law]] = {
    mechanisms.Laplace: laplace,
    mechanisms.Gaussian: gaussian,
    mechanisms.Geometric: geometric,
}

NOISE = {mechanisms.Laplace: "scale", mechanisms.Gaussian: "sigma", mechanisms.Geometric: "scale"}
"""The parameter of each mechanism that the contract puts 10 % off, to see the law test refuse it."""
