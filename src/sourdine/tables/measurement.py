"""What statistics are read off: what is summed by which keys, how far a unit moves it, and its noise.

A measurement is some whole numbers for each group of a query, or what else noise is put on. Those of one
statistic alone stand beside it, in `tables.statistics`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core.distance import Distance, Neighbours, Norm, root_above
from sourdine.core.format import shorten, shorten_up
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import Bits
from sourdine.frames import aggregate as sums
from sourdine.frames.aggregate import MOST_GROUPS, Request, Totals, totals_of
from sourdine.frames.cells import Grouping, Key, all_true, certain
from sourdine.frames.contributions import KeyCounts
from sourdine.frames.expressions import ColumnValue, Expression
from sourdine.frames.expressions.conditions import range_of
from sourdine.frames.keys import Keys
from sourdine.frames.rank_counts import GroupRanks
from sourdine.frames.schema import Integer, Number, PrivacyUnit, Schema, span
from sourdine.frames.source import Source
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables.intervals import Counted, Noisy, NoisyMoments, Reading, Summed, noise
from sourdine.tables.privacy import Allotment
from sourdine.tables.quantiles.api import MethodChoice

EACH_RECORD = PrivacyUnit()
Exact = KeyCounts | Totals | GroupRanks
T = TypeVar("T")


def expect(kind: type[T], value: object) -> T:
    """The same thing, known to be of its kind; any other is a mistake of ours."""
    if not isinstance(value, kind):
        raise TypeError(f"A {kind.__name__} is needed, and here is a {type(value).__name__}.")
    return value


def plural(unit: str) -> str:
    """Several of a unit."""
    if unit == "person":
        return "people"
    return unit if unit.endswith("s") else f"{unit}s"


@dataclass(frozen=True)
class KeyAxis:
    """What records are grouped by: the declared keys of a column."""

    column: str

    def keys(self, schema: Schema) -> Sequence[Key]:
        """The keys in their order."""
        return schema.keys(self.column)

    def grouping(self, source: Source) -> Grouping:
        """How the engine groups by them."""
        return source.grouping(self.column)


@dataclass(frozen=True)
class RangeAxis(KeyAxis):
    """Keys of a column as far as conditions allow for them: of whole numbers, those of a range."""

    where: tuple[Expression, ...]

    def keys(self, schema: Schema) -> Sequence[Key]:
        start, end = self._ends(schema)
        return super().keys(schema)[start:end]

    def grouping(self, source: Source) -> Grouping:
        start, end = self._ends(source.schema)
        groupings = super().grouping(source)
        return replace(groupings, keys=groupings.keys[start:end]) if (start, end) != (0, None) else groupings

    def _ends(self, schema: Schema) -> tuple[int, int | None]:
        """Which of the declared keys may occur: from one place up to another, or to the end."""
        column = schema.columns[self.column]
        if not isinstance(column, Integer):
            return 0, None
        low, high = range_of(ColumnValue(self.column), self.where, schema.kinds)
        assert low is not None
        assert high is not None
        return low - column.lower, high - column.lower + 1


@dataclass(frozen=True)
class ChosenKeys:
    """Keys that were chosen privately, in the order of their texts, and what the engine calls them.

    `names` holds one more where those that were not chosen count together.
    """

    names: Keys
    by: Grouping


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Which records are measured, and by which keys: those of a query, known by its name.

    `open` are the columns whose keys are chosen privately, and `chosen` those keys, once they are known.
    """

    query: str
    by: tuple[str, ...] = ()
    where: tuple[Expression, ...] = ()
    open: tuple[str, ...] = ()
    chosen: ChosenKeys | None = None

    @property
    def selection(self) -> tuple[object, ...]:
        """What tells apart the choices of keys: scopes alike in this share one."""
        return self.open, self.where

    @property
    def empty(self) -> bool:
        """Whether keys were to be chosen and none was."""
        return self.chosen is not None and not self.chosen.names

    def sql(self, source: Source) -> str:
        """The records it is about."""
        return all_true(sql for each in self.where for sql in certain(each, source.cells))

    @property
    def axes(self) -> tuple["KeyAxis", ...]:
        """What records are grouped by."""
        return tuple(RangeAxis(name, self.where) if self.where else KeyAxis(name) for name in self.by)


@dataclass(frozen=True, kw_only=True)
class Context:
    """What is declared beside the queries.

    `size` is how many records a group holds, as far as that is known; `delta` what one choice of keys may
    cost; `near` says that the records can be brought here.
    """

    schema: Schema
    unit: PrivacyUnit
    neighbours: Neighbours
    confidence: float
    near: bool = True
    size: float | None = None
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class PlannedMeasurement:
    """One measurement of a plan: its noise, how far a unit moves it, and its share of the budget.

    `count` is how many groups a unit moves so far, where each group is asked on its own; `choice` is the
    method of quantiles, where there is one, and `picked` says that it was left to the plan. `wanted` is the
    measurement that was asked for, where the plan took another in its place. `squared` says that it is paid
    in rho, and not in epsilon.
    """

    measurement: "Measurement"
    mechanism: Mechanism
    distance: Distance
    share: Fraction
    count: int = 1
    choice: MethodChoice | None = None
    picked: bool = False
    wanted: "Measurement | None" = None
    squared: bool = False

    @property
    def spend(self) -> Spend:
        """What it costs."""
        return Spend(mechanism=self.mechanism, distance=self.distance, count=self.count)

    @property
    def note(self) -> str:
        """Which method was taken and why, where there is a choice; empty elsewhere."""
        return self.measurement.note(self)

    def answers(self, wanted: "Measurement") -> bool:
        """Whether it was made for a measurement."""
        return wanted == (self.wanted or self.measurement)


def moved(
    neighbours: Neighbours,
    squared: bool,
    *,
    length: int,
    copies: int,
    each: int,
    signed: bool = False,
) -> Distance:
    """How far a unit moves `copies` times `each` numbers that it moves by `length` together.

    When a unit is replaced, one leaves and another enters: twice as many numbers move. None of them is
    negative but a plain sum, whose size is bounded, so the square of the length doubles too; for a plain sum,
    which may go from one bound to the other, it is taken fourfold.
    """
    twice = 2 if neighbours is Neighbours.REPLACE else 1
    coordinates = twice * copies * each
    largest = Fraction(length) if each == 1 and not signed else None
    if squared:
        square = Fraction((twice**2 if signed else twice) * copies * length**2)
        return Distance.l2(square=square, coordinates=coordinates, neighbours=neighbours, largest=largest)
    amount = Fraction(twice * copies * length)
    return Distance.l1(amount, coordinates=coordinates, neighbours=neighbours, largest=largest)


@dataclass(frozen=True, kw_only=True)
class Measurement(ABC):
    """Something that is measured of a query's groups. Every statistic that can be read off it shares it.

    One that is `alone` takes a pass over the table of its own. No statistic is read off one that does not
    `answer`. `of_units` says that it counts units and not records, `signed` that its numbers may be negative.
    """

    scope: Scope
    alone: ClassVar[bool] = False
    answer: ClassVar[bool] = True
    of_units: ClassVar[bool] = False
    signed: ClassVar[bool] = False
    others: ClassVar[bool] = True  # records whose key was not chosen may count together
    most_keys: ClassVar[int] = MOST_GROUPS  # chosen keys that it takes

    @property
    @abstractmethod
    def label(self) -> str:
        """What is measured, in a few words."""

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """What records are grouped by, within the groups of the query."""
        return ()

    def serves(self, other: "Measurement", schema: Schema) -> bool:
        """Whether all that can be read off another can be read off this one."""
        return self == other

    @abstractmethod
    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        """How far the numbers of two neighbouring tables are apart.

        A unit moves at most `max_groups` groups, each by what `max_rows` records weigh.
        """

    def line(self, context: Context, allotment: Allotment, share: Fraction) -> PlannedMeasurement:
        """The least noise for how far a unit moves it."""
        squared = allotment.squared
        distance = self.distance(context.schema, context.unit, context.neighbours, squared)
        mechanism = noise(distance, share * allotment.total, squared)
        return PlannedMeasurement(
            measurement=self, mechanism=mechanism, distance=distance, share=share, squared=squared
        )

    def requests(self, source: Source, unit: PrivacyUnit) -> tuple[Request, ...]:
        """What the engine sums, if this can be summed in one pass with others."""
        return ()

    @abstractmethod
    def exact(
        self, source: Source, unit: PrivacyUnit, bits: Bits, beside: Sequence["Measurement"] = ()
    ) -> list[Exact]:
        """What one pass over the table finds, of it and of those beside it. Nobody may see it."""

    @abstractmethod
    def read(self, exact: Exact, line: PlannedMeasurement, context: Context, bits: Bits) -> Reading:
        """What was found, with noise."""

    def check_source(self, source: Source) -> None:  # noqa: B027 (most can be measured on any table)
        """Refuse a table on which it cannot be measured, by declarations and types alone."""

    def note(self, line: PlannedMeasurement) -> str:
        """What is to be known of how it is measured."""
        return ""

    def step(self, schema: Schema, unit: PrivacyUnit) -> tuple[float, str]:
        """What a step of its numbers is worth, and in which measure."""
        alone = self.of_units or unit.column is None
        return 1.0, plural(unit.name if alone else "record")

    def noise_words(self, line: PlannedMeasurement, context: Context) -> str:
        """Its noise as people read it, in the measure of what it is added to."""
        step, measure = self.step(context.schema, context.unit)
        if isinstance(line.mechanism, Gaussian):
            return f"Gaussian, sigma {shorten(float(line.mechanism.sigma) * step)} {measure}"
        return f"Laplace, scale {shorten(float(expect(Laplace, line.mechanism).scale) * step)} {measure}"

    def moves(self, line: PlannedMeasurement, context: Context) -> str:
        """How far a unit moves it, as people read it."""
        distance, (step, measure) = line.distance, self.step(context.schema, context.unit)
        amount = distance.amount if distance.norm is Norm.L1 else root_above(distance.amount)
        amount_told = shorten_up(float(amount) * step)
        alone = {plural(name): name for name in (context.unit.name, "record")} if amount_told == "1" else {}
        return f"{amount_told} {alone.get(measure, measure)} in {distance.norm}"

    def keys(self, schema: Schema) -> Keys:
        """Every combination of keys by the names of their columns, those of the query first."""
        known = Keys.product([axis.keys(schema) for axis in self._known])
        opened, by = self.scope.open, self.scope.by
        if not opened:
            return known
        assert self.scope.chosen is not None
        spread = self.scope.chosen.names.each_with(known)
        columns = [*opened, *(name for name in by if name not in opened)]
        order = [columns.index(name) for name in by]
        return Keys((*(spread.columns[at] for at in order), *spread.columns[len(by) :]), spread.size)

    def sizes(self, schema: Schema) -> list[tuple[object, int]]:
        """What records are grouped by, and how many keys each of those has."""
        scope = self.scope
        sizes: list[tuple[object, int]] = [(axis, len(axis.keys(schema))) for axis in self._known]
        if scope.open:
            sizes.append((scope.open, MOST_GROUPS if scope.chosen is None else len(scope.chosen.names)))
        return sizes

    def _first(self, known: int) -> int:
        """The place of chosen keys among so many others: before them, except where they are ranked."""
        return 0

    @property
    def _known(self) -> list[KeyAxis]:
        """What records are grouped by whose keys are declared."""
        return [axis for axis in (*self.scope.axes, *self.axes) if axis.column not in self.scope.open]

    def groups(self, schema: Schema) -> int:
        """How many groups there are; of keys that are still to be chosen, as many as are answered."""
        return math.prod(size for _, size in self.sizes(schema))

    def known_groups(self, schema: Schema) -> int:
        """How many groups there are for each key that is chosen, or without such keys."""
        return math.prod(size for name, size in self.sizes(schema) if name != self.scope.open)

    def outer_groups(self, schema: Schema) -> int:
        """How many groups the query has by itself."""
        axes = (axis for axis in self.scope.axes if axis.column not in self.scope.open)
        return math.prod(len(axis.keys(schema)) for axis in axes)

    def groupings(self, source: Source) -> list[Grouping]:
        """What the engine groups by."""
        groupings_of_axes = [axis.grouping(source) for axis in self._known]
        if self.scope.chosen is not None:
            groupings_of_axes.insert(self._first(len(groupings_of_axes)), self.scope.chosen.by)
        return groupings_of_axes


@dataclass(frozen=True, kw_only=True)
class ColumnMeasurement(Measurement):
    """Something measured of the numbers of a column."""

    column: str

    def number(self, schema: Schema) -> Number:
        """The column that is measured."""
        return schema.number(f"The query '{self.scope.query}'", self.column)

    def width(self, schema: Schema) -> int:
        """The steps between the bounds of the column."""
        low, high = span(self.number(schema))
        return high - low


# Sums over the records of each group, off which counts and moments are read.


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
