"""Answers by periods are drawn over time; other keys are not taken for dates."""

import datetime as dt
from typing import Any

import polars as pl
import pytest

import sourdine as sd
from sourdine.report.charts.answers import draw_answer
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits

pytest.importorskip("altair")
ROWS = pl.DataFrame({"seen": [dt.date(2024, 1, 5), dt.date(2024, 2, 29)] * 50, "sex": ["f", "m"] * 50})
TABLE = sd.Table(
    ROWS,
    unit="person",
    columns={
        "seen": {"type": "date", "first": "2023-12-30", "last": "2024-03-31"},
        "sex": {"type": "category", "keys": ["f", "m"]},
    },
)


@pytest.mark.parametrize("period", ["day", "week", "month", "quarter", "year"])
def test_periods_are_drawn_over_time(period: str) -> None:
    plan = TABLE.plan(sd.Query("q", ["count"], by=[{period: "seen"}, "sex"]), epsilon=1)
    (answer,) = _carry_out(plan, TABLE.source, bits=SeededBits(1))
    spec: Any = draw_answer(answer)
    assert spec is not None
    across = spec["layer"][-1]["encoding"]["x"]
    assert (across["type"], across["title"]) == ("temporal", f"{period} of seen")
    (rows,) = spec["datasets"].values()
    assert len(rows) == len(answer.keys)
    assert (
        min(row["time"] for row in rows)
        == {
            "day": "2023-12-30T00:00:00",
            "week": "2023-12-25T00:00:00",
            "month": "2023-12-01T00:00:00",
            "quarter": "2023-10-01T00:00:00",
            "year": "2023-01-01T00:00:00",
        }[period]
    )


def test_weekdays_and_keys_are_no_times() -> None:
    plan = TABLE.plan(
        sd.Query("a", ["count"], by={"weekday": "seen"}), sd.Query("b", ["count"], by="sex"), epsilon=1
    )
    for answer in _carry_out(plan, TABLE.source, bits=SeededBits(1)):
        spec: Any = draw_answer(answer)
        assert spec["layer"][0]["encoding"]["y"]["type"] == "nominal"
