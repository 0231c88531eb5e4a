"""The law of noise on gradients: normal masses of cells."""

from typing import Any

import numpy as np
from scipy.stats import norm


def noisy_gradient(m: Any, value: Any) -> dict[int, float]:
    """One number in cells of an eighth; of a pair, its part along (3, 4)/5 in cells of 1."""
    sigma, pair = float(m.sigma), np.ndim(value) == 1
    at, cell = (np.dot(value, [0.6, 0.8]), 1.0) if pair else (float(value), 0.125)
    k = np.arange(-int(10 * sigma / cell), int(10 * sigma / cell) + int(20 / cell))
    edges = norm.cdf((np.append(k, k[-1] + 1) * cell - at) / sigma)
    return dict(zip(k.tolist(), np.diff(edges).tolist(), strict=True))
