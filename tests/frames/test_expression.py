"""What one record counts as: always within the declared steps, always as plain arithmetic says."""

import math
from collections.abc import Sequence
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.frames import Integer, Real
from sourdine.frames.cells import bins, literal, place, quoted, steps
from sourdine.frames.schema import Number, span
from tests.narrow import some

_DATABASE = duckdb.connect()  # of which each question has a cursor: to open one takes longer than to ask


def evaluated(expression: str, values: Sequence[float], kind: pa.DataType | None = None) -> list[int | None]:
    held = pa.table({"x": pa.array(values, kind or pa.float64())})
    relation = _DATABASE.cursor().from_arrow(held)
    return [row[0] for row in some(relation.query("held", f"SELECT {expression} FROM held")).fetchall()]


def nearby(value: float) -> list[float]:
    """A float with its neighbours on both sides."""
    return [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]


COLUMNS = st.tuples(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.sampled_from([None, 0.1, 0.3, 0.7, 1.0, 1 / 3, 2.5, 1e-3]),
)


@settings(max_examples=30)
@given(COLUMNS, st.lists(st.floats(width=64), max_size=30))
def test_steps_stay_within_the_span_and_near_the_value(
    column: tuple[float, float, float | None], others: list[float]
) -> None:
    lower, wide, granularity = column
    try:
        declared: Number = Real(lower=lower, upper=lower + wide, granularity=granularity)
    except ValueError:
        return
    step, (low, high) = declared.step, span(declared)
    halves = [float(step * (low + k) + step / 2) for k in range(4)] + [float(step * high - step / 2)]
    corners = [lower, declared.upper, 0.0, -0.0, 5e-324, 1e308, -1e308, *halves]
    values = [each for corner in corners for each in nearby(corner)] + others + [math.nan, math.inf]
    above = [
        None if each == -1 else (each or 0) + low
        for each in evaluated(place("x", declared, "DOUBLE"), values)
    ]
    assert evaluated(steps("x", declared, "DOUBLE"), values) == above
    for value, found in zip(values, above, strict=True):
        if not math.isfinite(value):
            assert found is None
            continue
        assert found is not None
        assert low <= found <= high
        clamped = min(max(Fraction(value), Fraction(lower)), Fraction(declared.upper))
        if clamped == value:
            assert abs(found - clamped / step) <= Fraction(1, 2) + Fraction(1, 1 << 10)
        else:
            assert found == (low if value < lower else high)


@settings(max_examples=15)
@given(st.integers(-(2**47), 2**47), st.integers(1, 2**31), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_whole_numbers_are_clamped_exactly(lower: int, wide: int, others: list[int]) -> None:
    try:
        declared = Integer(lower=lower, upper=lower + wide)
    except ValueError:
        return
    values = [lower - 1, lower, lower + 1, lower + wide, lower + wide + 1, -(2**63), 2**63 - 1, *others]
    found = evaluated(steps("x", declared, "BIGINT"), values, pa.int64())
    clamped = [min(max(value, lower), lower + wide) for value in values]
    assert found == clamped
    above = evaluated(place("x", declared, "BIGINT"), values, pa.int64())
    assert above == [each - lower for each in clamped]


def test_missing_takes_the_declared_value() -> None:
    declared = Real(lower=-1.0, upper=1.0, granularity=0.5, missing=0.5)
    held = some(duckdb.sql("SELECT unnest(['', 'x', NULL, 'nan', 'inf', '0.5', '7', '-1e999', '0x1']) AS x"))
    found = some(held.query("held", f"SELECT {steps('x', declared, 'VARCHAR')} FROM held")).fetchall()
    assert [row[0] for row in found] == [1, 1, 1, 1, 1, 1, 2, 1, 1]


EDGES = st.lists(st.integers(-50, 50), min_size=2, max_size=9, unique=True).map(sorted)
EVEN = st.tuples(st.integers(-50, 50), st.integers(1, 9), st.integers(1, 9)).map(
    lambda t: [t[0] + t[1] * i for i in range(t[2] + 1)]
)


@settings(max_examples=40)
@given(st.one_of(EDGES, EVEN))
def test_bins_are_those_of_numpy(edges: list[int]) -> None:
    values = list(range(edges[0] - 12, edges[-1] + 13))
    grouped = bins("x", '"x"', tuple(edges))
    known = grouped.known("raw")
    relation = _DATABASE.cursor().from_arrow(pa.table({"x": pa.array(values)}))
    question = f"SELECT {known} FROM (SELECT {grouped.raw} AS raw FROM held)"
    found = some(relation.query("held", question)).fetchall()
    places = np.searchsorted(edges, values, side="right") - 1
    last = len(edges) - 2
    expected = [
        last if value == edges[-1] else int(place) if 0 <= place <= last else None
        for value, place in zip(values, places, strict=True)
    ]
    assert [row[0] for row in found] == expected
    counted, _ = np.histogram(values, edges)
    assert [sum(row[0] == i for row in found) for i in range(len(edges) - 1)] == counted.tolist()


@settings(max_examples=40)
@given(st.one_of(EDGES, EVEN), st.integers(1, 60), st.integers(-3, 3))
def test_bins_of_places_leave_out_what_is_missing(edges: list[int], most: int, shift: int) -> None:
    """Places go from 0 to the most, and -1 is missing."""
    moved = [edge - edges[0] + shift for edge in edges]
    places = [-1, -1, *range(most + 1)]
    grouped = bins("x", '"x"', tuple(moved), most)
    relation = _DATABASE.cursor().from_arrow(pa.table({"x": pa.array(places)}))
    question = f"SELECT {grouped.known('raw')} FROM (SELECT {grouped.raw} AS raw FROM held)"
    found = [row[0] for row in some(relation.query("held", question)).fetchall()]
    counted, _ = np.histogram(places[2:], moved)
    assert grouped.keys == tuple(range(len(edges) - 1))
    assert [found.count(key) for key in grouped.keys] == counted.tolist()
    assert found[:2] == [None, None]


@pytest.mark.parametrize("text", ["", "it's", 'say "hi"', "é", "a;--", "%", "\\", "\n", "💧", "NULL"])
def test_names_and_constants_are_quoted(text: str) -> None:
    assert some(duckdb.sql(f"SELECT {literal(text)}")).fetchall() == [(text,)]
    if text:
        assert some(duckdb.sql(f"SELECT 1 AS {quoted(text)}")).columns == [text]


@given(st.floats(allow_nan=False))
def test_a_float_keeps_all_its_bits(value: float) -> None:
    ((found,),) = some(duckdb.sql(f"SELECT {literal(value)}")).fetchall()
    assert found == value
    assert math.copysign(1, found) == math.copysign(1, value)
