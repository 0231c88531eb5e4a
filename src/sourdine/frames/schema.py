"""Kinds of columns that people declare: numbers with bounds, keys, flags, texts.

Declarations come from people who know the meaning of the data, never from the data.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, WrapValidator, model_validator

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import block, either, entry, setting, value
from sourdine.frames.declared import Declared, mistake, python_values
from sourdine.frames.expressions.form import ExpressionField, read_expression
from sourdine.frames.expressions.times import moments_of, names_of
from sourdine.frames.expressions.tree import (
    FARTHEST,
    MOST_STEPS,
    DayKind,
    Expression,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TextKind,
    TruthKind,
    coarse_enough,
    decimal,
)
from sourdine.frames.keys import types_of, values_of
from sourdine.frames.times import Date, Datetime

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


# Columns that are computed of a record: their bounds and keys follow from what is declared.


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


def derived_column(name: str, tree: Expression, kinds: Mapping[str, Kind]) -> Column:
    """The column of an expression: its bounds or keys follow from those of the columns in it."""
    kind = tree.kind(kinds)
    match kind:
        case NumberKind() if kind.low == kind.high:
            raise InvalidParameter(f"'{tree.text}' is the same for every record. Ask about something else.")
        case NumberKind():
            lower, upper, step = kind.lower, kind.upper, kind.step
            near = upper - lower <= MOST_STEPS and max(abs(lower), abs(upper)) <= FARTHEST
            if kind.whole and near:  # whole numbers may lie on a coarser grid than that of Integer
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


def derivation(name: str, block: object) -> Expression:
    """The expression of a block, within the bounds that it may give as well."""
    assert isinstance(block, Mapping)
    tree = read_expression(block["expression"])
    if "type" in block:  # as it was written down, with the bounds that follow
        return tree
    rest = {key: each for key, each in block.items() if key != "expression"}
    if rest and set(rest) != {"lower", "upper"}:
        raise InvalidParameter(
            f"The derived column '{name}' has an expression, and a lower and an upper bound or neither. "
            f"Got '{next(iter(rest))}'."
        )
    return read_expression({"clamp": tree, **rest}) if rest else tree


def is_derived(block: object) -> bool:
    return isinstance(block, Mapping) and "expression" in block


# What is declared of a table's columns: kinds, bounds, keys, and what counts as missing.
#
# Declarations come from people who know the data's meaning, never from the data. They are read from the
# `[columns]` block of a TOML file, or given as plain objects.


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
        blocks: object = columns
        if not isinstance(blocks, Mapping):
            column = {"type": "integer", "lower": 0, "upper": 120}
            raise InvalidParameter(
                "The columns must be declared by their names: what each holds is never taken from the data. "
                f"Write them like {value({'age': column})}."
            )
        derived = {name: each for name, each in columns.items() if is_derived(each)}
        plain = {name: each for name, each in columns.items() if name not in derived}
        try:
            schema = cls.model_validate({"columns": python_values(plain)})
        except ValidationError as problem:
            raise mistake(problem, "columns") from None
        if not derived:
            return schema
        trees = {name: derivation(name, each) for name, each in derived.items()}
        complete = schema.with_derived(trees).columns
        return cls(columns={name: complete[name] for name in columns})

    def with_derived(self, trees: Mapping[str, Expression]) -> "Schema":
        """The schema with more columns, each computed of a record; one may be computed of another."""
        columns, left = dict(self.columns), dict(trees)
        while left:
            known = {name: kind_of(each) for name, each in columns.items()}
            ready = [name for name, tree in left.items() if not set(tree.columns) & set(left)]
            if not ready:
                raise InvalidParameter(
                    f"The derived columns {', '.join(sorted(left))} are computed of each other. Compute one "
                    "of them of columns that the table has."
                )
            for name in ready:
                column = derived_column(name, left.pop(name), known)
                if columns.setdefault(name, column) != column:
                    raise InvalidParameter(
                        f"The column '{name}' is declared, and an expression is called so too. Rename one."
                    )
        return Schema(columns=columns)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """What expressions know of the columns."""
        return {name: kind_of(column) for name, column in self.columns.items()}

    @property
    def base(self) -> "Schema":
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
        return shared == dict(other.columns) and self.base == other.base

    def sources(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of the table that some columns are, or are computed of."""
        names_in_table: dict[str, None] = {}
        for name in names:
            column = self.columns[name]
            if isinstance(column, DERIVED):
                names_in_table.update(dict.fromkeys(self.sources(column.expression.columns)))
            else:
                names_in_table[name] = None
        return tuple(names_in_table)

    def number(self, owner: str, name: str) -> Number:
        """A column that holds numbers."""
        column = self.columns.get(name)
        if not isinstance(column, Integer | Real):
            raise InvalidParameter(
                f"{owner} needs numbers, and the column '{name}' is not declared as integer or real. "
                f"Declare it with bounds, as in {block('columns', name, type='real', lower=0, upper=100)}."
            )
        return column

    def keys(self, name: str) -> tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]:
        """The known keys of a column to group by."""
        column = self.columns.get(name)
        if isinstance(column, Category):
            return column.keys
        if isinstance(column, Flag):
            return (False, True)
        if isinstance(column, Text):
            raise InvalidParameter(
                f"The keys of the column '{name}' are chosen privately, which only 'by' and 'top' allow. "
                "Group by it, or declare it as a category with its keys."
            )
        if isinstance(column, Integer):
            if column.upper - column.lower < _MOST_KEYS:
                return tuple(range(column.lower, column.upper + 1))
            raise InvalidParameter(
                f"Grouping needs known keys, and the column '{name}' has more than {_MOST_KEYS:,} of them "
                f"between its bounds. Ask for {_histogram(name)}, or declare narrower bounds."
            )
        if isinstance(column, Date | Datetime):
            if column.period is not None:
                return tuple(names_of(column.period, *moments_of(column.kind)))
            raise InvalidParameter(
                f"Dates are grouped by periods, and the column '{name}' has none declared. Declare one, as "
                f"in {block('columns', name, period='month')}, or group by an expression such as "
                f"{value({'month': name})}."
            )
        if isinstance(column, Real):
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
        column = self.columns[name]
        assert isinstance(column, Text)
        return column


def expression_of(schema: Schema, name: str) -> Expression:
    """What a derived column is computed by."""
    column = schema.columns[name]
    assert isinstance(column, DERIVED)
    return column.expression


def _histogram(name: str) -> str:
    edges = [0, 20, 40]
    return either(f"Histogram({value(name)}, {edges})", value({"histogram": name, "edges": edges}))


# The privacy unit, whom a guarantee protects, and its contribution bounds: how much of one unit counts.


MOST_ROWS = 1 << 20
MOST_GROUPS = 1 << 19


@dataclass(frozen=True)
class PrivacyUnit:
    """Each record is a unit of its own, or all those with the same value of a column are one.

    Then a unit counts in at most `max_groups` groups of a query, chosen at random, and there with at most as
    much as `max_rows` records could weigh.

    >>> PrivacyUnit(name="patient", column="patient_id", max_rows=3, max_groups=2).max_rows
    3
    """

    name: str = "record"
    _: KW_ONLY
    column: str | None = None
    max_rows: int = 1
    max_groups: int = 1

    def __post_init__(self) -> None:
        for field in ("name", "column"):
            text: object = getattr(self, field)
            if not (isinstance(text, str) and text.strip()) and (field == "name" or text is not None):
                raise check.fail("PrivacyUnit", field, "be a text", text)
        for field, most in (("max_rows", MOST_ROWS), ("max_groups", MOST_GROUPS)):
            count = check.integer("PrivacyUnit", field, getattr(self, field), 1, most)
            object.__setattr__(self, field, count)
            if self.column is None and count != 1:
                remedy = "Name the column that tells units apart."
                raise check.fail("PrivacyUnit", field, "be 1 where every record is a unit", count, remedy)

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a table with a column that is called like the unit, which is not said to tell units apart.

        Whoever has several records there would be protected less than it seems.
        """
        if self.column is None and self.name in names:
            column = either(
                f"unit=PrivacyUnit({value(self.name)}, {setting('column', self.name)})",
                f"{setting('column', self.name)} under [privacy]",
            )
            raise InvalidParameter(
                f"The table has a column '{self.name}', yet every record would count as another {self.name}. "
                f"Write {column}, with max_rows and max_groups if one has several records."
            )
