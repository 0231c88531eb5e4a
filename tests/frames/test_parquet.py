"""Parquet files of several types, and folders that are columns: no value ends a release."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema, Source, open_source

PAY = Schema.read({"pay": {"type": "real", "lower": -10, "upper": 10, "granularity": 0.5}})
FLAG = Schema.read({"well": {"type": "flag"}})


def two(folder: Path, first: pa.Array, second: pa.Array, **more: Any) -> Source:
    """A table of two files, with a number or with a unit."""
    unit = more.get("unit", False)
    for name, held in (("a", first), ("b", second)):
        columns = {"who": held, "well": [True] * len(held)} if unit else {"pay": held}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return open_source(folder, FLAG, ["who"]) if unit else open_source(folder, PAY)


def places(source: Source) -> list[int]:
    return [place for (place,) in source.ask(f"SELECT {source.place_of('pay')} FROM {source.view}")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([1, 99], pa.int32()), pa.array([2.5], pa.float64())),
        (pa.array([1, 99], pa.int64()), pa.array([2.5], pa.float32())),
        (pa.array([1, 2**64 - 1], pa.uint64()), pa.array([2], pa.int8())),
        (pa.array([1, 2**63 - 1], pa.int64()), pa.array([Decimal("2.5")], pa.decimal128(38, 19))),
        (
            pa.array([Decimal(1), Decimal("9999999.99")]).cast(pa.decimal128(9, 2)),
            pa.array([Decimal("2.5000")]),
        ),
        (pa.array([Decimal(1), Decimal(10) ** 30], pa.decimal128(38, 0)), pa.array([2.5])),
        (pa.array(["1", "x"]), pa.array([2.5])),
        (pa.array([True, None]), pa.array([2])),
        (pa.array([1, None]), pa.nulls(1)),
    ],
)
def test_types_that_go_together_hold_every_value(first: pa.Array, second: pa.Array, tmp_path: Path) -> None:
    found = places(two(tmp_path, first, second))
    assert found[0] == 22
    assert found[1] in (-1, 40)  # not there, or clamped
    last = {pa.types.is_null(second.type): -1, second.to_pylist() == [2]: 24}
    assert found[2] == last.get(True, 25)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([10**30], pa.decimal128(38, 0)), pa.array([Decimal("1.5")], pa.decimal128(38, 20))),
        (pa.array([2**62]), pa.array([Decimal("1.5")], pa.decimal128(38, 30))),
        (pa.array([b"x"]), pa.array(["1"])),
        (pa.array([datetime(2020, 1, 1)]), pa.array(["1"])),
    ],
)
def test_types_in_which_a_value_has_no_place_are_refused_before_the_charge(
    first: pa.Array, second: pa.Array, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter, match=r"hold the column 'pay' in types that do not go together \("):
        two(tmp_path, first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([2**53, 2**53 + 1]), pa.array([1.0])),  # two units would be one float
        (pa.array([datetime(3000, 1, 1)], pa.timestamp("us")), pa.array([1], pa.timestamp("ns"))),
        (pa.array([Decimal(1)]), pa.array([Decimal("1.00")])),
    ],
)
def test_units_are_not_brought_from_type_to_type(first: pa.Array, second: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="'who' in types that do not go together"):
        two(tmp_path, first, second, unit=True)


def test_units_that_are_written_in_one_way_are_the_same(tmp_path: Path) -> None:
    source = two(tmp_path, pa.array([1, 2**53 + 1]), pa.array(["1", "01"]), unit=True)
    assert source.ask(f"SELECT DISTINCT who FROM {source.name} ORDER BY 1") == [
        ("01",),
        ("1",),
        (str(2**53 + 1),),
    ]


def test_a_part_of_a_nested_column_is_no_column(tmp_path: Path) -> None:
    for name, inside in (("a", "text"), ("b", b"bytes")):
        pq.write_table(pa.table({"pay": [1], "more": [{"pay": inside}]}), tmp_path / f"{name}.parquet")
    assert places(open_source(tmp_path, PAY)) == [22, 22]


@pytest.mark.parametrize("text", ["a=b", "a%20b", "%zz", "", " x", "é", "a'b", "1.0", "NULL"])
def test_folders_mean_what_they_mean_for_files_of_text(text: str, tmp_path: Path) -> None:
    """And those above the table mean nothing."""
    found = []
    schema = Schema.read({name: {"type": "text"} for name in ("pay", "_reg", "year")})
    for kind in ("csv", "parquet"):
        path = tmp_path / "year=2024" / kind / f"_reg={text}" / f"rows.{kind}"
        path.parent.mkdir(parents=True)
        if kind == "csv":
            path.write_text("pay,year\n1,1999\n")
        else:
            pq.write_table(pa.table({"pay": ["1"], "year": ["1999"]}), path)
        source = open_source(path.parent.parent, schema)
        found.append(source.ask(f"SELECT pay, _reg, year FROM {source.name}"))
    assert found[0] == found[1]
    assert found[0][0][2] == "1999"


def test_a_name_that_is_used_inside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "reg=n").mkdir()
    pq.write_table(pa.table({"pay": [1], "File_Index": [7]}), tmp_path / "reg=n" / "rows.parquet")
    with pytest.raises(InvalidParameter, match="'file_index', a name that is used inside"):
        open_source(tmp_path, PAY)
