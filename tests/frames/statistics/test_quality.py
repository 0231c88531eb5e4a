"""Every record is in one cell of every column, the one that its answers treat it as; a unit moves few."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.audit.plans.engines import ENGINES, Workplace
from sourdine.audit.plans.walk import Walk
from sourdine.frames import Integer, PrivacyUnit, Real, Schema, Source, Text, open_source
from sourdine.frames.cells import fit
from sourdine.frames.contributions import raw_text
from sourdine.frames.quality import (
    CellState,
    all_cells,
    cells_of,
    place_among_cells,
    quality_counts,
    records_without,
)
from sourdine.frames.schema import span
from sourdine.testing import SeededBits
from tests.random_plans import random_plan

HERE = [name for name, engine in ENGINES.items() if engine.together]
DECLARED: dict[str, Any] = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "pay": {"type": "real", "lower": -1.5, "upper": 10.0, "granularity": 0.5},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "code": {"type": "category", "keys": [1, 2]},
    "well": {"type": "flag"},
    "town": {"type": "text"},
}


def counted(source: Source, *columns: str, unit: PrivacyUnit | None = None, seed: int = 1) -> dict[Any, int]:
    names = columns or tuple(source.schema.base.columns)
    found = quality_counts(source, names, unit=unit or PrivacyUnit(), bits=SeededBits(seed))
    return dict(zip(all_cells(source.schema, names), found, strict=True))


def of_column(
    cells: list[Any], declared: dict[str, Any], kind: pa.DataType | None = None
) -> dict[CellState, int]:
    """The cells of one column, without those that are empty."""
    source = open_source(pa.table({"x": pa.array(cells, kind)}), Schema.read({"x": declared}))
    return {cell: many for (_, cell), many in counted(source).items() if many}


def agrees(source: Source, name: str) -> None:
    """What a record counts as is what its cell says."""
    column, cell = source.schema.columns[name], place_among_cells(source, name)
    if isinstance(column, Integer | Real):
        width = span(column)[1] - span(column)[0]
        for at, steps in source.ask(f"SELECT {cell}, {source.place_of(name)} FROM {source.view}"):
            told = cells_of(column)[at]
            if told in (CellState.MISSING, CellState.UNREADABLE):
                assert column.missing != "drop" or steps == -1
            else:
                assert 0 <= steps <= width
                assert told is not CellState.BELOW or steps == 0
                assert told is not CellState.ABOVE or steps == width
        return
    if isinstance(column, Text):
        known = fit(raw_text(source, name), source.dialect)
    else:
        grouped = source.grouping(name)
        known = f"{grouped.known(grouped.raw)} IS NOT NULL"
    for at, held in source.ask(f"SELECT {cell}, {known} FROM {source.view}"):
        assert 0 <= at < len(cells_of(column))
        if column.missing == "drop":
            assert (at == 0) == (held is True)
        else:
            assert held or isinstance(column, Text)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(each, marks=[] if each in ("csv", "duckdb", "pandas") else [pytest.mark.slow])
        for each in HERE
    ],
)
def test_a_cell_says_what_a_record_counts_as(engine: str, tmp_path: Path) -> None:
    made = ENGINES[engine]
    for seed in range(2):
        plan = random_plan("keys", seed)
        walk = Walk(plan, seed, made.text, made.wide)
        rows = [row for step in walk.steps(30) for row in step.rows]
        others = [] if plan.unit.column is None else [plan.unit.column]
        source = open_source(made.make(walk.layout, rows, Workplace(tmp_path)), plan.schema, others)
        for name in plan.schema.base.columns:
            agrees(source, name)
        found, ((records,),) = counted(source), source.ask(f"SELECT count(*) FROM {source.name}")
        for name, column in plan.schema.base.columns.items():
            assert sum(found[name, cell] for cell in cells_of(column)) == records


def test_cells_of_numbers() -> None:
    age, pay = DECLARED["age"], DECLARED["pay"]
    assert of_column([0, 120, 60, -1, 121, None], age, pa.int64()) == {
        CellState.FITS: 3,
        CellState.MISSING: 1,
        CellState.BELOW: 1,
        CellState.ABOVE: 1,
    }
    floats = [-1.5, 10.0, 3.0, -1.6, 10.1, 1e300, math.nan, math.inf, -math.inf, None]
    assert of_column(floats, pay, pa.float64()) == {
        CellState.FITS: 3,
        CellState.MISSING: 2,
        CellState.UNREADABLE: 2,
        CellState.BELOW: 1,
        CellState.ABOVE: 2,
    }


def test_cells_of_numbers_written_as_text(tmp_path: Path) -> None:
    texts = ["1", " 2 ", "", "  ", "nan", "NaN", "inf", "1,5", "n/a", "200", "-3", "1e400", "0x1F"]
    path = tmp_path / "rows.csv"
    path.write_text("age,n\n" + "".join(f'"{text}",1\n' for text in texts))
    source = open_source(path, Schema.read({"age": DECLARED["age"]}))
    assert counted(source) == {
        ("age", CellState.FITS): 2,
        ("age", CellState.MISSING): 4,
        ("age", CellState.UNREADABLE): 5,
        ("age", CellState.BELOW): 1,
        ("age", CellState.ABOVE): 1,
    }


def test_cells_of_keys_flags_and_texts() -> None:
    assert of_column(["f", "m", "F", "f ", "", " ", None, "x"], DECLARED["sex"]) == {
        CellState.FITS: 2,
        CellState.UNKNOWN: 3,
        CellState.MISSING: 3,
    }
    # an empty key that is declared is a key, and no missing value
    assert of_column(["", " ", None], {"type": "category", "keys": ["", "a"]}) == {
        CellState.FITS: 1,
        CellState.MISSING: 2,
    }
    assert of_column([1, 2, 3, None], DECLARED["code"]) == {
        CellState.FITS: 2,
        CellState.UNKNOWN: 1,
        CellState.MISSING: 1,
    }
    assert of_column([1.0, math.nan, 7.0], DECLARED["code"]) == {
        CellState.FITS: 1,
        CellState.MISSING: 1,
        CellState.UNKNOWN: 1,
    }
    assert of_column([True, None, False], DECLARED["well"]) == {CellState.FITS: 2, CellState.MISSING: 1}
    towns = ["Lille", " ", "", None, "a" * 200, "a" * 201, "two\nlines"]
    assert of_column(towns, DECLARED["town"]) == {
        CellState.FITS: 3,
        CellState.MISSING: 2,
        CellState.UNREADABLE: 2,
    }


def test_a_declared_missing_value_hides_no_cell() -> None:
    held = {"type": "category", "keys": ["f", "m"], "missing": "m"}
    assert of_column(["f", "x", None], held) == {
        CellState.FITS: 1,
        CellState.UNKNOWN: 1,
        CellState.MISSING: 1,
    }
    number = {"type": "integer", "lower": 0, "upper": 9, "missing": 4}
    assert of_column([3, None, 12], number) == {CellState.FITS: 1, CellState.MISSING: 1, CellState.ABOVE: 1}


def test_flags_that_are_no_flags() -> None:
    frame = pd.DataFrame({"well": pd.Series(["true", "maybe", "", None, "no"], dtype=object)})
    source = open_source(frame, Schema.read({"well": DECLARED["well"]}))
    assert counted(source) == {
        ("well", CellState.FITS): 2,
        ("well", CellState.MISSING): 2,
        ("well", CellState.UNREADABLE): 1,
    }


def test_bytes_that_are_no_text_raise_nothing() -> None:
    raw = pa.array([b"f", b"\xff\xfe", b"", b"\xc3"], pa.binary()).cast(pa.string(), safe=False)
    table = pa.table({"sex": raw, "town": raw})
    source = open_source(table, Schema.read({"sex": DECLARED["sex"], "town": DECLARED["town"]}))
    found = counted(source)
    assert found["sex", CellState.FITS] == 1
    assert found["sex", CellState.UNKNOWN] == 2
    assert found["town", CellState.UNREADABLE] == 2


def test_without_columns_records_are_counted() -> None:
    source = open_source(pa.table({"age": [1, 2, 3], "who": [1, 1, None]}), Schema(columns={}), ["who"])
    assert quality_counts(source, [], unit=PrivacyUnit(), bits=SeededBits(1)) == (3,)
    assert quality_counts(source, [], unit=PrivacyUnit(column="who"), bits=SeededBits(1)) == (1,)
    assert quality_counts(source, [], unit=PrivacyUnit(column="who", max_rows=5), bits=SeededBits(1)) == (2,)
    assert records_without(source, "who") == 1


def test_an_empty_table_counts_nothing() -> None:
    held = pa.table({"age": pa.array([], pa.int64()), "who": pa.array([], pa.int64())})
    source = open_source(held, Schema.read({"age": DECLARED["age"]}), ["who"])
    assert quality_counts(source, ["age"], unit=PrivacyUnit(), bits=SeededBits(1)) == (0,) * 5
    assert quality_counts(source, ["age"], unit=PrivacyUnit(column="who"), bits=SeededBits(1)) == (0,) * 5


AGES = st.sampled_from([5, 50, -3, 300, None])
SEXES = st.sampled_from(["f", "m", "x", "", None])


def units_of(records: list[tuple[int | None, int | None, str | None]]) -> Source:
    who, ages, sexes = zip(*records, strict=True) if records else ((), (), ())
    table = pa.table(
        {
            "who": pa.array(who, pa.int64()),
            "age": pa.array(ages, pa.int64()),
            "sex": pa.array(sexes, pa.string()),
        }
    )
    return open_source(table, Schema.read({"age": DECLARED["age"], "sex": DECLARED["sex"]}), ["who"])


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), AGES, SEXES), max_size=25),
    st.lists(st.tuples(AGES, SEXES), max_size=12),
    st.lists(st.tuples(AGES, SEXES), max_size=12),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_one_unit_moves_each_column_by_its_rows(
    others: list[Any], one: list[Any], another: list[Any], rows: int, seed: int
) -> None:
    unit, vectors = PrivacyUnit(column="who", max_rows=rows), []
    for mine in ([], one, another):
        source = units_of(others + [(9, *record) for record in mine])
        found = quality_counts(source, ["age", "sex"], unit=unit, bits=SeededBits(seed))
        assert min(found) >= 0
        vectors.append(np.array(found))
    without, first, second = vectors
    for column in (slice(0, 5), slice(5, 8)):
        for held, mine in ((first, one), (second, another)):
            change = (held - without)[column]
            assert change.min() >= 0
            assert change.sum() == min(len(mine), rows)
    far = second - first
    assert abs(far).sum() <= 2 * 2 * rows
    assert far @ far <= 2 * 2 * rows**2


def test_a_unit_of_many_records_counts_in_proportion() -> None:
    records = [(who, 50 if i % 4 else None, "f") for who in range(4000) for i in range(8)]
    source = units_of([(who, age, sex) for who, age, sex in records])
    found = counted(source, "age", unit=PrivacyUnit(column="who", max_rows=3), seed=5)
    assert sum(found.values()) == 12_000
    # of 3 records a quarter, rounded at random: 0 or 1, with a mean of 0.75
    assert abs(found["age", CellState.MISSING] - 3000) < 6 * math.sqrt(4000 * 0.75 * 0.25)
    again = counted(source, "age", unit=PrivacyUnit(column="who", max_rows=3), seed=6)
    assert again != found  # by another secret


def test_rounding_is_right_on_the_whole() -> None:
    """Over all starts, (s m + u) // c has the mean s m / c, whatever s, m and c are."""
    for many in range(1, 9):
        for rows in range(1, many + 1):
            for some in range(many + 1):
                assert sum((some * rows + start) // many for start in range(many)) == some * rows


def test_cells_do_not_depend_on_the_order_of_records() -> None:
    records: list[tuple[int | None, int | None, str | None]] = [
        (i % 5, i * 7 % 150, "f" if i % 3 else "x") for i in range(40)
    ]
    first = counted(units_of(records), unit=PrivacyUnit(column="who", max_rows=2))
    assert first == counted(units_of(records[::-1]), unit=PrivacyUnit(column="who", max_rows=2))


def test_brought_columns_are_in_cells_too() -> None:
    from sourdine.frames.joins import Join, open_joined

    people = duckdb.connect().sql("SELECT unnest(['Lille', 'Nice', 'Oz', NULL]) AS town")
    places = pa.table({"town": ["Lille", "Nice"], "region": ["north", "moon"]})
    join = Join(name="places", table=places, on=(("town", "town"),), columns=("region",))
    schema = Schema.read({"region": {"type": "category", "keys": ["north", "south"]}})
    found = Counter(counted(open_joined(people, schema, [join], [])))
    assert found["region", CellState.FITS] == 1
    assert found["region", CellState.UNKNOWN] == 1
    assert found["region", CellState.MISSING] == 2
