"""Plain frozen dataclasses as JSON and back, without losing a digit.

Fields are Fraction, int, bool, str, Enum or None, or a tuple of those; a Fraction is written as '3/2'.
"""

import dataclasses
import re
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sourdine.core.errors import InvalidParameter

Plain = str | int | bool | None
Json = dict[str, Plain | list[Plain]]
T = TypeVar("T")


def added(default: T) -> T:
    """A field that a class got after files had been written of it; its default means what they mean.

    The default is not written, so that what hangs on the old fields, such as the fingerprint of a question,
    stays as it was.
    """
    made: T = dataclasses.field(default=default, metadata={"added": True})
    return made


def encoded(instance: object) -> Json:
    """The fields of a dataclass instance, ready for JSON."""
    fields = dataclasses.fields(instance)  # type: ignore[arg-type]
    held = {field: getattr(instance, field.name) for field in fields}
    return {
        field.name: _encoded(value)
        for field, value in held.items()
        if not field.metadata.get("added") or value != field.default
    }


def decoded(kind: type[T], given: Mapping[str, object]) -> T:
    """The instance of a dataclass that these fields describe."""
    hints = get_type_hints(kind)
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(given) - names):
        raise InvalidParameter(
            f"A description of {kind.__name__} has no field '{unknown[0]}'. "
            f"Its fields are {', '.join(sorted(names))}."
        )
    try:
        return kind(**{name: _decode(hints[name], value) for name, value in given.items()})
    except (TypeError, ZeroDivisionError) as problem:
        message = f"A description of {kind.__name__} is incomplete or malformed."
        raise InvalidParameter(message) from problem


def _encoded(value: object) -> Plain | list[Plain]:
    return [_encode(item) for item in value] if isinstance(value, tuple) else _encode(value)


def _encode(value: object) -> Plain:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Fraction):
        return str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"A field of type {type(value).__name__} has no JSON form.")


def _decode(hint: Any, value: object) -> object:
    if get_origin(hint) in (Union, UnionType):
        if value is None:
            return None
        hint = next(choice for choice in get_args(hint) if choice is not type(None))
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        return tuple(_decode(get_args(hint)[0], item) for item in value)
    if hint is Fraction and isinstance(value, str):
        if not re.fullmatch(r"-?\d{1,400}(/\d{1,400})?", value):
            raise InvalidParameter("A number in a description must read like '3/2'.")
        return Fraction(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError:
            choices = ", ".join(str(choice.value) for choice in hint)
            raise InvalidParameter(f"A {hint.__name__} in a description must be one of {choices}.") from None
    return value
