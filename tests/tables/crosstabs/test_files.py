"""Crosstabs in files: the numbers of the release, and no key that a spreadsheet or Markdown obeys."""

import csv
import io
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.core.text import as_written
from sourdine.frames.keys import Keys
from sourdine.tables import Answer
from sourdine.tables.crosstab import Crosstab, crosstab_of
from sourdine.tables.intervals import GroupEstimate

ODD = ["=1+1", "a|b*c*", "<script>\x1b", "@x"]
VALUE = np.array([0.5, 0.25, 0.125, 0.75, 1.0, 0.0, 0.54361, 0.3])


def shares(kind: str = "share", lower: float = 0.01) -> Crosstab:
    return crosstab_of(
        Answer(
            query="q",
            statistic="share of count",
            kind=kind,
            columns=("+name", "sex"),
            keys=Keys.product([ODD, ["f", "m"]]),
            estimate=GroupEstimate(VALUE, VALUE - lower, VALUE + 0.01),
            measure="share",
        ),
        "+name",
        "sex",
    )


def test_csv_has_every_number_and_no_formula(tmp_path: Path) -> None:
    text = shares().to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == text
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["'+name", "f", "f lower", "f upper", "m", "m lower", "m upper"]
    assert [as_written(row[0]) for row in rows] == ODD
    assert [float(cell) for row in rows for cell in (row[1], row[4])] == VALUE.tolist()
    assert float(rows[0][2]) == 0.49


def test_markdown_is_rounded_and_its_signs_are_escaped() -> None:
    text = shares().to_markdown()
    assert "| 54.4\N{NO-BREAK SPACE}% (53.3 to 55.4) |" in text
    assert r"a\|b\*c\*" in text
    assert r"\<script\>\\x1b" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 6
    assert {row.replace(r"\|", "").count("|") for row in rows} == {4}


def test_a_workbook_has_numbers_and_texts_that_are_no_formulas(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    shares(lower=np.inf).to_xlsx(path)
    sheet = openpyxl.load_workbook(path).active
    assert sheet is not None
    cells = [cell for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    assert [as_written(str(sheet.cell(5 + place, 1).value)) for place in range(4)] == [
        each.replace("\x1b", r"\x1b") for each in ODD
    ]
    held = [sheet.cell(5 + place // 2, 2 + 3 * (place % 2)) for place in range(8)]
    assert [cell.value for cell in held] == VALUE.tolist()
    assert held[6].number_format == "0.000%"
    assert sheet.cell(5, 3).value is None  # an end that is infinite


def test_where_a_workbook_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match=r"\.xlsx"):
        shares().to_xlsx(tmp_path / "table.xls")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(InvalidParameter, match=r"pip install .*openpyxl"):
        shares().to_xlsx(tmp_path / "table.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_pandas_frame_has_a_row_for_each_key() -> None:
    frame = shares().to_pandas()
    assert list(frame.index) == ODD
    assert frame["m", "value"].tolist() == VALUE[1::2].tolist()
    assert shares().to_pandas(intervals=False)["f"].tolist() == VALUE[::2].tolist()


def test_it_shows_itself_and_no_key_is_obeyed() -> None:
    table = shares()
    html, text = table._repr_html_(), str(table)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert 'scope="row"' in html
    assert "\x1b" not in html + text
    assert "54.4\N{NO-BREAK SPACE}% (53.3 to 55.4)" in text
