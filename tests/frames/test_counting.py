"""Exact totals on every engine, whatever the rows hold, and no more of a unit than is declared."""

import math
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema, open_source
from sourdine.frames.counting import Totals, totals
from sourdine.frames.expression import bounds, steps
from sourdine.frames.unit import Unit
from sourdine.testing import SeededBits

SCHEMA = Schema.read(
    {
        "pay": {"type": "real", "lower": -10.0, "upper": 100.0, "granularity": 0.25},
        "site": {"type": "category", "keys": ["n", "s's"], "missing": "n"},
        "well": {"type": "flag"},
    }
)
PAY = SCHEMA.number("test", "pay")
VALUES = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.1, 0.125, 3.374999, 99.99, 100.0, None, -0.0]
ROWS: dict[str, list[Any]] = {
    "who": [f"p{i % 7}" if i % 11 else None for i in range(48)],
    "pay": VALUES * 4,
    "site": (["n", "s's", "elsewhere", None] * 12),
    "well": ([True, False, None] * 16),
}
SUMS = {
    "count": "1",
    "pay": steps("pay", PAY),
    "paid": f"CASE WHEN {steps('pay', PAY)} IS NOT NULL THEN 1 ELSE 0 END",
}


def expected() -> dict[tuple[object, ...], list[int]]:
    """The same totals in plain Python, record by record."""
    low, high = bounds(PAY)
    found = {(site, well): [0, 0, 0] for site in ("n", "s's") for well in (False, True)}
    for pay, site, well in zip(ROWS["pay"], ROWS["site"], ROWS["well"], strict=True):
        if well is None:
            continue
        row = found[site if site in ("n", "s's") else "n", well]
        row[0] += 1
        if pay is not None and math.isfinite(pay):
            row[1] += max(low, min(high, math.floor(max(-10.0, min(100.0, pay)) / 0.25 + 0.5)))
            row[2] += 1
    return found


def tables(folder: Path) -> dict[str, object]:
    arrow = pa.table({name: pa.array(column, from_pandas=False) for name, column in ROWS.items()})
    path = folder / "rows.csv"
    pa.csv.write_csv(arrow, path)
    return {
        "arrow": arrow,
        "pandas": arrow.to_pandas(),
        "nullable": pd.DataFrame(
            {name: pd.array(column) for name, column in ROWS.items() if name != "pay"}
        ).assign(pay=arrow["pay"].to_pandas()),
        "polars": pl.from_arrow(arrow),
        "lazy": pl.from_arrow(arrow).lazy(),  # type: ignore[union-attr]
        "duckdb": duckdb.connect().from_arrow(arrow),
        "csv": path,
    }


@pytest.mark.parametrize("engine", ["arrow", "pandas", "polars", "lazy", "duckdb", "csv"])
def test_totals_are_the_same_everywhere(engine: str, tmp_path: Path) -> None:
    source = open_source(tables(tmp_path)[engine], SCHEMA)
    found = totals(source, by=("site", "well"), sums=SUMS, unit=Unit(), bits=SeededBits(1))
    assert found.keys == (("n", False), ("n", True), ("s's", False), ("s's", True))
    assert {key: [found.sums[name][i] for name in SUMS] for i, key in enumerate(found.keys)} == expected()


def test_every_known_group_has_a_row_even_in_an_empty_table() -> None:
    empty = pa.table(
        {
            name: pa.array([], type=kind)
            for name, kind in [("pay", pa.float64()), ("site", pa.string()), ("well", pa.bool_())]
        }
    )
    found = totals(open_source(empty, SCHEMA), by=("site",), sums=SUMS, unit=Unit(), bits=SeededBits(1))
    assert found == Totals(by=("site",), keys=(("n",), ("s's",)), sums=dict.fromkeys(SUMS, (0, 0)))
    alone = totals(open_source(empty, SCHEMA), by=(), sums=SUMS, unit=Unit(), bits=SeededBits(1))
    assert alone.keys == ((),)


ROW = st.tuples(
    st.integers(0, 3), st.sampled_from([-20.0, 0.0, 7.5, 250.0, math.nan]), st.sampled_from(["n", "s's"])
)


@settings(max_examples=15, deadline=None)
@given(st.lists(ROW, max_size=20), st.integers(1, 3))
def test_removing_a_unit_moves_the_totals_by_no_more_than_declared(
    rows: list[tuple[int, float, str]], most: int
) -> None:
    """Under every secret: at most `most` records, each at most the larger bound."""
    unit, reach = Unit(column="who", rows=most), max(map(abs, bounds(PAY)))

    def count(kept: list[tuple[int, float, str]]) -> Totals:
        table = pa.table(
            {
                "who": pa.array([row[0] for row in kept], pa.int64()),
                "pay": pa.array([row[1] for row in kept], pa.float64()),
                "site": pa.array([row[2] for row in kept], pa.string()),
                "well": pa.array([True] * len(kept), pa.bool_()),
            }
        )
        return totals(
            open_source(table, SCHEMA, ["who"]), by=("site",), sums=SUMS, unit=unit, bits=SeededBits(5)
        )

    whole, less = count(rows), count([row for row in rows if row[0] != 0])
    moved = {
        name: sum(abs(a - b) for a, b in zip(whole.sums[name], less.sums[name], strict=True)) for name in SUMS
    }
    assert moved["count"] == min(most, sum(row[0] == 0 for row in rows))
    assert moved["pay"] <= most * reach
    assert sum(whole.sums["count"]) == sum(min(most, sum(row[0] == who for row in rows)) for who in range(4))


def test_which_records_count_changes_with_the_secret() -> None:
    table = pa.table(
        {"who": [1] * 40, "pay": [float(i) for i in range(40)], "site": ["n"] * 40, "well": [True] * 40}
    )
    source = open_source(table, SCHEMA, ["who"])
    unit = Unit(column="who", rows=2)
    seen = {
        totals(source, by=(), sums=SUMS, unit=unit, bits=SeededBits(seed)).sums["pay"] for seed in range(20)
    }
    assert len(seen) > 5


@pytest.mark.parametrize("bad", [{"rows": 0}, {"rows": 2}, {"column": "", "rows": 1}, {"column": 3}])
def test_a_bad_unit_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="of Unit"):
        Unit(**bad)
