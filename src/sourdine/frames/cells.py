"""Records whose cells lie within their bounds, which most do: expressions are computed of them as they stand.

One test tells such a record from the others, and then no cell of it is looked at twice. The others go the
general way, cell by cell. Both give the same, and no value can raise in either.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise

import numpy as np

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.engines.types import SMALL, Family, family
from sourdine.frames.expressions import (
    All,
    AnyOf,
    ColumnValue,
    Comparison,
    Constant,
    Expression,
    InPeriod,
    KeyKind,
    Kinds,
    NumberKind,
    RecordCells,
    may_be_missing,
    walk,
)
from sourdine.frames.expressions.conditions import matched_name
from sourdine.frames.expressions.functions import regrid
from sourdine.frames.expressions.times import moment_at
from sourdine.frames.expressions.tree import decimal, seconds_of
from sourdine.frames.keys import values_of
from sourdine.frames.schema import (
    DERIVED,
    LONGEST_KEY,
    Category,
    Column,
    DerivedCategory,
    DerivedFlag,
    Flag,
    Integer,
    Number,
    Real,
    Schema,
    Text,
    span,
)
from sourdine.frames.times import Date, Datetime, TimeInside, date_in, time_inside, time_name

_MOST_PARTS = 64  # of an expression that is written twice


def held_number(name: str, types: Mapping[str, str]) -> tuple[str, str]:
    """The column of a view that holds a declared number, and its type.

    A number in text is read once for the whole view, since it is compared with both bounds.
    """
    kind = types[name]
    return (number_name(name), "DOUBLE") if family(kind) is Family.TEXT else (name, kind)


@dataclass(frozen=True)
class CellsInside:
    """The columns of a record whose numbers and dates all lie within their bounds; keys and texts may not."""

    schema: Schema
    types: Mapping[str, str]
    cells: RecordCells

    @property
    def dialect(self) -> Dialect:
        """How the engine's SQL is written."""
        return self.cells.dialect

    def test(self, tree: Expression) -> str | None:
        """Whether a record is such a one, as far as an expression goes; None where that is not worth it."""
        if sum(1 for _ in walk(tree)) > _MOST_PARTS:
            return None
        tests = [self._test(name) for name in tree.columns]
        return " AND ".join(each for each in tests if each is not None) or None

    def _test(self, name: str) -> str | None:
        column = self.schema.columns[name]
        if isinstance(column, Integer | Real):
            if isinstance(column, DERIVED):
                return f"{place_of(name, self.dialect)} >= 0"
            return sides(*self._number(name, column), self.dialect)[0]
        inside = self._time(name)
        return None if inside is None else inside.test

    def lacks(self, tree: Expression) -> bool:
        """Return whether an expression of such a record may be missing."""
        return may_be_missing(tree, lambda name: self._test(name) is None)

    def _number(self, name: str, column: Number) -> tuple[str, Number, str]:
        column_sql, kind = held_number(name, self.types)
        return column_sql, column, kind

    def _time(self, name: str) -> TimeInside | None:
        column = self.schema.columns[name]
        if not isinstance(column, Date | Datetime):
            return None
        return time_inside(self.dialect.quoted(name), column, self.types[name], self.dialect)

    def place(self, name: str) -> str:
        """The steps of a number above its lower bound."""
        low, _ = span(self.schema.number("An expression", name))
        return f"({self.steps(name)} - ({low}))" if low else self.steps(name)

    def steps(self, name: str) -> str:
        """The steps of a number from 0, in 64 bits."""
        column = self.schema.number("An expression", name)
        if isinstance(column, DERIVED):
            return f"(CAST({place_of(name, self.dialect)} AS BIGINT) + ({span(column)[0]}))"
        return steps_inside(*self._number(name, column), "BIGINT", self.dialect)

    def code(self, name: str) -> str:
        """The place of a key among those that are declared."""
        return self.cells.code(name)

    def truth(self, name: str) -> str:
        """A flag."""
        return self.cells.truth(name)

    def time(self, name: str) -> str:
        """Days or seconds since 1970-01-01, in 64 bits."""
        inside = self._time(name)
        return self.cells.time(name) if inside is None else inside.number

    def date(self, name: str) -> str:
        """The day of a date or time, as a date of the engine."""
        inside = self._time(name)
        return self.cells.date(name) if inside is None else inside.date

    def text(self, name: str) -> str:
        """A text that may be a key."""
        return self.cells.text(name)

    def among(self, name: str, keys: tuple[str | int | bool, ...]) -> str:
        """Whether a column of keys, a flag or a text holds one of some keys."""
        return self.cells.among(name, keys)

    def matched(self, join: str) -> str:
        """Whether a record has a row in the public table of a join."""
        return self.cells.matched(join)


# Numbers in SQL: steps of their grid above the lower bound, each clamped, for every value there is.


SMALL_SPAN = 1 << 30  # steps that 32 bits hold, and a sum of two


def place_name(name: str) -> str:
    """What the column of a source's view is called that holds the places of a number."""
    return f"sourdine place of {name}"


def place_of(name: str, dialect: Dialect = DUCKDB) -> str:
    """The column of a source's view that holds the steps of a number above its lower bound, or -1."""
    return dialect.quoted(place_name(name))


def number_name(name: str) -> str:
    """What the column below a source's view is called that holds a number which is written in text."""
    return f"sourdine number of {name}"


def place(name: str, column: Number, kind: str, dialect: Dialect = DUCKDB) -> str:
    """A number in steps above its lower bound, and -1 where the record is dropped.

    Without NULL an engine knows between which bounds the answer lies, and groups by it more quickly.
    """
    return _clamped(name, column, kind, dialect, origin=span(column)[0], absent="-1")


def steps(name: str, column: Number, kind: str, dialect: Dialect = DUCKDB) -> str:
    """A number in steps of its grid, clamped to its bounds; NULL where the record is dropped."""
    return _clamped(name, column, kind, dialect, origin=0, absent="NULL")


def sides(name: str, column: Number, kind: str, dialect: Dialect = DUCKDB) -> tuple[str, str, str]:
    """Whether a cell lies within the bounds, else below or above them; none holds where it is no number.

    Comparisons pick the clamp: they are quicker than `least` and `greatest`, and NaN, which is above
    everything there, falls through them, as do infinities.
    """
    if _is_whole(column, kind):
        value, (low, high) = dialect.quoted(name), span(column)
        return f"{value} >= {low} AND {value} <= {high}", f"{value} < {low}", f"{value} > {high}"
    value, literal = dialect.double(dialect.quoted(name), kind), dialect.literal
    lower, upper = literal(float(column.lower)), literal(float(column.upper))
    least, most = literal(-sys.float_info.max), literal(sys.float_info.max)
    return (
        f"{value} BETWEEN {lower} AND {upper}",
        f"{value} BETWEEN {least} AND {lower}",
        f"{value} BETWEEN {upper} AND {most}",
    )


def _is_whole(column: Number, kind: str) -> bool:
    """Whether cells are steps of the grid as they stand."""
    return kind in SMALL and column.step == 1


def _clamped(name: str, column: Number, kind: str, dialect: Dialect, *, origin: int, absent: str) -> str:
    """Steps from an origin; `kind` is the engine's type of the column."""
    low, high = span(column)
    if column.missing != "drop":
        absent = str(math.floor(decimal(column.missing) / column.step) - origin)
    whole = "INTEGER" if low > -SMALL_SPAN and high < SMALL_SPAN else "BIGINT"
    since = f" - ({origin})" if origin else ""
    within, below, above = sides(name, column, kind, dialect)
    inside = steps_inside(name, column, kind, whole, dialect)
    return (
        f"CASE WHEN {within} THEN {inside}{since} WHEN {below} THEN {low - origin} "
        f"WHEN {above} THEN {high - origin} ELSE {absent} END"
    )


def steps_inside(name: str, column: Number, kind: str, whole: str, dialect: Dialect = DUCKDB) -> str:
    """A number that lies within its bounds in steps of its grid, as a whole type of the engine."""
    if _is_whole(column, kind):
        return dialect.narrow(dialect.quoted(name), whole)
    value = dialect.double(dialect.quoted(name), kind)
    units = value if column.step == 1 else f"{value} * {dialect.literal(float(1 / column.step))}"
    return dialect.nearest(units, whole)


# What one record counts as, in SQL: a whole number of grid steps, a key, or nothing.
#
# Each expression depends on its own record alone and gives an answer for every value there is, so that no
# error and no shape tells about the data: what cannot be read, is not a number or is infinite is missing,
# and what is missing follows the declared rule.


Key = str | int | bool
_LISTED = 1 << 10  # keys that stand in a question; more are lent to it as a table
_FAR = 1 << 61  # beyond every place, and sums with it fit in 64 bits


def quoted(name: str) -> str:
    """A column's name as DuckDB takes it."""
    return DUCKDB.quoted(name)


def literal(value: str | int | float | bool) -> str:
    """A constant as DuckDB takes it."""
    return DUCKDB.literal(value)


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """What records are grouped by, in two steps, and the known keys in their declared order.

    The engine groups by `raw` first, which is quick, and then turns what it found into known keys: `known` is
    an expression of `raw`, NULL where the record is dropped.
    """

    name: str
    raw: str
    keys: Sequence[Key]
    missing: Key | None = None
    shift: int | None = None
    dialect: Dialect = DUCKDB
    binned: str | None = None  # the place whose missing values, and no others, have raw keys below the shift

    def known(self, raw: str) -> str:
        """The known key of a raw one.

        With a shift, keys are numbers that many less than the raw ones, and one above them is the last.
        """
        if self.shift is not None:
            last = len(self.keys) - 1
            return f"CASE WHEN {raw} >= {self.shift} THEN least({raw} - {self.shift}, {last}) END"
        if self.unbroken:
            among = f"{raw} >= {self.keys[0]} AND {raw} <= {self.keys[-1]}"
        else:
            among = f"{raw} IN ({', '.join(map(self.dialect.literal, self.keys))})"
        known_key = f"CASE WHEN {among} THEN {raw} END"
        if self.missing is None:
            return known_key
        # not by ELSE, which DuckDB 2.0 may take for NULL in a comparison with a list (filter.all_true)
        return f"coalesce({known_key}, {self.dialect.literal(self.missing)})"

    @property
    def apart(self) -> bool:
        """Whether raw keys that differ never count as the same known key."""
        return self.missing is None and self.shift is None

    @property
    def many(self) -> bool:
        """Whether the keys are so many that the engine looks them up in a table that is lent to it."""
        return len(self.keys) > _LISTED and self.shift is None and not self.unbroken

    @cached_property
    def unbroken(self) -> bool:
        """Whether the keys are whole numbers one after the other, which two comparisons tell from others."""
        if isinstance(self.keys, range):
            return self.keys.step == 1
        first = self.keys[0]
        if not isinstance(first, int) or isinstance(first, bool):
            return False
        last = first + len(self.keys) - 1
        return self.keys[-1] == last and bool((np.diff(values_of(self.keys)) == 1).all())


def code_name(name: str) -> str:
    """What the column of a source's view is called that holds the places of a derived column's keys."""
    return f"sourdine code of {name}"


def grouping(name: str, column: Column, kind: str, dialect: Dialect = DUCKDB) -> Grouping:
    """The grouping by a column of known keys; keys that are numbers or derived are known by their places."""
    cell = dialect.quoted(name)
    if isinstance(column, Integer):
        many = range(column.upper - column.lower + 1)
        return Grouping(name=name, raw=place_of(name, dialect), keys=tuple(many), dialect=dialect)
    if isinstance(column, DerivedCategory):
        raw = dialect.quoted(code_name(name))
        return Grouping(name=name, raw=raw, keys=tuple(range(len(column.keys))), dialect=dialect)
    if isinstance(column, DerivedFlag):
        return Grouping(name=name, raw=dialect.quoted(code_name(name)), keys=(False, True), dialect=dialect)
    if isinstance(column, Date | Datetime):
        assert column.period is not None
        tree = InPeriod(ColumnValue(name), column.period)
        cells = TableCells(Schema(columns={name: column}), {name: kind}, dialect)
        raw, many = tree.sql(cells, {name: column.kind}), range(len(key_kind(tree, {name: column.kind}).keys))
        return Grouping(name=name, raw=raw, keys=tuple(many), dialect=dialect)
    if isinstance(column, Flag):
        missing = None if column.missing == "drop" else column.missing
        raw = dialect.flag(cell, kind)
        return Grouping(name=name, raw=raw, keys=(False, True), missing=missing, dialect=dialect)
    assert isinstance(column, Category)
    other = None if column.missing == "drop" else column.missing
    raw = dialect.whole(cell, kind) if isinstance(column.keys[0], int) else dialect.text(cell, kind)
    return Grouping(name=name, raw=raw, keys=column.keys, missing=other, dialect=dialect)


def bins(
    name: str, value: str, edges: tuple[int, ...], most: int | None = None, dialect: Dialect = DUCKDB
) -> Grouping:
    """The grouping of a number of steps by bins from edge to edge; the last one holds its upper edge.

    Like bins over all that a place may hold, from 0 to `most`, need a division alone: what is missing, -1,
    comes below the first bin, and the greatest place above the last, which it is then counted in. Sums that
    32 bits may not hold are taken in 64, since an overflow would tell that there is a large value.
    """
    edges = tuple(max(-_FAR, min(_FAR, edge)) for edge in edges)
    width, last = edges[1] - edges[0], len(edges) - 2
    like = width > 0 and all(b - a == width for a, b in pairwise(edges))
    wide = f"CAST({value} AS BIGINT)"
    if like and most is not None and edges[0] == 0 and most <= edges[-1]:
        exact = value if edges[-1] + width < 2 * SMALL_SPAN else wide
        raw, keys = dialect.quotient(f"({exact} + {width})", str(width)), tuple(range(last + 1))
        return Grouping(name=name, raw=raw, keys=keys, shift=1, dialect=dialect, binned=value)
    place_of_bin = _search(value, edges, 0, len(edges) - 1)
    if like:
        place_of_bin = dialect.quotient(f"({wide} - ({edges[0]}))", str(width))
    least = edges[0] if most is None else max(edges[0], 0)
    inside = f"CASE WHEN {value} = {edges[-1]} THEN {last} ELSE {place_of_bin} END"
    raw = f"CASE WHEN {value} >= {least} THEN {inside} END"
    return Grouping(name=name, raw=raw, keys=tuple(range(last + 1)), dialect=dialect)


def _search(value: str, edges: tuple[int, ...], low: int, high: int) -> str:
    """The bin among [low, high) by halving, and a bin too far for what lies above."""
    if high - low == 1:
        return f"CASE WHEN {value} < {edges[high]} THEN {low} ELSE {len(edges)} END"
    middle = (low + high) // 2
    below, above = _search(value, edges, low, middle), _search(value, edges, middle, high)
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"


def key_kind(tree: Expression, kinds: Kinds) -> KeyKind:
    """The keys of an expression that has some."""
    kind = tree.kind(kinds)
    assert isinstance(kind, KeyKind)
    return kind


def fit(raw: str, dialect: Dialect) -> str:
    """Whether a text may be a key at all; NULL or false where it is missing."""
    return f"(length({raw}) BETWEEN 1 AND {LONGEST_KEY} AND {dialect.legible(raw)})"


@dataclass(frozen=True)
class TableCells:
    """The declared columns of a table's view, for expressions."""

    schema: Schema
    types: Mapping[str, str]
    dialect: Dialect
    apart: bool = False  # without the columns of the view that are computed of every record

    def place(self, name: str) -> str:
        """The steps of a number above its lower bound."""
        column = self.schema.columns[name]
        if self.apart and isinstance(column, Integer | Real) and not isinstance(column, DERIVED):
            number, kind = held_number(name, self.types)
            return f"nullif({place(number, column, kind, self.dialect)}, -1)"
        return f"nullif({place_of(name, self.dialect)}, -1)"

    def steps(self, name: str) -> str:
        """The steps of a number from 0, in 64 bits."""
        low, _ = span(self.schema.number("An expression", name))
        return f"(CAST({self.place(name)} AS BIGINT) + ({low}))"

    def code(self, name: str) -> str:
        """The place of a key among those that are declared."""
        column = self.schema.columns[name]
        if isinstance(column, DERIVED):
            return self.dialect.quoted(code_name(name))
        assert isinstance(column, Category)
        known = self._known(name)
        keys: tuple[Key, ...] = column.keys
        cases = (f"WHEN {self.dialect.literal(key)} THEN {place}" for place, key in enumerate(keys))
        return f"CAST(CASE {known} {' '.join(cases)} END AS BIGINT)"

    def truth(self, name: str) -> str:
        """A flag."""
        return self._known(name)

    def time(self, name: str) -> str:
        """Days or seconds since 1970-01-01, in 64 bits."""
        column, kind = self.schema.columns[name], self.types[name]
        if self.apart and isinstance(column, Date | Datetime):
            inside = time_inside(self.dialect.quoted(name), column, kind, self.dialect)
            if inside is not None:
                return f"(CASE WHEN {inside.test} THEN {inside.number} END)"
        return self.dialect.quoted(time_name(name))

    def time_range(self, name: str, sign: str, at: int) -> list[str] | None:
        """That a time lies so from a second, and within first and last; None where its type does not tell."""
        column = self.schema.columns[name]
        if not isinstance(column, Datetime):
            return None
        cell, first, last = self.dialect.quoted(name), column.kind.first, column.kind.last
        if time_inside(cell, column, self.types[name], self.dialect) is None:
            return None
        first = max(first, {">=": at, "=": at, ">": at + 1}.get(sign, first))
        last = min(last, {"<=": at, "=": at, "<": at - 1}.get(sign, last))
        if first > last:
            return ["FALSE"]
        low, high = (self.dialect.on_clock(moment_at(end)) for end in (first, last + 1))
        return [f"{cell} >= {low}", f"{cell} < {high}"]

    def date(self, name: str) -> str:
        """The day of a date or time, as a date of the engine."""
        column = self.schema.columns[name]
        assert isinstance(column, Date | Datetime)
        return date_in(name, column, self.types[name], self.dialect)

    def text(self, name: str) -> str:
        """A text that may be a key."""
        raw = self.dialect.text(self.dialect.quoted(name), self.types[name])
        return f"(CASE WHEN {fit(raw, self.dialect)} THEN {raw} END)"

    def among(self, name: str, keys: tuple[Key, ...]) -> str:
        """Whether a column holds one of some keys; NULL where it is missing and dropped."""
        column = self.schema.columns[name]
        if isinstance(column, DerivedCategory):
            places = [column.keys.index(key) for key in keys]
            return f"({self.code(name)} IN ({', '.join(map(str, places))}))"
        listed = ", ".join(map(self.dialect.literal, keys))
        if isinstance(column, Text):
            raw = self.dialect.text(self.dialect.quoted(name), self.types[name])
            return f"CASE WHEN {fit(raw, self.dialect)} THEN {raw} IN ({listed}) END"
        return f"({self._known(name)} IN ({listed}))"

    def matched(self, join: str) -> str:
        """Whether a record has a row in the public table of a join."""
        name = matched_name(join)
        if name not in self.types:
            raise InvalidParameter(f"There is no public table '{join}' beside this table. Join it.")
        return self.dialect.quoted(name)

    def _known(self, name: str) -> str:
        column = self.schema.columns[name]
        grouped = grouping(name, column, self.types.get(name, ""), self.dialect)
        return grouped.known(grouped.raw)

    def derived(self, name: str) -> tuple[str, str]:
        """The view's column for a derived one, and its SQL: a place, that of a key, or whether it holds."""
        column = self.schema.columns[name]
        assert isinstance(column, DERIVED)
        if not isinstance(column, Integer | Real):
            return self.dialect.quoted(code_name(name)), self.value(column.expression)
        return place_of(name, self.dialect), self._place_of(column.expression, column)

    def value(self, tree: Expression) -> str:
        """An expression, quickly where all cells lie within their bounds."""
        inside = CellsInside(self.schema, self.types, self)
        test, kinds = inside.test(tree), self.schema.kinds
        if test is None:
            return tree.sql(self, kinds)
        others = tree.sql(replace(self, apart=True), kinds)
        return f"(CASE WHEN {test} THEN {tree.sql(inside, kinds)} ELSE {others} END)"

    def _place_of(self, tree: Expression, column: Number) -> str:
        """The place of a derived number, and -1 where it is missing; quickly, where it can be."""
        kinds, (low, high) = self.schema.kinds, span(column)
        kind, inside = tree.kind(kinds), CellsInside(self.schema, self.types, self)
        assert isinstance(kind, NumberKind)

        def written(cells: RecordCells, lacks: bool) -> str:
            whole = regrid(tree.sql(cells, kinds), kind, column.step, self.dialect, tree.text)
            above = f"{whole} - ({low})" if low else whole
            sql = f"coalesce({above}, -1)" if lacks else above
            return self.dialect.narrow(sql, "INTEGER") if high - low < SMALL_SPAN else sql

        test = inside.test(tree)
        if test is None:
            return written(self, lacks=True)
        others = written(replace(self, apart=True), lacks=True)
        return f"CASE WHEN {test} THEN {written(inside, inside.lacks(tree))} ELSE {others} END"


def certain(tree: Expression, cells: TableCells) -> list[str]:
    """Conditions that are all true where one is, and else not all.

    Of a range of times an engine then looks at the column itself, and may pass over whole parts of a file.
    """
    match tree:
        case AnyOf():
            pass
        case All(of):
            return [each for part in of for each in certain(part, cells)]
        case Comparison(ColumnValue(name), sign, Constant(datetime() as at)) if sign != "<>":
            times = cells.time_range(name, sign, seconds_of(at))
            if times is not None:
                return times
    return [tree.sql(cells, cells.schema.kinds)]


def all_true(conditions: Iterable[str]) -> str:
    """Whether all conditions hold.

    Each is asked whether it is true, which an engine takes as it stands. DuckDB 2.0 makes a list of keys into
    "not NULL" where all that a column holds are in it, though what is missing may count as one of them: then
    whether missing values count would depend on what other records hold.
    """
    return " AND ".join(f"(({each}) IS TRUE)" for each in dict.fromkeys(conditions)) or "TRUE"


def indicator(condition: str) -> str:
    """A condition as a number: 1 where it holds, 0 where it does not."""
    return f"CAST({condition} AS INTEGER)"
