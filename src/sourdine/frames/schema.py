"""What is declared of a table's columns: kinds, bounds, keys, and what counts as missing.

Declarations come from people who know the data's meaning, never from the data. They are read from the
`[columns]` block of a TOML file, or given as plain objects.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.text.notation import block, either, entry, value
from sourdine.frames.expressions.calendar import names_of
from sourdine.frames.expressions.dates import moments_of
from sourdine.frames.expressions.form import ExpressionField, read_expression
from sourdine.frames.expressions.kinds import (
    FARTHEST,
    MOST_STEPS,
    DayKind,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TextKind,
    TruthKind,
    coarse_enough,
    decimal,
)
from sourdine.frames.expressions.tree import Expression
from sourdine.frames.mistakes import Declared, by_hand, declare, python_values, told
from sourdine.frames.times.dates import Date, Datetime

__all__ = [
    "DERIVED",
    "LONGEST_KEY",
    "MOST_STEPS",
    "Category",
    "Column",
    "Date",
    "Datetime",
    "Declared",
    "DerivedCategory",
    "DerivedFlag",
    "DerivedInteger",
    "DerivedReal",
    "Flag",
    "Integer",
    "Number",
    "Real",
    "Schema",
    "Text",
    "as_tuples",
    "by_hand",
    "decimal",
    "declare",
    "derivation",
    "derived_column",
    "expression_of",
    "kind_of",
    "sensible",
    "span",
]

_LARGEST = 10**100  # squares of such numbers are still floats
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
        if isinstance(keys, tuple) and len({kind is str for kind in set(map(type, keys))}) > 1:
            raise ValueError("keys must be all texts or all whole numbers; write each in quotes, or none")
        return held

    @model_validator(mode="after")
    def _known(self) -> "Category":
        if len(set(self.keys)) != len(self.keys):
            raise ValueError("keys must not repeat; name each of them once")
        numbers = [key for key in (min(self.keys), max(self.keys)) if isinstance(key, int)]
        if any(not -(1 << 63) <= key < 1 << 63 for key in numbers):
            raise ValueError("keys that are numbers must fit in 64 bits")
        if isinstance(self.keys[0], str) and "\0" in "".join(map(str, self.keys)):
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
Column = Annotated[Integer | Real | Category | Flag | Text | Date | Datetime, Field(discriminator="type")]


class DerivedInteger(Integer):
    """Whole numbers that are computed of a record; their bounds follow from those of its columns."""

    expression: ExpressionField


class DerivedReal(Real):
    """Numbers that are computed of a record; bounds and grid follow from those of its columns."""

    expression: ExpressionField


class DerivedCategory(Category):
    """Keys that are computed of a record, all of them known from what is declared."""

    expression: ExpressionField
    period: str | None = None


class DerivedFlag(Flag):
    """Whether a condition holds for a record."""

    expression: ExpressionField


DERIVED = (DerivedInteger, DerivedReal, DerivedCategory, DerivedFlag)
_MOST_KEYS = 1 << 22


class Schema(Declared):
    """The declared columns of a table, and those that are derived from them.

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
        derived = {name: each for name, each in columns.items() if _is_derived(each)}
        held = {name: each for name, each in columns.items() if name not in derived}
        try:
            made = cls.model_validate({"columns": python_values(held)})
        except ValidationError as problem:
            raise told(problem, "columns") from None
        if not derived:
            return made
        trees = {name: derivation(name, each) for name, each in derived.items()}
        found = made.with_derived(trees).columns
        return cls(columns={name: found[name] for name in columns})

    def with_derived(self, trees: Mapping[str, Expression]) -> "Schema":
        """The schema with more columns, each computed of a record; one may be computed of another."""
        found, left = dict(self.columns), dict(trees)
        while left:
            known = {name: kind_of(each) for name, each in found.items()}
            ready = [name for name, tree in left.items() if not set(tree.columns) & set(left)]
            if not ready:
                raise InvalidParameter(
                    f"The derived columns {', '.join(sorted(left))} are computed of each other. Compute one "
                    "of them of columns that the table has."
                )
            for name in ready:
                made = derived_column(name, left.pop(name), known)
                if found.setdefault(name, made) != made:
                    raise InvalidParameter(
                        f"The column '{name}' is declared, and an expression is called so too. Rename one."
                    )
        return Schema(columns=found)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """What expressions know of the columns."""
        return {name: kind_of(column) for name, column in self.columns.items()}

    @property
    def held(self) -> "Schema":
        """The columns that a table must hold: those that are not derived."""
        derived = any(isinstance(each, DERIVED) for each in self.columns.values())
        return self._without_derived if derived else self  # not kept: a schema must not hold itself

    @cached_property
    def _without_derived(self) -> "Schema":
        return Schema(
            columns={name: each for name, each in self.columns.items() if not isinstance(each, DERIVED)}
        )

    def extends(self, other: "Schema") -> bool:
        """Whether this is another schema with derived columns more, or just that."""
        shared = {name: self.columns.get(name) for name in other.columns}
        return shared == dict(other.columns) and self.held == other.held

    def sources(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of the table that some columns are, or are computed of."""
        found: dict[str, None] = {}
        for name in names:
            column = self.columns[name]
            if isinstance(column, DERIVED):
                found.update(dict.fromkeys(self.sources(column.expression.columns)))
            else:
                found[name] = None
        return tuple(found)

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
        if isinstance(found, Integer):
            if found.upper - found.lower < _MOST_KEYS:
                return tuple(range(found.lower, found.upper + 1))
            raise InvalidParameter(
                f"Grouping needs known keys, and the column '{name}' has more than {_MOST_KEYS:,} of them "
                f"between its bounds. Ask for {_histogram(name)}, or declare narrower bounds."
            )
        if isinstance(found, Date | Datetime):
            if found.period is not None:
                return tuple(names_of(found.period, *moments_of(found.kind)))
            raise InvalidParameter(
                f"Dates are grouped by periods, and the column '{name}' has none declared. Declare one, as "
                f"in {block('columns', name, period='month')}, or group by an expression such as "
                f"{value({'month': name})}."
            )
        if isinstance(found, Real):
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


def expression_of(schema: Schema, name: str) -> Expression:
    """What a derived column is computed by."""
    column = schema.columns[name]
    assert isinstance(column, DERIVED)
    return column.expression


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


def derived_column(name: str, tree: Expression, kinds: Mapping[str, Kind]) -> Column:
    """The column of an expression: its bounds or keys follow from those of the columns in it."""
    kind = tree.kind(kinds)
    match kind:
        case NumberKind() if kind.low == kind.high:
            raise InvalidParameter(f"'{tree.text}' is the same for every record. Ask about something else.")
        case NumberKind():
            lower, upper, step = kind.lower, kind.upper, kind.step
            if kind.whole and upper - lower <= MOST_STEPS:
                return DerivedInteger(lower=int(lower), upper=int(upper), expression=tree)
            if any(decimal(float(each)) != each for each in (lower, upper, step)):
                # steps that floats tell exactly as they are written: a few digits
                step = coarse_enough(_power_of_ten(step), lower - 4 * step, upper + 4 * step)
                lower, upper = math.floor(lower / step) * step, math.ceil(upper / step) * step
            return DerivedReal(
                lower=float(lower), upper=float(upper), granularity=float(step), expression=tree
            )
        case KeyKind(keys, period):
            return DerivedCategory(keys=keys, period=period, expression=tree)
        case TruthKind():
            return DerivedFlag(expression=tree)
        case DayKind() | MomentKind():
            raise InvalidParameter(
                f"The derived column '{name}' would hold dates. Take a period of it, as in "
                f"{value({'month': 'seen'})}, or a difference."
            )
    raise InvalidParameter(
        f"The derived column '{name}' would hold texts that nobody can list. Use the column."
    )


def _power_of_ten(step: Fraction) -> Fraction:
    """The largest power of ten that is not above a step."""
    power = Fraction(1)
    while power > step:
        power /= 10
    while power * 10 <= step:
        power *= 10
    return power


def derivation(name: str, given: object) -> Expression:
    """The expression of a block, within the bounds that it may give as well."""
    assert isinstance(given, Mapping)
    tree = read_expression(given["expression"])
    if "type" in given:  # as it was written down, with the bounds that follow
        return tree
    rest = {key: each for key, each in given.items() if key != "expression"}
    if rest and set(rest) != {"lower", "upper"}:
        raise InvalidParameter(
            f"The derived column '{name}' has an expression, and a lower and an upper bound or neither. "
            f"Got '{next(iter(rest))}'."
        )
    return read_expression({"clamp": tree, **rest}) if rest else tree


def _is_derived(given: object) -> bool:
    return isinstance(given, Mapping) and "expression" in given


def _histogram(name: str) -> str:
    edges = [0, 20, 40]
    return either(f"Histogram({value(name)}, {edges})", value({"histogram": name, "edges": edges}))


def as_tuples(given: Any, *names: str) -> Any:
    """Fields that people write as lists, as a strict model takes them."""
    if not isinstance(given, Mapping):
        return given
    lists = {name: tuple(given[name]) for name in names if isinstance(given.get(name), list)}
    return {**given, **lists}


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
