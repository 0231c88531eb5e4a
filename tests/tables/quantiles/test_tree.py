"""Quantiles off a tree of counts: exact without noise, and every value in one bin of each level."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sourdine.frames import CountedValues, RankSource, Schema, open_source
from sourdine.frames import rank_counts as levels_module
from sourdine.frames.cells import Grouping
from sourdine.frames.rank_counts import GroupRanks, Ints, Levels, SeparateRanks, SortedGroups, SortedPlaces
from sourdine.mechanisms import Laplace
from sourdine.tables.quantiles.tree import BinTree, TreeWalk, quantiles, read_quantiles
from sourdine.testing import SeededBits
from tests.statistics import ALARM

ONE = np.zeros(1, np.int64)


def counted(values: list[int]) -> CountedValues:
    distinct, counts = np.unique(np.array(values, np.int64), return_counts=True)
    return CountedValues(distinct, np.cumsum(counts))


def alone(values: list[int]) -> SeparateRanks:
    return SeparateRanks.alone(counted(values))


@given(st.integers(1, (1 << 31) + 2))
def test_a_tree_has_a_place_for_every_value_and_few_levels(size: int) -> None:
    tree = BinTree.over(size)
    assert tree.fan**tree.height >= size
    assert tree.height <= 8
    assert 2 <= tree.fan <= 17


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_without_noise_a_quantile_is_exact(values: list[int], level: float) -> None:
    tree = BinTree.over(501)
    asked: list[np.ndarray] = []

    def noisy(counts: np.ndarray) -> np.ndarray:
        asked.append(counts)
        return counts

    walk = TreeWalk(tree, alone(values), noisy, 0.0)
    ((place,),), ((low,),), ((high,),) = quantiles(walk, ONE, [level], np.zeros_like)
    assert place == sorted(values)[max(int(np.ceil(level * len(values) - 1e-9)) - 1, 0)]
    assert low <= place <= high
    assert asked[0].sum() == len(values)
    assert all(counts.size % tree.fan == 0 and counts.min() >= 0 for counts in asked)


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 16))
def test_a_flat_tree_is_one_level_of_few_bins_over_all_places(size: int, bins: int) -> None:
    tree = BinTree.flat(size, bins)
    assert tree.height == 1
    assert tree.fan * tree.leaf >= size > (tree.fan - 1) * tree.leaf or size == 1
    assert tree.fan <= max(bins, 2)
    assert BinTree.flat(size, tree.fan) == tree  # so that the number of bins tells the tree
    assert BinTree.flat(size, max(size, 2)) == BinTree(size, max(size, 2), 1)


@given(st.lists(st.integers(0, 99), min_size=1, max_size=60), st.floats(0.01, 0.99), st.integers(2, 120))
def test_without_noise_a_flat_tree_finds_the_bin(values: list[int], level: float, bins: int) -> None:
    tree = BinTree.flat(100, bins)
    walk = TreeWalk(tree, alone(values), lambda counts: counts, 0.0)
    ((place,),), ((low,),), ((high,),) = quantiles(walk, ONE, [level], np.zeros_like)
    right = sorted(values)[max(int(np.ceil(level * len(values) - 1e-9)) - 1, 0)]
    assert low <= place <= high <= 99
    assert low <= right <= high
    assert place // tree.leaf == right // tree.leaf


def test_within_a_bin_values_are_taken_as_spread_evenly() -> None:
    walk = TreeWalk(BinTree.flat(103, 10), alone(list(range(103))), lambda counts: counts, 0.0)
    places, _, _ = quantiles(walk, ONE, [i / 20 for i in range(1, 20)], np.zeros_like)
    assert np.abs(places - np.arange(1, 20) * 103 / 20).max() <= 1.5


LAWS = {
    "even": np.linspace(0, 999, 200).astype(np.int64),
    "skew": np.minimum(np.geomspace(1, 900, 200), 999).astype(np.int64),
    "ties": np.repeat([100, 400, 410], [90, 80, 30]),
    "constant": np.full(200, 370),
    "few": np.array([3, 500, 990]),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bins", [5, *(pytest.param(bins, marks=pytest.mark.slow) for bins in (16, 1000))])
def test_intervals_of_a_flat_tree_hold(law: str, bins: int) -> None:
    """As often as they say, whatever lies in a bin."""
    values, at, tries = np.sort(LAWS[law]), [0.1, 0.5, 0.8], 200
    mechanism, bits, tree = Laplace(scale=2), SeededBits(3), BinTree.flat(1000, bins)
    exact = values[np.ceil(np.array(at) * values.size - 1e-9).astype(int) - 1]
    held = np.zeros(len(at), int)
    for _ in range(tries):
        read = read_quantiles(
            SeparateRanks.alone(SortedPlaces(values)),
            tree,
            mechanism=mechanism,
            levels=at,
            confidence=0.9,
            bits=bits,
        )
        held += (read.lower <= exact) & (exact <= read.upper)
    assert held.min() >= binom.ppf(ALARM, tries, 0.9)


def test_bins_that_were_looked_at_keep_their_noise() -> None:
    drawn = []

    def noisy(counts: np.ndarray) -> np.ndarray:
        drawn.append(len(counts))
        return counts + len(drawn)

    tree = BinTree.over(1000)
    walk = TreeWalk(tree, alone(list(range(1000))), noisy, 0.0)
    first = quantiles(walk, ONE, [0.2, 0.5], np.ones_like)
    many = len(drawn)
    second = quantiles(walk, ONE, [0.2, 0.5], np.ones_like)
    assert len(drawn) == many
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_quantiles_and_their_ends_rise() -> None:
    random = np.random.default_rng(1)
    walk = TreeWalk(
        BinTree.over(1000),
        alone([5] * 20),
        lambda counts: counts + random.integers(-30, 30, counts.size),
        20.0,
    )
    for found in quantiles(walk, ONE, [0.1, 0.3, 0.5, 0.7, 0.9], lambda many: np.full_like(many, 40.0)):
        assert np.all(np.diff(found) >= 0)
        assert found.min() >= 0
        assert found.max() <= 999


@pytest.mark.parametrize("scale", [1, 8, 200])
@pytest.mark.parametrize("room", [20, 1 << 20])
def test_the_same_seed_finds_the_same_however_values_are_held(
    scale: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, sorted, or in bins: with room for few of them the walk leaves those that were cut for it."""
    tree, at = BinTree.over(5000), [0.1, 0.5, 0.9]
    chance = np.random.default_rng(scale)
    values = np.sort(np.clip(chance.normal(2500, 900, 4000).astype(np.int32), 0, 4999))
    source = open_source(pa.table({"v": values}), Schema.read({}), ["v"])
    cut_later: list[int] = []
    finer = Levels.finer
    monkeypatch.setattr(levels_module, "MOST_ROWS", room)

    def note(self: Levels, groups: Ints, starts: Ints, widths: Ints) -> None:
        cut_later.append(1)
        finer(self, groups, starts, widths)

    monkeypatch.setattr(Levels, "finer", note)
    levels = Levels(source, f'SELECT "v" AS value FROM {source.name}', [], tree.widths, 1)
    (binned,) = levels.open(tree.size, at)

    def found(held: RankSource) -> list[list[float]]:
        mechanism, bits = Laplace(scale=scale), SeededBits(scale)
        groups = SeparateRanks.alone(held)
        read = read_quantiles(groups, tree, mechanism=mechanism, levels=at, confidence=0.95, bits=bits)
        return [part.tolist() for part in vars(read).values() if part is not None]

    expected = found(counted(values.tolist()))
    assert found(SortedPlaces(values)) == expected
    assert found(binned) == expected
    assert bool(cut_later) == (room == 20)


def test_groups_side_by_side_are_read_as_each_by_itself() -> None:
    """Without noise to tell them apart: what one group holds never moves another's answer."""
    chance, places, levels = np.random.default_rng(5), 400, [0.1, 0.5, 0.95]
    groups = [np.sort(chance.integers(0, places, size)) for size in (0, 1, 7, 300, 40)]
    exact = Laplace(scale=Fraction(1, 64))
    codes = np.concatenate([group * places + values for group, values in enumerate(groups)])
    by = (Grouping(name="k", raw="k", keys=tuple(range(len(groups)))),)
    tree = BinTree.over(places)

    def read(values: GroupRanks) -> np.ndarray:
        found = read_quantiles(
            values, tree, mechanism=exact, levels=levels, confidence=0.95, bits=SeededBits(1)
        )
        return np.stack([found.value, found.lower, found.upper]).reshape(3, -1, len(levels))

    together = read(SortedGroups(by, codes, places))
    for number, values in enumerate(groups):
        assert np.array_equal(read(SeparateRanks.alone(SortedPlaces(values)))[:, 0], together[:, number])


def test_a_bin_is_drawn_once_for_every_walk_that_meets_it() -> None:
    tree, drawn = BinTree.over(4000), []

    def noisy(counts: np.ndarray) -> np.ndarray:
        drawn.append(counts.size // tree.fan)
        return counts

    values = SeparateRanks((), (counted([5, 9, 700]), counted([3999]), counted([])))
    walk, groups = TreeWalk(tree, values, noisy, 0.0), np.arange(3)
    quantiles(walk, groups, [0.25, 0.5, 0.75], np.ones_like)
    seen = sum(drawn)
    assert seen == sum(each.codes.size for each in walk.levels.values())
    quantiles(walk, groups, [0.5], np.ones_like)
    assert sum(drawn) == seen
