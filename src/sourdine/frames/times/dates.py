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

    zone: str | None = Field(default=None, exclude_if=lambda held: held is None)
    format: str | None = Field(default=None, exclude_if=lambda held: held is None)
    period: TimePeriod | None = Field(default=None, exclude_if=lambda held: held is None)
    missing: Literal["drop"] = "drop"

    @field_validator("period", mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        if given is None or isinstance(given, TimePeriod):
            return given
        if given not in tuple(TimePeriod):
            raise ValueError(f"period must be one of {', '.join(TimePeriod)}")
        return TimePeriod(given)

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
    def _read(cls, given: Any) -> Any:
        return _with_times(given, date)

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
    def _read(cls, given: Any) -> Any:
        return _with_times(given, datetime)

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


def _with_times(given: Any, wanted: type[date]) -> Any:
    """First and last as they are declared, whether as dates, as times or in text."""
    if not isinstance(given, Mapping):
        return given
    read = {name: _time(given[name], wanted, name == "last") for name in ("first", "last") if name in given}
    return {**given, **read}


def _time(held: object, wanted: type[date], is_last: bool) -> object:
    if isinstance(held, str):
        try:
            held = date.fromisoformat(held) if len(held) == 10 else datetime.fromisoformat(held)
        except ValueError:
            return held
    if wanted is date:
        midnight = isinstance(held, datetime) and held.time() == time() and held.tzinfo is None
        return held.date() if isinstance(held, datetime) and midnight else held
    if isinstance(held, date) and not isinstance(held, datetime):
        return datetime.combine(held, time(23, 59, 59) if is_last else time())
    return held
