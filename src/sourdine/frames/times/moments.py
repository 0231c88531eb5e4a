"""Dates and times of any type as whole numbers in SQL: days or seconds since 1970-01-01 on a declared clock.

Every value has an answer: what is infinite, unreadable or outside of first and last is missing.
"""

from dataclasses import dataclass
from datetime import date, datetime

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import entry
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.types import Family, family
from sourdine.frames.expressions.arithmetic import floor_ratio
from sourdine.frames.expressions.calendar import DAY, day_at, moment_at
from sourdine.frames.expressions.tree import days_of, seconds_of
from sourdine.frames.times.dates import Date, Datetime
from sourdine.frames.times.format import ISO_DATE, ISO_TIMES, TimeFormat
from sourdine.frames.times.zones import on_clock

_MILLION = 1_000_000
_FAR = 2 * DAY  # no clock is so far from UTC


def time_name(name: str) -> str:
    """What the column of a source's view is called that holds a date or time as a number."""
    return f"sourdine time of {name}"


def check_time_type(name: str, column: Date | Datetime, kind: str) -> None:
    """Refuse a column whose type says more, or less, than is declared."""
    type_family = family(kind)
    zoned = type_family is Family.ZONED or (
        type_family is Family.TEXT and column.format is not None and TimeFormat(column.format).zoned
    )
    if zoned and column.zone is None:
        raise InvalidParameter(
            f"The column '{name}' holds times with an offset from UTC, so the day depends on the zone. "
            f"Declare it, as in {entry('zone', 'Europe/Paris')} or {entry('zone', 'UTC')}."
        )
    if column.format is not None and type_family not in (Family.TEXT, Family.NOTHING):
        raise InvalidParameter(
            f"The column '{name}' is declared with a format, and the table does not hold text there. "
            "Leave the format out."
        )


def microseconds_of(column_sql: str, column: Date | Datetime, kind: str, dialect: Dialect) -> str | None:
    """The microseconds since 1970-01-01 of a column, which are looked at more than once; None of dates."""
    match family(kind):
        case Family.DATE | Family.NOTHING:
            return None
        case Family.TEXT:
            text = dialect.text(column_sql, kind)
            read = (
                dialect.moment(
                    text, pattern=each.pattern, written=each.text, plain=each.plain, zoned=each.zoned
                )
                for each in _formats(column)
            )
            return f"coalesce({', '.join(read)}, NULL)"
    return dialect.microseconds(column_sql, kind)


def time_in(column_sql: str, column: Date | Datetime, kind: str, dialect: Dialect) -> str:
    """Days or seconds since 1970-01-01 in 64 bits; NULL where it is missing, unreadable, or outside.

    What is held are dates, or else microseconds.
    """
    match family(kind):
        case Family.NOTHING:
            return "CAST(NULL AS BIGINT)"
        case Family.DATE:
            return _of_dates(column_sql, column, dialect)
        case Family.TEXT:
            return _counted(column_sql, column, _formats(column)[0].zoned, dialect)
        case family_of_times:
            return _counted(column_sql, column, family_of_times is Family.ZONED, dialect)


@dataclass(frozen=True)
class TimeInside:
    """A date or time in SQL: the test that it counts, and what it is where it does."""

    test: str
    number: str
    date: str


def time_inside(column_sql: str, column: Date | Datetime, kind: str, dialect: Dialect) -> TimeInside | None:
    """A column of dates, or of times without a zone, as it stands; None of others."""
    first, last = _moments(column)
    if kind == "DATE" and isinstance(column, Date):
        low, high = (f"DATE '{_day(each).isoformat()}'" for each in (column.first, column.last))
        days = f"CAST({dialect.days(column_sql)} AS BIGINT)"
        return TimeInside(f"{column_sql} BETWEEN {low} AND {high}", days, column_sql)
    if kind != "TIMESTAMP" or last >= seconds_of(datetime.max) - 1:
        return None
    low, high = (dialect.on_clock(moment_at(end)) for end in (first, last + 1))
    date = f"CAST({column_sql} AS DATE)"
    number = f"CAST({dialect.days(date)} AS BIGINT)"
    if isinstance(column, Datetime):
        since = f"({dialect.microseconds(column_sql, kind)} - ({first * _MILLION}))"
        number = f"(CAST({dialect.quotient(since, str(_MILLION))} AS BIGINT) + ({first}))"
    return TimeInside(f"{column_sql} >= {low} AND {column_sql} < {high}", number, date)


def date_in(name: str, column: Date | Datetime, kind: str, dialect: Dialect) -> str:
    """The day of a column as a date of the engine; NULL where it is missing, unreadable, or outside."""
    column_sql = dialect.quoted(name)
    first, last = _moments(column)
    if kind == "DATE":
        low, high = (f"DATE '{day_at(end).isoformat()}'" for end in (-(-first // DAY), last // DAY))
        return f"CASE WHEN {column_sql} BETWEEN {low} AND {high} THEN {column_sql} END"
    if (inside := time_inside(column_sql, column, kind, dialect)) is not None:
        return f"CASE WHEN {inside.test} THEN {inside.date} END"
    time = dialect.quoted(time_name(name))
    if isinstance(column, Date):
        return dialect.date_at(time)
    return dialect.date_at(floor_ratio(time, DAY, first, last, dialect))


def _of_dates(column_sql: str, column: Date | Datetime, dialect: Dialect) -> str:
    first, last = _moments(column)
    low, high = (f"DATE '{_day(each).isoformat()}'" for each in (column.first, column.last))
    days = f"CAST({dialect.days(column_sql)} AS BIGINT)"
    day = f"CASE WHEN {column_sql} BETWEEN {low} AND {high} THEN {days} END"
    if isinstance(column, Date):
        return day
    within = f"{column_sql} BETWEEN {low} AND {high} AND {days} * {DAY} BETWEEN {first} AND {last}"
    return f"CASE WHEN {within} THEN {days} * {DAY} END"


def _formats(column: Date | Datetime) -> list[TimeFormat]:
    return [TimeFormat(column.format)] if column.format else [ISO_DATE, *ISO_TIMES]


def _counted(micros: str, column: Date | Datetime, zoned: bool, dialect: Dialect) -> str:
    """Microseconds as days or seconds on the clock of the zone."""
    first, last = _moments(column)
    unit = 1 if isinstance(column, Datetime) else DAY
    if not zoned:
        # one division: what is divided is counted from the first on, so that it is not negative
        start = first // unit * unit
        whole = dialect.quotient(f"({micros} - ({start * _MILLION}))", str(unit * _MILLION))
        within = f"{micros} >= {first * _MILLION} AND {micros} < {(last + 1) * _MILLION}"
        return f"CASE WHEN {within} THEN CAST({whole} AS BIGINT) + ({start // unit}) END"
    assert column.zone is not None
    low, high = first - _FAR, last + _FAR
    near = f"{micros} >= {low * _MILLION} AND {micros} < {high * _MILLION}"
    whole = dialect.quotient(f"({micros} - ({low * _MILLION}))", str(_MILLION))
    utc = f"CASE WHEN {near} THEN CAST({whole} AS BIGINT) + ({low}) END"
    local = on_clock(utc, column.zone, low, high)
    number = (
        local
        if unit == 1
        else f"{dialect.quotient(f'({local} - ({low // DAY * DAY}))', str(DAY))} + ({low // DAY})"
    )
    return f"CASE WHEN {local} BETWEEN {first} AND {last} THEN CAST({number} AS BIGINT) END"


def _moments(column: Date | Datetime) -> tuple[int, int]:
    """The first and the last second that count."""
    if isinstance(column, Datetime):
        return seconds_of(column.first), seconds_of(column.last)
    return days_of(column.first) * DAY, (days_of(column.last) + 1) * DAY - 1


def _day(day: date) -> date:
    return date(day.year, day.month, day.day)
