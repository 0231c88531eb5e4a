"""The cells that every record lies in, column by column: exact, for counting, and seen by nobody."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.frames.expression import Grouping
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.frames.statistics import lookup
from sourdine.frames.statistics.totals import secret_order

_NARROW = 1 << 8


def record_codes(
    source: Source, by: Sequence[Grouping], *, unit: PrivacyUnit, bits: Bits
) -> list[NDArray[Any]]:
    """The place of each record's key among the known ones of each grouping, one past them for all else.

    Where several records are one unit, one of those that differ is taken: the one with the least hash of a
    secret, the unit and what it holds, so that it depends on nobody else. Records without a unit are left
    out. The order of records means nothing.
    """
    dialect = source.dialect
    raws = [f"{each.raw} AS raw_{i}" for i, each in enumerate(by)]
    whose = [] if unit.column is None else [f"{source.unit(unit.column)} AS unit"]
    records = f"SELECT {', '.join([*whose, *raws])} FROM {source.view}"
    names = [f"key_{i}" for i in range(len(by))]
    marks = [f"{sql} AS {name}" for sql, name in zip(lookup.marks(by, dialect), names, strict=True)]
    rows = f"SELECT {', '.join([*['unit'] * len(whose), *marks])} FROM {lookup.join(by, records, dialect)}"
    if unit.column is not None:
        of_units = f"SELECT * FROM ({rows}) WHERE unit IS NOT NULL"
        rows = dialect.first(of_units, secret_order(names, bits, dialect), names, 1)
    places = [f"{_place(each, name)} AS {name}" for each, name in zip(by, names, strict=True)]
    answer = source.columns(f"SELECT {', '.join(places)} FROM ({rows})", lookup.side_tables(by))
    return [_narrow(answer.pop(name), each) for name, each in zip(names, by, strict=True)]


def _place(by: Grouping, mark: str) -> str:
    """The place of a key, or the key where it is a number: an engine without enumerations compares texts."""
    if by.many or not isinstance(by.keys[0], str) or by.dialect.enumerates:
        return lookup.coded(by, mark)
    cases = (f"WHEN {by.dialect.literal(key)} THEN {place}" for place, key in enumerate(by.keys))
    return f"CASE {mark} {' '.join(cases)} ELSE -1 END"


def _narrow(column: NDArray[Any], by: Grouping) -> NDArray[Any]:
    """Places in few bytes; what has none is one past the last."""
    is_place = by.many or isinstance(by.keys[0], str)
    places = np.ma.filled(column, -1).astype(np.int32) if is_place else lookup.index_of(column, by)
    size = len(by.keys)
    known = np.where(places < 0, size, places)
    return known.astype(np.uint8 if size < _NARROW else np.uint16 if size < 1 << 16 else np.int32)
