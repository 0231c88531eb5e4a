"""epsilon of runs by a fast Fourier transform of its own, straight from two normal densities."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from sourdine.accounting import dpsgd_epsilon

Floats = NDArray[np.floating[Any]]
REACH = 16.0  # losses beyond count as infinite


def one_step(sigma: float, rate: float, cells: int, removed: bool) -> tuple[Floats, Floats, float]:
    """Losses of a step on a grid, their chances, and that of a larger one.

    The chance of each cell under both laws is kept by its two ends, a chord of the profile: nothing is
    understated, and what is overstated falls with the square of the cell.
    """
    width = 2 * REACH / cells
    ends = np.arange(-cells // 2, cells // 2 + 1) * width
    over = np.expm1(ends if removed else -ends) / rate
    at = np.where(over > -1, sigma**2 * np.log1p(np.maximum(over, -1 + 2.0**-53)) + 0.5, -np.inf)
    tail = norm.sf if removed else norm.cdf
    without = tail(at, 0, sigma)
    sampled = (1 - rate) * without + rate * tail(at, 1, sigma)
    first, second = (sampled, without) if removed else (without, sampled)
    both, other = first[:-1] - first[1:], second[:-1] - second[1:]
    upper = np.clip((both - other * np.exp(ends[:-1])) / -math.expm1(-width), 0, both)
    chances = np.append(both - upper, 0.0)
    chances[1:] += upper
    chances[0] += 1 - first[0]
    return ends[:-1], chances[:-1], float(first[-1])


def epsilon_by_fft(sigma: float, rate: float, steps: int, delta: float, cells: int) -> float:
    """The larger epsilon of both directions."""
    found = []
    for removed in (True, False):
        losses, chances, beyond = one_step(sigma, rate, cells, removed)
        spectrum = np.fft.rfft(np.fft.ifftshift(chances)) ** steps
        composed = np.maximum(np.fft.fftshift(np.fft.irfft(spectrum, cells)), 0)
        lost = -math.expm1(steps * math.log1p(-beyond))
        low, high = 0.0, REACH
        for _ in range(40):
            middle = (low + high) / 2
            above = losses > middle
            off = lost + float(np.sum(composed[above] * -np.expm1(middle - losses[above])))
            low, high = (middle, high) if off > delta else (low, middle)
        found.append(high)
    return max(found)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta", "cells", "width"),
    [
        (1.5539, 0.1, 80, 1e-5, 1 << 18, 1e-4),
        (2.9298, 0.1, 50, 1e-5, 1 << 18, 1e-4),
        pytest.param(0.9616, 1 / 18, 72, 1e-4, 1 << 21, 1e-5, marks=pytest.mark.slow),
        pytest.param(0.7285, 256 / 60_000, 3525, 1e-5, 1 << 22, 1e-5, marks=pytest.mark.slow),
        pytest.param(0.5934, 64 / 60_000, 14_070, 1e-5, 1 << 22, 1e-5, marks=pytest.mark.slow),
        pytest.param(2.3431, 1024 / 60_000, 1180, 1e-5, 1 << 22, 1e-5, marks=pytest.mark.slow),
        pytest.param(0.5863, 0.01, 1000, 1e-5, 1 << 22, 1e-5, marks=pytest.mark.slow),
    ],
)
def test_epsilon_of_a_run_is_within_its_bracket(
    sigma: float, rate: float, steps: int, delta: float, cells: int, width: float
) -> None:
    bracket = dpsgd_epsilon(sigma, rate, steps, delta, width)
    found = epsilon_by_fft(sigma, rate, steps, delta, cells)
    assert bracket.lower - 1e-6 <= found <= bracket.upper + 1e-6
    assert not bracket.lower <= epsilon_by_fft(sigma * 0.99, rate, steps, delta, cells) <= bracket.upper
