"""The tidy table in columns is the one that `rows` has row by row."""

import dataclasses
import json
import math
import sys
from itertools import chain
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sourdine.core.text import csv_text, inert
from sourdine.frames.keys import TEXT, Cell, Keys
from sourdine.tables import Answer, Answers, write_answers
from sourdine.tables.intervals import GroupEstimate

LARGEST = sys.float_info.max


def answer(
    name: str, columns: tuple[str, ...], keys: Keys, *, whole: bool = False, bounded: bool = True
) -> Answer:
    value = np.linspace(-3, 1e17, len(keys)).round() if whole else np.linspace(-0.25, 1e16 / 3, len(keys))
    half = np.full(len(keys), 2.0 if bounded else math.nan)
    return Answer(
        query="q, 1",
        statistic=name,
        kind="count",
        columns=columns,
        keys=keys,
        estimate=GroupEstimate(value, value - half, value + half),
        measure="people",
        whole=whole,
    )


TOWNS = Keys.of_columns(np.array(["=1+1", "a,b", 'say "hi"', "é", "-3.2"], dtype=TEXT))
HALF_OPEN = dataclasses.replace(  # of two intervals one has no end at all
    answer("ratio", ("code",), Keys.product([[1, 2]])),
    estimate=GroupEstimate(np.array([1.5, 2.5]), np.array([1.0, -LARGEST]), np.array([2.0, LARGEST])),
)
CASES: dict[str, tuple[Answer, ...]] = {
    "half open": (HALF_OPEN,),
    "texts": (answer("count", ("town",), TOWNS, whole=True),),
    "numbers": (answer("mean", ("code", "well"), Keys.product([[3, 1], [True, False]])),),
    "levels": (answer("quantiles", ("quantile",), Keys.product([[0.25, 0.5]]), bounded=False),),
    "none": (answer("count", ("town",), TOWNS[:0], whole=True),),
    "all": (answer("count", (), Keys.product([]), whole=True),),
    "margins": (answer("table", ("code",), Keys.of([(1,), (2,), ("all",)], 1), whole=True),),
    "several": (
        answer("count", ("town",), TOWNS, whole=True),
        answer("mean", ("value", "town"), Keys.product([[1, 2], ["x\ny", "z"]])),
        answer("top", ("well",), Keys.product([[True, False]]), whole=True, bounded=False),
    ),
    "whole and not": (
        answer("count", ("code",), Keys.product([[1, 2]]), whole=True),
        answer("mean", ("code",), Keys.product([[1, 2]])),
    ),
}


def cells(rows: list[dict[str, object]]) -> list[list[object]]:
    return [["" if cell is None or cell != cell else cell for cell in row.values()] for row in rows]


@pytest.mark.parametrize("case", CASES)
def test_frames_hold_the_rows(case: str) -> None:
    answers = Answers(CASES[case], 0.95)
    rows = [dict(zip(answers.columns, row, strict=True)) for row in answers.rows()]

    def text(cell: Cell, name: str) -> object:
        """A column of several types is text, and of numbers some of which are not whole, floats."""
        kinds = {type(row[name]) for row in rows if row[name] is not None}
        if cell is None or len(kinds) == 1:
            return cell
        return float(cell) if kinds == {int, float} else str(cell)

    wanted = [{name: text(cell, name) for name, cell in row.items()} for row in rows]
    assert answers.to_arrow().to_pylist() == wanted
    assert answers.to_polars().to_dicts() == wanted
    assert answers.to_arrow().column_names == answers.to_polars().columns == list(answers.columns)
    frame = answers.to_pandas()
    plain = pd.DataFrame.from_records(list(answers.rows()), columns=list(answers.columns))
    assert cells(frame.to_dict("records")) == cells(plain.to_dict("records"))
    if rows:
        assert frame.dtypes.astype(str).to_dict() == plain.dtypes.astype(str).to_dict()
    assert isinstance(answers.to_arrow(), pa.Table)
    assert isinstance(answers.to_polars(), pl.DataFrame)


@pytest.mark.parametrize("case", CASES)
def test_files_hold_the_rows(case: str, tmp_path: Path) -> None:
    answers = Answers(CASES[case], 0.95)
    rows = list(answers.rows())
    assert answers.csv() == csv_text(map(inert, row) for row in chain([answers.columns], rows))
    write_answers(answers, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes().decode() == answers.csv()
    write_answers(answers, tmp_path / "a.parquet")
    found = duckdb.connect().from_parquet(str(tmp_path / "a.parquet"))
    numbers = ("value", "lower", "upper")
    wanted = [
        tuple(
            cell if cell is None else float(cell) if name in numbers else str(cell)
            for name, cell in zip(answers.columns, row, strict=True)
        )
        for row in rows
    ]
    assert found.fetchall() == wanted
    assert found.columns == list(answers.columns)


def test_an_end_that_there_is_not_is_empty_in_every_file(tmp_path: Path) -> None:
    """Seen to fail: the largest float stood there, which a spreadsheet adds up."""
    answers = Answers((HALF_OPEN,), 0.95)
    assert answers.csv().splitlines()[2] == '"q, 1",ratio,2,2.5,,,people'
    assert [row["upper"] for row in json.loads(answers.json())["rows"]] == [2.0, None]
    write_answers(answers, tmp_path / "a.parquet")
    found = duckdb.connect().execute(f"SELECT lower, upper FROM '{tmp_path / 'a.parquet'}'").fetchall()
    assert found == [(1.0, 2.0), (None, None)]
    assert answers.to_polars()["lower"].to_list() == [1.0, None]
