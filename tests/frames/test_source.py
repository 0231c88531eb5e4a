"""One clear sentence for what cannot be read, and nothing about a table but its names and types."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import BernsteinSums, PrivacyUnit, Schema, Source, open_source, totals
from sourdine.frames.cells import grouping
from sourdine.frames.quality import quality_counts
from sourdine.testing import SeededBits
from tests.frames.every_engine import ENGINES

ROWS = pa.table(
    {
        "age": [31, 54, 54, 200],
        "sex": ["f", "m", "f", "x"],
        "well": [True, False, True, True],
        "note": list("abcd"),
    }
)
SCHEMA = Schema.read(
    {
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "well": {"type": "flag"},
    }
)
QUESTION = (
    "SELECT sex, count(*), sum(TRY_CAST(age AS DOUBLE)), count(*) FILTER (TRY_CAST(well AS BOOLEAN)) "
    "FROM {table} GROUP BY sex ORDER BY sex"
)
ANSWER = [("f", 2, 85.0, 2), ("m", 1, 54.0, 0), ("x", 1, 200.0, 1)]
KEYS = Schema.read({"key": {"type": "category", "keys": ["a", "b"]}})
NUMBERS = Schema.read({"x": {"type": "integer", "lower": -5, "upper": 5}})


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def counts(source: Source) -> list[int]:
    """How many records there are of each key of the one declared column."""
    ((name, column),) = source.schema.columns.items()
    by = [grouping(name, column, source.types[name])]
    found = totals(source, by=by, statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    return [number for (number,) in found.numbers[0]]


def test_every_engine_gives_the_same_answer(engine: str, tmp_path: Path) -> None:
    source = open_source(ENGINES[engine](ROWS, tmp_path), SCHEMA)
    assert source.ask(QUESTION.format(table=source.name)) == ANSWER


def test_a_missing_column_is_named(engine: str, tmp_path: Path) -> None:
    schema = Schema.read({"height": {"type": "integer", "lower": 0, "upper": 250}})
    table = ENGINES[engine](ROWS, tmp_path)
    if engine in ("json", "ndjson"):  # there a record may leave fields out
        assert open_source(table, schema).ask("SELECT count(height) FROM sourdine_source") == [(0,)]
        return
    with pytest.raises(InvalidParameter, match=r"and none is called 'height'\. Check"):
        open_source(table, schema)
    with pytest.raises(InvalidParameter, match="none is called 'patient'"):
        open_source(table, SCHEMA, ["patient"])


@pytest.mark.parametrize("typed", ["pandas", "nullable", "polars", "lazy", "arrow", "duckdb", "parquet"])
def test_a_type_that_cannot_hold_the_declaration_is_refused(typed: str, tmp_path: Path) -> None:
    table = ENGINES[typed](ROWS, tmp_path)
    for name, column, sentence in [
        ("age", {"type": "category", "keys": ["a"]}, "'age' is declared to hold text"),
        ("age", {"type": "category", "keys": ["031"]}, "'age' is declared to hold text"),
        ("well", {"type": "category", "keys": ["yes", "no"]}, "'well' is declared to hold text"),
    ]:
        with pytest.raises(InvalidParameter, match=sentence):
            open_source(table, Schema.read({name: column}))


@pytest.mark.parametrize("column", ["[1, 2]", "{'a': 1}", "DATE '2020-01-01'", "INTERVAL 1 DAY", "'a'::BLOB"])
def test_a_type_that_holds_no_numbers_is_refused_before_anything_is_asked(column: str) -> None:
    with pytest.raises(InvalidParameter, match="'x' is declared to hold numbers, and the table holds"):
        open_source(duckdb.sql(f"SELECT {column} AS x"), NUMBERS)


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("['secret'::ENUM('secret')]", "LIST"),
        ("['secret'::ENUM('secret')]::ENUM('secret')[1]", "ARRAY"),
        ("{'secret': 1}", "STRUCT"),
        ("MAP {'secret'::ENUM('secret'): 1}", "MAP"),
        ("union_value(secret := 1)", "UNION"),
    ],
)
def test_what_a_type_lists_is_not_told_in_an_error(held: str, told: str) -> None:
    for others in ((), ("y",)):
        with pytest.raises(InvalidParameter) as caught:
            open_source(duckdb.sql(f"SELECT {held} AS x, {held} AS y"), NUMBERS, others)
        assert f"the table holds {told}" in str(caught.value)
        assert "secret" not in str(caught.value)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    def file(name: str, text: bytes = b"nothing") -> Path:
        (tmp_path / name).write_bytes(text)
        return tmp_path / name

    twice = pd.DataFrame([[1, 2]], columns=["age", "age"])
    for wrong, sentence in [
        (tmp_path / "none.csv", "does not exist"),
        (tmp_path, "is a folder"),
        (3, "must be a path or a frame"),
        (np.zeros((2, 2)), "Got a ndarray"),
        (file("rows.xlsx"), "is a spreadsheet, whose cells have no declared types. Save its sheet as CSV"),
        (file("rows.ods"), "is a spreadsheet"),
        (file("rows.sav"), "is not read. Use one of .csv"),
        (file("broken.parquet"), "cannot be read as parquet"),
        (file("empty.csv", b""), "has no header in its first line"),
        (file("list.json", b'[{"age": 1}]'), "Write a record a line, as JSON Lines"),
        (file("twice.csv", b"age,sex,well,age\n1,f,1,2\n"), "two columns called 'age'"),
        (twice, "two columns of one name"),
        (
            pa.table({"age": np.array([1], np.float16), "sex": ["f"], "well": [True]}),
            "that the engine cannot",
        ),
        (
            pl.DataFrame({"age": pl.Series([object()], dtype=pl.Object), "sex": ["f"], "well": [True]}),
            "that the engine cannot read",
        ),
    ]:
        with pytest.raises(InvalidParameter) as caught:
            open_source(wrong, SCHEMA)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a[1].csv", "a*.csv", "a?.csv", 'it\'s "ours".csv', "é ü.csv"])
def test_a_path_is_a_path_and_no_pattern(name: str, tmp_path: Path) -> None:
    (tmp_path / "a1.csv").write_text("key\nb\nb\n")
    (tmp_path / name).write_text("key\na\n")
    assert counts(open_source(tmp_path / name, KEYS)) == [1, 0]


CSV = {
    "windows": (b"\xef\xbb\xbfkey,x\r\na,1\r\nb,2\r\n", [1, 1]),
    "semicolons": (b"key;x\na;1,5\nb;2\n", [1, 1]),
    "bars": (b"key|x\na|1\n", [1, 0]),
    "quotes": (b'"key","x, y"\n"a","say ""hi"""\n"b","a, b"\n', [1, 1]),
    "broken quotes": (b'key,x\na,"new\nb",2\nb,3\n', [0, 1]),
    "one column": (b"key\na\na\n", [2, 0]),
    "no record": (b"key,x\n", [0, 0]),
    "ragged": (b"key,x\na,1\na\na,1,2,3\nb,2\n", [3, 1]),
    "not UTF-8": (b"key,x\na,1\n\xff\xfe,2\nb,\xff\nb,3\n", [1, 2]),
    "no end": (b"key,x\na,1\nb,2", [1, 1]),
    "very long": (b"key,x\na,1\nb," + b"z" * 3_000_000 + b"\nb,3\n", [1, 1]),
    "other names": (b"x,x,key,,\n1,2,a,,\n", [1, 0]),
}


@pytest.mark.parametrize("case", CSV)
def test_csv_is_read_by_its_header_alone(case: str, tmp_path: Path) -> None:
    text, expected = CSV[case]
    (tmp_path / "rows.csv").write_bytes(text)
    assert counts(open_source(tmp_path / "rows.csv", KEYS)) == expected


def test_one_record_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    """An engine that guesses a dialect would take the delimiter that most records share."""
    whole = "key,x;y;z\n" + "a,1;2;3\n" * 20
    for record in ("b,';'\n", 'b,""\n', "b,#\n", "b;b;b,1\n", "\n\n", "key,x;y;z\n", 'b,"1;2"\n'):
        (tmp_path / "rows.csv").write_text(whole + record)
        assert counts(open_source(tmp_path / "rows.csv", KEYS))[0] == 20


def test_tabs_part_the_fields_of_tsv(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("a,b\tkey\n1,2\ta\n")
    assert counts(open_source(tmp_path / "rows.tsv", KEYS)) == [1, 0]


def test_a_broken_line_of_json_is_a_record_without_a_key(tmp_path: Path) -> None:
    lines = ['{"key": "a"}'] * 3000 + [
        '{"key": ',
        "[1]",
        "5",
        "null",
        "",
        '{"key": {"a": 1}}',
        '{"key": "b"}',
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    assert counts(open_source(tmp_path / "rows.jsonl", KEYS)) == [3000, 1]


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("told")

    __repr__ = __str__


ODD: list[Any] = [
    "text",
    2**70,
    10**5000,
    -(10**5000),
    [1],
    {"a": 1},
    Hostile(),
    pd.NA,
    pd.NaT,
    b"x",
    True,
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("1e400"),
    "\ud800",
    np.float32("inf"),
]


def test_no_object_in_a_column_changes_its_type_or_raises() -> None:
    """The type of a column of Python objects must not be guessed from what it holds."""
    for odd in (["text"], [True], [Decimal("NaN")], [10**50], ODD):
        items: list[Any] = [*["a"] * 4321, *odd, *["a"] * 99]
        assert counts(open_source(pd.DataFrame({"key": pd.Series(items, dtype=object)}), KEYS)) == [4420, 0]
        numbers: list[Any] = [*[1] * 4321, *odd]
        source = open_source(pd.DataFrame({"x": pd.Series(numbers, dtype=object)}), NUMBERS)
        assert source.types["x"] == "VARCHAR"
        assert source.ask("SELECT count(*) FILTER (x = '1') FROM sourdine_source")[0][0] >= 4321


def test_strings_that_are_no_text_are_read_all_the_same() -> None:
    held = pd.Series(["a", "\ud800", None, "b"], dtype=pd.StringDtype("python"))
    assert counts(open_source(pd.DataFrame({"key": held}), KEYS)) == [1, 1]
    categories = pd.DataFrame({"key": pd.Categorical(held)})
    assert counts(open_source(categories, KEYS)) == [1, 1]


def test_texts_of_pandas_whose_bytes_are_no_text_are_read_all_the_same() -> None:
    """pandas holds texts as Arrow does, which does not look at their bytes."""
    places = pa.array([0, 1, 2, 3, 4], pa.int32()).buffers()[1]
    odd = pa.StringArray.from_buffers(4, places, pa.py_buffer(b"a\xff\xfea"))
    frame = (
        pa.table({"key": odd})
        .to_pandas()
        .assign(gone=pd.Series([None] * 4, dtype=object), small=np.array([1, 2, 3, 4], np.float16))
    )
    source = open_source(frame, KEYS, ["gone", "small"])
    assert source.types == {"key": "VARCHAR", "gone": "VARCHAR", "small": "FLOAT"}
    assert counts(source) == [2, 0]


@pytest.mark.parametrize("raw", [b"\xff", b"\xc3", b"tru\xe2\x82", b" \xed\xa0\x80\xfc", b"1\xf0\x9f"])
@pytest.mark.parametrize(
    "column",
    [
        {"type": "flag"},
        {"type": "integer", "lower": 0, "upper": 9},
        {"type": "category", "keys": [0, 1]},
        {"type": "category", "keys": ["true"]},
        {"type": "text"},
    ],
)
def test_bytes_that_are_no_text_end_no_release(raw: bytes, column: dict[str, Any]) -> None:
    """Arrow does not look at them; some functions of the engine raise at them, and it answers no more."""
    held = pa.array([b"true", raw, b"TRUE ", b" false"])
    texts = pa.StringArray.from_buffers(4, *held.buffers()[1:])
    source = open_source(pa.table({"x": texts}), Schema.read({"x": column}))
    found = quality_counts(source, ["x"], unit=PrivacyUnit(), bits=SeededBits(1))
    assert sum(found) == 4
    if column["type"] != "text" and column.get("keys") != ["true"]:
        assert found[0] == 3
        assert found[2] == 1


def test_the_callers_frame_stays_as_it_was() -> None:
    frame = pd.DataFrame({"x": pd.Series([1, None, "a"], dtype=object)})
    before = frame.copy(deep=True)
    open_source(frame, NUMBERS)
    pd.testing.assert_frame_equal(frame, before)


def test_a_lazy_frame_need_not_be_read_to_be_refused() -> None:
    def fail(frame: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("it was read")

    lazy = pl.LazyFrame({"x": [1]}).map_batches(fail, schema={"x": pl.Int64})
    asked: Callable[[], Source] = lambda: open_source(lazy, SCHEMA)
    with pytest.raises(InvalidParameter, match="none is called 'age'"):
        asked()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_a_csv_may_be_in_another_encoding(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "accents.csv"
    path.write_bytes("région,âge\nÎle,3\nnord,5\nÎle,7\n".encode(encoding))
    schema = Schema.read({"région": {"type": "category", "keys": ["Île", "nord"]}})
    source = open_source(path, schema, text={"encoding": encoding})
    assert source.ask(f'SELECT "région", count(*) FROM {source.name} GROUP BY 1 ORDER BY 2') == [
        ("nord", 1),
        ("Île", 2),
    ]
    with pytest.raises(InvalidParameter, match="must be one of utf-8"):
        open_source(path, schema, text={"encoding": "ebcdic"})


@pytest.mark.parametrize("made", ["INTERVAL '1 month'", "[0.0]", "{'a': 0.0}", "MAP {'a': 1}"])
def test_a_unit_is_told_by_values_that_are_written_in_one_way(made: str) -> None:
    table = duckdb.sql(f"SELECT {made} AS whose, 1 AS age")
    schema = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 9}})
    with pytest.raises(InvalidParameter, match="cannot tell units apart"):
        open_source(table, schema, ["whose"])
    open_source(duckdb.sql("SELECT DATE '2020-01-01' AS whose, 1 AS age"), schema, ["whose"])


def test_a_question_computes_no_more_than_it_names() -> None:
    columns: dict[str, Any] = {f"c{place}": {"type": "real", "lower": 0, "upper": 1} for place in range(30)}
    table = pl.DataFrame({name: [0.25, 0.5] for name in columns})
    source = open_source(table, Schema.read(columns))
    named = source.place_of("c7")
    view = source.view_for(f"{named} AS value")
    assert source.ask(f"SELECT {named} FROM {view}") == source.ask(f"SELECT {named} FROM {source.view}")
    assert source.place_of("c8") not in view
    assert source.place_of("c8") in source.view
