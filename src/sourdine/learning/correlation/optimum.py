"""The factor of a kind with the least noise in sums over the steps, at what one unit moves.

The product of what a unit moves and of the noise in sums is made small from a good start, the square root of
the matrix of sums. What is found is rounded, and all that is claimed is computed from the rounded numbers, so
nothing depends on how good it is but the noise.
"""

import math

import numpy as np

from sourdine.learning.correlation.factor import BandedFactor, BufferedFactor, Floats, totals_of

_FINE = 1 << 14  # numbers are rounded to its inverse, so that two machines find the same ones
_TURNS = 200


def best_banded(steps: int, bands: int) -> BandedFactor:
    """The best numbers for so many diagonals, where no two uses of a unit are nearer than the bands are wide.

    >>> best_banded(100, 2).coefficients
    (1.0, 0.761474609375)
    """
    from scipy.optimize import minimize
    from scipy.signal import lfilter

    bands = min(bands, steps)
    if bands == 1:
        return BandedFactor(steps=steps, coefficients=(1.0,))
    rows = np.arange(steps, 0, -1, dtype=float)  # how many sums a number of the first column is in

    def loss(rest: Floats) -> tuple[float, Floats]:
        column = np.concatenate(([1.0], rest))
        totals = totals_of(column, steps)
        weighed, back = rows * totals, lfilter([1.0], column, totals)
        error, length = float(weighed @ totals), float(column @ column)
        slope = np.array([-2 * weighed[k:] @ back[: steps - k] for k in range(1, bands)])
        return math.log(error * length), slope / error + 2 * rest / length

    start = square_root(bands)[1:] * np.sqrt(1 - np.arange(1, bands) / bands)
    optimum = minimize(loss, start, jac=True, bounds=[(0, 1)] * (bands - 1), options={"maxiter": _TURNS})
    rounded = np.rint(np.asarray(optimum.x) * _FINE) / _FINE
    return BandedFactor(steps=steps, coefficients=(1.0, *(float(each) for each in rounded)))


def best_buffered(steps: int, buffers: int, every: int) -> BufferedFactor:
    """The best weights and decays of so many buffers, if a unit comes every so many steps."""
    from scipy.optimize import minimize, nnls

    gone = np.geomspace(0.5, 1 / max(steps, 4), buffers)  # of a buffer in each step
    few = min(steps, 1 << 12)
    fading = np.power.outer(1 - gone, np.arange(few)).T
    weights, _ = nnls(fading, square_root(few + 1)[1:])

    def factor(numbers: Floats) -> BufferedFactor:
        shares = np.exp(np.clip(numbers[:buffers], -30, 0))
        lost = np.exp(np.clip(numbers[buffers:], -20, 0))
        shares /= max(1.0, float(shares.sum()))
        shares, decays = _rounded(shares), np.minimum(_rounded(1 - lost, 64), 1 - 2.0**-20)
        return BufferedFactor(
            steps=steps,
            weights=tuple(float(each) for each in shares),
            decays=tuple(float(each) for each in decays),
        )

    def loss(numbers: Floats) -> float:
        return math.log(factor(numbers).error(every))

    start = np.log(np.concatenate((np.maximum(weights, 1e-6), gone)))
    optimum = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 150 * buffers, "fatol": 1e-6})
    return factor(np.asarray(optimum.x))


def square_root(count: int) -> Floats:
    """The first numbers binom(2k, k) / 4^k along the diagonals of the square root of the matrix of sums."""
    k = np.arange(1, count)
    return np.concatenate(([1.0], np.cumprod((2 * k - 1) / (2 * k))))


def _rounded(numbers: Floats, finer: int = 1) -> Floats:
    fine = _FINE * finer
    return np.floor(numbers * fine) / fine  # down: weights stay at most 1 together
