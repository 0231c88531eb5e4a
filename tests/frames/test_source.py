"""The same answers from every engine, and one clear sentence for what cannot be read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema, open_source

ROWS = {
    "age": [31, 54, 54, 200],
    "sex": ["f", "m", "f", "x"],
    "well": [True, False, True, True],
    "note": list("abcd"),
}
SCHEMA = Schema.read(
    {
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "well": {"type": "flag"},
    }
)
QUESTION = (
    "SELECT sex, count(*), sum(TRY_CAST(age AS DOUBLE)), count(*) FILTER (TRY_CAST(well AS BOOLEAN)) "
    "FROM {table} GROUP BY sex ORDER BY sex"
)
ANSWER = [("f", 2, 85.0, 2), ("m", 1, 54.0, 0), ("x", 1, 200.0, 1)]


def _csv(folder: Path) -> object:
    path = folder / "rows.csv"
    pa.csv.write_csv(pa.table(ROWS), path)
    return str(path)


def _parquet(folder: Path) -> object:
    path = folder / "rows.parquet"
    pa.parquet.write_table(pa.table(ROWS), path)
    return path


def _json(folder: Path) -> object:
    path = folder / "rows.ndjson"
    lines = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def _relation(folder: Path) -> object:
    return duckdb.connect(str(folder / "rows.duckdb")).from_arrow(pa.table(ROWS))


ENGINES: dict[str, Callable[[Path], object]] = {
    "csv": _csv,
    "parquet": _parquet,
    "json": _json,
    "pandas": lambda folder: pd.DataFrame(ROWS),
    "polars": lambda folder: pl.DataFrame(ROWS),
    "lazy": lambda folder: pl.LazyFrame(ROWS),
    "arrow": lambda folder: pa.table(ROWS),
    "duckdb": _relation,
}


@pytest.fixture(params=ENGINES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    return ENGINES[request.param](tmp_path)


def test_every_engine_gives_the_same_answer(table: object) -> None:
    source = open_source(table, SCHEMA)
    assert source.ask(QUESTION.format(table=source.name)) == ANSWER


def test_a_missing_column_is_named(table: object) -> None:
    schema = Schema.read({"height": {"type": "integer", "lower": 0, "upper": 250}})
    source_of: Callable[[], Any] = lambda: open_source(table, schema)
    if isinstance(table, Path) and table.suffix == ".ndjson":
        assert source_of().ask("SELECT count(height) FROM sourdine_source") == [
            (0,)
        ]  # JSON may leave fields out
        return
    with pytest.raises(InvalidParameter, match="no column 'height'"):
        source_of()


@pytest.mark.parametrize("engine", ["pandas", "polars", "arrow", "duckdb", "parquet"])
def test_a_type_that_cannot_hold_the_declaration_is_refused(engine: str, tmp_path: Path) -> None:
    schema = Schema.read({"sex": {"type": "integer", "lower": 0, "upper": 9}})
    with pytest.raises(InvalidParameter, match="'sex' is declared to hold numbers"):
        open_source(ENGINES[engine](tmp_path), schema)
    schema = Schema.read({"age": {"type": "category", "keys": ["a"]}})
    with pytest.raises(InvalidParameter, match="'age' is declared to hold text"):
        open_source(ENGINES[engine](tmp_path), schema)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    for wrong, sentence in [
        (tmp_path / "none.csv", "There is no file"),
        (3, "must be a path or a frame"),
        (tmp_path / "rows.xlsx", "is not read"),
        (tmp_path / "broken.parquet", "cannot be read as parquet"),
    ]:
        if isinstance(wrong, Path) and wrong.name != "none.csv":
            wrong.write_bytes(b"nothing")
        with pytest.raises(InvalidParameter, match=sentence):
            open_source(wrong, SCHEMA)
