"""Statistics of two columns: covariance, correlation, a regression line, and means by weights."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from sourdine.tables.answers.estimate import GroupEstimate, Noisy, NoisyMoments, Numbers, Reading
from sourdine.tables.answers.pairs import NoisyPairs
from sourdine.tables.measurements.group_sums import GroupSums
from sourdine.tables.measurements.measurement import Context, Measurement, PlannedMeasurement, Scope, expect
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


__all__ = ["Correlation", "Covariance", "Regression", "WeightedMean", "WeightedSum"]
