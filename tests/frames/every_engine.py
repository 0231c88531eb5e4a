"""One table on every engine that is read."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest


def _csv(table: pa.Table, folder: Path) -> object:
    path = folder / "rows.csv"
    pa.csv.write_csv(table, path)
    return str(path)


def _parquet(table: pa.Table, folder: Path) -> object:
    path = folder / "rows.parquet"
    pa.parquet.write_table(table, path)
    return path


def _ndjson(table: pa.Table, folder: Path) -> object:
    path = folder / "rows.ndjson"
    path.write_text("\n".join(json.dumps(row, default=str) for row in table.to_pylist()))
    return path


def _json(table: pa.Table, folder: Path) -> object:
    path = folder / "rows.json.gz"
    lines = "\r\n".join(json.dumps(row, default=str) for row in table.to_pylist())
    path.write_bytes(gzip.compress(lines.encode()))
    return path


def _objects(table: pa.Table, folder: Path) -> object:
    return pd.DataFrame(
        {name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names}
    )


ENGINES: dict[str, Callable[[pa.Table, Path], object]] = {
    "csv": _csv,
    "parquet": _parquet,
    "ndjson": _ndjson,
    "json": _json,
    "pandas": lambda table, folder: table.to_pandas(),
    "nullable": lambda table, folder: table.to_pandas().convert_dtypes(),
    "pandas of arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "objects": _objects,
    "polars": lambda table, folder: pl.from_arrow(table),
    "lazy": lambda table, folder: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "arrow": lambda table, folder: table,
    "duckdb": lambda table, folder: duckdb.connect().from_arrow(table),
}

FEW = ("csv", "parquet", "pandas", "polars", "duckdb")  # of each way to read
# all, for what is asked once values are read: how each reads them: engines/test_types.py
ALL_ENGINES = [pytest.param(name, marks=[] if name in FEW else [pytest.mark.slow]) for name in ENGINES]
