"""The tree that was measured, and tables drawn from it: as many and as often as one likes, at no cost."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import ndtri
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.text import inert
from sourdine.frames.files import FORMATS, relation_of, write_columns
from sourdine.frames.schema import Integer
from sourdine.tables.answers import Answer
from sourdine.tables.release import TableRelease
from sourdine.tables.statistics.hierarchy import Hierarchy
from sourdine.tables.synthetic.cells import CategoryCells, CellColumn, cells_of
from sourdine.tables.synthetic.declaration import MOST_ROWS
from sourdine.tables.synthetic.fit import NoisyTable, PartModel, fit_tree
from sourdine.tables.synthetic.measure import Pair, count_cells, from_root
from sourdine.tables.synthetic.plan import SyntheticPlan

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


# Records drawn from a tree of tables: whole numbers of each cell, and chance alone says who has which.
#
# Within the records of a parent's cell, children are given out in an order drawn anew for each column.
# Without that, two children of one parent would rise together, record by record.


Floats = NDArray[np.float64]
_NARROW = 1 << 16


def draw_records(model: PartModel, rows: int, bits: Bits) -> list[Places]:
    """The cells of so many records, column by column.

    Each cell of a pair in the tree holds its expected number of records, rounded up or down.
    """
    joined: dict[int, Places] = {}
    for column, parent in from_root(model.edges, len(model.margins)):
        if parent is None:
            weights, whose = model.joined(column)[None, :], np.zeros(rows, np.int64)
        else:
            place = next(i for i, edge in enumerate(model.edges) if {column, parent} == set(edge))
            table = model.tables[place]
            weights = table if model.edges[place][0] == parent else table.T
            whose = joined[parent]
        joined[column] = _children(weights, whose, bits)
    columns = []
    for column, margin in enumerate(model.margins):
        places = model.cells[column]
        weights = np.zeros((int(places.max()) + 1, len(margin)))
        weights[places, np.arange(len(margin))] = margin
        alone = bool((np.bincount(places) == 1).all())
        columns.append(joined[column] if alone else _children(weights, joined[column], bits))
    return columns


def _children(weights: Floats, parents: Places, bits: Bits) -> Places:
    """A child for each record by the weights of its parent's row: as many of each as its share comes to."""
    counts = shares_of(weights, np.bincount(parents, minlength=len(weights)), bits)
    order = shuffle_within(parents, bits)
    children = np.empty(len(parents), np.int64)
    children[order] = np.repeat(np.tile(np.arange(weights.shape[1]), len(weights)), counts.ravel())
    return children


def shares_of(weights: Floats, totals: Places, bits: Bits) -> Places:
    """Totals divided by weights into whole numbers, each its share rounded up or down, and so on average.

    A row without weight is divided evenly. One uniform number shifts all of a row. A cell without weight gets
    nobody, whatever floats round to.
    """
    sums = weights.sum(1, keepdims=True)
    even = np.full_like(weights, 1 / weights.shape[1])
    shares = np.divide(weights, sums, out=even, where=sums > 0)
    shifts = (bits.words(len(totals)) >> np.uint64(11)) * 2.0**-53
    ends = np.floor(np.cumsum(shares, axis=1) * totals[:, None] + shifts[:, None]).astype(np.int64)
    last = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)  # with weight
    after = np.arange(shares.shape[1]) >= last[:, None]
    ends = np.where(after, totals[:, None], np.minimum(ends, totals[:, None]))
    return np.diff(ends, axis=1, prepend=0)


def shuffle_within(groups: Places, bits: Bits) -> Places:
    """The places of records, group after group, in random order within each."""
    order = np.argsort(bits.words(len(groups)))  # ties of 64 bits do not matter here
    within = groups[order]
    if within.max(initial=0) < _NARROW:
        within = within.astype(np.uint16)  # which is sorted by its digits, several times as quick
    return order[np.argsort(within, kind="stable")]


# Synthetic tables from what was published already, at no further cost, and sharper ones beside it.


_LEAST = 1e-9  # of a variance: counts without noise are not published


@dataclass(frozen=True, eq=False)
class _Counts:
    """Published counts by one or two columns of declared keys, in the order of those."""

    columns: tuple[str, ...]
    values: Floats
    variances: Floats


def prior_tables(plan: SyntheticPlan, release: TableRelease) -> tuple[NoisyTable, ...]:
    """The counts of a release that say something about a synthetic table, by its cells.

    They were noisy and paid for when they were published. Nothing is known from them about what is missing.
    """
    if plan.target is not None or plan.unit.column is not None:
        raise InvalidParameter(
            "Published counts sharpen a synthetic table without a target, in which each record is a unit: "
            "they are not of the parts of a target, nor of one record a unit. Nothing was spent. Leave out "
            "one of the two."
        )
    if not plan.schema.extends(release.plan.schema) or plan.unit != release.plan.unit:
        raise InvalidParameter("The published release is of a table that is declared differently.")
    places = {column.name: place for place, column in enumerate(plan.columns)}
    tables = []
    for each in _counts(release):
        if not all(
            name in places and _is_by_value(plan.columns[places[name]], release) for name in each.columns
        ):
            continue
        order = np.argsort([places[name] for name in each.columns]).tolist()
        columns = tuple(places[each.columns[axis]] for axis in order)
        shape = tuple(plan.columns[column].size for column in columns)
        known = tuple(slice(0, size) for size in each.values.shape)
        values, variances = np.zeros(shape), np.full(shape, math.inf)
        within = tuple(known[axis] for axis in order)
        values[within], variances[within] = each.values.transpose(order), each.variances.transpose(order)
        tables.append(NoisyTable(columns=columns, values=values, variances=variances))
    return tuple(tables)


def from_release(release: TableRelease, *, mark: str | None = None) -> SyntheticModel:
    """The model of a synthetic table from counts that a release published, at no further cost.

    It has the columns that the release counts by, alone or in twos, of all records. Of the pairs those with
    the strongest relations make a tree; a pair that would close a ring is left to the others. Columns that
    were counted alone are independent of the rest.
    """
    counts = list(_counts(release))
    names = tuple(dict.fromkeys(name for each in counts for name in each.columns))
    if not names:
        raise InvalidParameter(
            "The release has no counts of all records by one or two columns of declared keys with all their "
            "rows, so that no table can be drawn from it. Ask for a count by them, without HAVING or LIMIT."
        )
    columns = tuple(_published_cells(name, release) for name in names)
    tables = [
        NoisyTable(
            columns=tuple(sorted(names.index(name) for name in each.columns)),
            values=each.values if _rises(each.columns, names) else each.values.T,
            variances=each.variances if _rises(each.columns, names) else each.variances.T,
        )
        for each in counts
    ]
    cells = [np.arange(column.size) for column in columns]
    tree = fit_tree(tables, cells, _strongest(tables, len(names)), {})
    part = SyntheticPart(name="", tables=tuple(tables), tree=tree)
    return SyntheticModel(order=names, columns=columns, target=None, parts=(part,), mark=mark)


def _counts(release: TableRelease) -> Iterator[_Counts]:
    """Counts of all records by one or two columns of known keys."""
    whole = {query.name for query in release.plan.queries if not query.where}
    for answer in release.values.each:
        if answer.query not in whole or answer.kind != "count":
            continue
        places = _declared_places(answer, release)
        if places is None:
            continue
        shape = [len(release.plan.schema.keys(name)) for name in answer.columns]
        half = (answer.estimate.upper - answer.estimate.lower) / 2
        deviation = half / float(ndtri((1 + answer.confidence) / 2))
        values, variances = np.zeros(places.size), np.zeros(places.size)
        values[places] = answer.estimate.value
        variances[places] = np.maximum(deviation**2, _LEAST)
        yield _Counts(answer.columns, values.reshape(shape), variances.reshape(shape))


def _declared_places(answer: Answer, release: TableRelease) -> NDArray[np.int64] | None:
    """Return the place of each of its rows among the declared keys, since rows come in any order.

    None is for keys other than those of one or two columns of the table, each of them once, for rows that
    noise chose, even if by chance none is missing, and for values without intervals.
    """
    schema = release.plan.schema
    if not 1 <= len(answer.columns) <= 2 or answer.chosen or answer.hidden or not answer.bounded:
        return None
    if any(name not in schema.base.columns for name in answer.columns):
        return None
    keys = itertools.product(*(schema.keys(name) for name in answer.columns))
    known = {key: place for place, key in enumerate(keys)}
    if len(answer.keys) != len(known) or set(answer.keys) != known.keys():
        return None
    return np.array([known[key] for key in answer.keys], np.int64)


def _is_by_value(column: CellColumn, release: TableRelease) -> bool:
    """Whether the cells of a column are the keys that releases group by."""
    return len(column.known) == len(release.plan.schema.keys(column.name))


def _published_cells(name: str, release: TableRelease) -> CellColumn:
    column = release.plan.schema.columns[name]
    if isinstance(column, Integer):
        return CategoryCells(name=name, missing=False, keys=tuple(release.plan.schema.keys(name)))
    return replace(cells_of(name, column, None), missing=False)  # a release says nothing of that


def _rises(columns: Sequence[str], names: Sequence[str]) -> bool:
    return len(columns) == 1 or names.index(columns[0]) < names.index(columns[1])


def _strongest(tables: Sequence[NoisyTable], columns: int) -> list[Pair]:
    """A tree of the published pairs with the most mutual information, by their noisy counts."""
    pairs = {
        (each.columns[0], each.columns[1]): _information(each) for each in tables if len(each.columns) == 2
    }
    piece, chosen = list(range(columns)), []
    for one, other in sorted(pairs, key=lambda pair: -pairs[pair]):
        if piece[one] != piece[other]:
            chosen.append((one, other))
            piece = [piece[one] if each == piece[other] else each for each in piece]
    return chosen


def _information(table: NoisyTable) -> float:
    positive = np.maximum(table.values, 0.0)
    total = positive.sum()
    if total <= 0:
        return 0.0
    shares = positive / total
    expected = np.outer(shares.sum(1), shares.sum(0))
    there = shares > 0
    return float((shares[there] * np.log(shares[there] / expected[there])).sum())
