"""From losses to losses: groups of units, mechanisms on disjoint parts of the data, the best of several runs.

Group privacy protects several units together. Of disjoint parts a unit touches one, or two when it is
replaced. And telling only the best of a random number of private runs costs less than telling all.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement

import numpy as np

from sourdine.accounting.accountant import exactly, same_relation, with_margin, without_delta
from sourdine.accounting.joint import points, unlike, worst
from sourdine.accounting.zcdp import above_zero, tight_epsilon
from sourdine.core import check
from sourdine.core.composed import ComposedDistribution
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.distributions import AtomLaw, Floats, LossDistribution, float_above
from sourdine.core.loss import PrivacyLoss

_MOST = 1 << 30
_POINTS = 3000
_LARGEST = 600.0  # losses of a group beyond it count as infinite
_ROUNDING = 1e-11  # sums of some 6000 masses err by 1.4e-12, a normal tail by 1e-13 of itself


def group_distance(distance: Distance, size: int) -> Distance:
    """How far inputs move when up to `size` units change: exact, and the way to go where nothing is sampled.

    By the triangle inequality, `size` times as far, and `size` times as many numbers change, each by as much
    as that together. Do not use it
    under sampling, where several of the group may be drawn, or none: use `group` on the sampled loss.

    >>> group_distance(Distance.l2(1), 3).amount
    Fraction(9, 1)
    """
    size = check.integer("group_distance", "size", size, 1, _MOST)
    factor = size**2 if distance.norm is Norm.L2 else size
    numbers = None if distance.coordinates is None else distance.coordinates * size
    largest = None if distance.largest is None else distance.largest * size
    return replace(distance, amount=distance.amount * factor, coordinates=numbers, largest=largest)


def group(loss: PrivacyLoss, size: int) -> PrivacyLoss:
    """The loss for up to `size` units that change together, from the loss for one alone.

    epsilon becomes size * epsilon, rho becomes size^2 * rho (Bun and Steinke 2016), and each
    point (x, delta) of the profile becomes (size x, delta (e^{size x} - 1)/(e^x - 1)) (Vadhan 2017).
    The law is that of the convex hull of these points.

    >>> group(PrivacyLoss.pure(Fraction(1, 2)), 3).epsilon
    Fraction(3, 2)
    """
    size = check.integer("group", "size", size, 1, _MOST)
    if size == 1:
        return loss
    without_delta("a group", loss, "State the distance of the whole group, with group_distance.")
    law = _grouped(worst([loss.remove, loss.add]), loss.epsilon, size)
    return replace(
        loss, remove=law, add=law, epsilon=exactly(loss.epsilon) * size, rho=exactly(loss.rho) * size**2
    )


def _grouped(base: LossDistribution, epsilon: Fraction | float, size: int) -> AtomLaw:
    """From neighbour to neighbour, delta adds up, each step weighing e^x times the one before.

    This holds for every real x, so that the hull lies above the true profile, which is convex.
    """
    top = min(base.highest, _LARGEST / size)
    if epsilon != math.inf:
        top = min(top, float_above(epsilon))
    losses = points(base, top, _POINTS)
    losses = losses[losses * size > -18.0]
    factor = np.full(len(losses), float(size))
    moved = np.abs(losses) > 1e-12
    factor[moved] = np.expm1(size * losses[moved]) / np.expm1(losses[moved])
    slack = _ROUNDING * base.survival(losses).p  # a profile is a difference, and errs as its terms do
    deltas = np.minimum((base.profile(losses) + slack) * factor * (1 + _ROUNDING) + 1e-300, 1.0)
    if epsilon != math.inf and losses[-1] >= epsilon:
        deltas[-1] = 0.0
    return hull_law(size * losses, deltas)


def hull_law(epsilons: Floats, deltas: Floats) -> AtomLaw:
    """The law whose profile is the largest convex one below these points and below 1 at the far left."""
    x = np.concatenate([[0.0], np.exp(epsilons)])
    y = np.concatenate([[1.0], deltas])
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1 and _turns_down(x, y, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    slopes = np.minimum(np.diff(y[hull]) / np.diff(x[hull]), 0.0)
    mass = np.maximum(np.diff(np.append(slopes, 0.0)), 0.0)
    corners = np.array(hull[1:])
    infinite = min(1.0, float(y[corners[-1]]) * (1 + _ROUNDING))
    return AtomLaw(epsilons[corners - 1], x[corners] * mass * (1 + _ROUNDING), mass, infinite)


def _turns_down(x: Floats, y: Floats, first: int, middle: int, last: int) -> bool:
    """Whether the middle point lies on or above the chord of the other two."""
    left = (y[middle] - y[first]) * (x[last] - x[middle])
    right = (y[last] - y[middle]) * (x[middle] - x[first])
    return bool(left >= right)


_MOST_PAIRS = 8  # different parts whose pairs are looked at one by one


def parallel(parts: Sequence[PrivacyLoss], crossing: Sequence[PrivacyLoss] = ()) -> PrivacyLoss:
    """The loss of mechanisms that each see one of several parts, disjoint in units.

    *Add-remove and zero-out*: a unit lies in one part, so the cost is that of the worst part (McSherry 2009).

    *Replace*: a unit that is replaced may leave one part and enter another, so the cost is that of the worst
    pair of parts, each at its loss for replacement in the whole data, where a unit may also enter or leave
    that part: the distance of a sum must count a record that is gone, not only one that changed. Where it
    is known what a unit costs that only enters or leaves a part, give those losses, stated for add-remove,
    as `crossing`, in the same order: then the cost is the worse of one part under replacement and a pair
    under crossing.

    >>> from fractions import Fraction
    >>> count = PrivacyLoss.pure(Fraction(1, 2), neighbours=Neighbours.REPLACE)
    >>> parallel([count, count, count]).epsilon
    Fraction(1, 1)
    """
    if not parts:
        raise check.fail("parallel", "parts", "hold at least one loss", list(parts))
    relation = reduce(same_relation, [part.neighbours for part in parts])
    alone = PrivacyLoss(
        remove=worst([part.remove for part in parts]),
        add=worst([part.add for part in parts]),
        neighbours=relation,
        epsilon=max(part.epsilon for part in parts),
        rho=max(part.rho for part in parts),
        delta=max(part.delta for part in parts),
    )
    if relation is not Neighbours.REPLACE:
        if crossing:
            raise check.fail("parallel", "crossing", f"be left out for {relation} neighbours", len(crossing))
        return alone
    if len(parts) == 1:
        return alone
    if not crossing:
        return _pairs(parts)
    if len(crossing) != len(parts):
        raise check.fail("parallel", "crossing", f"hold {len(parts)} losses, one a part", len(crossing))
    if any(loss.neighbours is not Neighbours.ADD_REMOVE for loss in crossing):
        got = sorted({str(loss.neighbours) for loss in crossing})
        raise check.fail("parallel", "crossing", "be stated for add-remove neighbours", got)
    both = _pairs(crossing)
    law = worst([alone.remove, alone.add, both.remove])
    return PrivacyLoss.symmetric(
        law,
        neighbours=relation,
        epsilon=max(alone.epsilon, both.epsilon),
        rho=max(alone.rho, both.rho),
        delta=max(alone.delta, both.delta),
    )


def _pairs(parts: Sequence[PrivacyLoss]) -> PrivacyLoss:
    """The worst pair of different parts, in whichever order."""
    laws = [worst([part.remove, part.add]) for part in parts]
    different = unlike(laws)
    if len(different) > _MOST_PAIRS:
        different = [worst(different)]
    pairs = [
        ComposedDistribution(((one, 1), (other, 1)))
        if one is not other
        else ComposedDistribution(((one, 2),))
        for one, other in combinations_with_replacement(different, 2)
        if one is not other or len(different) == 1 or sum(law == one for law in laws) > 1
    ]
    return PrivacyLoss.symmetric(
        worst(pairs),
        neighbours=Neighbours.REPLACE,
        epsilon=sum(sorted((exactly(part.epsilon) for part in parts), reverse=True)[:2]),
        rho=sum(sorted((exactly(part.rho) for part in parts), reverse=True)[:2]),
        delta=min(1, sum(sorted((exactly(part.delta) for part in parts), reverse=True)[:2])),
    )


def best_of_runs(orders: Floats, divergences: Floats, mean: float, delta: float) -> float:
    """An epsilon of the best of K runs, where one run has these Renyi divergences and only the best is told.

    K must be drawn at random and stay secret: after each run, stop with probability 1/mean. Settings may be
    drawn anew for each run, if the divergences are the largest of all settings. The best then has
    e(a) <= r(a) + 2 (1 - 1/b) r(b) + 2 log(mean)/b + log(mean)/(a - 1) at order a, for every order b
    (Papernot and Steinke 2022, theorem 2, at eta = 1 and gamma = 1/mean, where K is geometric).

    >>> orders = np.arange(2.0, 200)
    >>> round(best_of_runs(orders, orders / 200, mean=10, delta=1e-5), 3)
    0.849
    """
    average = float(check.between("best_of_runs", "mean", mean, Fraction(1), Fraction(2**40)))
    log_mean = float(np.log(average))
    others = 2 * float(np.min((1 - 1 / orders) * divergences + log_mean / orders))
    best = divergences + others + log_mean / (orders - 1)
    bounds = tight_epsilon(orders, best, above_zero("best_of_runs", delta))
    return with_margin(max(0.0, float(np.min(bounds))))
