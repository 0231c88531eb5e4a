import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.grid import Interval
from tests.errors import refusal_of

BOUNDS = st.fractions(Fraction(-(10**6)), Fraction(10**6), max_denominator=1000)


def declared(lower: object = 0, upper: object = 1, cells: object = 10) -> Interval:
    return Interval.declared("Test", lower, upper, cells, 1 << 28)


@given(BOUNDS, BOUNDS, st.integers(1, 1000), st.floats(-2e6, 2e6), st.floats(0, 2e6))
@example(Fraction(0), Fraction(1), 10, 0.05, 0.1)
@example(Fraction(0), Fraction(1), 10, 0.25, 0.5)
def test_values_never_land_farther_apart_than_counted(
    one: Fraction, other: Fraction, cells: int, value: float, apart: float
) -> None:
    """Rounding in floats, on a step that is no power of two, stays within the count."""
    lower, upper = min(one, other), max(one, other) + 1
    interval = declared(lower, upper, cells)
    moved = value + apart
    change = abs(Fraction(moved) - Fraction(value))
    places = interval.places("Test", [value, moved])
    assert places.min() >= 0
    assert places.max() <= cells
    if change:
        assert abs(int(places[1] - places[0])) <= interval.apart(Distance.l1(change, coordinates=1))


def test_changes_are_counted_in_places() -> None:
    """One more than whole steps, since floats may round the two ends of a step to different sides."""
    interval = declared()
    assert interval.apart(Distance.l1(Fraction(1, 10), coordinates=1)) == 2
    assert interval.apart(Distance.l1(Fraction(1, 11), coordinates=1)) == 1
    assert interval.apart(Distance.l1(Fraction(1, 10) - Fraction(1, 1 << 40), coordinates=1)) == 2
    assert interval.apart(Distance.l1(Fraction(1, 10), coordinates=3)) == 4
    assert interval.apart(Distance.l1(1, coordinates=1)) == 10
    assert interval.apart(Distance.l1(99, coordinates=2)) == 20
    with pytest.raises(UnsupportedLoss, match="coordinates"):
        interval.apart(Distance.l1(1))


def test_anything_finds_a_place() -> None:
    interval = declared(-1, 3, 4)
    values = [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.49, 0.5, 3.0]
    assert interval.places("Test", values).tolist() == [1, 4, 0, 4, 0, 1, 2, 4]
    assert interval.places("Test", np.array([True, False])).tolist() == [2, 1]
    assert interval.places("Test", [10**40, -(10**40), 1]).tolist() == [4, 0, 2]
    assert interval.places("Test", np.array([2**64 - 1], dtype=np.uint64)).tolist() == [4]
    assert interval.places("Test", np.float32(2.9)).tolist() == 4
    assert interval.places("Test", np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert interval.values(np.arange(5)).tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("values", [["1.5"], [1 + 2j], np.array(["2020-01-01"], dtype="M8[D]")])
def test_what_is_no_number_is_refused(values: object) -> None:
    with pytest.raises(InvalidParameter, match="given to Test must be numbers"):
        declared().places("Test", values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("lower", {"lower": math.nan}),
        ("lower", {"lower": -(2**81)}),
        ("upper", {"upper": 0}),
        ("upper", {"upper": Fraction(1, 2**101)}),
        ("cells", {"cells": 0}),
        ("cells", {"cells": 2**28 + 1}),
        ("cells", {"lower": 2**40, "upper": 2**40 + 1, "cells": 1000}),
    ],
)
def test_bad_bounds_name_themselves(name: str, fields: dict[str, object]) -> None:
    with refusal_of(name, "Test"):
        declared(**fields)


def test_a_width_covers_the_rounding_and_stays_in_the_interval() -> None:
    interval = declared(0, 1, 10)
    assert 0.25 < interval.width(2) < 0.2501
    assert interval.width(10) == pytest.approx(1.0, rel=1e-15)
