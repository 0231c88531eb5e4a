"""Quantiles off a tree of counts: exact without noise, and every value in one bin of each level."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sourdine.frames import CountedValues
from sourdine.tables.tree import Tree, Walk, quantiles


def counted(values: list[int]) -> CountedValues:
    distinct, counts = np.unique(np.array(values, np.int64), return_counts=True)
    return CountedValues(distinct, np.cumsum(counts))


@given(st.integers(1, (1 << 31) + 2))
def test_a_tree_has_a_place_for_every_value_and_few_levels(size: int) -> None:
    tree = Tree.over(size)
    assert tree.fan**tree.height >= size
    assert tree.height <= 8
    assert 2 <= tree.fan <= 17


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_without_noise_a_quantile_is_exact(values: list[int], level: float) -> None:
    tree = Tree.over(501)
    asked: list[np.ndarray] = []

    def noisy(counts: np.ndarray) -> np.ndarray:
        asked.append(counts)
        return counts

    walk = Walk(tree, counted(values), noisy, 0.0)
    (place,), (low,), (high,) = quantiles(walk, [level], lambda many: 0.0)
    assert place == sorted(values)[max(int(np.ceil(level * len(values) - 1e-9)) - 1, 0)]
    assert low <= place <= high
    assert asked[0].sum() == len(values)
    assert all(counts.size == tree.fan and counts.min() >= 0 for counts in asked)


def test_bins_that_were_looked_at_keep_their_noise() -> None:
    drawn = []

    def noisy(counts: np.ndarray) -> np.ndarray:
        drawn.append(len(counts))
        return counts + len(drawn)

    tree = Tree.over(1000)
    walk = Walk(tree, counted(list(range(1000))), noisy, 0.0)
    first = quantiles(walk, [0.2, 0.5], lambda many: 1.0)
    many = len(drawn)
    second = quantiles(walk, [0.2, 0.5], lambda many: 1.0)
    assert len(drawn) == many
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_quantiles_and_their_ends_rise() -> None:
    random = np.random.default_rng(1)
    walk = Walk(
        Tree.over(1000),
        counted([5] * 20),
        lambda counts: counts + random.integers(-30, 30, counts.size),
        20.0,
    )
    for found in quantiles(walk, [0.1, 0.3, 0.5, 0.7, 0.9], lambda many: 40.0):
        assert np.all(np.diff(found) >= 0)
        assert found.min() >= 0
        assert found.max() <= 999
