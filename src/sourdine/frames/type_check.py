"""Which declarations a column's type can hold; what could be read in several ways is refused."""

import re
from collections.abc import Mapping

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.types import NAMES, READ, Family, Use, base_name, family
from sourdine.frames.schema import Category, Column, Flag, Text
from sourdine.frames.times import Date, Datetime, check_time_type

_WRITTEN: Mapping[Family, str] = {
    Family.BOOLEAN: "true|false",
    Family.WHOLE: "0|-?[1-9][0-9]*",
    Family.UUID: "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    Family.DATE: "[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
"""What texts look like that a family is read as: a key that is written otherwise would never be found."""

_REMEDIES: Mapping[Family, str] = {
    Family.BOOLEAN: 'Declare it with type = "flag".',
    Family.WHOLE: "Write its keys as whole numbers, without quotes.",
    Family.DECIMAL: "Declare it as integer or real, or convert it to whole numbers.",
    Family.FLOAT: "Declare it as integer or real, or convert it to whole numbers.",
    Family.UUID: "Declare it as text, or write its keys in small letters with hyphens.",
    Family.DATE: 'Declare it with type = "date", its first and its last.',
    Family.TIMESTAMP: 'Declare it with type = "datetime", its first and its last.',
    Family.ZONED: 'Declare it with type = "datetime", its first, its last and its zone.',
    Family.TIME: "Convert it to text as its keys are written.",
    Family.BYTES: "Convert it to text, such as by hex digits.",
    Family.NESTED: "Take what is asked about out of it, into a column of its own.",
}
_CONVERT = "Change the declaration, or convert the column."


def use_of(column: Column) -> Use:
    """What a column is declared to hold."""
    if isinstance(column, Date | Datetime):
        return Use.TIME
    if isinstance(column, Text):
        return Use.TEXT
    if isinstance(column, Category):
        return Use.WHOLE_KEY if isinstance(column.keys[0], int) else Use.TEXT_KEY
    return Use.FLAG if isinstance(column, Flag) else Use.NUMBER


def check_type(name: str, column: Column, kind: str) -> None:
    """Refuse a column whose type cannot hold what is declared, or never one of its keys."""
    type_family, use = family(kind), use_of(column)
    if type_family is None or use not in READ[type_family]:
        raise _refusal(name, use, kind)
    if isinstance(column, Date | Datetime):
        check_time_type(name, column, kind)
    if isinstance(column, Category) and use is Use.TEXT_KEY and type_family in _WRITTEN:
        keys = (str(key) for key in column.keys if key != column.missing)
        if not all(re.fullmatch(_WRITTEN[type_family], key) for key in keys):
            raise _refusal(name, use, kind)


def check_key(name: str, kind: str) -> None:
    """Refuse a column whose values could be equal to those of another table only by chance."""
    type_family = family(kind)
    if type_family is None or Use.JOIN not in READ[type_family]:
        raise _refusal(name, Use.JOIN, kind)


def _refusal(name: str, use: Use, kind: str) -> InvalidParameter:
    type_family = family(kind)
    remedy = _CONVERT if type_family is None else _REMEDIES.get(type_family, _CONVERT)
    return InvalidParameter(
        f"The column '{name}' is declared to hold {use.value}, and the table holds {_words(kind)}. {remedy}"
    )


def check_unit(name: str, kind: str) -> None:
    """Refuse a column whose values may be equal and yet written otherwise: a unit is known by its text."""
    type_family = family(kind)
    if type_family is None or Use.UNIT not in READ[type_family]:
        raise InvalidParameter(
            f"The column '{name}' cannot tell units apart: the table holds {_words(kind)}, and what is equal "
            "there may be written in several ways. Use a column of numbers, texts or dates."
        )


def _words(kind: str) -> str:
    name = base_name(kind)
    return name if name in NAMES else "a type that is not known here"
