"""Shapes against a search over every set of categories that may stay above 0."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.local import non_negative, norm_sub, simplex

VALUES = st.lists(st.floats(-2, 2), min_size=1, max_size=6)


def nearest(values: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex: on each face the foot of the perpendicular, if it is inside."""
    best, least = np.zeros(0), np.inf
    for size in range(1, len(values) + 1):
        for face in itertools.combinations(range(len(values)), size):
            point = np.zeros(len(values))
            chosen = list(face)
            point[chosen] = values[chosen] + (1 - values[chosen].sum()) / size
            distance = float(((point - values) ** 2).sum())
            if point.min() >= -1e-12 and distance < least:
                best, least = point, distance
    return best


def shifted(values: np.ndarray) -> np.ndarray:
    """Cut, shift what is above 0, and again, as the method is told."""
    left = np.maximum(values, 0.0)
    if not left.any():
        return np.full(len(left), 1 / len(left))
    for _ in range(100):
        above = left > 0
        left = np.where(above, left + (1 - left.sum()) / above.sum(), 0.0)
        if left.min() >= 0:
            return left
        left = np.maximum(left, 0.0)
    raise AssertionError("it does not end")


@given(VALUES)
def test_simplex_is_the_nearest_point(values: list[float]) -> None:
    found = simplex(values)
    assert found == pytest.approx(nearest(np.array(values)), abs=1e-9)
    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0


@given(VALUES)
def test_norm_sub_is_what_its_steps_end_in(values: list[float]) -> None:
    found = norm_sub(values)
    assert found == pytest.approx(shifted(np.array(values)), abs=1e-9)
    assert found.sum() == pytest.approx(1)
    if np.maximum(values, 0).sum() >= 1:
        assert found == pytest.approx(simplex(values), abs=1e-9)


def test_norm_sub_leaves_at_0_what_it_cut() -> None:
    values = [0.5, 0.25, -0.0625]
    assert norm_sub(values)[2] == 0 < simplex(values)[2]
    assert norm_sub([-1.0, -0.5]).tolist() == [0.5, 0.5]


@given(st.lists(st.floats(-2, 2), min_size=12, max_size=12))
def test_the_last_axis_holds_the_categories(values: list[float]) -> None:
    table = np.array(values).reshape(3, 4)
    for shape in (simplex, norm_sub, non_negative):
        assert np.array_equal(shape(table), np.stack([shape(row) for row in table]))


def test_non_negative_only_cuts() -> None:
    assert non_negative([-0.5, 0.0, 0.25, 1.5]).tolist() == [0.0, 0.0, 0.25, 1.5]


def test_shares_in_shape_stay() -> None:
    shares = np.array([0.5, 0.25, 0.25, 0.0])
    for shape in (simplex, norm_sub, non_negative):
        assert np.array_equal(shape(shares), shares)


@pytest.mark.parametrize("bad", [1.0, [], [0.5, float("nan")], [float("inf")], np.zeros((2, 0))])
def test_what_is_no_shares_is_refused(bad: object) -> None:
    for shape in (simplex, norm_sub, non_negative):
        with pytest.raises(InvalidParameter, match="finite numbers, one a category"):
            shape(bad)  # type: ignore[arg-type]
