"""What is read off the rows of a series: values with intervals, alone and together over time.

All of it is post-processing. Intervals rest on the covariance of what is read off, sigma^2 B B', never on
sums of variances: values of neighbouring periods share their noise.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import ndtri
from sourdine.mechanisms import CorrelatedGaussian, CorrelatedNoise
from sourdine.mechanisms.correlation import CorrelationMatrix
from sourdine.tables.intervals import worst_noises
from sourdine.tables.series.choice import MatrixChoice, view_coefficients
from sourdine.tables.series.declaration import SeriesCalendar, SeriesView, Span
from sourdine.tables.series.plan import SeriesLine

Floats = NDArray[np.float64]
ENDS = ("value", "lower", "upper", "joint_lower", "joint_upper")
COLUMNS = ("query", "statistic", "key", "view", "period", *ENDS)


@dataclass(frozen=True, eq=False)
class SeriesRows:
    """The noisy rows of one line, by key, and the period at which each key was first measured.

    Before that a key has zeros, which is public: no noise was drawn for it.
    """

    line: SeriesLine
    keys: tuple[tuple[Any, ...], ...]
    rows: NDArray[Any]
    starts: NDArray[np.int64]

    @property
    def matrix(self) -> CorrelationMatrix:
        """What periods were multiplied by."""
        return self.line.mechanism.matrix

    def read(self, weights: Floats) -> Floats:
        """A weighted sum of rows, in the measure of the data, for each key."""
        numbers: Floats = self.rows[:, : weights.size].astype(float) @ weights
        return np.asarray(numbers * self.line.step)

    def deviation(self, weights: Floats) -> Floats:
        """The standard deviation of such a sum, for each key."""
        squares = np.concatenate([[0.0], np.cumsum(weights[::-1] ** 2)])[::-1]
        first = [min(self.matrix.rows_until(start - 1), weights.size) for start in self.starts.tolist()]
        scale = row_deviation(self.line.mechanism) * self.line.step
        return np.asarray(np.sqrt(np.maximum(squares[first], 0.0)) * scale)


@dataclass(frozen=True, eq=False)
class SpanEstimate:
    """A value for each key, with its deviation and an interval."""

    keys: tuple[tuple[Any, ...], ...]
    value: Floats
    deviation: Floats
    lower: Floats
    upper: Floats

    def at(self, *key: object) -> tuple[float, float, float]:
        """The value and the interval of one key."""
        if key not in self.keys:
            raise InvalidParameter("The series has no such key. Its keys are those that are declared.")
        place = self.keys.index(key)
        return float(self.value[place]), float(self.lower[place]), float(self.upper[place])


@dataclass(frozen=True, eq=False)
class SeriesAnswers:
    """Everything that can be read off a series up to a closed period."""

    tables: tuple[SeriesRows, ...]
    views: tuple[SeriesView, ...]
    calendar: SeriesCalendar
    closed: int
    confidence: float
    choice: MatrixChoice

    def table(self, query: str | None = None, label: str | None = None) -> SeriesRows:
        """The rows of one thing that is measured; the first, if nothing is said."""
        for each in self.tables:
            if query in (None, each.line.query) and label in (None, each.line.label):
                return each
        raise InvalidParameter("The series measures no such thing. Name a query of it, and what it asks.")

    # one view at one period

    def value(
        self,
        view: SeriesView,
        period: int | str | None = None,
        *,
        query: str | None = None,
        label: str | None = None,
        joint: bool = False,
    ) -> SpanEstimate:
        """A view at a period (the last that is closed), for each key.

        The interval holds by itself with the declared confidence. With `joint` all intervals of the view,
        at all periods of the horizon together, hold with it, for each key.
        """
        table, number = self.table(query, label), self._number(period)
        if number < view.first:
            raise InvalidParameter(f"The first period at which there is a {view.label} is {view.first}.")
        return self._estimate(table, view_coefficients(table.matrix, view, number), self._many(view, joint))

    def _number(self, period: int | str | None) -> int:
        if period is None:
            return self.closed
        if isinstance(period, str):
            period = self.calendar.number(period)
        return int(check.integer("SeriesAnswers", "period", period, 1, self.closed))

    def _many(self, view: SeriesView, joint: bool) -> int:
        """How many intervals must hold together: those to come are counted too, so that none is redrawn."""
        return max(self.calendar.periods - view.first + 1, 1) if joint else 1

    def _estimate(self, table: SeriesRows, weights: Floats, many: int = 1) -> SpanEstimate:
        value, deviation = table.read(weights), table.deviation(weights)
        reach = quantile(table.line.mechanism, self.confidence, many) * deviation
        return SpanEstimate(table.keys, value, deviation, value - reach, value + reach)

    # comparisons over time

    def difference(
        self, later: Span, earlier: Span, *, query: str | None = None, label: str | None = None
    ) -> SpanEstimate:
        """How much more the periods of one span hold than those of another."""
        table = self.table(query, label)
        return self._estimate(table, self._span(table, later) - self._span(table, earlier))

    def growth(
        self, later: Span, earlier: Span, *, query: str | None = None, label: str | None = None
    ) -> SpanEstimate:
        """The later span over the earlier one, less 1, with Fieller's interval (1954).

        Where the earlier one cannot be told from 0 no ratio is excluded, and the interval has no ends.
        """
        table = self.table(query, label)
        above, below = self._span(table, later), self._span(table, earlier)
        top, bottom = table.read(above), table.read(below)
        var_top, var_bottom = table.deviation(above) ** 2, table.deviation(below) ** 2
        shared = (table.deviation(above + below) ** 2 - table.deviation(above - below) ** 2) / 4
        reach = quantile(table.line.mechanism, self.confidence) ** 2
        square = bottom**2 - reach * var_bottom
        middle = top * bottom - reach * shared
        root = np.sqrt(np.maximum(middle**2 - square * (top**2 - reach * var_top), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            value = top / bottom - 1
            lower = np.where(square > 0, (middle - root) / square - 1, -math.inf)
            upper = np.where(square > 0, (middle + root) / square - 1, math.inf)
            spread = np.where(square > 0, root / (square * math.sqrt(reach)), math.inf)
        return SpanEstimate(table.keys, value, spread, lower, upper)

    def _span(self, table: SeriesRows, span: Span) -> Floats:
        last = check.integer("SeriesAnswers", "last period", span[1], 1, self.closed)
        first = check.integer("SeriesAnswers", "first period", span[0], 1, last)
        weights = np.zeros(table.matrix.rows_until(self.closed))
        part = table.matrix.coefficients(first, last)
        weights[: part.size] = part
        return weights

    def turning_points(
        self, window: int = 4, *, query: str | None = None, label: str | None = None
    ) -> dict[tuple[Any, ...], list[tuple[str, int]]]:
        """Where windows beside each other rise or fall beyond doubt, for all periods together.

        Of each key the periods at which the direction that is certain changes: ("rise", 12), ("fall", 30).
        """
        table = self.table(query, label)
        view = SeriesView(window=window, against=window)
        turns: dict[tuple[Any, ...], list[tuple[str, int]]] = {key: [] for key in table.keys}
        many = self._many(view, True)
        for period in view.periods(self.closed):
            change = self._estimate(table, view_coefficients(table.matrix, view, period), many)
            for i, key in enumerate(table.keys):
                word = "rise" if change.lower[i] > 0 else "fall" if change.upper[i] < 0 else ""
                if word and (not turns[key] or turns[key][-1][0] != word):
                    turns[key].append((word, period))
        return turns

    # consistent totals

    def non_negative(self, *, query: str | None = None, label: str | None = None) -> Floats:
        """The likeliest values of each period (by key) that are not negative: their totals never fall.

        Least squares on the rows, which are independent and alike. They are biased near 0, so they come
        without intervals.
        """
        from scipy.optimize import nnls

        table = self.table(query, label)
        if table.line.measurement.signed:
            raise InvalidParameter(
                "Sums of this column may be negative, and nothing is to be mended. Ask of counts."
            )
        blocks = [table.matrix.rows_of(t) for t in range(1, self.closed + 1)]
        entries = np.concatenate(
            [np.pad(each, ((0, 0), (0, self.closed - each.shape[1]))) for each in blocks]
        )
        scale = float(entries.max())
        fitted = [nnls(entries / scale, row / scale)[0] for row in table.rows.astype(float)]
        return np.array(fitted) * table.line.step

    # everything, as a table

    @cached_property
    def columns(self) -> dict[str, list[str | float]]:
        """A tidy table: a row for each thing, key, view and period, with both kinds of intervals."""
        return self._columns(1)

    def columns_at(self, period: int) -> dict[str, list[str | float]]:
        """The same of one period alone."""
        return self._columns(period)

    def _columns(self, since: int) -> dict[str, list[str | float]]:
        rows = list(self._rows(since))
        return {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}

    def _rows(self, since: int) -> Iterator[Sequence[str | float]]:
        for table in self.tables:
            one = quantile(table.line.mechanism, self.confidence)
            for view in self.views:
                every = quantile(table.line.mechanism, self.confidence, self._many(view, True))
                for period in range(max(view.first, since), self.closed + 1):
                    weights = view_coefficients(table.matrix, view, period)
                    values, deviations = table.read(weights), table.deviation(weights)
                    name = self.calendar.name(period)
                    for key, start, value, wide in zip(
                        table.keys, table.starts.tolist(), values.tolist(), deviations.tolist(), strict=True
                    ):
                        if period < start:  # nothing was measured of it yet
                            continue
                        yield (
                            table.line.query,
                            table.line.label,
                            ", ".join(map(str, key)),
                            view.label,
                            name,
                            value,
                            value - one * wide,
                            value + one * wide,
                            value - every * wide,
                            value + every * wide,
                        )


def row_deviation(mechanism: CorrelatedNoise) -> float:
    """The standard deviation of the noise of one row, in the measure of the values."""
    size = float(mechanism.unit_noise) * float(mechanism.granularity or 1)
    return size if isinstance(mechanism, CorrelatedGaussian) else math.sqrt(2) * size


def quantile(mechanism: CorrelatedNoise, confidence: float, many: int = 1) -> float:
    """How many deviations `many` intervals must reach to hold together with this confidence.

    For Gaussian noise by Sidak (1967), whatever the correlations; for Laplace noise, of which any weighted
    sum is covered, by Bonferroni.
    """
    if isinstance(mechanism, CorrelatedGaussian):
        alone = confidence ** (1 / many)
        return -float(ndtri((1 - alone) / 2))
    return worst_noises(1 - (1 - confidence) / many)
