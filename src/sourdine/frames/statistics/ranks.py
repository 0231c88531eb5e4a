"""Values in their order: how many lie below one, and which stand between two ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.randomness.bits import Bits
from sourdine.frames.dialect import Dialect
from sourdine.frames.expression import Grouping
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.frames.statistics.binned import MOST_ROWS, Levels, index_of
from sourdine.frames.statistics.totals import Keys, combinations, secret_order

Ints = NDArray[np.int64]
_QUICK = 1 << 14  # different keys and values that an engine counts more quickly than it hands out records


class RankSource(Protocol):
    """All that a method for quantiles may ask of values on a grid."""

    @property
    def size(self) -> int:
        """How many values there are."""

    def count_below(self, places: ArrayLike) -> NDArray[np.int64]:
        """How many values lie below each place."""

    def values_between(self, first: int, last: int) -> NDArray[np.int64]:
        """The values of these ranks, counted from 0, the last left out."""


@dataclass(frozen=True)
class CountedValues:
    """Distinct values in rising order, with how many lie up to each.

    >>> ranks = CountedValues(np.array([3, 5]), np.array([2, 3]))
    >>> ranks.count_below([3, 4, 6]).tolist(), ranks.values_between(1, 3).tolist()
    ([0, 2, 3], [3, 5])
    """

    values: NDArray[np.int64]
    cumulative: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.cumulative[-1]) if self.cumulative.size else 0

    def count_below(self, places: ArrayLike) -> NDArray[np.int64]:
        before = np.concatenate([np.zeros(1, np.int64), self.cumulative])
        return before[np.searchsorted(self.values, np.asarray(places, np.int64), side="left")]

    def values_between(self, first: int, last: int) -> NDArray[np.int64]:
        ranks = np.arange(max(first, 0), min(last, self.size))
        return self.values[np.searchsorted(self.cumulative, ranks, side="right")]


@dataclass(frozen=True)
class SortedPlaces:
    """Places in rising order.

    >>> SortedPlaces(np.array([3, 3, 5])).count_below([3, 4, 6]).tolist()
    [0, 2, 3]
    """

    places: NDArray[Any]

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.places.size)

    def count_below(self, places: ArrayLike) -> Ints:
        """How many lie below each place."""
        wanted = np.asarray(places, np.int64)
        kind = np.iinfo(self.places.dtype)  # a search in another type would copy all places
        near = np.clip(wanted, kind.min, kind.max).astype(self.places.dtype)
        found = np.searchsorted(self.places, near, side="left")
        return np.where(wanted > kind.max, self.size, found).astype(np.int64)

    def values_between(self, first: int, last: int) -> Ints:
        """The places of these ranks, counted from 0, the last left out."""
        return self.places[max(first, 0) : max(last, 0)].astype(np.int64)


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
) -> dict[Keys, RankSource]:
    """The values of each group of known keys, in one pass, each unit counting as much as it may.

    Of a unit with more records in a group those count that have the least hash of a secret, the unit, the
    group and the value. `places` is how many values there may be, if that is known: few are counted by the
    engine, many are sorted here, which is quicker than to group by nearly every record. On a cluster many
    values are counted in bins as wide as `cuts`, the widest first, and most finely where the ranks are that
    are looked for, given as shares: `near`.
    """
    keys = combinations(by)
    marks = [f"key_{i}" for i in range(len(by))]
    known = [f"{_mark(each)} AS {mark}" for each, mark in zip(by, marks, strict=True)]
    whose = [] if unit.column is None else [f"{source.unit(unit.column)} AS unit"]
    rows = f"SELECT {', '.join([*whose, *known, f'{value} AS value'])} FROM {source.view} WHERE {where}"
    if unit.column is not None:
        held = " AND ".join(["value >= 0", "unit IS NOT NULL", *(f"{name} IS NOT NULL" for name in marks)])
        rows = _bounded(f"SELECT * FROM ({rows}) WHERE {held}", marks, unit, bits, source.dialect)
    listed = ", ".join([*marks, "value"])
    few = places is not None and len(keys) * places <= MOST_ROWS
    if places is not None and not few and not source.dialect.near:
        levels = Levels(source, rows, by, cuts or [1], len(keys))
        binned: list[RankSource] = [*levels.open(places, near)]
        return dict(zip(keys, binned, strict=True))
    codes = None if places is None or not source.dialect.near else _codes(by, marks)
    if places is not None and codes is not None and len(keys) * places > _QUICK:
        found = source.columns(_coded(rows, codes, places, len(keys)))
        return dict(zip(keys, _in_order(np.ma.getdata(found["code"]), places, len(keys)), strict=True))
    asked = f"SELECT {listed} FROM ({rows})"
    if few or not source.dialect.near:
        asked = f"SELECT {listed}, count(*) AS records FROM ({rows}) GROUP BY {listed}"
    found = source.columns(asked)
    # what does not count is left out here: an engine would work out conditions on keys once more
    values = np.ma.filled(found["value"], -1)
    group = np.zeros(values.size, np.int64)
    counts = values >= 0
    for mark, each in zip(marks, by, strict=True):
        index = index_of(found[mark], each)
        counts &= index >= 0
        group *= len(each.keys)
        group += index
    kept = values[counts].astype(np.int64)
    most = int(kept.max(initial=0)) + 1  # at most 2^31 for at most 2^22 groups, so that codes fit
    code = group[counts] * most + kept
    if "records" not in found:
        return dict(zip(keys, _in_order(code, most, len(keys)), strict=True))
    records = np.ma.filled(found["records"], 0)[counts]
    return dict(zip(keys, _counted(code, records, most, len(keys)), strict=True))


def _mark(by: Grouping) -> str:
    """The known key of a record, in SQL; of texts the place among the known ones, if it is found quickly."""
    if not isinstance(by.keys[0], str) or not by.dialect.enumerates:
        return by.known(f"({by.raw})")
    listed = ", ".join(map(by.dialect.literal, by.keys))
    found = f"CAST(enum_code(TRY_CAST(({by.raw}) AS ENUM({listed}))) AS INTEGER)"
    return f"coalesce({found}, {by.keys.index(by.missing)})" if by.missing in by.keys else found


def _codes(by: Sequence[Grouping], marks: Sequence[str]) -> str | None:
    """The number of a record's group in SQL, of marks; None where it takes a search among the known keys."""
    code = "0"
    for each, mark in zip(by, marks, strict=True):
        held, first = mark, each.keys[0]
        if isinstance(first, bool):
            held = f"CAST({mark} AS INTEGER)"
        elif isinstance(first, int):
            if not each.unbroken:
                return None
            held = f"({mark} - ({first}))"
        code = f"({code} * {len(each.keys)} + {held})"
    return code


def _coded(rows: str, group: str, places: int, groups: int) -> str:
    """One number for a record's group and value, -1 for what does not count: one column comes quickest."""
    whole = "INTEGER" if groups * places < 1 << 31 else "BIGINT"
    code = f"CAST({group} AS {whole}) * {places} + value"
    return f"SELECT CAST(coalesce(CASE WHEN value >= 0 THEN {code} END, -1) AS {whole}) AS code FROM ({rows})"


def _in_order(codes: NDArray[Any], places: int, size: int) -> list[RankSource]:
    """The values of each group of records, by one sort of all in their place."""
    codes.sort()
    # in their own type, or the search would copy them all
    edges = np.searchsorted(codes, (np.arange(size + 1) * places).astype(codes.dtype)).tolist()
    for group, (a, b) in enumerate(pairwise(edges)):
        codes[a:b] -= group * places
    return [SortedPlaces(codes[a:b]) for a, b in pairwise(edges)]


def _counted(codes: Ints, records: Ints, places: int, size: int) -> list[RankSource]:
    """The values of each group, of codes that differ and how many records hold each."""
    order = np.argsort(codes)
    kept, upto = codes[order], np.cumsum(records[order])
    edges = np.searchsorted(kept, np.arange(size + 1) * places)
    held = kept % places
    before = np.concatenate([np.zeros(1, np.int64), upto])
    return [CountedValues(held[a:b], upto[a:b] - before[a]) for a, b in pairwise(edges.tolist())]


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
