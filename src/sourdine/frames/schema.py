"""What is declared of a table's columns: kinds, bounds, keys, and what counts as missing.

Declarations come from people who know the data's meaning, never from the data. They are read from the
`[columns]` block of a TOML file, or given as plain objects.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.notation import block, either, entry, value
from sourdine.frames.mistakes import told

MOST_STEPS = 1 << 31  # between two bounds, so that the square of a number of steps fits in 62 bits
_FARTHEST = 1 << 48  # steps from zero: a float rounds such a number to the right step
_LARGEST = 10**100  # squares of such numbers are still floats
LONGEST_KEY = 200  # characters of a text that may become a key
_STEPS = 1 << 20  # steps of the default grid over the range of a real column


F = TypeVar("F", bound=Callable[..., None])


class Declared(BaseModel):
    """A frozen declaration that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def by_hand(init: F) -> F:
    """Mark the constructor of a declaration as one for people who write Python.

    Pydantic then does not call it for what it reads from files, whose mistakes are named by their place.
    """
    init.__pydantic_base_init__ = True  # type: ignore[attr-defined]
    return init


def declare(init: Callable[..., None], owner: str, **given: object) -> None:
    """Call the constructor of pydantic; what is wrong is told in one sentence."""
    try:
        init(**{name: python_values(each) for name, each in given.items()})
    except ValidationError as problem:
        raise told(problem, owner) from None


def python_values(content: object) -> object:
    """Numbers and texts of NumPy as Python's own, in lists too; arrays may be taken from data, and stay.

    >>> python_values({"keys": [np.int64(1), 2], "lower": np.float64(0.5)})
    {'keys': [1, 2], 'lower': 0.5}
    """
    if isinstance(content, np.generic):
        return content.item()
    if isinstance(content, Mapping):
        return {name: python_values(each) for name, each in content.items()}
    if isinstance(content, list | range):
        return [python_values(each) for each in content]
    return tuple(map(python_values, content)) if type(content) is tuple else content


class Integer(Declared):
    """Whole numbers between two bounds; what lies outside is clamped.

    `found` says where the bounds come from if not from what is known: such as privately, and what that cost.
    """

    type: Literal["integer"] = "integer"
    lower: int
    upper: int
    missing: Literal["drop"] | int = "drop"
    found: str | None = Field(default=None, max_length=LONGEST_KEY, exclude_if=lambda held: held is None)

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
    found: str | None = Field(default=None, max_length=LONGEST_KEY, exclude_if=lambda held: held is None)

    @model_validator(mode="after")
    def _ordered(self) -> "Real":
        _check_bounds(self.lower, self.upper, self.missing)
        _check_steps(self)
        return self

    @property
    def step(self) -> Fraction:
        """The declared step, or a power of two that cuts the range into about a million."""
        if self.granularity is not None:
            return decimal(self.granularity)
        span = decimal(self.upper) - decimal(self.lower)
        step = Fraction(1)
        while step * _STEPS > span:
            step /= 2
        while step * _STEPS * 2 <= span:
            step *= 2
        return step


class Category(Declared):
    """Values from a known list of keys; others are missing."""

    type: Literal["category"] = "category"
    keys: tuple[str, ...] | tuple[int, ...] = Field(min_length=1, max_length=1 << 20)
    missing: Literal["drop"] | str | int = "drop"

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        held = as_tuples(given, "keys")
        keys = held.get("keys") if isinstance(held, dict) else None
        if hasattr(keys, "__array__"):
            raise ValueError(
                "keys must be a list that is written out: one that is taken from the data tells what is in it"
            )
        if isinstance(keys, tuple) and len({isinstance(key, str) for key in keys}) > 1:
            raise ValueError("keys must be all texts or all whole numbers; write each in quotes, or none")
        return held

    @model_validator(mode="after")
    def _known(self) -> "Category":
        if len(set(self.keys)) != len(self.keys):
            raise ValueError("keys must not repeat; name each of them once")
        if any(isinstance(key, int) and not -(1 << 63) <= key < 1 << 63 for key in self.keys):
            raise ValueError("keys that are numbers must fit in 64 bits")
        if any(isinstance(key, str) and "\0" in key for key in self.keys):
            raise ValueError("keys must not hold the character 0")  # it stands between keys in a hash
        if self.missing != "drop" and self.missing not in self.keys:
            raise ValueError("missing must be 'drop' or one of the keys")
        return self


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
Column = Annotated[Integer | Real | Category | Flag | Text, Field(discriminator="type")]


class Schema(Declared):
    """The declared columns of a table.

    >>> Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}}).columns["age"].upper
    120
    """

    columns: Mapping[str, Column]

    @model_validator(mode="after")
    def _called(self) -> "Schema":
        if any(not name or "\0" in name for name in self.columns):
            raise ValueError("a column's name must not be empty, nor hold the character 0")
        return self

    @classmethod
    def read(cls, columns: Mapping[str, object]) -> "Schema":
        """The schema of a `[columns]` block; a mistake is named by its field."""
        given: object = columns
        if not isinstance(given, Mapping):
            column = {"type": "integer", "lower": 0, "upper": 120}
            raise InvalidParameter(
                "The columns must be declared by their names: what each holds is never taken from the data. "
                f"Write them like {value({'age': column})}."
            )
        try:
            return cls.model_validate({"columns": python_values(columns)})
        except ValidationError as problem:
            raise told(problem, "columns") from None

    def number(self, owner: str, name: str) -> Number:
        """A column that holds numbers."""
        found = self.columns.get(name)
        if not isinstance(found, Integer | Real):
            raise InvalidParameter(
                f"{owner} needs numbers, and the column '{name}' is not declared as integer or real. "
                f"Declare it with bounds, as in {block('columns', name, type='real', lower=0, upper=100)}."
            )
        return found

    def keys(self, name: str) -> tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]:
        """The known keys of a column to group by."""
        found = self.columns.get(name)
        if isinstance(found, Category):
            return found.keys
        if isinstance(found, Flag):
            return (False, True)
        if isinstance(found, Text):
            raise InvalidParameter(
                f"The keys of the column '{name}' are chosen privately, which only 'by' and 'top' allow. "
                "Group by it, or declare it as a category with its keys."
            )
        if isinstance(found, Integer | Real):
            raise InvalidParameter(
                f"Grouping needs known keys, and the column '{name}' is declared to hold numbers. Ask for "
                f"{_histogram(name)}, or declare it as a category with its keys."
            )
        raise InvalidParameter(
            f"Grouping needs known keys, and the column '{name}' has none declared. "
            f"Declare them, as in {block('columns', name, type='category', keys=['a', 'b'])}, or let them be "
            f"chosen privately with {entry('type', 'text')}."
        )

    def open(self, names: Sequence[str]) -> tuple[str, ...]:
        """Which of these columns have keys that are chosen privately."""
        return tuple(name for name in names if isinstance(self.columns.get(name), Text))

    def text(self, name: str) -> Text:
        """A column whose keys are chosen privately."""
        found = self.columns[name]
        assert isinstance(found, Text)
        return found


def _histogram(name: str) -> str:
    edges = [0, 20, 40]
    return either(f"Histogram({value(name)}, {edges})", value({"histogram": name, "edges": edges}))


def as_tuples(given: Any, *names: str) -> Any:
    """Fields that people write as lists, as a strict model takes them."""
    if not isinstance(given, Mapping):
        return given
    lists = {name: tuple(given[name]) for name in names if isinstance(given.get(name), list)}
    return {**given, **lists}


def decimal(value: float) -> Fraction:
    """A declared number as it was written: 0.1 is a tenth."""
    return Fraction(repr(float(value)))


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
    if max(abs(lower), abs(upper)) / column.step > _FARTHEST:
        raise ValueError("bounds must lie within 2^48 grid steps of zero")


def _check_bounds(lower: float, upper: float, missing: object) -> None:
    if not (sensible(lower) and sensible(upper)):
        raise ValueError("bounds must be numbers up to 1e100 in size")
    if not lower < upper:
        raise ValueError("lower must be below upper; if they are swapped, swap them back")
    if isinstance(missing, int | float) and not lower <= missing <= upper:
        raise ValueError("missing must be 'drop' or lie between the bounds")
