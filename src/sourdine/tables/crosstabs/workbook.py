"""Crosstabs as workbooks of Excel: numbers are numbers, texts are texts and never formulas."""

import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import endless
from sourdine.core.lazy import install_line
from sourdine.core.text import inert
from sourdine.tables.crosstabs.cell import digits_of
from sourdine.tables.crosstabs.cells import ENDS, CrossCells
from sourdine.tables.crosstabs.files import key_text

if TYPE_CHECKING:
    from openpyxl.cell import Cell as SheetCell

_ROWS, _COLUMNS = 1_048_576, 16_384  # of a sheet
_ABOVE, _WIDTH = 4, 16  # rows of titles, characters of a column of keys
_DIGITS = 12


def write_workbook(table: CrossCells, path: Path) -> None:
    """Keep a crosstab in a workbook. It appears whole or not at all, and is for its owner."""
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Alignment, Font
    except ImportError:
        raise InvalidParameter(
            f"Workbooks need openpyxl, which is not installed. Use to_csv(), or: {install_line('excel')}"
        ) from None
    if path.suffix != ".xlsx":
        raise InvalidParameter(f"A workbook is not written as '{path.suffix}'. Let its path end in .xlsx.")
    ends = ENDS if table.bounded else ENDS[:1]
    if len(table.row_keys) + _ABOVE + len(table.notes) > _ROWS or len(table.column_keys) * 3 + 1 > _COLUMNS:
        raise InvalidParameter("The crosstab is too large for a sheet. Use to_csv().")
    book = Workbook()
    sheet: Any = book.active
    sheet.title = "crosstab"
    bold, right = Font(bold=True), Alignment(horizontal="right")
    _write(sheet.cell(1, 1), table.title).font = Font(bold=True, size=13)
    _write(sheet.cell(3, 1), table.rows).font = bold
    sheet.column_dimensions["A"].width = _WIDTH
    for place, key in enumerate(table.column_keys):
        first = 2 + place * len(ends)
        cell = _write(sheet.cell(3, first), key_text(key))
        cell.font, cell.alignment = bold, Alignment(horizontal="center")
        if len(ends) > 1:
            sheet.merge_cells(start_row=3, end_row=3, start_column=first, end_column=first + len(ends) - 1)
        for offset, end in enumerate(ends):
            cell = _write(sheet.cell(4, first + offset), end)
            cell.alignment = right
    for place, key in enumerate(table.row_keys):
        _write(sheet.cell(5 + place, 1), key_text(key)).font = bold
        for other in range(len(table.column_keys)):
            for offset, number in enumerate(table.numbers(place, other)[: len(ends)]):
                _number(sheet.cell(5 + place, 2 + other * len(ends) + offset), number, table)
    for place, note in enumerate(table.notes):
        _write(sheet.cell(6 + len(table.row_keys) + place, 1), note)
    sheet.freeze_panes = "B5"
    with disk.whole_file(path) as whole:
        book.save(whole)


def _write(cell: "SheetCell", text: str) -> "SheetCell":
    """A text, and never a formula: also if it is copied into another file."""
    cell.value = inert(text)
    cell.data_type = "s"
    return cell


def _number(cell: "SheetCell", number: float, table: CrossCells) -> None:
    """A number with the digits that it is worth; what has no end or no group is left empty."""
    if math.isnan(number) or endless(number):
        return
    cell.value = int(number) if number == math.trunc(number) else number
    digits = min(digits_of(Decimal(repr(number)) * (100 if table.percent else 1)), _DIGITS)
    form = "0" if table.percent else "#,##0"
    cell.number_format = f"{form}{'.' + '0' * digits if digits else ''}{'%' if table.percent else ''}"
