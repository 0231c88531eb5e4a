"""Crosstabs as pages and terminals show them: keys on two sides, a value over its interval in each cell."""

from dataclasses import dataclass
from typing import ClassVar

from sourdine.report.view import TextTable
from sourdine.tables.answers import ALL
from sourdine.tables.crosstab import CellText, Crosstab, key_text

IN_FILE = "in the file of answers"


@dataclass(frozen=True, kw_only=True)
class CrossTable(TextTable):
    """A table whose first column holds the keys of rows; `cells` are the others, value and interval apart.

    Sums, if any, stand in the last row and the last column.
    """

    crossed: ClassVar[bool] = True
    over: str  # what the keys of columns are of
    cells: tuple[tuple[CellText, ...], ...]
    sums: tuple[bool, bool] = (False, False)  # in the last row, in the last column

    @property
    def numbers(self) -> tuple[str, ...]:
        return self.columns[1:]

    @property
    def wordy(self) -> bool:
        return False


def more_rows(hidden: int, where: str) -> str:
    """How many rows are not shown, and where they are; nothing if all are.

    >>> more_rows(1, IN_FILE)
    '1 more row is in the file of answers.'
    """
    if hidden <= 0:
        return ""
    return f"{hidden:,} more {'row is' if hidden == 1 else 'rows are'} {where}."


def cross_table(
    crosstab: Crosstab, most: int, *, where: str = "", title: str | None = None, rest: str = IN_FILE
) -> CrossTable:
    """What is shown of a crosstab: at most so many rows, beside the sums."""
    summed = crosstab.row_keys[-1:] == (ALL,), crosstab.column_keys[-1:] == (ALL,)
    places = list(range(len(crosstab.row_keys)))
    if len(places) > most:
        places = [*places[:most], *(places[-1:] if summed[0] else [])]
    hidden = len(crosstab.row_keys) - len(places)
    more = more_rows(hidden, rest)
    across = range(len(crosstab.column_keys))
    cells = tuple(tuple(crosstab.text(place, other) for other in across) for place in places)
    labels = (key_text(crosstab.row_keys[place]) for place in places)
    return CrossTable(
        name=f"{crosstab.query} {crosstab.statistic}",
        title=crosstab.title if title is None else title,
        columns=(crosstab.rows, *map(key_text, crosstab.column_keys)),
        rows=tuple((label, *map(str, row)) for label, row in zip(labels, cells, strict=True)),
        over=crosstab.columns,
        cells=cells,
        sums=summed,
        note=" ".join(part for part in (*crosstab.notes, where, more) if part),
    )
