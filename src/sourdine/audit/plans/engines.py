"""A made-up table on every engine that is read: files, frames and relations with the same records."""

import importlib.util
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from sourdine.audit.plans.cells import BIGINT, BOOLEAN, DOUBLE, VARCHAR, Cell
from sourdine.audit.plans.walk import Layout, Row
from sourdine.frames.engines.duckdb import spilling_connection
from sourdine.frames.files import relation_of_cells

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Workplace:
    """Where made-up tables are put: a folder for files, and one connection for relations.

    Each table has a name of its own: a file that is written again is no longer the table before.
    """

    folder: Path
    _numbers: "Iterator[int]" = field(default_factory=itertools.count, init=False)

    def path(self, ending: str) -> Path:
        """Return where the next table is written."""
        return self.folder / f"made_up_{next(self._numbers)}.{ending}"

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
    tables can be asked at once. A `variant` of another is asked only where it is named.
    """

    name: str
    make: Make
    needs: tuple[str, ...] = ()
    text: bool = False
    wide: bool = False
    together: bool = True
    variant: bool = False

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
    path = place.path("parquet")
    _relation(layout, rows, place).write_parquet(str(path))
    return path


def _polars_parquet(layout: Layout, rows: Sequence[Row], place: Workplace) -> Path:
    """A file whose least and greatest values leave NaN out, as those of PyArrow do."""
    path = place.path("parquet")
    _polars(layout, rows, place).write_parquet(path, row_group_size=8)
    return path


def _lazy(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    import polars as pl

    return pl.scan_parquet(_polars_parquet(layout, rows, place))


def _folder(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    import pyarrow.parquet as pq

    folder, table = place.path("parts"), _arrow(layout, rows, place)
    folder.mkdir()
    for part in range(3):
        few = table.slice(
            part * table.num_rows // 3, (part + 1) * table.num_rows // 3 - part * table.num_rows // 3
        )
        pq.write_table(few, folder / f"{part}.parquet", row_group_size=5)
    return folder


def _relation_of_file(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    return place.connection.read_parquet(str(_polars_parquet(layout, rows, place)))


def _stored(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    """A table of DuckDB's own, with the bounds that it keeps of each row group."""
    name = place.path("table").stem
    _relation(layout, rows, place).create(name)
    return place.connection.table(name)


def _csv(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    path = place.path("csv")
    lines = [layout.names, *rows]
    path.write_text(
        "".join(f"{','.join(map(_field, line))}\n" for line in lines), encoding="utf-8", newline=""
    )
    return path


def _field(cell: Cell) -> str:
    """A field in quotes, or nothing at all. A line feed would end the record, so it becomes its brother."""
    return "" if cell is None else '"' + str(cell).replace('"', '""').replace("\n", "\r") + '"'


def _ndjson(layout: Layout, rows: Sequence[Row], place: Workplace) -> object:
    path = place.path("ndjson")
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


def _polars(layout: Layout, rows: Sequence[Row], place: Workplace) -> Any:
    import polars as pl

    kinds = {DOUBLE: pl.Float64, BIGINT: pl.Int64, BOOLEAN: pl.Boolean, VARCHAR: pl.String}
    typed = {name: kinds[kind] for name, kind in zip(layout.names, layout.kinds, strict=True)}
    return pl.DataFrame(_columns(layout, rows), schema=typed)


def _arrow(layout: Layout, rows: Sequence[Row], place: Workplace) -> Any:
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
        AuditedEngine(name="parquet-by-polars", make=_polars_parquet, needs=("polars",), variant=True),
        AuditedEngine(name="folder", make=_folder, needs=("pyarrow",), variant=True),
        AuditedEngine(name="lazy", make=_lazy, needs=("polars",), variant=True),
        AuditedEngine(name="relation-of-parquet", make=_relation_of_file, needs=("polars",), variant=True),
        AuditedEngine(name="stored", make=_stored, variant=True),
        AuditedEngine(name="spark", make=_spark, needs=("pyspark",), together=False),
    )
}
