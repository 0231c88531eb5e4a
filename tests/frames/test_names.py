"""Names of columns: what is declared and missing is told, what a table holds never is."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema, open_source
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.joins import open_joined, read_joins
from tests.frames.every_engine import ENGINES

NUMBER = {"type": "integer", "lower": 0, "upper": 9}
WITH_NAMES = [engine for engine in ENGINES if engine not in ("json", "ndjson")]


def schema(*names: str) -> Schema:
    return Schema.read(dict.fromkeys(names, NUMBER))


def refusal(table: object, declared: Schema, *others: str) -> str:
    with pytest.raises(InvalidParameter) as caught:
        open_source(table, declared, others)
    return str(caught.value)


@pytest.mark.parametrize("engine", WITH_NAMES)
def test_no_name_of_a_table_is_told(engine: str, tmp_path: Path) -> None:
    table = ENGINES[engine](pa.table({"Zelda": [1], "salery": [2], "1984": [3]}), tmp_path)
    told = refusal(table, schema("salary"))
    assert told.startswith("The table has 3 columns, and none is called 'salary'. Check how the ")
    for name in ("Zelda", "salery", "1984"):
        assert name not in told


def test_the_first_record_of_a_file_without_a_header_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("Zelda,1984,9000\nLink,1986,8000\n")
    told = refusal(tmp_path / "people.csv", schema("salary"))
    assert told == (
        "The table has 3 columns, and none is called 'salary'. Check how the first line of the file spells "
        "it, letter by letter. If that line is a record, the file has no header: add one, or declare "
        'text={"header": False, "names": ["...", "..."]} for all its columns.'
    )


def test_names_that_are_declared_for_a_file_are_looked_up_there(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("Zelda,1984,9000\n")
    with pytest.raises(InvalidParameter) as caught:
        open_source(
            tmp_path / "people.csv",
            schema("salary"),
            text=TextFormat(header=False, names=("who", "born", "salery")),
        )
    assert str(caught.value) == (
        "The table has 3 columns, and none is called 'salary'. Check the list of names that is declared for "
        "the file."
    )


def test_names_that_are_near_are_told_among_declared_ones_alone(tmp_path: Path) -> None:
    table = pa.table({"person": [1], "persons": [1], "age": [1]})
    assert "Did you mean 'person', which it has?" in refusal(table, schema("person"), "person_id")
    assert "Did you mean" not in refusal(table, schema("age"), "person_id")


def test_of_many_that_are_missing_three_are_named() -> None:
    table, names = pa.table({"a": [1]}), [f"column {place}" for place in range(1, 1206)]
    two, many = refusal(table, schema(*names[:2])), refusal(table, schema(*names))
    assert two.startswith("The table has 1 column, and none is called 'column 1' or 'column 2'. Check")
    assert "called 'column 1', 'column 2', 'column 3' or any of 1,202 more that are declared. Check" in many


@pytest.mark.parametrize("many", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ["parquet", "pandas", "polars", "lazy", "arrow"])
def test_of_many_columns_the_engine_gets_those_that_are_needed(
    engine: str, many: int, tmp_path: Path
) -> None:
    wide = pa.table({f"c{place}": np.array([place % 10, 1]) for place in range(many)})
    late = f"c{many - 2}"
    source = open_source(ENGINES[engine](wide, tmp_path), schema("c7", late), ["c1"])
    assert set(source.types) == {"c7", late, "c1"}
    assert len(source.engine.names) == many
    [(seven, eight, one)] = source.ask(
        f"SELECT sum(c7::INT), sum({late}::INT), sum(c1::INT) FROM {source.name}"
    )
    assert (seven, eight, one) == (8, 9, 2)


@pytest.mark.parametrize("engine", ["polars", "lazy", "arrow", "pandas"])
def test_columns_that_nobody_declared_are_still_told_apart(engine: str, tmp_path: Path) -> None:
    table = ENGINES[engine](pa.table({"age": [1], "AGE": [2], "other": [3]}), tmp_path)
    assert "two columns called 'age', perhaps in other case" in refusal(table, schema("age"))
    join: dict[str, Any] = {
        "table": pa.table({"k": [1], "OTHER": [1]}),
        "on": {"age": "k"},
        "columns": "OTHER",
    }
    one = ENGINES[engine](pa.table({"age": [1], "other": [3]}), tmp_path)
    with pytest.raises(InvalidParameter, match="A join brings a column 'OTHER', and the table has one"):
        open_joined(one, schema("OTHER"), read_joins({"x": join}))


def test_a_column_that_the_engine_cannot_read_hinders_nobody_who_does_not_ask_for_it() -> None:
    table = pa.table({"age": [1], "half": pa.array(np.array([1], np.float16))})
    assert open_source(table, schema("age")).ask("SELECT age FROM sourdine_source") == [(1,)]
    assert "that the engine cannot read" in refusal(table, schema("half"))
