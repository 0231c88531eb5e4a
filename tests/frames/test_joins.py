"""Joins to public tables keep every record once, on every engine, whatever keys hold."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema, totals
from sourdine.frames.joins import Join, open_joined, read_joins
from sourdine.testing import SeededBits
from tests.frames.every_engine import ALL_ENGINES, ENGINES

SCHEMA = Schema.read(
    {
        "region": {"type": "category", "keys": ["north", "south"], "missing": "drop"},
        "height": {"type": "integer", "lower": 0, "upper": 9},
    }
)
PLACES = pa.table(
    {
        "name": ["Lille", "Nice", "Brest", None],
        "region": ["north", "south", None, "south"],
        "height": [1, 2, 3, 4],
    }
)
ON = {"table": PLACES, "on": {"town": "name"}, "columns": ["region", "height"]}


def by_region(table: object, joins: tuple[Join, ...], schema: Schema = SCHEMA) -> list[int]:
    source = open_joined(table, schema, joins)
    assert source.ask(f"SELECT count(*) FROM {source.name}") == [(5,)]
    grouped = source.grouping("region")
    from sourdine.frames import BernsteinSums

    found = totals(source, by=[grouped], statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    return [row[0] for row in found.numbers[0]]


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_a_record_gets_at_most_one_row(engine: str, tmp_path: Path) -> None:
    people = pa.table({"town": ["Lille", "Lille", "Nice", "nowhere", None], "age": [1, 2, 3, 4, 5]})
    joins = read_joins({"places": ON})
    assert by_region(ENGINES[engine](people, tmp_path), joins) == [2, 1]


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_whole_numbers_are_compared_as_such(engine: str, tmp_path: Path) -> None:
    people = pa.table({"place": [7, 7, 8, 99, None], "age": [1, 2, 3, 4, 5]})
    places = pa.table({"place": [7, 8], "region": ["north", "south"]})
    joins = read_joins({"places": {"table": places, "on": "place", "columns": ["region"]}})
    schema = Schema.read({"region": SCHEMA.columns["region"].model_dump()})
    frame = ENGINES[engine](people, tmp_path)
    if engine in ("objects",):  # floats written as text are other texts than whole numbers
        people = pa.table({"place": ["7", "7", "8", "99", None], "age": [1, 2, 3, 4, 5]})
        frame = ENGINES[engine](people, tmp_path)
    assert by_region(frame, joins, schema) == [2, 1]


def test_a_join_that_would_multiply_records_is_refused() -> None:
    people = pa.table({"town": ["Lille"]})
    twice = pa.table({"town": ["Lille", "Lille"], "region": ["north", "south"]})
    joins = read_joins({"places": {"table": twice, "on": "town", "columns": ["region"]}})
    with pytest.raises(
        InvalidParameter, match=r"^The join 'places' cannot.*Rows 1 and 2 .* 'town'.*count twice"
    ):
        open_joined(people, Schema.read({"region": SCHEMA.columns["region"].model_dump()}), joins)


def test_keys_that_become_equal_as_numbers_are_refused() -> None:
    people = pa.table({"place": [7]})
    twice = pa.table({"place": ["7", "07"], "region": ["north", "south"]})
    joins = read_joins({"places": {"table": twice, "on": "place", "columns": ["region"]}})
    with pytest.raises(InvalidParameter, match="Rows 1 and 2 of its public table have the same 'place'"):
        open_joined(people, Schema.read({"region": SCHEMA.columns["region"].model_dump()}), joins)


def test_a_column_that_would_be_taken_for_a_clamped_one_is_refused() -> None:
    for taken in ("Sourdine place of height", "sourdine number of HEIGHT"):
        people = pa.table({"town": ["Lille", "Nice"], taken: [0, 10**6]})
        with pytest.raises(InvalidParameter, match="a name that is used inside"):
            open_joined(people, SCHEMA, read_joins({"places": ON}))


def test_columns_that_differ_in_case_alone_are_refused() -> None:
    people, more = pa.table({"town": ["Lille"]}), PLACES.rename_columns(["name", "Region", "Height"])
    schema = Schema(columns={**SCHEMA.columns, "Height": SCHEMA.columns["height"]})
    joins = read_joins({"places": ON, "more": {**ON, "table": more, "columns": ["Height"]}})
    with pytest.raises(InvalidParameter, match="perhaps in other case"):
        open_joined(people, schema, joins)


def test_several_columns_make_a_key(tmp_path: Path) -> None:
    people = pa.table({"town": ["a", "a", "b", "b", "b"], "year": [1, 2, 1, 2, 2]})
    public = tmp_path / "public.csv"
    public.write_text("town,year,region\na,1,north\na,2,south\nb,1,south\n")
    joins = read_joins({"x": {"file": "public.csv", "on": ["town", "year"], "columns": "region"}}, tmp_path)
    schema = Schema.read({"region": SCHEMA.columns["region"].model_dump()})
    assert by_region(people, joins, schema) == [1, 2]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            {"table": PLACES, "on": "town", "columns": ["region"]},
            "^The join 'places' cannot be made.*none is called 'town'",
        ),
        (
            {"table": PLACES, "on": {"home": "name"}, "columns": ["region"]},
            "^The table has 1 column, and none is called 'home'",
        ),
        ({"table": PLACES, "on": {"town": "name"}, "columns": ["region", "town"]}, "has one of that name"),
        ({"table": PLACES.slice(0, 0), "on": {"town": "name"}, "columns": ["region"]}, "between 1 and"),
        ({"on": "town", "columns": ["region"]}, "needs a file"),
        ({"table": PLACES, "on": [], "columns": ["region"]}, "a column's name"),
        (
            {"table": PLACES, "on": "town", "columns": ["region"], "how": "inner"},
            "'joins.places.how' is unknown",
        ),
    ],
)
def test_what_is_wrong_is_said(block: dict[str, object], said: str) -> None:
    people = pa.table({"town": ["Lille"]})
    schema = Schema.read({"region": SCHEMA.columns["region"].model_dump()})
    with pytest.raises(InvalidParameter, match=said):
        open_joined(people, schema, read_joins({"places": block}))


@pytest.mark.slow
def test_a_cluster_joins_alike(spark: Any) -> None:
    people = pa.table({"town": ["Lille", "Lille", "Nice", "nowhere", None], "age": [1, 2, 3, 4, 5]})
    assert by_region(spark.createDataFrame(people), read_joins({"places": ON})) == [2, 1]
