"""From the epsilons that are wanted back to f, p and q."""

import math
from fractions import Fraction

import numpy as np

from sourdine.core import check
from sourdine.local.rappor.coins import Coins

_FINE = 1 << 20  # steps of f
_FINER = 1 << 16  # steps of q
_COARSE = 1 << 8  # steps of p: few binary digits make quick coins
_MOST_EPSILON = 512


def solve_flip(owner: str, epsilon: Fraction | float, ones: int) -> Fraction:
    """The least f, in steps of 2^-20, that costs at most epsilon for ever: about 2/(1 + e^(epsilon/2h))."""
    hashes = check.integer(owner, "hashes", ones, 1, 16)
    target = check.positive(owner, "epsilon", epsilon, _MOST_EPSILON)
    steps = max(1, math.floor(_FINE * 2 / (1 + math.exp(float(target) / (2 * hashes)))) - 1)
    while steps < _FINE and Coins(Fraction(steps, _FINE)).epsilon(hashes) > target:
        steps += 1
    if steps == _FINE:
        raise check.fail(owner, "epsilon", "be larger: so little is not worth asking", epsilon)
    return Fraction(steps, _FINE)


def solve_coins(
    owner: str, epsilon: Fraction | float, epsilon_infinity: Fraction | float, ones: int
) -> Coins:
    """f from epsilon_infinity, and then the p and q with the least variance p*(1-p*)/(q*-p*)^2 at epsilon."""
    hashes = check.integer(owner, "hashes", ones, 1, 16)
    target = check.positive(owner, "epsilon", epsilon, _MOST_EPSILON)
    if epsilon_infinity == math.inf:
        f = Fraction(0)
    else:
        limit = check.positive(owner, "epsilon_infinity", epsilon_infinity, _MOST_EPSILON)
        if limit <= target:
            remedy = "One report cannot reveal more than all. For a single report, use a one-time variant."
            raise check.fail(owner, "epsilon_infinity", "be above epsilon", epsilon_infinity, remedy)
        f = solve_flip(owner, limit, hashes)
    p = Fraction(_best(float(f), float(target) / hashes), _COARSE)
    low, high = math.floor(p * _FINER), _FINER - 1
    while low < high:
        middle = (low + high + 1) // 2
        if Coins(f, p, Fraction(middle, _FINER)).epsilon(hashes) <= target:
            low = middle
        else:
            high = middle - 1
    q = Fraction(low, _FINER)
    if q <= p:
        raise check.fail(owner, "epsilon", "be larger: so little is not worth asking", epsilon)
    return Coins(f, p, q)


def _best(f: float, log_odds: float) -> int:
    """The numerator of the p with the least variance, each p with the largest q that it allows."""
    p = np.arange(1, _COARSE) / _COARSE
    low, high = p, np.ones_like(p)
    for _ in range(50):
        q = (low + high) / 2
        one, zero = f / 2 * (p + q) + (1 - f) * q, f / 2 * (p + q) + (1 - f) * p
        small = np.log(one / zero) + np.log((1 - zero) / np.maximum(1 - one, 1e-300)) <= log_odds
        low, high = np.where(small, q, low), np.where(small, high, q)
    one, zero = f / 2 * (p + low) + (1 - f) * low, f / 2 * (p + low) + (1 - f) * p
    return 1 + int(np.argmin(zero * (1 - zero) / np.maximum(one - zero, 1e-12) ** 2))
