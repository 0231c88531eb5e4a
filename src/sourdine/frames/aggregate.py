"""Exact totals by known keys: the only thing about a table that ever leaves its engine."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.frames.cells import Grouping
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.engines.duckdb import SideTables
from sourdine.frames.keys import Keys, values_of
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Source

# What is summed over records, as whole numbers of which one record moves only so much.
#
# A value v between 0 and W is not summed by its powers but by its Bernstein polynomials: of degree 1, W - v
# and v; of degree 2, (W - v)^2, 2 v (W - v) and v^2. None is negative and together they are W^d whatever v
# is, so one record moves them by W^d in L1, all at once, and the count, the sum and the sum of squares are
# read off together. Noise on three sums apart would have to be three times as large.

Whole = TypeVar("Whole", int, NDArray[Any])
"""Whole numbers, one by one or in arrays."""
EVERYTHING = "0"  # a value that no record lacks
_NARROW = 1 << 22  # of so much a record, 2^40 records make no sum larger than 64 bits hold


def is_wide(reach: int) -> bool:
    """Whether sums that one record moves so far may be larger than 64 bits hold."""
    return reach > _NARROW


def valid(value: str) -> str:
    """The aggregate that counts values which are not missing; it is quicker than a filter."""
    return f"count(nullif({value}, -1))"


class Summation(Protocol):
    """Some whole numbers of each group. `value` is SQL, what one record counts as."""

    @property
    def value(self) -> str: ...

    @property
    def max_rows(self) -> int: ...

    @property
    def coordinates(self) -> int: ...

    @property
    def reach(self) -> int: ...

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]: ...

    @property
    def wide(self) -> bool: ...

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]: ...

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]: ...


@dataclass(frozen=True, kw_only=True)
class BernsteinSums:
    """The sums of the Bernstein polynomials of a value between 0 and `width`.

    `value` is SQL, NULL or -1 for records that are left out, and never NULL if it is `marked`; `max_rows`
    records of a unit in one group count in full, and more are scaled down to that.

    >>> BernsteinSums(value="age", width=10, degree=2).from_powers((2, 7, 25, 2))
    (85, 90, 25)
    """

    value: str = EVERYTHING
    width: int = 1
    degree: int = 0
    max_rows: int = 1
    marked: bool = False

    def __post_init__(self) -> None:
        check.keep(self, degree=check.integer("BernsteinSums", "degree", self.degree, 0, 2))
        check.keep(self, width=check.integer("BernsteinSums", "width", self.width, 1, 1 << 32))
        check.keep(self, max_rows=check.integer("BernsteinSums", "max_rows", self.max_rows, 1, 1 << 62))

    @property
    def coordinates(self) -> int:
        """How many numbers there are in a group."""
        return self.degree + 1

    @property
    def reach(self) -> int:
        """How far one record moves them, in L1."""
        return int(self.width**self.degree)

    @property
    def wide(self) -> bool:
        """Whether its sums may be larger than 64 bits hold."""
        return is_wide(self.reach)

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]:
        """The aggregates that the engine computes of a column.

        They are how many values there are, their sum, their sum of squares, and how many are not NULL: those
        of -1, which stand for what is missing, are taken out again below.
        """
        if self.value == EVERYTHING:
            return ["count(*)"]
        first = dialect.total(value, self.width)
        second = dialect.total(f"CAST({value} AS BIGINT) * {value}", self.width**2)
        every = "count(*)" if self.marked else f"count({value})"
        return [valid(value), first, second][: self.degree + 1] + ([every] if self.degree else [])

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]:
        """The sums of the Bernstein polynomials, of numbers or of arrays of them."""
        wide, count = self.width, sums[0]
        if self.degree == 0:
            return (count,)
        absent = sums[-1] - count
        first = sums[1] + absent
        if self.degree == 1:
            return wide * count - first, first
        second = sums[2] - absent
        return wide**2 * count - 2 * wide * first + second, 2 * (wide * first - second), second

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]:
        """The same in SQL for the records of one unit in one group, at most as if they were `most`."""
        wide, count = f"CAST({self.width} AS {dialect.wide})", columns[0]
        if self.degree == 0:
            return [f"least({count}, {self.max_rows})"]
        absent = f"({columns[-1]} - {count})"
        first = f"({columns[1]} + {absent})"
        if self.degree == 1:
            parts = [f"({wide} * {count} - {first})", first]
        else:
            second = f"({columns[2]} - {absent})"
            parts = [
                f"({wide} * {wide} * {count} - 2 * {wide} * {first} + {second})",
                f"(2 * ({wide} * {first} - {second}))",
                second,
            ]
        return [scaled_down(part, count, self.max_rows, dialect) for part in parts]


@dataclass(frozen=True, kw_only=True)
class PlainSum:
    """The plain sum of a value whose size is at most `reach`."""

    value: str
    reach: int
    max_rows: int = 1

    def __post_init__(self) -> None:
        check.keep(self, reach=check.integer("PlainSum", "reach", self.reach, 0, 1 << 62))
        check.keep(self, max_rows=check.integer("PlainSum", "max_rows", self.max_rows, 1, 1 << 62))

    @property
    def coordinates(self) -> int:
        """One number in a group."""
        return 1

    @property
    def wide(self) -> bool:
        """Whether it may be larger than 64 bits hold."""
        return is_wide(self.reach)

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]:
        """The aggregates that the engine computes of a column: count and sum."""
        return [f"count({value})", dialect.total(value, self.reach)]

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]:
        """The sum alone."""
        return (sums[1],)

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]:
        """The sum over the records of one unit in one group, at most as if they were `most`."""
        return [scaled_down(columns[1], columns[0], self.max_rows, dialect)]


def scaled_down(part: str, count: str, max_rows: int, dialect: Dialect) -> str:
    """A part of a unit in a group, as if it had at most `max_rows` records.

    Whole numbers only: division of whole numbers never rounds their size up.
    """
    return f"CASE WHEN {count} > {max_rows} THEN {dialect.scaled(part, max_rows, count)} ELSE {part} END"


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
    answer = source.columns(_by_record(source, by, statistics, sets, where), side_tables(by))
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
        code = codes(answer[f"key_{place}"][rows], each)
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
    keys = [f"{sql} AS {mark}" for sql, mark in zip(marks(by, dialect), key_marks, strict=True)]
    joined = join(by, "SELECT * FROM found", dialect)
    codes = [f"{coded(each, mark)} AS {mark}" for each, mark in zip(by, key_marks, strict=True)]
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
        answer = source.columns(question, side_tables(by))
        index = np.zeros(answer["sum_0"].size, np.int64)
        for i, each in enumerate(by):
            index = index * len(each.keys) + codes(answer[f"key_{i}"], each)
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
    known = [f"{sql} AS {mark}" for sql, mark in zip(marks(by, dialect), key_marks, strict=True)]
    values = [f"value_{i}" for i in range(len(statistics))]
    of_units = f"SELECT * FROM ({records}) WHERE unit IS NOT NULL"
    named = f"SELECT {', '.join(['unit', *known, *values])} FROM {join(by, of_units, dialect)}"
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
        rows, names = with_keys(by, rows, dialect)
        rows = dialect.first(rows, secret_order(names, bits, dialect), names, groups)
    grouped = f" GROUP BY {', '.join(key_marks)}" if key_marks else ""
    codes = [f"{coded(each, mark)} AS {mark}" for each, mark in zip(by, key_marks, strict=True)]
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


# Sums over pairs of columns, as whole numbers of which one record moves only so much.
#
# Values u between 0 and U and v between 0 and V are summed by products of their Bernstein polynomials. None
# is negative, and over all of them together a record adds up to U^a V^b, whatever it holds, so that one
# measurement tells n and the sums of u, v, uv and, of degree 2, of squares and their products. Weights w
# with values v are the pair w (V - v) and w v, which add up to w V.


MOST_STEPS = {1: 1 << 15, 2: 1 << 10}  # of a column in a pair, by its degree: larger ones are made coarser


def coarseness(width: int, degree: int) -> int:
    """How many steps of a column make one step of a pair.

    >>> coarseness(1000, 2), coarseness(500_000, 1)
    (1, 16)
    """
    return -(-width // MOST_STEPS[degree])


def coarse_width(width: int, degree: int) -> int:
    """The width in those steps: the nearest, as values are rounded."""
    step = coarseness(width, degree)
    return (width + step // 2) // step


def pair(
    places: Sequence[str],
    widths: Sequence[int],
    degrees: Sequence[int],
    dialect: Dialect,
    *,
    origins: Sequence[int] = (0, 0),
) -> str:
    """Both places of a record as one number, and -1 where either is missing.

    `places` are SQL, from 0 to a width less its origin or -1. The origins are added to them, and they are
    rounded to coarser steps.
    """
    parts = []
    for place, width, degree, origin in zip(places, widths, degrees, origins, strict=True):
        step = coarseness(width, degree)
        wide = f"CAST({place} AS BIGINT)" + (f" + {origin}" if origin else "")
        parts.append(wide if step == 1 else dialect.quotient(f"({wide} + {step // 2})", str(step)))
    base = coarse_width(widths[1], degrees[1]) + 1
    code = f"({parts[0]}) * {base} + ({parts[1]})"
    return f"CASE WHEN {places[0]} >= 0 AND {places[1]} >= 0 THEN {code} ELSE -1 END"


@dataclass(frozen=True, kw_only=True)
class PairSums:
    """The sums of the products of Bernstein polynomials of two values.

    `value` is SQL, a pair as above with these widths and degrees. With `weighted` the first value is a
    weight, and the sums are those of the second, each times its weight.

    >>> PairSums(value="", widths=(10, 4), degrees=(1, 1)).from_powers((2, 5, 7, 20))
    (22, 30, 8, 20)
    """

    value: str
    widths: tuple[int, int]
    degrees: tuple[int, int] = (1, 1)
    weighted: bool = False
    max_rows: int = 1

    def __post_init__(self) -> None:
        degrees = tuple(check.integer("PairSums", "degree", degree, 1, 2) for degree in self.degrees)
        widths = tuple(
            check.integer("PairSums", "width", width, 1, MOST_STEPS[degree])
            for width, degree in zip(self.widths, degrees, strict=True)
        )
        max_rows = check.integer("PairSums", "max_rows", self.max_rows, 1, 1 << 62)
        check.keep(self, widths=widths, degrees=degrees, max_rows=max_rows)

    @property
    def coordinates(self) -> int:
        """How many numbers there are in a group."""
        return len(self.matrix)

    @property
    def reach(self) -> int:
        """How far one record moves them, in L1."""
        return math.prod(width**degree for width, degree in zip(self.widths, self.degrees, strict=True))

    @property
    def exponents(self) -> list[tuple[int, int]]:
        """The powers of both values whose products are summed, in their order."""
        if self.weighted:
            return [(0, 0), (1, 0), (1, 1)]
        return list(product(range(self.degrees[0] + 1), range(self.degrees[1] + 1)))

    @property
    def matrix(self) -> list[list[int]]:
        """Every sum that is told, as whole multiples of the sums of powers."""
        if self.weighted:
            return [[0, self.widths[1], -1], [0, 0, 1]]
        one, two = (
            _in_powers(width, degree) for width, degree in zip(self.widths, self.degrees, strict=True)
        )
        return [[first[p] * second[q] for p, q in self.exponents] for first in one for second in two]

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]:
        """The aggregates that the engine computes of a column of pairs."""
        base = self.widths[1] + 1
        first = dialect.quotient(f"({value})", str(base))
        second = f"({value} - ({first}) * {base})"
        sums = []
        for p, q in self.exponents:
            factors = " * ".join([f"({first})"] * p + [second] * q)
            most = self.widths[0] ** p * self.widths[1] ** q
            total = dialect.total(factors, most) if factors else "count(*)"
            sums.append(f"{total} FILTER (WHERE {value} >= 0)")
        return sums

    @property
    def wide(self) -> bool:
        """Whether its sums may be larger than 64 bits hold."""
        return is_wide(self.reach)

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]:
        """The sums of the products of polynomials."""
        first, *others = sums
        rows = []
        for one, *more in self.matrix:
            total = first * one
            for times, number in zip(more, others, strict=True):
                total = total + number * times
            rows.append(total)
        return tuple(rows)

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]:
        """The same in SQL for the records of one unit in one group, at most as if they were `max_rows`."""
        wide = [f"CAST({column} AS {dialect.wide})" for column in columns]
        parts = (
            " + ".join(f"({times}) * {column}" for times, column in zip(row, wide, strict=True) if times)
            for row in self.matrix
        )
        return [scaled_down(f"({part})", columns[0], self.max_rows, dialect) for part in parts]


def _in_powers(width: int, degree: int) -> list[list[int]]:
    """C(d, i) u^i (W - u)^(d - i) by powers of u, for i = 0 to d."""
    return [
        [
            math.comb(degree, i) * math.comb(degree - i, p - i) * (-1) ** (p - i) * width ** (degree - p)
            if p >= i
            else 0
            for p in range(degree + 1)
        ]
        for i in range(degree + 1)
    ]


# Where a key stands among the known ones: told by the engine, which looks up many of them in a table.
#
# A few keys are written into a question. More would take longer to be read there than the records: they are
# lent to the engine as a table, which it joins with records or with groups.


Ints = NDArray[np.int64]
_KEY, _PLACE = "known key", "known place"


def side_tables(by: Sequence[Grouping]) -> SideTables:
    """The tables of the keys of those groupings that have many."""
    return {
        f"sourdine_keys_{i}": {_KEY: values_of(each.keys), _PLACE: np.arange(len(each.keys), dtype=np.int64)}
        for i, each in enumerate(by)
        if each.many
    }


def join(by: Sequence[Grouping], rows: str, dialect: Dialect) -> str:
    """Rows with a column `raw_i` for each grouping, and beside them the known keys, where there are many."""
    joined = f"({rows}) AS rows"
    for i, each in enumerate(by):
        if each.many:
            key = f"known_{i}.{dialect.quoted(_KEY)}"
            key = dialect.text(key, "VARCHAR") if isinstance(each.keys[0], str) else key
            joined += f" LEFT JOIN sourdine_keys_{i} AS known_{i} ON rows.raw_{i} = {key}"
    return joined


def marks(by: Sequence[Grouping], dialect: Dialect) -> list[str]:
    """What records with a `raw_i` are grouped by: known keys, or their places where there are many.

    NULL where the record is dropped.
    """
    columns = []
    for i, each in enumerate(by):
        if not each.many:
            columns.append(each.known(f"raw_{i}"))
            continue
        place = f"known_{i}.{dialect.quoted(_PLACE)}"
        lost = each.missing is not None and each.missing in each.keys
        columns.append(f"coalesce({place}, {each.keys.index(each.missing)})" if lost else place)
    return columns


def with_keys(by: Sequence[Grouping], rows: str, dialect: Dialect) -> tuple[str, list[str]]:
    """Rows of such marks with the keys themselves, and what those are called there."""
    joined, more, names = f"({rows}) AS rows", [], []
    for i, each in enumerate(by):
        names.append(f"key_{i}")
        if each.many:
            names[-1] = f"name_{i}"
            more.append(f"known_{i}.{dialect.quoted(_KEY)} AS name_{i}")
            joined += (
                f" JOIN sourdine_keys_{i} AS known_{i} ON rows.key_{i} = known_{i}.{dialect.quoted(_PLACE)}"
            )
    return (f"SELECT {', '.join(['rows.*', *more])} FROM {joined}" if more else rows), names


def coded(by: Grouping, mark: str) -> str:
    """A mark as it comes here: of few texts, the place among them, if the engine finds it quickly."""
    if by.many or not isinstance(by.keys[0], str) or not by.dialect.enumerates:
        return mark
    listed = ", ".join(map(by.dialect.literal, by.keys))
    return f"CAST(enum_code(TRY_CAST({mark} AS ENUM({listed}))) AS INTEGER)"


def codes(column: NDArray[Any], by: Grouping) -> Ints:
    """The places of such marks among the known keys, and -1 for what is none."""
    return np.ma.filled(column, -1).astype(np.int64) if by.many else index_of(column, by)


def index_of(column: NDArray[Any], by: Grouping) -> Ints:
    """The places of keys among the known ones, and -1 for what is none."""
    lost = np.ma.getmaskarray(column)
    if isinstance(by.keys[0], str) and not by.dialect.enumerates:
        places = {key: place for place, key in enumerate(by.keys)}
        return np.array([places.get(key, -1) for key in np.ma.filled(column, None)], np.int64)
    values = np.where(lost, -1, np.ma.getdata(column)).astype(np.int64)
    if isinstance(by.keys[0], str):
        return values
    if by.unbroken:
        place = values - int(by.keys[0])
        return np.where((place >= 0) & (place < len(by.keys)) & ~lost, place, -1)
    known = np.array(by.keys, np.int64)
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known[order], values), len(known) - 1)]
    return np.where((known[place] == values) & ~lost, place, -1)
