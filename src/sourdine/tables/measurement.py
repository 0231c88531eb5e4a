"""What answers are read off: what is summed or put in order, and how far a unit moves it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import product

from sourdine.core.distance import Distance, Neighbours
from sourdine.frames.counting import MOST_GROUPS, Keys
from sourdine.frames.expression import Grouping, Key, bins, span
from sourdine.frames.open_keys import TextKey
from sourdine.frames.quality import cells_of
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
    Top,
    Units,
    Variance,
    columns_of,
)
from sourdine.tables.consistent.structure import Structure, distance_of, structure_of
from sourdine.tables.hierarchy import Hierarchy
from sourdine.tables.query import Query
from sourdine.tables.tree import Tree

ALL_QUERIES = Query(name="(all queries)", ask=(Count(),))  # whose data quality is one measurement


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
    KEYS = "keys"
    TOP = "top"
    MARGINS = "margins"
    QUALITY = "quality"


@dataclass(frozen=True)
class Chosen:
    """Keys that were chosen privately, in the order of their texts, and what the engine calls them.

    `names` holds one more where those that were not chosen count together.
    """

    names: tuple[TextKey, ...]
    by: Grouping


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Some numbers for each group of a query. Every aggregate that can be read off them shares them.

    `open` are the columns whose keys are chosen privately, and `chosen` those keys, once they are known.
    `columns` are those of all queries, where it is counted how many records fit them.
    `bins` are the finest bins of a tree, where they are wider than a step of the column's grid.
    """

    kind: Kind
    query: Query
    asked: Histogram | Contingency | Hierarchy | Proportion | Quantiles | Top | None = None
    column: str | None = None
    degree: int = 0
    share: Fraction = Fraction(0)
    open: tuple[str, ...] = ()
    chosen: Chosen | None = None
    columns: tuple[str, ...] = ()
    bins: int | None = None

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
            Kind.KEYS: f"keys of {' and '.join(self.open)}",
            Kind.QUALITY: "data quality",
        }
        return names[self.kind]

    def same(self, other: "Measurement") -> bool:
        """Whether two are one, whatever their shares, and what a plan made of quantiles left to it."""
        if self.kind is Kind.ORDER and self.asked is not None and other.kind is Kind.TREE:
            return replace(self, share=other.share, kind=other.kind, bins=other.bins) == other
        return replace(self, share=other.share) == other

    def counted(self, tree: Tree) -> "Measurement":
        """The same quantiles, read off the counts of a tree."""
        return replace(self, kind=Kind.TREE, bins=tree.fan if tree.leaf > 1 or tree.height == 1 else None)

    def number(self, schema: Schema) -> Number:
        """The column that is measured."""
        return schema.number(f"The query '{self.query.name}'", self.column or "")

    def width(self, schema: Schema) -> int:
        """The steps between the bounds of the column."""
        if self.kind is Kind.HOLDS:
            return 1
        low, high = span(self.number(schema))
        return high - low

    @property
    def levels(self) -> tuple[float, ...]:
        """The shares of the records below the quantiles that are read off."""
        asked = [each for each in self.query.ask if isinstance(each, Quantiles)]
        return tuple(level for each in asked if each.column == self.column for level in each.at)

    def structure(self, schema: Schema) -> Structure:
        """The table and the sums of it that are measured."""
        assert isinstance(self.asked, Contingency | Hierarchy)
        return structure_of(self.asked, schema)

    def tree(self, schema: Schema) -> Tree:
        """The tree of bins over the column's grid."""
        places = self.width(schema) + 1
        return Tree.over(places) if self.bins is None else Tree.flat(places, self.bins)

    def keys(self, schema: Schema) -> tuple[Keys, ...]:
        """Every combination of keys by the names of their columns, those of the query first.

        A bin of a histogram is known by its number.
        """
        places = list(product(*(keys for _, keys in self._grouped(schema))))
        if not self.open:
            return tuple(places)
        assert self.chosen is not None
        names, by = self.chosen.names, self.query.by
        if self.kind is Kind.TOP:
            return tuple((*key[:-1], *names[int(key[-1])]) for key in places)
        held = [*self.open, *(name for name in by if name not in self.open)]
        order = [held.index(name) for name in by]
        spread = ((*names[int(key[0])], *key[1:]) for key in places)
        return tuple((*(key[at] for at in order), *key[len(by) :]) for key in spread)

    def sizes(self, schema: Schema) -> list[tuple[object, int]]:
        """What records are grouped by, and how many keys each of those has."""
        return [(name, len(keys)) for name, keys in self._grouped(schema)]

    def _grouped(self, schema: Schema) -> list[tuple[object, Sequence[Key]]]:
        """Those of chosen keys stand first, except where they are what is ranked."""
        found: list[tuple[object, Sequence[Key]]] = [(name, schema.keys(name)) for name in self._known]
        if isinstance(self.asked, Histogram):
            found.append((self.asked, range(len(self.asked.edges) - 1)))
        if self.open:
            many = MOST_GROUPS if self.chosen is None else len(self.chosen.names)
            found.insert(len(found) if self.kind is Kind.TOP else 0, (self.open, range(many)))
        return found

    @property
    def _known(self) -> list[str]:
        """The columns with declared keys that records are grouped by."""
        inner: tuple[str, ...] = ()
        if isinstance(self.asked, Contingency):
            inner = self.asked.columns
        if isinstance(self.asked, Top | Hierarchy):
            inner = (self.asked.column,)
        return [name for name in (*self.query.by, *inner) if name not in self.open]

    def groups(self, schema: Schema) -> int:
        """How many groups there are; of keys that are still to be chosen, as many as are answered."""
        return math.prod(size for _, size in self.sizes(schema))

    def known_groups(self, schema: Schema) -> int:
        """How many groups there are for each key that is chosen, or without such keys."""
        return math.prod(size for name, size in self.sizes(schema) if name != self.open)

    def outer_groups(self, schema: Schema) -> int:
        """How many groups the query has by itself."""
        return math.prod(len(schema.keys(name)) for name in self.query.by if name not in self.open)

    def statistic(self, schema: Schema, unit: Unit, value: str) -> Statistic:
        """What is summed, of this expression."""
        if self.kind is Kind.TOTAL:
            return Total(value=value, reach=max(map(abs, span(self.number(schema)))), most=unit.rows)
        if self.kind in (Kind.MOMENTS, Kind.HOLDS):
            return Moments(value=value, width=self.width(schema), degree=self.degree, most=unit.rows)
        return Moments(value=value, most=1 if self.kind in (Kind.UNITS, Kind.TOP) else unit.rows)

    def distance(self, schema: Schema, unit: Unit, neighbours: Neighbours, squared: bool) -> Distance:
        """How far the numbers of two neighbouring tables are apart, in L1 or in L2.

        A unit moves `groups` groups, each by what `rows` records weigh. When a unit is replaced, one leaves
        and another enters: twice as many numbers move. None of them is negative but a plain sum, whose size
        is bounded, so the square of the length doubles too; for a plain sum, which may go from one bound to
        the other, it is taken fourfold. Values in order are counted in values that change in one group. Keys
        are chosen and ranked by counts of units, each of which changes by one. In each column whose fit is
        counted, all cells together move by `rows`.
        """
        if self.kind in (Kind.KEYS, Kind.TOP):
            return Distance.linf(1, neighbours=neighbours)
        if self.kind is Kind.ORDER:
            return Distance.hamming(unit.rows, neighbours=neighbours)
        if self.kind is Kind.MARGINS:
            tables = self.groups(schema) // self.structure(schema).cells
            return distance_of(self.structure(schema), tables, unit, neighbours, squared)
        twice = 2 if neighbours is Neighbours.REPLACE else 1
        groups = min(unit.groups, self.groups(schema))
        if self.kind is Kind.QUALITY:
            most = max(len(cells_of(schema.columns[name])) for name in self.columns) if self.columns else 1
            length, copies, each = unit.rows, max(1, len(self.columns)), min(unit.rows, most)
        elif self.kind is Kind.TREE:
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
        schema = source.schema
        found = [source.grouping(name) for name in self._known]
        if isinstance(self.asked, Histogram):
            column = self.asked.column
            number = schema.number(self.query.name, column)
            low, high = span(number)
            edges = tuple(edge - low for edge in self.asked.places(number))
            found.append(bins(column, source.place_of(column), edges, high - low, source.dialect))
        if self.chosen is not None:
            found.insert(len(found) if self.kind is Kind.TOP else 0, self.chosen.by)
        return found

    def value(self, source: Source) -> str:
        """What one record counts as, in SQL."""
        if self.kind is Kind.HOLDS:
            assert isinstance(self.asked, Proportion)
            return f"CAST({self.asked.of.sql(source)} AS INTEGER)"
        if self.column is None:
            return EVERYTHING
        value = source.place_of(self.column)
        if self.kind is Kind.TOTAL:
            return f"nullif({value}, -1) + ({span(self.number(source.schema))[0]})"
        return value


def condition(query: Query, source: Source) -> str:
    """The records a query is about, in SQL.

    Each condition is asked whether it is true, which an engine takes as it stands. DuckDB 2.0 makes a list of
    keys into "not NULL" where all that a column holds are in it, though what is missing may count as one of
    them: then whether missing values count would hang on what other records hold.
    """
    return " AND ".join(f"({each.sql(source)} IS TRUE)" for each in query.where) or "TRUE"


def measurements(query: Query, schema: Schema) -> list[Measurement]:
    """The fewest measurements that a query's aggregates can be read off, with their shares of it.

    Shares add up to 1: each aggregate brings a like part to the measurement it is read off, and one more part
    goes to each choice of keys that is needed.
    """
    asked = [source_of(each, query, schema) for each in query.ask]
    choices = dict.fromkeys(measured.open for measured in asked if measured.open)
    keys = [Measurement(kind=Kind.KEYS, query=query, open=names) for names in choices]
    part = Fraction(1, len(query.ask) + len(keys))
    found: list[Measurement] = []
    for wanted in (*keys, *asked):
        for place, held in enumerate(found):
            if held.same(wanted):
                found[place] = replace(held, share=held.share + part)
                break
        else:
            found.append(replace(wanted, share=part))
    return found


def quality_of(queries: Sequence[Query]) -> Measurement:
    """How many records fit each column that these queries use, over the whole table."""
    used = [
        name
        for query in queries
        for name in (
            *query.by,
            *(condition.column for condition in query.where),
            *(name for each in query.ask for name in columns_of(each)),
        )
    ]
    return Measurement(kind=Kind.QUALITY, query=ALL_QUERIES, columns=tuple(dict.fromkeys(used)))


def source_of(each: Aggregate, query: Query, schema: Schema) -> Measurement:
    """The measurement that an aggregate is read off."""
    return replace(_source_of(each, query, schema), open=query.open(each, schema))


def selection_of(measured: Measurement) -> tuple[object, ...]:
    """What tells apart the choices of keys: measurements alike in this share one."""
    return measured.open, measured.query.where


def _source_of(each: Aggregate, query: Query, schema: Schema) -> Measurement:
    """A mean or a variance asked of a column also gives its sum, and the count if no record is dropped for a
    missing value in it.
    """
    degrees = _degrees(query)
    if isinstance(each, Top):
        return Measurement(kind=Kind.TOP, query=query, asked=each)
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
    if isinstance(each, Hierarchy) or (isinstance(each, Contingency) and each.consistent):
        return Measurement(kind=Kind.MARGINS, query=query, asked=each)
    if isinstance(each, Contingency):
        return Measurement(kind=Kind.CELLS, query=query, asked=each)
    if isinstance(each, Quantiles):
        if each.method == "tree":
            return Measurement(kind=Kind.TREE, query=query, column=each.column, bins=each.bins)
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
