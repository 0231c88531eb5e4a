"""Periods by day, week, month, quarter and year."""

from datetime import UTC, date, datetime, tzinfo
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.tables.series import SeriesCalendar
from sourdine.tables.series.declaration import check_over


@pytest.mark.parametrize(
    ("length", "first", "names", "after"),
    [
        ("day", date(2026, 2, 27), ["2026-02-27", "2026-02-28", "2026-03-01"], date(2026, 3, 2)),
        ("week", date(2026, 12, 28), ["2026-W53", "2027-W01", "2027-W02"], date(2027, 1, 18)),
        ("month", date(2026, 11, 1), ["2026-11", "2026-12", "2027-01"], date(2027, 2, 1)),
        ("quarter", date(2026, 10, 1), ["2026-Q4", "2027-Q1", "2027-Q2"], date(2027, 7, 1)),
        ("year", date(2026, 1, 1), ["2026", "2027", "2028"], date(2029, 1, 1)),
    ],
)
def test_periods_follow_each_other(length: str, first: date, names: list[str], after: date) -> None:
    calendar = SeriesCalendar(length, first, 3)
    assert [calendar.name(t) for t in (1, 2, 3)] == names
    assert [calendar.number(name) for name in names] == [1, 2, 3]
    assert calendar.number(calendar.start(2).isoformat()) == 2
    assert calendar.start(4) == after
    assert all((calendar.start(t + 1) - calendar.end(t)).days == 1 for t in (1, 2, 3))


@pytest.mark.parametrize(
    ("length", "first", "periods", "reason"),
    [
        ("week", date(2026, 1, 6), 3, "a Monday"),
        ("quarter", date(2026, 2, 1), 3, "first day of a quarter"),
        ("year", date(9000, 1, 1), 2000, "after the year 9999"),
        ("hour", date(2026, 1, 1), 3, "be one of"),
        ("day", datetime(2026, 1, 1, 5), 3, "be a day"),
        ("day", pd.Timestamp("2026-01-01", tz="UTC"), 3, "be a day"),
        ("day", "2026-01-01", 3, "be a day"),
        ("day", pd.NaT, 3, "be a day"),
    ],
)
def test_others_are_refused(length: str, first: Any, periods: int, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        SeriesCalendar(length, first, periods)


@pytest.mark.parametrize(
    "first", [datetime(2026, 1, 5), pd.Timestamp("2026-01-05"), np.datetime64("2026-01-05", "ns")]
)
def test_the_start_of_a_day_is_the_day(first: Any) -> None:
    calendar = SeriesCalendar("week", first, 3)
    assert calendar == SeriesCalendar("week", date(2026, 1, 5), 3)
    assert type(calendar.start(2)) is date


def test_a_period_is_found_by_any_of_its_days() -> None:
    months = SeriesCalendar("month", date(2024, 1, 1), 3)
    days = ["2024-01-31", "2024-02-01", "2024-02-29", "2024-03-31"]
    assert [months.number(day) for day in days] == [1, 2, 2, 3]
    for day in ("2023-12-31", "2024-04-01", "2024-02-30", "2024", "20240201", "February"):
        with pytest.raises(InvalidParameter, match="no such period"):
            months.number(day)


def test_a_day_is_over_when_it_is_where_records_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """At midnight of UTC it is still four in the afternoon in Los Angeles, and more will come."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime(2026, 1, 2, 0, 30, tzinfo=UTC).astimezone(tz)

    monkeypatch.setattr("sourdine.tables.series.declaration.datetime", Clock)
    days = SeriesCalendar("day", date(2026, 1, 1), 3)
    check_over(days, 1, False, "UTC")
    check_over(days, 1, True, "America/Los_Angeles")
    with pytest.raises(InvalidParameter, match="is not over"):
        check_over(days, 1, False, "America/Los_Angeles")
