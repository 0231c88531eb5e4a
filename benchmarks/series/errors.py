"""Errors of totals, periods and windows, in the deviation of one release at the same rho."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from sourdine.mechanisms.correlation import CorrelationMatrix, Participation, PowerMatrix, TreeMatrix
from sourdine.tables.series import SeriesView, choose_matrix
from sourdine.tables.series.choice import spread

ONCE = Participation()
VIEWS = {"totals": SeriesView(), "periods": SeriesView(window=1), "4 periods": SeriesView(window=4)}


def bound(periods: int) -> float:
    """Below this no factorisation of totals gets, on the mean."""
    angles = (2 * np.arange(1, periods + 1) - 1) * math.pi / (4 * periods + 2)
    return float(np.sum(1 / (2 * np.sin(angles)))) / periods


def errors(matrix: CorrelationMatrix, view: SeriesView) -> tuple[float, float]:
    """Root mean square over the periods, and the worst of them."""
    length = math.sqrt(matrix.squared_length(ONCE))
    spreads = np.array([spread(matrix, view, t) for t in view.periods(matrix.periods)]) * length
    return float(np.sqrt(np.mean(spreads**2))), float(spreads.max())


def ours(periods: int, view: SeriesView) -> tuple[str, float, float]:
    """What the planner takes for one kind of question."""
    choice = choose_matrix(periods, (view,), ONCE, squared=True)
    return (choice.name, *errors(choice.matrix, view))


def simple(periods: int, view: SeriesView) -> Iterator[tuple[str, float, float]]:
    """What needs no peer: paying anew, independent periods, the tree, the square root in reals."""
    releases = periods if view.window is None else view.window
    yield "paid anew", math.sqrt(releases), math.sqrt(releases)
    yield ("independent periods", *errors(PowerMatrix(periods, Fraction(0), 1), view))
    yield ("binary tree", *errors(TreeMatrix(periods, 2), view))
    yield ("square root, in reals", *real_root(periods, view))


def real_root(periods: int, view: SeriesView) -> tuple[float, float]:
    """The square root without rounding: the powers of 1 - x, by their recursions."""
    steps = np.arange(1, periods)
    column = np.cumprod(np.concatenate([[1.0], (2 * steps - 1) / (2 * steps)]))
    totals = column  # A C^-1 = C for the square root
    length = math.sqrt(float(np.sum(column**2)))
    if view.window is None:
        norms = np.sqrt(np.cumsum(totals**2)) * length
    else:
        shifted = np.concatenate([np.zeros(view.window), totals[: -view.window]])
        norms = np.sqrt(np.cumsum((totals - shifted) ** 2))[view.window - 1 :] * length
    return float(np.sqrt(np.mean(norms**2))), float(norms.max())
