"""What the cells of a made-up table hold: mostly what is declared, and everything that could go wrong.

All is chosen by a source of bits: the same seed, the same choices.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TypeVar

from sourdine.core.random.bits import Bits
from sourdine.frames.schema import Category, Column, Flag, Integer, Real
from sourdine.frames.times import Date, Datetime

T = TypeVar("T")
_BLOCK = 1 << 10


class Dice:
    """Choices that are near enough to even for made-up tables; none of them protects anybody.

    >>> from sourdine.testing import SeededBits
    >>> Dice(SeededBits(1)).shuffled("abc")
    ['a', 'c', 'b']
    """

    def __init__(self, bits: Bits) -> None:
        self._bits = bits
        self._words: list[int] = []

    def below(self, size: int) -> int:
        """A whole number from 0 up to and without a size."""
        if not self._words:
            self._words = self._bits.words(_BLOCK).tolist()
        return self._words.pop() % size

    def one_in(self, many: int) -> bool:
        """True about once in so many times."""
        return self.below(many) == 0

    def one(self, things: Sequence[T]) -> T:
        """One of some things."""
        return things[self.below(len(things))]

    def some(self, things: Sequence[T], most: int) -> list[T]:
        """Up to so many different things, in any order."""
        return self.shuffled(things)[: self.below(min(most, len(things)) + 1)]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """The same things in another order."""
        order = list(things)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


Cell = str | int | float | bool | None
DOUBLE, BIGINT, HUGEINT, VARCHAR, BOOLEAN = "DOUBLE", "BIGINT", "HUGEINT", "VARCHAR", "BOOLEAN"
DATE, TIMESTAMP = "DATE", "TIMESTAMP"
_LONG = 1 << 63
_ODD_DOUBLES = (math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, float(1 << 62), 0.1, -0.5)
_ODD_LONGS = (_LONG - 1, -_LONG, 0, -1, 1 << 53, (1 << 53) + 1, 7)
_ODD_HUGE = (10**38, -(10**38), _LONG, 0)
_ODD_NUMBERS = ("", " ", "nan", "NaN", "inf", "-Infinity", "1e309", "-1e309", "1e-400", "0x1F", "1,5", " 3 ")
_MORE_ODD_NUMBERS = ("3.", "+3", "1_000", "true", "٣", "9" * 40, "-", "NULL", "\\N", "1e", "0.1.2")
_ODD_TEXTS = (
    "",
    " ",
    "nobody",
    "NULL",
    "nan",
    "0",
    "1",
    'a "quoted" one',
    "two\nlines",
    "a,b;c\td",
    "é",
    "🙂",
    *("a\x00b", "\x00", "a\rb", "\r"),  # what ends a text in C, and a line elsewhere
    *("e\u0301", "\u0430", "a\u200b", "\ufeffa", "ａ"),  # look like others, and are none of them
)
_ODD_FLAGS = ("1", "0", "t", "F", "yes", "maybe", "", "2", "TRUE", " false")
_ODD_DATES = ("", "2023-02-29", "0000-01-01", "9999-12-31", "infinity", "2024-13-01", "24-01-01", "x", "now")
_ODD_DAYS = (
    "infinity",
    "-infinity",
    "0001-01-01",
    "9999-12-31",
    "1969-12-31",
)  # of types that hold no other text
_CLOCKS = ("00:00:00", "23:59:59.999999", "02:30:00", "12:00:00")
_DAY, _YEAR = timedelta(days=1), timedelta(days=366)
_MANY_KEYS = 6
SOME_TEXTS = ("a", "b", "c", "A", "a ", "é")  # of a column whose keys nobody declared


@dataclass(frozen=True)
class Palette:
    """What the cells of one column may hold: what is declared, and what is odd."""

    plain: Sequence[Cell]
    odd: Sequence[Cell]

    def draw(self, dice: Dice) -> Cell:
        """Mostly something plain, else something odd, or nothing."""
        turn = dice.below(8)
        if turn == 0:
            return None
        return dice.one(self.odd) if turn == 1 else dice.one(self.plain)


def kinds_of(column: Column | None, wide: bool) -> tuple[str, ...]:
    """The types of the engine that a declared column may have; without a declaration, those of a unit.

    `wide` allows for numbers of more than 64 bits, and for dates and times that are not text.
    """
    if isinstance(column, Integer | Real):
        return (DOUBLE, BIGINT, HUGEINT) if wide else (DOUBLE, BIGINT)
    if isinstance(column, Flag):
        return BOOLEAN, BIGINT
    if isinstance(column, Date | Datetime):
        return (VARCHAR, DATE, TIMESTAMP) if wide and column.format is None else (VARCHAR,)
    if isinstance(column, Category):
        if isinstance(column.keys[0], str):
            return (VARCHAR,)
        exact = all(abs(int(key)) < 1 << 53 for key in column.keys)  # as floats, larger keys are one another
        return (BIGINT, DOUBLE) if exact else (BIGINT,)
    return (BIGINT, VARCHAR, DOUBLE) if column is None else (VARCHAR,)


def palette(column: Column, kind: str) -> Palette:
    """What the cells of a declared column may hold in a column of this type."""
    if isinstance(column, Integer | Real):
        return _numbers(column, kind)
    if isinstance(column, Flag):
        plain: list[Cell] = [False, True]
        odd: list[Cell] = list(_ODD_FLAGS) if kind == VARCHAR else ([2, -1] if kind == BIGINT else [None])
        return Palette([written(cell, kind) for cell in plain], odd)
    if isinstance(column, Date | Datetime):
        return _times(column, kind)
    keys: list[Cell] = list(column.keys[:_MANY_KEYS] if isinstance(column, Category) else SOME_TEXTS)
    if isinstance(keys[0], int):
        odds: dict[str, list[Cell]] = {
            VARCHAR: [*_ODD_NUMBERS, *_MORE_ODD_NUMBERS, f"{keys[0]}.0", f" {keys[0]}"],
            BIGINT: list(_ODD_LONGS),
            DOUBLE: [*_ODD_DOUBLES, float(keys[0]) + 0.25],
        }
        return Palette([written(cell, kind) for cell in keys], odds[kind])
    known = [str(key) for key in keys]
    near = [variant for key in known for variant in (key.swapcase(), key + " ", " " + key, key + key)]
    return Palette(keys, [*near, *_ODD_TEXTS])


def outside(column: Column, kind: str) -> list[Cell]:
    """Cells of a column that are surely missing, where what is missing is dropped."""
    if isinstance(column, Date | Datetime) and column.format is None:
        return [None, str(column.first - _DAY)[:10], str(column.last + _DAY)[:10]]
    if not isinstance(column, Category) or isinstance(column.keys[0], int):
        return [None]
    known = [str(key) for key in column.keys]
    near = ["nobody", *(variant for key in known[:_MANY_KEYS] for variant in (key.swapcase(), key + " "))]
    return [None, *(text for text in near if text not in known)]


def tokens(kind: str) -> list[tuple[Cell, ...]]:
    """Units as they are written in a column of this type; one may be written in several ways."""
    if kind == DOUBLE:
        return [(0.0, -0.0), (math.nan,), (math.inf,), (1.5,), (-1e300,), (5e-324,), (2.0,), (1e300,)]
    if kind in (BIGINT, HUGEINT):
        return [(0,), (-1,), (_LONG - 1,), (-_LONG,), (1,), (2,), (3,), (1 << 53,)]
    if kind == BOOLEAN:
        return [(True,), (False,)]
    if kind in (DATE, TIMESTAMP):
        return [(day,) for day in (*_ODD_DAYS, "2024-02-29", "2024-03-01", "1970-01-01")]
    lookalikes = [("e\u0301",), ("a\x00",), ("a\rb",), ("\u0430",)]
    return [("a",), ("A",), ("a ",), ("",), ("0",), ("00",), ("é",), ("a,b",), *lookalikes]


def _numbers(column: Integer | Real, kind: str) -> Palette:
    low, high, step = column.lower, column.upper, float(column.step)
    middle = (low + high) / 2
    plain = [low, high, low, high, middle, low + step, high - step]
    near = [
        low - step,
        high + step,
        low - step / 2,
        high + step / 2,
        middle + step / 2,
        2 * high - low,
        -high,
    ]
    odd: dict[str, list[Cell]] = {
        DOUBLE: list(_ODD_DOUBLES),
        BIGINT: list(_ODD_LONGS),
        HUGEINT: [*_ODD_LONGS, *_ODD_HUGE],
        VARCHAR: [*_ODD_NUMBERS, *_MORE_ODD_NUMBERS],
    }
    return Palette(
        [written(cell, kind) for cell in plain], [*(written(cell, kind) for cell in near), *odd[kind]]
    )


def _times(column: Date | Datetime, kind: str) -> Palette:
    """Days from the first to the last, with a clock where there may be one, and those beside them."""
    first, last, pattern = column.first, column.last, column.format
    inside = [first, last, first + (last - first) / 2, max(first, last - _DAY)]

    def texts(times: Sequence[date]) -> list[Cell]:
        if pattern is not None:
            return [each.strftime(pattern) for each in times]
        days = [each.isoformat(sep=" ") if isinstance(each, datetime) else str(each) for each in times]
        clocks = [f"{day[:10]} {clock}" for day in days for clock in _CLOCKS]
        if kind == VARCHAR and getattr(column, "zone", None) is not None:
            # the hour that clocks go back over comes twice, and only the offset tells which
            clocks += [f"{day[:10]} 02:30:00{offset}" for day in days for offset in ("+01:00", "+02:00", "Z")]
        return [*days, *clocks] if kind != DATE else [day[:10] for day in days]

    odd = _ODD_DATES if kind == VARCHAR else _ODD_DAYS
    beside = [first - _DAY, last + _DAY, first - _YEAR, last + _YEAR]
    return Palette(texts(inside), [*texts(beside), *odd])


def written(cell: Cell, kind: str) -> Cell:
    """A declared value as a cell of this type; whole numbers that do not fit are clamped."""
    if isinstance(cell, str):
        return cell
    if kind == VARCHAR:
        return str(cell).lower() if isinstance(cell, bool) else str(cell)
    if kind == DOUBLE:
        return float(cell)  # type: ignore[arg-type]
    if kind == BOOLEAN:
        return bool(cell)
    return max(-_LONG, min(_LONG - 1, int(cell)))  # type: ignore[arg-type]
