"""A made-up table on every engine that is read: files, frames and relations with the same records."""

import importlib.util
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from sourdine.audit.plans.cells import BIGINT, BOOLEAN, DOUBLE, VARCHAR, Cell
from sourdine.audit.plans.walk import Layout, Row
from sourdine.frames.engines.closed import spilling_connection
from sourdine.frames.output import relation_of_cells

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Workplace:
    """Where made-up tables are put: a folder for files, and one connection for relations."""

    folder: Path

    @cached_property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """One that serves all tables of a walk: a new one for each takes longer than its questions."""
        return spilling_connection()


Make = Callable[[Layout, Sequence[Row], Workplace], object]


@dataclass(frozen=True, kw_only=True)
class AuditedEngine:
    """A way for a table in: how it is made, and what must be installed for it.

    `text` says that every cell is text; `wide` that numbers may have more than 64 bits, and that
    dates need not be text; `together` that many
    tables can be asked at once.
    """

    name: str
    make: Make
    needs: tuple[str, ...] = ()
    text: bool = False
    wide: bool = False
    together: bool = True

    @property
    def lacks(self) -> str:
        """Why it cannot be used here; empty where it can."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            return f"{missing[0]} is not installed"
        return "there is no Java" if self.name == "spark" and which("java") is None else ""


def _columns(layout: Layout, rows: Sequence[Row]) -> dict[str, list[Cell]]:
    listed = list(zip(*rows, strict=True)) or [()] * len(layout.names)
    return {name: list(cells) for name, cells in zip(layout.names, listed, strict=True)}


def _relation(layout: Layout, rows: Sequence[Row], place: Workplace) -> Any:
    return relation_of_cells(dict(zip(layout.names, layout.kinds, strict=True)), rows, place.connection)


def _parquet(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    path = place.folder / "made_up.parquet"
    _relation(layout, rows, place).write_parquet(str(path))
    return path


def _csv(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    path = place.folder / "made_up.csv"
    lines = [layout.names, *rows]
    path.write_text(
        "".join(f"{','.join(map(_field, line))}\n" for line in lines), encoding="utf-8", newline=""
    )
    return path


def _field(cell: Cell) -> str:
    """A field in quotes, or nothing at all. A line feed would end the record, so it becomes its brother."""
    return "" if cell is None else '"' + str(cell).replace('"', '""').replace("\n", "\r") + '"'


def _ndjson(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    path = place.folder / "made_up.ndjson"
    lines = [json.dumps(dict(zip(layout.names, row, strict=True))) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _pandas(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    import pandas as pd

    kinds = {DOUBLE: "float64", BIGINT: "Int64", BOOLEAN: "boolean", VARCHAR: "object"}
    columns = _columns(layout, rows)
    return pd.DataFrame(
        {
            name: pd.Series(_floats(cells) if kind == DOUBLE else cells, dtype=kinds[kind])
            for (name, cells), kind in zip(columns.items(), layout.kinds, strict=True)
        }
    )


def _objects(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    import pandas as pd

    columns = _columns(layout, rows)
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def _floats(cells: Sequence[Cell]) -> list[Any]:
    return [math.nan if cell is None else cell for cell in cells]


def _polars(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    import polars as pl

    kinds = {DOUBLE: pl.Float64, BIGINT: pl.Int64, BOOLEAN: pl.Boolean, VARCHAR: pl.String}
    typed = {name: kinds[kind] for name, kind in zip(layout.names, layout.kinds, strict=True)}
    return pl.DataFrame(_columns(layout, rows), schema=typed)


def _arrow(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    import pyarrow as pa

    kinds = {DOUBLE: pa.float64(), BIGINT: pa.int64(), BOOLEAN: pa.bool_(), VARCHAR: pa.string()}
    columns = _columns(layout, rows)
    return pa.table(
        {
            name: pa.array(cells, kinds[kind])
            for (name, cells), kind in zip(columns.items(), layout.kinds, strict=True)
        }
    )


def _spark(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    from pyspark.sql import SparkSession

    kinds = {DOUBLE: "double", BIGINT: "bigint", BOOLEAN: "boolean", VARCHAR: "string"}
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    typed = ", ".join(
        f"`{name.replace('`', '``')}` {kinds[kind]}"
        for name, kind in zip(layout.names, layout.kinds, strict=True)
    )
    return session.createDataFrame(list(rows), typed)


ENGINES = {
    each.name: each
    for each in (
        AuditedEngine(name="duckdb", make=_relation, wide=True),
        AuditedEngine(name="parquet", make=_parquet),
        AuditedEngine(name="csv", make=_csv, text=True),
        AuditedEngine(name="ndjson", make=_ndjson, text=True),
        AuditedEngine(name="pandas", make=_pandas, needs=("pandas",)),
        AuditedEngine(name="objects", make=_objects, needs=("pandas",), text=True),
        AuditedEngine(name="polars", make=_polars, needs=("polars", "pyarrow")),
        AuditedEngine(name="arrow", make=_arrow, needs=("pyarrow",)),
        AuditedEngine(name="spark", make=_spark, needs=("pyspark",), together=False),
    )
}
