"""Plain frozen dataclasses as JSON and back, without losing a digit: what every program here writes.

Fields are Fraction, int, bool, str, Enum or None, a tuple of those, or what is declared as float, datetime,
Decimal, a mapping by texts, another dataclass, or a class that knows its own description (`to_json` and
`from_json`). A Fraction is written as '3/2'. What people write is read by pydantic (`frames.mistakes`).
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sourdine.core.errors import InvalidParameter

Plain = str | int | bool | None
Json = dict[str, Any]
T = TypeVar("T")
Convert = Callable[[Any], Any]
_NUMBER = re.compile(r"-?\d{1,4000}(/\d{1,4000})?")
_DECIMAL = "decimal"


def added(default: T, name: str | None = None) -> T:
    """A field that a class got after files had been written of it; its default means what they mean.

    The default is not written, so that what depends on the old fields, such as the fingerprint of a question,
    stays as it was. Files may know the field by another name.
    """
    metadata = {"added": True, **({} if name is None else written(name))}
    if isinstance(default, dict):  # which every instance has of its own
        own: T = dataclasses.field(default_factory=lambda: copy(default), metadata=metadata)
        return own
    field: T = dataclasses.field(default=default, metadata=metadata)
    return field


def written(name: str) -> dict[str, str]:
    """The metadata of a field that files know by another name, since it was renamed after they were written.

    >>> field = dataclasses.field(metadata=written("rate"))
    >>> encoded(dataclasses.make_dataclass("Drawn", [("sampling_rate", int, field)])(1))
    {'rate': 1}
    """
    return {"written": name}


def unambiguous(pairs: list[tuple[str, Any]]) -> Json:
    """An object in a JSON text, for `object_pairs_hook`; a name that stands twice is refused.

    Programs differ in which of the two they read, so such a text would tell each of them something else.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return fields


def encoded(instance: object, *, exact: bool = False) -> Json:
    """The fields of a dataclass instance, ready for JSON.

    With `exact` all must be exact and plain: a float, such as a noise scale, is refused.
    """
    encoders = _encoders(type(instance), exact)  # type: ignore[arg-type]  # classes are hashable
    values = {field: getattr(instance, field.name) for field in dataclasses.fields(instance)}  # type: ignore[arg-type]
    return {
        _name(field): encoders[_name(field)](value)
        for field, value in values.items()
        if not field.metadata.get("added") or value != _default(field)
    }


def _default(field: "dataclasses.Field[Any]") -> object:
    make = field.default_factory
    return field.default if make is dataclasses.MISSING else make()


def decoded(kind: type[T], fields: Mapping[str, object], *, strict: bool = False) -> T:
    """The instance of a dataclass that these fields describe.

    With `strict` a text, a number or a truth must be one: bool('false') would be True, and True would pass
    for the number 1. Without it that is left to the checks of the class.
    """
    decoders = _decoders(kind, strict)  # type: ignore[arg-type]  # classes are hashable
    if unknown := sorted(set(fields) - decoders.keys()):
        raise InvalidParameter(
            f"A description of {kind.__name__} has no field '{unknown[0]}'. "
            f"Its fields are {', '.join(sorted(decoders))}."
        )
    names = {_name(field): field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    try:
        return kind(**{names[name]: decoders[name](value) for name, value in fields.items()})
    except (TypeError, ZeroDivisionError) as problem:
        message = f"A description of {kind.__name__} is incomplete or malformed."
        raise InvalidParameter(message) from problem


def _name(field: "dataclasses.Field[Any]") -> str:
    """What files call a field."""
    return str(field.metadata.get("written", field.name))


@cache
def _encoders(kind: type[Any], exact: bool) -> dict[str, Convert]:
    """How each field of a class is written; to work out its types takes longer than all the rest."""
    hints = get_type_hints(kind)
    return {_name(field): _encoder(hints[field.name], exact) for field in dataclasses.fields(kind)}


@cache
def _decoders(kind: type[Any], strict: bool) -> dict[str, Convert]:
    """How each field of a class is read."""
    hints = get_type_hints(kind)
    return {_name(field): _decoder(hints[field.name], strict) for field in dataclasses.fields(kind)}


def _choices(hint: Any) -> list[Any] | None:
    """The types that a union offers beside None; None for what is no union."""
    if get_origin(hint) not in (Union, UnionType):
        return None
    return [choice for choice in get_args(hint) if choice is not NoneType]


def _encoder(hint: Any, exact: bool = False) -> Convert:
    """How a field of this type is written."""
    if exact:
        return lambda value: list(map(_encode, value)) if isinstance(value, tuple) else _encode(value)
    if choices := _choices(hint):
        one = _encoder(choices[0]) if len(choices) == 1 else _encode_one_of(choices)
        return lambda value: None if value is None else one(value)
    origin = get_origin(hint)
    if origin is tuple:
        item = _encoder(get_args(hint)[0])
        return lambda value: [item(each) for each in value]
    if origin in (dict, Mapping):
        item = _encoder(get_args(hint)[1])
        return lambda value: {name: item(each) for name, each in value.items()}
    if hasattr(hint, "to_json"):
        return lambda value: value.to_json()
    if dataclasses.is_dataclass(hint):
        return encoded
    if hint is datetime:
        return datetime.isoformat
    if hint is Decimal:
        return lambda value: {_DECIMAL: str(value)}
    return (lambda value: value) if hint in (float, Any, object) else _encode


def _encode_one_of(choices: list[Any]) -> Convert:
    """How a value of one of several types is written: by what it is."""
    encoders = {choice: _encoder(choice) for choice in choices}

    def write(value: object) -> object:
        for kind, encoder in encoders.items():
            if isinstance(kind, type) and isinstance(value, kind):
                return encoder(value)
        return _encode(value)

    return write


def _encode(value: object) -> Plain:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Fraction):
        return str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(f"A field of type {type(value).__name__} has no JSON form.")


def _decoder(hint: Any, strict: bool) -> Convert:
    """How a field of this type is read; what is not of its form is left to the checks of the class."""
    if choices := _choices(hint):
        one = _decoder(choices[0], strict) if len(choices) == 1 else _decode_one_of(choices)
        return lambda value: None if value is None else one(value)
    origin = get_origin(hint)
    if origin is tuple:
        item = _decoder(get_args(hint)[0], strict)
        return partial(_sequence, item, strict)
    if origin in (dict, Mapping):
        item = _decoder(get_args(hint)[1], strict)
        return lambda value: {name: item(each) for name, each in _object(value).items()}
    if hint is Fraction:
        return _exact(str, _fraction) if strict else _fraction
    if isinstance(hint, type) and issubclass(hint, Enum):
        return partial(_member, hint)
    if hasattr(hint, "from_json"):
        return lambda value: hint.from_json(_object(value))
    if dataclasses.is_dataclass(hint):
        return lambda value: decoded(hint, _object(value), strict=strict)  # type: ignore[arg-type]
    if hint is datetime:
        return _exact(str, datetime.fromisoformat)
    if hint is Decimal:
        return lambda value: Decimal(_object(value)[_DECIMAL])
    return _exact(hint) if strict and hint in (str, int, bool, float) else lambda value: value


def _decode_one_of(choices: list[Any]) -> Convert:
    """How a value of one of several types is read: an object by its fields, anything else as it stands."""
    objects = {
        frozenset(_decoders(choice, True)): _decoder(choice, True)  # type: ignore[arg-type]
        for choice in choices
        if dataclasses.is_dataclass(choice)
    }
    objects[frozenset([_DECIMAL])] = _decoder(Decimal, True)
    if not objects.keys() - {frozenset([_DECIMAL])} and Decimal not in choices:
        return _decoder(choices[0], False)

    def read(value: Any) -> Any:
        return objects[frozenset(value)](value) if isinstance(value, Mapping) else value

    return read


def _exact(kind: type[Any], then: Convert = lambda value: value) -> Convert:
    """A value of exactly this type, and what becomes of it."""

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"not a {kind.__name__}")
        return then(value)

    return read


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError("not an object")
    return value


def _sequence(item: Convert, strict: bool, value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(map(item, value))
    if strict:
        raise TypeError("not a list")
    return value


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
