"""Declarations as long as real registers have them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.tables import Table


@pytest.mark.slow
def test_ten_thousand_keys_and_five_hundred_columns_are_released_and_certified(tmp_path: Path) -> None:
    keys = [f"town {number}" for number in range(10_000)]
    numbers = {f"c{place}": np.arange(1_000) % 10 for place in range(500)}
    towns = [keys[number * 7 % 10_000] for number in range(1_000)]
    columns: dict[str, dict[str, object]] = {"town": {"type": "category", "keys": keys}}
    columns |= {name: {"type": "integer", "lower": 0, "upper": 9} for name in numbers}
    table = Table(pa.table({"town": towns} | numbers), unit="person", columns=columns, size=1_000)
    queries: list[dict[str, object]] = [{"name": "towns", "ask": ["count"], "by": ["town"]}]
    names = list(numbers)
    queries += [
        {"name": f"means {start}", "ask": [{"mean": name} for name in names[start : start + 50]]}
        for start in range(0, 500, 50)
    ]
    with Ledger.create(tmp_path / "people.ledger", epsilon=3, unit="person") as ledger:
        release = table.release(table.plan(*queries, epsilon=1), ledger)
        assert len(release.values.each) == 501
        assert len(ledger.history()) == 1
