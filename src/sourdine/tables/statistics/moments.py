"""Sums, means, variances and standard deviations of a column, and shares of records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sourdine.frames import aggregate as sums
from sourdine.frames.cells import indicator
from sourdine.frames.declared import by_hand, declare
from sourdine.frames.expressions import Expression, ExpressionField
from sourdine.frames.schema import Category, Flag, PrivacyUnit, Schema, span
from sourdine.frames.source import Source
from sourdine.tables.condition import check_condition
from sourdine.tables.intervals import GroupEstimate, Noisy, NoisyMoments, Numbers, Reading
from sourdine.tables.measurement import (
    Context,
    GroupSums,
    Measurement,
    Moments,
    PlannedMeasurement,
    Scope,
    Total,
)
from sourdine.tables.statistics.base import (
    Example,
    Expected,
    OfColumn,
    Scale,
    Single,
    Style,
    grouped_by,
    numbers_of,
)


class _Moment(OfColumn, Single):
    """A moment of a column.

    Each has a constructor of its own: to type checkers a class of pydantic without one takes all its fields
    by name, whatever it inherits.
    """

    style: ClassVar[Style] = Style()

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        yield from (cls.model_validate({"column": name}) for name in numbers_of(schema))

    def width(self, schema: Schema) -> float:
        """How far the bounds of the column are apart."""
        column = self.number(schema)
        low, high = span(column)
        return (high - low) * float(column.step)


class Sum(_Moment):
    """The sum of a column."""

    kind: Literal["sum"] = "sum"
    example: ClassVar[Example] = {"sum": "pay"}
    other_names: ClassVar[tuple[str, ...]] = ("total",)

    @by_hand
    def __init__(self, column: str) -> None:
        declare(super().__init__, "Sum", column=column)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return Total(scope=scope, column=self.column)

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.total(span(self.number(schema))[0])

    def scale(self, schema: Schema) -> tuple[float, float]:
        return float(self.number(schema).step), 0.0


class Mean(_Moment):
    """The mean of a column."""

    kind: Literal["mean"] = "mean"
    example: ClassVar[Example] = {"mean": "pay"}
    other_names: ClassVar[tuple[str, ...]] = ("average", "avg")
    needs_size: ClassVar[bool] = True

    @by_hand
    def __init__(self, column: str) -> None:
        declare(super().__init__, "Mean", column=column)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return Moments(scope=scope, column=self.column, degree=1)

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.mean()

    def scale(self, schema: Schema) -> tuple[float, float]:
        column = self.number(schema)
        return self.width(schema), span(column)[0] * float(column.step)

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return self.between(schema)


class Variance(_Moment):
    """The variance of a column: the mean of squares less the square of the mean."""

    kind: Literal["variance"] = "variance"
    style: ClassVar[Style] = Style(scale=Scale.SQUARE)
    example: ClassVar[Example] = {"variance": "pay"}
    other_names: ClassVar[tuple[str, ...]] = ("var",)
    needs_size: ClassVar[bool] = True

    @by_hand
    def __init__(self, column: str) -> None:
        declare(super().__init__, "Variance", column=column)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return Moments(scope=scope, column=self.column, degree=2)

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.variance()

    def scale(self, schema: Schema) -> tuple[float, float]:
        return self.width(schema) ** 2, 0.0

    def span(self, schema: Schema) -> tuple[float, float] | None:
        """At most as far apart as half the records at either bound."""
        return 0.0, (self.width(schema) / 2) ** 2

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return f"{self.column}²"


class StdDev(_Moment):
    """The standard deviation of a column."""

    kind: Literal["deviation"] = "deviation"
    example: ClassVar[Example] = {"deviation": "pay"}
    other_names: ClassVar[tuple[str, ...]] = ("std", "stdev", "stddev")
    needs_size: ClassVar[bool] = True

    @by_hand
    def __init__(self, column: str) -> None:
        declare(super().__init__, "StdDev", column=column)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return Moments(scope=scope, column=self.column, degree=2)

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.variance().root()

    def scale(self, schema: Schema) -> tuple[float, float]:
        return self.width(schema), 0.0

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return 0.0, self.width(schema) / 2


@dataclass(frozen=True, kw_only=True)
class Holds(GroupSums):
    """For how many records a condition holds, and for how many it does not."""

    of: Expression

    @property
    def label(self) -> str:
        return f"proportion with {self.of.words}"

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return sums.BernsteinSums(value=value, width=1, degree=1, max_rows=unit.max_rows)

    def value(self, source: Source) -> str:
        return indicator(source.holds(self.of))

    def reading(self, noisy: Noisy, schema: Schema) -> Reading:
        return NoisyMoments(noisy=noisy, width=1, degree=1)

    def typical(self, size: float, schema: Schema) -> NDArray[np.float64]:
        """It holds for one half."""
        return np.full((1, 2), size / 2)


class Proportion(Single):
    """The share of records for which a condition holds, among those whose column is not missing."""

    kind: Literal["proportion"] = "proportion"
    of: ExpressionField
    style: ClassVar[Style] = Style(scale=Scale.SHARE)
    example: ClassVar[Example] = {"proportion": "age", "at_least": 65}
    other_names: ClassVar[tuple[str, ...]] = ("share",)
    needs_size: ClassVar[bool] = True

    @by_hand
    def __init__(
        self,
        column: str,
        of: str | int | bool | Sequence[str | int | bool] | None = None,
        *,
        at_least: float | None = None,
        below: float | None = None,
    ) -> None:
        """With some of its keys, or from `at_least` up to and without `below`; of a flag, that it is true."""
        fields = {"of": of, "at_least": at_least, "below": below}
        rest = {name: each for name, each in fields.items() if each is not None}
        long = self.long("proportion", column, rest, "Proportion")
        declare(super().__init__, "Proportion", of=long["of"])

    @property
    def label(self) -> str:
        return f"proportion with {self.of.words}"

    @property
    def about(self) -> tuple[str, ...]:
        return self.of.columns

    @classmethod
    def long(cls, kind: str, value: object, rest: Mapping[str, object], query: str) -> Mapping[str, object]:
        """Of a flag alone, the share of those for which it is true."""
        choices = {"keys" if name == "of" else name: each for name, each in rest.items()} or {"keys": True}
        return {"kind": kind, "of": {"column": value, **choices}}

    def check(self, schema: Schema, owner: str) -> None:
        """The condition must fit the schema."""
        check_condition(self.of, schema, owner)

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return Holds(scope=scope, of=self.of)

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.mean()

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return 0.0, 1.0

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return "share"

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        """In percentage points."""
        forecast_of_mean = super().forecast(line, context)
        if forecast_of_mean.error is None:
            return forecast_of_mean
        return replace(forecast_of_mean, error=100 * forecast_of_mean.error, measure="percentage points")

    def note(self, scope: Scope, context: Context) -> str:
        groups = f", in groups of {context.size or 0:,.0f}" if scope.by else ""
        return f"for a share near one half{groups}"

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        for name in grouped_by(schema):
            if isinstance(schema.columns[name], Category | Flag):
                yield cls.model_validate({"of": {"column": name, "keys": schema.keys(name)[:1]}})
        for name in numbers_of(schema):
            column = schema.number(name, name)
            middle = (column.lower + column.upper) / 2
            yield cls.model_validate({"of": {"column": name, "at_least": middle}})
            yield cls.model_validate({"of": {"column": name, "at_least": column.lower, "below": middle}})
