import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.tables.synthetic.measure import blocks, count_cells, pair_table, pair_tables


@settings(max_examples=40)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=7), st.integers(0, 60), st.integers(0, 2**32))
def test_every_pair_is_counted_as_one_by_one(sizes: list[int], count: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    codes = [dice.integers(0, size, count).astype(np.uint8) for size in sizes]
    tables = dict(pair_tables(codes, sizes))
    assert sorted(tables) == [(a, b) for a in range(len(sizes)) for b in range(a + 1, len(sizes))]
    for (a, b), table in tables.items():
        expected = np.zeros((sizes[a], sizes[b]), np.int64)
        for one, other in zip(codes[a].tolist(), codes[b].tolist(), strict=True):
            expected[one, other] += 1
        assert (table == expected).all()
        assert (pair_table(codes, sizes, (a, b)) == expected).all()


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=40))
def test_blocks_hold_each_column_once_and_few_cells(sizes: list[int]) -> None:
    packed = blocks(sizes)
    assert sorted(column for block in packed for column in block) == list(range(len(sizes)))
    assert all(len(block) == 1 or math.prod(sizes[each] for each in block) <= 256 for block in packed)


@pytest.mark.parametrize("count", [0, 1, (1 << 18) + 3])
def test_counts_do_not_depend_on_how_records_are_taken(count: int) -> None:
    codes = [np.arange(count) % 3, np.arange(count) % 2]
    assert count_cells(codes, [3, 2]).sum() == count
    assert count_cells(codes, [3, 2]).tolist() == count_cells([each[::-1] for each in codes], [3, 2]).tolist()
