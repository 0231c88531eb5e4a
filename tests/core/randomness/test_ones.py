"""Counts of ones against unpacked bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sourdine.core.random import packed
from sourdine.testing import SeededBits


@given(st.data())
def test_columns_and_rows_of_any_bits(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(0, 600), st.integers(1, 4)))
    bits = data.draw(st.integers(1, 8 * shape[1]))
    rows = data.draw(arrays(np.uint8, shape))
    plain = np.unpackbits(rows, axis=1)
    assert np.array_equal(packed.by_column(rows, bits), plain[:, :bits].sum(axis=0))
    assert np.array_equal(packed.by_row(rows), plain.sum(axis=1))


@pytest.mark.parametrize("count", [255, 256, 257, 8192, 8193, 20_000])
def test_columns_of_many_rows(count: int) -> None:
    rows = SeededBits(1).words(2 * count).view(np.uint8).reshape(count, 16)[:, :13]
    assert np.array_equal(packed.by_column(rows, 101), np.unpackbits(rows, axis=1)[:, :101].sum(axis=0))
    full = np.full((count, 2), 255, np.uint8)
    assert packed.by_column(full, 16).tolist() == [count] * 16
