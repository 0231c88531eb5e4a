"""How often honest reports would ever look like this, however often one looks, at whatever times.

Of reports that come in one by one, let exp(λ S - n ψ(λ)) be a supermartingale for each λ: S a sum over the
first n of them, ψ a bound on the logarithm of each one's moment generating function. A mean of such over some
λ is one as well, starts at 1, and by Ville's inequality ever exceeds 1/c with probability c at most. So
what is returned may be looked at after every report, by however many people (docs/guarantees/poisoning.md).
"""

import math

import numpy as np
from numpy.typing import NDArray

from sourdine.core.lazy import logsumexp

Floats = NDArray[np.float64]
_GRID = 2.0 ** (-np.arange(64) / 2)
"""From the largest λ downwards: for whatever number of reports, one is near the best."""


def chance_of_more(hits: int, reports: int, share: float) -> float:
    """That so many of the reports ever are hits, where each is one with probability `share` at most."""
    rates = (3 - math.log(share)) * _GRID
    return _chance(rates * hits - reports * np.log1p(share * np.expm1(rates)))


def chance_of_fewer(hits: int, reports: int, share: float) -> float:
    """That so few of the reports ever are hits, where each is one with probability `share` at least."""
    rates = (3 - math.log1p(-share)) * _GRID
    return _chance(-rates * hits - reports * np.log1p(share * np.expm1(-rates)))


def chance_of_sum(above: float, below: float, reports: int, variance: float, reach: float) -> float:
    """That the sum ever is as far above the largest mean, or below the least one: Bernstein's bound.

    `above` and `below` are those distances of the sum, perhaps negative, `variance` and `reach` bounds for a
    report.
    """
    rates = 2.7 / reach * _GRID
    bound = reports * variance * rates**2 / (2 * (1 - reach * rates / 3))
    return _chance(np.concatenate([rates * above - bound, rates * below - bound]))


def _chance(logarithms: Floats) -> float:
    """The inverse of their mean, if that is less than 1."""
    return math.exp(min(0.0, math.log(len(logarithms)) - float(logsumexp(logarithms))))
