"""Intervals of differences and ratios from the intervals of what is compared, at the same confidence.

The method of variance estimates recovery: where two errors are independent, the distances of a difference
from the ends of its interval are the roots of the sums of squares of those of its parts (Zou, Donner 2008,
Statistics in Medicine 27), and a ratio r is in its interval if 0 is in that of first - r second (Donner, Zou
2012, Statistics in Medicine 31). No shape is lost: a lopsided interval stays so, and one without end, where
an estimate is lost in noise, makes the result one without end.

Errors that are not independent can at worst add up: then distances are added. For standard deviations that
is Minkowski's inequality, so for Gaussian noise the interval holds at least as often as its parts'.
"""

import numpy as np
from numpy.typing import NDArray

from sourdine.tables.answers.estimate import Floats, GroupEstimate


def difference(first: GroupEstimate, second: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """first - second.

    >>> one, two = (GroupEstimate(*np.array([[x], [x - r], [x + r]])) for x, r in [(9.0, 3.0), (5.0, 4.0)])
    >>> difference(one, two).lower, difference(one, two, independent=False).upper
    (array([-1.]), array([11.]))
    """
    value = first.value - second.value
    below = _together(first.value - first.lower, second.upper - second.value, independent)
    above = _together(first.upper - first.value, second.value - second.lower, independent)
    return GroupEstimate(value, value - below, value + above)


def total(each: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """The sum over the groups, as one."""
    value = each.value.sum(keepdims=True)
    sides = each.value - each.lower, each.upper - each.value
    below, above = (
        np.sqrt(np.square(side).sum(keepdims=True)) if independent else side.sum(keepdims=True)
        for side in sides
    )
    return GroupEstimate(value, value - below, value + above)


def ratio(first: GroupEstimate, second: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """first / second; from minus to plus infinity where the second may be 0.

    >>> one, two = (GroupEstimate(*np.array([[x], [x - 1.0], [x + 1.0]])) for x in (10.0, 5.0))
    >>> ratio(one, two).lower.round(3), ratio(one, two).upper.round(3)
    (array([1.619]), array([2.547]))
    """
    negative = second.upper < 0
    top, bottom = _turned(first, negative), _turned(second, negative)
    unknown = ~(bottom.lower > 0) | ~np.isfinite(top.lower) | ~np.isfinite(top.upper)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(second.value == 0, 0.0, first.value / np.where(second.value == 0, 1.0, second.value))
        lower = _lower(top, bottom, independent)
        upper = -_lower(_turned(top, np.ones_like(negative, dtype=bool)), bottom, independent)
    return GroupEstimate(
        value,
        np.where(unknown | np.isnan(lower), -np.inf, np.minimum(lower, value)),
        np.where(unknown | np.isnan(upper), np.inf, np.maximum(upper, value)),
    )


def share(part: GroupEstimate, rest: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """part / (part + rest), none of them truly below 0: between 0 and 1, which rises with part over rest.

    What cannot be told apart from 0 over 0 is between both ends.
    """
    part, rest = (each.within(0.0) for each in (part, rest))
    blind = (part.lower <= 0) & (rest.lower <= 0)
    over = ratio(rest, part, independent=independent)
    under = ratio(part, rest, independent=independent)
    with np.errstate(divide="ignore", invalid="ignore"):
        both = part.value + rest.value
        value = np.where(both > 0, part.value / np.where(both > 0, both, 1.0), 0.5)
        upper = np.where(rest.lower > 0, 1 - 1 / (1 + under.upper), 1 / (1 + np.maximum(over.lower, 0)))
        lower = np.where(part.lower > 0, 1 / (1 + over.upper), 1 - 1 / (1 + np.maximum(under.lower, 0)))
    return GroupEstimate(
        value,
        np.where(blind, 0.0, np.clip(np.nan_to_num(lower, nan=0.0), 0, value)),
        np.where(blind, 1.0, np.clip(np.nan_to_num(upper, nan=1.0), value, 1)),
    )


def _together(one: Floats, other: Floats, independent: bool) -> Floats:
    both: Floats = np.hypot(one, other) if independent else one + other
    return both


def _turned(each: GroupEstimate, negative: NDArray[np.bool_]) -> GroupEstimate:
    """The same times -1 where asked for, the ends exchanged."""
    return GroupEstimate(
        np.where(negative, -each.value, each.value),
        np.where(negative, -each.upper, each.lower),
        np.where(negative, -each.lower, each.upper),
    )


def _lower(top: GroupEstimate, bottom: GroupEstimate, independent: bool) -> Floats:
    """The least ratio, of a bottom that is above 0.

    It solves (t - r b)² = (t - lower t)² + r² s², s being the side of the bottom's interval that makes the
    ratio small: the upper one where the ratio is not negative.
    """
    positive = top.lower >= 0
    if not independent:
        least: Floats = top.lower / np.where(positive, bottom.upper, bottom.lower)
        return least
    side = np.where(positive, bottom.upper - bottom.value, bottom.value - bottom.lower)
    square = bottom.value**2 - side**2
    rest = top.lower * (2 * top.value - top.lower)
    product = top.value * bottom.value
    root = np.sqrt(np.maximum(product**2 - square * rest, 0.0))
    end: Floats = np.where(positive, rest / (product + root), (product - root) / square)
    return np.where(positive & (product + root == 0), 0.0, end)
