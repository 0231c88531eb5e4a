"""Crosstabs as text: CSV for programs, Markdown for people."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from sourdine.core import files as disk
from sourdine.core.text import csv_text, inert, tame
from sourdine.frames.keys import Cell
from sourdine.tables.answers.answer import empty
from sourdine.tables.crosstabs.cells import CrossCells

_SIGNS = re.compile(r"([\\`*_\[\]<>|~&])")


def keep(text: str, path: str | Path | None) -> str:
    """The text, also in a file if there is a path for it; it appears whole or not at all."""
    if path is not None:
        disk.write_whole(Path(path), text)
    return text


def key_text(key: Cell) -> str:
    """A key as people read it."""
    if isinstance(key, bool):
        return "yes" if key else "no"
    return f"{key:g}" if isinstance(key, float) else tame(str(key))


def csv_of(table: CrossCells) -> str:
    """Full numbers under the keys of columns; no cell is a formula to a spreadsheet."""
    names: list[Cell] = [table.rows]
    for key in table.column_keys:
        names += [str(key), *([f"{key} lower", f"{key} upper"] if table.bounded else [])]
    return csv_text(map(inert, row) for row in (names, *_rows(table)))


def _rows(table: CrossCells) -> Iterator[list[Cell]]:
    ends = 3 if table.bounded else 1
    for place, key in enumerate(table.row_keys):
        row: list[Cell] = [key]
        for other in range(len(table.column_keys)):
            row += [_number(each, table.whole) for each in table.numbers(place, other)[:ends]]
        yield row


def _number(number: float, whole: bool) -> float | int | None:
    if empty(number):
        return None
    return int(number) if whole and number == math.trunc(number) else number


def markdown_of(table: CrossCells) -> str:
    """A table with its title and notes, as people read it; no key is taken for a sign of Markdown."""
    head = [table.rows, *map(key_text, table.column_keys)]
    lines = [f"**{escaped(table.title)}**", "", _line(map(escaped, head))]
    lines.append(_line(["---", *("---:" for _ in table.column_keys)]))
    for place, key in enumerate(table.row_keys):
        cells = (str(table.text(place, other)) for other in range(len(table.column_keys)))
        lines.append(_line([escaped(key_text(key)), *cells]))
    return "\n".join([*lines, "", *map(escaped, table.notes), ""])


def _line(cells: Iterator[str] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    r"""A text that Markdown shows as it is.

    >>> print(escaped("a|b <script> *c*"))
    a\|b \<script\> \*c\*
    """
    return _SIGNS.sub(r"\\\1", tame(text))
