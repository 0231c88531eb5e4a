"""A crosstab: the values of an answer in rows and columns, each with its interval, and their sums.

It is made of released numbers alone, so it costs nothing. Files for programs have the numbers of the release;
where people read them, they are rounded to what their noise supports.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Viewable
from sourdine.core.errors import InvalidParameter
from sourdine.frames.keys import Cell, KeyColumn, Keys
from sourdine.tables.answers.answer import ALL, Answer
from sourdine.tables.answers.estimate import Floats, GroupEstimate
from sourdine.tables.comparison.intervals import total
from sourdine.tables.crosstabs.cells import ENDS, CrossCells, CrosstabSums
from sourdine.tables.crosstabs.files import csv_of, keep, markdown_of
from sourdine.tables.crosstabs.workbook import write_workbook

if TYPE_CHECKING:
    import pandas as pd

Sort = Literal["declared", "value"]
_ROOTS = 0.95  # the confidence from which roots of squares hold for two Laplace noises and more
_ADDITIVE = "count"  # of records, of which each is in one cell; a unit may be in several


@dataclass(frozen=True, kw_only=True, repr=False)
class Crosstab(CrossCells, Viewable):
    """A crosstab of an answer: shown in notebooks and terminals, and kept as CSV, Markdown or a workbook.

    Its values are by the keys of one column in rows and of another in columns. Where a key 'all' stands last,
    it is for sums, and `sums` tells where they come from. Keys of other columns are `fixed`.
    """

    def to_pandas(self, *, intervals: bool = True) -> "pd.DataFrame":
        """A pandas frame with a row for each row key; with intervals, three columns for each column key."""
        try:
            import pandas as pd
        except ImportError:
            raise InvalidParameter("pandas is not installed. Use to_csv(), or: pip install pandas") from None
        ends = ENDS if intervals and self.bounded else ENDS[:1]
        columns_of_ends: list[Floats] = [getattr(self.estimate, end) for end in ends]
        cells = np.stack(columns_of_ends, axis=2).reshape(len(self.row_keys), -1)
        index = pd.Index(list(self.row_keys), name=self.rows)
        if len(ends) == 1:
            return pd.DataFrame(cells, index=index, columns=pd.Index(self.column_keys, name=self.columns))
        pairs = [(key, end) for key in self.column_keys for end in ends]
        return pd.DataFrame(
            cells, index=index, columns=pd.MultiIndex.from_tuples(pairs, names=[self.columns, None])
        )

    def to_csv(self, path: str | Path | None = None) -> str:
        """CSV with three columns for each column key; kept in a file if a path is given."""
        return keep(csv_of(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """A table in Markdown, as people read it; kept in a file if a path is given."""
        return keep(markdown_of(self), path)

    def to_xlsx(self, path: str | Path) -> None:
        """A workbook of Excel, with numbers as numbers. It needs openpyxl: the extra `excel`."""
        write_workbook(self, Path(path))


def crosstab_of(
    answer: Answer,
    rows: str,
    columns: str,
    *,
    fixed: Mapping[str, Cell] = MappingProxyType({}),
    sort: Sort = "declared",
    consistent: bool = False,
) -> Crosstab:
    """The crosstab of an answer that has both columns among its keys; `fixed` are the keys of all others."""
    if sort not in ("declared", "value"):
        raise InvalidParameter(f"A crosstab is sorted as 'declared' or by 'value'. Got {sort!r}.")
    layer = dict(fixed)
    for name in answer.columns:
        if name not in (rows, columns):
            layer.setdefault(name, ALL)
    for name in (rows, columns):
        if name in layer or name not in answer.columns:
            raise InvalidParameter(
                f"The crosstab of '{answer.statistic}' has rows by '{rows}' and columns by '{columns}'. Each "
                f"must be a key of the answer ({', '.join(answer.columns)}), and not be fixed."
            )
    keys, estimate = _layer(answer, layer)
    down, across = (_side(keys.columns[answer.columns.index(name)]) for name in (rows, columns))
    grid = _grid(estimate, down, across)
    sums = CrosstabSums.NONE
    if answer.kind == "contingency" and (ALL in down.keys or ALL in across.keys):
        sums = CrosstabSums.MEASURED if consistent else CrosstabSums.CELLS
    elif _adds_up(answer, down, across, grid):
        sums, grid = CrosstabSums.CELLS, _with_sums(grid, independent=answer.confidence >= _ROOTS)
        down, across = (_Side((*side.keys, ALL), side.places) for side in (down, across))
    if sort == "value":
        order = _order(down, across, grid)
        grid = GroupEstimate(*(getattr(grid, end)[order] for end in ENDS))
        down = _Side(tuple(down.keys[place] for place in order), down.places)
    return Crosstab(
        query=answer.query,
        statistic=answer.statistic,
        kind=answer.kind,
        measure=answer.measure,
        rows=rows,
        columns=columns,
        row_keys=down.keys,
        column_keys=across.keys,
        estimate=grid,
        sums=sums,
        fixed=tuple(layer.items()),
        span=answer.span,
        chosen=answer.chosen,
        whole=answer.whole,
        bounded=answer.bounded,
        selection_note=answer.selection_note,
        confidence=answer.confidence,
    )


@dataclass(frozen=True)
class _Side:
    """The keys of one side in their declared order, sums last, and the place of each group's among them."""

    keys: tuple[Cell, ...]
    places: NDArray[np.int64]


def _layer(answer: Answer, fixed: Mapping[str, Cell]) -> tuple[Keys, GroupEstimate]:
    """The groups of an answer that have some keys."""
    here = np.ones(len(answer.keys), bool)
    for name, key in fixed.items():
        if name not in answer.columns:
            raise InvalidParameter(
                f"The answer '{answer.statistic}' of '{answer.query}' has no column '{name}'. "
                f"Its keys are for {', '.join(answer.columns)}."
            )
        here &= answer.keys.columns[answer.columns.index(name)].holds(key)
    if len(here) and not here.any():
        wanted = ", ".join(f"'{name}'" for name in fixed)
        raise InvalidParameter(
            f"The answer '{answer.statistic}' of '{answer.query}' has keys for {wanted} too. Say which of "
            f'them are shown, as in fixed={{"{next(iter(fixed))}": KEY}}, by one of its keys.'
        )
    estimate = answer.estimate
    return answer.keys.take(here), GroupEstimate(
        estimate.value[here], estimate.lower[here], estimate.upper[here]
    )


def _side(column: KeyColumn) -> _Side:
    used = np.unique(column.places)
    known: dict[Cell, int] = {}
    for key in column.values[used].tolist():
        known.setdefault(key, len(known))
    if ALL in known:  # sums come last
        known = {key: place for place, key in enumerate([*(key for key in known if key != ALL), ALL])}
    numbers = np.zeros(int(used.max(initial=0)) + 1, np.int64)
    numbers[used] = [known[key] for key in column.values[used].tolist()]
    return _Side(tuple(known), numbers[column.places])


def _grid(estimate: GroupEstimate, down: _Side, across: _Side) -> GroupEstimate:
    ends = []
    for end in ENDS:
        cells = np.full((len(down.keys), len(across.keys)), np.nan)
        cells[down.places, across.places] = getattr(estimate, end)
        ends.append(cells)
    return GroupEstimate(*ends)


def _adds_up(answer: Answer, down: _Side, across: _Side, grid: GroupEstimate) -> bool:
    """Whether sums of the cells say something: of counts of records, none left out or hidden."""
    if answer.hidden:
        return False
    complete = grid.value.size > 0 and not np.isnan(grid.value).any()
    named = ALL in (*down.keys, *across.keys)
    return answer.kind == _ADDITIVE and complete and answer.bounded and not answer.chosen and not named


def _with_sums(grid: GroupEstimate, *, independent: bool) -> GroupEstimate:
    """The cells with sums of rows and columns, whose noises are independent.

    Intervals of sums are roots of sums of squares at a high confidence; at a lower one the tails of Laplace
    noise are too thin for that, and half-widths are added up.
    """
    for axis in (1, 0):
        many = grid.value.shape[1 - axis]
        lines = [
            total(
                GroupEstimate(*(np.take(getattr(grid, end), place, 1 - axis) for end in ENDS)),
                independent=independent,
            )
            for place in range(many)
        ]
        if axis == 0:  # the last is the sum of sums, in which every cell is once
            cells = GroupEstimate(*(getattr(grid, end)[:, :-1].ravel() for end in ENDS))
            lines[-1] = total(cells, independent=independent)
        ends = []
        for end in ENDS:
            line = np.concatenate([getattr(each, end) for each in lines])
            ends.append(np.concatenate([getattr(grid, end), np.expand_dims(line, axis)], axis=axis))
        grid = GroupEstimate(*ends)
    if np.all(grid.value == np.rint(grid.value)):  # ends of counts are whole, and go outwards
        return GroupEstimate(grid.value, np.floor(grid.lower), np.ceil(grid.upper))
    return grid


def _order(down: _Side, across: _Side, grid: GroupEstimate) -> list[int]:
    """Rows from the largest, by their sums or else by their means; the row of sums stays the last."""
    values: Any = grid.value
    if ALL in across.keys:
        weight = values[:, -1]
    else:
        there = ~np.isnan(values)
        weight = np.where(there, values, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    places = sorted(range(len(down.keys)), key=lambda place: (down.keys[place] == ALL, -weight[place]))
    return list(places)
