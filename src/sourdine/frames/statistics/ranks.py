"""The values of a column in their order, group by group, in one pass over the table."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.expression import Grouping
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.frames.statistics.binned import MOST_ROWS, BinnedGroups, Levels
from sourdine.frames.statistics.group_ranks import CountedGroups, GroupRanks, SortedGroups
from sourdine.frames.statistics.lookup import index_of
from sourdine.frames.statistics.totals import check_groups, secret_order

_QUICK = 1 << 14  # different keys and values that an engine counts more quickly than it hands out records


def ranks(
    source: Source,
    *,
    by: Sequence[Grouping],
    value: str,
    unit: PrivacyUnit,
    bits: Bits,
    where: str = "TRUE",
    places: int | None = None,
    cuts: Sequence[int] = (),
    near: Sequence[float] = (),
) -> GroupRanks:
    """The values of each group of known keys, in one pass, each unit counting as much as it may.

    Of a unit with more records in a group those count that have the least hash of a secret, the unit, the
    group and the value. `places` is how many values there may be, if that is known: few are counted by the
    engine, many are sorted here, which is quicker than to group by nearly every record. On a cluster many
    values are counted in bins as wide as `cuts`, the widest first, and most finely where the ranks are that
    are looked for, given as shares: `near`.
    """
    groups = math.prod(len(each.keys) for each in by)
    check_groups(groups)
    marks = [f"key_{i}" for i in range(len(by))]
    known = [f"{_mark(each)} AS {mark}" for each, mark in zip(by, marks, strict=True)]
    whose = [] if unit.column is None else [f"{source.unit(unit.column)} AS unit"]
    listed = ", ".join([*whose, *known, f"{value} AS value"])
    rows = f"SELECT {listed} FROM {source.view_for(listed, where)} WHERE {where}"
    if unit.column is not None:
        present = " AND ".join(["value >= 0", "unit IS NOT NULL", *(f"{name} IS NOT NULL" for name in marks)])
        rows = _bounded(f"SELECT * FROM ({rows}) WHERE {present}", marks, unit, bits, source.dialect)
    listed = ", ".join([*marks, "value"])
    few = places is not None and groups * places <= MOST_ROWS
    if places is not None and not few and not source.dialect.near:
        levels = Levels(source, rows, by, cuts or [1], groups)
        return BinnedGroups(tuple(by), tuple(levels.open(places, near)))
    codes = None if places is None or not source.dialect.near else _codes(by, marks)
    if places is not None and codes is not None and groups * places > _QUICK:
        answer = source.columns(_coded(rows, codes, places, groups))
        return _sorted(by, np.ma.getdata(answer["code"]), places)
    question = f"SELECT {listed} FROM ({rows})"
    if few or not source.dialect.near:
        question = f"SELECT {listed}, count(*) AS records FROM ({rows}) GROUP BY {listed}"
    answer = source.columns(question)
    # what does not count is left out here: an engine would work out conditions on keys once more
    values = np.ma.filled(answer["value"], -1)
    group = np.zeros(values.size, np.int64)
    counts = values >= 0
    for mark, each in zip(marks, by, strict=True):
        index = index_of(answer[mark], each)
        counts &= index >= 0
        group *= len(each.keys)
        group += index
    codes_of_values = values[counts].astype(np.int64)
    most = int(codes_of_values.max(initial=0)) + 1  # at most 2^31 for at most 2^24 groups, so that codes fit
    code = group[counts] * most + codes_of_values
    if "records" not in answer:
        return _sorted(by, code, most)
    records = np.ma.filled(answer["records"], 0)[counts]
    return CountedGroups.of(by, code, records, most)


def _sorted(by: Sequence[Grouping], codes: NDArray[Any], places: int) -> SortedGroups:
    """The values of each group of records, by one sort of all in their place."""
    codes.sort()
    return SortedGroups(tuple(by), codes, places)


def _mark(by: Grouping) -> str:
    """The known key of a record, in SQL; of texts the place among the known ones, if it is found quickly."""
    if not isinstance(by.keys[0], str) or not by.dialect.enumerates:
        return by.known(f"({by.raw})")
    listed = ", ".join(map(by.dialect.literal, by.keys))
    code = f"CAST(enum_code(TRY_CAST(({by.raw}) AS ENUM({listed}))) AS INTEGER)"
    return f"coalesce({code}, {by.keys.index(by.missing)})" if by.missing in by.keys else code


def _codes(by: Sequence[Grouping], marks: Sequence[str]) -> str | None:
    """The number of a record's group in SQL, of marks; None where it takes a search among the known keys."""
    code = "0"
    for each, mark in zip(by, marks, strict=True):
        code_sql, first = mark, each.keys[0]
        if isinstance(first, bool):
            code_sql = f"CAST({mark} AS INTEGER)"
        elif isinstance(first, int):
            if not each.unbroken:
                return None
            code_sql = f"({mark} - ({first}))"
        code = f"({code} * {len(each.keys)} + {code_sql})"
    return code


def _coded(rows: str, group: str, places: int, groups: int) -> str:
    """One number for a record's group and value, -1 for what does not count: one column comes quickest."""
    whole = "INTEGER" if groups * places < 1 << 31 else "BIGINT"
    code = f"CAST({group} AS {whole}) * {places} + value"
    return f"SELECT CAST(coalesce(CASE WHEN value >= 0 THEN {code} END, -1) AS {whole}) AS code FROM ({rows})"


def _bounded(rows: str, marks: Sequence[str], unit: PrivacyUnit, bits: Bits, dialect: Dialect) -> str:
    """At most `rows` records of a unit in each of at most `groups` groups.

    Equal values of a unit are told apart by their number, so that each has its own chance.
    """
    inside = ", ".join(["unit", *marks])
    copy = f"row_number() OVER (PARTITION BY {inside}, value ORDER BY value)"
    turn = secret_order([*marks, "value", "copy"], bits, dialect)
    numbered = f"SELECT *, {copy} AS copy FROM ({rows})"
    place = f"row_number() OVER (PARTITION BY {inside} ORDER BY {turn}, value, copy)"
    few = f"SELECT * FROM (SELECT *, {place} AS place FROM ({numbered})) WHERE place <= {unit.max_rows}"
    if not marks:
        return few
    order = ", ".join([secret_order(marks, bits, dialect), *marks])  # the keys set apart what would tie
    group = f"dense_rank() OVER (PARTITION BY unit ORDER BY {order})"
    return f"SELECT * FROM (SELECT *, {group} AS nth FROM ({few})) WHERE nth <= {unit.max_groups}"
