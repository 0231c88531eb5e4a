"""Values of many groups in one array: the same counts as each group gives by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sourdine.frames.cells import Grouping
from sourdine.frames.rank_counts import CountedGroups, GroupRanks, SeparateRanks, SortedGroups

PLACES = 9
records = st.lists(st.tuples(st.integers(0, 4), st.integers(0, PLACES - 1)), max_size=40)


def grouped(count: int) -> tuple[Grouping, ...]:
    return (Grouping(name="k", raw="k", keys=tuple(range(count))),)


def held(values: list[tuple[int, int]]) -> list[GroupRanks]:
    """The same values sorted, with some that do not count, in 32 and in 64 bits, and counted."""
    codes = np.array([group * PLACES + value for group, value in values], np.int64)
    distinct, counts = np.unique(codes, return_counts=True)
    shuffled = np.random.default_rng(0).permutation(distinct.size)
    return [
        SortedGroups(grouped(5), np.sort(np.append(codes, [-1, -1])).astype(np.int32), PLACES),
        SortedGroups(grouped(5), np.sort(codes), PLACES),
        CountedGroups.of(grouped(5), distinct[shuffled], counts[shuffled], PLACES),
    ]


@given(records)
def test_every_way_to_hold_groups_counts_alike(values: list[tuple[int, int]]) -> None:
    groups, places = (axis.ravel() for axis in np.meshgrid(np.arange(5), np.arange(-2, PLACES + 3)))
    expected = [
        sum(g == group and v < place for g, v in values) for group, place in zip(groups, places, strict=True)
    ]
    for each in held(values):
        assert each.count_below(groups, places).tolist() == expected
        apart = SeparateRanks(grouped(5), tuple(each.parts()))
        assert apart.count_below(groups, places).tolist() == expected
        for group, part in enumerate(each.parts()):
            mine = sorted(v for g, v in values if g == group)
            assert part.size == len(mine)
            assert part.values_between(-1, 99).tolist() == mine
            assert part.values_between(1, 3).tolist() == mine[1:3]
            assert each[(group,)].size == len(mine)


def test_codes_reach_the_last_of_their_type() -> None:
    places = (1 << 31) - 1
    top = SortedGroups(grouped(1), np.array([0, places - 1], np.int32), places)
    ends = np.array([0, places - 1, places, places + 5])
    assert top.count_below(np.zeros(4, np.int64), ends).tolist() == [0, 1, 2, 2]


def test_groups_are_a_mapping_by_their_keys() -> None:
    codes = np.array([0, 3, PLACES + 1], np.int64)
    ranks = SortedGroups(grouped(2), codes, PLACES)
    assert list(ranks) == [(0,), (1,)]
    assert len(ranks) == 2
    assert {key: part.size for key, part in ranks.items()} == {(0,): 2, (1,): 1}
