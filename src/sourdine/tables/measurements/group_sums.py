"""Sums over the records of each group, off which counts and moments are read."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.random.bits import Bits
from sourdine.frames import aggregate as sums
from sourdine.frames.aggregate import Request, Totals, totals_of
from sourdine.frames.keys import Keys
from sourdine.frames.schema import PrivacyUnit, Schema, span
from sourdine.frames.source import Source
from sourdine.tables.answers.estimate import Counted, Noisy, NoisyMoments, Reading, Summed
from sourdine.tables.measurements.measurement import (
    ColumnMeasurement,
    Context,
    Exact,
    KeyAxis,
    Measurement,
    PlannedMeasurement,
    expect,
    moved,
)

_POWERS = {1: "", 2: "²"}


@dataclass(frozen=True, kw_only=True)
class GroupSums(Measurement):
    """Sums over the records of each group. Several about the same records are taken in one pass."""

    @abstractmethod
    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        """What is summed, of this expression."""

    def value(self, source: Source) -> str:
        """What one record counts as, in SQL."""
        return sums.EVERYTHING

    def reading(self, noisy: Noisy, schema: Schema) -> Reading:
        """What its noisy numbers tell."""
        return noisy

    def typical(self, size: float, schema: Schema) -> NDArray[np.float64]:
        """The numbers of a group of so many records, for forecasts: zeros where they do not matter."""
        return np.zeros((1, 1))

    def expected(self, line: PlannedMeasurement, context: Context) -> Reading:
        """What a group of typical numbers would tell, without noise but with its intervals."""
        numbers = self.typical(context.size or 1.0, context.schema)
        noisy = Noisy(numbers=numbers, mechanism=line.mechanism, confidence=context.confidence)
        return self.reading(noisy, context.schema)

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        """A unit moves `max_groups` groups, each by what `max_rows` records weigh."""
        statistic, groups = self.statistic(schema, unit), min(unit.max_groups, self.groups(schema))
        return moved(
            neighbours,
            squared,
            length=statistic.reach * statistic.max_rows,
            copies=groups,
            each=statistic.coordinates,
            signed=self.signed,
        )

    def requests(self, source: Source, unit: PrivacyUnit) -> tuple[Request, ...]:
        statistic = self.statistic(source.schema, unit, self.value(source))
        return (Request(by=tuple(self.groupings(source)), statistics=(statistic,)),)

    def exact(
        self, source: Source, unit: PrivacyUnit, bits: Bits, beside: Sequence[Measurement] = ()
    ) -> list[Exact]:
        if self.scope.empty:
            nobody = Keys.product([()])
            return [Totals(keys=nobody, sums=(np.zeros((0, 1), np.int64),)) for _ in (self, *beside)]
        requests = [request for each in (self, *beside) for request in each.requests(source, unit)]
        return [*totals_of(source, requests, unit=unit, bits=bits, where=self.scope.sql(source))]

    def numbers(self, exact: Exact, schema: Schema, unit: PrivacyUnit) -> NDArray[Any]:
        """What noise is added to, one row a group.

        Whole numbers in 64 bits where 2^40 records could not make them larger, else of any size.
        """
        (numbers,) = expect(Totals, exact).sums
        return numbers.reshape(-1, self.statistic(schema, unit).coordinates)

    def read(self, exact: Exact, line: PlannedMeasurement, context: Context, bits: Bits) -> Reading:
        numbers = self.numbers(exact, context.schema, context.unit)
        drawn = line.mechanism.sample(numbers, bits).astype(float)
        noisy = Noisy(numbers=drawn, mechanism=line.mechanism, confidence=context.confidence)
        return self.reading(noisy, context.schema)


@dataclass(frozen=True, kw_only=True)
class RecordCounts(GroupSums):
    """How many records there are in each group, which may be cut further by some axes."""

    name: str = "count"
    within: tuple[KeyAxis, ...] = ()

    @property
    def label(self) -> str:
        return self.name

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        return self.within

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return sums.BernsteinSums(value=value, max_rows=unit.max_rows)

    def reading(self, noisy: Noisy, schema: Schema) -> Reading:
        return Counted(noisy)


@dataclass(frozen=True, kw_only=True)
class UnitCounts(GroupSums):
    """How many different units there are."""

    of_units: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return "units"

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return sums.BernsteinSums(value=value, max_rows=1)

    def reading(self, noisy: Noisy, schema: Schema) -> Reading:
        return Counted(noisy)


@dataclass(frozen=True, kw_only=True)
class Total(ColumnMeasurement, GroupSums):
    """The plain sum of a column."""

    signed: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"sum of {self.column}"

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        reach = max(map(abs, span(self.number(schema))))
        return sums.PlainSum(value=value, reach=reach, max_rows=unit.max_rows)

    def value(self, source: Source) -> str:
        return source.steps_of(self.column)

    def reading(self, noisy: Noisy, schema: Schema) -> Reading:
        return Summed(noisy)

    def step(self, schema: Schema, unit: PrivacyUnit) -> tuple[float, str]:
        return float(self.number(schema).step), self.column


@dataclass(frozen=True, kw_only=True)
class Moments(ColumnMeasurement, GroupSums):
    """The count, the sum and, of degree 2, the sum of squares of a column: all by Bernstein polynomials."""

    degree: int

    @property
    def label(self) -> str:
        return f"{'moments' if self.degree == 2 else 'sum and count'} of {self.column}"

    def serves(self, other: Measurement, schema: Schema) -> bool:
        """Its sum too, and the count if no record is dropped for a missing value."""
        lower = [replace(self, degree=degree) for degree in range(1, self.degree + 1)]
        readable: list[Measurement] = [*lower, Total(scope=self.scope, column=self.column)]
        if schema.columns[self.column].missing != "drop":
            readable.append(RecordCounts(scope=self.scope))
        return other in readable

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return sums.BernsteinSums(
            value=value, width=self.width(schema), degree=self.degree, max_rows=unit.max_rows, marked=True
        )

    def value(self, source: Source) -> str:
        return source.place_of(self.column)

    def reading(self, noisy: Noisy, schema: Schema) -> Reading:
        return NoisyMoments(noisy=noisy, width=self.width(schema), degree=self.degree)

    def typical(self, size: float, schema: Schema) -> NDArray[np.float64]:
        """Values spread evenly between the bounds give all Bernstein polynomials the same sum."""
        return np.full(
            (1, self.degree + 1), size * float(self.width(schema)) ** self.degree / (self.degree + 1)
        )

    def step(self, schema: Schema, unit: PrivacyUnit) -> tuple[float, str]:
        return float(self.number(schema).step) ** self.degree, f"{self.column}{_POWERS[self.degree]}"
