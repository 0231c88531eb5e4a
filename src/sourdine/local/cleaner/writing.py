"""A cleaned table as what came in: a file, or a frame of pandas, Polars, Arrow or DuckDB."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.frames.files import ENDINGS, FORMATS, relation_of, write_columns
from sourdine.local.cleaner.cells import Cleaned, CleanedCells


@dataclass(frozen=True)
class Output:
    """One cleaned column as plain values, with what is missing; its type depends on declarations only."""

    values: NDArray[Any]
    missing: NDArray[np.bool_]
    nullable: bool

    @classmethod
    def of(cls, cells: CleanedCells, cleaned: Cleaned) -> "Output":
        """Cleaned cells, places of labels replaced by the labels."""
        missing = np.ma.getmaskarray(cleaned)
        values = cleaned.filled(0)
        if cells.labels is not None:
            text = isinstance(cells.labels[0], str)
            values = np.array(cells.labels, dtype=object if text else None)[values]
        return cls(values, missing, cells.has_gaps)

    @property
    def objects(self) -> NDArray[np.object_]:
        """Text, with None for what is missing."""
        cells = self.values.astype(np.object_)
        cells[self.missing] = None
        return cells

    @property
    def masked(self) -> NDArray[Any]:
        """The values, masked where they are missing."""
        return np.ma.MaskedArray(self.values, mask=self.missing)

    @property
    def text(self) -> bool:
        """Whether it holds text."""
        return self.values.dtype == np.object_


def like(table: object, columns: Mapping[str, Output]) -> Any:
    """The columns as a frame of the kind that a table is; for a file, as a relation of DuckDB."""
    kind = type(table).__module__.partition(".")[0]
    if kind == "pandas":
        return _pandas(columns)
    if kind == "polars":
        frame = _polars(columns)
        return frame.lazy() if type(table).__name__ == "LazyFrame" else frame
    if kind == "pyarrow":
        return _arrow(columns)
    return relation_of({name: each.masked for name, each in columns.items()})


def write(columns: Mapping[str, Output], path: Path) -> None:
    """Keep the columns in a file of the kind that its ending says; it appears whole or not at all."""
    check_ending(path)
    try:
        with disk.whole_file(path) as place:
            write_columns({name: each.masked for name, each in columns.items()}, place, path.suffix.lower())
    except OSError:
        raise InvalidParameter(f"{path} cannot be written. Check the place and its room.") from None


def check_ending(path: Path) -> None:
    """Refuse a file of a kind that is not written."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidParameter(
            f"A file ending in '{path.suffix}' is not written. Use one of {', '.join(sorted(ENDINGS))}."
        )


def _pandas(columns: Mapping[str, Output]) -> Any:
    import pandas as pd

    kinds = {"i": "Int64", "b": "boolean"}
    arrays: dict[str, Any] = {}
    for name, each in columns.items():
        if each.text:
            arrays[name] = pd.array(each.objects, dtype="string")
        elif each.values.dtype.kind == "f":
            arrays[name] = np.where(each.missing, np.nan, each.values)
        else:
            array = pd.array(each.values, dtype=kinds[each.values.dtype.kind])
            array[each.missing] = pd.NA
            arrays[name] = array if each.nullable else each.values
    return pd.DataFrame(arrays)


def _polars(columns: Mapping[str, Output]) -> Any:
    import polars as pl

    series = []
    for name, each in columns.items():
        if each.text:
            series.append(pl.Series(name, each.objects.tolist(), dtype=pl.String))
        else:
            column = pl.Series(name, each.values)
            absent = pl.Series([None], dtype=column.dtype)
            series.append(column.zip_with(pl.Series(~each.missing), absent) if each.missing.any() else column)
    return pl.DataFrame(series)


def _arrow(columns: Mapping[str, Output]) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(each.values, type=pa.string() if each.text else None, mask=each.missing)
            for name, each in columns.items()
        }
    )
