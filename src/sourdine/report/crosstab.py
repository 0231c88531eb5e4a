"""Crosstabs as pages and terminals show them: keys on two sides, a value over its interval in each cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sourdine.core.escaping import tame
from sourdine.tables.answer import ALL
from sourdine.tables.crosstabs import Crosstab
from sourdine.tables.crosstabs.cell import CellText
from sourdine.tables.crosstabs.files import key_text


@dataclass(frozen=True, kw_only=True)
class CrossTable:
    """Cells under the keys of columns and beside those of rows; sums, if any, stand last."""

    crossed: ClassVar[bool] = True
    name: str
    title: str
    sides: tuple[str, str]  # the names of rows and of columns
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CellText, ...]], ...]
    sums: tuple[bool, bool] = (False, False)  # in the last row, in the last column
    note: str = ""

    def shown(self) -> tuple[tuple[str, ...], ...]:
        """The rows as people read them, each with its key first."""
        return tuple((label, *map(str, cells)) for label, cells in self.rows)

    def lines(self) -> Iterator[str]:
        """The table as lines of text, for terminals."""
        grid = [(self.sides[0], *self.columns), *self.shown()]
        texts = [[tame(cell) for cell in row] for row in grid]
        wide = [max(len(row[place]) for row in texts) for place in range(len(texts[0]))]
        if self.title:
            yield tame(self.title)
        for label, *cells in texts:
            aligned = (cell.rjust(width) for cell, width in zip(cells, wide[1:], strict=True))
            yield "  ".join([label.ljust(wide[0]), *aligned]).rstrip()
        if self.note:
            yield tame(self.note)


def cross_table(crosstab: Crosstab, most: int, *, where: str = "", title: str | None = None) -> CrossTable:
    """What is shown of a crosstab: at most so many rows, beside the sums."""
    summed = crosstab.row_keys[-1:] == (ALL,), crosstab.column_keys[-1:] == (ALL,)
    places = list(range(len(crosstab.row_keys)))
    if len(places) > most:
        places = [*places[:most], *(places[-1:] if summed[0] else [])]
    hidden = len(crosstab.row_keys) - len(places)
    more = f"{hidden:,} more rows are in the file of answers." if hidden else ""
    return CrossTable(
        name=f"{crosstab.query} {crosstab.statistic}",
        title=crosstab.title if title is None else title,
        sides=(crosstab.rows, crosstab.columns),
        columns=tuple(map(key_text, crosstab.column_keys)),
        rows=tuple(
            (
                key_text(crosstab.row_keys[place]),
                tuple(crosstab.text(place, other) for other in range(len(crosstab.column_keys))),
            )
            for place in places
        ),
        sums=summed,
        note=" ".join(part for part in (*crosstab.notes, where, more) if part),
    )
