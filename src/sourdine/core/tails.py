"""Upper tails of discrete noise, as balls that surely hold a bound on them."""

import math
from fractions import Fraction

from flint import arb

from sourdine.core.certified import ball, exponential, precision

_BITS = 128
_SUMMED = 64  # up to this sigma a tail is summed; above, the normal tail bounds it closely


def laplace_tail(scale: Fraction, start: int) -> arb:
    """P[noise >= start] of discrete Laplace noise: a^start/(1 + a), a = e^{-1/scale}; 1 from 0 downwards."""
    if start <= 0:
        return arb(1)
    with precision(_BITS):
        return exponential(-start / scale) / (1 + exponential(-1 / scale))


def gaussian_tail(variance: Fraction, start: int) -> arb:
    """At least P[noise >= start] of discrete Gaussian noise; 1 from 0 downwards.

    The masses are summed up to where a geometric series bounds the rest. For a large sigma each is at
    most e^{1/(8 variance)} times the normal mass of its unit interval (docs/guarantees/gaussian.md).
    """
    if start <= 0:
        return arb(1)
    with precision(_BITS):
        if variance > _SUMMED**2:
            place = ball(Fraction(2 * start - 1, 2)) / (2 * ball(variance)).sqrt()
            return exponential(1 / (8 * variance)) * place.erfc() / 2
        last = start + 16 * (math.isqrt(math.floor(variance)) + 1)
        tail = sum((_mass(variance, k) for k in range(start, last)), arb(0))
        rest = _mass(variance, last) / (1 - exponential(-(2 * last + 1) / (2 * variance)))
        reach = 16 * (math.isqrt(math.floor(variance)) + 1)
        whole = 1 + 2 * sum((_mass(variance, k) for k in range(1, reach)), arb(0))  # what is left out is safe
        return (tail + rest) / whole


def _mass(variance: Fraction, k: int) -> arb:
    return exponential(-Fraction(k * k) / (2 * variance))


def any_of(chance: arb, count: int) -> arb:
    """1 - (1 - chance)^count: that at least one of so many independent events happens."""
    with precision(_BITS):
        return arb(1) if chance >= 1 else -(count * (-chance).log1p()).expm1()
