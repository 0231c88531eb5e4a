"""The periods of a series: days, weeks, months, quarters or years from a first day on."""

from dataclasses import dataclass
from datetime import date, timedelta

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
        for number in range(1, self.periods + 1):
            if self.name(number) == name or self.start(number).isoformat() == name:
                return number
        raise InvalidParameter(
            f"The series has no such period. Its first is {self.name(1)}, its last {self.name(self.periods)}."
        )

    def extended(self, periods: int) -> "SeriesCalendar":
        """The same with more periods."""
        return SeriesCalendar(self.length, self.first, periods)


def check_over(calendar: SeriesCalendar, number: int, early: bool) -> None:
    """Refuse to close a period that is not over: a command that runs twice would close the next."""
    last = calendar.end(number)
    if not early and last >= date.today():
        raise InvalidParameter(
            f"The period {calendar.name(number)} is not over: it ends with {last}, and what comes in after "
            "it is closed would never count. Publish it then, or say 'early' if nothing more will come."
        )
