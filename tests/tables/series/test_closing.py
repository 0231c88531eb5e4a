"""What counts in a period: the records of its days, of units by whatever type tells them apart."""

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.frames import open_source
from sourdine.tables.series import TableSeries
from tests.tables.series.case import START, make_plan

WEEK = timedelta(weeks=1)


def counted(series: TableSeries) -> list[int]:
    """The private exact sums of the first key, by period."""
    return [int(period.sums[0, 0]) for period in series._state.periods(0)]


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
def test_units_are_refused_on_every_engine(tmp_path: Path, ledger: Ledger, kind: str) -> None:
    import duckdb
    import pandas as pd
    import polars as pl

    plan = make_plan()
    days = [date(2024, 1, 1), date(2024, 1, 8), date(2024, 1, 8)]
    table = {"id": [7, 7, 8], "arrived": days, "region": ["north"] * 3}
    frames = {
        "pandas": lambda: pd.DataFrame(table).astype({"arrived": "datetime64[us]"}),
        "polars": lambda: pl.DataFrame(table),
        "duckdb": lambda: duckdb.from_arrow(pl.DataFrame(table).to_arrow()),
    }
    series = TableSeries.start(plan, tmp_path / "s.series", ledger)
    for _ in range(2):
        series.publish(open_source(frames[kind](), plan.schema, ["id"]))
    assert counted(series) == [1, 1]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (pa.array([7, 8]), pa.array([7.0, 8.0, 9.0, None])),
        (pa.array([7.0, 8.0]), pa.array([7, 8, 9])),
        (pa.array([7, 8]), pa.array([Decimal("7.00"), Decimal("8.00"), Decimal("9.00")])),
        (pa.array([7.5, 0.0]), pa.array([Decimal("7.500"), Decimal("0.000"), Decimal("9.000")])),
        (pa.array([7, 8]), pa.array(["7", "8", "7.0"])),
        (pa.array([7, 8]), pd.array([7.0, 8.0, 9.0, float("nan")])),
        (pa.array([START, START + WEEK]), pa.array([datetime(2024, 1, d) for d in (1, 8, 2)])),
        (
            pa.array([datetime(2024, 1, 1), datetime(2024, 1, 8)]),
            pa.array([START, START + WEEK, START + 2 * WEEK]),
        ),
    ],
)
def test_one_unit_is_the_same_whatever_type_its_number_has(
    tmp_path: Path, ledger: Ledger, first: Any, then: Any
) -> None:
    """A single missing number turns the whole numbers of a period into fractions."""
    plan = make_plan(arrived=None)
    with TableSeries.start(plan, tmp_path / "visits.state", ledger) as series:
        for units in (first, then):
            frame = pd.DataFrame if isinstance(units, pd.api.extensions.ExtensionArray) else pa.table
            table = frame({"id": units, "arrived": [START] * len(units), "region": ["north"] * len(units)})
            series.publish(open_source(table, plan.schema, ["id"]))
        assert counted(series) == [2, 1]


@pytest.mark.parametrize(
    ("whole", "rounded"),
    [
        (pa.array([2**53 + 1]), pa.array([2.0**53, 5.0])),
        (pa.array([-(2**53) - 1]), pa.array([-(2.0**53), 5.0])),
        (pa.array([2**24 + 1]), pa.array([2.0**24, 5.0], pa.float32())),
        (pa.array([2**60 + 1]), pa.array([2.0**60, math.inf, math.nan, 5.0])),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_number_that_lost_its_last_digits_is_nobody(
    tmp_path: Path, ledger: Ledger, whole: Any, rounded: Any, swapped: bool
) -> None:
    """A float so large stands for several whole numbers, and one unit would count under two names."""
    plan = make_plan(arrived=None)
    with TableSeries.start(plan, tmp_path / "visits.state", ledger) as series:
        for units in (rounded, whole) if swapped else (whole, rounded):
            table = {"id": units, "arrived": [START] * len(units), "region": ["north"] * len(units)}
            series.publish(open_source(pa.table(table), plan.schema, ["id"]))
        assert counted(series) == [1, 1]


def test_two_names_of_one_number_share_a_total(tmp_path: Path, ledger: Ledger) -> None:
    plan = make_plan(arrived=None, total=2)
    table = pa.table({"id": [0.0, 0.0, -0.0, 1.0], "arrived": [START] * 4, "region": ["north"] * 4})
    with TableSeries.start(plan, tmp_path / "visits.state", ledger) as series:
        series.publish(open_source(table, plan.schema, ["id"]))
        assert counted(series) == [1]


@pytest.mark.parametrize("first", [START - WEEK, START + 100 * WEEK])
def test_periods_of_which_no_record_could_count_are_refused(first: date) -> None:
    """What arrives on days that are not declared is left out, and all would be 0."""
    with pytest.raises(InvalidParameter, match="days that the column 'arrived' is declared for"):
        make_plan(first=first)


def test_a_series_grows_as_far_as_its_days_are_declared(tmp_path: Path, ledger: Ledger) -> None:
    plan = make_plan(period="month", extensible=True)
    with TableSeries.start(plan, tmp_path / "visits.state", ledger) as series:
        before = ledger.status().spent
        with pytest.raises(InvalidParameter, match="days that the column 'arrived' is declared for"):
            series.extend(25, ledger)
        assert ledger.status().spent == before
        series.extend(24, ledger)
