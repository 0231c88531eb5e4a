"""The loss on a sample of fixed size, drawn without replacement."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sourdine.accounting.accountant import exactly
from sourdine.accounting.joint import either_order
from sourdine.accounting.subsampling.poisson import PoissonAdd, PoissonRemove, amplified
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import LossDistribution, Pair, float_above
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss


@dataclass(frozen=True)
class FixedSizeLaw(LossDistribution):
    """The law of (1-q) Q + q P against Q where the loss is positive, of P against (1-q) P + q Q below.

    Zhu, Dong, Wang 2022, theorem 11. Both have the profile q delta(0) at 0; there the slope of the first is
    -Q[L > 0], above that of the second, -(1-q) P[L >= 0] - q Q[L >= 0], so that together they are convex: a
    law, with an atom at 0.
    """

    base: LossDistribution
    rate: float

    @cached_property
    def higher(self) -> PoissonRemove:
        """The law of the positive losses."""
        return PoissonRemove(self.base, self.rate)

    @cached_property
    def lower(self) -> PoissonAdd:
        """The law of the negative losses."""
        return PoissonAdd(self.base, self.rate)

    @property
    def unsampled(self) -> LossDistribution:
        return self.base

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return min(self.lower.lowest, 0.0)

    @property
    def highest(self) -> float:  # type: ignore[override]
        return max(self.higher.highest, 0.0)

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self.higher.infinite

    def survival(self, loss: ArrayLike) -> Pair:
        high, low = self.higher.survival(loss), self.lower.survival(loss)
        positive = np.asarray(loss, float) >= 0
        return Pair(np.where(positive, high.p, low.p), np.where(positive, high.q, low.q))

    def cumulative(self, loss: ArrayLike) -> Pair:
        """What survival leaves: the pieces differ in what Q has at minus infinity, and must fit together."""
        above, whole = self.survival(loss), self.survival(-np.inf)
        return Pair(np.maximum(whole.p - above.p, 0.0), np.maximum(whole.q - above.q, 0.0))


def fixed_size(loss: PrivacyLoss, batch_size: int, size: int) -> PrivacyLoss:
    """The loss on `batch_size` units drawn from `size` without replacement, for replacement neighbours.

    The loss must itself be for replacement: in the sample, one unit's record changes into another, so a sum
    of records clipped to C moves by 2C. With q = batch_size/size, epsilon becomes
    log(1 + q (e^epsilon - 1)) and delta q delta (Balle, Barthe, Gaboardi 2018, theorem 9).

    >>> round(fixed_size(PrivacyLoss.pure(1, neighbours=Neighbours.REPLACE), 10, size=1000).epsilon, 6)
    0.017037
    """
    size = check.integer("fixed_size", "size", size, 1, 2**62)
    batch_size = check.integer("fixed_size", "batch_size", batch_size, 1, size)
    if loss.neighbours is not Neighbours.REPLACE:
        raise UnsupportedLoss(
            f"A sample of fixed size amplifies losses for replacement neighbours, and this one is for "
            f"{loss.neighbours}. State the distance with neighbours=Neighbours.REPLACE."
        )
    rate = Fraction(batch_size, size)
    if rate == 1:
        return loss
    law = FixedSizeLaw(either_order(loss).remove, float_above(rate))
    return replace(
        loss,
        remove=law,
        add=law,
        epsilon=amplified(loss.epsilon, rate),
        rho=math.inf,
        delta=rate * exactly(loss.delta),
    )
