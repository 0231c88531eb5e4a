"""The block of a series in a specification: its periods, what is published, and how often a unit counts."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
from pydantic import Field, ValidationError, model_validator

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.frames.declared import Declared, mistake
from sourdine.mechanisms.correlation import Participation
from sourdine.mechanisms.correlation.participation import MOST_PERIODS

# The periods of a series: days, weeks, months, quarters or years from a first day on.

LENGTHS = ("day", "week", "month", "quarter", "year")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True)
class SeriesCalendar:
    """So many periods of a length, numbered from 1, the first of which begins with a day.

    >>> weeks = SeriesCalendar("week", date(2026, 1, 5), 52)
    >>> weeks.name(1), weeks.start(2).isoformat(), weeks.number("2026-W53")
    ('2026-W02', '2026-01-12', 52)
    """

    length: str
    first: date
    periods: int

    def __post_init__(self) -> None:
        if self.length not in LENGTHS:
            raise check.fail("SeriesCalendar", "length", f"be one of {', '.join(LENGTHS)}", self.length)
        check.keep(self, periods=check.integer("SeriesCalendar", "periods", self.periods, 1, MOST_PERIODS))
        check.keep(self, first=plain_day(self.first))
        begins = (
            self.first.weekday() == 0
            if self.length == "week"
            else self.length == "day" or (self.first.day == 1 and (self.first.month - 1) % self._months == 0)
        )
        if not begins:
            day = "a Monday" if self.length == "week" else f"the first day of a {self.length}"
            raise InvalidParameter(f"A series by {self.length} must begin with {day}. Change 'first'.")
        try:
            self.start(self.periods + 1)
        except (OverflowError, ValueError):
            raise InvalidParameter("The series ends after the year 9999. Ask for fewer 'periods'.") from None

    @property
    def _months(self) -> int:
        return _MONTHS.get(self.length, 1)

    def start(self, number: int) -> date:
        """The first day of a period; that of the one after the last is the day after the end."""
        steps = number - 1
        if self.length in ("day", "week"):
            return self.first + timedelta(days=steps * (7 if self.length == "week" else 1))
        months = self.first.year * 12 + self.first.month - 1 + steps * self._months
        return date(months // 12, months % 12 + 1, 1)

    def end(self, number: int) -> date:
        """The last day of a period."""
        return self.start(number + 1) - timedelta(days=1)

    def name(self, number: int) -> str:
        """A period as people write it."""
        day = self.start(number)
        match self.length:
            case "day":
                return day.isoformat()
            case "week":
                year, week, _ = day.isocalendar()
                return f"{year}-W{week:02}"
            case "month":
                return f"{day.year:04}-{day.month:02}"
            case "quarter":
                return f"{day.year:04}-Q{(day.month + 2) // 3}"
            case _:
                return f"{day.year:04}"

    def number(self, name: str) -> int:
        """Which period has a name, or holds a day."""
        if name in (known := [self.name(number) for number in range(1, self.periods + 1)]):
            return known.index(name) + 1
        day = _read_day(name)
        if day is not None and self.first <= day < self.start(self.periods + 1):
            return bisect_right(range(1, self.periods + 1), day, key=self.start)
        raise InvalidParameter(
            f"The series has no such period. Its first is {self.name(1)}, its last {self.name(self.periods)}."
        )

    def extended(self, periods: int) -> "SeriesCalendar":
        """The same with more periods."""
        return SeriesCalendar(self.length, self.first, periods)


def check_over(calendar: SeriesCalendar, number: int, early: bool, zone: str | None = None) -> None:
    """Refuse to close a period that is not over: a command that runs twice would close the next.

    It is over by the clock of the zone in which records arrive, or else by that of this machine.
    """
    last = calendar.end(number)
    today = datetime.now(None if zone is None else ZoneInfo(zone)).date()
    if not early and last >= today:
        raise InvalidParameter(
            f"The period {calendar.name(number)} is not over: it ends with {last}, and what comes in after "
            "it is closed would never count. Publish it then, or say 'early' if nothing more will come."
        )


def plain_day(first: Any) -> date:
    """A day of any library, or the start of one, as a plain date."""
    is_numpy = getattr(getattr(first, "dtype", None), "kind", None) == "M"
    day = first.astype("datetime64[us]").item() if is_numpy else first
    missing = day != day  # noqa: PLR0124 (as it is with the missing time of pandas)
    if isinstance(day, datetime) and not missing and day.tzinfo is None and day.time() == time():
        return date(day.year, day.month, day.day)
    if isinstance(day, date) and not isinstance(day, datetime):
        return day
    raise check.fail("SeriesCalendar", "first", "be a day", first)


def _read_day(text: str) -> date | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date() if len(text) == len("2026-01-05") else None
    except ValueError:
        return None


# What is read off a series at each period: totals, the period alone, windows, and their change in a year.


Span = tuple[int, int]


@dataclass(frozen=True)
class SeriesView:
    """The sum of the last `window` periods (of all, if none is said), perhaps less that of `against` earlier.

    >>> SeriesView(window=4, against=52).label
    '4 periods against 52 before'
    """

    window: int | None = None
    against: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "against"):
            if getattr(self, name) is not None:
                count = check.integer("SeriesView", name, getattr(self, name), 1, MOST_PERIODS)
                check.keep(self, **{name: count})
        if self.against is not None and self.window is None:
            raise check.fail("SeriesView", "against", "come with a window", self.against)

    @classmethod
    def read(cls, form: object) -> "SeriesView":
        """A view as it stands in a file: "total", "period", { window = 4 }, { window = 4, against = 52 }."""
        if form == "total":
            return cls()
        if form == "period":
            return cls(window=1)
        if isinstance(form, Mapping) and set(form) <= {"window", "against"} and "window" in form:
            return cls(**form)
        raise InvalidParameter(
            'What a series publishes is "total", "period", { window = 4 } or { window = 4, against = 52 }. '
            "Write one of them, or a list."
        )

    @property
    def form(self) -> str | dict[str, int]:
        """The same as it stands in a file."""
        if self.window is None:
            return "total"
        if self.against is None:
            return "period" if self.window == 1 else {"window": self.window}
        return {"window": self.window, "against": self.against}

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        if self.window is None:
            return "total"
        words = "period" if self.window == 1 else f"{self.window} periods"
        return words if self.against is None else f"{words} against {self.against} before"

    @property
    def first(self) -> int:
        """The first period at which there is enough to read it off."""
        return (self.window or 1) + (self.against or 0)

    def spans(self, period: int) -> list[tuple[Span, int]]:
        """Which spans of periods are added (1) and taken away (-1) at a period."""
        if self.window is None:
            return [((1, period), 1)]
        spans = [((period - self.window + 1, period), 1)]
        if self.against is not None:
            before = period - self.against
            spans.append(((before - self.window + 1, before), -1))
        return spans

    def periods(self, until: int) -> Iterator[int]:
        """At which periods it is told."""
        return iter(range(self.first, until + 1))


LATE = ("count", "drop")


class SeriesBlock(Declared):
    """What is declared of a series.

    `arrived` is the column that says when a record came in; without it, each period is given a table of its
    own. A record counts in the period in which it arrived, and never again. `happened` is the column of when
    it was about, and `late` says what becomes of a record that is about an earlier period: it counts when it
    arrives, or is dropped. A unit counts in at most `times` periods at least `separation` apart, or, with
    `total`, in any with at most so many records in all.
    """

    period: Literal["day", "week", "month", "quarter", "year"]
    first: date
    periods: int = Field(ge=1, le=1 << 16)
    publish: tuple[Any, ...] = ("total", "period")
    arrived: str | None = Field(default=None, min_length=1)
    happened: str | None = Field(default=None, min_length=1)
    late: Literal["count", "drop"] = "count"
    times: int = Field(default=1, ge=1, le=1 << 16)
    separation: int = Field(default=1, ge=1, le=1 << 16)
    total: int | None = Field(default=None, ge=1, le=1 << 20)
    extensible: bool = False
    state: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        fields = {name: _plain_number(value) for name, value in block.items()}
        if isinstance(fields.get("first"), str):
            try:
                fields["first"] = date.fromisoformat(fields["first"])
            except ValueError:
                raise ValueError("first must be a day, such as 2026-01-05") from None
        elif "first" in fields:
            try:
                fields["first"] = plain_day(fields["first"])
            except InvalidParameter:
                raise ValueError("first must be a day, such as 2026-01-05") from None
        if "publish" in fields:
            views = fields["publish"]
            fields["publish"] = tuple(views) if isinstance(views, list | tuple) else (views,)
        return fields

    @model_validator(mode="after")
    def _known(self) -> "SeriesBlock":
        try:
            views = self.views
            self.calendar.name(1)
            self.participation.words  # noqa: B018 (it is checked when it is made)
        except InvalidParameter as problem:
            raise ValueError(str(problem)) from None
        if not views or len(set(views)) != len(views):
            raise ValueError("publish must name what is read off, each thing once")
        if any(view.first > self.periods for view in views):
            raise ValueError("publish names a window that is longer than the series; shorten it")
        if self.late == "drop" and (self.happened is None or self.arrived is None):
            raise ValueError("late records are known by two columns: declare 'arrived' and 'happened'")
        if self.total is not None and (self.times, self.separation) != (1, 1):
            raise ValueError("total bounds all periods together; leave out times and separation")
        return self

    @classmethod
    def read(cls, fields: Mapping[str, object]) -> "SeriesBlock":
        """The block of these fields; a mistake is named by its field."""
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as problem:
            raise mistake(problem, "series") from None

    @property
    def views(self) -> tuple[SeriesView, ...]:
        """What is read off at each period."""
        return tuple(map(SeriesView.read, self.publish))

    @property
    def calendar(self) -> SeriesCalendar:
        """Its periods."""
        return SeriesCalendar(self.period, self.first, self.periods)

    @property
    def participation(self) -> Participation:
        """How often a unit counts."""
        if self.total is not None:
            return Participation(shared=True)
        return Participation(self.times, self.separation)


def _plain_number(value: Any) -> Any:
    """A whole number of NumPy as one of Python."""
    return int(value) if isinstance(value, np.integer) else value
