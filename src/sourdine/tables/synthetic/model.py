"""The tree that was measured, and tables drawn from it: as many and as often as one likes, at no cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.text import inert
from sourdine.frames.files import FORMATS, relation_of, write_columns
from sourdine.tables.statistics.hierarchy import Hierarchy
from sourdine.tables.synthetic.cells import CellColumn
from sourdine.tables.synthetic.declared import MOST_ROWS
from sourdine.tables.synthetic.drawing import draw_records, shares_of, shuffle_within
from sourdine.tables.synthetic.fit import NoisyTable, PartModel
from sourdine.tables.synthetic.pairs import count_cells

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Places = NDArray[np.int64]
MARK = "synthetic"
_TEXT = (".csv", ".tsv")


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticTable:
    """Rows that were drawn. `cells` are the places of their values among the declared cells."""

    columns: Mapping[str, NDArray[Any]]
    cells: Mapping[str, Places]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"<SyntheticTable of {len(self):,} rows: {', '.join(self.columns)}>"

    def to_arrow(self) -> "pa.Table":
        """The rows as an Arrow table."""
        return relation_of(self.columns).to_arrow_table()

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas frame."""
        frame: pd.DataFrame = relation_of(self.columns).df()
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """The rows as a Polars frame."""
        frame: pl.DataFrame = relation_of(self.columns).pl()
        return frame

    def write(self, path: Path | str) -> None:
        """The rows as a file, of the kind that its ending says; no text of a CSV file is a formula."""
        place = Path(path)
        check_ending(place)
        columns = self.columns
        if place.suffix.lower() in _TEXT:
            columns = {_inert(name): _inert_cells(each) for name, each in columns.items()}
        write_columns(columns, place, place.suffix.lower())


def check_ending(path: Path) -> None:
    """Refuse a kind of file that is not written, before anything is paid."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidParameter(
            f"A synthetic table is not written as '{path.suffix or path.name}'. End the name in one of "
            f"{', '.join(FORMATS)}."
        )


def _inert(text: str) -> str:
    return str(inert(text))


def _inert_cells(column: NDArray[Any]) -> NDArray[Any]:
    """Texts as no spreadsheet obeys them: each different one once."""
    if column.dtype != object:
        return column
    texts = np.ma.filled(column, "").tolist()
    tamed = {text: _inert(text) for text in set(texts)}
    if all(text == other for text, other in tamed.items()):
        return column
    return np.ma.MaskedArray(np.array([tamed[each] for each in texts], object), np.ma.getmaskarray(column))


@dataclass(frozen=True, kw_only=True)
class SyntheticPart:
    """One part of the records, by a key of the target or all: what was measured, and the tree made of it."""

    name: str
    tables: tuple[NoisyTable, ...]
    tree: PartModel


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticModel:
    """The trees of a synthetic table: noisy, safe to show, and all that its rows were drawn from.

    `order` are the columns as they are written. `target` says by what parts differ.
    """

    order: tuple[str, ...]
    columns: tuple[CellColumn, ...]
    target: CellColumn | None
    parts: tuple[SyntheticPart, ...]
    hierarchies: tuple[Hierarchy, ...] = ()
    mark: str | None = None

    @property
    def total(self) -> float:
        """About how many units there are, by noisy counts."""
        return sum(part.tree.total for part in self.parts)

    @property
    def rows(self) -> int:
        """How many rows are drawn where nothing is said."""
        return max(1, min(round(self.total), MOST_ROWS))

    def edges(self, part: SyntheticPart) -> list[tuple[str, str]]:
        """The pairs of columns that were measured in a part."""
        return [(self.columns[one].name, self.columns[other].name) for one, other in part.tree.edges]

    def draw(self, rows: int | None = None, *, bits: Bits = SYSTEM) -> SyntheticTable:
        """Rows of the model: post-processing, which costs nothing."""
        many = self.rows if rows is None else check.integer("draw", "rows", rows, 1, MOST_ROWS)
        weights = np.array([[max(part.tree.total, 0.0) for part in self.parts]])
        counts = shares_of(weights, np.array([many]), bits)[0]
        parts = [
            draw_records(part.tree, int(count), bits)
            for part, count in zip(self.parts, counts.tolist(), strict=True)
        ]
        order = shuffle_within(np.zeros(many, np.int64), bits)  # rows of a part do not stand together
        cells = {
            column.name: np.concatenate([part[place] for part in parts])[order]
            for place, column in enumerate(self.columns)
        }
        if self.target is not None:
            cells[self.target.name] = np.repeat(np.arange(len(counts)), counts)[order]
        return self._table(cells, many, bits)

    def _table(self, cells: Mapping[str, Places], rows: int, bits: Bits) -> SyntheticTable:
        known = {column.name: column for column in self.all_columns}
        values: dict[str, NDArray[Any]] = {}
        for name in self.order:
            values[name] = known[name].values(cells[name], bits)
            for each in self.hierarchies:
                if each.column == name:
                    values |= _levels(each, known[name], cells[name])
        if self.mark is not None:
            values[self.mark] = np.full(rows, MARK, object)
        return SyntheticTable(columns=values, cells={name: cells[name] for name in self.order})

    @property
    def all_columns(self) -> Sequence[CellColumn]:
        """The columns of the trees, and the target."""
        return (*self.columns, *(() if self.target is None else (self.target,)))


def _levels(hierarchy: Hierarchy, column: CellColumn, places: Places) -> dict[str, NDArray[Any]]:
    """The coarser levels of a column, which hold what its keys lie in: they add up."""
    paths = {str(row[-1]): row for row in hierarchy.rows}
    lost = places >= len(column.known)
    levels: dict[str, NDArray[Any]] = {}
    for level, name in enumerate(hierarchy.levels[:-1]):
        texts = np.array([str(paths[key][level]) for key in column.known], object)
        levels[name] = np.ma.MaskedArray(texts[np.where(lost, 0, places)], mask=lost)
    return levels


@dataclass(frozen=True, kw_only=True)
class Residual:
    """How far the rows lie from one table that was measured, in deviations of its noise.

    `columns` are one or two; `worst` is the largest of its cells, `mean` the root of the mean square.
    """

    part: str
    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    noisy: NDArray[np.float64]
    rows: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Each cell's difference in deviations of its noise."""
        return (self.rows - self.noisy) / self.deviation

    @property
    def worst(self) -> float:
        return float(np.abs(self.scores).max(initial=0.0))

    @property
    def mean(self) -> float:
        return math.sqrt(float((self.scores**2).mean()))


def residuals(model: SyntheticModel, table: SyntheticTable) -> list[Residual]:
    """Every table that was measured beside the rows, scaled to as many as the model has."""
    scale, tables = model.total / max(len(table), 1), []
    for number, part in enumerate(model.parts):
        inside = slice(None) if model.target is None else table.cells[model.target.name] == number
        for noisy in part.tables:
            columns = [model.columns[place] for place in noisy.columns]
            places = [table.cells[column.name][inside] for column in columns]
            labels = [column.labels for column in columns]
            if noisy.joined:
                cells = [part.tree.cells[place] for place in noisy.columns]
                places = [cell[place] for cell, place in zip(cells, places, strict=True)]
                labels = [_joined_labels(*pair) for pair in zip(columns, cells, strict=True)]
            counts = count_cells(places, noisy.values.shape)
            tables.append(
                Residual(
                    part=part.name,
                    columns=tuple(column.name for column in columns),
                    labels=tuple(labels),
                    noisy=noisy.values,
                    rows=counts.reshape(noisy.values.shape).astype(np.float64) * scale,
                    deviation=np.sqrt(noisy.variances),
                )
            )
    return tables


def _joined_labels(column: CellColumn, cells: Places) -> tuple[str, ...]:
    """What joined cells are called: by their one key, or as the others."""
    counts = np.bincount(cells)
    names = dict(zip(cells.tolist(), column.labels, strict=True))
    return tuple(names[place] if count == 1 else "others" for place, count in enumerate(counts.tolist()))
