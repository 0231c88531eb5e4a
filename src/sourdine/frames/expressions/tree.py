"""Expressions: what is computed of one record, as a small tree without any data.

A tree is checked against kinds, which propagate from its columns, and is then written in an engine's SQL.
It has a value for every record there is, or none: no value of any column can raise an error.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import gcd, lcm
from typing import Protocol

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.dialect import Dialect

# What an expression can be: numbers on a grid between bounds, keys, dates, times, texts, or true and false.
#
# A kind says all that is known of an expression before any record is read. Numbers are whole steps of a
# grid, so that every engine computes the same, and none can overflow.

MOST_STEPS = 1 << 31  # between two bounds, so that the square of a number of steps fits in 62 bits
FARTHEST = 1 << 48  # steps from zero: a float rounds such a number to the right step
LONG = 1 << 62  # what 64 bits hold, with room for a sum of two
WIDE = 10**37  # what the wide numbers of every engine hold
Key = str | int | bool
DAY_LENGTH = 86400  # seconds


@lru_cache(maxsize=1 << 12)
def decimal(value: float | Fraction) -> Fraction:
    """A declared number as it was written: 0.1 is a tenth."""
    return Fraction(value) if isinstance(value, int | Fraction) else Fraction(repr(float(value)))


@dataclass(frozen=True)
class NumberKind:
    """Numbers `low * step`, ..., `high * step`; `nonzero` says that 0 is not among them.

    >>> NumberKind(Fraction(1, 2), 0, 5).upper
    Fraction(5, 2)
    """

    step: Fraction
    low: int
    high: int
    nonzero: bool = False

    @property
    def lower(self) -> Fraction:
        """The least number."""
        return self.low * self.step

    @property
    def upper(self) -> Fraction:
        """The greatest number."""
        return self.high * self.step

    @property
    def whole(self) -> bool:
        """Whether all are integers."""
        return self.step.denominator == 1

    @property
    def has_zero(self) -> bool:
        """Whether 0 may be among them."""
        return self.low <= 0 <= self.high and not self.nonzero

    @property
    def size(self) -> int:
        """The most steps from 0."""
        return max(abs(self.low), abs(self.high))

    @property
    def words(self) -> str:
        """The bounds, as people read them."""
        return f"{number_text(self.lower)} to {number_text(self.upper)}"


@dataclass(frozen=True)
class KeyKind:
    """Keys from a known list, in its order. `period` is that of keys which are periods of time."""

    keys: tuple[str, ...] | tuple[int, ...]
    period: str | None = None

    @property
    def words(self) -> str:
        """How many keys there are."""
        return f"{len(self.keys):,} keys" if len(self.keys) > 1 else "1 key"


@dataclass(frozen=True)
class DayKind:
    """Days, counted from 1970-01-01, from the first to the last."""

    first: int
    last: int
    words = "dates"


@dataclass(frozen=True)
class MomentKind:
    """Seconds on the clock of a place, counted from 1970-01-01 00:00 there."""

    first: int
    last: int
    words = "times"


def seconds_between(kind: DayKind | MomentKind) -> tuple[int, int]:
    """The first and the last second; a day is its midnight."""
    size = DAY_LENGTH if isinstance(kind, DayKind) else 1
    return kind.first * size, kind.last * size


@dataclass(frozen=True)
class TextKind:
    """Texts that nobody lists."""

    words = "texts"


@dataclass(frozen=True)
class TruthKind:
    """True, false, or missing."""

    words = "true or false"


Kind = NumberKind | KeyKind | DayKind | MomentKind | TextKind | TruthKind


def number_text(number: Fraction) -> str:
    """A number as people write it: exactly where a few digits do, else as the nearest float."""
    if number.denominator == 1 and abs(number) < 10**16:
        return str(number.numerator)
    return f"{float(number)!r}" if decimal(float(number)) == number else f"{float(number):.6g}"


def common_step(*steps: Fraction) -> Fraction:
    """The largest step of which all these are multiples.

    >>> common_step(Fraction(1, 4), Fraction(1, 6))
    Fraction(1, 12)
    """
    return Fraction(gcd(*(each.numerator for each in steps)), lcm(*(each.denominator for each in steps)))


def nearest(number: Fraction) -> int:
    """The nearest whole number, of two as near the upper one."""
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)


def coarse_enough(step: Fraction, lower: Fraction, upper: Fraction) -> Fraction:
    """The step, doubled until there are at most 2^31 of them between the bounds."""
    while (upper - lower) / step > MOST_STEPS or max(abs(lower), abs(upper)) / step > FARTHEST:
        step *= 2
    return step


def fine_step(lower: Fraction, upper: Fraction, cells: int = 1 << 30) -> Fraction:
    """The largest power of two that cuts a range into at least so many steps, as far as floats allow."""
    span, step = max(upper - lower, Fraction(1, cells)), Fraction(1)
    while step * cells > span:
        step /= 2
    while step * cells * 2 <= span:
        step *= 2
    return coarse_enough(step, lower, upper)


def on_grid(step: Fraction, lower: Fraction, upper: Fraction, nonzero: bool = False) -> NumberKind:
    """Numbers between bounds, each rounded to the nearest step."""
    if not Fraction(1, 10**100) <= step <= 10**100:
        raise InvalidParameter(
            "The numbers of an expression become too large or too small to be counted in steps. "
            "Leave out a factor, or declare narrower bounds."
        )
    low, high = nearest(lower / step), nearest(upper / step)
    return NumberKind(step, low, high, nonzero and not low == high == 0)


def check_size(size: Fraction | int, what: str) -> None:
    """Refuse whole numbers that an engine could not hold."""
    if size >= WIDE:
        raise InvalidParameter(
            f"The numbers of '{what}' lie on grids that are too unlike to be computed with exactly. "
            "Declare a coarser granularity for the columns in it."
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
