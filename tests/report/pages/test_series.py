"""The page of a series: digits that the noise supports, and tables that fit a telephone."""

import re
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.frames import open_source
from sourdine.report import Page
from sourdine.report.pages.series import series_page
from sourdine.tables.series import TableSeries
from sourdine.testing import SeededBits
from tests.tables.series.case import START, make_plan


@pytest.fixture
def page(tmp_path: Path) -> Page:
    plan = make_plan(ask=["count", {"sum": "pay"}], periods=2)
    table = pa.table(
        {
            "id": range(4000),
            "arrived": pa.array([START + timedelta(weeks=i % 2) for i in range(4000)], pa.date32()),
            "region": ["north", "south"] * 2000,
            "pay": [97] * 4000,
        }
    )
    ledger = Ledger.create(tmp_path / "visits.ledger", epsilon=40, delta=1e-6)
    with TableSeries.start(plan, tmp_path / "visits.series", ledger) as series:
        for seed in range(2):
            series.publish(open_source(table, plan.schema, ["id"]), bits=SeededBits(seed))
        return series_page(series.answers(), plan)


def test_sums_are_written_in_the_digits_that_the_noise_supports(page: Page) -> None:
    cells = [cell for part in page.sections for table in part.tables for row in table.shown() for cell in row]
    assert not [cell for cell in cells if re.search(r"\de[+-]?\d", cell)]
    total = next(part for part in page.sections if part.title == "visits: sum of pay, total")
    (north, *_) = total.tables[0].shown()
    value, lower, upper = (int(cell.replace(",", "")) for cell in north[1:])
    assert north[1].count(",") == 1
    assert lower < value < upper
    assert all(number % 10 == 0 for number in (value, lower, upper))  # the interval is hundreds wide
    assert "e+" not in page.html().split("<script")[0]


def test_tables_have_four_columns_at_most(page: Page) -> None:
    """More would be cut off on a telephone."""
    assert all(len(table.columns) <= 4 for part in page.sections for table in part.tables)
