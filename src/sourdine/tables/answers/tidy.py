"""A tidy table in columns, as frames and files of every kind have it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.text import csv_cells, csv_text, inert
from sourdine.frames.keys import Cell, KeyColumn

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_BLOCK = 1 << 16  # rows of text at a time


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """A column of numbers, NaN where there is none; `whole` says which of them are whole."""

    values: NDArray[np.float64]
    whole: NDArray[np.bool_]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where there is none."""
        return np.isnan(self.values)

    @property
    def typed(self) -> NDArray[Any]:
        """The numbers as whole ones if all are; what is missing is 0 then."""
        if not self.whole.all():
            return self.values
        return np.where(self.missing, 0.0, self.values).astype(np.int64)

    def texts(self, first: int, last: int) -> list[str]:
        """Some of the numbers as they are written."""
        values, whole = self.values[first:last], self.whole[first:last]
        if whole.all() and not np.isnan(values).any():
            return list(map(str, values.astype(np.int64).tolist()))
        pairs = zip(values.tolist(), whole.tolist(), strict=True)
        return ["" if math.isnan(x) else str(round(x)) if as_whole else repr(x) for x, as_whole in pairs]


@dataclass(frozen=True, eq=False)
class Tidy:
    """The columns of a tidy table by their names."""

    columns: Mapping[str, KeyColumn | NumberColumn]

    @property
    def size(self) -> int:
        """How many rows there are."""
        first = next(iter(self.columns.values()))
        assert isinstance(first, KeyColumn)
        return first.places.size

    def to_pandas(self) -> "pd.DataFrame":
        """The table as a pandas frame."""
        import pandas as pd

        columns = {}
        for name, column in self.columns.items():
            if isinstance(column, KeyColumn):
                columns[name] = pd.Series(column.values.astype(object)[column.places]).infer_objects()
            elif column.missing.all():
                columns[name] = pd.Series(np.full(column.values.size, None), dtype=object)
            else:
                columns[name] = pd.Series(column.values if column.missing.any() else column.typed)
        return pd.DataFrame(columns)

    def to_polars(self) -> "pl.DataFrame":
        """The table as a Polars frame; a column of keys of several types becomes text."""
        import polars as pl

        columns = {}
        for name, column in self.columns.items():
            if isinstance(column, KeyColumn):
                columns[name] = pl.Series(name, _cells(column)).gather(column.places)
            elif column.missing.all():
                columns[name] = pl.Series(name, [None] * column.values.size)
            else:
                series = pl.Series(name, column.typed)
                gone = pl.Series(column.missing)
                columns[name] = pl.select(pl.when(~gone).then(series)).to_series().rename(name)
        return pl.DataFrame(columns)

    def to_arrow(self) -> "pa.Table":
        """The table as an Arrow table; a column of keys of several types becomes text."""
        import pyarrow as pa

        columns: dict[str, Any] = {}
        for name, column in self.columns.items():
            if isinstance(column, KeyColumn):
                columns[name] = pa.array(_cells(column)).take(pa.array(column.places))
            elif column.missing.all():
                columns[name] = pa.nulls(column.values.size)
            else:
                columns[name] = pa.array(column.typed, mask=column.missing)
        return pa.table(columns)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of numbers and of texts, masked where a cell is empty."""
        columns: dict[str, NDArray[Any]] = {}
        for name, column in self.columns.items():
            if isinstance(column, NumberColumn):
                columns[name] = np.ma.MaskedArray(np.nan_to_num(column.values, nan=0.0), mask=column.missing)
                continue
            cells = column.values.tolist()
            texts = np.array(["" if cell is None else str(cell) for cell in cells], dtype=object)
            empty = np.array([cell is None for cell in cells], dtype=bool)
            columns[name] = np.ma.MaskedArray(texts[column.places], mask=empty[column.places])
        return columns

    def lines(self) -> Iterator[str]:
        """The table as CSV, many lines at a time; no cell is taken for a formula."""
        yield csv_text([map(inert, self.columns)])
        texts = {
            name: np.array(csv_cells(column.values.tolist()), dtype=object)
            for name, column in self.columns.items()
            if isinstance(column, KeyColumn)
        }
        for first, last in pairwise([*range(0, self.size, _BLOCK), self.size]):
            cells = [
                texts[name][column.places[first:last]].tolist()
                if isinstance(column, KeyColumn)
                else column.texts(first, last)
                for name, column in self.columns.items()
            ]
            yield "\n".join(map(",".join, zip(*cells, strict=True))) + "\n"


def _cells(column: KeyColumn) -> NDArray[Any] | list[Cell]:
    """The different cells of a column, of one type; of no rows nothing is told."""
    if not column.places.size:
        return []
    return column.values if column.values.dtype.kind in "bif" else of_one_type(column.values.tolist())


def of_one_type(cells: list[Cell]) -> list[Cell]:
    """Cells of one type, as engines want them: texts, where there are several."""
    kinds = set(map(type, cells)) - {type(None)}
    if kinds == {int, float}:
        return [None if cell is None else float(cell) for cell in cells]
    return cells if len(kinds) < 2 else [None if cell is None else str(cell) for cell in cells]
