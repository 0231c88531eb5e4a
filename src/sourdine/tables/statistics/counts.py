"""How many records, and how many units."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import setting
from sourdine.frames.cells import Grouping, Key, bins
from sourdine.frames.declared import by_hand, declare
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.keys import KeyColumn, Keys
from sourdine.frames.schema import Number, PrivacyUnit, Schema, sensible, span
from sourdine.frames.source import Source
from sourdine.tables.answers import ALL
from sourdine.tables.consistent import ADDING_UP, Crossed, Margins, Structure
from sourdine.tables.intervals import Counted, GroupEstimate, Noisy, Numbers, Reading
from sourdine.tables.measurement import (
    Context,
    KeyAxis,
    Measurement,
    PlannedMeasurement,
    RecordCounts,
    Scope,
    UnitCounts,
    expect,
    plural,
)
from sourdine.tables.statistics.base import (
    Chart,
    Estimates,
    Example,
    Expected,
    OfColumn,
    Scale,
    Single,
    Statistic,
    Style,
    as_tuple,
    grouped_by,
    numbers_of,
    records_of,
)


class _OfAll(Single):
    """A count that is about no column."""

    bare: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return self.kind

    @property
    def about(self) -> tuple[str, ...]:
        return ()

    def check(self, schema: Schema, owner: str) -> None:
        """Any table has one."""

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.count()

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        yield cls.model_validate({})


class Count(_OfAll):
    """How many records there are."""

    kind: Literal["count"] = "count"
    style: ClassVar[Style] = Style(scale=Scale.COUNT)
    example: ClassVar[Example] = {}

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return RecordCounts(scope=scope)

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return records_of(unit)


class Units(_OfAll):
    """How many different units there are."""

    kind: Literal["units"] = "units"
    style: ClassVar[Style] = Style(scale=Scale.COUNT, of_units=True)
    example: ClassVar[Example] = {}
    other_names: ClassVar[tuple[str, ...]] = ("distinct", "unique", "nunique")

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return UnitCounts(scope=scope)

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return plural(unit.name)


# How many records lie in each of some bins.


@dataclass(frozen=True)
class Bins(KeyAxis):
    """Bins of a column between edges in steps of its grid; a bin is known by its number."""

    edges: tuple[int, ...]

    def keys(self, schema: Schema) -> Sequence[Key]:
        return range(len(self.edges) - 1)

    def grouping(self, source: Source) -> Grouping:
        low, high = span(source.schema.number("A histogram", self.column))
        edges = tuple(edge - low for edge in self.edges)
        return bins(self.column, source.place_of(self.column), edges, high - low, source.dialect)


class Histogram(OfColumn, Single):
    """How many records lie in each bin of a column; a bin holds its lower edge, and the last one both."""

    kind: Literal["histogram"] = "histogram"
    edges: tuple[int | float, ...] = Field(min_length=2, max_length=1 << 16)
    style: ClassVar[Style] = Style(Chart.UPRIGHT, Scale.COUNT)
    example: ClassVar[Example] = {"histogram": "age", "edges": [0, 20, 40]}
    disjoint: ClassVar[bool] = True

    @by_hand
    def __init__(self, column: str, edges: Sequence[float]) -> None:
        declare(super().__init__, "Histogram", column=column, edges=tuple(edges))

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        return as_tuple(fields, "edges")

    @model_validator(mode="after")
    def _rising(self) -> "Histogram":
        if not all(map(sensible, self.edges)):
            raise ValueError("edges must be numbers up to 1e100 in size")
        if not all(a < b for a, b in pairwise(self.edges)):
            raise ValueError(f"edges must rise, as in {setting('edges', [0, 20, 40])}")
        return self

    @property
    def adds(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, schema: Schema, owner: str) -> None:
        """Every bin must hold a step of the column's grid."""
        super().check(schema, owner)
        places = self.places(schema.number(owner, self.column))
        if not all(a < b for a, b in pairwise(places)):
            raise InvalidParameter(
                f"The histogram of '{self.column}' in '{owner}' has a bin narrower than the column's grid. "
                "Use wider bins, or declare a finer granularity."
            )

    def places(self, column: Number) -> tuple[int, ...]:
        """The edges in steps of the column's grid."""
        return tuple(math.ceil(decimal(edge) / column.step) for edge in self.edges)

    @property
    def bins(self) -> tuple[str, ...]:
        """The bins as people write them."""
        pairs = list(pairwise(self.edges))
        names = [f"{low:g} to below {high:g}" for low, high in pairs[:-1]]
        return (*names, f"{pairs[-1][0]:g} to {pairs[-1][1]:g}")

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        axis = Bins(self.column, self.places(self.number(schema)))
        return RecordCounts(scope=scope, name=self.label, within=(axis,))

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.count()

    def keys(self, measured: Measurement, schema: Schema) -> Keys:
        *outer, last = (all_keys := measured.keys(schema)).columns
        return Keys((*outer, last.changed(self.bins)), all_keys.size)

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return records_of(unit)

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        """Like and unlike bins, within the bounds of a column and beyond them."""
        for name in numbers_of(schema):
            column = schema.number(name, name)
            low, high, step = float(column.lower), float(column.upper), float(column.step)
            middle = low + step * round((high - low) / step / 2)
            for edges in ([low, high], [low - step, middle, high + step], [low, low + step, high + 2 * step]):
                yield cls(column=name, edges=tuple(sorted(set(edges))))


# How many records there are for each combination of keys, with the sums over columns.


class Contingency(Statistic):
    """How many records there are for each combination of the keys of some columns, with margins.

    Margins are sums of noisy cells; or, if `consistent`, each is measured too, and all are made into whole
    numbers that add up. `margins` are those: 'all' for the total, a column, or several; without it, the total
    and each column by itself. If `rolled`, there are sums over the last columns alone: the last, the last two
    and so on, as ROLLUP has them in SQL.
    """

    kind: Literal["contingency"] = "contingency"
    columns: tuple[str, ...] = Field(min_length=1, max_length=6)
    consistent: bool = False
    margins: tuple[str | tuple[str, ...], ...] | None = Field(default=None, max_length=64)
    rolled: bool = Field(default=False, exclude_if=lambda value: not value)
    style: ClassVar[Style] = Style(Chart.HEAT, Scale.COUNT)
    totals: ClassVar[bool] = True
    example: ClassVar[Example] = {"contingency": ["sex", "region"]}

    @by_hand
    def __init__(
        self,
        columns: Sequence[str],
        *,
        consistent: bool = False,
        margins: Sequence[str | Sequence[str]] | None = None,
        rolled: bool = False,
    ) -> None:
        fields = {"columns": tuple(columns), "consistent": consistent, "margins": margins, "rolled": rolled}
        declare(super().__init__, "Contingency", **fields)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        lists = as_tuple(as_tuple(fields, "columns"), "margins")
        if isinstance(lists, Mapping) and isinstance(lists.get("margins"), tuple):
            listed = (tuple(each) if isinstance(each, list) else each for each in lists["margins"])
            return {**lists, "margins": tuple(listed)}
        return lists

    @model_validator(mode="after")
    def _unlike(self) -> "Contingency":
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns must not repeat")
        if len(self.columns) < 2 and not self.rolled:
            raise ValueError("columns must be at least 2; group by one, and count")
        if self.rolled and self.consistent:
            raise ValueError("rolled sums are those of the cells; leave 'consistent' or 'rolled' out")
        if self.margins is not None and not self.consistent:
            raise ValueError(f"margins need {setting('consistent', True)}")
        for margin in self.summed:
            if not set(margin) < set(self.columns):
                raise ValueError("margins must be 'all', or some of the columns and not all of them")
        if len({frozenset(margin) for margin in self.summed}) != len(self.summed):
            raise ValueError("margins must not repeat")
        return self

    @property
    def summed(self) -> tuple[tuple[str, ...], ...]:
        """The margins that are measured beside the cells, each by its columns in their order."""
        columns = self.columns if len(self.columns) > 1 else ()
        margins = (ALL, *columns) if self.margins is None else self.margins
        wanted = [(each,) if isinstance(each, str) else each for each in margins]
        plain = [() if each == (ALL,) else each for each in wanted]
        return tuple(
            each
            if not set(each) <= set(self.columns)
            else tuple(name for name in self.columns if name in each)
            for each in plain
        )

    @property
    def label(self) -> str:
        # a single column has a name of its own already
        return " by ".join(self.columns if len(self.columns) > 1 else (*self.columns, "total"))

    @property
    def form(self) -> str:
        return "margins" if self.consistent else self.kind

    @property
    def about(self) -> tuple[str, ...]:
        return self.columns

    @property
    def adds(self) -> tuple[str, ...]:
        return self.columns

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """The columns of the table."""
        return tuple(map(KeyAxis, self.columns))

    @classmethod
    def long(cls, kind: str, value: object, rest: Mapping[str, object], query: str) -> Mapping[str, object]:
        return {"kind": kind, "columns": value, **rest}

    def check(self, schema: Schema, owner: str) -> None:
        """Every column must have known keys, none of which is the name of a margin."""
        for name in self.columns:
            if ALL in schema.keys(name):
                raise InvalidParameter(
                    f"The column '{name}' in '{owner}' has the key '{ALL}', which names the margins of a "
                    "contingency table. Rename the key, or group by the column instead."
                )

    def structure(self, schema: Schema) -> Structure:
        """The cells and the margins that are measured."""
        shape = tuple(len(schema.keys(name)) for name in self.columns)
        margins = [tuple(self.columns.index(name) for name in margin) for margin in self.summed]
        return Crossed(shape, (tuple(range(len(shape))), *margins))

    def inner(self, schema: Schema) -> Keys:
        """The key of every number: 'all' where it is a sum over a column."""
        crossed = expect(Crossed, self.structure(schema))
        return crossed.keys([schema.keys(name) for name in self.columns])

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        if self.consistent:
            return Margins(scope=scope, table=self)
        return RecordCounts(scope=scope, name=self.label, within=self.axes)

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        if self.consistent:
            return Estimates(*expect(Margins, measured).estimate(expect(Noisy, reading), schema), whole=True)
        sizes = [len(schema.keys(name)) for name in self.columns]
        gone = [
            each
            for many in range(1, len(sizes) + 1)
            for each in combinations(range(len(sizes)), many)
            if not self.rolled or each[0] == len(sizes) - many
        ]
        cells = expect(Counted, reading)
        return Estimates(*_with_margins(cells, measured.keys(schema), sizes, gone), whole=True)

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return None

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return records_of(unit)

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        """That of a cell, or of all numbers where they add up."""
        measure = self.unit_of_measure(context.unit)
        if self.consistent:
            return Expected(expect(Margins, line.measurement).error(line, context), measure, ADDING_UP)
        return Expected(line.mechanism.error(context.confidence), measure)

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        for two in permutations(grouped_by(schema), 2):
            yield cls(columns=two)
            yield cls(columns=two, consistent=True)
            yield cls(columns=two, consistent=True, margins=(two[0],))


def _with_margins(
    cells: Counted, keys: Keys, sizes: Sequence[int], summed: Sequence[tuple[int, ...]]
) -> tuple[GroupEstimate, Keys]:
    """The cells, then the sums over some sets of columns, whose intervals allow for all their noises."""
    if not keys:
        return cells.count(), keys
    noisy, shape = cells.noisy, (-1, *sizes)
    places = np.arange(len(keys)).reshape(shape)
    parts, named = [cells.count()], [keys]
    outer = len(keys.columns) - len(sizes)
    for gone in summed:
        value = noisy.numbers[:, 0].reshape(shape).sum(axis=tuple(axis + 1 for axis in gone)).ravel()
        reach = noisy.reach(np.ones(int(np.prod([sizes[axis] for axis in gone]))))
        parts.append(GroupEstimate(value, value - reach, value + reach))
        first = tuple(0 if axis in gone else slice(None) for axis in range(len(sizes)))
        table_keys = keys.take(places[(slice(None), *first)].ravel())
        every = KeyColumn.one(ALL, table_keys.size)
        columns = [every if at - outer in gone else column for at, column in enumerate(table_keys.columns)]
        named.append(Keys(tuple(columns), table_keys.size))
    joined = [np.concatenate([getattr(part, end) for part in parts]) for end in ("value", "lower", "upper")]
    return GroupEstimate(*joined), Keys.joined(named)
