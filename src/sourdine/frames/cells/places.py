"""Numbers in SQL: steps of their grid above the lower bound, each clamped, for every value there is."""

import math
import sys

from sourdine.frames.columns import Number, span
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.engines.types import SMALL
from sourdine.frames.expressions.kinds import decimal

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
