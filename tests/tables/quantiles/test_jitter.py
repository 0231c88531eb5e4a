import numpy as np
import pytest

from sourdine.frames.rank_counts import SortedPlaces
from sourdine.tables.quantiles import method as jitter
from sourdine.tables.quantiles.method import FineRanks, Jittered, SetApart, fine_bits
from sourdine.testing import SeededBits
from tests.statistics import ALARM, fit

VALUES = [0, 0, 0, 3, 4, 4, 9]


def jittered(values: list[int], places: int = 10, seed: int = 0) -> Jittered:
    return Jittered(SortedPlaces(np.array(values, np.int64)), places, SeededBits(seed))


def test_values_stay_in_their_step_and_rise() -> None:
    found = jittered(VALUES).between(0, 7)
    assert (found >> fine_bits(10)).tolist() == VALUES
    assert np.all(np.diff(found) >= 0)
    assert len(set(found.tolist())) == 7


@pytest.mark.parametrize("ranges", [[(2, 5), (0, 7)], [(4, 6), (1, 2), (0, 4)], [(6, 7), (0, 1), (1, 6)]])
def test_a_value_is_set_apart_once_however_it_is_looked_at(ranges: list[tuple[int, int]]) -> None:
    held = jittered(VALUES)
    first = [held.between(*each) for each in ranges]
    whole = held.between(0, 7)
    for (low, high), part in zip(ranges, first, strict=True):
        np.testing.assert_array_equal(part, whole[low:high])


@pytest.mark.parametrize("block", [1, 4, 1 << 10])
def test_ranks_and_places_agree(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is looked at first, and together: counts below are those of the fine places in order."""
    monkeypatch.setattr(jitter, "_BLOCK", block)
    held = FineRanks(jittered(VALUES))
    counted = held.count_below([[0, 3 << 20, (3 << 20) + 500_000], [4 << 20, 9 << 20, 10 << 20]])
    fine = held.values_between(0, 7)
    assert held.size == 7
    assert counted[1].tolist() == [4, 6, 7]
    assert counted[0].tolist() == [0, 3, 3 + int(fine[3] < (3 << 20) + 500_000)]
    spots = np.sort(np.concatenate([fine, fine + 1, fine - 1, [0, 10 << 20]]))
    np.testing.assert_array_equal(held.count_below(spots), np.searchsorted(fine, spots))
    assert held.count_below([]).size == 0
    evenly = SetApart.evenly(VALUES, 10)
    np.testing.assert_array_equal(
        FineRanks(evenly).count_below(spots), np.searchsorted(evenly.between(0, 7), spots)
    )


def test_nothing_lies_between_no_ranks() -> None:
    assert jittered([]).between(0, 0).size == 0
    assert jittered(VALUES).between(3, 3).size == 0


def test_random_parts_are_uniform() -> None:
    held = jittered([5] * 60_000 + list(range(6, 40_000)), 40_000)
    parts = held.between(0, held.source.size) & ((1 << fine_bits(40_000)) - 1)
    for some in (parts[:60_000], parts[60_000:]):
        assert fit(some >> (fine_bits(40_000) - 5), dict.fromkeys(range(32), 1 / 32)) > ALARM


@pytest.mark.parametrize(("places", "bits"), [(1, 20), (1 << 41, 20), ((1 << 41) + 1, 19), (1 << 52, 9)])
def test_fine_places_fit_61_bits(places: int, bits: int) -> None:
    assert fine_bits(places) == bits
    assert jittered([places - 1] * 5, places).between(0, 5).max() < jittered([], places).size <= 1 << 61
