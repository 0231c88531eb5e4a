"""The least noise for a distance and a part of the budget."""

import math
from fractions import Fraction

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
