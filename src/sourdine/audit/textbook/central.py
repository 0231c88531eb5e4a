"""The mechanisms of a trusted holder of the data, by the formulas of their sources."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit.textbook.dice import Dice, Ints, gaussian, laplace, pick, staircase
from sourdine.learning.noise.noisy_gradient import NoisyGradient
from sourdine.learning.selecting.best_of_runs import BestOfRuns
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase
from sourdine.mechanisms.correlated import (
    CorrelatedGaussian,
    CorrelatedLaplace,
    CorrelatedNoise,
    NoiseCorrelation,
)
from sourdine.mechanisms.finite_pair import FinitePair
from sourdine.mechanisms.gaussian import Gaussian
from sourdine.mechanisms.geometric import Geometric
from sourdine.mechanisms.laplace import Laplace
from sourdine.mechanisms.partition_selection import KeyNoise, PartitionThreshold
from sourdine.mechanisms.randomized_response import KaryResponse, TwoCoins, Warner
from sourdine.mechanisms.rounded_gaussian import RoundedGaussian
from sourdine.mechanisms.selection import Exponential, PermuteAndFlip
from sourdine.mechanisms.sparse_vector import AboveThreshold, SparseVector
from sourdine.mechanisms.staircase import Staircase
from sourdine.mechanisms.top_k import TopK
from sourdine.mechanisms.truncated_geometric import TruncatedGeometric

Answers = NDArray[Any]


def draw_laplace(mechanism: Laplace, value: ArrayLike, count: int, dice: Dice) -> Answers:
    scale = mechanism.scale / (mechanism.granularity or 1)
    return _noisy(value, mechanism.granularity, laplace(scale, (count, *np.shape(value)), dice))


def draw_gaussian(mechanism: Gaussian, value: ArrayLike, count: int, dice: Dice) -> Answers:
    sigma = mechanism.sigma / (mechanism.granularity or 1)
    return _noisy(value, mechanism.granularity, gaussian(sigma, (count, *np.shape(value)), dice))


def draw_noisy_gradient(mechanism: NoisyGradient, value: ArrayLike, count: int, dice: Dice) -> Answers:
    sums = np.asarray(value, float)
    return sums + dice.normal(0.0, float(mechanism.sigma), (count, *sums.shape))


def draw_rounded_gaussian(mechanism: RoundedGaussian, value: ArrayLike, count: int, dice: Dice) -> Answers:
    sigma = float(mechanism.sigma / (mechanism.granularity or 1))
    noise = np.rint(dice.normal(0.0, sigma, (count, *np.shape(value)))).astype(np.int64)
    return _noisy(value, mechanism.granularity, noise)


def draw_best_of_runs(mechanism: BestOfRuns, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """So many answers as a geometric variable says, and the largest of them."""
    [[run]] = mechanism.settings
    assert isinstance(run.mechanism, RoundedGaussian)
    runs = dice.geometric(1 / float(mechanism.mean), count)
    answers = draw_rounded_gaussian(run.mechanism, value, int(runs.sum()), dice)
    return np.asarray(np.maximum.reduceat(answers, np.cumsum(runs) - runs))


def draw_correlated(mechanism: CorrelatedNoise, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """Cx + z (Denisov et al. 2022), with the matrix as its source states it, in floats, then rounded."""
    step = float(mechanism.granularity or 1)
    rows = np.rint(np.asarray(value, float) / step) @ _correlation(mechanism).T
    if isinstance(mechanism, CorrelatedGaussian):
        noise = gaussian(mechanism.sigma / Fraction(step), (count, *rows.shape), dice)
    else:
        assert isinstance(mechanism, CorrelatedLaplace)
        noise = laplace(mechanism.scale / Fraction(step), (count, *rows.shape), dice)
    return np.asarray((rows + noise) * step)


def _correlation(mechanism: CorrelatedNoise) -> NDArray[np.float64]:
    periods, kind = mechanism.periods, mechanism.correlation
    later = np.subtract.outer(np.arange(periods), np.arange(periods))
    if kind is NoiseCorrelation.INDEPENDENT:
        return np.eye(periods)
    if kind is NoiseCorrelation.DENSE:
        dense = np.zeros((periods, periods))
        dense[np.tril_indices(periods)] = mechanism.triangle
        return dense
    if kind is NoiseCorrelation.TREE:
        nodes = [
            [width > end - each >= 0 for each in range(1, periods + 1)]
            for end in range(1, periods + 1)
            for width in [mechanism.fan**height for height in range(17)]
            if end % width == 0
        ]
        return np.array(nodes, float)
    ratios = (np.arange(periods - 1) + float(mechanism.exponent)) / np.arange(1, periods)
    power = np.where(later >= 0, np.cumprod([1.0, *ratios])[np.maximum(later, 0)], 0.0)
    if kind is NoiseCorrelation.LEVEL:
        power /= np.sqrt((power**2).sum(axis=0))
    return np.floor(power * mechanism.resolution + 0.5)


def draw_staircase(mechanism: Staircase, value: ArrayLike, count: int, dice: Dice) -> Answers:
    step = mechanism.granularity
    period = math.floor(mechanism.sensitivity / step) + 1 if step else math.floor(mechanism.sensitivity)
    noise = staircase(mechanism.epsilon, period, mechanism.inner, (count, *np.shape(value)), dice)
    return _noisy(value, step, noise)


def _noisy(value: ArrayLike, step: Fraction | None, noise: Ints) -> Answers:
    """Whole numbers with noise; reals are rounded to the grid first, and what is no number counts as 0."""
    if step is None:
        return np.asarray(value) + noise
    places = np.rint(np.nan_to_num(np.asarray(value, float)) / float(step))
    return np.asarray((places + noise) * float(step))


def draw_geometric(mechanism: Geometric, value: ArrayLike, count: int, dice: Dice) -> Answers:
    value = np.asarray(value)
    noisy = value + laplace(mechanism.scale, (count, *value.shape), dice)
    return np.clip(noisy, mechanism.lower, mechanism.upper)


def draw_truncated(mechanism: TruncatedGeometric, value: ArrayLike, count: int, dice: Dice) -> Answers:
    lower, upper = mechanism.lower, mechanism.upper
    centre = np.clip(int(np.asarray(value)), lower, upper)
    apart = np.abs(np.arange(lower, upper + 1) - centre)
    return lower + pick(np.exp(-apart / float(mechanism.scale)), count, dice)


def draw_bounded_laplace(mechanism: BoundedLaplace, value: ArrayLike, count: int, dice: Dice) -> Answers:
    step = float(mechanism.upper - mechanism.lower) / mechanism.cells
    weights = np.exp(-_apart(mechanism, value) * step / float(mechanism.scale))
    return float(mechanism.lower) + step * pick(weights, count, dice)


def draw_bounded_staircase(mechanism: BoundedStaircase, value: ArrayLike, count: int, dice: Dice) -> Answers:
    step = float(mechanism.upper - mechanism.lower) / mechanism.cells
    beyond = np.maximum(_apart(mechanism, value) - mechanism.inner + mechanism.period, 0) // mechanism.period
    return float(mechanism.lower) + step * pick(np.exp(-float(mechanism.drop) * beyond), count, dice)


def _apart(mechanism: BoundedLaplace | BoundedStaircase, value: ArrayLike) -> Ints:
    """How many cells each place of the grid is from the value's."""
    share = (float(np.asarray(value)) - float(mechanism.lower)) / float(mechanism.upper - mechanism.lower)
    place = math.floor(min(max(share, 0.0), 1.0) * mechanism.cells + 0.5)  # halves go up
    return np.abs(np.arange(mechanism.cells + 1) - place)


def draw_response(mechanism: KaryResponse, value: ArrayLike, count: int, dice: Dice) -> Answers:
    truth, k = np.asarray(value), mechanism.categories
    odds = math.exp(float(mechanism.epsilon))
    lies = (truth + dice.integers(1, k, (count, *truth.shape))) % k
    return np.where(dice.random(lies.shape) < odds / (odds + k - 1), truth, lies)


def draw_warner(mechanism: Warner, value: ArrayLike, count: int, dice: Dice) -> Answers:
    truthful = dice.random(count) < float(mechanism.truth)
    return np.where(truthful, np.asarray(value), 1 - np.asarray(value))


def draw_two_coins(mechanism: TwoCoins, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """Heads: the truth. Tails: what a second coin says."""
    heads, second = dice.integers(0, 2, (2, count))
    return np.where(heads == 1, np.asarray(value), second)


def draw_pair(mechanism: FinitePair, value: ArrayLike, count: int, dice: Dice) -> Answers:
    law = mechanism.first if np.asarray(value) > 0 else mechanism.second
    return pick([float(chance) for chance in law], count, dice)


def draw_exponential(mechanism: Exponential, value: ArrayLike, count: int, dice: Dice) -> Answers:
    scores = np.asarray(value, float)
    return pick(np.exp(_rate(mechanism) * (scores - scores.max())), count, dice)


def draw_top(mechanism: TopK, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """The k highest scores with Gumbel noise, the highest first (Durfee and Rogers 2019)."""
    scores = np.asarray(value, float) * _rate(mechanism) / mechanism.k
    noisy = scores + dice.gumbel(size=(count, mechanism.candidates))
    return np.argsort(-noisy, axis=-1)[:, : mechanism.k]


def draw_flip(mechanism: PermuteAndFlip, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """In random order, the first whose coin falls on heads; the best one's always does."""
    scores = np.asarray(value, float)
    heads = dice.random((count, len(scores))) < np.exp(_rate(mechanism) * (scores - scores.max()))
    visited = np.where(heads, dice.random(heads.shape), 2.0)
    return np.asarray(visited.argmin(axis=-1))


def _rate(mechanism: Exponential | TopK | PermuteAndFlip) -> float:
    ways = 1 if mechanism.monotone else 2
    return float(mechanism.epsilon) / (ways * float(mechanism.sensitivity))


def draw_above(mechanism: AboveThreshold, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """Half of epsilon for the threshold, half for the queries (Dwork and Roth 2014)."""
    half = float(mechanism.sensitivity) / (float(mechanism.epsilon) / 2)
    above = _above(mechanism, value, count, (half, half * (1 if mechanism.monotone else 2)), dice)
    return np.where(above.any(axis=-1), above.argmax(axis=-1), mechanism.queries)


def draw_sparse(mechanism: SparseVector, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """Epsilon is split as 1 : (2c)^{2/3}, without the 2 where queries are monotone (Lyu, Su, Li 2017)."""
    change, most = float(mechanism.sensitivity), mechanism.answers * (1 if mechanism.monotone else 2)
    first = float(mechanism.epsilon) / (1 + most ** (2 / 3))
    scales = change / first, most * change / (float(mechanism.epsilon) - first)
    above = _above(mechanism, value, count, scales, dice)
    return above & (np.cumsum(above, axis=-1) <= mechanism.answers)


def _above(
    mechanism: AboveThreshold | SparseVector,
    value: ArrayLike,
    count: int,
    scales: tuple[float, float],
    dice: Dice,
) -> NDArray[np.bool_]:
    queries = np.asarray(value)
    line = mechanism.threshold + laplace(scales[0], (count, 1), dice)
    return np.asarray(queries + laplace(scales[1], (count, len(queries)), dice) >= line)


def draw_keys(mechanism: PartitionThreshold, value: ArrayLike, count: int, dice: Dice) -> Answers:
    counts = np.asarray(value)
    noise = laplace if mechanism.noise is KeyNoise.LAPLACE else gaussian
    noisy = counts + noise(mechanism.scale, (count, len(counts)), dice)
    return (noisy >= mechanism.threshold) & (counts > 0)
