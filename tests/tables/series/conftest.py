"""A small register that grows week by week, and its series."""

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.frames import Source, open_source
from sourdine.tables.series import SeriesPlan
from tests.tables.series.case import START, make_plan


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "visits.ledger", epsilon=40, delta=1e-6)


@pytest.fixture
def source() -> Callable[..., Source]:
    """A table of (unit, week, region) records."""

    def make(records: list[tuple[object, int, str]], plan: SeriesPlan | None = None) -> Source:
        table = pa.table(
            {
                "id": [unit for unit, _, _ in records],
                "arrived": pa.array(
                    [START + timedelta(weeks=week - 1) for _, week, _ in records], pa.date32()
                ),
                "region": [region for _, _, region in records],
            }
        )
        return open_source(table, (plan or make_plan()).schema, ["id"])

    return make


def day(week: int) -> date:
    return START + timedelta(weeks=week - 1)
