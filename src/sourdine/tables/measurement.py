"""What answers are read off: what is summed or put in order, and how far a unit moves it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import product

from sourdine.core.distance import Distance, Neighbours
from sourdine.frames.counting import Keys
from sourdine.frames.expression import Grouping, Key, bins, grouping, place_of, span
from sourdine.frames.schema import Number, Schema
from sourdine.frames.source import Source
from sourdine.frames.statistic import EVERYTHING, Moments, Statistic, Total
from sourdine.frames.unit import Unit
from sourdine.tables.aggregate import (
    Aggregate,
    Contingency,
    Count,
    Deviation,
    Histogram,
    Mean,
    Proportion,
    Quantiles,
    Units,
    Variance,
)
from sourdine.tables.query import Query
from sourdine.tables.tree import Tree


class Kind(StrEnum):
    """What is summed."""

    RECORDS = "records"
    UNITS = "units"
    TOTAL = "total"
    MOMENTS = "moments"
    HOLDS = "holds"
    BINS = "bins"
    CELLS = "cells"
    TREE = "tree"
    ORDER = "order"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Some numbers for each group of a query. Every aggregate that can be read off them shares them."""

    kind: Kind
    query: Query
    asked: Histogram | Contingency | Proportion | Quantiles | None = None
    column: str | None = None
    degree: int = 0
    share: Fraction = Fraction(0)

    @property
    def label(self) -> str:
        """What is measured, in a few words."""
        if self.asked is not None:
            return self.asked.label
        names = {
            Kind.RECORDS: "count",
            Kind.UNITS: "units",
            Kind.TOTAL: f"sum of {self.column}",
            Kind.MOMENTS: f"{'moments' if self.degree == 2 else 'sum and count'} of {self.column}",
            Kind.TREE: f"ranks of {self.column}",
        }
        return names[self.kind]

    def same(self, other: "Measurement") -> bool:
        """Whether two are one, whatever their shares."""
        return replace(self, share=other.share) == other

    def number(self, schema: Schema) -> Number:
        """The column that is measured."""
        return schema.number(f"The query '{self.query.name}'", self.column or "")

    def width(self, schema: Schema) -> int:
        """The steps between the bounds of the column."""
        if self.kind is Kind.HOLDS:
            return 1
        low, high = span(self.number(schema))
        return high - low

    def tree(self, schema: Schema) -> Tree:
        """The tree of bins over the column's grid."""
        return Tree.over(self.width(schema) + 1)

    def keys(self, schema: Schema) -> tuple[Keys, ...]:
        """Every combination of known keys; a bin of a histogram is known by its number."""
        return tuple(product(*(keys for _, keys in self._grouped(schema))))

    def sizes(self, schema: Schema) -> list[tuple[object, int]]:
        """What records are grouped by, and how many keys each of those has."""
        return [(name, len(keys)) for name, keys in self._grouped(schema)]

    def _grouped(self, schema: Schema) -> list[tuple[object, Sequence[Key]]]:
        names = [*self.query.by, *(self.asked.columns if isinstance(self.asked, Contingency) else ())]
        found: list[tuple[object, Sequence[Key]]] = [(name, schema.keys(name)) for name in names]
        if isinstance(self.asked, Histogram):
            found.append((self.asked, range(len(self.asked.edges) - 1)))
        return found

    def groups(self, schema: Schema) -> int:
        """How many groups there are."""
        return math.prod(size for _, size in self.sizes(schema))

    def statistic(self, schema: Schema, unit: Unit, value: str) -> Statistic:
        """What is summed, of this expression."""
        if self.kind is Kind.TOTAL:
            return Total(value=value, reach=max(map(abs, span(self.number(schema)))), most=unit.rows)
        if self.kind in (Kind.MOMENTS, Kind.HOLDS):
            return Moments(value=value, width=self.width(schema), degree=self.degree, most=unit.rows)
        return Moments(value=value, most=1 if self.kind is Kind.UNITS else unit.rows)

    def distance(self, schema: Schema, unit: Unit, neighbours: Neighbours, squared: bool) -> Distance:
        """How far the numbers of two neighbouring tables are apart, in L1 or in L2.

        A unit moves `groups` groups, each by what `rows` records weigh. When a unit is replaced, one leaves
        and another enters: twice as many numbers move. None of them is negative but a plain sum, whose size
        is bounded, so the square of the length doubles too; for a plain sum, which may go from one bound to
        the other, it is taken fourfold. Values in order are counted in values that change in one group.
        """
        if self.kind is Kind.ORDER:
            return Distance.hamming(unit.rows, neighbours=neighbours)
        twice = 2 if neighbours is Neighbours.REPLACE else 1
        groups = min(unit.groups, self.groups(schema))
        if self.kind is Kind.TREE:
            height = self.tree(schema).height
            length, copies, each = unit.rows, groups * height, unit.rows
        else:
            statistic = self.statistic(schema, unit, "")
            length, copies, each = statistic.reach * statistic.most, groups, statistic.coordinates
        coordinates = twice * copies * each
        if squared:
            factor = twice**2 if self.kind is Kind.TOTAL else twice
            square = Fraction(factor * copies * length**2)
            return Distance.l2(square=square, coordinates=coordinates, neighbours=neighbours)
        return Distance.l1(Fraction(twice * copies * length), coordinates=coordinates, neighbours=neighbours)

    def groupings(self, source: Source) -> list[Grouping]:
        """What the engine groups by."""
        schema, names = source.schema, list(self.query.by)
        if isinstance(self.asked, Contingency):
            names += self.asked.columns
        found = [grouping(name, schema.columns[name], source.types[name]) for name in names]
        if isinstance(self.asked, Histogram):
            column = self.asked.column
            number = schema.number(self.query.name, column)
            low, high = span(number)
            edges = tuple(edge - low for edge in self.asked.places(number))
            found.append(bins(column, place_of(column), edges, high - low))
        return found

    def value(self, source: Source) -> str:
        """What one record counts as, in SQL."""
        if self.kind is Kind.HOLDS:
            assert isinstance(self.asked, Proportion)
            return f"CAST({self.asked.of.sql(source)} AS INTEGER)"
        if self.column is None:
            return EVERYTHING
        value = place_of(self.column)
        if self.kind is Kind.TOTAL:
            return f"nullif({value}, -1) + ({span(self.number(source.schema))[0]})"
        return value


def condition(query: Query, source: Source) -> str:
    """The records a query is about, in SQL."""
    return " AND ".join(each.sql(source) for each in query.where) or "TRUE"


def measurements(query: Query, schema: Schema) -> list[Measurement]:
    """The fewest measurements that a query's aggregates can be read off, with their shares of it.

    Shares add up to 1: each aggregate brings a like part to the measurement it is read off.
    """
    part = Fraction(1, len(query.ask))
    found: list[Measurement] = []
    for each in query.ask:
        wanted = source_of(each, query, schema)
        for place, held in enumerate(found):
            if held.same(wanted):
                found[place] = replace(held, share=held.share + part)
                break
        else:
            found.append(replace(wanted, share=part))
    return found


def source_of(each: Aggregate, query: Query, schema: Schema) -> Measurement:
    """The measurement that an aggregate is read off.

    A mean or a variance asked of a column also gives its sum, and the count if no record is dropped for a
    missing value in it.
    """
    degrees = _degrees(query)
    if isinstance(each, Units):
        return Measurement(kind=Kind.UNITS, query=query)
    if isinstance(each, Count):
        whole = next((name for name in degrees if schema.columns[name].missing != "drop"), None)
        if whole is None:
            return Measurement(kind=Kind.RECORDS, query=query)
        return Measurement(kind=Kind.MOMENTS, query=query, column=whole, degree=degrees[whole])
    if isinstance(each, Proportion):
        return Measurement(kind=Kind.HOLDS, query=query, asked=each, degree=1)
    if isinstance(each, Histogram):
        return Measurement(kind=Kind.BINS, query=query, asked=each)
    if isinstance(each, Contingency):
        return Measurement(kind=Kind.CELLS, query=query, asked=each)
    if isinstance(each, Quantiles):
        if each.method == "tree":
            return Measurement(kind=Kind.TREE, query=query, column=each.column)
        return Measurement(kind=Kind.ORDER, query=query, asked=each, column=each.column)
    if each.column not in degrees:
        return Measurement(kind=Kind.TOTAL, query=query, column=each.column)
    return Measurement(kind=Kind.MOMENTS, query=query, column=each.column, degree=degrees[each.column])


def _degrees(query: Query) -> Mapping[str, int]:
    """The highest power that is asked of each column."""
    found: dict[str, int] = {}
    for each in query.ask:
        if isinstance(each, Mean | Variance | Deviation):
            found[each.column] = max(found.get(each.column, 0), 1 if isinstance(each, Mean) else 2)
    return found
