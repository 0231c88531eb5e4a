"""Exact totals by known keys: the only thing about a table that ever leaves its engine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.expression import Grouping
from sourdine.frames.keys import Keys
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.frames.statistics import lookup
from sourdine.frames.statistics.sums import Summation, valid

MOST_GROUPS = 1 << 24
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Totals:
    """For each statistic and each combination of known keys, in their declared order, its whole numbers.

    There is a row for every combination, whether anybody is in it or not. `sums` has an array for each
    statistic, with a row for each combination.
    """

    keys: Keys
    sums: tuple[NDArray[Any], ...]

    @cached_property
    def numbers(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The same one by one, as exact Python numbers."""
        return tuple(tuple(map(tuple, each.tolist())) for each in self.sums)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Totals)
            and self.keys == other.keys
            and len(self.sums) == len(other.sums)
            and all(np.array_equal(*pair) for pair in zip(self.sums, other.sums, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]


def combinations(by: Sequence[Grouping]) -> Keys:
    """Every combination of known keys, the last changing quickest."""
    check_groups(math.prod(len(grouped.keys) for grouped in by))
    return Keys.product([grouped.keys for grouped in by])


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
    statistics = list(dict.fromkeys(statistic for each in requests for statistic in each.statistics))
    sets = list(dict.fromkeys(tuple(by.index(grouped) for grouped in each.by) for each in requests))
    answer = source.columns(_by_record(source, by, statistics, sets, where), lookup.side_tables(by))
    names: dict[Summation, list[str]] = {}
    for statistic in statistics:
        start = sum(map(len, names.values()))
        names[statistic] = [f"sum_{start + j}" for j in range(len(statistic.powers("")))]
    return [_of_set(answer, by, names, each) for each in requests]


def _of_set(
    answer: Columns, by: Sequence[Grouping], names: Mapping[Summation, Sequence[str]], request: Request
) -> Totals:
    """One request's totals off the answer to all: its own keys and its own statistics.

    `names` are the columns of the answer in which the powers of a statistic stand.
    """
    places = [by.index(grouped) for grouped in request.by]
    mask = sum(1 << (len(by) - 1 - place) for place in range(len(by)) if place not in places)
    keys = combinations(request.by)
    rows = np.flatnonzero(np.ma.getdata(answer["lacking"]) == mask)
    index = np.zeros(rows.size, np.int64)
    known = np.ones(rows.size, bool)
    for place, each in zip(places, request.by, strict=True):
        code = lookup.codes(answer[f"key_{place}"][rows], each)
        known &= code >= 0
        index = index * len(each.keys) + code
    rows, index = rows[known], index[known]
    sums = []
    for statistic in request.statistics:
        powers = [_whole(answer, name, statistic.wide)[rows] for name in names[statistic]]
        sums.append(_spread(statistic.from_powers(powers), index, len(keys)))
    return Totals(keys=keys, sums=tuple(sums))


_HALF = 1 << 62


def _whole(answer: Columns, name: str, wide: bool) -> NDArray[Any]:
    """A column of whole numbers, as exact Python ones where 64 bits may not hold them; NULL counts as 0."""
    low = np.ma.filled(answer[name], 0).astype(np.int64)
    if not wide:
        return low
    high = np.ma.filled(answer[f"{name}_high"], 0).astype(np.int64)
    exact: NDArray[Any] = high.astype(object) * _HALF + low
    return exact


def _outputs(sql: str, name: str, wide: bool, dialect: Dialect) -> list[str]:
    """A whole number as columns of 64 bits: one, or its quotient and rest by 2^62 where it may be larger."""
    if not wide:
        return [f"CAST({sql} AS BIGINT) AS {name}"]
    high = dialect.quotient(f"CAST({sql} AS {dialect.wide})", str(_HALF))
    return [f"CAST({sql} % {_HALF} AS BIGINT) AS {name}", f"CAST({high} AS BIGINT) AS {name}_high"]


def _spread(sums: Sequence[NDArray[Any]], index: NDArray[np.int64], size: int) -> NDArray[Any]:
    """The sums of some groups as rows among those of all, where the others have 0."""
    spread = np.zeros((size, len(sums)), dtype=sums[0].dtype)
    for place, column in enumerate(sums):
        spread[index, place] = column
    return spread


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
            bin_tells = binned is not None and sql == valid(f"value_{i}")  # what is missing
            sums.append(f"sum(sum_{len(sums)})" + (f" FILTER (WHERE raw_{binned} >= 1)" if bin_tells else ""))
            aggregates.append("count(*)" if bin_tells else sql)
    dialect, named = source.dialect, [f"{sql} AS sum_{i}" for i, sql in enumerate(aggregates)]
    wide = [each.wide for each in statistics for _ in each.powers("")]
    outputs = [sql for i, each in enumerate(wide) for sql in _outputs(f"sum_{i}", f"sum_{i}", each, dialect)]
    records = f"({_records(source, by, statistics, where)})"
    if not by:
        sums_of_all = f"SELECT {', '.join(named)} FROM {records}"
        return f"SELECT {', '.join(['0 AS lacking', *outputs])} FROM ({sums_of_all})"
    groups = f"SELECT {', '.join([*raws, *named])} FROM {records} GROUP BY {', '.join(raws)}"
    key_marks = [f"key_{i}" for i in range(len(by))]
    keys = [f"{sql} AS {mark}" for sql, mark in zip(lookup.marks(by, dialect), key_marks, strict=True)]
    joined = lookup.join(by, "SELECT * FROM found", dialect)
    codes = [f"{lookup.coded(each, mark)} AS {mark}" for each, mark in zip(by, key_marks, strict=True)]
    rows = (
        f"WITH found AS {dialect.materialized} ({groups}), "
        f"named AS (SELECT {', '.join(keys)}, rows.* FROM {joined})"
    )
    if len(sets) == 1 and all(each.apart for each in by):  # what was found are the groups already
        known = " AND ".join(f"{mark} IS NOT NULL" for mark in key_marks)
        return f"{rows} SELECT {', '.join(['0 AS lacking', *codes, *outputs])} FROM named WHERE {known}"
    grouped = ", ".join(f"({', '.join(key_marks[place] for place in each)})" for each in sets)
    lacking = " + ".join(f"grouping({mark}) * {1 << i}" for i, mark in enumerate(reversed(key_marks)))
    totals = [f"{sql} AS sum_{i}" for i, sql in enumerate(sums)]
    return (
        f"{rows}, totals AS (SELECT {lacking} AS lacking, {', '.join([*key_marks, *totals])} FROM named "
        f"GROUP BY GROUPING SETS ({grouped})) SELECT {', '.join(['lacking', *codes, *outputs])} FROM totals"
    )


def _of_units(
    source: Source, requests: Sequence[Request], unit: PrivacyUnit, bits: Bits, where: str
) -> list[Totals]:
    """The totals of units, in one pass for all requests with the same groups."""
    sums: dict[tuple[Grouping, ...], dict[Summation, NDArray[Any]]] = {}
    keys: dict[tuple[Grouping, ...], Keys] = {}
    for by in dict.fromkeys(each.by for each in requests):
        wanted = [statistic for each in requests if each.by == by for statistic in each.statistics]
        statistics = list(dict.fromkeys(wanted))
        keys[by] = combinations(by)
        groups = unit.max_groups if unit.max_groups < len(keys[by]) else None
        records = _records(source, by, statistics, where, unit.column)
        question = _by_unit(records, by, statistics, groups=groups, bits=bits, dialect=source.dialect)
        answer = source.columns(question, lookup.side_tables(by))
        index = np.zeros(answer["sum_0"].size, np.int64)
        for i, each in enumerate(by):
            index = index * len(each.keys) + lookup.codes(answer[f"key_{i}"], each)
        sums[by], place = {}, 0
        for statistic in statistics:
            names = [f"sum_{place + j}" for j in range(statistic.coordinates)]
            columns = [_whole(answer, name, statistic.wide) for name in names]
            sums[by][statistic] = _spread(columns, index, len(keys[by]))
            place += statistic.coordinates
    return [
        Totals(keys=keys[each.by], sums=tuple(sums[each.by][statistic] for statistic in each.statistics))
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
    key_marks = [f"key_{i}" for i in range(len(by))]
    known = [f"{sql} AS {mark}" for sql, mark in zip(lookup.marks(by, dialect), key_marks, strict=True)]
    values = [f"value_{i}" for i in range(len(statistics))]
    of_units = f"SELECT * FROM ({records}) WHERE unit IS NOT NULL"
    named = f"SELECT {', '.join(['unit', *known, *values])} FROM {lookup.join(by, of_units, dialect)}"
    aggregates: dict[str, str] = {}  # each once, since there is one of each for every unit and group
    outer: list[str] = []
    outputs: list[str] = []
    for i, each in enumerate(statistics):
        powers = each.powers(f"value_{i}", dialect)
        columns = [aggregates.setdefault(sql, f"sum_{len(aggregates)}") for sql in powers]
        for part in each.capped(columns, dialect):
            outputs += _outputs(f"total_{len(outer)}", f"sum_{len(outer)}", each.wide, dialect)
            outer.append(f"sum({part}) AS total_{len(outer)}")
    inner = [f"coalesce({sql}, 0) AS {column}" for sql, column in aggregates.items()]
    condition = " AND ".join(f"{mark} IS NOT NULL" for mark in key_marks) or "TRUE"
    rows = (
        f"SELECT {', '.join(['unit', *key_marks, *inner])} FROM ({named}) WHERE {condition} "
        f"GROUP BY {', '.join(['unit', *key_marks])}"
    )
    if groups is not None:
        rows, names = lookup.with_keys(by, rows, dialect)
        rows = dialect.first(rows, secret_order(names, bits, dialect), names, groups)
    grouped = f" GROUP BY {', '.join(key_marks)}" if key_marks else ""
    codes = [f"{lookup.coded(each, mark)} AS {mark}" for each, mark in zip(by, key_marks, strict=True)]
    totals = f"SELECT {', '.join([*key_marks, *outer])} FROM ({rows}){grouped}"
    return f"SELECT {', '.join([*codes, *outputs])} FROM ({totals})"


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
    condition = "" if where == "TRUE" else f" WHERE {where}"
    listed = ", ".join([*whose, *raws, *values])
    return f"SELECT {listed} FROM {source.view_for(listed, condition)}{condition}"
