import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.core.distance import Neighbours
from sourdine.frames.rank_counts import SeparateRanks, SortedPlaces
from sourdine.tables.quantiles.method import Targets, around, gap_at
from tests.tables.quantiles import brute

RELATIONS = [brute.REPLACE, brute.ADD_REMOVE]


def check_around(
    values: tuple[int, ...], level: Fraction, relation: Neighbours, places: int, reach: int, radius: int
) -> None:
    """Every place is in one segment, with its gap, or in a tail with a bound of it."""
    others = [SortedPlaces(np.array(each, np.int64)) for each in ((), (0, 0, places - 1))]
    mine = SortedPlaces(np.array(values, np.int64))
    source = SeparateRanks((), (others[0], mine, others[1]))
    target = Targets.of(level, source.sizes, relation)
    grids = np.array([places, places, places])
    held = around(source, np.arange(1, 3), target, places=grids, reach=reach, radius=radius)
    segments = held.segments
    covered = [
        t
        for first, size in zip(segments.first[0], segments.size[0], strict=True)
        for t in range(first, first + size)
    ]
    assert covered == list(range(places))
    assert segments.size.sum(axis=1).tolist() == [places, places]
    rows = zip(segments.first[0], segments.size[0], segments.gap[0], held.tail[0], strict=True)
    for first, size, found, tail in rows:
        for t in range(first, first + size):
            true = brute.smooth_gap(values, t, level, relation, places, radius) * target.unit
            assert found <= true if tail else found == true
            assert radius or gap_at(source, 1, target, t) == true


@pytest.mark.parametrize("relation", RELATIONS)
def test_segments_have_the_gaps_of_all_their_places(relation: Neighbours) -> None:
    for places, size in [(2, 3), (3, 0), (3, 1), (4, 3), (5, 2)]:
        for values in brute.datasets(places, size):
            for level, reach, radius in itertools.product(brute.TENTHS[::2], (0, 7, 99), (0, 1, 9)):
                check_around(values, level, relation, places, reach, radius)


@pytest.mark.slow
@settings(max_examples=120)
@given(
    st.integers(1, 40).flatmap(
        lambda places: st.tuples(
            st.just(places), st.lists(st.integers(0, places - 1), max_size=25).map(sorted).map(tuple)
        )
    ),
    st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20),
    st.sampled_from(RELATIONS),
    st.integers(0, 60),
    st.integers(0, 45),
)
def test_segments_of_more_values(
    grid: tuple[int, tuple[int, ...]], level: Fraction, relation: Neighbours, reach: int, radius: int
) -> None:
    check_around(grid[1], level, relation, grid[0], reach, radius)


def test_what_lies_beyond_the_reach_is_in_a_tail() -> None:
    source = SeparateRanks.alone(SortedPlaces(np.arange(0, 4000, 2)))
    target = Targets.of(Fraction(1, 2), source.sizes, brute.REPLACE)
    held = around(source, np.array([0]), target, places=np.array([4000]), reach=10)
    assert held.segments.first.size < 60
    assert held.tail[0].tolist() == [True, *[False] * (held.tail.size - 2), True]
    assert held.segments.gap[0, [0, -1]].min() >= 10


def test_a_gap_is_the_number_of_values_to_replace() -> None:
    """By trying all replacements, fewest first."""
    places = 3
    for values, level in itertools.product(brute.datasets(places, 4), brute.TENTHS):
        rank = int(Targets.of(level, np.array([4]), brute.REPLACE).low[0])
        reached: dict[int, int] = {}
        near = {values}
        for steps in range(5):
            for each in near:
                reached.setdefault(each[rank - 1], steps)
            near = set().union(*(brute.replaced(each, places) for each in near))
        assert {t: brute.gap(values, t, level, brute.REPLACE) for t in range(places)} == reached


@pytest.mark.parametrize("relation", RELATIONS)
def test_one_value_moves_no_gap_by_more_than_is_paid_for(relation: Neighbours) -> None:
    places = 4
    for size in range(5):
        for values in brute.datasets(places, size):
            for other, level in itertools.product(brute.neighbours(values, places, relation), brute.TENTHS):
                most = 1 if relation is brute.REPLACE else max(level, 1 - level)
                for t in range(places):
                    one, two = (brute.gap(each, t, level, relation) for each in (values, other))
                    assert abs(one - two) <= most


def test_many_values_at_a_fine_level_do_not_overflow() -> None:
    level = Fraction(1, (1 << 20) - 1)
    target = Targets.of(level, np.array([1 << 40]), brute.ADD_REMOVE)
    below = np.array([0, 1 << 20, 1 << 40])
    exact = [abs(int(c) * target.unit - int(target.low[0])) for c in below]
    assert target.gaps(np.zeros(3, np.int64), below, below).tolist() == exact
