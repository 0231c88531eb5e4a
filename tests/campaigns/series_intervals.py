"""How often intervals of a series hold, at one period and at all together: 1,000 seeded series."""

import math
from dataclasses import dataclass

import numpy as np

from sourdine.mechanisms import CorrelatedGaussian
from sourdine.mechanisms.correlation import Participation
from sourdine.tables.series import SeriesView, choose_matrix
from sourdine.tables.series.answers import quantile, row_deviation
from sourdine.tables.series.choice import view_coefficients
from sourdine.testing import SeededBits

_VIEWS = {
    "totals": SeriesView(),
    "periods": SeriesView(window=1),
    "4 periods": SeriesView(window=4),
    "4 periods against 13 before": SeriesView(window=4, against=13),
}
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Coverage:
    """The share of series whose intervals held: at a period, on the mean, and at all periods together."""

    view: str
    alone: float
    joint: float


def coverage(series: int, periods: int = 52) -> list[Coverage]:
    """Each view of so many series, drawn with the matrix that the planner takes for all of them."""
    choice = choose_matrix(periods, tuple(_VIEWS.values()), Participation(), squared=True)
    sigma = 20 * math.isqrt(choice.matrix.squared_length(Participation()))
    mechanism = CorrelatedGaussian.from_matrix(choice.matrix, Participation(), sigma)
    exact = np.random.default_rng(1).poisson(200, (series, periods))
    rows = mechanism.sample(exact, SeededBits(2)).astype(float)
    return [_held(name, view, mechanism, exact, rows) for name, view in _VIEWS.items()]


def _held(
    name: str, view: SeriesView, mechanism: CorrelatedGaussian, exact: np.ndarray, rows: np.ndarray
) -> Coverage:
    told = list(view.periods(mechanism.periods))
    one, every = (quantile(mechanism, CONFIDENCE, many) for many in (1, len(told)))
    alone, joint = [], np.ones(len(exact), bool)
    for period in told:
        weights = view_coefficients(mechanism.matrix, view, period)
        truth = sum(sign * exact[:, first - 1 : last].sum(1) for (first, last), sign in view.spans(period))
        off = np.abs(rows[:, : weights.size] @ weights - truth)
        off /= row_deviation(mechanism) * float(np.linalg.norm(weights))
        alone.append(float((off <= one).mean()))
        joint &= off <= every
    return Coverage(name, float(np.mean(alone)), float(joint.mean()))
