"""Which records count, in SQL: those whose column holds one of some keys, or a number between bounds."""

import math
from collections.abc import Iterable, Sequence

from sourdine.frames.expression import Key, span
from sourdine.frames.schema import Number, Text, decimal
from sourdine.frames.source import Source
from sourdine.frames.statistics.partitions import fit, raw_text


def among(source: Source, name: str, keys: Sequence[Key]) -> str:
    """Whether a column holds one of some keys; NULL where it is missing and dropped."""
    listed = ", ".join(map(source.dialect.literal, keys))
    if isinstance(source.schema.columns[name], Text):
        raw = raw_text(source, name)
        return f"CASE WHEN {fit(raw, source.dialect)} THEN {raw} IN ({listed}) END"
    grouped = source.grouping(name)
    return f"({grouped.known(grouped.raw)} IN ({listed}))"


def between(source: Source, name: str, at_least: float | None, below: float | None) -> str:
    """Whether a number is at one bound or above and below the other; NULL where it is missing and dropped."""
    column: Number = source.schema.number("A condition", name)
    value, (low, high) = f"nullif({source.place_of(name)}, -1)", span(column)

    def bound(number: float) -> int:
        """The first place at the number or above; one past the ends does for what lies farther out."""
        return max(-1, min(high - low + 1, math.ceil(decimal(number) / column.step) - low))

    parts = []
    if at_least is not None:
        parts.append(f"{value} >= {bound(at_least)}")
    if below is not None:
        parts.append(f"{value} < {bound(below)}")
    return f"({' AND '.join(parts)})"


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
