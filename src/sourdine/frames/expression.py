"""What one record counts as, in SQL: a whole number of grid steps, a key, or nothing.

Each expression depends on its own record alone and gives an answer for every value there is, so that no error
and no shape tells about the data: what cannot be read, is not a number or is infinite is missing, and what is
missing follows the declared rule.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from sourdine.frames.schema import Category, Column, Flag, Number, decimal

Key = str | int | bool
WHOLE = tuple(sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))
_SMALL = 1 << 30
_FAR = 1 << 61  # beyond every place, and sums with it fit in 64 bits


def quoted(name: str) -> str:
    """A column's name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | float | bool) -> str:
    """A constant as SQL takes it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    return str(value)


def span(column: Number) -> tuple[int, int]:
    """The least and the greatest step of a column, whichever way its bounds are rounded."""
    return math.floor(decimal(column.lower) / column.step), math.ceil(decimal(column.upper) / column.step)


def place_name(name: str) -> str:
    """What the column of a source's view is called that holds the places of a number."""
    return f"sourdine place of {name}"


def place_of(name: str) -> str:
    """The column of a source's view that holds the steps of a number above its lower bound, or -1."""
    return quoted(place_name(name))


def place(name: str, column: Number, kind: str) -> str:
    """A number in steps above its lower bound, and -1 where the record is dropped.

    Without NULL an engine knows between which bounds the answer lies, and groups by it more quickly.
    """
    return _clamped(name, column, kind, span(column)[0], "-1")


def steps(name: str, column: Number, kind: str) -> str:
    """A number in steps of its grid, clamped to its bounds; NULL where the record is dropped."""
    return _clamped(name, column, kind, 0, "NULL")


def _clamped(name: str, column: Number, kind: str, origin: int, absent: str) -> str:
    """Steps from an origin; `kind` is the engine's type of the column.

    Comparisons pick the clamp: they are quicker than `least` and `greatest`, and NaN, which is above
    everything there, falls through them.
    """
    low, high = span(column)
    if column.missing != "drop":
        absent = str(math.floor(decimal(column.missing) / column.step) - origin)
    whole = "INTEGER" if low > -_SMALL and high < _SMALL else "BIGINT"
    since = f" - ({origin})" if origin else ""
    ends = low - origin, high - origin
    if kind in WHOLE and column.step == 1:
        value = quoted(name)
        inside = f"WHEN {value} >= {low} AND {value} <= {high} THEN CAST({value} AS {whole}){since}"
        outside = f"WHEN {value} < {low} THEN {ends[0]} WHEN {value} > {high} THEN {ends[1]}"
        return f"CASE {inside} {outside} ELSE {absent} END"
    value = quoted(name) if kind == "DOUBLE" else f"TRY_CAST({quoted(name)} AS DOUBLE)"
    lower, upper = literal(float(column.lower)), literal(float(column.upper))
    units = value if column.step == 1 else f"{value} * {literal(float(1 / column.step))}"
    inside = f"WHEN {value} >= {lower} AND {value} <= {upper} THEN CAST({units} AS {whole}){since}"
    outside = (
        f"WHEN {value} < {lower} AND {value} > {literal(-math.inf)} THEN {ends[0]} "
        f"WHEN {value} > {upper} AND {value} < {literal(math.inf)} THEN {ends[1]}"
    )
    return f"CASE {inside} {outside} ELSE {absent} END"


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """What records are grouped by, in two steps, and the known keys in their declared order.

    The engine groups by `raw` first, which is quick, and then turns what it found into known keys: `known` is
    an expression of `raw`, NULL where the record is dropped.
    """

    name: str
    raw: str
    keys: tuple[Key, ...]
    missing: Key | None = None
    shift: int | None = None
    binned: str | None = None  # the place whose missing values, and no others, have raw keys below the shift

    def known(self, raw: str) -> str:
        """The known key of a raw one.

        With a shift, keys are numbers that many less than the raw ones, and one above them is the last.
        """
        if self.shift is not None:
            last = len(self.keys) - 1
            return f"CASE WHEN {raw} >= {self.shift} THEN least({raw} - {self.shift}, {last}) END"
        listed = ", ".join(literal(each) for each in self.keys)
        other = "" if self.missing is None else f" ELSE {literal(self.missing)}"
        return f"CASE WHEN {raw} IN ({listed}) THEN {raw}{other} END"


def grouping(name: str, column: Column, kind: str) -> Grouping:
    """The grouping by a column of known keys."""
    if isinstance(column, Flag):
        missing = None if column.missing == "drop" else column.missing
        raw = quoted(name) if kind == "BOOLEAN" else f"TRY_CAST({quoted(name)} AS BOOLEAN)"
        return Grouping(name=name, raw=raw, keys=(False, True), missing=missing)
    assert isinstance(column, Category)
    other = None if column.missing == "drop" else column.missing
    if isinstance(column.keys[0], int):
        # of more than 64 bits with a sign no key is known, and an array would round them
        same = kind in WHOLE and kind != "UBIGINT"
        raw = quoted(name) if same else f"TRY_CAST({quoted(name)} AS BIGINT)"
    else:
        # by a collation of the table's own, texts that differ would be one group with the name of any of them
        raw = f"{quoted(name) if kind == 'VARCHAR' else f'TRY_CAST({quoted(name)} AS VARCHAR)'} COLLATE C"
    return Grouping(name=name, raw=raw, keys=column.keys, missing=other)


def bins(name: str, value: str, edges: tuple[int, ...], most: int | None = None) -> Grouping:
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
        raw = f"({value if edges[-1] + width < 2 * _SMALL else wide} + {width}) // {width}"
        return Grouping(name=name, raw=raw, keys=tuple(range(last + 1)), shift=1, binned=value)
    found = f"({wide} - ({edges[0]})) // {width}" if like else _search(value, edges, 0, len(edges) - 1)
    least = edges[0] if most is None else max(edges[0], 0)
    inside = f"CASE WHEN {value} = {edges[-1]} THEN {last} ELSE {found} END"
    raw = f"CASE WHEN {value} >= {least} THEN {inside} END"
    return Grouping(name=name, raw=raw, keys=tuple(range(last + 1)))


def _search(value: str, edges: tuple[int, ...], low: int, high: int) -> str:
    """The bin among [low, high) by halving, and a bin too far for what lies above."""
    if high - low == 1:
        return f"CASE WHEN {value} < {edges[high]} THEN {low} ELSE {len(edges)} END"
    middle = (low + high) // 2
    below, above = _search(value, edges, low, middle), _search(value, edges, middle, high)
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"
