"""Tables as data: shown in pages and terminals, kept as CSV."""

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from sourdine.accounting.accountant import Bracket
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import shorten, shorten_down, shorten_up
from sourdine.core.text.escaping import tame

Cell = str | int | float | Decimal | Bracket | None
_LONG = 24  # characters of a cell that needs a line of its own
_NUMBER = re.compile(r"|–|[<-]?[\d,.]+([eE]-?\d+)?(\s?%)?( ± [\d,.]+)?")


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Rows under named columns.

    Cells keep their full value in CSV and are shortened where people read them; a bracket is shortened
    outwards, so that nobody reads a smaller epsilon than was proven.

    >>> rows = ((14070, Bracket(0.61084, 0.61144)),)
    >>> TextTable(name="costs", title="Costs", columns=("steps", "ε"), rows=rows).shown()
    (('14,070', '0.6108 to 0.6115'),)
    """

    crossed: ClassVar[bool] = False
    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InvalidParameter(
                f"Every row of the table '{self.name}' must have {len(self.columns)} cells."
            )

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers only."""
        return tuple(
            name
            for place, name in enumerate(self.columns)
            if not any(isinstance(row[place], str) for row in self.rows)
        )

    @property
    def right(self) -> tuple[str, ...]:
        """The columns that pages align to the right: also those of numbers that are written as text."""
        written = tuple(
            name
            for place, name in enumerate(self.columns)
            if all(isinstance(row[place], str) and _NUMBER.fullmatch(str(row[place])) for row in self.rows)
        )
        return tuple(name for name in self.columns if name in self.numbers or (self.rows and name in written))

    @property
    def wordy(self) -> bool:
        """Whether it holds sentences, which narrow screens show one under the other instead of in columns."""
        return any(isinstance(cell, str) and len(cell) > _LONG for row in self.rows for cell in row)

    def shown(self) -> tuple[tuple[str, ...], ...]:
        """The cells as people read them."""
        return tuple(tuple(show(cell) for cell in row) for row in self.rows)

    def lines(self) -> Iterator[str]:
        """The table as lines of text, for terminals."""
        numbers = self.numbers
        grid = [self.columns, *self.shown()]
        cells = [[tame(cell) for cell in row] for row in grid]
        wide = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        if self.title:
            yield tame(self.title)
        for row in cells:
            aligned = (
                cell.rjust(wide[k]) if self.columns[k] in numbers else cell.ljust(wide[k])
                for k, cell in enumerate(row)
            )
            yield "  ".join(aligned).rstrip()
        if self.note:
            yield tame(self.note)

    def csv(self) -> str:
        """The whole table as CSV; a bracket takes two columns."""
        split = [
            any(isinstance(row[place], Bracket) for row in self.rows) for place in range(len(self.columns))
        ]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        header: list[str] = []
        for name, two in zip(self.columns, split, strict=True):
            header += [f"{name} lower", f"{name} upper"] if two else [name]
        writer.writerow(header)
        for row in self.rows:
            line: list[str | int | float | Decimal | None] = []
            for cell, two in zip(row, split, strict=True):
                if isinstance(cell, Bracket):
                    line += [cell.lower, cell.upper]
                else:
                    line += [cell, cell] if two else [cell]
            writer.writerow(line)
        return text.getvalue()


def show(cell: Cell) -> str:
    """One cell as people read it.

    >>> show(14074), show(14074.2), show(0.000123456), show(None), show(Bracket(0, 1))
    ('14,074', '14,070', '0.0001235', '–', 'at most 1')
    >>> show(Decimal("1234.50"))
    '1,234.50'
    """
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, Decimal):  # has the digits that it is worth
        return f"{cell:,f}" if cell.is_finite() else "∞" if cell > 0 else "-∞"
    if isinstance(cell, Bracket):
        high = shorten_up(cell.upper)
        return f"{shorten_down(cell.lower)} to {high}" if cell.lower > 0 else f"at most {high}"
    return shorten(cell) if math.isfinite(cell) else "∞"
