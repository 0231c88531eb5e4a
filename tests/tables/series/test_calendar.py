"""Periods by day, week, month, quarter and year."""

from datetime import date

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.tables.series import SeriesCalendar


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
    ],
)
def test_others_are_refused(length: str, first: date, periods: int, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        SeriesCalendar(length, first, periods)
