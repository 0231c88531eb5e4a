"""Days and seconds in periods, and the names of periods, from first and last alone.

Dates are those of the Gregorian calendar, also before it was in use, and weeks those of ISO 8601.
"""

import contextlib
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from enum import StrEnum

from sourdine.frames.expressions.tree import EPOCH

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
