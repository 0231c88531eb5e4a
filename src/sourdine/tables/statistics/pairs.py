"""Statistics of two columns: covariance, correlation, a regression line, and means by weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames import aggregate as sums
from sourdine.frames.aggregate import PairSums, coarse_width, coarseness, pair
from sourdine.frames.declared import by_hand, declare
from sourdine.frames.keys import Keys
from sourdine.frames.schema import Number, PrivacyUnit, Schema, span
from sourdine.frames.source import Source
from sourdine.tables.intervals import Floats, GroupEstimate, Noisy, NoisyMoments, Numbers, Reading, edge
from sourdine.tables.measurement import Context, GroupSums, Measurement, PlannedMeasurement, Scope, expect
from sourdine.tables.statistics.base import (
    BY_SIZE,
    Estimates,
    Example,
    Expected,
    Single,
    Statistic,
    Style,
    numbers_of,
)

COEFFICIENTS = ("intercept", "slope")
_APART = "if both columns are spread evenly between their bounds, apart from each other"


@dataclass(frozen=True, kw_only=True)
class ColumnPair(GroupSums):
    """Sums of products of two columns, over the records that lack neither."""

    columns: tuple[str, str]
    degrees: tuple[int, int] = (1, 1)
    weighted: bool = False

    @property
    def label(self) -> str:
        first, second = self.columns
        return f"{second} by {first}" if self.weighted else f"products of {first} and {second}"

    def serves(self, other: Measurement, schema: Schema) -> bool:
        """Lower degrees too, of either order."""
        if not isinstance(other, ColumnPair) or self.weighted or other.weighted or self.scope != other.scope:
            return self == other
        degrees = dict(zip(self.columns, self.degrees, strict=True))
        lower = dict(zip(other.columns, other.degrees, strict=True))
        return degrees.keys() == lower.keys() and all(degrees[name] >= lower[name] for name in lower)

    def widths(self, schema: Schema) -> tuple[int, int]:
        """The steps between the bounds of both columns."""
        first, second = (span(self.number(name, schema)) for name in self.columns)
        # a weight counts from 0 and not from its lower bound
        return first[1] - (0 if self.weighted else first[0]), second[1] - second[0]

    def number(self, name: str, schema: Schema) -> Number:
        """One of the columns."""
        return schema.number(f"The query '{self.scope.query}'", name)

    def coarse(self, schema: Schema) -> tuple[int, int]:
        """The widths in the steps that products are taken of."""
        first, second = zip(self.widths(schema), self.degrees, strict=True)
        return coarse_width(*first), coarse_width(*second)

    def steps(self, schema: Schema) -> tuple[float, float]:
        """What one of those steps is worth, of either column."""
        first, second = (
            coarseness(width, degree) * float(self.number(name, schema).step)
            for name, width, degree in zip(self.columns, self.widths(schema), self.degrees, strict=True)
        )
        return first, second

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return PairSums(
            value=value,
            widths=self.coarse(schema),
            degrees=self.degrees,
            weighted=self.weighted,
            max_rows=unit.max_rows,
        )

    def value(self, source: Source) -> str:
        first, _ = (span(self.number(name, source.schema)) for name in self.columns)
        return pair(
            [source.place_of(name) for name in self.columns],
            self.widths(source.schema),
            self.degrees,
            source.dialect,
            origins=(first[0] if self.weighted else 0, 0),
        )

    def reading(self, noisy: Noisy, schema: Schema) -> Reading:
        first, second = self.coarse(schema)
        if self.weighted:
            return NoisyMoments(noisy=noisy, width=second, degree=1)
        return NoisyPairs(noisy=noisy, degrees=self.degrees, widths=(first, second))

    def typical(self, size: float, schema: Schema) -> NDArray[np.float64]:
        """Values spread evenly give all polynomials the same sum."""
        first, second = self.coarse(schema)
        if self.weighted:
            return np.full((1, 2), size * first * second / 4)
        many = (self.degrees[0] + 1) * (self.degrees[1] + 1)
        total = size * float(first) ** self.degrees[0] * float(second) ** self.degrees[1]
        return np.full((1, many), total / many)

    def step(self, schema: Schema, unit: PrivacyUnit) -> tuple[float, str]:
        first, second = self.steps(schema)
        size = first ** self.degrees[0] * second ** self.degrees[1]
        named = (
            name if degree == 1 else f"{name}²"
            for name, degree in zip(self.columns, self.degrees, strict=True)
        )
        return size, " × ".join(named)

    def note(self, line: PlannedMeasurement) -> str:
        return (
            f"{self.label} in {self.scope.query}: records that lack either column are left out, and values "
            "are rounded to at most 32,768 steps, or 1,024 where they are squared"
        )


class OfPair(Statistic):
    """Something asked of the numbers of two columns."""

    column: str
    other: str

    @property
    def label(self) -> str:
        return f"{self.kind} of {self.column} and {self.other}"

    @property
    def about(self) -> tuple[str, ...]:
        return self.column, self.other

    def check(self, schema: Schema, owner: str) -> None:
        """Both must hold numbers between declared bounds, and be two."""
        for name in self.about:
            schema.number(f"The {self.kind} asked for in '{owner}'", name)
        if self.column == self.other:
            raise InvalidParameter(
                f"The query '{owner}' asks for the {self.kind} of '{self.column}' with itself. "
                "Name two columns, or ask for its variance."
            )

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        for first, second in permutations(numbers_of(schema), 2):
            yield cls.model_validate({"column": first, "other": second})


class Covariance(OfPair):
    """The covariance of two columns."""

    kind: Literal["covariance"] = "covariance"
    style: ClassVar[Style] = Style()
    example: ClassVar[Example] = {"covariance": "pay", "other": "age"}
    other_names: ClassVar[tuple[str, ...]] = ("cov", "covar_pop")

    @by_hand
    def __init__(self, column: str, other: str) -> None:
        declare(super().__init__, "Covariance", column=column, other=other)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return ColumnPair(scope=scope, columns=_sorted(self.column, self.other))

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        covariance = expect(NoisyPairs, reading).covariance()
        return Estimates(covariance.scaled(_area(measured, schema)), measured.keys(schema))

    def span(self, schema: Schema) -> tuple[float, float] | None:
        """At most as far as half the records at either pair of bounds."""
        most = _area(ColumnPair(scope=Scope(query=""), columns=_sorted(self.column, self.other)), schema) / 4
        return -most, most

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return f"{self.column} × {self.other}"

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        return _forecast(self, line, context)


class Correlation(OfPair):
    """The correlation of two columns (Pearson)."""

    kind: Literal["correlation"] = "correlation"
    style: ClassVar[Style] = Style()
    example: ClassVar[Example] = {"correlation": "pay", "other": "age"}
    other_names: ClassVar[tuple[str, ...]] = ("corr",)

    @by_hand
    def __init__(self, column: str, other: str) -> None:
        declare(super().__init__, "Correlation", column=column, other=other)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return ColumnPair(scope=scope, columns=_sorted(self.column, self.other), degrees=(2, 2))

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        return Estimates(expect(NoisyPairs, reading).correlation(), measured.keys(schema))

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return -1.0, 1.0

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return "correlation"

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        return _forecast(self, line, context)


class Regression(OfPair):
    """The line of least squares of a column on another: where it stands at 0, and its slope."""

    kind: Literal["regression"] = "regression"
    style: ClassVar[Style] = Style()
    example: ClassVar[Example] = {"regression": "pay", "on": "age"}
    other_names: ClassVar[tuple[str, ...]] = ("ols", "line", "slope")

    @by_hand
    def __init__(self, column: str, on: str) -> None:
        declare(super().__init__, "Regression", column=column, other=on)

    @classmethod
    def long(cls, kind: str, value: object, rest: Example, query: str) -> Example:
        """What it is regressed on is the other column."""
        others = {"other" if name == "on" else name: each for name, each in rest.items()}
        return {"kind": kind, "column": value, **others}

    @property
    def label(self) -> str:
        return f"regression of {self.column} on {self.other}"

    @property
    def adds(self) -> tuple[str, ...]:
        return ("coefficient",)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return ColumnPair(scope=scope, columns=(self.other, self.column), degrees=(2, 1))

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        pairs = expect(NoisyPairs, reading)
        if expect(ColumnPair, measured).columns[0] == self.column:
            pairs = pairs.turned()
        (low_x, wide_x), (low_y, wide_y) = (
            _bounds(measured, name, schema) for name in (self.other, self.column)
        )
        slope = pairs.slope().scaled(wide_y / wide_x)
        intercept = pairs.line_at(-low_x / wide_x).scaled(wide_y, low_y)
        both = GroupEstimate(
            *(
                np.stack([getattr(intercept, end), getattr(slope, end)], axis=1).ravel()
                for end in ("value", "lower", "upper")
            )
        )
        return Estimates(both, measured.keys(schema).each_with(Keys.product([COEFFICIENTS])))

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return None

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return f"{self.column}, and per {self.other}"

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        """Of the slope."""
        return _forecast(self, line, context, place=1, measure=f"{self.column} per {self.other}, the slope")


class _Weighted(Single):
    """Something asked of a column whose records count by a weight."""

    column: str
    weight: str
    style: ClassVar[Style] = Style()

    @property
    def label(self) -> str:
        return f"{self.kind.replace('_', ' ')} of {self.column} by {self.weight}"

    @property
    def about(self) -> tuple[str, ...]:
        return self.column, self.weight

    def check(self, schema: Schema, owner: str) -> None:
        """Both must hold numbers between declared bounds, and no weight be negative."""
        for name in self.about:
            column = schema.number(f"The {self.kind} asked for in '{owner}'", name)
        if column.lower < 0:
            raise InvalidParameter(
                f"The query '{owner}' weighs by the column '{self.weight}', whose declared lower bound is "
                "below 0. A weight says how many a record stands for: declare a lower bound of 0 or more."
            )

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return self._pair(scope)

    def _pair(self, scope: Scope) -> ColumnPair:
        return ColumnPair(scope=scope, columns=(self.weight, self.column), weighted=True)

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        for first, second in permutations(numbers_of(schema), 2):
            if schema.number(second, second).lower >= 0:
                yield cls.model_validate({"column": first, "weight": second})


class WeightedMean(_Weighted):
    """The mean of a column by weights: the sum of weight times value over the sum of weights."""

    kind: Literal["weighted_mean"] = "weighted_mean"
    example: ClassVar[Example] = {"weighted_mean": "pay", "weight": "weight"}
    needs_size: ClassVar[bool] = True

    @by_hand
    def __init__(self, column: str, weight: str) -> None:
        declare(super().__init__, "WeightedMean", column=column, weight=weight)

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.mean()

    def scale(self, schema: Schema) -> tuple[float, float]:
        low, wide = _bounds(self._pair(Scope(query="")), self.column, schema)
        return wide, low

    def span(self, schema: Schema) -> tuple[float, float] | None:
        column = schema.number(self.kind, self.column)
        return float(column.lower), float(column.upper)

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return self.column


class WeightedSum(_Weighted):
    """The sum of a column, each value times its weight: a total that a survey's sample stands for."""

    kind: Literal["weighted_sum"] = "weighted_sum"
    example: ClassVar[Example] = {"weighted_sum": "pay", "weight": "weight"}

    @by_hand
    def __init__(self, column: str, weight: str) -> None:
        declare(super().__init__, "WeightedSum", column=column, weight=weight)

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        pair = self._pair(Scope(query=""))
        return numbers.total(_bounds(pair, self.column, schema)[0] / pair.steps(schema)[1])

    def scale(self, schema: Schema) -> tuple[float, float]:
        first, second = self._pair(Scope(query="")).steps(schema)
        return first * second, 0.0

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return f"{self.column} × {self.weight}"


def _sorted(one: str, other: str) -> tuple[str, str]:
    """One order of two columns, so that both ways to ask are measured once."""
    return (one, other) if one < other else (other, one)


def _bounds(measured: Measurement, name: str, schema: Schema) -> tuple[float, float]:
    """Where a column of a pair begins, and its width, in its own unit."""
    pair = expect(ColumnPair, measured)
    place = pair.columns.index(name)
    column = pair.number(name, schema)
    return span(column)[0] * float(column.step), pair.coarse(schema)[place] * pair.steps(schema)[place]


def _area(measured: Measurement, schema: Schema) -> float:
    """The product of both widths."""
    pair = expect(ColumnPair, measured)
    return _bounds(pair, pair.columns[0], schema)[1] * _bounds(pair, pair.columns[1], schema)[1]


def _forecast(
    statistic: OfPair, line: PlannedMeasurement, context: Context, place: int = 0, measure: str = ""
) -> Expected:
    """The interval of a group whose two columns are spread evenly."""
    if context.size is None:
        return Expected(None, note=BY_SIZE)
    measured = expect(ColumnPair, line.measurement)
    estimate = statistic.estimate(measured.expected(line, context), measured, context.schema).estimate
    error = float(estimate.upper[place] - estimate.lower[place]) / 2
    groups = f", for groups of {context.size:,.0f}" if measured.scope.by else ""
    return Expected(error, measure or statistic.unit_of_measure(context.unit), f"{_APART}{groups}")


# Two columns at once: covariance, correlation and a regression line, off noisy sums of products.
#
# Values x and y are measured as shares of their widths, by products of Bernstein polynomials, of which
# every moment up to the degrees is a weighted sum. All of it is post-processing.
#
# Intervals invert tests that are linear in the noises, as Fieller's does for a ratio. Around any point (a,
# b)
#
# T = sum (x - a)(y - b) = n cov + n (mean x - a)(mean y - b)
#
# so at the true covariance c, T - c n is a sum of noises but for the product of two small errors, those of
# the means. That product is bounded by the intervals of the means, and each interval is widened by it.


_TESTS = 65  # ratios at which reaches are computed; between two of them they are interpolated
_BLOCK = 1 << 13  # groups at once


@dataclass(frozen=True, kw_only=True)
class NoisyPairs(Numbers):
    """Noisy sums of B_i(x) B_j(y), i up to `degrees[0]` and quickest j up to `degrees[1]`; each is 1 or 2.

    `widths` are those of x and y in steps.
    """

    noisy: Noisy
    degrees: tuple[int, int]
    widths: tuple[int, int]

    @property
    def reach(self) -> int:
        """What all of them are together for one record."""
        return int(self.widths[0] ** self.degrees[0] * self.widths[1] ** self.degrees[1])

    @property
    def steepest(self) -> int:
        """No line is steeper, in widths of y for one of x.

        Its slope is a mean of slopes between two records, which are a step or more apart in x and at most a
        width in y.
        """
        return self.widths[0]

    def turned(self) -> "NoisyPairs":
        """The same with x and y exchanged."""
        first, second = self.degrees
        numbers = self.noisy.numbers.reshape(-1, first + 1, second + 1).transpose(0, 2, 1)
        return NoisyPairs(
            noisy=replace(self.noisy, numbers=numbers.reshape(-1, (first + 1) * (second + 1))),
            degrees=(second, first),
            widths=(self.widths[1], self.widths[0]),
        )

    def weights(self, p: int, q: int) -> Floats:
        """The weights of the sum of x^p y^q."""
        both = np.outer(_coefficients(self.degrees[0], p), _coefficients(self.degrees[1], q))
        weights: Floats = both.ravel() / float(self.reach)
        return weights

    def count(self) -> GroupEstimate:
        return self.noisy.linear(self.weights(0, 0))

    def covariance(self) -> GroupEstimate:
        """The covariance, as a share of both widths: between -1/4 and 1/4."""
        return _in_blocks(self, NoisyPairs._covariance)

    def correlation(self) -> GroupEstimate:
        """The correlation, between -1 and 1; of degrees 2 and 2."""
        return _in_blocks(self, NoisyPairs._correlation)

    def slope(self) -> GroupEstimate:
        """How many widths of y go with one width of x, by least squares; of degrees 2 and 1."""
        return _in_blocks(self, NoisyPairs._slope)

    def line_at(self, place: float) -> GroupEstimate:
        """Where the line stands at a place of x in widths, above the lower bound of y, in widths."""
        return _in_blocks(self, lambda part: part._line_at(place))

    def _sum(self, p: int, q: int) -> Floats:
        total: Floats = self.noisy.numbers @ self.weights(p, q)
        return total

    @property
    def _means(self) -> tuple[GroupEstimate, GroupEstimate]:
        ones = self.weights(0, 0)
        return self.noisy.ratio(self.weights(1, 0), ones), self.noisy.ratio(self.weights(0, 1), ones)

    def _central(self, x: Floats, y: Floats, p: int, q: int) -> Floats:
        """The weights of the sum of (x - a)^p (y - b)^q, a column for each group."""
        along_x = [_coefficients(self.degrees[0], k)[:, None] for k in range(p + 1)]
        along_y = [_coefficients(self.degrees[1], k)[:, None] for k in range(q + 1)]
        both = _power(along_x, x)[:, None, :] * _power(along_y, y)[None, :, :]
        return both.reshape(-1, x.size) / float(self.reach)

    def _dot(self, weights: Floats) -> Floats:
        total: Floats = np.einsum("gk,kg->g", self.noisy.numbers, weights)
        return total

    def _ratio(self, top: Floats, bottom: Floats, least: float, most: float, slack: "Slack") -> GroupEstimate:
        """A ratio between two bounds of sums with weights for each group; nothing is known where all fits.

        `slack` is what a true ratio may be off beyond the noises, in the unit of the top.
        """
        over, under = self._dot(top), self._dot(bottom)
        # ratios are tried on a scale that is fine near 0 where the bounds are far apart
        scale = np.linspace(np.arcsinh(least), np.arcsinh(most), _TESTS)
        tests = np.sinh(scale)
        reaches = np.stack([self.noisy.reach(top - share * bottom) for share in tests], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.clip(np.nan_to_num(np.where(under > 0, over / under, 0.0)), least, most)
        rows = np.arange(over.size)

        def outside(share: Floats) -> NDArray[np.bool_]:
            left = np.clip(np.searchsorted(tests, share, side="right") - 1, 0, _TESTS - 2)
            part = np.clip((share - tests[left]) / (tests[left + 1] - tests[left]), 0, 1)
            # a reach is convex in the ratio, so what lies on a line between two is never too small
            reach = (1 - part) * reaches[rows, left] + part * reaches[rows, left + 1]
            far: NDArray[np.bool_] = np.abs(over - share * under) > reach + slack(share)
            return far

        ends = [edge(value, np.full_like(value, end), outside) for end in (least, most)]
        # where the bottom could be 0, ratios on both sides of infinity fit, and the set is no interval
        unsure = (under <= self.noisy.reach(bottom)) | outside(value)
        return GroupEstimate(value, np.where(unsure, least, ends[0]), np.where(unsure, most, ends[1]))

    def _covariance(self) -> GroupEstimate:
        x, y = self._means
        count = np.maximum(self._sum(0, 0), 1.0)
        product = count * _half(x) * _half(y)
        top = self._central(x.value, y.value, 1, 1)
        bottom = np.broadcast_to(self.weights(0, 0)[:, None], top.shape)
        return self._ratio(top, bottom, -0.25, 0.25, lambda share: product)

    def _slope(self) -> GroupEstimate:
        """At the true slope s, T - s V is noise, V being the sum of (x - a)^2, but for products of errors."""
        x, y = self._means
        count, near_x, near_y = np.maximum(self._sum(0, 0), 1.0), _half(x), _half(y)
        top, bottom = self._central(x.value, y.value, 1, 1), self._central(x.value, y.value, 2, 0)
        return self._ratio(
            top,
            bottom,
            -self.steepest,
            self.steepest,
            lambda slope: count * near_x * (near_y + np.abs(slope) * near_x),
        )

    def _line_at(self, place: float) -> GroupEstimate:
        """The mean of y, and the slope times how far the place is from the mean of x.

        Its error is one sum of noises at the true line: that of y less the line, of which the count and the
        distance from the mean tell the weights. Where the slope is unknown, so is this, but at the mean.
        """
        x, y = self._means
        slope = self._slope()
        count = np.maximum(self._sum(0, 0), 1.0)
        spread = np.maximum(self._dot(self._central(x.value, y.value, 2, 0)), 1e-12)
        far = place - x.value
        # residuals y - b - s (x - a), weighted by 1/n and by (place - a)(x - a)/V
        flat = self._central(x.value, y.value, 0, 1) - slope.value * self._central(x.value, y.value, 1, 0)
        tilt = self._central(x.value, y.value, 1, 1) - slope.value * self._central(x.value, y.value, 2, 0)
        reach = self.noisy.reach(flat / count + tilt * far / spread)
        value = y.value + slope.value * far
        known = slope.lower > -self.steepest
        # what the first order leaves out: errors of the slope times those of the mean of x and of the count
        loose = _half(slope) * _half(x) + np.abs(far) * (_half(slope) - _narrow(self, tilt, spread))
        wide = np.where(
            known, reach + np.maximum(loose, 0.0), 1 + self.steepest * np.maximum(np.abs(far), 1.0)
        )
        return GroupEstimate(value, value - wide, value + wide)

    def _correlation(self) -> GroupEstimate:
        """To first order an error moves it by [ab - r (a² + b²) / 2] / n, a and b being standardised.

        It is widened by the second order of the errors of both variances, and where one of these is lost in
        noise nothing is known.
        """
        x, y = self._means
        count = np.maximum(self._sum(0, 0), 1.0)
        both = self._central(x.value, y.value, 1, 1)
        of_x, of_y = self._central(x.value, y.value, 2, 0), self._central(x.value, y.value, 0, 2)
        square_x, square_y = np.maximum(self._dot(of_x), 1e-12), np.maximum(self._dot(of_y), 1e-12)
        root = np.sqrt(square_x * square_y)
        value = np.clip(self._dot(both) / root, -1, 1)
        reach = self.noisy.reach(both / root - value / 2 * (of_x / square_x + of_y / square_y))
        off_x = (self.noisy.reach(of_x) + count * _half(x) ** 2) / square_x
        off_y = (self.noisy.reach(of_y) + count * _half(y) ** 2) / square_y
        off_both = self.noisy.reach(both) / root
        second = (
            count * _half(x) * _half(y) / root
            + np.abs(value) * (count * _half(x) ** 2 / square_x + count * _half(y) ** 2 / square_y) / 2
            + np.abs(value) * (3 / 8 * (off_x**2 + off_y**2) + off_x * off_y / 4)
            + off_both * (off_x + off_y) / 2
        )
        blind = (off_x > 0.5) | (off_y > 0.5)
        lower = np.where(blind, -1.0, np.clip(value - reach - second, -1, 1))
        upper = np.where(blind, 1.0, np.clip(value + reach + second, -1, 1))
        return GroupEstimate(value, lower, upper)


Slack = Callable[[Floats], Floats]


def _narrow(pairs: NoisyPairs, tilt: Floats, spread: Floats) -> Floats:
    """Half the interval of the slope to first order."""
    return pairs.noisy.reach(tilt / spread)


def _half(each: GroupEstimate) -> Floats:
    """The longer side of an interval, from its value."""
    return np.maximum(each.upper - each.value, each.value - each.lower)


def _coefficients(degree: int, power: int) -> Floats:
    """x^power in the Bernstein basis, each polynomial with its binomial factor: C(i, p) / C(d, p)."""
    i = np.arange(degree + 1, dtype=float)
    if power == 0:
        return np.ones(degree + 1)
    return i / degree if power == 1 else i * (i - 1) / (degree * (degree - 1))


def _power(parts: list[Floats], middle: Floats) -> Floats:
    """(x - a)^p for p = 0, 1, 2 from the coefficients of 1, x and x², a column for each group."""
    if len(parts) == 1:
        return np.broadcast_to(parts[0], (parts[0].shape[0], middle.size))
    if len(parts) == 2:
        return parts[1] - middle * parts[0]
    return parts[2] - 2 * middle * parts[1] + middle**2 * parts[0]


def _in_blocks(pairs: NoisyPairs, read: Callable[[NoisyPairs], GroupEstimate]) -> GroupEstimate:
    """The same for some groups at a time: reaches are many numbers for each."""
    numbers = pairs.noisy.numbers
    blocks = []
    for start in range(0, max(1, numbers.shape[0]), _BLOCK):
        noisy = replace(pairs.noisy, numbers=numbers[start : start + _BLOCK])
        blocks.append(read(replace(pairs, noisy=noisy)))
    return GroupEstimate(
        *(np.concatenate([getattr(each, end) for each in blocks]) for end in ("value", "lower", "upper"))
    )
