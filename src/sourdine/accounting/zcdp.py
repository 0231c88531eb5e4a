"""The accountant of zero-concentrated differential privacy: rhos add up."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sourdine.accounting.accountant import (
    Accountant,
    Bracket,
    check_delta,
    left_of,
    same_relation,
    with_margin,
)
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats, RhoLaw, float_above
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss

_LESS_ONE = np.geomspace(1e-12, 1e12, 481)  # orders, less one, at the first look


@dataclass(frozen=True)
class RhoCost:
    """A sum of rhos, and of the deltas of losses that have one, exact."""

    neighbours: Neighbours
    rho: Fraction
    delta: Fraction = Fraction(0)


@dataclass(frozen=True)
class ZeroConcentrated(Accountant[RhoCost]):
    """Adds rhos, exactly; valid for adaptive spending.

    Mechanisms of rho_1, rho_2, ... together are (rho_1 + rho_2 + ...)-zCDP (Bun and Steinke 2016, lemma
    1.7), hence (epsilon, delta)-DP with epsilon the least over orders a > 1 of
    a rho + log(1 - 1/a) - log(a delta)/(a - 1) (Canonne, Kamath, Steinke 2020, proposition 12). Losses that
    hold outside events of delta_1, delta_2, ... leave delta - (delta_1 + delta_2 + ...) for that
    (docs/guarantees/ledger.md).

    >>> cost = ZeroConcentrated().repeat(ZeroConcentrated().lift(PrivacyLoss.pure(Fraction(1, 10))), 100)
    >>> cost.rho, round(ZeroConcentrated().epsilon(cost, 1e-6).upper, 4)
    (Fraction(1, 2), 5.2215)
    """

    def lift(self, loss: PrivacyLoss) -> RhoCost:
        if loss.rho == float("inf"):
            raise UnsupportedLoss(
                "This loss has no finite rho: sampling has none, nor has a mechanism known by one delta. "
                "Use PLD or Renyi."
            )
        rho, delta = (check.rational("ZeroConcentrated", "rho", number) for number in (loss.rho, loss.delta))
        return RhoCost(loss.neighbours, rho, delta)

    def join(self, first: RhoCost, second: RhoCost) -> RhoCost:
        relation = same_relation(first.neighbours, second.neighbours)
        return RhoCost(relation, first.rho + second.rho, first.delta + second.delta)

    def epsilon(self, cost: RhoCost, delta: float) -> Bracket:
        delta = left_of(above_zero("ZeroConcentrated", delta), cost.delta)
        if delta < 0 or (delta == 0 and cost.rho > 0):
            return Bracket(0.0, math.inf)
        if cost.rho == 0:
            return Bracket(0.0, 0.0)
        rho = float_above(cost.rho)
        less_one = _LESS_ONE  # any order is a bound; the best is found in three looks
        bounds = tight_epsilon(1 + less_one, (1 + less_one) * rho, delta)
        for _ in range(2):
            best = int(np.argmin(bounds))
            less_one = np.geomspace(less_one[max(best - 1, 0)], less_one[min(best + 1, 480)], 481)
            bounds = tight_epsilon(1 + less_one, (1 + less_one) * rho, delta)
        return Bracket(0.0, with_margin(max(0.0, float(np.min(bounds))), rho))

    def delta(self, cost: RhoCost, epsilon: float) -> Bracket:
        epsilon = float(check.rational("ZeroConcentrated", "epsilon", epsilon))
        spent = float_above(cost.delta)
        if cost.rho == 0:
            return Bracket(0.0, min(1.0, max(0.0, -float(np.expm1(epsilon))) + spent))
        delta = float(RhoLaw(float_above(cost.rho)).profile(epsilon))
        return Bracket(0.0, min(1.0, (delta + spent) * (1 + 1e-9)))


def above_zero(owner: str, delta: float) -> float:
    """A delta in (0, 1): what an accountant of moments needs."""
    if check_delta(owner, delta) == 0:
        remedy = "Noise with Gaussian tails has no epsilon at delta 0. A common choice is 1e-6."
        raise check.fail(owner, "delta", "be above 0", delta, remedy)
    return float(delta)


def tight_epsilon(orders: Floats, divergences: Floats, delta: float) -> Floats:
    """What Renyi divergences at these orders say about epsilon, order by order.

    Canonne, Kamath, Steinke 2020, proposition 12.
    """
    less_one = orders - 1
    bounds: Floats = divergences + np.log(less_one / orders) - (np.log(orders) + np.log(delta)) / less_one
    return bounds
