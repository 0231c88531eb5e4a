"""Keys that nobody declared: how many units have each, and records by those that were chosen.

What comes back from the engine is a count for each key there is, for a mechanism that chooses among them; the
chosen ones go back to it as a small table that records are joined with.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sourdine.core.randomness.bits import Bits
from sourdine.frames.expression import Grouping, fit
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.source import Beside, Source
from sourdine.frames.statistics.totals import secret_order

TextKey = tuple[str, ...]


@dataclass(frozen=True)
class KeyCounts:
    """Keys of one or several columns in the order of their texts, with how many units have each."""

    columns: tuple[NDArray[np.object_], ...]
    units: NDArray[np.int64]

    def chosen(self, mask: NDArray[np.bool_]) -> tuple[TextKey, ...]:
        """The keys that a mask keeps, in the same order."""
        return tuple(zip(*(column[mask].tolist() for column in self.columns), strict=True))


def raw_text(source: Source, name: str) -> str:
    """A column as text, compared letter by letter."""
    return source.dialect.text(source.dialect.quoted(name), source.types[name])


def key_counts(
    source: Source, columns: Sequence[str], *, unit: PrivacyUnit, bits: Bits, where: str = "TRUE"
) -> KeyCounts:
    """How many units have each key, or each combination of keys of several columns.

    A unit counts once for each of at most `max_groups` keys: those with the least hash of a secret, the unit
    and the key, so they depend on nobody else's records. Records without a unit or without a key are left
    out. A key called as the others are is never chosen, since it would be taken for them.
    """
    dialect = source.dialect
    marks = [f"key_{i}" for i in range(len(columns))]
    raws = [f"{raw_text(source, name)} AS {mark}" for name, mark in zip(columns, marks, strict=True)]
    whose = [] if unit.column is None else [f"{source.unit(unit.column)} AS unit"]
    records = f"SELECT {', '.join([*whose, *raws])} FROM {source.view} WHERE {where}"
    named = ", ".join(marks)
    grouped = f"unit, {named}" if whose else named
    # texts are looked at once for each that there is, not once a record
    found = f"SELECT {grouped}, count(*) AS units FROM ({records}) GROUP BY {grouped}"
    kept = [_eligible(source, name, mark) for name, mark in zip(columns, marks, strict=True)]
    if whose:
        kept.append("unit IS NOT NULL")
    rows = f"SELECT * FROM ({found}) WHERE {' AND '.join(kept)}"
    if whose:
        few = dialect.first(rows, secret_order(marks, bits, dialect), marks, unit.max_groups)
        rows = f"SELECT {named}, count(*) AS units FROM ({few}) GROUP BY {named}"
    answer = source.columns(f"SELECT {named}, units FROM ({rows}) ORDER BY {named}")
    held = tuple(np.ma.getdata(answer[mark]).astype(object) for mark in marks)
    return KeyCounts(held, np.ma.getdata(answer["units"]).astype(np.int64))


def _eligible(source: Source, name: str, raw: str) -> str:
    other, fits = source.schema.text(name).other, fit(raw, source.dialect)
    return fits if other is None else f"({fits} AND {raw} <> {source.dialect.literal(other)})"


def with_keys(
    source: Source, columns: Sequence[str], keys: Sequence[TextKey], *, others: bool
) -> tuple[Source, Grouping]:
    """The table with chosen keys, and how its records are grouped by their places among them.

    With `others`, records whose key was not chosen are at one more place, after all keys; those whose key is
    missing are there too or nowhere, as is declared.
    """
    quoted = source.dialect.quoted
    name, code, *marks = _unused(source, len(columns) + 2)
    raws = [raw_text(source, each) for each in columns]
    lost = [
        f"{fit(raw, source.dialect)} IS NOT TRUE"
        for each, raw in zip(columns, raws, strict=True)
        if source.schema.text(each).missing == "drop"
    ]
    rest = f"CASE WHEN NOT ({' OR '.join(lost)}) THEN {len(keys)} END" if lost else str(len(keys))
    texts = [np.array([key[i] for key in keys], dtype=object) for i in range(len(columns))]
    beside = Beside(
        name=name,
        columns={**dict(zip(marks, texts, strict=True)), code: np.arange(len(keys), dtype=np.int64)},
        on=tuple(zip(raws, marks, strict=True)),
        adds=f"coalesce({quoted(code)}, {rest})" if others else quoted(code),
    )
    places = tuple(range(len(keys) + others))
    by = Grouping(name=name, raw=quoted(name), keys=places, shift=0, dialect=source.dialect)
    return replace(source, beside=beside), by


def _unused(source: Source, count: int) -> list[str]:
    """Names that no column of the table has."""
    taken = {name.casefold() for name in source.types}
    free = (name for number in itertools.count() if (name := f"sourdine key {number}") not in taken)
    return list(itertools.islice(free, count))
