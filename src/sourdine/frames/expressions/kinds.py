"""What an expression can be: numbers on a grid between bounds, keys, dates, times, texts, or true and false.

A kind says all that is known of an expression before any record is read. Numbers are whole steps of a grid,
so that every engine computes the same, and none can overflow.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from sourdine.core.errors import InvalidParameter

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
