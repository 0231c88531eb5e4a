"""Answers by name and key, and the tidy table in every kind of file."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.frames.keys import Keys
from sourdine.report.finding import show
from sourdine.tables import Answer, Answers, Table, write_answers
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits

KEYS = ["a", "it's", 'say "hi", ü', "007", "NULL", "new\nline"]
TABLE = Table(
    pa.table({"key": KEYS * 3, "age": list(range(18)), "well": [True, False] * 9}),
    unit="person",
    columns={
        "key": {"type": "category", "keys": KEYS},
        "age": {"type": "integer", "lower": 0, "upper": 20},
        "well": {"type": "flag"},
    },
)


@pytest.fixture(scope="module")
def answers() -> Answers:
    plan = TABLE.plan(
        {"name": "people", "ask": ["count", {"mean": "age"}], "by": ["key"]},
        {"name": "cells", "ask": [{"contingency": ["key", "well"]}]},
        {"name": "ages", "ask": [{"histogram": "age", "edges": [0, 5, 20]}]},
        {"name": "ranks", "ask": [{"quantiles": "age", "levels": [0.25, 0.5]}], "by": ["well"]},
        {"name": "all", "ask": ["count"]},
        epsilon=50,
    )
    return _carry_out(plan, TABLE.source, bits=SeededBits(1)).values


def test_answers_are_found_by_name_and_key(answers: Answers) -> None:
    count = answers["people", "count"]
    assert [key for key, *_ in count.rows()] == [(key,) for key in KEYS]
    value, low, high = count.at("it's")
    assert low <= value <= high
    assert abs(value - 3) <= 2
    assert answers["all"].at()[0] == pytest.approx(18, abs=3)
    assert answers["cells"].at("a", True)[0] == pytest.approx(3, abs=3)
    assert answers["cells"].at("all", "all")[0] == pytest.approx(18, abs=9)
    assert answers["ages"].at("5 to 20")[0] == pytest.approx(13, abs=3)
    assert answers["ranks"].at(True, 0.5)[0] == pytest.approx(8, abs=4)


@pytest.mark.parametrize("name", ["nobody", ("people", "sum"), ("nobody", "count"), 0, ("a", "b", "c")])
def test_an_answer_that_is_not_there_is_told(answers: Answers, name: str) -> None:
    with pytest.raises(
        InvalidParameter, match=r"There is no answer .* The answers are \['people', 'count'\], \["
    ):
        answers[name]


def test_a_query_of_several_statistics_asks_for_the_name_of_one(answers: Answers) -> None:
    with pytest.raises(
        InvalidParameter, match=r"^'people' asks for several .*: name one\. The answers are \["
    ):
        answers["people"]


def test_a_key_that_is_not_there_is_told(answers: Answers) -> None:
    with pytest.raises(InvalidParameter, match=r"has no group .*Its keys are for key: ask at\('a'\), at\("):
        answers["people", "count"].at("b")
    with pytest.raises(InvalidParameter, match=r"Its keys are for the whole table: ask at\(\)\."):
        answers["all"].at("a")


def test_every_file_holds_the_same_table(answers: Answers, tmp_path: Path) -> None:
    rows = [dict(zip(answers.columns, row, strict=True)) for row in answers.rows()]
    for ending in ("csv", "json", "parquet"):
        write_answers(answers, tmp_path / f"answers.{ending}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "answers.csv",
        "answers.json",
        "answers.parquet",
    ]
    text = (tmp_path / "answers.csv").read_text(encoding="utf-8")
    assert text == answers.csv()
    read = list(csv.DictReader(io.StringIO(text)))
    assert [list(row) for row in read] == [list(answers.columns)] * len(rows)
    held = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert held["confidence"] == 0.95
    columnar = pa.parquet.read_table(tmp_path / "answers.parquet").to_pylist()
    for row, from_csv, from_json, from_parquet in zip(rows, read, held["rows"], columnar, strict=True):
        assert from_json == {name: cell for name, cell in row.items() if cell is not None}
        assert from_csv == {name: "" if cell is None else str(cell) for name, cell in row.items()}
        for name, cell in row.items():
            if name in ("value", "lower", "upper"):
                assert from_parquet[name] == cell
            else:
                assert from_parquet[name] == (None if cell is None else str(cell))
    with pytest.raises(InvalidParameter, match=r"not written as '\.ods'"):
        write_answers(answers, tmp_path / "answers.ods")


def test_a_page_shows_names_as_text(answers: Answers) -> None:
    page = answers._repr_html_()
    assert "say &#34;hi&#34;" in page
    assert 'say "hi"' not in page
    assert page.count("<tr>") == sum(1 + min(20, len(each.keys)) for each in answers.each)


def test_keys_may_have_the_names_of_the_tables_own_columns(tmp_path: Path) -> None:
    names = ["query", "value", "lower", "measure"]
    keys = {name: {"type": "category", "keys": ["a", "b"]} for name in names}
    table = Table(pa.table({name: ["a", "b"] for name in names}), unit="person", columns=keys)
    queries = [{"name": name, "ask": ["count"], "by": [name]} for name in names]
    plan = table.plan(*queries, epsilon=1)
    found = _carry_out(plan, table.source, bits=SeededBits(1)).values
    assert len(set(found.columns)) == len(found.columns) == 10
    rows = json.loads(found.json())["rows"]
    assert [row["query"] for row in rows] == [name for name in names for _ in "ab"]
    assert rows[2]["value key"] == "a"
    write_answers(found, tmp_path / "answers.parquet")
    assert pa.parquet.read_table(tmp_path / "answers.parquet").column_names == list(found.columns)


def test_frames_hold_the_same_table(answers: Answers) -> None:
    values = [row[-4] for row in answers.rows()]
    frame = answers.to_pandas()
    assert list(frame.columns) == list(answers.columns)
    assert frame["value"].tolist() == values
    polars = answers.to_polars()
    assert polars.columns == list(answers.columns)
    assert polars["value"].to_list() == values
    place = answers.columns.index("well")
    told = [None if row[place] is None else str(row[place]) for row in answers.rows()]
    assert polars["well"].to_list() == told  # true, false and all
    arrow = answers.to_arrow()
    assert arrow.column_names == list(answers.columns)
    assert arrow["value"].to_pylist() == values


def test_they_show_themselves_in_a_line(answers: Answers) -> None:
    assert repr(answers) == (
        "<Answers ['people', 'count'], ['people', 'mean of age'], ['cells', 'key by well'], "
        "['ages', 'histogram of age'], ['ranks', 'quantiles of age'], ['all', 'count'] "
        "with 95 % confidence intervals>"
    )
    assert repr(TABLE) == "<Table of people, add-remove neighbours; columns: key, age, well>"
    plan = TABLE.plan({"name": "all", "ask": ["count"]}, epsilon=1)
    assert repr(plan) == "<ReleasePlan of 'all' at epsilon 1; nothing is spent>"


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.floats(1e-6, 1e9), st.booleans())
@example(33554432.45069075, 1e-06, 1e-06, False)  # a step is about the last digit of a float
def test_rounding_goes_outwards_and_no_farther_than_needed(
    value: float, down: float, up: float, whole: bool
) -> None:
    low, high = value - down, value + up
    found = GroupEstimate(*(np.array([number]) for number in (value, low, high))).rounded(whole)
    unit = 1.0 if whole else (high - low) / 100
    assert found.lower[0] <= low <= high <= found.upper[0]
    assert found.lower[0] <= found.value[0] <= found.upper[0]
    for exact, rounded in ((value, found.value[0]), (low, found.lower[0]), (high, found.upper[0])):
        assert abs(exact - rounded) <= unit * (1 + 1e-6)
    if whole:
        assert found.value[0] == round(value)


def test_without_an_interval_digits_of_the_grid_are_not_shown() -> None:
    """A median of 47.1495361328125 is one of a grid, and nobody knows so many digits of it."""
    none = np.array([np.nan])
    median = Answer(
        query="q",
        statistic="quantiles of age",
        kind="quantiles",
        columns=("level",),
        keys=Keys.of([(0.5,)], 1),
        estimate=GroupEstimate(np.array([47.1495361328125]), none, none),
        measure="age",
        span=(0.0, 120.0),
    )
    assert "0.5: 47.15; no interval" in repr(median)
    assert show(47.1495361328125, median) == "47.15"
    assert show(47.1495361328125, replace(median, span=(0.0, 1e6))) == "50"
    assert show(47.1495361328125, replace(median, span=None)) == "47.1495361328125"
    assert "47.1495361328125" in Answers((median,), 0.95).csv()
