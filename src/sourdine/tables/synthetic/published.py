"""Synthetic tables from what was published already, at no further cost, and sharper ones beside it."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import ndtri
from sourdine.frames.schema import Integer
from sourdine.tables.answers.answer import Answer
from sourdine.tables.release import TableRelease
from sourdine.tables.synthetic.cells import CategoryCells, CellColumn, cells_of
from sourdine.tables.synthetic.fit import NoisyTable, fit_tree
from sourdine.tables.synthetic.model import SyntheticModel, SyntheticPart
from sourdine.tables.synthetic.pairs import Pair
from sourdine.tables.synthetic.plan import SyntheticPlan

Floats = NDArray[np.float64]
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
