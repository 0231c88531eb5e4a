"""Answers as a workbook of Excel: numbers are numbers in every country, and texts are never formulas."""

import itertools
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import install_line
from sourdine.core.text import inert
from sourdine.frames.keys import Cell

_ROWS = 1_048_576  # of a sheet, with its names


def check_workbooks() -> None:
    """Refuse workbooks where nothing is installed that writes them."""
    if find_spec("openpyxl") is None:
        raise InvalidParameter(
            f"Workbooks need openpyxl, which is not installed. Write CSV, or: {install_line('excel')}"
        )


def write_answer_book(
    columns: Sequence[str], rows: Iterator[Sequence[Cell]], place: Path, most: int = _ROWS
) -> None:
    """Keep the tidy table in a workbook: numbers are numbers. What does not fit a sheet is on the next."""
    check_workbooks()
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    for number in itertools.count(1):
        part = list(itertools.islice(rows, most - 1))
        if not part and number > 1:
            break
        sheet: Any = book.create_sheet("answers" if number == 1 else f"answers {number}")
        for row in (columns, *part):
            sheet.append(list(_cells(sheet, row)))
    with place.open("wb") as file:
        book.save(file)


def _cells(sheet: Any, row: Sequence[Cell]) -> Iterator[object]:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.escape import escape

    for each in row:
        if isinstance(each, str):
            cell = WriteOnlyCell(sheet, escape(inert(each)))  # control characters as Excel writes them
            cell.data_type = "s"  # also if it is copied into another file
            yield cell
        else:
            yield each
