"""Accountants of mechanisms known by one epsilon each: pure ones, which add up, and those with a delta."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from sourdine.accounting.accountant import Accountant, Bracket, check_delta, same_relation, with_margin
from sourdine.accounting.pld.accountant import PLD, PldCost
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import AtomLaw, float_above, pure_law, response_odds
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss

_ROUNDING = 1e-14


class Point(NamedTuple):
    """One point of a privacy profile."""

    epsilon: Fraction | float
    delta: Fraction | float


class PointLaw(AtomLaw):
    """The law that dominates every (epsilon, delta)-DP mechanism.

    With probability delta it tells everything; else it is randomized response at epsilon (Kairouz, Oh,
    Viswanath 2015).
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        self.point = Point(epsilon, delta)
        likely, unlikely = ((1 - delta) * each for each in response_odds(epsilon))
        super().__init__([-epsilon, epsilon], [unlikely, likely], [likely, unlikely], delta)


def known(
    epsilon: Fraction | float, delta: Fraction | float, *, neighbours: Neighbours = Neighbours.ADD_REMOVE
) -> PrivacyLoss:
    """The loss of a mechanism of which only one (epsilon, delta) is known.

    >>> round(float(known(1, 1e-5).profile(1.0)), 9)
    1e-05
    """
    exact = check.between("known", "epsilon", epsilon, Fraction(0), Fraction(1 << 20))
    chance = check.rational("known", "delta", delta)
    check_delta("known", float(chance))
    if chance == 0:
        return PrivacyLoss.pure(exact, neighbours=neighbours)
    law = PointLaw(float_above(exact), float_above(chance))
    return PrivacyLoss.symmetric(law, neighbours=neighbours)


def known_at(loss: PrivacyLoss, delta: float) -> PrivacyLoss:
    """All that is left of a loss once only its least epsilon at one delta is told."""
    delta = check_delta("known_at", delta)
    low, high = 0.0, 1.0
    if delta == 0 and loss.epsilon == math.inf:
        remedy = "Without a delta this loss has no epsilon. A common choice is 1e-6."
        raise check.fail("known_at", "delta", "be above 0", delta, remedy)
    while float(loss.profile(high)) > delta and high < 1 << 20:
        low, high = high, 2 * high
    if float(loss.profile(high)) > delta:
        remedy = "Some outcomes are possible for one neighbour only. Ask at a larger delta."
        raise check.fail("known_at", "delta", "be at least the chance of an infinite loss", delta, remedy)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if float(loss.profile(middle)) <= delta else (middle, high)
    return known(min(high, loss.epsilon), delta, neighbours=loss.neighbours)


@dataclass(frozen=True)
class ApproximateCost:
    """The points paid, each with its count."""

    neighbours: Neighbours
    points: tuple[tuple[Point, int], ...]


@dataclass(frozen=True, kw_only=True)
class Approximate(Accountant[ApproximateCost]):
    """Composes (epsilon, delta) pairs optimally: no better answer follows from the pairs alone.

    With probability 1 - prod (1 - delta_i) some pair tells everything; else all are randomized responses,
    composed as privacy loss distributions. That is what Kairouz, Oh, Viswanath 2015, theorem 3.3, state for
    equal pairs and Murtagh and Vadhan 2016 for any. Valid for pairs fixed beforehand.

    >>> many = Approximate().repeat(Approximate().lift(known(0.1, 1e-8)), 100)
    >>> round(Approximate().epsilon(many, 1e-5).upper, 1)
    4.3
    """

    width: float = 1e-3

    def __post_init__(self) -> None:
        check.keep(self, width=float(check.positive("Approximate", "width", self.width, 1)))

    def lift(self, loss: PrivacyLoss) -> ApproximateCost:
        if isinstance(loss.remove, PointLaw) and loss.add is loss.remove:
            point = loss.remove.point
        elif loss.epsilon != math.inf:
            point = Point(loss.epsilon, loss.delta)
        else:
            raise UnsupportedLoss(
                "This loss has a whole curve of epsilons and deltas, and this accountant takes one pair. "
                "Choose one with known_at(loss, delta), or use PLD, which keeps the curve."
            )
        exact = Point(*(check.rational("Approximate", "point", number) for number in point))
        return ApproximateCost(loss.neighbours, ((exact, 1),))

    def join(self, first: ApproximateCost, second: ApproximateCost) -> ApproximateCost:
        relation = same_relation(first.neighbours, second.neighbours)
        counts: Counter[Point] = Counter()
        for point, count in first.points + second.points:
            counts[point] += count
        return ApproximateCost(relation, tuple(sorted(counts.items())))

    def epsilon(self, cost: ApproximateCost, delta: float) -> Bracket:
        """Infinite below the delta that the pairs spend already."""
        delta = check_delta("Approximate", delta)
        plain = float_above(Fraction(sum(count * Fraction(point.epsilon) for point, count in cost.points)))
        low, high = _left(cost, delta)
        if high < 0:
            return Bracket(math.inf, math.inf)
        lower, upper = 0.0, plain if low >= 0 else math.inf
        accountant = PLD(width=self.width)
        if high > 0:
            lower = accountant.epsilon(_responses(cost), min(high, 1.0 - 1e-12)).lower
        if low > 0:
            upper = min(upper, accountant.epsilon(_responses(cost), low).upper)
        return Bracket(min(lower, upper), upper)

    def delta(self, cost: ApproximateCost, epsilon: float) -> Bracket:
        epsilon = float(check.rational("Approximate", "epsilon", epsilon))
        bracket = PLD(width=self.width).delta(_responses(cost), epsilon)
        rest = 1 - _spent(cost)
        lower, upper = (1 - rest * (1 - end) for end in (bracket.lower, bracket.upper))
        return Bracket(max(0.0, lower - _ROUNDING), min(1.0, upper + _ROUNDING))


def _responses(cost: ApproximateCost) -> PldCost:
    """What the pairs do when they do not tell everything: randomized response."""
    losses = [
        (PrivacyLoss.pure(point.epsilon, neighbours=cost.neighbours), count) for point, count in cost.points
    ]
    return PldCost(cost.neighbours, tuple(losses))


def _spent(cost: ApproximateCost) -> float:
    """1 - prod (1 - delta_i): how likely it is that some pair tells everything."""
    return -math.expm1(sum(count * math.log1p(-float(point.delta)) for point, count in cost.points))


def _left(cost: ApproximateCost, delta: float) -> tuple[float, float]:
    """The delta left to the rest, (delta - spent)/(1 - spent), rounded down and up."""
    spent = _spent(cost)
    if spent == 0:
        return delta, delta
    slack = _ROUNDING * delta
    return (delta - spent - slack) / (1 - spent), (delta - spent + slack) / (1 - spent)


def advanced_composition(epsilon: float, delta: float, count: int, slack: float) -> Point:
    """The classical bound on `count` uses of an (epsilon, delta)-DP mechanism, kept for teaching.

    epsilon' = sqrt(2 k log(1/slack)) epsilon + k epsilon (e^epsilon - 1) and delta' = k delta + slack (Dwork
    and Roth 2014, theorem 3.20). `Approximate` is never worse.

    >>> round(advanced_composition(0.1, 0, 100, 1e-6).epsilon, 3)
    6.308
    """
    one = float_above(check.positive("advanced_composition", "epsilon", epsilon, 500))
    times = check.integer("advanced_composition", "count", count, 1, 2**62)
    each = check_delta("advanced_composition", delta)
    rest = float(check.inside("advanced_composition", "slack", slack, 0, 1))
    total = math.sqrt(2 * times * math.log(1 / rest)) * one + times * one * math.expm1(one)
    return Point(with_margin(total, 0.0), min(1.0, with_margin(times * each + rest, 0.0)))


@dataclass(frozen=True)
class PureCost:
    """A sum of epsilons, and of the deltas of losses that have one, exact."""

    neighbours: Neighbours
    epsilon: Fraction
    delta: Fraction = Fraction(0)


@dataclass(frozen=True)
class Pure(Accountant[PureCost]):
    """Adds epsilons, exactly; valid for adaptive spending.

    Mechanisms of epsilon_1, epsilon_2, ... together are (epsilon_1 + epsilon_2 + ...)-DP (Dwork and Roth
    2014, theorem 3.14), and their deltas add up (theorem 3.16). Nothing is known from below, so the bracket
    begins at 0.

    >>> cost = Pure().repeat(Pure().lift(PrivacyLoss.pure(Fraction(1, 20))), 20)
    >>> cost.epsilon, Pure().epsilon(cost, 0.0).upper
    (Fraction(1, 1), 1.0)
    """

    def lift(self, loss: PrivacyLoss) -> PureCost:
        if loss.epsilon == float("inf"):
            raise UnsupportedLoss(
                "This loss has no finite epsilon, as with Gaussian noise. "
                "Use an accountant that takes a delta: PLD, Renyi or ZeroConcentrated."
            )
        epsilon, delta = (check.rational("Pure", "epsilon", number) for number in (loss.epsilon, loss.delta))
        return PureCost(loss.neighbours, epsilon, delta)

    def join(self, first: PureCost, second: PureCost) -> PureCost:
        relation = same_relation(first.neighbours, second.neighbours)
        return PureCost(relation, first.epsilon + second.epsilon, first.delta + second.delta)

    def epsilon(self, cost: PureCost, delta: float) -> Bracket:
        """The sum, at every delta that is not below that of the losses."""
        if Fraction(check_delta("Pure", delta)) < cost.delta:
            return Bracket(0.0, math.inf)
        return Bracket(0.0, float_above(cost.epsilon))

    def delta(self, cost: PureCost, epsilon: float) -> Bracket:
        """At most what randomized response of the summed epsilon has, and the deltas of the losses."""
        spent = float_above(cost.delta)
        if check.rational("Pure", "epsilon", epsilon) >= cost.epsilon:
            return Bracket(0.0, min(1.0, spent))
        law = pure_law(float_above(cost.epsilon))
        return Bracket(0.0, min(1.0, with_margin(spent + float(law.profile(float(epsilon))))))
