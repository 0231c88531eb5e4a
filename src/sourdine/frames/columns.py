"""Kinds of columns that people declare: numbers with bounds, keys, flags, texts.

Declarations come from people who know the meaning of the data, never from the data.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, WrapValidator, model_validator

from sourdine.core.format import entry
from sourdine.frames.expressions.kinds import (
    FARTHEST,
    MOST_STEPS,
    KeyKind,
    Kind,
    NumberKind,
    TextKind,
    TruthKind,
    decimal,
)
from sourdine.frames.keys import types_of, values_of
from sourdine.frames.mistakes import Declared
from sourdine.frames.times.dates import Date, Datetime

_LARGEST = 10**100  # squares of such numbers are still floats
_MOST_LISTED = 1 << 20  # keys of a category
LONGEST_KEY = 200  # characters of a text that may become a key
_STEPS = 1 << 20  # steps of the default grid over the range of a real column


class Integer(Declared):
    """Whole numbers between two bounds; what lies outside is clamped.

    `found` says where the bounds come from if not from what is known: such as privately, and what that cost.
    """

    type: Literal["integer"] = "integer"
    lower: int
    upper: int
    missing: Literal["drop"] | int = "drop"
    found: str | None = Field(default=None, max_length=LONGEST_KEY, exclude_if=lambda value: value is None)

    @model_validator(mode="after")
    def _ordered(self) -> "Integer":
        _check_bounds(self.lower, self.upper, self.missing)
        _check_steps(self)
        return self

    @property
    def step(self) -> Fraction:
        """The step of the grid: one."""
        return Fraction(1)


class Real(Declared):
    """Reals between two bounds; what lies outside is clamped, and everything is rounded to a grid.

    `found` says where the bounds come from if not from what is known: such as privately, and what that cost.
    """

    type: Literal["real"] = "real"
    lower: float
    upper: float
    granularity: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    missing: Literal["drop"] | float = "drop"
    found: str | None = Field(default=None, max_length=LONGEST_KEY, exclude_if=lambda value: value is None)

    @model_validator(mode="after")
    def _ordered(self) -> "Real":
        _check_bounds(self.lower, self.upper, self.missing)
        _check_steps(self)
        return self

    @property
    def step(self) -> Fraction:
        """The declared step, or a power of two that cuts the range into about a million."""
        return _step(self.lower, self.upper, self.granularity)


@lru_cache(maxsize=4096)
def _step(lower: float, upper: float, granularity: float | None) -> Fraction:
    """By what it depends on, and not kept in the column: a copy with another granularity has another step."""
    if granularity is not None:
        return decimal(granularity)
    span = decimal(upper) - decimal(lower)
    step = Fraction(1)
    while step * _STEPS > span:
        step /= 2
    while step * _STEPS * 2 <= span:
        step *= 2
    return step


def _whole_keys(keys: object, read: Callable[[object], Any]) -> Any:
    """Keys of which all are whole numbers, as a million may be, without looking at each again."""
    if isinstance(keys, tuple) and 0 < len(keys) <= _MOST_LISTED and types_of(keys) == {int}:
        return keys
    return read(keys)


class Category(Declared):
    """Values from a known list of keys; others are missing."""

    type: Literal["category"] = "category"
    keys: Annotated[tuple[str, ...] | tuple[int, ...], WrapValidator(_whole_keys)] = Field(
        min_length=1, max_length=_MOST_LISTED
    )
    missing: Literal["drop"] | str | int = "drop"

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        listed = as_tuples(fields, "keys")
        keys = listed.get("keys") if isinstance(listed, dict) else None
        if hasattr(keys, "__array__"):
            raise ValueError(
                "keys must be a list that is written out: one that is taken from the data tells what is in it"
            )
        if isinstance(keys, tuple) and len({kind is str for kind in types_of(keys)}) > 1:
            raise ValueError("keys must be all texts or all whole numbers; write each in quotes, or none")
        return listed

    @model_validator(mode="after")
    def _known(self) -> "Category":
        if isinstance(self.keys[0], int):
            try:
                repeats = _repeat(values_of(self.keys))
            except OverflowError:
                raise ValueError("keys that are numbers must fit in 64 bits") from None
        else:
            repeats = len(set(self.keys)) != len(self.keys)
        if repeats:
            raise ValueError("keys must not repeat; name each of them once")
        if isinstance(self.keys[0], str) and "\0" in "".join(map(str, self.keys)):
            raise ValueError("keys must not hold the character 0")  # it stands between keys in a hash
        if self.missing != "drop" and self.missing not in self.keys:
            raise ValueError("missing must be 'drop' or one of the keys")
        return self


def _repeat(numbers: NDArray[np.int64]) -> bool:
    """Whether a number stands twice; those in order, as most are, need not be sorted."""
    ordered = numbers if bool((numbers[1:] >= numbers[:-1]).all()) else np.sort(numbers)
    return bool((ordered[1:] == ordered[:-1]).any())


class Flag(Declared):
    """True or false."""

    type: Literal["flag"] = "flag"
    missing: Literal["drop"] | bool = "drop"


class Text(Declared):
    """Texts that nobody can list beforehand: those that enough units have are chosen privately as keys.

    No key is shown that fewer than about `at_least` units have. Records whose key is not shown count under
    the name `other`, or nowhere. What is empty, longer than 200 characters or has control characters is
    missing: its record is dropped, or counts under `other` too.
    """

    type: Literal["text"] = "text"
    at_least: int | None = Field(default=None, ge=1, le=1 << 40)
    other: str | None = Field(default=None, min_length=1, max_length=LONGEST_KEY)
    missing: Literal["drop", "other"] = "drop"

    @model_validator(mode="after")
    def _named(self) -> "Text":
        if self.missing == "other" and self.other is None:
            raise ValueError(
                f"{entry('missing', 'other')} needs a name for the others, as in {entry('other', 'others')}"
            )
        if self.other is not None and not self.other.isprintable():
            raise ValueError("other must be a text without control characters")
        return self


Number = Integer | Real
Column = Annotated[Integer | Real | Category | Flag | Text | Date | Datetime, Field(discriminator="type")]


def kind_of(column: Column) -> Kind:
    """What expressions know of a declared column."""
    match column:
        case Integer() | Real():
            return NumberKind(column.step, *span(column))
        case Category():
            return KeyKind(column.keys, getattr(column, "period", None))
        case Flag():
            return TruthKind()
        case Text():
            return TextKind()
    return column.kind


def span(column: Number) -> tuple[int, int]:
    """The least and the greatest step of a column, whichever way its bounds are rounded."""
    return math.floor(decimal(column.lower) / column.step), math.ceil(decimal(column.upper) / column.step)


def as_tuples(fields: Any, *names: str) -> Any:
    """Fields that people write as lists, as a strict model takes them."""
    if not isinstance(fields, Mapping):
        return fields
    lists = {name: tuple(fields[name]) for name in names if isinstance(fields.get(name), list)}
    return {**fields, **lists}


def sensible(value: float) -> bool:
    """Whether a declared number is finite, and small enough to be squared."""
    return abs(value) <= _LARGEST


def _check_steps(column: Integer | Real) -> None:
    lower, upper = decimal(column.lower), decimal(column.upper)
    if not Fraction(1, _LARGEST) <= column.step <= _LARGEST:
        raise ValueError("the granularity must be between 1e-100 and 1e100")
    if (upper - lower) / column.step > MOST_STEPS:
        raise ValueError(
            "there must be at most 2^31 grid steps between the bounds; take a coarser granularity, or "
            "narrower bounds"
        )
    if max(abs(lower), abs(upper)) / column.step > FARTHEST:
        raise ValueError("bounds must lie within 2^48 grid steps of zero")


def _check_bounds(lower: float, upper: float, missing: object) -> None:
    if not (sensible(lower) and sensible(upper)):
        raise ValueError("bounds must be numbers up to 1e100 in size")
    if not lower < upper:
        raise ValueError("lower must be below upper; if they are swapped, swap them back")
    if isinstance(missing, int | float) and not lower <= missing <= upper:
        raise ValueError("missing must be 'drop' or lie between the bounds")
