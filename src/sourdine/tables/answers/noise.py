"""The least noise for a distance and a part of the budget, and how far a weighted sum of noises goes.

Such a sum is matched by the distribution of a sum of k like Laplace noises (variance-gamma), with k chosen
to have the same kurtosis: exact for one noise, for like weights and for many, and close between. Gaussian
noises need none of this.
"""

import math
from fractions import Fraction
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.distance import Distance, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import distance_units
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.mechanisms.gaussian import LEAST_SIGMA
from sourdine.mechanisms.laplace import LEAST_SCALE

_FINEST = 1 << 20  # noise of more steps is drawn on a coarser grid, so that sums keep 42 bits above it
_COARSEST = 1 << 30  # noise of more steps is not drawn
_TRIES = 40


def noise(distance: Distance, budget: Fraction, squared: bool) -> Mechanism:
    """The least noise that costs at most so much epsilon, or rho."""
    step: Fraction | None = None
    for _ in range(_TRIES):
        size = _noise_size(distance, budget, squared, step)
        if size <= (_FINEST if step is None else _COARSEST * step):
            return (
                Gaussian(sigma=max(size, LEAST_SIGMA), granularity=step)
                if squared
                else Laplace(scale=max(size, LEAST_SCALE), granularity=step)
            )
        step = _coarser(size) if step is None else 4 * step
    raise InvalidParameter(
        "The budget is so small that the noise would drown everything. "
        "Ask for a larger epsilon, for fewer queries, or for more equal weights."
    )


def _noise_size(distance: Distance, budget: Fraction, squared: bool, step: Fraction | None) -> Fraction:
    """The scale, or sigma, for a distance that grows by a coarse step for each number that changes.

    It is computed from the very number that the loss will be, so that no rounding makes it cost more.
    """
    if not squared:
        return (distance.amount + (step or 0) * (distance.coordinates or 0)) / budget
    return root_above(distance_units(distance, step) * (step or 1) ** 2 / (2 * budget))


def _coarser(size: Fraction) -> Fraction:
    """A power of two that leaves a noise of this size about 2^20 steps."""
    return Fraction(1 << (math.ceil(size / _FINEST) - 1).bit_length())


_FEW, _MANY = np.linspace(1, 3, 11), np.geomspace(3.5, 200, 12)  # numbers of terms
_LONG, _SHORT = 1 << 12, 1 << 10  # steps of the integral for few terms; that of many has ended long before
# The match above is too narrow by less than 0.3 % of the width up to here, and by up to 6 % at 1 - 3e-9: its
# tail falls faster than that of the largest noise. Beyond it a bound is taken.
_MATCHED = 0.99
# Any tilt gives a valid bound. The best one for a sum of k like noises is about 1 - k / log(1/alpha), so that
# tilts close to 1 serve sums with one large weight, and smaller ones sums of many.
_TILTS = (*(1 - 0.75**place for place in range(3, 24)), 1.0)
_STEPS, _NEAR = 60, 1e-8  # of Newton's method: how many at most, and the last


def deviation(mechanism: Mechanism) -> float:
    """The standard deviation of one noise, in the numbers' own unit."""
    if isinstance(mechanism, Gaussian):
        return float(mechanism.sigma)
    assert isinstance(mechanism, Laplace)
    return math.sqrt(2) * float(mechanism.scale)


def half_width(mechanism: Mechanism, weights: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """What |sum of weights times noises| stays within, with this confidence; weights along the first axis.

    One noise alone is a whole number, and its exact quantile is taken. Sums with like weights are whole
    multiples of them, and what they stay within is rounded up to one.
    """
    heavy = np.abs(np.asarray(weights, dtype=float))
    if heavy.shape[0] == 1:
        alone: NDArray[np.float64] = heavy[0] * mechanism.error(confidence)
        return alone
    power = (heavy**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        many = np.where(power > 0, power**2 / (heavy**4).sum(axis=0), 1.0)
    reach: NDArray[np.float64] = like_noises(mechanism, many, confidence) * np.sqrt(power)
    most = heavy.max(axis=0)
    reach = np.maximum(reach, most * mechanism.error(confidence))  # others never make one noise narrower
    alike = ((heavy == most) | (heavy == 0)).all(axis=0) & (most > 0)
    if confidence > _MATCHED and isinstance(mechanism, Laplace):
        reach = np.where(alike, reach, np.maximum(reach, _bounded_reach(mechanism, heavy, confidence)))
    rounded: NDArray[np.float64] = np.ceil(reach / np.where(alike, most, 1.0)) * most
    return np.where(alike, rounded, reach)


def _bounded_reach(mechanism: Laplace, heavy: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """What a weighted sum of Laplace noises stays within, by a bound that holds at every confidence.

    With a the largest weight, r_j the others over it and scale 1, P[S >= x] <= C(t) e^(-t x/a) / prod(1 - t^2
    r_j^2) for 0 < t <= 1, C(t) = (2t/(1+t))^t / (1+t): the tail of one Laplace noise is at most C(t) e^(-t z)
    at every z, and the others have these moment generating functions (docs/guarantees/row_selection.md). On a
    grid the tail is larger by at most 2/(1 + e^(-1/scale)), and the others' functions are smaller.
    """
    first = heavy.argmax(axis=0)[None]
    largest = np.take_along_axis(heavy, first, axis=0)[0]
    shares = heavy / np.where(largest > 0, largest, 1.0)
    np.put_along_axis(shares, first, 0.0, axis=0)
    on_grid = math.log(2 / (1 + math.exp(-1 / float(mechanism.scale / (mechanism.granularity or 1)))))
    alone = math.log(2 / (1 - confidence)) + on_grid
    best = np.full(largest.shape, np.inf)
    for t in _TILTS:
        with np.errstate(divide="ignore"):
            others = -np.log1p(-((t * shares) ** 2)).sum(axis=0)
        best = np.minimum(best, (alone + t * math.log(2 * t / (1 + t)) - math.log1p(t) + others) / t)
    reach: NDArray[np.float64] = best * largest * float(mechanism.scale)
    return reach


def like_noises(mechanism: Mechanism, many: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """What a sum of so many like noises stays within, for each unit of the square root of their number."""
    wide = np.asarray(many, dtype=float)
    if isinstance(mechanism, Gaussian):
        return np.full(wide.shape, _normal(confidence) * deviation(mechanism))
    reach: NDArray[np.float64] = like_terms(wide, confidence) * deviation(mechanism)
    return reach


def like_terms(terms: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """The quantile, in standard deviations, of a sum of so many like Laplace noises.

    >>> like_terms([1, 1e9], 0.95).round(3).tolist()
    [2.118, 1.96]
    """
    quantiles: NDArray[np.float64] = np.interp(
        1 / np.maximum(np.asarray(terms, dtype=float), 1.0), *_table(confidence)
    )
    return quantiles


def worst_noises(confidence: float) -> float:
    """The same for any weighted sum of Laplace noises, whatever its weights, in its own standard deviations.

    It is the widest of all laws of like noises, from one noise to the normal law, and a hundredth more: by
    less than that do sums with unlike weights differ from their match.
    """
    return 1.01 * float(_table(confidence)[1].max())


def _normal(confidence: float) -> float:
    return -NormalDist().inv_cdf((1 - confidence) / 2)


@cache
def _table(confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Quantiles against one over the number of terms, rising; 0 is the normal law."""
    many, few = _quantiles(_MANY, confidence, _SHORT)[::-1], _quantiles(_FEW, confidence, _LONG)[::-1]
    one_over = 1 / np.concatenate([_MANY[::-1], _FEW[::-1]])
    return np.concatenate([[0.0], one_over]), np.concatenate([[_normal(confidence)], many, few])


def _quantiles(terms: NDArray[np.float64], confidence: float, steps: int) -> NDArray[np.float64]:
    """Where P[|X| <= x] is the confidence, for each number of terms; one term is Laplace's law.

    Newton's steps, from the law of one term. A step that leaves what is known of the place halves it instead.
    """
    alone = -math.log1p(-confidence) / math.sqrt(2)
    x = np.full(len(terms), alone)
    below, above = np.zeros(len(terms)), np.full(len(terms), 60.0)
    for _ in range(_STEPS):
        inside, density = _inside(x, terms, steps)
        below, above = np.where(inside < confidence, x, below), np.where(inside < confidence, above, x)
        with np.errstate(all="ignore"):
            near = x + (confidence - inside) / density
        last, x = x, np.where((near > below) & (near < above), near, (below + above) / 2)
        if np.abs(x - last).max() < _NEAR:
            break
    return np.where(terms == 1, alone, x)


def _inside(
    x: NDArray[np.float64], terms: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P[|X| <= x] for variance 1 (Gil-Pelaez 1951), and its slope: sums of the characteristic function,
    which is (1 + t^2 / 2k)^-k.

    A sum over the half-odd multiples of a step is exact but for the tails beyond pi / step, so it needs no
    finer grid than that.
    """
    step = np.pi / (x[:, None] + 40)
    t = (np.arange(steps) + 0.5) * step
    weights = 2 / np.pi * step * (1 + t**2 / (2 * terms[:, None])) ** -terms[:, None]
    angle = t * x[:, None]
    return (weights * np.sin(angle) / t).sum(axis=1), (weights * np.cos(angle)).sum(axis=1)
