"""The accountant of pure differential privacy: epsilons add up."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sourdine.accounting.accountant import Accountant, check_delta, same_relation
from sourdine.accounting.bracket import Bracket
from sourdine.accounting.rounding import float_above, with_margin
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.laws import pure_law
from sourdine.core.loss import Loss


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

    >>> cost = Pure().repeat(Pure().lift(Loss.pure(Fraction(1, 20))), 20)
    >>> cost.epsilon, Pure().epsilon(cost, 0.0).upper
    (Fraction(1, 1), 1.0)
    """

    def lift(self, loss: Loss) -> PureCost:
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
