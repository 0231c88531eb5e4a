"""Derived columns: bounds that files can tell, and values that stay within them."""

from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema, open_source
from sourdine.frames.expressions import NumberKind
from sourdine.frames.schema import DERIVED, DerivedInteger, DerivedReal, span

COLUMNS: dict[str, Any] = {
    "tiny": {"type": "real", "lower": -1e-9, "upper": 1e-9},
    "fine": {"type": "real", "lower": 0.0, "upper": 1.0},
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "far": {"type": "integer", "lower": -(1 << 40), "upper": -(1 << 40) + 300},
}
CELLS = {
    "tiny": [1e-9, -1e-9, 3e-10, None],
    "fine": [0.1, 1.0, 0.999, 0.5],
    "age": [0, 120, 31, 7],
    "far": [-(1 << 40), -(1 << 40) + 300, -(1 << 40) + 7, 0],
}


@pytest.mark.parametrize(
    "form",
    [
        {"power": ["tiny", 2]},
        {"power": ["tiny", 3]},
        {"clamp": {"power": ["tiny", 2]}, "lower": 0, "upper": 50},
        {"multiply": ["tiny", "fine"]},
        {"divide": ["age", 7]},
        {"divide": ["fine", {"nullif": ["age", 0]}]},
        {"multiply": ["far", "far"]},
        {"multiply": ["far", 1e-30]},
        {"multiply": [{"sqrt": {"abs": "far"}}, "far"]},  # whole, on a grid coarser than 1
        {"sqrt": "fine"},
    ],
    ids=str,
)
def test_a_derived_column_stays_within_its_bounds(form: Any) -> None:
    schema = Schema.read({**COLUMNS, "x": {"expression": form}})
    column = schema.columns["x"]
    assert isinstance(column, DerivedInteger | DerivedReal)
    kind = column.expression.kind(schema.base.kinds)
    assert isinstance(kind, NumberKind)
    assert kind.lower >= Fraction(column.lower) - column.step
    source = open_source(pl.DataFrame(CELLS), schema)
    low, high = span(column)
    places = [row[0] for row in source.ask(f"SELECT {source.place_of('x')} FROM {source.view}")]
    assert all(-1 <= place <= high - low for place in places)
    assert max(places) > 0
    assert Schema.read({**COLUMNS, "x": column.model_dump()}) == schema


def test_columns_may_be_computed_of_computed_ones() -> None:
    schema = Schema.read(
        {
            "c": {"expression": {"multiply": ["b", 2]}},
            "b": {"expression": {"add": ["age", 1]}},
            **COLUMNS,
        }
    )
    assert list(schema.columns)[:2] == ["c", "b"]
    assert schema.sources(["c"]) == ("age",)
    assert not isinstance(schema.base.columns["age"], DERIVED)
    source = open_source(pl.DataFrame(CELLS), schema)
    assert [row[0] for row in source.ask(f"SELECT {source.steps_of('c')} FROM {source.view}")] == [
        2,
        242,
        64,
        16,
    ]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"b": {"expression": {"add": ["c", 1]}}, "c": {"expression": {"add": ["b", 1]}}}, "of each other"),
        ({"b": {"expression": {"add": ["age", 1]}, "lower": 0}}, "a lower and an upper bound or neither"),
        ({"b": {"expression": {"multiply": ["age", 0]}}}, "the same for every record"),
        ({"b": {"expression": "nobody"}}, "'nobody' is not declared"),
    ],
)
def test_what_is_no_derived_column_is_refused(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        Schema.read({**COLUMNS, **columns})


def test_a_derived_column_is_not_called_as_one_of_the_table() -> None:
    schema = Schema.read({"age": COLUMNS["age"], "fine": {"expression": {"add": ["age", 1]}}})
    with pytest.raises(InvalidParameter, match="'fine' is derived"):
        open_source(pl.DataFrame(CELLS), schema)
