"""Which units have records that count, and a table without those of some units."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.types import Family, family
from sourdine.frames.source import Beside, Source

_REFUSED, _NAME, _MIDNIGHT = "sourdine_refused", "name of a unit", " 00:00:00"
_LAST_WHOLE = {"FLOAT": 1 << 24, "DOUBLE": 1 << 53}  # from here on not every whole number has a float


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


def steady_names(source: Source, column: str, units: Sequence[str]) -> list[str]:
    """The names of units, the same from table to table: 7.0 and 7.00 are 7, midnight is its day.

    One missing number turns a column of whole numbers into fractions where pandas reads it, and all others
    would be new units by that; pandas also reads days as times. Texts stay as they are.
    """
    match family(source.types[column]):
        case Family.FLOAT | Family.DECIMAL:
            return [_number_name(unit) for unit in units]
        case Family.TIMESTAMP:
            return [unit.removesuffix(_MIDNIGHT) for unit in units]
        case _:
            return list(units)


def _number_name(unit: str) -> str:
    try:
        number = Decimal(unit)
        return str(int(number)) if number == number.to_integral_value() else str(number.normalize())
    except ArithmeticError:  # not a number, or endless
        return unit


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
    """A unit as text: two that were told by the same one would count as one.

    A float that is too large for its last digit stands for several whole numbers, and is nobody's name: in
    another table, as the number that it was, the same unit would count once more.
    """
    name, kind = source.dialect.quoted(column), source.types[column]
    text = source.dialect.text(name, kind)
    if family(kind) is not Family.FLOAT:
        return text
    return f"CASE WHEN abs({name}) < {_LAST_WHOLE[kind]} THEN {text} END"
