"""Exact totals by known keys: the only thing about a table that ever leaves its engine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.core.randomness.bits import Bits
from sourdine.frames.dialect import DUCKDB, Dialect
from sourdine.frames.expression import Grouping, Key
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.frames.statistics.sums import Summation, valid

MOST_GROUPS = 1 << 22
Keys = tuple[Key, ...]
Numbers = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """For each statistic and each combination of known keys, in their declared order, its whole numbers.

    There is a row for every combination, whether anybody is in it or not.
    """

    keys: tuple[Keys, ...]
    numbers: tuple[Numbers, ...]


def combinations(by: Sequence[Grouping]) -> tuple[Keys, ...]:
    """Every combination of known keys, the last changing quickest."""
    check_groups(math.prod(len(grouped.keys) for grouped in by))
    return tuple(product(*(grouped.keys for grouped in by)))


def check_groups(size: int, owner: str = "The query") -> None:
    """Refuse a query with more groups than are answered."""
    if size > MOST_GROUPS:
        raise InvalidParameter(
            f"{owner} has {size:,} groups, and at most {MOST_GROUPS:,} are answered. "
            "Most of them would hold nobody. Group by fewer columns, or by coarser keys."
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """Statistics for each combination of the keys of some groupings."""

    by: tuple[Grouping, ...]
    statistics: tuple[Summation, ...]


def totals(
    source: Source,
    *,
    by: Sequence[Grouping],
    statistics: Sequence[Summation],
    unit: PrivacyUnit,
    bits: Bits,
    where: str = "TRUE",
) -> Totals:
    """Sums over the records of each group, each unit counting as much as it may.

    A record whose key is not known, or that the condition does not hold for, is left out. Where several
    records are one unit, the groups it counts in are those with the least hash of a secret, the unit and the
    group, so they depend on nobody else's records. Records without a unit are left out.
    """
    request = Request(by=tuple(by), statistics=tuple(statistics))
    return totals_of(source, [request], unit=unit, bits=bits, where=where)[0]


def totals_of(
    source: Source, requests: Sequence[Request], *, unit: PrivacyUnit, bits: Bits, where: str = "TRUE"
) -> list[Totals]:
    """The totals of several requests: where each record is a unit, in one pass over the table."""
    if unit.column is not None:
        return _of_units(source, requests, unit, bits, where)
    by = list(dict.fromkeys(grouped for each in requests for grouped in each.by))
    statistics = list(dict.fromkeys(held for each in requests for held in each.statistics))
    sets = list(dict.fromkeys(tuple(by.index(grouped) for grouped in each.by) for each in requests))
    rows = source.ask(_by_record(source, by, statistics, sets, where))
    columns, start = {}, 1 + len(by)
    for held in statistics:
        columns[held] = start, start + len(held.powers(""))
        start = columns[held][1]
    return [_of_set(rows, by, columns, each) for each in requests]


def _of_set(
    rows: Sequence[tuple[Any, ...]],
    by: Sequence[Grouping],
    columns: Mapping[Summation, tuple[int, int]],
    request: Request,
) -> Totals:
    """One request's totals off the answer to all: its own keys and its own statistics.

    `columns` tells between which columns of the answer a statistic stands.
    """
    places = [by.index(grouped) for grouped in request.by]
    mask = sum(1 << (len(by) - 1 - place) for place in range(len(by)) if place not in places)
    found = {tuple(row[1 + place] for place in places): row for row in rows if row[0] == mask}
    keys, numbers = combinations(request.by), []
    for each in request.statistics:
        start, end = columns[each]
        nothing = (0,) * end
        numbers.append(
            tuple(each.from_powers([int(n or 0) for n in found.get(key, nothing)[start:end]]) for key in keys)
        )
    return Totals(keys=keys, numbers=tuple(numbers))


def _by_record(
    source: Source,
    by: Sequence[Grouping],
    statistics: Sequence[Summation],
    sets: Sequence[tuple[int, ...]],
    where: str,
) -> str:
    """One pass that groups by all that stands in the records, then sums of the few groups found.

    The first column of the answer tells which keys a row is not about. A key that is not known is NULL: its
    record may still count in a request that does not ask for it.
    """
    raws = [f"raw_{i}" for i in range(len(by))]
    aggregates: list[str] = []
    sums: list[str] = []
    for i, each in enumerate(statistics):
        binned = next((j for j, grouped in enumerate(by) if grouped.binned == each.value), None)
        for sql in each.powers(f"value_{i}", source.dialect):
            known = binned is not None and sql == valid(f"value_{i}")  # the bin tells what is missing
            sums.append(f"sum(sum_{len(sums)})" + (f" FILTER (WHERE raw_{binned} >= 1)" if known else ""))
            aggregates.append("count(*)" if known else sql)
    named = [f"{sql} AS sum_{i}" for i, sql in enumerate(aggregates)]
    records = f"({_records(source, by, statistics, where)})"
    if not by:
        return f"SELECT {', '.join(['0', *named])} FROM {records}"
    found = f"SELECT {', '.join([*raws, *named])} FROM {records} GROUP BY {', '.join(raws)}"
    keys = [f"{each.known(raw)} AS key_{i}" for i, (each, raw) in enumerate(zip(by, raws, strict=True))]
    marks = [f"key_{i}" for i in range(len(by))]
    grouped = ", ".join(f"({', '.join(marks[place] for place in each)})" for each in sets)
    lacking = " + ".join(f"grouping({mark}) * {1 << i}" for i, mark in enumerate(reversed(marks)))
    return (
        f"WITH found AS {source.dialect.materialized} ({found}), "
        f"named AS (SELECT {', '.join(keys)}, * FROM found) "
        f"SELECT {lacking}, {', '.join([*marks, *sums])} FROM named GROUP BY GROUPING SETS ({grouped})"
    )


def _of_units(
    source: Source, requests: Sequence[Request], unit: PrivacyUnit, bits: Bits, where: str
) -> list[Totals]:
    """The totals of units, in one pass for all requests with the same groups."""
    found: dict[tuple[Grouping, ...], dict[Summation, Numbers]] = {}
    for by in dict.fromkeys(each.by for each in requests):
        wanted = [held for each in requests if each.by == by for held in each.statistics]
        statistics = list(dict.fromkeys(wanted))
        keys = combinations(by)
        groups = unit.max_groups if unit.max_groups < len(keys) else None
        records = _records(source, by, statistics, where, unit.column)
        asked = _by_unit(records, by, statistics, groups=groups, bits=bits, dialect=source.dialect)
        answer = source.ask(asked)
        rows = {row[: len(by)]: [int(n or 0) for n in row[len(by) :]] for row in answer}
        found[by], place = {}, 0
        for each in statistics:
            end = place + each.coordinates
            nothing = [0] * end
            found[by][each] = tuple(tuple(rows.get(key, nothing)[place:end]) for key in keys)
            place = end
    return [
        Totals(keys=combinations(each.by), numbers=tuple(found[each.by][held] for held in each.statistics))
        for each in requests
    ]


def _by_unit(
    records: str,
    by: Sequence[Grouping],
    statistics: Sequence[Summation],
    *,
    groups: int | None,
    bits: Bits,
    dialect: Dialect,
) -> str:
    """Totals of each unit in each group, then at most so many groups of a unit, then their sums."""
    marks = [f"key_{i}" for i in range(len(by))]
    raws = [f"raw_{i}" for i in range(len(by))]
    known = [f"{each.known(raw)} AS {mark}" for each, raw, mark in zip(by, raws, marks, strict=True)]
    values = [f"value_{i}" for i in range(len(statistics))]
    named = f"SELECT {', '.join(['unit', *known, *values])} FROM ({records}) WHERE unit IS NOT NULL"
    inner, outer, place = [], [], 0
    for i, each in enumerate(statistics):
        powers = each.powers(f"value_{i}", dialect)
        columns = [f"sum_{place + j}" for j in range(len(powers))]
        inner += [f"coalesce({sql}, 0) AS {column}" for sql, column in zip(powers, columns, strict=True)]
        outer += [f"sum({part})" for part in each.capped(columns, dialect)]
        place += len(powers)
    held = " AND ".join(f"{mark} IS NOT NULL" for mark in marks) or "TRUE"
    per_unit = (
        f"SELECT {', '.join(['unit', *marks, *inner])} FROM ({named}) WHERE {held} "
        f"GROUP BY {', '.join(['unit', *marks])}"
    )
    grouped = f" GROUP BY {', '.join(marks)}" if marks else ""
    answer = f"SELECT {', '.join([*marks, *outer])} FROM"
    if groups is None:
        return f"{answer} ({per_unit}){grouped}"
    chosen = dialect.first(per_unit, secret_order(marks, bits, dialect), marks, groups)
    return f"{answer} ({chosen}){grouped}"


def secret_order(names: Sequence[str], bits: Bits, dialect: Dialect = DUCKDB) -> str:
    """A number that looks random, from a secret, the unit and some columns of the same row.

    Whom it favours is a matter of fairness; the bound on what a unit moves holds whatever the numbers are.
    """
    return dialect.turn(bits.words(2).tolist(), names)


def _records(
    source: Source,
    by: Sequence[Grouping],
    statistics: Sequence[Summation],
    where: str,
    unit: str | None = None,
) -> str:
    """What each record counts as."""
    whose = [] if unit is None else [f"{source.unit(unit)} AS unit"]
    raws = [f"{each.raw} AS raw_{i}" for i, each in enumerate(by)]
    values = [f"{each.value} AS value_{i}" for i, each in enumerate(statistics)]
    kept = "" if where == "TRUE" else f" WHERE {where}"
    return f"SELECT {', '.join([*whose, *raws, *values])} FROM {source.view}{kept}"
