"""Least squares against dense matrices, and whole numbers that add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sourdine.tables.consistent import Crossed, Nested, diffused, shared_out

Structure = Crossed | Nested
_RANDOM = np.random.default_rng(11)


def tree(towns: int = 23) -> Nested:
    """A hierarchy whose nodes have unlike many parts, in no order."""
    paths = [(f"r{i % 3}", f"d{i % 3}{i % 7}", f"t{i}") for i in range(towns)]
    return Nested(tuple(paths[i] for i in np.random.default_rng(2).permutation(towns)))


STRUCTURES: dict[str, Structure] = {
    "tree": tree(),
    "a chain": Nested((("a", "b", "c"),)),
    "two columns": Crossed((3, 5), ((0, 1), (), (0,), (1,))),
    "some margins": Crossed((2, 3, 4), ((0, 1, 2), (1, 2), (0,))),
    "cells alone": Crossed((2, 3), ((0, 1),)),
    "all margins": Crossed((2, 3, 4), ((0, 1, 2), (), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))),
}


def sums(held: Structure) -> NDArray[np.float64]:
    """What each number is the sum of: a row for each, a column for each cell."""
    return held.exact(np.eye(held.cells, dtype=np.int64)).T.astype(float)


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_best_estimate_is_that_of_least_squares(name: str) -> None:
    held = STRUCTURES[name]
    matrix = sums(held)
    projection = matrix @ np.linalg.pinv(matrix)
    noisy = _RANDOM.normal(size=(4, len(matrix)))
    np.testing.assert_allclose(held.best(noisy), noisy @ projection.T, atol=1e-9)
    np.testing.assert_allclose(held.variances, np.diag(projection), atol=1e-9)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("noise", [0.3, 4.0, 50.0])
def test_whole_numbers_are_not_negative_and_add_up(name: str, noise: float) -> None:
    held = STRUCTURES[name]
    cells = _RANDOM.poisson(3, (5, held.cells)) * _RANDOM.integers(0, 2, (5, held.cells))
    exact = held.exact(cells)
    found = held.whole(exact.astype(float) + np.rint(_RANDOM.laplace(size=exact.shape) * noise))
    assert (found >= 0).all()
    matrix = sums(held).astype(np.int64)
    alone = np.flatnonzero(matrix.sum(axis=1) == 1)
    own = np.zeros((5, held.cells), np.int64)
    for row in alone:
        own[:, matrix[row].argmax()] = found[:, row]
    np.testing.assert_array_equal(found, own @ matrix.T)


@pytest.mark.parametrize("name", STRUCTURES)
def test_without_noise_nothing_changes(name: str) -> None:
    held = STRUCTURES[name]
    exact = held.exact(_RANDOM.poisson(2, (3, held.cells)))
    np.testing.assert_array_equal(held.whole(exact.astype(float)), exact)


@given(
    st.lists(st.floats(-20, 20), min_size=1, max_size=6),
    st.integers(0, 40),
    st.integers(1, 3),
)
@settings(max_examples=60)
def test_parts_of_a_total_are_the_nearest_ones(values: list[float], total: int, weight: int) -> None:
    """By brute force: the point of the simplex is where the slope is even among what stays."""
    many = np.array(values)
    weights = np.ones(len(values)) * weight
    found = shared_out(many, weights, np.zeros(len(values), np.int64), np.array([total]))
    assert found.sum() == total
    assert (found >= 0).all()
    low, high = many.min() - total - 1, many.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(many - middle, 0).sum() > total else (low, middle)
    assert np.abs(found - np.maximum(many - low, 0)).max() < 1 + 1e-6


def test_rounding_carries_errors_along() -> None:
    table = _RANDOM.random((60, 80)) * 3
    found = diffused(table, ((0, 1), (0,), (1,), ()))
    assert np.abs(found - table).max() < 1
    assert abs(found.sum() - table.sum()) < 2
    for axis in (0, 1):
        off = found.sum(axis=axis) - table.sum(axis=axis)
        alone = np.rint(table).sum(axis=axis) - table.sum(axis=axis)
        assert np.abs(off).max() < 2
        assert np.std(off) < np.std(alone) / 2


@pytest.mark.parametrize("name", ["tree", "two columns", "all margins"])
@pytest.mark.parametrize("noise", [1.0, 10.0])
def test_never_worse_than_the_raw_numbers(name: str, noise: float) -> None:
    """Level by level, mean squares over many draws; a rule that only rounds the noisy numbers would fail."""
    held = STRUCTURES[name]
    draws = 400
    cells = np.random.default_rng(3).poisson(4, (1, held.cells)) * (np.arange(held.cells) % 3 > 0)
    exact = held.exact(cells)
    drawn = np.rint(np.random.default_rng(4).laplace(size=(draws, exact.shape[1])) * noise)
    found = held.whole(exact.astype(float) + drawn)
    merged = sums(held).sum(axis=1)
    for many in np.unique(merged):
        level = merged == many
        ours, raw = ((found - exact)[:, level] ** 2).mean(), (drawn[:, level] ** 2).mean()
        assert ours < raw * 1.02 + 0.05
    assert ((found - exact) ** 2).mean() < 0.9 * (drawn**2).mean()
