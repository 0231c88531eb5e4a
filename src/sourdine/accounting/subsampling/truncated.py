"""Poisson batches that are cut to a maximum: no batch ever needs more memory than was declared."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from numpy.typing import ArrayLike

from sourdine.accounting.subsampling.mixture import Mixture, MixtureLaw
from sourdine.accounting.subsampling.poisson import PoissonAdd, PoissonRemove
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw, LossDistribution, Pair, float_above
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.lazy import betainc
from sourdine.core.loss import PrivacyLoss

_ROUNDING = 1e-9  # a binomial tail is good to some 1e-12 of itself


@dataclass(frozen=True)
class EitherLaw(LossDistribution):
    """One law or, with a chance, the other; which of them it is does not depend on the unit, and is told.

    `known` is a law that the true one is nowhere below, where this one is only a bound.
    """

    first: LossDistribution
    second: LossDistribution
    chance: float
    known: LossDistribution

    @property
    def least(self) -> LossDistribution:
        return self.known

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return min(self.first.lowest, self.second.lowest)

    @property
    def highest(self) -> float:  # type: ignore[override]
        return max(self.first.highest, self.second.highest)

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return (1 - self.chance) * self.first.infinite + self.chance * self.second.infinite

    def survival(self, loss: ArrayLike) -> Pair:
        return self._mixed(self.first.survival(loss), self.second.survival(loss))

    def cumulative(self, loss: ArrayLike) -> Pair:
        return self._mixed(self.first.cumulative(loss), self.second.cumulative(loss))

    def _mixed(self, first: Pair, second: Pair) -> Pair:
        t = self.chance
        return Pair((1 - t) * first.p + t * second.p, (1 - t) * first.q + t * second.q)


def truncated_poisson(loss: PrivacyLoss, batch_size: int, size: int, max_batch_size: int) -> PrivacyLoss:
    """The loss on a Poisson sample of `size` units, `batch_size` on average: of more, `max_batch_size` are
    kept.

    For Gaussian noise, and zero-out or add-remove neighbours. Where at least so many others came, a unit that
    is kept pushes another one out, so the sum moves by up to two units with it. How likely that is counts:
    with a maximum of five deviations above the batch it costs next to nothing.

    >>> one = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ZERO_OUT)
    >>> [f"{truncated_poisson(one, 64, 60_000, most).profile(0.1):.0e}" for most in (64, 104)]
    ['3e-05', '4e-09']
    """
    size = check.integer("truncated_poisson", "size", size, 1, 2**50)
    batch_size = check.integer("truncated_poisson", "batch_size", batch_size, 1, size)
    max_batch_size = check.integer("truncated_poisson", "max_batch_size", max_batch_size, batch_size, size)
    if loss.neighbours is Neighbours.REPLACE:
        raise UnsupportedLoss(
            "Truncated Poisson batches are accounted for zero-out and add-remove neighbours, and this loss "
            "is for replacement. State the distance for zero-out neighbours, or draw batches of fixed size."
        )
    law = loss.remove
    if not isinstance(law, GaussianLaw) or loss.add != law:
        raise UnsupportedLoss(
            "The loss on truncated Poisson batches is known for continuous Gaussian noise only. Draw the "
            "batches by Poisson sampling without a maximum."
        )
    if batch_size == size:
        return loss
    rate = float_above(Fraction(batch_size, size))
    if loss.neighbours is Neighbours.ADD_REMOVE:
        others, back = size, 0.0  # without the unit nobody takes its place
    else:
        others, back = size - 1, law.mu
    # of the others alone
    full = betainc(max_batch_size, others - max_batch_size + 1, rate) if max_batch_size <= others else 0.0
    chance = min(1.0, float(full) * (1 + _ROUNDING))
    remove = MixtureLaw(_part(rate, 2 * law.mu), _part(rate, -back))
    add = MixtureLaw(_part(rate, back), _part(rate, -2 * law.mu))
    sure = rate * (1 - chance) * (1 - _ROUNDING)
    return replace(
        loss,
        remove=EitherLaw(PoissonRemove(law, rate), remove, chance, _known(PoissonRemove, law, sure)),
        add=EitherLaw(PoissonAdd(law, rate), add, chance, _known(PoissonAdd, law, sure)),
        epsilon=math.inf,
        rho=math.inf,
    )


def _part(rate: float, shift: float) -> Mixture:
    return Mixture((1 - rate, rate), (0.0, shift)) if shift else Mixture((1.0,), (0.0,))


def _known(
    kind: type[PoissonRemove] | type[PoissonAdd], law: LossDistribution, rate: float
) -> LossDistribution:
    """What others with gradients of 0 make certain: then the unit is all that moves the sum."""
    return kind(law, max(rate, 1e-18))
