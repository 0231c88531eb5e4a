"""Workbooks of answers: numbers are numbers, texts are texts."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames.keys import Keys
from sourdine.tables import Answer, Answers, write_answers
from sourdine.tables.answers import write_answer_book
from sourdine.tables.intervals import GroupEstimate


def answers() -> Answers:
    numbers = [np.array(each) for each in ([1.5, -2.25], [1.0, -math.inf], [2.0, -2.0])]
    finite = [np.nan_to_num(each, neginf=-np.finfo(float).max) for each in numbers]
    means = Answer(
        query="pay",
        statistic="mean of pay",
        kind="mean",
        columns=("sex",),
        keys=Keys.of([("f",), ("=1+1",)], 1),
        estimate=GroupEstimate(*finite),
        measure="pay",
    )
    return Answers((means,), 0.95)


def test_numbers_are_numbers_in_every_country(tmp_path: Path) -> None:
    write_answers(answers(), tmp_path / "answers.xlsx")
    frame = pd.read_excel(tmp_path / "answers.xlsx")
    assert tuple(frame.columns) == answers().columns
    assert frame["value"].tolist() == [1.5, -2.25]
    assert frame["upper"].tolist() == [2.0, -2.0]
    assert frame["lower"].isna().tolist() == [False, True]


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    write_answers(answers(), tmp_path / "answers.xlsx")
    cells = [cell for row in load_workbook(tmp_path / "answers.xlsx").active for cell in row]
    assert "'=1+1" in [cell.value for cell in cells]
    assert {cell.data_type for cell in cells} == {"s", "n"}


def test_what_does_not_fit_a_sheet_is_on_the_next(tmp_path: Path) -> None:
    write_answer_book(answers().columns, answers().rows(), tmp_path / "answers.xlsx", most=2)
    sheets = pd.read_excel(tmp_path / "answers.xlsx", sheet_name=None)
    assert {name: each["value"].tolist() for name, each in sheets.items()} == {
        "answers": [1.5],
        "answers 2": [-2.25],
    }


def test_without_openpyxl_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sourdine.tables.answers.find_spec", lambda name: None)
    with pytest.raises(InvalidParameter, match=r"pip install .*openpyxl"):
        write_answers(answers(), tmp_path / "answers.xlsx")
    assert not (tmp_path / "answers.xlsx").exists()


def test_a_control_character_is_written_as_excel_writes_it(tmp_path: Path) -> None:
    write_answer_book(["key", "value"], iter([("a\x0bb", 1.0)]), tmp_path / "answers.xlsx")
    assert pd.read_excel(tmp_path / "answers.xlsx")["key"].tolist() == ["a_x000b_b"]
