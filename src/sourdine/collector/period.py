"""The only time that is kept of a report: the day, week or month that it came in, or none."""

import re
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from sourdine.core import check

LATE = timedelta(days=7)
"""How long after a question has closed its shuffler may still send what it took in before."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class KeptPeriod(StrEnum):
    """How finely the arrival of a report is kept, by the clock of UTC."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    WHOLE = "whole"

    def name_of(self, day: date) -> str:
        """What the period is called that a day lies in: its first day, or nothing.

        >>> KeptPeriod.WEEK.name_of(date(2026, 11, 17)), KeptPeriod.WHOLE.name_of(date(2026, 11, 17))
        ('2026-11-16', '')
        """
        match self:
            case KeptPeriod.DAY:
                return day.isoformat()
            case KeptPeriod.WEEK:
                return (day - timedelta(days=day.weekday())).isoformat()
            case KeptPeriod.MONTH:
                return day.replace(day=1).isoformat()
            case KeptPeriod.WHOLE:
                return ""

    def last_day(self, name: str, closes: date) -> date:
        """The last day of a period by its name; without periods that is when the question closes.

        Of what was kept without periods, under an earlier revision, it is that too.

        >>> KeptPeriod.MONTH.last_day("2028-02-01", date(2030, 1, 1))
        datetime.date(2028, 2, 29)
        """
        if self is KeptPeriod.WHOLE or not name:
            return closes
        first = date.fromisoformat(name)
        if self is KeptPeriod.DAY:
            return first
        if self is KeptPeriod.WEEK:
            return first + timedelta(days=6)
        return (first.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(days=1)

    def words(self, name: str) -> str:
        """What to call a period by its name.

        >>> KeptPeriod.WEEK.words("2026-11-16")
        'week from 2026-11-16'
        """
        return name if self in (KeptPeriod.DAY, KeptPeriod.WHOLE) else f"{self} from {name}"

    def number_between(self, opens: date, closes: date) -> int:
        """How many periods there are from one day to another.

        >>> KeptPeriod.MONTH.number_between(date(2026, 11, 17), date(2027, 1, 1))
        3
        """
        match self:
            case KeptPeriod.DAY:
                return (closes - opens).days + 1
            case KeptPeriod.WEEK:
                first = opens - timedelta(days=opens.weekday())
                return (closes - first).days // 7 + 1
            case KeptPeriod.MONTH:
                return 12 * (closes.year - opens.year) + closes.month - opens.month + 1
            case KeptPeriod.WHOLE:
                return 1


def today() -> date:
    """The day by the clock of UTC."""
    return datetime.now(UTC).date()


def day_of(owner: str, name: str, text: object) -> date:
    """A day that is written like 2026-11-17."""
    if isinstance(text, str) and _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    raise check.fail(owner, name, "be a day", text, "Write it like 2026-11-17.")
