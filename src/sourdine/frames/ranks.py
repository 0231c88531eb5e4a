"""Values in their order: how many lie below one, and which stand between two ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import Bits
from sourdine.frames.counting import Keys, combinations, secret_order
from sourdine.frames.expression import Grouping, quoted
from sourdine.frames.source import Source
from sourdine.frames.unit import Unit


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
) -> dict[Keys, CountedValues]:
    """The values of each group of known keys, in one pass, each unit counting as much as it may.

    Of a unit with more records in a group those count that have the least hash of a secret, the unit, the
    group and the value.
    """
    marks = [f"key_{i}" for i in range(len(by))]
    known = [f"{each.known(f'({each.raw})')} AS {mark}" for each, mark in zip(by, marks, strict=True)]
    whose = [] if unit.column is None else [f"{quoted(unit.column)} AS unit"]
    held = " AND ".join(
        [
            "value >= 0",
            *(f"{name} IS NOT NULL" for name in marks),
            *(["unit IS NOT NULL"] if whose else []),
        ]
    )
    records = f"SELECT {', '.join([*whose, *known, f'{value} AS value'])} FROM {source.view} WHERE {where}"
    rows = f"SELECT * FROM ({records}) WHERE {held}"
    if unit.column is not None:
        rows = _bounded(rows, marks, unit, bits)
    listed = [*marks, "value"]
    rising = ", ".join(f"{name} ASC" for name in listed)  # said outright: a connection may have its own order
    found = source.columns(
        f"SELECT {', '.join(listed)}, count(*) AS records FROM ({rows}) "
        f"GROUP BY {', '.join(listed)} ORDER BY {rising}"
    )
    values, counts = found["value"].astype(np.int64), found["records"].astype(np.int64)
    groups: dict[Keys, CountedValues] = {}
    for key, part in _runs([found[mark] for mark in marks], values.size):
        groups[key] = CountedValues(values[part], np.cumsum(counts[part]))
    empty = CountedValues(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return {key: groups.get(key, empty) for key in combinations(by)}


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


def _runs(keys: Sequence[NDArray[np.generic]], size: int) -> list[tuple[Keys, slice]]:
    """Where equal keys stand together in sorted columns."""
    if not keys or size == 0:
        return [((), slice(0, size))] if not keys else []
    changed = np.zeros(size, bool)
    changed[0] = True
    for column in keys:
        changed[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(changed)
    ends = [*starts[1:].tolist(), size]
    return [
        (
            tuple(
                column[start].item() if hasattr(column[start], "item") else column[start] for column in keys
            ),
            slice(start, end),
        )
        for start, end in zip(starts.tolist(), ends, strict=True)
    ]
