"""Periods, parts and differences of dates and times."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import entry
from sourdine.frames.expressions.conditions import All, Comparison, Not
from sourdine.frames.expressions.functions import exact_kind, floor_ratio, regrid
from sourdine.frames.expressions.tree import (
    EPOCH,
    ColumnValue,
    Constant,
    DayKind,
    Expression,
    KeyKind,
    Kind,
    Kinds,
    MomentKind,
    NumberKind,
    OfOne,
    RecordCells,
    days_of,
    enclosed,
    seconds_of,
)

# Days and seconds in periods, and the names of periods, from first and last alone.
#
# Dates are those of the Gregorian calendar, also before it was in use, and weeks those of ISO 8601.

DAY = 86400
MOST_PERIODS = 1 << 20


class TimePeriod(StrEnum):
    """What dates and times are grouped by: they are cut to a period, or only part of them is looked at."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"
    WEEKDAY = "weekday"
    HOUR_OF_DAY = "hour_of_day"


class DatePart(StrEnum):
    """A number that is part of a date or time."""

    YEAR = "year_number"
    QUARTER = "quarter_of_year"
    MONTH = "month_of_year"
    WEEK = "week_of_year"
    DAY_OF_MONTH = "day_of_month"
    DAY_OF_WEEK = "day_of_week"
    HOUR = "hour_number"
    MINUTE = "minute_of_hour"


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PART_BOUNDS = {
    DatePart.QUARTER: (1, 4),
    DatePart.MONTH: (1, 12),
    DatePart.WEEK: (1, 53),
    DatePart.DAY_OF_MONTH: (1, 31),
    DatePart.DAY_OF_WEEK: (1, 7),
    DatePart.HOUR: (0, 23),
    DatePart.MINUTE: (0, 59),
}


def day_at(days: int) -> date:
    """The day so many after 1970-01-01."""
    return date.fromordinal(days + EPOCH)


def moment_at(seconds: int) -> datetime:
    """The time so many seconds after 1970-01-01 00:00 on the same clock."""
    return datetime(1970, 1, 1) + timedelta(seconds=seconds)


def number_of(period: TimePeriod, seconds: int) -> int:
    """The number of the period that a moment lies in, counted from that of 1970-01-01.

    >>> number_of(TimePeriod.MONTH, -1), number_of(TimePeriod.WEEK, 4 * DAY)
    (-1, 1)
    """
    days = seconds // DAY
    match period:
        case TimePeriod.HOUR:
            return seconds // 3600
        case TimePeriod.DAY:
            return days
        case TimePeriod.WEEK:
            return (days + 3) // 7
        case TimePeriod.WEEKDAY:
            return (days + 3) % 7
        case TimePeriod.HOUR_OF_DAY:
            return seconds % DAY // 3600
    day = day_at(days)
    months = (day.year - 1970) * 12 + day.month - 1
    return {TimePeriod.MONTH: months, TimePeriod.QUARTER: months // 3, TimePeriod.YEAR: day.year - 1970}[
        period
    ]


def name_of(period: TimePeriod, number: int) -> str:
    """What a period is called.

    >>> name_of(TimePeriod.WEEK, 1), name_of(TimePeriod.MONTH, -1), name_of(TimePeriod.HOUR, 25)
    ('1970-W02', '1969-12', '1970-01-02 01:00')
    """
    match period:
        case TimePeriod.HOUR:
            return f"{day_at(number // 24).isoformat()} {number % 24:02}:00"
        case TimePeriod.DAY:
            return day_at(number).isoformat()
        case TimePeriod.WEEK:
            year, week, _ = day_at(number * 7 - 3).isocalendar()
            return f"{year:04}-W{week:02}"
        case TimePeriod.MONTH:
            return f"{1970 + number // 12:04}-{number % 12 + 1:02}"
        case TimePeriod.QUARTER:
            return f"{1970 + number // 4:04}-Q{number % 4 + 1}"
        case TimePeriod.YEAR:
            return f"{1970 + number:04}"
        case TimePeriod.WEEKDAY:
            return WEEKDAYS[number]
        case TimePeriod.HOUR_OF_DAY:
            return f"{number:02}:00"


def start_at(period: TimePeriod, number: int) -> datetime:
    """Return when a period begins that is counted from that of 1970-01-01.

    >>> start_at(TimePeriod.WEEK, 1), start_at(TimePeriod.MONTH, -1)
    (datetime.datetime(1970, 1, 5, 0, 0), datetime.datetime(1969, 12, 1, 0, 0))
    """
    match period:
        case TimePeriod.HOUR:
            return moment_at(number * 3600)
        case TimePeriod.DAY:
            return moment_at(number * DAY)
        case TimePeriod.WEEK:
            return moment_at((number * 7 - 3) * DAY)
    months = number * {TimePeriod.MONTH: 1, TimePeriod.QUARTER: 3, TimePeriod.YEAR: 12}[period]
    return datetime(1970 + months // 12, months % 12 + 1, 1)


def span_of(period: TimePeriod, first: int, last: int) -> tuple[int, int]:
    """The numbers of the first and the last period between two moments."""
    if period is TimePeriod.WEEKDAY:
        return 0, 6
    if period is TimePeriod.HOUR_OF_DAY:
        return 0, 23
    return number_of(period, first), number_of(period, last)


def names_of(period: TimePeriod, first: int, last: int) -> Iterator[str]:
    """The names of all periods between two moments."""
    low, high = span_of(period, first, last)
    return (name_of(period, number) for number in range(low, high + 1))


_NAMES = {
    TimePeriod.HOUR: r"(\d{4})-(\d{2})-(\d{2}) (\d{2}):00",
    TimePeriod.DAY: r"(\d{4})-(\d{2})-(\d{2})",
    TimePeriod.WEEK: r"(\d{4})-W(\d{2})",
    TimePeriod.MONTH: r"(\d{4})-(\d{2})",
    TimePeriod.QUARTER: r"(\d{4})-Q([1-4])",
    TimePeriod.YEAR: r"(\d{4})",
}


def start_of(name: str) -> datetime | None:
    """When the period of a name begins, for an axis of time; None for what is no name of a period.

    >>> start_of("1970-W02"), start_of("1969-Q4"), start_of("north")
    (datetime.datetime(1970, 1, 5, 0, 0), datetime.datetime(1969, 10, 1, 0, 0), None)
    """
    for period, pattern in _NAMES.items():
        if (match := re.fullmatch(pattern, name, re.ASCII)) is None:
            continue
        first, second, *rest = (*map(int, match.groups()), 1)
        with contextlib.suppress(ValueError):
            match period:
                case TimePeriod.WEEK:
                    return datetime.combine(date.fromisocalendar(first, second, 1), time())
                case TimePeriod.QUARTER:
                    return datetime(first, 3 * second - 2, 1)
                case TimePeriod.MONTH | TimePeriod.YEAR:
                    return datetime(first, second, 1)
            hour = rest[1] if period is TimePeriod.HOUR else 0
            return datetime(first, second, rest[0], hour)
    return None


_NEEDS_TIME = (TimePeriod.HOUR, TimePeriod.HOUR_OF_DAY, DatePart.HOUR, DatePart.MINUTE)
_CUT = (TimePeriod.WEEKDAY, TimePeriod.HOUR_OF_DAY)
_SECONDS = {"days": DAY, "hours": 3600, "minutes": 60, "seconds": 1}


def expect_time(tree: Expression, kinds: Kinds, owner: str) -> DayKind | MomentKind:
    """The kind of an expression that must be a date or a time."""
    kind = tree.kind(kinds)
    if not isinstance(kind, DayKind | MomentKind):
        raise InvalidParameter(
            f"{owner} needs a date or a time, and '{tree.text}' is {kind.words}. Declare the column with "
            f"{entry('type', 'date')} or {entry('type', 'datetime')}, its first and its last."
        )
    return kind


def moments_of(kind: DayKind | MomentKind) -> tuple[int, int]:
    """The first and the last second."""
    if isinstance(kind, MomentKind):
        return kind.first, kind.last
    return kind.first * DAY, kind.last * DAY


def _check_time(tree: Expression, part: str, kind: Kind) -> None:
    if part in _NEEDS_TIME and isinstance(kind, DayKind):
        raise InvalidParameter(
            f"'{tree.text}' holds dates, which have no {part.partition('_')[0]}. Use days or longer periods, "
            f"or declare the column with {entry('type', 'datetime')}."
        )


@dataclass(frozen=True)
class InPeriod(OfOne):
    """The period that a date or time lies in: an hour, day, ISO week, month, quarter, year, or weekday.

    Every period between the declared first and last is a key, whether anything lies in it or not.
    """

    period: TimePeriod

    @property
    def text(self) -> str:
        if self.period in _CUT:
            name = "DAYNAME" if self.period is TimePeriod.WEEKDAY else self.period.upper()
            return f"{name}({self.of.text})"
        return f"DATE_TRUNC('{self.period}', {self.of.text})"

    @property
    def words(self) -> str:
        return f"{self.period.replace('_', ' ')} of {self.of.words}"

    @property
    def label(self) -> str:
        return self.words if isinstance(self.of, ColumnValue) else self.text

    def kind(self, kinds: Kinds) -> Kind:
        time_kind = expect_time(self.of, kinds, self.text)
        _check_time(self.of, self.period, time_kind)
        low, high = span_of(self.period, *moments_of(time_kind))
        if high - low >= MOST_PERIODS:
            raise InvalidParameter(
                f"'{self.text}' has more than {MOST_PERIODS:,} periods between the declared first and last. "
                "Take a longer period, or declare a shorter time."
            )
        return KeyKind(tuple(names_of(self.period, *moments_of(time_kind))), self.period.value)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        time_kind = expect_time(self.of, kinds, self.text)
        first, last = moments_of(time_kind)
        low, _ = span_of(self.period, first, last)
        number = _numbered(self.period, self.of, time_kind, cells, kinds)
        return f"({number})" if low == 0 else f"({number} - ({low}))"


def compare_period(left: InPeriod, sign: str, at: date, kinds: Kinds) -> Expression:
    """Return the comparison of the start of a period with a date or time, as one of the time in it.

    A period begins before a moment if the date lies before the first period that begins at it or later:
    DATE_TRUNC('month', x) < '2024-02-10' is x < '2024-03-01'.
    """
    if left.period in _CUT:
        raise InvalidParameter(f"'{left.text}' is no date. Compare it with one of its names.")
    of_days = isinstance(expect_time(left.of, kinds, left.text), DayKind)
    seconds = seconds_of(at) if isinstance(at, datetime) else days_of(at) * DAY
    number = number_of(left.period, seconds)
    try:
        starts = [start_at(left.period, each) for each in (number, number + 1)]
    except (OverflowError, ValueError):
        raise InvalidParameter("A date in a comparison lies between the years 1 and 9998.") from None
    exact = starts[0] == moment_at(seconds)

    def bound(sign: str, at: int) -> Comparison:
        start = starts[at - number]
        return Comparison(left.of, sign, Constant(start.date() if of_days else start))

    if sign in ("=", "<>"):
        among = All((bound(">=", number if exact else number + 1), bound("<", number + 1)))
        return among if sign == "=" else Not(among)
    first = number if exact and sign in ("<", ">=") else number + 1
    return bound("<" if sign in ("<", "<=") else ">=", first)


def _days(tree: Expression, kind: DayKind | MomentKind, cells: RecordCells, kinds: Kinds) -> str:
    """The days since 1970-01-01; of a column by its date, which is quicker than a division."""
    if isinstance(tree, ColumnValue):
        return f"CAST({cells.dialect.days(cells.date(tree.name))} AS BIGINT)"
    sql = tree.sql(cells, kinds)
    return sql if isinstance(kind, DayKind) else floor_ratio(sql, DAY, kind.first, kind.last, cells.dialect)


def _date(tree: Expression, kind: DayKind | MomentKind, cells: RecordCells, kinds: Kinds) -> str:
    """The day as a date of the engine."""
    if isinstance(tree, ColumnValue):
        return cells.date(tree.name)
    return cells.dialect.date_at(_days(tree, kind, cells, kinds))


def _numbered(
    period: TimePeriod, tree: Expression, kind: DayKind | MomentKind, cells: RecordCells, kinds: Kinds
) -> str:
    """The number of the period, as `calendar.number_of` has it."""
    sql, dialect = tree.sql(cells, kinds), cells.dialect
    days, (first, last) = _days(tree, kind, cells, kinds), (end // DAY for end in moments_of(kind))
    match period:
        case TimePeriod.HOUR:
            return floor_ratio(sql, 3600, kind.first, kind.last, dialect)
        case TimePeriod.DAY:
            return days
        case TimePeriod.WEEK:
            return floor_ratio(f"({days} + 3)", 7, first + 3, last + 3, dialect)
        case TimePeriod.WEEKDAY:
            return _weekday(days, first)
        case TimePeriod.HOUR_OF_DAY:
            return dialect.quotient(_within_day(sql, kind.first), "3600")
    date = _date(tree, kind, cells, kinds)
    match period:
        case TimePeriod.YEAR:
            return f"(year({date}) - 1970)"
        case TimePeriod.QUARTER:
            return f"((year({date}) - 1970) * 4 + quarter({date}) - 1)"
    return f"((year({date}) - 1970) * 12 + month({date}) - 1)"


def _weekday(days: str, first: int) -> str:
    start = first - first % 7  # so that what is divided is not negative
    return f"(({days} - ({start - 7}) + 3) % 7)"


def _within_day(sql: str, first: int) -> str:
    return f"(({sql} - ({first - first % DAY})) % {DAY})"


@dataclass(frozen=True)
class PartOf(OfOne):
    """A part of a date or time, as a whole number."""

    part: DatePart

    @property
    def text(self) -> str:
        return f"{self.part.upper()}({self.of.text})"

    def kind(self, kinds: Kinds) -> Kind:
        time_kind = expect_time(self.of, kinds, self.text)
        _check_time(self.of, self.part, time_kind)
        if self.part is DatePart.YEAR:
            first, last = (day_at(end // DAY).year for end in moments_of(time_kind))
            return NumberKind(Fraction(1), first, last, True)
        low, high = PART_BOUNDS[self.part]
        return NumberKind(Fraction(1), low, high, low > 0)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        time_kind, sql, dialect = (
            expect_time(self.of, kinds, self.text),
            self.of.sql(cells, kinds),
            cells.dialect,
        )
        days, first = _days(self.of, time_kind, cells, kinds), moments_of(time_kind)[0] // DAY
        match self.part:
            case DatePart.DAY_OF_WEEK:
                return f"({_weekday(days, first)} + 1)"
            case DatePart.HOUR:
                return dialect.quotient(_within_day(sql, time_kind.first), "3600")
            case DatePart.MINUTE:
                return dialect.quotient(f"({_within_day(sql, time_kind.first)} % 3600)", "60")
        name = {
            DatePart.YEAR: "year",
            DatePart.QUARTER: "quarter",
            DatePart.MONTH: "month",
            DatePart.WEEK: "weekofyear",
            DatePart.DAY_OF_MONTH: "day",
        }[self.part]
        return f"CAST({name}({_date(self.of, time_kind, cells, kinds)}) AS BIGINT)"


@dataclass(frozen=True)
class TimeBetween(Expression):
    """How long it is from one date or time to another, in days, hours, minutes or seconds.

    Times are those on the clock of their zone: where it is set forward or back, they differ by what it shows.
    """

    start: Expression
    end: Expression
    unit: str = "days"

    def __post_init__(self) -> None:
        if self.unit not in _SECONDS:
            raise InvalidParameter(f"A difference of dates is in {', '.join(_SECONDS)}. Got '{self.unit}'.")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.start, self.end

    @property
    def text(self) -> str:
        if self.unit == "days":
            return f"{enclosed(self.end)} - {enclosed(self.start)}"
        return f"{self.unit.upper()}({self.end.text} - {self.start.text})"

    def _kinds_of_ends(self, kinds: Kinds) -> list[DayKind | MomentKind]:
        return [expect_time(part, kinds, f"'{self.text}'") for part in self.parts]

    def _kinds(self, kinds: Kinds) -> tuple[NumberKind, NumberKind]:
        """Exactly, and on a grid of at most 2^31 steps, which whole seconds may be too many for."""
        start, end = self._kinds_of_ends(kinds)
        least = DAY if self._of_days(kinds) else 1
        low, high = (moments_of(end)[0] - moments_of(start)[1]), (moments_of(end)[1] - moments_of(start)[0])
        return exact_kind(Fraction(least, _SECONDS[self.unit]), low // least, high // least)

    def _of_days(self, kinds: Kinds) -> bool:
        return all(isinstance(each, DayKind) for each in self._kinds_of_ends(kinds))

    def kind(self, kinds: Kinds) -> Kind:
        return self._kinds(kinds)[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        exact, coarse = self._kinds(kinds)
        start, end = (
            f"({part.sql(cells, kinds)} * {DAY})"
            if isinstance(kind, DayKind) and not self._of_days(kinds)
            else part.sql(cells, kinds)
            for part, kind in zip(self.parts, self._kinds_of_ends(kinds), strict=True)
        )
        return regrid(f"({end} - {start})", exact, coarse.step, cells.dialect, self.text)


def parse_time(text: str, with_clock: bool) -> date | datetime:
    """A day, or a time, as a question writes it."""
    try:
        return datetime.fromisoformat(text) if with_clock else date.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(
            "A date is written like '2024-12-31', a time like '2024-12-31 18:00:00'."
        ) from None
