"""Values in rows and columns, each with its interval, and their sums: what a crosstab holds."""

import math
from dataclasses import dataclass, field
from enum import Enum

from sourdine.core.errors import InvalidParameter
from sourdine.frames.keys import Cell
from sourdine.tables.answers.answer import ALL, NO_INTERVAL
from sourdine.tables.answers.estimate import GroupEstimate
from sourdine.tables.crosstabs.cell import CellText, cell_text
from sourdine.tables.statistics import Scale, style_of

ENDS = ("value", "lower", "upper")
_LISTED = 8


class CrosstabSums(Enum):
    """Where the sums of rows and columns come from."""

    NONE = "There are no sums: only counts of records are added up, where none is left out."
    CELLS = "Sums are those of the noisy cells, so they add up; their intervals allow for all noises in them."
    MEASURED = "Sums were measured too. All numbers were made whole and add up."


@dataclass(frozen=True, kw_only=True)
class CrossCells:
    """Values with intervals, by the keys of one column in rows and of another in columns.

    A key 'all' in the last row or column is for sums, of which `sums` tells where they come from. `estimate`
    has an array with a row for each row key; where there is no group its numbers are NaN. `fixed` are the
    keys of other columns that it is about.
    """

    query: str
    statistic: str
    kind: str
    measure: str
    rows: str
    columns: str
    row_keys: tuple[Cell, ...]
    column_keys: tuple[Cell, ...]
    estimate: GroupEstimate = field(repr=False)
    sums: CrosstabSums = CrosstabSums.NONE
    fixed: tuple[tuple[str, Cell], ...] = ()
    span: tuple[float, float] | None = None
    chosen: tuple[str, ...] = ()
    whole: bool = False
    bounded: bool = True
    selection_note: str = ""
    confidence: float = 0.95

    def __repr__(self) -> str:
        ends = f"{100 * self.confidence:g} % confidence intervals" if self.bounded else NO_INTERVAL
        sides = f"{self.rows} ({len(self.row_keys)}) by {self.columns} ({len(self.column_keys)})"
        return f"<Crosstab of {self.query!r}, {self.statistic!r}: {sides}; {ends}>"

    @property
    def title(self) -> str:
        """What its values are."""
        counted = style_of(self.kind).scale is Scale.COUNT
        what = self.measure.capitalize() if counted else f"{self.statistic[:1].upper()}{self.statistic[1:]}"
        fixed = "".join(f", {name} {key}" for name, key in self.fixed if key != ALL)
        return f"{what} by {self.rows} and {self.columns}{fixed}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, in sentences."""
        level = f"{100 * self.confidence:g}\N{NO-BREAK SPACE}%"
        ends = "Every number is noisy, and no interval is known."
        if self.bounded:
            ends = f"Every number is noisy and stands with its {level} confidence interval, of noise alone."
        chosen = f"Which keys of {' and '.join(self.chosen)} stand here was chosen privately."
        selected = (self.selection_note,) if self.selection_note and self.bounded else ()
        return (ends, self.sums.value, *((chosen,) if self.chosen else ()), *selected)

    @property
    def percent(self) -> bool:
        """Whether its values are shown in per cent."""
        return style_of(self.kind).scale is Scale.SHARE

    def at(self, row: Cell, column: Cell) -> tuple[float, float, float]:
        """The value and the ends of its interval in one cell; 'all' is for sums."""
        for key, keys in ((row, self.row_keys), (column, self.column_keys)):
            if key not in keys:
                listed = ", ".join(map(repr, keys[:_LISTED])) + (", …" if len(keys) > _LISTED else "")
                raise InvalidParameter(f"The crosstab has no key {key!r} there. It has {listed}.")
        value, lower, upper = self.numbers(self.row_keys.index(row), self.column_keys.index(column))
        return value, lower, upper

    def numbers(self, row: int, column: int) -> tuple[float, float, float]:
        """The value and the ends of a cell, by its place."""
        estimate = self.estimate
        return (
            float(estimate.value[row, column]),
            float(estimate.lower[row, column]),
            float(estimate.upper[row, column]),
        )

    def text(self, row: int, column: int) -> CellText:
        """A cell as people read it, by its place."""
        numbers = self.numbers(row, column)
        least, most = (-math.inf, math.inf) if self.span is None else self.span
        blind = numbers[1] <= least and numbers[2] >= most
        whole = self.whole or style_of(self.kind).scale is Scale.COUNT
        return cell_text(*numbers, percent=self.percent, whole=whole, blind=blind)
