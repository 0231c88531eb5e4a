"""Exact totals on every engine, whatever the rows hold, and no more of a unit than is declared."""

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import (
    BernsteinSums,
    Category,
    PlainSum,
    PrivacyUnit,
    Schema,
    Source,
    Totals,
    open_source,
    totals,
)
from sourdine.frames import aggregate as counting
from sourdine.frames.aggregate import combinations
from sourdine.frames.cells import grouping, quoted, steps
from sourdine.frames.schema import span
from sourdine.testing import SeededBits
from tests.frames.every_engine import ALL_ENGINES, ENGINES

PAY = "pay, \"é' $"  # names may hold anything
SCHEMA = Schema.read(
    {
        PAY: {"type": "real", "lower": -10.0, "upper": 100.0, "granularity": 0.25},
        "site": {"type": "category", "keys": ["n", 's\'s "ü"'], "missing": "n"},
        "well": {"type": "flag"},
    }
)
SITES = SCHEMA.keys("site")
VALUES = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.1, 0.125, 3.374999, 99.99, 100.0, None, -0.0]
ROWS: dict[str, list[Any]] = {
    PAY: VALUES * 4,
    "site": [*SITES, "elsewhere", None] * 12,
    "well": [True, False, None] * 16,
    "who": [f"p{i % 7}" if i % 11 else None for i in range(48)],
}
TABLE = pa.table({name: pa.array(column, from_pandas=False) for name, column in ROWS.items()})

EACH = PrivacyUnit()


def asked(source: Source, by: list[str], unit: PrivacyUnit = EACH, where: str = "TRUE") -> Totals:
    """The count, the sum and the moments of pay."""
    number, kinds = SCHEMA.number("test", PAY), source.types
    low, high = span(number)
    value = steps(PAY, number, kinds[PAY])
    return totals(
        source,
        by=[grouping(name, SCHEMA.columns[name], kinds[name]) for name in by],
        statistics=[
            BernsteinSums(max_rows=unit.max_rows),
            PlainSum(value=value, reach=high, max_rows=unit.max_rows),
            BernsteinSums(value=f"({value}) - ({low})", width=high - low, degree=2, max_rows=unit.max_rows),
        ],
        unit=unit,
        bits=SeededBits(1),
        where=where,
    )


def step_of(pay: float | None) -> int | None:
    if pay is None or not math.isfinite(pay):
        return None
    return round(Fraction(max(-10.0, min(100.0, pay))) * 4)


def expected(by: list[str]) -> list[tuple[tuple[int, ...], ...]]:
    """The same totals in plain Python, record by record."""
    low, high = span(SCHEMA.number("test", PAY))
    groups: dict[tuple[object, ...], list[int | None]] = {
        key: [] for key in combinations([grouping(name, SCHEMA.columns[name], "") for name in by])
    }
    for pay, site, well in zip(ROWS[PAY], ROWS["site"], ROWS["well"], strict=True):
        held = {"site": site if site in SITES else SITES[0], "well": well}
        key = tuple(held[name] for name in by)
        if key in groups:
            groups[key].append(step_of(pay))
    wide = high - low
    rows: list[tuple[tuple[int, ...], ...]] = []
    for found in groups.values():
        known = [each for each in found if each is not None]
        from_low = [each - low for each in known]
        squares = (
            sum((wide - v) ** 2 for v in from_low),
            sum(2 * v * (wide - v) for v in from_low),
            sum(v * v for v in from_low),
        )
        rows.append(((len(found),), (sum(known),), squares))
    return rows


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_totals_are_the_same_everywhere(engine: str, tmp_path: Path) -> None:
    source = open_source(ENGINES[engine](TABLE, tmp_path), SCHEMA, ["who"])
    for by in (["site", "well"], ["well"], []):
        found = asked(source, by)
        assert list(zip(*found.numbers, strict=True)) == expected(by)
    keys = asked(source, ["site", "well"]).keys
    assert keys == tuple((site, well) for site in SITES for well in (False, True))


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_a_unit_of_several_records_counts_the_same_everywhere(engine: str, tmp_path: Path) -> None:
    source = open_source(ENGINES[engine](TABLE, tmp_path), SCHEMA, ["who"])
    unit = PrivacyUnit(column="who", max_rows=2, max_groups=1)
    found = asked(source, ["site"], unit)
    assert found == asked(open_source(TABLE, SCHEMA, ["who"]), ["site"], unit)
    counted = [number for (number,) in found.numbers[0]]
    assert 7 < sum(counted) <= 2 * 7  # one unit has a single record where it counts


KINDS = {
    "int8": pa.int8(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal": pa.decimal128(20, 2),
    "bool": pa.bool_(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_type_are_read(kind: str) -> None:
    values: list[Any] = [0, 1, 1, 3, 120, None]
    if kind == "bool":
        values = [False, True, True, True, True, None]
    if kind == "decimal":
        values = [None if value is None else Decimal(value) for value in values]
    table = pa.table({"x": pa.array(values, KINDS[kind])})
    sizes = {"lower": -2, "upper": 3}
    plain = {"x": {"type": "integer", **sizes}}
    fine = {"x": {"type": "real", "lower": -2.0, "upper": 3.0, "granularity": 0.5}}
    keys = {"x": {"type": "category", "keys": [-1, 1, 3]}}
    for columns, expects in (
        (plain, [5, 4 if kind == "bool" else 8]),
        (fine, [5, 8 if kind == "bool" else 16]),
    ):
        schema = Schema.read(columns)
        source = open_source(table, schema)
        value = steps("x", schema.number("test", "x"), source.types["x"])
        wanted: list[BernsteinSums | PlainSum] = [BernsteinSums(value=value), PlainSum(value=value, reach=6)]
        found = totals(source, by=[], statistics=wanted, unit=PrivacyUnit(), bits=SeededBits(1))
        assert [numbers[0][0] for numbers in found.numbers] == expects
    schema = Schema.read(keys)
    source = open_source(table, schema)
    by = [grouping("x", schema.columns["x"], source.types["x"])]
    found = totals(source, by=by, statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    assert found.numbers[0] == ((0,), (4 if kind == "bool" else 2,), (0 if kind == "bool" else 1,))


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT", "UBIGINT", "DECIMAL(38, 0)", "DOUBLE"])
def test_the_largest_numbers_of_a_type_are_clamped(kind: str) -> None:
    """An error that only some value brings about would tell of it."""
    import duckdb

    largest = {"HUGEINT": 2**127 - 1, "UHUGEINT": 2**128 - 1, "UBIGINT": 2**64 - 1}.get(kind, 10**38 - 1)
    table = duckdb.sql(f"SELECT CAST('{largest}' AS {kind}) AS x")
    schema = Schema.read({"x": {"type": "integer", "lower": -2, "upper": 3}})
    source = open_source(table, schema)
    value = steps("x", schema.number("test", "x"), source.types["x"])
    sums = totals(
        source, by=[], statistics=[PlainSum(value=value, reach=3)], unit=PrivacyUnit(), bits=SeededBits(1)
    )
    assert sums.numbers == (((3,),),)
    by = [grouping("x", Category(keys=(-1, 3)), source.types["x"])]
    keys = totals(source, by=by, statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    assert keys.numbers == (((0,), (0,)),)


def test_every_known_group_has_a_row_even_in_an_empty_table() -> None:
    empty = TABLE.slice(0, 0)
    for unit in (PrivacyUnit(), PrivacyUnit(column="who", max_rows=3)):
        source = open_source(empty, SCHEMA, ["who"])
        found = asked(source, ["site"], unit)
        assert found.keys == tuple((site,) for site in SITES)
        assert found.numbers == (((0,),) * 2, ((0,),) * 2, ((0, 0, 0),) * 2)
        assert asked(source, [], unit).keys == ((),)
        assert asked(source, [], unit).numbers[2] == ((0, 0, 0),)


def test_a_condition_leaves_records_out() -> None:
    source = open_source(TABLE, SCHEMA, ["who"])
    found = asked(source, ["well"], where=f"{quoted('site')} = 'elsewhere'")
    assert [number for (number,) in found.numbers[0]] == [4, 4]
    assert asked(source, ["well"], where="NULL").numbers[0] == ((0,), (0,))


def test_which_groups_count_changes_with_the_secret() -> None:
    table = pa.table({"who": [1] * 40, "site": [str(i) for i in range(40)]})
    schema = Schema.read({"site": {"type": "category", "keys": [str(i) for i in range(40)]}})
    source = open_source(table, schema, ["who"])
    by = [grouping("site", schema.columns["site"], source.types["site"])]
    unit = PrivacyUnit(column="who", max_groups=2)
    seen = [
        totals(source, by=by, statistics=[BernsteinSums()], unit=unit, bits=SeededBits(seed)).numbers[0]
        for seed in range(20)
    ]
    assert all(sum(number for (number,) in numbers) == 2 for numbers in seen)
    assert len(set(seen)) > 15


@pytest.mark.parametrize("few", [1, 2, 4])
def test_every_group_of_a_unit_has_the_same_chance(few: int) -> None:
    """A chi-square at one in a million; the hash of several things at once failed it by far."""
    names, units = list("ABCDEF"), 5000
    table = pa.table({"who": [i for i in range(units) for _ in names], "site": names * units})
    schema = Schema.read({"site": {"type": "category", "keys": names}})
    source = open_source(table, schema, ["who"])
    by = [grouping("site", schema.columns["site"], source.types["site"])]
    unit = PrivacyUnit(column="who", max_groups=few)
    found = totals(source, by=by, statistics=[BernsteinSums()], unit=unit, bits=SeededBits(few)).numbers[0]
    mean = units * few / len(names)
    assert sum((number - mean) ** 2 / mean for (number,) in found) < 37.0


def test_groups_that_tie_are_set_apart_by_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were all numbers of the secret order the same, a unit would still count in no more than it may."""
    monkeypatch.setattr(counting, "secret_order", lambda names, bits, dialect: "CAST(7 AS UBIGINT)")
    table = pa.table({"who": [1, 1, 1, 2, 2], "site": ["A", "B", "C", "A", "B"]})
    schema = Schema.read({"site": {"type": "category", "keys": ["A", "B", "C"]}})
    source = open_source(table, schema, ["who"])
    by = [grouping("site", schema.columns["site"], source.types["site"])]
    unit = PrivacyUnit(column="who", max_groups=2)
    found = totals(source, by=by, statistics=[BernsteinSums()], unit=unit, bits=SeededBits(1))
    assert found.numbers[0] == ((2,), (2,), (0,))


def test_too_many_groups_are_refused() -> None:
    wide = Category(keys=tuple(range(5000)))
    by = [grouping(name, wide, "BIGINT") for name in ("a", "b")]
    with pytest.raises(InvalidParameter, match="25,000,000 groups"):
        combinations(by)


@pytest.mark.slow
def test_units_are_bounded_out_of_core(tmp_path: Path) -> None:
    """With less memory than the sums of all units and groups take, the engine spills them."""
    path, rows = tmp_path / "people.parquet", 2_000_000
    found = []
    for memory in ("4GB", "60MB"):
        config: dict[str, Any] = {
            "memory_limit": memory,
            "threads": "1",
            "temp_directory": str(tmp_path / memory),
        }
        with duckdb.connect(config=config) as connection:
            if not path.exists():
                people = (
                    f"SELECT hash(i) % {rows // 4} AS person, hash(i, 1) % 100 AS k FROM range({rows}) t(i)"
                )
                connection.execute(f"COPY ({people}) TO '{path}' (FORMAT parquet)")
            schema = Schema.read({"k": {"type": "integer", "lower": 0, "upper": 99}})
            source = open_source(connection.sql(f"FROM '{path}'"), schema, ["person"])
            found.append(
                totals(
                    source,
                    by=[source.grouping("k")],
                    statistics=[BernsteinSums(max_rows=2)],
                    unit=PrivacyUnit("person", column="person", max_rows=2, max_groups=1),
                    bits=SeededBits(1),
                )
            )
    assert found[0] == found[1]
    assert rows // 8 < sum(count for (count,) in found[0].numbers[0]) <= 2 * rows // 4
