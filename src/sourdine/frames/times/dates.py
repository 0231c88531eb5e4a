"""Dates and times as they are declared: from a first to a last, on the clock of a zone, in periods.

What lies outside of first and last is left out, never clamped: a wrong date is nobody's first day.
"""

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import DayKind, MomentKind, TimePeriod
from sourdine.frames.expressions.tree import days_of, seconds_of
from sourdine.frames.mistakes import Declared
from sourdine.frames.times.format import TimeFormat
from sourdine.frames.times.zones import check_zone


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
