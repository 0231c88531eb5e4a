"""The periods of a series: days, weeks, months, quarters or years from a first day on."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms.correlation.participation import MOST_PERIODS

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
