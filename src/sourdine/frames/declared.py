"""Declarations, and the first mistake of one in a sentence: which field, what is wrong, and what to write."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either, entry, setting, value

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_NESTED = ("columns", "joins", "hierarchies", "text")
_TYPES = ("integer", "real", "category", "flag", "text", "date", "datetime")
_PLAIN = {
    "tuple_type": "it must be a list",
    "string_type": "it must be a text in quotes",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "mapping_type": "it must be a block of fields",
    "dict_type": "it must be a block of fields",
    "model_type": "it must be a block of fields",
    "model_attributes_type": "it must be a block of fields",
    "too_short": "it must hold at least {min_length}",
    "too_long": "it must hold at most {max_length}",
    "string_too_short": "it must not be empty",
    "string_too_long": "it must have at most {max_length} characters",
    "greater_than": "it must be above {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be below {lt}",
    "less_than_equal": "it must be at most {le}",
    "date_type": "it must be a date",
    "datetime_type": "it must be a date, or a date and a time",
    "union_tag_invalid": "its {discriminator} must be one of {expected_tags}",
    "union_tag_not_found": "its {discriminator} is missing",
}
_EXAMPLES: dict[str, object] = {
    "at_least": 18,
    "below": 65,
    "by": ["sex"],
    "column": "person_id",
    "columns": ["region"],
    "confidence": 0.95,
    "decimal": ",",
    "delimiter": ";",
    "delta": 1e-06,
    "edges": [0, 20, 40],
    "encoding": "utf-8",
    "epsilon": 1.0,
    "file": "places.csv",
    "first": "2024-01-31",
    "granularity": 0.01,
    "header": False,
    "keys": ["a", "b"],
    "k": 10,
    "last": "2024-12-31",
    "ledger": "people.ledger",
    "levels": [0.25, 0.5, 0.75],
    "hierarchies.levels": ["region", "town"],
    "lower": 0,
    "max_groups": 3,
    "max_rows": 5,
    "method": "auto",
    "missing": "drop",
    "multiline": True,
    "name": "people",
    "names": ["age", "sex"],
    "neighbours": "add-remove",
    "on": "town",
    "other": "others",
    "selection_delta": 5e-07,
    "rows": [["north", "Lille"], ["south", "Toulon"]],
    "size": 50000,
    "source": "people.csv",
    "strip": " %",
    "thousands": ".",
    "type": "integer",
    "unit": "person",
    "upper": 120,
    "weight": 2,
    "where": {"age": {"at_least": 18}, "sex": ["f"]},
}
_BLOCKS = {  # of a specification
    "privacy": '[privacy] with unit = "person" and epsilon = 1.0',
    "queries": '[[queries]] with name = "people" and ask = ["count"]',
    "table": '[table] with source = "people.csv"',
}
_OWN = {  # words that one block alone has
    "synthetic": ("columns", "leave_out", "target", "bins", "rows", "zeros", "totals", "mark"),
}
_MEANT = {  # words of others
    "bounds": "lower and upper",
    "categories": "keys",
    "filter": "where",
    "group_by": "by",
    "groupby": "by",
    "max": "upper",
    "date_format": "format",
    "min": "lower",
    "sep": "delimiter",
    "separator": "delimiter",
    "step": "granularity",
    "values": "keys",
}


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong with a declaration: the field, why, and the whole sentence with what to do."""

    path: tuple[str, ...]
    reason: str
    sentence: str


def mistake(problem: ValidationError, root: str) -> InvalidParameter:
    """The first mistake that a declaration was refused for; `root` is where the declaration stands."""
    first, *others = problem.errors()
    if first["type"] == "missing":  # an unknown one beside it is what was meant
        beside = (each for each in others if each["type"] == "extra_forbidden")
        first = next((each for each in beside if each["loc"][:-1] == first["loc"][:-1]), first)
    return InvalidParameter(_mistake(first, root).sentence)


def mistakes_of(problem: ValidationError, root: str) -> list[Mistake]:
    """Every mistake that a declaration was refused for, one for each field."""
    mistakes = [_mistake(each, root) for each in problem.errors()]
    return list({each.path: each for each in reversed(mistakes)}.values())[::-1]


def _mistake(first: "ErrorDetails", root: str) -> Mistake:
    context = first.get("ctx", {})
    path, unsure = _path(first["loc"], [value for value in context.values() if isinstance(value, str)])
    where, name = ".".join(path if root in ("", *path[:1]) else [root, *path]), (path or [root])[-1]
    if first["type"] == "missing":
        sentence = f"The declaration '{where}' is missing. Add it{_example(name, ', as in ', where)}."
        return Mistake(tuple(path), "it is missing", sentence)
    if first["type"] == "extra_forbidden":
        return Mistake(tuple(path), "it is unknown", _unknown(where, name, path))
    reason = _PLAIN.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    numbers = {key: f"{value:,g}" for key, value in context.items() if isinstance(value, float)}
    if first["type"] in _PLAIN:
        reason = reason.format(**{**context, **numbers})
    reason = reason.replace("Input should be", "it must be")
    reason = "it must be a number" if unsure and first["type"].endswith("_type") else reason
    remedy = _example(name, " Write it like ", where) if first["type"] in _PLAIN else ""
    if "type" in str(context.get("discriminator", "")):
        remedy = _example("type", " Write it like ", where)
    if not remedy and reason.endswith("a block of fields"):
        column = {"type": "integer", "lower": 0, "upper": 120}
        remedy = either(f" Write it like {value(column)}", f" Write it under [{where}]")
    sentence = f"The declaration '{where}' is wrong: {reason}.{remedy}{'.' if remedy else ''}"
    return Mistake(tuple(path), reason, sentence)


def _unknown(where: str, name: str, path: list[str]) -> str:
    """What is said of a field that nothing knows."""
    if "where" in path:
        return f"The declaration '{where}' is unknown. Write conditions{_example('where', ' like ', where)}."
    known = _OWN.get(where.split(".", maxsplit=1)[0], ("ask", *_EXAMPLES))
    near = [_MEANT[name]] if name in _MEANT else difflib.get_close_matches(name, known, n=1)
    meant = f" Did you mean '{near[0]}'?" if near and near[0] != name else ""
    return f"The declaration '{where}' is unknown.{meant} Check its spelling, or leave it out."


def _path(place: tuple[str | int, ...], kinds: list[str]) -> tuple[list[str], bool]:
    """Where a mistake is, by names that people wrote; and whether several types would have been right.

    Of those only the first is told.
    """
    path: list[str] = []
    for part in place:
        hidden = part in (*_TYPES, *kinds) or str(part).startswith(("tuple[", "literal["))
        if not hidden and not (isinstance(part, int) and path[-1:] == ["where"]):  # conditions have names
            path.append(str(part))
    either = path[-1:] in (["int"], ["float"])
    return (path[:-1] if either else path), either


def _example(name: str, before: str, where: str) -> str:
    """A field with a value, as an argument or within a block; of a block of a file, what stands in it."""
    if name in _BLOCKS:
        return f"{before}{_BLOCKS[name]}"
    if name == "ask":
        example = either('ask=[Count(), Mean("pay")]', 'ask = ["count", { mean = "pay" }]')
        return f"{before}{example}"
    if name == "keys" and (in_file := either("", 'keys = ["a", "b"], or keys = { file = "keys.txt" }')):
        return f"{before}{in_file}"
    kind = where.split(".", maxsplit=1)[0]
    example_value = _EXAMPLES.get(f"{kind}.{name}", _EXAMPLES.get(name))
    return (
        "" if example_value is None else before + (entry if kind in _NESTED else setting)(name, example_value)
    )


F = TypeVar("F", bound=Callable[..., None])


class Declared(BaseModel):
    """A frozen declaration that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


def by_hand(init: F) -> F:
    """Mark the constructor of a declaration as one for people who write Python.

    Pydantic then does not call it for what it reads from files, whose mistakes are named by their place.
    """
    init.__pydantic_base_init__ = True  # type: ignore[attr-defined]
    return init


def known_arguments(**belongs: str) -> Callable[[F], F]:
    """Let a constructor answer a wrong argument with the one that was meant, or with where it belongs."""

    def with_advice(init: F) -> F:
        names = [name for name in signature(init).parameters if name != "self"]

        @wraps(init)
        def checked(self: object, *args: object, **fields: object) -> None:
            for name in fields:
                if name not in names:
                    near = difflib.get_close_matches(name, names, n=1)
                    meant = f" Did you mean '{near[0]}'?" if near else ""
                    advice = f" Write it as {belongs[name]}." if name in belongs else meant
                    raise TypeError(f"{type(self).__name__} has no argument '{name}'.{advice}")
            init(self, *args, **fields)

        return cast(F, checked)

    return with_advice


def declare(init: Callable[..., None], owner: str, **fields: object) -> None:
    """Call the constructor of pydantic; what is wrong is told in one sentence."""
    try:
        init(**{name: python_values(each) for name, each in fields.items()})
    except ValidationError as problem:
        raise mistake(problem, owner) from None


_PYTHONS_OWN: set[type] = {str, int, float, bool, type(None)}


def python_values(content: object) -> object:
    """Numbers and texts of NumPy as Python's own, in lists too; arrays may be taken from data, and stay.

    A column as a question in Python names it is its name.

    >>> python_values({"keys": [np.int64(1), 2], "lower": np.float64(0.5)})
    {'keys': [1, 2], 'lower': 0.5}
    """
    if isinstance(content, np.generic):
        return content.item()
    if hasattr(type(content), "column_name"):
        return content.column_name  # type: ignore[attr-defined]
    if isinstance(content, Mapping):
        return {name: python_values(each) for name, each in content.items()}
    if isinstance(content, range):
        return list(content)
    if type(content) not in (list, tuple):
        return content
    assert isinstance(content, list | tuple)
    if set(map(type, content)) <= _PYTHONS_OWN:  # as in a long list of keys
        return content
    return type(content)(map(python_values, content))
