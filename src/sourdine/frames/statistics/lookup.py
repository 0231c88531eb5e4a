"""Where a key stands among the known ones: told by the engine, which looks up many of them in a table.

A few keys are written into a question. More would take longer to be read there than the records: they are
lent to the engine as a table, which it joins with records or with groups.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.engine import SideTables
from sourdine.frames.expression import Grouping
from sourdine.frames.keys import values_of

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
