"""Groups of units that must be protected together."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sourdine.accounting.accountant import without_delta
from sourdine.accounting.points import points
from sourdine.accounting.rounding import exactly, float_above
from sourdine.accounting.worst import worst
from sourdine.core import check
from sourdine.core.distance import Distance, Norm
from sourdine.core.laws import AtomLaw, Floats, Law
from sourdine.core.loss import Loss

_MOST = 1 << 30
_POINTS = 3000
_LARGEST = 600.0  # losses of a group beyond it count as infinite
_ROUNDING = 1e-11  # sums of some 6000 masses err by 1.4e-12, a normal tail by 1e-13 of itself


def group_distance(distance: Distance, size: int) -> Distance:
    """How far inputs move when up to `size` units change: exact, and the way to go where nothing is sampled.

    By the triangle inequality, `size` times as far, and `size` times as many numbers change. Do not use it
    under sampling, where several of the group may be drawn, or none: use `group` on the sampled loss.

    >>> group_distance(Distance.l2(1), 3).amount
    Fraction(9, 1)
    """
    size = check.integer("group_distance", "size", size, 1, _MOST)
    factor = size**2 if distance.norm is Norm.L2 else size
    numbers = None if distance.coordinates is None else distance.coordinates * size
    return replace(distance, amount=distance.amount * factor, coordinates=numbers)


def group(loss: Loss, size: int) -> Loss:
    """The loss for up to `size` units that change together, from the loss for one alone.

    epsilon becomes size * epsilon, rho becomes size^2 * rho (Bun and Steinke 2016, proposition 1.9), and each
    point (x, delta) of the profile becomes (size x, delta (e^{size x} - 1)/(e^x - 1)) (Vadhan 2017, lemma
    2.2). The law is that of the convex hull of these points.

    >>> group(Loss.pure(Fraction(1, 2)), 3).epsilon
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


def _grouped(base: Law, epsilon: Fraction | float, size: int) -> AtomLaw:
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
    return _hull_law(size * losses, deltas)


def _hull_law(epsilons: Floats, deltas: Floats) -> AtomLaw:
    """The law whose profile is the largest convex one below these points and below 1 at the far left."""
    x = np.concatenate([[0.0], np.exp(epsilons)])
    y = np.concatenate([[1.0], deltas])
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and _turns_down(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    slopes = np.minimum(np.diff(y[kept]) / np.diff(x[kept]), 0.0)
    mass = np.maximum(np.diff(np.append(slopes, 0.0)), 0.0)
    corners = np.array(kept[1:])
    infinite = min(1.0, float(y[corners[-1]]) * (1 + _ROUNDING))
    return AtomLaw(epsilons[corners - 1], x[corners] * mass * (1 + _ROUNDING), mass, infinite)


def _turns_down(x: Floats, y: Floats, first: int, middle: int, last: int) -> bool:
    """Whether the middle point lies on or above the chord of the other two."""
    left = (y[middle] - y[first]) * (x[last] - x[middle])
    right = (y[last] - y[middle]) * (x[middle] - x[first])
    return bool(left >= right)
