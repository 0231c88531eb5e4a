"""Plain frozen dataclasses as JSON and back, without losing a digit.

Fields are Fraction, int, bool, str, Enum or None, or a tuple of those; a Fraction is written as '3/2'.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sourdine.core.errors import InvalidParameter

Plain = str | int | bool | None
Json = dict[str, Plain | list[Plain]]
T = TypeVar("T")
_NUMBER = re.compile(r"-?\d{1,400}(/\d{1,400})?")


def added(default: T) -> T:
    """A field that a class got after files had been written of it; its default means what they mean.

    The default is not written, so that what hangs on the old fields, such as the fingerprint of a question,
    stays as it was.
    """
    made: T = dataclasses.field(default=default, metadata={"added": True})
    return made


def written(name: str) -> dict[str, str]:
    """The metadata of a field that files know by another name, since it was renamed after they were written.

    >>> field = dataclasses.field(metadata=written("rate"))
    >>> encoded(dataclasses.make_dataclass("Drawn", [("sampling_rate", int, field)])(1))
    {'rate': 1}
    """
    return {"written": name}


def encoded(instance: object) -> Json:
    """The fields of a dataclass instance, ready for JSON."""
    fields = dataclasses.fields(instance)  # type: ignore[arg-type]
    held = {field: getattr(instance, field.name) for field in fields}
    return {
        field.metadata.get("written", field.name): _encoded(value)
        for field, value in held.items()
        if not field.metadata.get("added") or value != field.default
    }


def decoded(kind: type[T], given: Mapping[str, object]) -> T:
    """The instance of a dataclass that these fields describe."""
    decoders = _decoders(kind)  # type: ignore[arg-type]  # classes are hashable
    if unknown := sorted(set(given) - decoders.keys()):
        raise InvalidParameter(
            f"A description of {kind.__name__} has no field '{unknown[0]}'. "
            f"Its fields are {', '.join(sorted(decoders))}."
        )
    try:
        return kind(**dict(decoders[name](value) for name, value in given.items()))
    except (TypeError, ZeroDivisionError) as problem:
        message = f"A description of {kind.__name__} is incomplete or malformed."
        raise InvalidParameter(message) from problem


@cache
def _decoders(kind: type[Any]) -> dict[str, Callable[[object], tuple[str, object]]]:
    """How each field of a class is read, by its name in files; to work out its types takes longer than all
    the rest."""
    hints = get_type_hints(kind)
    return {
        field.metadata.get("written", field.name): partial(_field, field.name, _decoder(hints[field.name]))
        for field in dataclasses.fields(kind)
    }


def _field(name: str, decoder: Callable[[object], object], value: object) -> tuple[str, object]:
    return name, decoder(value)


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


def _decoder(hint: Any) -> Callable[[object], object]:
    """How a field of this type is read; what is not of its form is left to the checks of the class."""
    if get_origin(hint) in (Union, UnionType):
        one = _decoder(next(choice for choice in get_args(hint) if choice is not type(None)))
        return lambda value: None if value is None else one(value)
    if get_origin(hint) is tuple:
        item = _decoder(get_args(hint)[0])
        return lambda value: tuple(map(item, value)) if isinstance(value, list | tuple) else value
    if hint is Fraction:
        return _fraction
    if isinstance(hint, type) and issubclass(hint, Enum):
        return partial(_member, hint)
    return lambda value: value


def _fraction(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not _NUMBER.fullmatch(value):
        raise InvalidParameter("A number in a description must read like '3/2'.")
    above, _, below = value.partition("/")
    return Fraction(int(above), int(below or 1))


def _member(kind: type[Enum], value: object) -> Enum:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(choice.value) for choice in kind)
        raise InvalidParameter(f"A {kind.__name__} in a description must be one of {choices}.") from None
