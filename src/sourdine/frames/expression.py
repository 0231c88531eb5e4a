"""What one record counts as, in SQL: a whole number of grid steps, a key, or nothing.

Each expression depends on its own record alone and gives an answer for every value there is, so that no error
and no shape tells about the data: what cannot be read, is not a number or is infinite is missing, and what is
missing follows the declared rule.
"""

import math
from fractions import Fraction

from sourdine.frames.schema import Category, Column, Flag, Number


def quoted(name: str) -> str:
    """A column's name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | float | bool) -> str:
    """A constant as SQL takes it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def bounds(column: Number) -> tuple[int, int]:
    """The bounds of a number in steps of its grid."""
    low, high = (
        math.floor(Fraction(bound) / column.step + Fraction(1, 2)) for bound in (column.lower, column.upper)
    )
    return low, high


def steps(name: str, column: Number) -> str:
    """A number in steps of its grid, clamped to its bounds; NULL where the record is dropped."""
    low, high = bounds(column)
    value = f"TRY_CAST({quoted(name)} AS DOUBLE)"
    inside = f"least(greatest({value}, {float(column.lower)!r}), {float(column.upper)!r})"
    whole = f"CAST(floor({inside} / {float(column.step)!r} + 0.5) AS BIGINT)"
    held = f"least(greatest({whole}, {low}), {high})"
    other = "NULL" if column.missing == "drop" else str(_rounded(column.missing, column.step))
    return f"CASE WHEN {value} IS NULL OR isnan({value}) OR isinf({value}) THEN {other} ELSE {held} END"


def key(name: str, column: Column) -> str:
    """A known key; NULL where the record is dropped."""
    if isinstance(column, Flag):
        value = f"TRY_CAST({quoted(name)} AS BOOLEAN)"
        return value if column.missing == "drop" else f"coalesce({value}, {literal(column.missing)})"
    assert isinstance(column, Category)
    kind = "BIGINT" if isinstance(column.keys[0], int) else "VARCHAR"
    value = f"TRY_CAST({quoted(name)} AS {kind})"
    known = ", ".join(literal(each) for each in column.keys)
    other = "" if column.missing == "drop" else f" ELSE {literal(column.missing)}"
    return f"CASE WHEN {value} IN ({known}) THEN {value}{other} END"


def _rounded(value: float, step: Fraction) -> int:
    return math.floor(Fraction(value) / step + Fraction(1, 2))
