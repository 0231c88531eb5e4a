import json
import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.cleaner import Cleaner
from sourdine.testing import SeededBits
from tests.frames.every_engine import ENGINES
from tests.local.cleaner.people import COLUMNS, INSIDE, loud, people


def rows_of(made: object) -> list[dict[str, Any]]:
    if isinstance(made, pl.LazyFrame):
        made = made.collect()
    if isinstance(made, pl.DataFrame):
        return made.to_dicts()
    if isinstance(made, pd.DataFrame):
        return [
            {name: None if pd.isna(value) else value for name, value in row.items()}
            for row in made.to_dict("records")
        ]
    if isinstance(made, duckdb.DuckDBPyRelation):
        return [dict(zip(made.columns, row, strict=True)) for row in made.fetchall()]
    assert isinstance(made, pa.Table)
    return made.to_pylist()


def expected(rows: int) -> list[dict[str, Any]]:
    truth = people(rows).to_pylist()
    return [
        {
            "age": 40 if row["age"] is None else row["age"],
            "weight": row["weight"],
            "sex": row["sex"] or "f",
            "floor": row["floor"] if row["floor"] != 99 else None,
            "ill": row["ill"],
        }
        for row in truth
    ]


def alike(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> float:
    """The share of cells that are the same, numbers about the same."""
    same = 0
    for mine, theirs in zip(found, wanted, strict=True):
        assert list(mine) == list(theirs)
        for name, value in theirs.items():
            got = mine[name]
            near = name in ("age", "weight") and None not in (got, value) and abs(got - value) < 25
            same += near or got == value
    return same / (5 * len(wanted))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_kind_of_table_goes_in_and_the_same_kind_comes_out(engine: str, tmp_path: Path) -> None:
    table = ENGINES[engine](people(), tmp_path)
    cleaned = loud(share=0.5).clean(table, keep_order=True, bits=SeededBits(1))
    assert alike(rows_of(cleaned.values), expected(400)) > 0.98
    assert isinstance(
        cleaned.values, duckdb.DuckDBPyRelation if isinstance(table, str | Path) else type(table)
    )
    assert not cleaned.secure


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".ndjson", ".jsonl", ".parquet"])
def test_files_are_written_and_read_again(ending: str, tmp_path: Path) -> None:
    cleaner = loud(share=0.5)
    cleaned = cleaner.clean(people(), keep_order=True, bits=SeededBits(1))
    path = tmp_path / f"out{ending}"
    cleaned.write(path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    again = Cleaner.from_json(json.loads(json.dumps(cleaner.to_json()))).estimates(path)
    for name, made in cleaned.estimates().items():
        assert again[name].value == pytest.approx(made.value, rel=1e-12)


def test_types_depend_on_declarations_only() -> None:
    kinds = []
    for table in (people(400), people(1), people(0)):
        for cleaner in (loud(), Cleaner(COLUMNS, each=0.1)):
            cleaned = cleaner.clean(table)
            kinds.append(cleaned.values.schema)
            assert cleaned.values.num_rows == table.num_rows
    assert all(kind == kinds[0] for kind in kinds)
    assert [str(each.type) for each in kinds[0]] == ["int64", "double", "string", "int64", "bool"]
    frames = [Cleaner(COLUMNS, each=e).clean(people(20).to_pandas()).values.dtypes for e in (0.1, 60)]
    assert (frames[0] == frames[1]).all()


def test_what_is_not_declared_is_not_there() -> None:
    assert "name" not in loud().clean(people()).values.column_names


def test_odd_values_are_cleaned_like_others() -> None:
    table = pd.DataFrame({"x": [math.nan, math.inf, -math.inf, 1e300, -5.0, 3.0]})
    column = {"type": "real", "lower": 0.0, "upper": 10.0, "granularity": 1.0, "missing": 2.0}
    made = Cleaner({"x": column}, each=64).clean(table, keep_order=True, bits=SeededBits(1)).values
    assert made["x"].tolist() == [2, 2, 2, 10, 0, 3]


def test_values_lie_within_the_bounds_and_on_the_grid() -> None:
    for method in INSIDE:
        columns = {name: COLUMNS[name] for name in ("age", "weight")}
        made = Cleaner(columns, each=1, method=method).clean(people(), bits=SeededBits(4))
        ages, weight = (made.columns[name].compressed() for name in ("age", "weight"))
        assert ages.dtype == np.int64
        assert ages.min() >= 0
        assert ages.max() <= 120
        assert weight.min() >= 30
        assert weight.max() <= 200
        assert all(len(repr(float(each)).partition(".")[2]) == 1 for each in weight)


def test_unknown_endings_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"'\.xls' is not written"):
        loud().clean(people()).write(tmp_path / "out.xls")
    with pytest.raises(InvalidParameter, match="cannot be written"):
        loud().clean(people()).write(tmp_path / "nowhere" / "out.csv")
