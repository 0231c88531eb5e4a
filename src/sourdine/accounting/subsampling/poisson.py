"""From the loss of a mechanism to its loss on a random part of the data."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.accountant import exactly
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import AtomLaw, Floats, LossDistribution, Pair, float_above
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.interval_arithmetic import above as float_of_ball
from sourdine.core.interval_arithmetic import ball, precision
from sourdine.core.loss import PrivacyLoss


@dataclass(frozen=True)
class PoissonRemove(LossDistribution):
    """P = (1-q) Q0 + q P0 against Q = Q0: the unit was there, and drawn with probability q."""

    base: LossDistribution
    rate: float

    @property
    def unsampled(self) -> LossDistribution:
        return self.base

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return float(np.log1p(self.rate * np.expm1(self.base.lowest)))

    @property
    def highest(self) -> float:  # type: ignore[override]
        return float(np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + self.base.highest))

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self.rate * self.base.infinite

    def survival(self, loss: ArrayLike) -> Pair:
        whole, at = self._at(loss)
        return self._above(whole, self.base.survival(at))

    def cumulative(self, loss: ArrayLike) -> Pair:
        whole, at = self._at(loss)
        return self._below(whole, self.base.cumulative(at))

    def both(self, loss: ArrayLike) -> tuple[Pair, Pair]:
        whole, at = self._at(loss)
        above, below = self.base.both(at)
        return self._above(whole, above), self._below(whole, below)

    def _above(self, whole: NDArray[np.bool_], above: Pair) -> Pair:
        p = (1 - self.rate) * above.q + self.rate * above.p
        return Pair(np.where(whole, 1.0, p), np.where(whole, 1.0, above.q))

    def _below(self, whole: NDArray[np.bool_], below: Pair) -> Pair:
        q = below.q + self._lone  # what the base never gives with the unit now has the loss log(1 - q)
        p = (1 - self.rate) * q + self.rate * below.p
        return Pair(np.where(whole, 0.0, p), np.where(whole, 0.0, q))

    @cached_property
    def _lone(self) -> float:
        return lone_mass(self.base)

    def _at(self, loss: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
        """Where everything lies above, and the base's loss log((e^l - 1 + q)/q) elsewhere."""
        loss = np.asarray(loss, float)
        shifted = np.expm1(np.minimum(loss, 600.0)) + self.rate
        whole = shifted <= 0
        at = np.log(np.where(whole, 1.0, shifted)) - np.log(self.rate)
        return whole, np.where(loss > 600.0, loss - np.log(self.rate), at)


@dataclass(frozen=True)
class PoissonAdd(LossDistribution):
    """P = P0 against Q = (1-q) P0 + q Q0: the unit was not there, and would have been drawn so."""

    base: LossDistribution
    rate: float

    @property
    def unsampled(self) -> LossDistribution:
        return self.base

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return -float(np.logaddexp(np.log1p(-self.rate), np.log(self.rate) - self.base.lowest))

    @property
    def highest(self) -> float:  # type: ignore[override]
        if self.base.infinite:
            return -float(np.log1p(-self.rate))
        return -float(np.log1p(self.rate * np.expm1(-self.base.highest)))

    def survival(self, loss: ArrayLike) -> Pair:
        none, at = self._at(loss)
        return self._above(none, self.base.survival(at))

    def cumulative(self, loss: ArrayLike) -> Pair:
        none, at = self._at(loss)
        return self._below(none, self.base.cumulative(at))

    def both(self, loss: ArrayLike) -> tuple[Pair, Pair]:
        none, at = self._at(loss)
        above, below = self.base.both(at)
        return self._above(none, above), self._below(none, below)

    def _above(self, none: NDArray[np.bool_], above: Pair) -> Pair:
        q = (1 - self.rate) * above.p + self.rate * above.q
        return Pair(np.where(none, 0.0, above.p), np.where(none, 0.0, q))

    def _below(self, none: NDArray[np.bool_], below: Pair) -> Pair:
        q = (1 - self.rate) * below.p + self.rate * below.q
        return Pair(np.where(none, 1.0, below.p), np.where(none, 1.0 - self.rate * self._lone, q))

    @cached_property
    def _lone(self) -> float:
        return lone_mass(self.base)

    def _at(self, loss: ArrayLike) -> tuple[NDArray[np.bool_], Floats]:
        """Where nothing lies above, and the base's loss -log((e^-l - 1 + q)/q) elsewhere."""
        loss = np.asarray(loss, float)
        shifted = np.expm1(np.minimum(-loss, 600.0)) + self.rate
        none = shifted <= 0
        at = np.log(self.rate) - np.log(np.where(none, 1.0, shifted))
        return none, np.where(loss < -600.0, loss + np.log(self.rate), at)


def lone_mass(law: LossDistribution) -> float:
    """The mass under Q where P has none, at a loss of minus infinity."""
    start = law.lowest - 1 if math.isfinite(law.lowest) else -1e6
    return max(0.0, 1.0 - float(law.survival(start).q))


def poisson(loss: PrivacyLoss, sampling_rate: Fraction | float) -> PrivacyLoss:
    """The loss on a sample into which each unit comes independently, with the same probability.

    With q the sampling rate, a finite epsilon becomes log(1 + q (e^epsilon - 1)), and a delta of its own q
    delta. The whole law changes in each direction by its own formula: (1-q) Q + q P against Q when a unit
    is removed or left out, P against (1-q) P + q Q when one is added (Zhu, Dong, Wang 2022, theorem 11).
    There is no rho: sampling leaves tails that no rho covers.

    >>> round(poisson(PrivacyLoss.pure(1), Fraction(1, 100)).epsilon, 6)
    0.017037
    """
    exact = check.positive("poisson", "sampling_rate", sampling_rate, 1)
    if loss.neighbours is Neighbours.REPLACE:
        raise UnsupportedLoss(
            f"Poisson sampling amplifies losses for add-remove and zero-out neighbours, and this one is for "
            f"{loss.neighbours}. State the distance for add-remove neighbours, or use fixed_size; for "
            "Gaussian noise there is poisson_replace."
        )
    if exact == 1:
        return loss
    share = float_above(exact)
    return replace(
        loss,
        remove=_removed(loss.remove, share),
        add=_added(loss.add, share),
        epsilon=amplified(loss.epsilon, exact),
        rho=math.inf,
        delta=exact * exactly(loss.delta),
    )


def amplified(epsilon: Fraction | float, rate: Fraction) -> float:
    """log(1 + rate (e^epsilon - 1)), rounded up (Balle, Barthe, Gaboardi 2018)."""
    if epsilon == math.inf:
        return math.inf
    with precision(80 + abs(math.frexp(float(rate))[1])):
        return float_of_ball((ball(rate) * ball(Fraction(epsilon)).expm1()).log1p())


def _removed(base: LossDistribution, rate: float) -> LossDistribution:
    if not isinstance(base, AtomLaw):
        return PoissonRemove(base, rate)
    losses, masses = base.atoms  # atoms stay atoms
    p, lone = (1 - rate) * masses.q + rate * masses.p, lone_mass(base)
    moved = np.log1p(rate * np.expm1(losses))
    return AtomLaw(
        np.append(np.where(losses > 600, losses + np.log(rate), moved), np.log1p(-rate)),
        np.append(p, (1 - rate) * lone),
        np.append(masses.q, lone),
        rate * base.infinite,
    )


def _added(base: LossDistribution, rate: float) -> LossDistribution:
    if not isinstance(base, AtomLaw):
        return PoissonAdd(base, rate)
    losses, masses = base.atoms
    moved = -np.log1p(rate * np.expm1(np.minimum(-losses, 600.0)))
    return AtomLaw(
        np.append(np.where(losses < -600, losses - np.log(rate), moved), -np.log1p(-rate)),
        np.append(masses.p, base.infinite),
        np.append((1 - rate) * masses.p + rate * masses.q, (1 - rate) * base.infinite),
    )
