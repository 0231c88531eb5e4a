"""Expressions: what is computed of one record, as a small tree without any data.

A tree is checked against kinds, which propagate from its columns, and is then written in an engine's SQL.
It has a value for every record there is, or none: no value of any column can raise an error.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from itertools import islice
from typing import Protocol

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.expressions.kinds import (
    DayKind,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TextKind,
    TruthKind,
    decimal,
    number_text,
)

Kinds = Mapping[str, Kind]
"""The kinds of columns, by their names."""
EPOCH = date(1970, 1, 1).toordinal()
BOTH = frozenset({True, False})
_MOST_NODES = 4096
_DEEPEST = 64


class RecordCells(Protocol):
    """The columns of a table in the SQL of an engine, each NULL where it is missing."""

    @property
    def dialect(self) -> Dialect:
        """How the engine's SQL is written."""

    def place(self, name: str) -> str:
        """The steps of a number above its lower bound."""

    def steps(self, name: str) -> str:
        """The steps of a number from 0, in 64 bits."""

    def code(self, name: str) -> str:
        """The place of a key among those that are declared."""

    def truth(self, name: str) -> str:
        """A flag."""

    def time(self, name: str) -> str:
        """Days or seconds since 1970-01-01, in 64 bits."""

    def date(self, name: str) -> str:
        """The day of a date or time, as a date of the engine."""

    def text(self, name: str) -> str:
        """A text that may be a key."""

    def among(self, name: str, keys: tuple[str | int | bool, ...]) -> str:
        """Whether a column of keys, a flag or a text holds one of some keys."""

    def matched(self, join: str) -> str:
        """Whether a record has a row in the public table of a join."""


class Expression(ABC):
    """Something computed of one record.

    >>> from sourdine.frames.expressions import Add
    >>> tree = Add(ColumnValue("age"), Constant(1))
    >>> tree.text, tree.kind({"age": NumberKind(Fraction(1), 0, 120)}).words
    ('age + 1', '1 to 121')
    """

    @property
    @abstractmethod
    def parts(self) -> tuple["Expression", ...]:
        """The expressions it is made of."""

    @abstractmethod
    def kind(self, kinds: Kinds) -> Kind:
        """What it can be; refuses what could have no value where it should have one."""

    @abstractmethod
    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        """The value in SQL, NULL where it is missing.

        A number is whole steps of its kind's grid, a key its place among the keys, a date or time a number of
        days or seconds.
        """

    @property
    @abstractmethod
    def text(self) -> str:
        """The expression as SQL writes it, for people."""

    @property
    def words(self) -> str:
        """The expression as people say it."""
        return self.text

    @property
    def label(self) -> str:
        """What a column is called that is computed by it and has no other name."""
        return self.text

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        """Whether it may be true, and whether it may be false, as far as bounds tell."""
        return BOTH

    def __bool__(self) -> bool:
        raise InvalidParameter(
            "An expression is neither true nor false until records are read. Write & for 'and', | for 'or' "
            "and ~ for 'not', each side in brackets."
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it depends on, each once."""
        return tuple(dict.fromkeys(each.name for each in walk(self) if isinstance(each, ColumnValue)))


@dataclass(frozen=True)
class OfOne(Expression):
    """Something computed of one other expression."""

    of: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)


@dataclass(frozen=True)
class OfTwo(Expression):
    """Something computed of two other expressions."""

    left: Expression
    right: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.left, self.right


def walk(tree: Expression) -> Iterator[Expression]:
    """Every expression in a tree, those that use others before them."""
    yield tree
    for part in tree.parts:
        yield from walk(part)


def check_tree(tree: Expression) -> None:
    """Refuse a tree that an engine would take too long to read."""
    # parts may be shared, so that all of them would take too long to count
    if next(islice(walk(tree), _MOST_NODES, None), None) is not None or _depth(tree) > _DEEPEST:
        raise InvalidParameter(
            f"An expression has more than {_MOST_NODES:,} parts, or more than {_DEEPEST} inside each other. "
            "Declare parts of it as columns of their own."
        )


def _depth(tree: Expression) -> int:
    return 1 + max(map(_depth, tree.parts), default=0)


@dataclass(frozen=True)
class ColumnValue(Expression):
    """What a column holds, as it is declared: numbers clamped to their bounds, dates outside left out."""

    name: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def text(self) -> str:
        plain = self.name.isidentifier() and self.name.isascii()
        return self.name if plain else '"' + self.name.replace('"', '""') + '"'

    @property
    def words(self) -> str:
        return self.name

    def kind(self, kinds: Kinds) -> Kind:
        if self.name not in kinds:
            raise InvalidParameter(f"The column '{self.name}' is not declared. Declare it first.")
        return kinds[self.name]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        match kinds[self.name]:
            case NumberKind():
                return cells.steps(self.name)
            case KeyKind():
                return cells.code(self.name)
            case TruthKind():
                return cells.truth(self.name)
            case DayKind() | MomentKind():
                return cells.time(self.name)
            case TextKind():
                return cells.text(self.name)


Literal = int | float | Fraction | str | bool | date | datetime


@dataclass(frozen=True)
class Constant(Expression):
    """A number, text, date or time that is written down, or true or false."""

    value: int | float | Fraction | str | bool | date | datetime

    def __post_init__(self) -> None:
        value: object = self.value
        if isinstance(value, float):
            if not abs(value) <= 10**100:
                raise InvalidParameter("A constant must be a number up to 1e100 in size.")
            value = decimal(value)
        if isinstance(value, Fraction) and value.denominator == 1:
            value = value.numerator
        if isinstance(value, datetime):
            if value.tzinfo is not None or value.microsecond:
                raise InvalidParameter(
                    "A time in an expression is whole seconds on the clock of its column's zone. "
                    "Write it without an offset, as in 2024-12-31T18:00:00."
                )
        elif not isinstance(value, int | Fraction | str | date):
            raise InvalidParameter(
                f"A constant is a number, a text, a date or a time. Got a {type(value).__name__}."
            )
        if isinstance(value, int | Fraction) and not -(10**100) <= value <= 10**100:
            raise InvalidParameter("A constant must be a number up to 1e100 in size.")
        object.__setattr__(self, "value", value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (type(self.value), self.value) == (
            type(other.value),
            other.value,
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def text(self) -> str:
        match self.value:
            case bool():
                return str(self.value).upper()
            case int() | Fraction():
                return number_text(Fraction(self.value))
            case datetime():
                return f"TIMESTAMP '{self.value.isoformat(' ')}'"
            case date():
                return f"DATE '{self.value.isoformat()}'"
        return "'" + str(self.value).replace("'", "''") + "'"

    @property
    def words(self) -> str:
        return str(self.value).lower() if isinstance(self.value, bool) else plain_text(self.value)

    def kind(self, kinds: Kinds) -> Kind:
        match self.value:
            case bool():
                return TruthKind()
            case int() | Fraction():
                exact = Fraction(self.value)
                step = Fraction(1, exact.denominator)
                return NumberKind(step, exact.numerator, exact.numerator, exact != 0)
            case datetime():
                return MomentKind(seconds_of(self.value), seconds_of(self.value))
            case date():
                return DayKind(days_of(self.value), days_of(self.value))
        return KeyKind((str(self.value),))

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        match self.kind(kinds):
            case NumberKind(low=low):
                return f"CAST({low} AS {cells.dialect.wide if abs(low) >= 1 << 62 else 'BIGINT'})"
            case DayKind(first=at) | MomentKind(first=at):
                return f"CAST({at} AS BIGINT)"
            case TruthKind():
                return cells.dialect.literal(bool(self.value))
        return "CAST(0 AS BIGINT)"

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        return frozenset({self.value}) if isinstance(self.value, bool) else BOTH


def plain_text(value: object) -> str:
    """A constant without quotes."""
    if isinstance(value, Fraction):
        return number_text(value)
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def days_of(day: date) -> int:
    """A day, counted from 1970-01-01."""
    return day.toordinal() - EPOCH


def seconds_of(moment: datetime) -> int:
    """The seconds from 1970-01-01 00:00 on the same clock."""
    return days_of(moment) * 86400 + moment.hour * 3600 + moment.minute * 60 + moment.second


def enclosed(tree: Expression) -> str:
    """The text of an expression inside another: in brackets, unless it is one thing."""
    single = isinstance(tree, ColumnValue | Constant) or _is_call(tree.text)
    return tree.text if single else f"({tree.text})"


def _is_call(text: str) -> bool:
    """Whether a text is a function with its arguments, and nothing beside it."""
    name, bracket, _ = text.partition("(")
    if not bracket or not name.replace("_", "").isalpha():
        return False
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter == ")":
            return place == len(text) - 1
    return False


def expect_number(tree: Expression, kinds: Kinds, owner: str) -> NumberKind:
    """The kind of an expression that must be a number."""
    kind = tree.kind(kinds)
    if not isinstance(kind, NumberKind):
        raise InvalidParameter(
            f"{owner} needs a number, and '{tree.text}' is {kind.words}. Use a column that is declared as "
            "integer or real."
        )
    return kind


def expect_truth(tree: Expression, kinds: Kinds, owner: str) -> None:
    """Refuse an expression that is neither true nor false."""
    kind = tree.kind(kinds)
    if not isinstance(kind, TruthKind):
        raise InvalidParameter(
            f"{owner} needs a condition, and '{tree.text}' is {kind.words}. Compare it with something, as "
            f"in {enclosed(tree)} = ..."
        )
