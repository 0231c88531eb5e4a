"""Every expression is worth the same on every engine as by its definition, whatever a record holds."""

import math
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from sourdine.frames import Source, open_source
from sourdine.frames.expressions import (
    DatePart,
    DayKind,
    Expression,
    KeyKind,
    Logarithm,
    MomentKind,
    NumberKind,
    TimePeriod,
    read_expression,
    walk,
)
from tests.frames.expressions.reference import value_of
from tests.frames.expressions.trees import (
    COLUMNS,
    KINDS,
    SCHEMA,
    counted,
    keys,
    numbers,
    readable,
    records,
    truths,
)

SETTINGS = settings(
    max_examples=4,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
MANY = settings(SETTINGS, max_examples=400)
Rows = list[dict[str, Any]]


def frame_of(rows: Rows) -> pl.DataFrame:
    kinds: dict[str, Any] = {
        "BIGINT": pl.Int64,
        "DOUBLE": pl.Float64,
        "VARCHAR": pl.String,
        "BOOLEAN": pl.Boolean,
        "DATE": pl.Date,
        "TIMESTAMP": pl.Datetime("us"),
    }
    cells = [tuple(row[name] for name in KINDS) for row in rows]
    return pl.DataFrame(cells, schema={n: kinds[k] for n, k in KINDS.items()}, orient="row")


def duckdb_source(rows: Rows) -> Source:
    connection = duckdb.connect()
    connection.register("given", frame_of(rows).to_arrow())
    connection.execute("CREATE TABLE made AS SELECT * FROM given")
    return open_source(connection.table("made"), SCHEMA)


def polars_source(rows: Rows) -> Source:
    return open_source(frame_of(rows), SCHEMA)


def computed(source: Source, trees: list[Expression]) -> list[list[Any]]:
    """The values of some expressions for each record, as the engine has them."""
    named = ", ".join(f"{source.holds(tree)} AS v{place}" for place, tree in enumerate(trees))
    rows = source.ask(f"SELECT {named} FROM {source.view}")
    return [[_told(cell, tree) for cell, tree in zip(row, trees, strict=True)] for row in rows]


def _told(cell: Any, tree: Expression) -> Any:
    kind = tree.kind(SCHEMA.kinds)
    if cell is None or isinstance(cell, bool):
        return cell
    match kind:
        case NumberKind():
            assert kind.low <= cell <= kind.high, "bounds hold"
            return int(cell) * kind.step
        case KeyKind():
            return kind.keys[cell]
        case DayKind() | MomentKind():
            assert kind.first <= cell <= kind.last
    return cell


def check_alike(source: Source, trees: list[Expression], rows: Rows) -> None:
    found = computed(source, trees)
    for row, values in zip(rows, found, strict=True):
        record = counted(row)
        for tree, value in zip(trees, values, strict=True):
            truth = value_of(tree, record, SCHEMA.kinds)
            assert value == truth, (tree.text, record)


@SETTINGS
@given(st.lists(numbers(2) | keys(2) | truths(2), min_size=1, max_size=4), st.lists(records, max_size=6))
def test_expressions_are_worth_what_they_mean(forms: list[Any], rows: Rows) -> None:
    trees = [read_expression(form) for form in forms if readable(form)]
    assume(trees)
    check_alike(duckdb_source(rows), trees, rows)
    check_alike(polars_source(rows), trees, rows)


@pytest.mark.slow
@MANY
@given(st.lists(numbers(3) | keys(3) | truths(3), min_size=1, max_size=6), st.lists(records, max_size=8))
def test_deep_expressions_are_worth_what_they_mean(forms: list[Any], rows: Rows) -> None:
    trees = [read_expression(form) for form in forms if readable(form)]
    assume(trees)
    check_alike(duckdb_source(rows), trees, rows)
    check_alike(polars_source(rows), trees, rows)


@SETTINGS
@given(st.lists(records, max_size=8))
def test_columns_are_what_is_declared(rows: Rows) -> None:
    names = [name for name in COLUMNS if name not in ("town", "start", "end", "seen")]
    check_alike(duckdb_source(rows), [read_expression(name) for name in names], rows)


@SETTINGS
@given(st.lists(records, min_size=1, max_size=4))
def test_a_logarithm_is_the_nearest_step_or_beside_it(rows: Rows) -> None:
    trees = [
        read_expression({"ln": {"add": ["age", 4]}}),
        read_expression({"ln": {"clamp": "wide", "lower": 1, "upper": 10**9}}),
        read_expression({"ln": {"add": ["fine", 0.001]}}),
    ]
    assert all(any(isinstance(each, Logarithm) for each in walk(tree)) for tree in trees)
    for row, values in zip(rows, computed(duckdb_source(rows), trees), strict=True):
        for tree, value in zip(trees, values, strict=True):
            truth = value_of(tree, counted(row), SCHEMA.kinds)
            assert (value is None) == (truth is None)
            assert value is None or abs(value - truth) <= Fraction(1, 1 << 20)


def test_the_definition_knows_grids() -> None:
    """The test can tell: another rounding, or bounds that are too narrow, would be seen."""
    tree = read_expression({"divide": ["age", 7]})
    assert value_of(tree, {"age": Fraction(3)}, SCHEMA.kinds) == Fraction(3, 7)
    product = read_expression({"multiply": ["wide", "wide"]})
    kind = product.kind(SCHEMA.kinds)
    assert isinstance(kind, NumberKind)
    assert kind.step > 1
    exact = Fraction(123456789) ** 2
    assert (
        value_of(product, {"wide": Fraction(123456789)}, SCHEMA.kinds)
        == math.floor(exact / kind.step + Fraction(1, 2)) * kind.step
    )


FORMS: list[Any] = [
    {"add": ["age", "pay"]},
    {"subtract": ["wide", "fine"]},
    {"multiply": ["wide", "wide"]},
    {"multiply": ["far", "wide"]},
    {"divide": ["pay", {"nullif": [{"subtract": ["age", 30]}, 0]}]},
    {"divide": ["wide", {"nullif": ["pay", 0]}]},
    {"sqrt": {"abs": "wide"}},
    {"floor": "pay"},
    {"ceil": {"divide": ["wide", 7]}},
    {"power": ["pay", 3]},
    {"least": ["age", "pay", 50]},
    {"coalesce": ["age", "given"]},
    {"clamp": {"days": ["start", "end"]}, "lower": -50, "upper": 365},
    {"hours": ["seen", "start"]},
    {"case": [[{"less": ["age", "pay"]}, "fine"], ["well", -1]], "else": "wide"},
    {"bins": "pay", "edges": [-1, 0.5, 18, 100]},
    {"substring": "region", "start": 1, "length": 5},
    {"upper": "region"},
    {"like": "town", "pattern": "%ham"},
    {"like": "town", "pattern": "a%_"},
    {"in": "town", "keys": ["Ham", "é"]},
    {"not": {"in": "region", "keys": ["north", "it's"]}},
    {"any": ["well", {"missing": "seen"}, {"at_least": ["start", {"date": "1970-01-01"}]}]},
    {"all": [{"less": ["start", "end"]}, {"not": "well"}]},
    {"not_equal": ["region", {"upper": "region"}]},
    *({period.value: "seen"} for period in TimePeriod),
    *({period.value: "start"} for period in TimePeriod if "hour" not in period.value),
    *({part.value: "seen"} for part in DatePart),
    *({part.value: "end"} for part in DatePart if part.value not in ("hour_number", "minute_of_hour")),
]
ODD_ROWS: Rows = [
    dict(zip(COLUMNS, cells, strict=True))
    for cells in [
        (None,) * 13,
        (
            31,
            12.5,
            -(1 << 40) + 7,
            20.25,
            0.25,
            "2.5",
            "north",
            7,
            True,
            "Kirkham",
            date(1970, 1, 1),
            date.max,
            datetime(1970, 1, 1),
        ),
        (-(1 << 63), math.nan, 0, math.inf, -0.0, "nan", "x", 0, False, "", date.min, date.min, datetime.max),
        (
            (1 << 63) - 1,
            -math.inf,
            (1 << 63) - 1,
            -1e300,
            1e300,
            "1e309",
            "",
            1,
            None,
            "a%b",
            date.max,
            None,
            datetime.min,
        ),
        (
            30,
            123456789.0,
            -(1 << 40),
            0.15,
            0.5,
            " 3 ",
            "it's",
            -2,
            True,
            "é",
            date(1968, 2, 29),
            date(2000, 2, 29),
            datetime(1969, 12, 31, 23, 59, 59, 999999),
        ),
        (
            120,
            -1e9,
            -(1 << 40) + 300,
            -0.7,
            1.0,
            "9" * 40,
            "North East",
            7,
            False,
            "two\nlines",
            date(1972, 3, 5),
            date(1, 1, 1),
            datetime(1970, 2, 3, 23, 59, 59),
        ),
        (
            0,
            5e-324,
            -(1 << 40) + 1,
            0.0,
            0.1,
            "true",
            "south",
            1,
            None,
            "Ham",
            date(1968, 2, 20),
            date(9999, 12, 31),
            datetime(1969, 12, 20),
        ),
        (
            1,
            999999999.4,
            -(1 << 40) + 2,
            199.95,
            0.999999,
            "x",
            "south",
            1,
            True,
            "x" * 201,
            date(1971, 12, 27),
            date(1600, 2, 29),
            datetime(1970, 1, 4, 12, 30),
        ),
    ]
]


@pytest.mark.parametrize("make", [duckdb_source, polars_source])
def test_some_expressions_of_odd_records(make: Callable[[Rows], Source]) -> None:
    check_alike(make(ODD_ROWS), [read_expression(form) for form in FORMS], ODD_ROWS)


@pytest.mark.slow
def test_spark_computes_the_same(spark: Any) -> None:
    kinds = {"VARCHAR": "string", "TIMESTAMP": "timestamp_ntz"}
    typed = ", ".join(f"`{name}` {kinds.get(kind, kind)}" for name, kind in KINDS.items())
    frame = spark.createDataFrame([tuple(row.values()) for row in ODD_ROWS], typed)
    check_alike(open_source(frame, SCHEMA), [read_expression(form) for form in FORMS], ODD_ROWS)
