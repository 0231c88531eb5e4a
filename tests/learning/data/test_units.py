import numpy as np
import pytest
from scipy.stats import chisquare

from sourdine.core.errors import InvalidParameter
from sourdine.learning import UnitIds
from sourdine.testing import SeededBits

IDS = np.array(["b", "a", "b", "c", "b", "a", "b"])


def test_each_person_has_so_many_places_of_their_own() -> None:
    people = UnitIds(IDS, max_examples=3)
    assert len(people) == 3
    drawn = people.draw(np.array([0, 1, 2]), SeededBits(1))
    places, weights = drawn.places.reshape(3, 3), drawn.weights.reshape(3, 3)
    for row, one in zip(places, ["b", "a", "c"], strict=True):
        assert set(IDS[row]) == {one}
    assert len(set(places[0])) == 3
    assert set(places[1][:2]) == {1, 5}
    assert weights.tolist() == pytest.approx(np.array([[1 / 3] * 3, [0.5, 0.5, 0], [1, 0, 0]]))


def test_those_who_have_more_are_chosen_from_at_random_each_time() -> None:
    people, bits = UnitIds(IDS, max_examples=2), SeededBits(2)
    pairs: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        pair = tuple(sorted(people.draw(np.array([0]), bits).places.tolist()))
        pairs[pair] = pairs.get(pair, 0) + 1
    assert len(pairs) == 6
    assert chisquare(list(pairs.values())).pvalue > 1e-6


def test_nobody_drawn_is_nothing() -> None:
    assert UnitIds(IDS, max_examples=2).draw(np.array([], np.int64)).places.size == 0


def test_examples_of_nobody_never_count() -> None:
    people = UnitIds([None, float("nan"), 7, 7.5, None], max_examples=2)
    assert len(people) == 2
    assert set(people.draw(np.array([0, 1])).places) == {2, 3}


def test_the_bound_must_be_a_count() -> None:
    with pytest.raises(InvalidParameter, match="'max_examples'"):
        UnitIds(IDS, max_examples=0)
