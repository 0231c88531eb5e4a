"""Stretches of time with a budget of their own."""

from datetime import datetime
from enum import StrEnum


class Period(StrEnum):
    """A stretch of the calendar, in universal time."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    def key(self, time: datetime) -> str:
        """The stretch that holds a time; keys sort as the stretches do.

        >>> Period.MONTH.key(datetime(2026, 11, 15))
        '2026-11'
        """
        if self is Period.WEEK:
            year, week, _ = time.isocalendar()
            return f"{year:04}-W{week:02}"
        return time.strftime({"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[self.value])
