"""The accountant of Renyi differential privacy: curves of divergences over many orders add up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import numpy as np

from sourdine.accounting.accountant import Accountant, Bracket, left_of, same_relation, with_margin
from sourdine.accounting.rdp.moments import log_moments
from sourdine.accounting.zcdp import above_zero, tight_epsilon
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats, LossDistribution, float_above, pure_law
from sourdine.core.loss import PrivacyLoss


def _dense_orders() -> tuple[float, ...]:
    fractional = 1 + np.geomspace(0.01, 63, 400)
    whole = np.concatenate([np.arange(2, 65), np.rint(np.geomspace(65, 10_000, 100))])
    return tuple(float(order) for order in np.unique(np.concatenate([fractional, whole])))


DENSE_ORDERS = _dense_orders()
SOURCE_ORDERS = tuple(1 + x / 10 for x in range(1, 100)) + tuple(float(x) for x in range(12, 64))
"""The orders of early DP-SGD tools: tenths from 1.1 to 10.9, then 12 to 63."""


class Conversion(StrEnum):
    """How divergences become an epsilon and a delta."""

    TIGHT = "tight"
    MIRONOV = "Mironov 2017"


@dataclass(frozen=True, eq=False)
class RenyiCost:
    """(a-1) times the Renyi divergence at each order, in each direction, and the sum of the deltas."""

    neighbours: Neighbours
    remove: Floats
    add: Floats
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Renyi(Accountant[RenyiCost]):
    """Adds Renyi divergences, order by order; valid for adaptive spending at an order fixed beforehand.

    With r(a) the sum at order a, epsilon is the least over orders of r(a) + log(1 - 1/a) -
    log(a delta)/(a - 1) (Canonne, Kamath, Steinke 2020, proposition 12), or, as older tools have it, of
    r(a) + log(1/delta)/(a - 1) (Mironov 2017, proposition 3). Nothing is known from below. Divergences of
    losses with a delta of their own hold outside an event, and leave the rest of delta for that.

    >>> loss = PrivacyLoss.pure(1)
    >>> round(Renyi().epsilon(Renyi().lift(loss), 1e-6).upper, 3)
    1.0
    """

    orders: Sequence[float] = DENSE_ORDERS
    conversion: Conversion = Conversion.TIGHT
    _orders: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.member("Renyi", "conversion", self.conversion, Conversion)
        orders = tuple(self.orders)
        if not orders:
            raise check.fail("Renyi", "orders", "hold at least one order", orders)
        least, most = 1 + Fraction(1, 10**6), Fraction(10**6)
        exact = tuple(float(check.between("Renyi", "orders", order, least, most)) for order in orders)
        check.keep(self, orders=exact, _orders=np.array(exact))

    def lift(self, loss: PrivacyLoss) -> RenyiCost:
        remove = self._moments(loss, loss.remove)
        add = remove if loss.add is loss.remove else self._moments(loss, loss.add)
        if loss.neighbours is Neighbours.REPLACE:  # which of two records comes first is anybody's guess
            remove = add = np.maximum(remove, add)
        return RenyiCost(loss.neighbours, remove, add, check.rational("Renyi", "delta", loss.delta))

    def _moments(self, loss: PrivacyLoss, law: LossDistribution) -> Floats:
        """The least of what the law, rho and epsilon say."""
        moments = log_moments(law, self._orders)
        moments = np.where(np.isnan(moments), math.inf, moments)  # what is no number promises nothing
        if loss.rho != math.inf:
            rho = float_above(loss.rho)
            moments = np.minimum(moments, self._orders * (self._orders - 1) * rho * (1 + 1e-15))
        if loss.epsilon != math.inf:
            moments = np.minimum(moments, log_moments(pure_law(float_above(loss.epsilon)), self._orders))
        return moments

    def join(self, first: RenyiCost, second: RenyiCost) -> RenyiCost:
        relation = same_relation(first.neighbours, second.neighbours)
        if len(first.remove) != len(second.remove):
            raise check.fail("Renyi", "orders", "be the same for both costs", "other orders")
        delta = first.delta + second.delta
        return RenyiCost(relation, first.remove + second.remove, first.add + second.add, delta)

    def curve(self, cost: RenyiCost) -> Floats:
        """The Renyi divergence at each order: the larger of both directions."""
        return np.maximum(cost.remove, cost.add) / (self._orders - 1)

    def epsilon(self, cost: RenyiCost, delta: float) -> Bracket:
        bounds = self._bounds(cost, delta)
        best = int(np.argmin(bounds))
        return Bracket(0.0, with_margin(max(0.0, float(bounds[best]))))

    def order(self, cost: RenyiCost, delta: float) -> float:
        """The order that gives the epsilon."""
        return float(self._orders[int(np.argmin(self._bounds(cost, delta)))])

    def _bounds(self, cost: RenyiCost, delta: float) -> Floats:
        """What each order says about epsilon."""
        delta = left_of(above_zero("Renyi", delta), cost.delta)
        if delta <= 0:
            return np.full(len(self._orders), math.inf)
        if self.conversion is Conversion.MIRONOV:
            return self.curve(cost) - math.log(delta) / (self._orders - 1)
        return tight_epsilon(self._orders, self.curve(cost), delta)

    def delta(self, cost: RenyiCost, epsilon: float) -> Bracket:
        epsilon = float(check.rational("Renyi", "epsilon", epsilon))
        less_one = self._orders - 1
        log_delta = np.maximum(cost.remove, cost.add) - less_one * epsilon
        if self.conversion is Conversion.TIGHT:
            log_delta += less_one * np.log(less_one) - self._orders * np.log(self._orders)
        upper = math.exp(min(0.0, float(np.min(log_delta)))) + float_above(cost.delta)
        return Bracket(0.0, min(1.0, upper * (1 + 1e-9)))
