"""Rounding in arrays is Python's own, number by number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sourdine.tables.intervals import rounded_row, rounded_rows


def by_itself(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([rounded_row(*row) for row in rows.T.tolist()]).reshape(-1, 3).T


@given(st.integers(-12, 20), st.integers(0, 4), st.integers(0, 2**32))
def test_arrays_are_rounded_as_python_rounds(power: int, kind: int, seed: int) -> None:
    """Numbers near ties and on them, widths that are powers of ten, decimals and whole numbers."""
    random, scale, size = np.random.default_rng(seed), 10.0**power, 200
    value = random.normal(size=size) * scale * 10 ** random.uniform(0, 6, size)
    half = scale * 10 ** random.uniform(-3, 3, size)
    if kind == 1:
        value, half = np.rint(value), np.rint(half) + 1
    if kind == 2:
        value, half = np.rint(value / scale * 4) * scale / 4, np.rint(half / scale * 8 + 1) * scale / 8
    if kind == 3:
        half = scale * 10.0 ** random.integers(-3, 4, size) / 2
    if kind == 4:
        value, half = np.rint(value * 100) / 100, np.full(size, 0.5)
    rows = np.stack([value, value - half, value + half * random.uniform(0.5, 1, size)])
    assert np.array_equal(np.stack(rounded_rows(*rows)), by_itself(rows))


def test_what_has_no_width_stays_as_it_is() -> None:
    ends = [np.array([1.2345, np.nan, 3.0, np.inf]) for _ in range(3)]
    ends[2][2] = np.inf
    assert np.array_equal(np.stack(rounded_rows(*ends)), np.stack(ends), equal_nan=True)


def test_an_interval_that_is_all_that_is_possible_keeps_its_ends() -> None:
    value, low, high = (np.full(3, x) for x in (12345.678, 0.0, 100000.0))
    assert [each[0] for each in rounded_rows(value, low, high)] == [12000.0, 0.0, 100000.0]
