"""Profiles by brute force: what the accounting room is compared with."""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

Density = Callable[[np.ndarray], np.ndarray]


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The divergence of two laws on the same finite set of outcomes."""
    return float(np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0).sum())


def normal_mixture(weights: list[float], means: list[float]) -> Density:
    """The density of a mixture of normal laws of variance 1."""

    def density(x: np.ndarray) -> np.ndarray:
        parts = [w * np.exp(-((x - m) ** 2) / 2) for w, m in zip(weights, means, strict=True)]
        return np.sum(parts, axis=0) / math.sqrt(2 * math.pi)

    return density


def integrated(p: Density, q: Density, epsilon: float) -> float:
    """The divergence of two densities on the line, by Gauss-Legendre between the zeros of p - e^epsilon q."""
    excess = lambda x: p(np.asarray(x)) - math.exp(epsilon) * q(np.asarray(x))
    grid = np.linspace(-12, 15, 271)
    signs = np.sign(excess(grid))
    at = lambda x: float(excess(x))
    zeros = [brentq(at, grid[i], grid[i + 1], xtol=1e-15) for i in np.flatnonzero(signs[1:] * signs[:-1] < 0)]
    ends = np.sort(np.concatenate([grid, zeros]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    middles, halves = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    values = excess(middles[:, None] + halves[:, None] * nodes)
    return float((np.maximum(values, 0) @ weights * halves).sum())


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Balle and Wang 2018, theorem 8."""
    return float(ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2))


def least_epsilon(delta: Callable[[float], float], target: float, high: float) -> float:
    """Where a falling profile reaches a target."""
    low = 0.0
    if delta(0.0) <= target:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= target else (middle, high)
    return high


def responses_delta(responses: list[float], epsilon: float) -> float:
    """delta of binary randomized responses at these epsilons together, over all outcomes."""
    losses, masses = np.zeros(1), np.ones(1)
    for one in responses:
        likely = 1 / (1 + math.exp(-one))
        losses = np.concatenate([losses + one, losses - one])
        masses = np.concatenate([masses * likely, masses * (1 - likely)])
    return float((masses * np.maximum(1 - np.exp(epsilon - losses), 0)).sum())
