"""Dates and times as they are declared: from a first to a last, on the clock of a zone, in periods.

What lies outside of first and last is left out, never clamped: a wrong date is nobody's first day.
"""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import entry
from sourdine.frames.declared import Declared
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.types import Family, family
from sourdine.frames.expressions import DayKind, MomentKind, TimePeriod
from sourdine.frames.expressions.functions import floor_ratio
from sourdine.frames.expressions.times import DAY, day_at, moment_at
from sourdine.frames.expressions.tree import days_of, seconds_of


class TimeColumn(Declared):
    """What dates and times have in common."""

    zone: str | None = Field(default=None, exclude_if=lambda value: value is None)
    format: str | None = Field(default=None, exclude_if=lambda value: value is None)
    period: TimePeriod | None = Field(default=None, exclude_if=lambda value: value is None)
    missing: Literal["drop"] = "drop"

    @field_validator("period", mode="before")
    @classmethod
    def _named(cls, fields: Any) -> Any:
        if fields is None or isinstance(fields, TimePeriod):
            return fields
        if fields not in tuple(TimePeriod):
            raise ValueError(f"period must be one of {', '.join(TimePeriod)}")
        return TimePeriod(fields)

    @model_validator(mode="after")
    def _known(self) -> "TimeColumn":
        try:
            if self.zone is not None:
                check_zone(self.zone)
            if self.format is not None:
                TimeFormat(self.format)
        except InvalidParameter as problem:
            raise ValueError(str(problem)) from None
        return self


class Date(TimeColumn):
    """Days from a first to a last one; others are left out.

    Of times, the day is taken: with an offset from UTC, that in the declared zone. Text is read by `format`,
    or else as 2024-12-31. `period` is what is grouped by.
    """

    type: Literal["date"] = "date"
    first: date
    last: date

    @model_validator(mode="before")
    @classmethod
    def _read(cls, fields: Any) -> Any:
        return _with_times(fields, date)

    @model_validator(mode="after")
    def _ordered(self) -> "Date":
        if not self.first <= self.last:
            raise ValueError("first must not be after last; if they are swapped, swap them back")
        return self

    @property
    def kind(self) -> DayKind:
        """What expressions know of it."""
        return DayKind(days_of(self.first), days_of(self.last))


class Datetime(TimeColumn):
    """Whole seconds on the clock of a zone, from a first to a last one; others are left out.

    Times with an offset from UTC are converted to the zone, and others are taken as they stand. A last day
    counts to its end. Text is read by `format`, or else as 2024-12-31 18:00:00. `period` is what is grouped
    by.
    """

    type: Literal["datetime"] = "datetime"
    first: datetime
    last: datetime

    @model_validator(mode="before")
    @classmethod
    def _read(cls, fields: Any) -> Any:
        return _with_times(fields, datetime)

    @model_validator(mode="after")
    def _ordered(self) -> "Datetime":
        for each in (self.first, self.last):
            if each.tzinfo is not None or each.microsecond:
                raise ValueError(
                    "first and last are whole seconds on the clock of the zone; write them without an offset"
                )
        if not self.first <= self.last:
            raise ValueError("first must not be after last; if they are swapped, swap them back")
        return self

    @property
    def kind(self) -> MomentKind:
        """What expressions know of it."""
        return MomentKind(seconds_of(self.first), seconds_of(self.last))


def _with_times(fields: Any, wanted: type[date]) -> Any:
    """First and last as they are declared, whether as dates, as times or in text."""
    if not isinstance(fields, Mapping):
        return fields
    read = {name: _time(fields[name], wanted, name == "last") for name in ("first", "last") if name in fields}
    return {**fields, **read}


def _time(value: object, wanted: type[date], is_last: bool) -> object:
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            return value
    if wanted is date:
        midnight = isinstance(value, datetime) and value.time() == time() and value.tzinfo is None
        return value.date() if isinstance(value, datetime) and midnight else value
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time(23, 59, 59) if is_last else time())
    return value


# How dates and times are written in text: a format of strptime, of parts that every engine reads alike.


_DIGITS = {"Y": "[0-9]{4}", "m": "[0-9]{1,2}", "d": "[0-9]{1,2}", "H": "[0-9]{1,2}"}
_PARTS = {
    **_DIGITS,
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
    "f": "[0-9]{1,6}",
    "z": "(?:Z|[+-](?:0[0-9]|1[0-4]):?[0-5][0-9])",
}
_NEEDS = {"H": "Ymd", "M": "H", "S": "HM", "f": "S", "z": "HM"}


@dataclass(frozen=True)
class TimeFormat:
    """A format such as %d/%m/%Y %H:%M.

    >>> written = TimeFormat("%d/%m/%Y")
    >>> written.pattern, written.plain
    ('([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})', '$3-$2-$1')
    """

    text: str

    def __post_init__(self) -> None:
        names = [part for part, is_name in self._tokens if is_name]
        for name in names:
            if name not in _PARTS:
                raise InvalidParameter(
                    f"A format of dates has no '%{name}' that every engine reads alike. Use "
                    f"{', '.join('%' + each for each in _PARTS)}, or convert the column to dates first."
                )
        if len(set(names)) != len(names) or not set("Ymd") <= set(names):
            raise InvalidParameter(
                "A format of dates needs %Y, %m and %d, each once. Write it like %d/%m/%Y %H:%M."
            )
        for name, needed in _NEEDS.items():
            if name in names and not set(needed) <= set(names):
                raise InvalidParameter(f"A format of dates with '%{name}' needs %{needed[-1]} too.")
        if not self.text.isprintable() or len(self.text) > 100:
            raise InvalidParameter(
                "A format of dates has at most 100 characters, without control characters."
            )

    @cached_property
    def _tokens(self) -> list[tuple[str, bool]]:
        """The parts in their order, each with whether it stands for a part of a date."""
        parts = re.findall(r"%(.)|([^%]+)|(%)$", self.text)
        return [(name or ("%" if end else plain), bool(name or end)) for name, plain, end in parts]

    @property
    def zoned(self) -> bool:
        """Whether a text says how far its clock is from UTC."""
        return ("z", True) in self._tokens

    @cached_property
    def pattern(self) -> str:
        """What texts look like, with a group for each part."""
        tight = {place for place, (one, two) in enumerate(pairwise(self._tokens)) if one[1] and two[1]}
        tight |= {
            place + 1 for place in tight
        }  # without anything between them, numbers have all their digits
        parts = []
        for place, (part, is_name) in enumerate(self._tokens):
            if not is_name:
                parts.append(re.escape(part))
            elif place in tight and part in "mdH":
                parts.append("([0-9]{2})")
            elif place in tight and part == "f":
                parts.append("([0-9]{6})")
            else:
                parts.append(f"({_PARTS[part]})")
        return "".join(parts)

    @property
    def plain(self) -> str:
        """The same time as 2024-12-31 18:00:00 by the groups of the pattern."""
        names = [part for part, is_name in self._tokens if is_name]
        group = {name: f"${place}" for place, name in enumerate(names, 1)}
        text = f"{group['Y']}-{group['m']}-{group['d']}"
        if "H" in group:
            seconds = group.get("S", "00") + (f".{group['f']}" if "f" in group else "")
            text += f" {group['H']}:{group.get('M', '00')}:{seconds}"
        return text + group.get("z", "")


ISO_DATE = TimeFormat("%Y-%m-%d")
ISO_TIMES = tuple(
    TimeFormat(f"%Y-%m-%d{mark}%H:%M{rest}") for mark in (" ", "T") for rest in (":%S", "", ":%S.%f")
)
"""How times are read where no format is declared."""


# Dates and times of any type as whole numbers in SQL: days or seconds since 1970-01-01 on a declared clock.
#
# Every value has an answer: what is infinite, unreadable or outside of first and last is missing.

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


# Clocks of places: when they are set forward or back, as zoneinfo knows it, by which version of its data.
#
# The offsets between a first and a last moment are worked out here and written into what an engine is
# asked, so that every engine has the same clock, whatever zone its session or its machine is set to.


_STEP = timedelta(hours=6)  # no clock is set twice within it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_zone(name: str) -> None:
    """Refuse a zone that is not known."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidParameter(
            f"There is no time zone '{name}'. Name it by continent and city, as in Europe/Paris, or UTC."
        ) from None


@lru_cache(maxsize=256)
def offsets(name: str, first: int, last: int) -> tuple[tuple[int, int], ...]:
    """From which second of UTC on a clock is how many seconds ahead, between two seconds of UTC.

    >>> offsets("Europe/Paris", 1711846000, 1711850000)
    ((1711846000, 3600), (1711846800, 7200))
    """
    zone = ZoneInfo(name)
    at, end = _EPOCH + timedelta(seconds=first), _EPOCH + timedelta(seconds=last)
    changes = [(first, _offset(zone, at))]
    while at < end:
        after = min(at + _STEP, end)
        if _offset(zone, after) != changes[-1][1]:
            low, high = _seconds(at), _seconds(after)
            while high - low > 1:
                middle = (low + high) // 2
                moved = _offset(zone, _EPOCH + timedelta(seconds=middle)) != changes[-1][1]
                low, high = (low, middle) if moved else (middle, high)
            changes.append((high, _offset(zone, after)))
        at = after
    return tuple(changes)


def _seconds(at: datetime) -> int:
    return int((at - _EPOCH).total_seconds())


def _offset(zone: ZoneInfo, at: datetime) -> int:
    ahead = at.astimezone(zone).utcoffset()
    assert ahead is not None
    return int(ahead.total_seconds())


def on_clock(utc: str, name: str, first: int, last: int) -> str:
    """In SQL, seconds of UTC as those on a clock; they lie between a first and a last of UTC."""
    changes = offsets(name, first, last)
    return f"({utc} + {_search(utc, changes, 0, len(changes))})"


def _search(utc: str, changes: tuple[tuple[int, int], ...], low: int, high: int) -> str:
    """The offset by halving."""
    if high - low == 1:
        return f"({changes[low][1]})"
    middle = (low + high) // 2
    before, after = _search(utc, changes, low, middle), _search(utc, changes, middle, high)
    return f"CASE WHEN {utc} < {changes[middle][0]} THEN {before} ELSE {after} END"


@lru_cache(maxsize=1)
def zone_data_version() -> str:
    """The version of the data about time zones that is used here, such as 2025b."""
    for folder in TZPATH:
        place = Path(folder)
        if not (place / "UTC").exists():
            continue
        for name, start in (("tzdata.zi", "# version "), ("+VERSION", "")):
            try:
                line = (place / name).read_text(encoding="utf-8", errors="replace").partition("\n")[0]
            except OSError:
                continue
            return line.removeprefix(start).strip()
        return "unknown"
    with contextlib.suppress(ModuleNotFoundError):
        return str(import_module("tzdata").IANA_VERSION)
    return "unknown"
