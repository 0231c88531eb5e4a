"""Shuffled epochs: every unit in exactly one batch of each pass over the data."""

import math

import numpy as np

from sourdine.accounting.accountant import check_delta
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.lazy import log_ndtr
from sourdine.core.loss import PrivacyLoss

_SMALLEST = 1e-290  # smaller floats lose digits, and what is divided by them overflows


def shuffled_epoch(loss: PrivacyLoss) -> PrivacyLoss:
    """The loss of one pass in shuffled batches: that of one batch, and no less is proven.

    Whatever the order, the unit is in one batch, and the other batches do not depend on it; mixing over
    orders does not raise the profile. This is not Poisson sampling: a rate must not be applied, and
    `shuffled_attack` shows by how much that would be wrong. The loss must be for zero-out or replacement
    neighbours: adding a unit would move the others between batches.

    >>> from sourdine.core.distributions import GaussianLaw
    >>> one = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ZERO_OUT)
    >>> shuffled_epoch(one) is one
    True
    """
    if loss.neighbours is Neighbours.ADD_REMOVE:
        raise UnsupportedLoss(
            "Shuffled batches keep their size, so a unit cannot be added or removed without moving others. "
            "State the distance for zero-out or replacement neighbours, or sample by Poisson."
        )
    return loss


def shuffled_attack(noise_multiplier: float, batches: int, delta: float) -> float:
    """An epsilon that one shuffled epoch of Gaussian noise surely exceeds, for zero-out neighbours.

    All other units pull the other way, so that the batch with the unit stands out by 2 with it and by 1
    without; the attack looks at the largest of all batches (Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha,
    Zhang 2024). The noise is in clipping norms.

    >>> round(shuffled_attack(1.0, 938, 1e-5), 2)
    2.93
    """
    sigma = float(check.positive("shuffled_attack", "noise_multiplier", noise_multiplier))
    others = check.integer("shuffled_attack", "batches", batches, 1, 2**62) - 1
    delta = check_delta("shuffled_attack", delta)
    cuts = np.linspace(-10 * sigma, 2 + 40 * sigma, 100_001)
    rest = others * log_ndtr(cuts / sigma)
    with_unit, without = (-np.expm1(rest + log_ndtr((cuts - shift) / sigma)) for shift in (2, 1))
    large = (with_unit > 2 * delta) & (without > _SMALLEST)
    return max(0.0, float(np.max(np.log((with_unit[large] - delta) / without[large]), initial=-math.inf)))
