"""What one record counts as, in SQL: a whole number of grid steps, a key, or nothing.

Each expression depends on its own record alone and gives an answer for every value there is, so that no error
and no shape tells about the data: what cannot be read, is not a number or is infinite is missing, and what is
missing follows the declared rule.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sourdine.frames.columns import LONGEST_KEY, Category, Column, Flag, Integer, Number, Real, Text, span
from sourdine.frames.derived import DERIVED, DerivedCategory, DerivedFlag
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.engines.types import SMALL
from sourdine.frames.expressions import ColumnValue, Expression, InPeriod, KeyKind, Kinds, NumberKind
from sourdine.frames.expressions.arithmetic import regrid
from sourdine.frames.expressions.kinds import decimal
from sourdine.frames.schema import Schema
from sourdine.frames.times.dates import Date, Datetime
from sourdine.frames.times.moments import date_in, time_name

__all__ = [
    "Grouping",
    "Key",
    "TableCells",
    "all_true",
    "bins",
    "code_name",
    "fit",
    "grouping",
    "indicator",
    "key_kind",
    "literal",
    "number_name",
    "place",
    "place_name",
    "place_of",
    "quoted",
    "sides",
    "steps",
]

Key = str | int | bool
_SMALL = 1 << 30
_LISTED = 1 << 10  # keys that stand in a question; more are lent to it as a table
_FAR = 1 << 61  # beyond every place, and sums with it fit in 64 bits


def quoted(name: str) -> str:
    """A column's name as DuckDB takes it."""
    return DUCKDB.quoted(name)


def literal(value: str | int | float | bool) -> str:
    """A constant as DuckDB takes it."""
    return DUCKDB.literal(value)


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
    whole = "INTEGER" if low > -_SMALL and high < _SMALL else "BIGINT"
    since = f" - ({origin})" if origin else ""
    within, below, above = sides(name, column, kind, dialect)
    if _is_whole(column, kind):
        held = dialect.narrow(dialect.quoted(name), whole)
    else:
        value = dialect.double(dialect.quoted(name), kind)
        units = value if column.step == 1 else f"{value} * {dialect.literal(float(1 / column.step))}"
        held = dialect.nearest(units, whole)
    return (
        f"CASE WHEN {within} THEN {held}{since} WHEN {below} THEN {low - origin} "
        f"WHEN {above} THEN {high - origin} ELSE {absent} END"
    )


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
        among = f"{raw} IN ({', '.join(map(self.dialect.literal, self.keys))})"
        if self.unbroken:
            among = f"{raw} >= {self.keys[0]} AND {raw} <= {self.keys[-1]}"
        held = f"CASE WHEN {among} THEN {raw} END"
        if self.missing is None:
            return held
        # not by ELSE, which DuckDB 2.0 may take for NULL in a comparison with a list (filter.all_true)
        return f"coalesce({held}, {self.dialect.literal(self.missing)})"

    @property
    def apart(self) -> bool:
        """Whether raw keys that differ never count as the same known key."""
        return self.missing is None and self.shift is None

    @property
    def many(self) -> bool:
        """Whether the keys are so many that the engine looks them up in a table that is lent to it."""
        return len(self.keys) > _LISTED and self.shift is None and not self.unbroken

    @property
    def unbroken(self) -> bool:
        """Whether the keys are whole numbers one after the other, which two comparisons tell from others."""
        if isinstance(self.keys, range):
            return self.keys.step == 1
        first = self.keys[0]
        if not isinstance(first, int) or isinstance(first, bool):
            return False
        return all(key == first + place for place, key in enumerate(self.keys))


def code_name(name: str) -> str:
    """What the column of a source's view is called that holds the places of a derived column's keys."""
    return f"sourdine code of {name}"


def grouping(name: str, column: Column, kind: str, dialect: Dialect = DUCKDB) -> Grouping:
    """The grouping by a column of known keys; keys that are numbers or derived are known by their places."""
    held = dialect.quoted(name)
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
        raw = dialect.flag(held, kind)
        return Grouping(name=name, raw=raw, keys=(False, True), missing=missing, dialect=dialect)
    assert isinstance(column, Category)
    other = None if column.missing == "drop" else column.missing
    raw = dialect.whole(held, kind) if isinstance(column.keys[0], int) else dialect.text(held, kind)
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
        held = value if edges[-1] + width < 2 * _SMALL else wide
        raw, keys = dialect.quotient(f"({held} + {width})", str(width)), tuple(range(last + 1))
        return Grouping(name=name, raw=raw, keys=keys, shift=1, dialect=dialect, binned=value)
    found = _search(value, edges, 0, len(edges) - 1)
    if like:
        found = dialect.quotient(f"({wide} - ({edges[0]}))", str(width))
    least = edges[0] if most is None else max(edges[0], 0)
    inside = f"CASE WHEN {value} = {edges[-1]} THEN {last} ELSE {found} END"
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
    found = tree.kind(kinds)
    assert isinstance(found, KeyKind)
    return found


def fit(raw: str, dialect: Dialect) -> str:
    """Whether a text may be a key at all; NULL or false where it is missing."""
    return f"(length({raw}) BETWEEN 1 AND {LONGEST_KEY} AND {dialect.legible(raw)})"


@dataclass(frozen=True)
class TableCells:
    """The declared columns of a table's view, for expressions."""

    schema: Schema
    types: Mapping[str, str]
    dialect: Dialect

    def place(self, name: str) -> str:
        """The steps of a number above its lower bound."""
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
        return self.dialect.quoted(time_name(name))

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

    def _known(self, name: str) -> str:
        column = self.schema.columns[name]
        grouped = grouping(name, column, self.types.get(name, ""), self.dialect)
        return grouped.known(grouped.raw)

    def derived(self, name: str) -> str:
        """What the view holds for a derived column: its place, that of its key, or whether it holds."""
        column, kinds = self.schema.columns[name], self.schema.kinds
        assert isinstance(column, DERIVED)
        tree = column.expression
        sql = tree.sql(self, kinds)
        if not isinstance(column, Integer | Real):
            return f"{sql} AS {self.dialect.quoted(code_name(name))}"
        kind, (low, high) = tree.kind(kinds), span(column)
        assert isinstance(kind, NumberKind)
        whole = regrid(sql, kind, column.step, self.dialect, tree.text)
        place = f"coalesce({whole} - ({low}), -1)"
        if high - low < _SMALL:
            place = self.dialect.narrow(place, "INTEGER")
        return f"{place} AS {place_of(name, self.dialect)}"


def all_true(conditions: Iterable[str]) -> str:
    """Whether all conditions hold.

    Each is asked whether it is true, which an engine takes as it stands. DuckDB 2.0 makes a list of keys into
    "not NULL" where all that a column holds are in it, though what is missing may count as one of them: then
    whether missing values count would hang on what other records hold.
    """
    return " AND ".join(f"({each} IS TRUE)" for each in conditions) or "TRUE"


def indicator(condition: str) -> str:
    """A condition as a number: 1 where it holds, 0 where it does not."""
    return f"CAST({condition} AS INTEGER)"
