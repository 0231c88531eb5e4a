"""Exact totals by known keys: the only thing about a table that ever leaves its engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sourdine.core.bits import Bits
from sourdine.frames.expression import key, quoted
from sourdine.frames.source import Source
from sourdine.frames.unit import Unit, bounded

Key = tuple[str | int | bool, ...]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """For each combination of known keys, in their declared order, one whole number per sum.

    There is a row for every combination, whether anybody is in it or not.
    """

    by: tuple[str, ...]
    keys: tuple[Key, ...]
    sums: Mapping[str, tuple[int, ...]]


def totals(
    source: Source, *, by: Sequence[str], sums: Mapping[str, str], unit: Unit, bits: Bits, where: str = "TRUE"
) -> Totals:
    """Sums of whole-number expressions over the records of each group.

    An expression that is NULL for a record leaves it out of that sum; a record whose key is not known, or
    that the condition does not hold for, is left out of all.
    """
    used = [name for name in source.types if name in source.schema.columns]
    table = bounded(source.name, unit, used, bits)
    groups = [key(name, source.schema.columns[name]) for name in by]
    named = [f"{group} AS key_{i}" for i, group in enumerate(groups)]
    values = [f"coalesce(sum({expression}), 0)" for expression in sums.values()]
    inner = ", ".join([*named, *map(quoted, used)]) or "1 AS nothing"
    held = " AND ".join(f"key_{i} IS NOT NULL" for i in range(len(by))) or "TRUE"
    marks = [f"key_{i}" for i in range(len(by))]
    grouped = f" GROUP BY {', '.join(marks)}" if marks else ""
    rows = source.ask(
        f"SELECT {', '.join([*marks, *values])} FROM (SELECT {inner} FROM ({table})) "
        f"WHERE {held} AND ({where}){grouped}"
    )
    found = {row[: len(by)]: tuple(int(value) for value in row[len(by) :]) for row in rows}
    known: list[tuple[str | int | bool, ...]] = [source.schema.keys(name) for name in by]
    keys = tuple(product(*known))
    nothing = (0,) * len(sums)
    columns = {name: tuple(found.get(each, nothing)[i] for each in keys) for i, name in enumerate(sums)}
    return Totals(by=tuple(by), keys=keys, sums=columns)
