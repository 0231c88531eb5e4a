"""Values in their order: how many lie below one, and which stand between two ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import Bits
from sourdine.frames.counting import Keys, combinations, secret_order
from sourdine.frames.expression import Grouping, literal, quoted
from sourdine.frames.source import Source
from sourdine.frames.unit import Unit

Ints = NDArray[np.int64]
_FEW = 1 << 20  # different keys and values that an engine counts quickly


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


def ranks(
    source: Source,
    *,
    by: Sequence[Grouping],
    value: str,
    unit: Unit,
    bits: Bits,
    where: str = "TRUE",
    places: int | None = None,
) -> dict[Keys, CountedValues]:
    """The values of each group of known keys, in one pass, each unit counting as much as it may.

    Of a unit with more records in a group those count that have the least hash of a secret, the unit, the
    group and the value. `places` is how many values there may be, if that is known: few are counted by the
    engine, many are sorted here, which is quicker than to group by nearly every record.
    """
    keys = combinations(by)
    marks = [f"key_{i}" for i in range(len(by))]
    known = [f"{_mark(each)} AS {mark}" for each, mark in zip(by, marks, strict=True)]
    whose = [] if unit.column is None else [f"{quoted(unit.column)} AS unit"]
    rows = f"SELECT {', '.join([*whose, *known, f'{value} AS value'])} FROM {source.view} WHERE {where}"
    if unit.column is not None:
        held = " AND ".join(["value >= 0", "unit IS NOT NULL", *(f"{name} IS NOT NULL" for name in marks)])
        rows = _bounded(f"SELECT * FROM ({rows}) WHERE {held}", marks, unit, bits)
    listed = ", ".join([*marks, "value"])
    asked = f"SELECT {listed} FROM ({rows})"
    if places is not None and len(keys) * places <= _FEW:
        asked = f"SELECT {listed}, count(*) AS records FROM ({rows}) GROUP BY {listed}"
    found = source.columns(asked)
    # what does not count is left out here: an engine would work out conditions on keys once more
    values = np.ma.filled(found["value"], -1)
    group = np.zeros(values.size, np.int64)
    counts = values >= 0
    for mark, each in zip(marks, by, strict=True):
        index = _index(found[mark], each)
        counts &= index >= 0
        group *= len(each.keys)
        group += index
    records = np.ma.filled(found["records"], 0)[counts] if "records" in found else None
    groups = _split(group[counts], values[counts].astype(np.int64), records, len(keys))
    return dict(zip(keys, groups, strict=True))


def _mark(by: Grouping) -> str:
    """The known key of a record, in SQL; of texts the place among the known ones, which is found quickly."""
    if not isinstance(by.keys[0], str):
        return by.known(f"({by.raw})")
    listed = ", ".join(literal(key) for key in by.keys)
    found = f"CAST(enum_code(TRY_CAST(({by.raw}) AS ENUM({listed}))) AS INTEGER)"
    return f"coalesce({found}, {by.keys.index(by.missing)})" if by.missing in by.keys else found


def _index(column: NDArray[Any], by: Grouping) -> Ints:
    """The places of keys among the known ones, and -1 for what is none."""
    lost = np.ma.getmaskarray(column)
    held = np.where(lost, -1, np.ma.getdata(column)).astype(np.int64)
    if isinstance(by.keys[0], str):
        return held
    known = np.array(by.keys, np.int64)
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known[order], held), len(known) - 1)]
    return np.where((known[place] == held) & ~lost, place, -1)


def _split(group: Ints, values: Ints, records: Ints | None, size: int) -> list[CountedValues]:
    """The values of each group in order, with how many records hold each."""
    most = int(values.max(initial=0)) + 1  # at most 2^31 for at most 2^22 groups, so that codes fit
    code = group * most + values
    if records is None:
        code.sort()
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        upto = np.append(starts[1:], code.size)
    else:
        order = np.argsort(code)
        code, upto = code[order], np.cumsum(records[order])
        starts = np.arange(code.size)
    kept = code[starts]
    edges = np.searchsorted(kept, np.arange(size + 1) * most)
    held = kept % most
    before = np.concatenate([np.zeros(1, np.int64), upto])
    return [CountedValues(held[a:b], upto[a:b] - before[a]) for a, b in pairwise(edges.tolist())]


def _bounded(rows: str, marks: Sequence[str], unit: Unit, bits: Bits) -> str:
    """At most `rows` records of a unit in each of at most `groups` groups.

    Equal values of a unit are told apart by their number, so that each has its own chance.
    """
    inside = ", ".join(["unit", *marks])
    numbered = f"SELECT *, row_number() OVER (PARTITION BY {inside}, value) AS copy FROM ({rows})"
    turn = secret_order([*marks, "value", "copy"], bits)
    few = (
        f"SELECT * FROM ({numbered}) "
        f"QUALIFY row_number() OVER (PARTITION BY {inside} ORDER BY {turn}) <= {unit.rows}"
    )
    if not marks:
        return few
    order = ", ".join([secret_order(marks, bits), *marks])  # the keys set apart what would tie
    place = f"dense_rank() OVER (PARTITION BY unit ORDER BY {order})"
    return f"SELECT * FROM ({few}) QUALIFY {place} <= {unit.groups}"
