"""Which units have records that count, and a table without those of some units."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.source import Beside, Source

_REFUSED, _NAME = "sourdine_refused", "name of a unit"


def participants(source: Source, column: str, where: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The units with records that a condition holds for, as texts, and how many such records each has.

    Nobody may see them. A unit that no text tells is left out, and `without` leaves its records out too.
    """
    name = _unit_text(source, column)
    answer = source.columns(
        f"SELECT {name} AS unit, count(*) AS records FROM {source.view_for(name, where)} "
        f"WHERE ({where}) AND {name} IS NOT NULL GROUP BY {name}"
    )
    units = np.ma.getdata(answer["unit"])
    return units, np.ma.getdata(answer["records"]).astype(np.int64)


def without(source: Source, column: str, refused: Sequence[str]) -> tuple[Source, str]:
    """The source with a table of units beside it, and the condition that leaves these out."""
    if source.beside is not None:
        raise InvalidParameter("Keys that are chosen privately cannot be those of a series. Declare them.")
    name = _unit_text(source, column)
    if not len(refused):
        return source, f"{name} IS NOT NULL"
    beside = Beside(
        name=_REFUSED,
        columns={_NAME: np.array(refused, dtype=object)},
        on=((name, _NAME),),
        adds=source.dialect.quoted(_NAME),
    )
    return replace(source, beside=beside), f"{name} IS NOT NULL AND {source.dialect.quoted(_REFUSED)} IS NULL"


def _unit_text(source: Source, column: str) -> str:
    """A unit as text: two that were told by the same one would count as one."""
    return source.dialect.text(source.dialect.quoted(column), source.types[column])
