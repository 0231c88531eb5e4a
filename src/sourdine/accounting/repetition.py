"""The best of a secret, random number of private runs, of which nothing else is told: what it loses.

After each run a coin stops with probability 1/mean. docs/guarantees/selection.md proves what follows.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sourdine.accounting.accountant import exactly, with_margin, without_delta
from sourdine.accounting.joint import points, worst
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.rdp.moments import log_moments
from sourdine.accounting.spend import Spend, plan_cost
from sourdine.accounting.transforms import hull_law
from sourdine.core import check
from sourdine.core.distributions import AtomLaw, Floats, LossDistribution, float_above
from sourdine.core.loss import PrivacyLoss

MOST_RUNS = 1 << 20
_POINTS = 3000
_LARGEST = 500.0
_ROUNDING = 1e-11
_HALVINGS = 40
_OTHER_ORDERS = 1 + np.geomspace(0.1, 500, 80)


class BestLaw(AtomLaw):
    """The law of the best of several runs, by its profile; its moments follow from those of one run."""

    def __init__(self, base: LossDistribution, mean: Fraction, hull: AtomLaw) -> None:
        losses, masses = hull.atoms
        super().__init__(losses, masses.p, masses.q, hull.infinite)
        self.base, self.mean = base, mean


@log_moments.register
def _(law: BestLaw, orders: Floats) -> Floats:
    """(a-1) r(a) + log m + 2 (a-1) min over b of (1 - 1/b) r(b) + log(m)/b, with r those of one run.

    Papernot and Steinke 2022, theorem 2, at eta = 1 and gamma = 1/m, where the number of runs is geometric.
    """
    log_mean = math.log(law.mean) * (1 + 1e-12)
    others = log_moments(law.base, _OTHER_ORDERS) / (_OTHER_ORDERS - 1)
    least = float(np.min((1 - 1 / _OTHER_ORDERS) * others + log_mean / _OTHER_ORDERS))
    best: Floats = (log_moments(law.base, orders) + log_mean + 2 * (orders - 1) * least) * (1 + 2.0**-46)
    return best


def best_of(loss: PrivacyLoss, mean: Fraction | float) -> PrivacyLoss:
    """The loss of telling only the best of K runs, where K is secret and geometric with a mean.

    With delta(x) the profile of one run, in the worse direction, delta(x + 2y) <= mean * delta(x) for every x
    and each y >= 0 with (mean - 1) delta(y) <= e^y - 1. A pure epsilon becomes three of them.

    >>> best_of(PrivacyLoss.pure(Fraction(1, 2)), 10).epsilon
    Fraction(3, 2)
    """
    average = check.between("best_of", "mean", mean, Fraction(1), Fraction(MOST_RUNS))
    without_delta("the best of several runs", loss, "State it without a delta of its own.")
    if average == 1:
        return loss
    base = worst([loss.remove, loss.add])
    law = BestLaw(base, average, _hull(base, loss.epsilon, average))
    epsilon = 3 * exactly(loss.epsilon)
    rho = math.inf if epsilon == math.inf else epsilon**2 / 2
    return PrivacyLoss.symmetric(law, neighbours=loss.neighbours, epsilon=epsilon, rho=rho)


def best_epsilon(spends: Sequence[Sequence[Spend]], mean: Fraction | float, delta: float) -> float:
    """An epsilon of the best of K runs, each with the spends of one of several settings; rounded up.

    Which setting a run has is drawn without looking at data. It is sharper than `best_of`, as the profile of
    each setting is found at one delta at a time.

    >>> from sourdine.core.distance import Distance
    >>> from sourdine.mechanisms import Laplace
    >>> run = Spend(mechanism=Laplace(scale=1), distance=Distance.l1(1))
    >>> 1 < best_epsilon([[run]], 10, 1e-9) <= 3
    True
    """
    average = check.between("best_epsilon", "mean", mean, Fraction(1), Fraction(MOST_RUNS))
    most = float(check.inside("best_epsilon", "delta", delta, 0, 1))
    accountant = PLD()
    costs = [plan_cost(list(each), accountant) for each in spends]

    def epsilon(at: float) -> float:
        return max(accountant.epsilon(cost, at).upper for cost in costs)

    alone = epsilon(most * float(1 / average) * (1 - 1e-9))
    if average == 1:
        return alone
    # each delta gives a y that holds: its epsilon, or where that is too little log(1 + (mean - 1) delta)
    low, high = math.log(1e-12 / float(average)), 0.0
    best = math.inf
    for _ in range(_HALVINGS // 3):
        middle = (low + high) / 2
        least = math.log1p(float(average - 1) * math.exp(middle)) * (1 + 1e-9)
        epsilon_there = epsilon(math.exp(middle))
        best = min(best, max(epsilon_there, least))
        low, high = (middle, high) if epsilon_there > least else (low, middle)
    return with_margin(alone + 2 * best)


def _hull(base: LossDistribution, epsilon: Fraction | float, mean: Fraction) -> AtomLaw:
    top = min(base.highest, _LARGEST)
    if epsilon != math.inf:
        top = min(top, float_above(epsilon))
    shift = 2 * _shift(base, mean, top)
    losses = points(base, top, _POINTS)
    slack = _ROUNDING * base.survival(losses).p
    deltas = (base.profile(losses) + slack) * float(mean) * (1 + _ROUNDING) + 1e-300
    if epsilon != math.inf and losses[-1] >= epsilon:
        deltas[-1] = 0.0
    inside = deltas < 1
    inside[-1] = True
    return hull_law(losses[inside] + shift, np.minimum(deltas[inside], 1.0))


def _shift(base: LossDistribution, mean: Fraction, top: float) -> float:
    """The least y found with (mean - 1) delta(y) <= e^y - 1."""

    def holds(at: float) -> bool:
        delta = float(base.profile(at)) + _ROUNDING * float(base.survival(at).p)
        return float(mean - 1) * delta * (1 + 1e-9) <= math.expm1(at) * (1 - 1e-9)

    low, high = 0.0, max(top, 1e-9)
    while not holds(high):  # beyond the top there may be mass at infinity, which any large y outweighs
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
