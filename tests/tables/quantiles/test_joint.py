"""What the proof of the joint mechanism asks of the code: windows of neighbours, and what floats cost."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames.statistics.group_ranks import SortedPlaces
from sourdine.tables.quantiles import JointExponential, jitter
from sourdine.tables.quantiles.jitter import Jittered
from sourdine.testing import SeededBits

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))


def held(values: np.ndarray, places: int) -> Jittered:
    return Jittered(SortedPlaces(np.sort(values)), places, SeededBits(0))


@pytest.mark.parametrize("relation", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
@pytest.mark.parametrize("distinct", [1, 2, 40, 3000])
def test_what_only_one_window_holds_weighs_next_to_nothing(
    relation: Neighbours, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crowds of equal fine places and all: a rank beyond the neighbour's window is folds below the best."""
    monkeypatch.setattr(jitter, "_FINE", 0)
    places, levels = 3000, (Fraction(1, 7), Fraction(1, 2), Fraction(9, 10))
    mechanism = JointExponential(epsilon=8, levels=levels, places=places, neighbours=relation)
    rng = np.random.default_rng(distinct)
    rate, folds = float(mechanism.rate), mechanism._folds()
    for _ in range(15):
        values = rng.choice(rng.integers(0, places, distinct), 2500)
        other = np.delete(values, rng.integers(2500))
        if relation is Neighbours.REPLACE:
            other = np.append(other, rng.integers(places))
        for one, two in ((values, other), (other, values)):
            mine, theirs = held(one, places), held(two, places)
            strays = [mechanism._astray(mine, float(level * one.size)) for level in levels]
            for level, window in zip(levels, mechanism._chain(theirs)[0].stretches, strict=True):
                aim = float(level * one.size)
                for rank, end in ((window.first, 0), (window.last - 1, two.size)):
                    if rank != end:
                        # one rank further lies beyond; the same place has a rank within one of it here
                        off = abs(rank + (1 if rank > aim else -1) - aim) - 1
                        assert 2 * rate * (off - sum(strays)) >= folds


def test_windows_hold_all_ranks_of_few_values() -> None:
    mechanism = JointExponential(epsilon=1, levels=DECILES, places=100)
    chain, edges = mechanism._chain(held(np.arange(100), 100))
    assert {(each.first, each.last) for each in chain.stretches} == {(0, 101)}
    assert all(int(each.sizes.sum()) == 100 << 20 for each in chain.stretches)
    assert {(int(each[0]), int(each[-1])) for each in edges} == {(-1, (100 << 20) - 1)}


def test_a_window_leaves_out_what_lies_far_off() -> None:
    mechanism = JointExponential(epsilon=1, levels=DECILES, places=1 << 20)
    values = np.sort(np.random.default_rng(1).integers(0, 1 << 20, 10**5))
    chain, edges = mechanism._chain(held(values, 1 << 20))
    for level, stretch, edge in zip(DECILES, chain.stretches, edges, strict=True):
        assert stretch.last - stretch.first < 6000
        assert stretch.first < level * 10**5 < stretch.last
        coarse = edge >> 20
        np.testing.assert_array_equal(coarse, values[stretch.first - 1 : stretch.last])


@pytest.mark.parametrize(("m", "epsilon"), [(1, 0.01), (9, 0.1), (9, 1), (29, 1), (29, 30)])
def test_the_slack_is_small_and_above_any_error_seen(m: int, epsilon: float) -> None:
    levels = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    mechanism = JointExponential(epsilon=epsilon, levels=levels, places=1 << 20)  # type: ignore[arg-type]
    assert 2.0**-30 < mechanism.slack < 0.005 * epsilon
    assert mechanism.rate * 2 * mechanism.moved + mechanism.slack == mechanism.epsilon


def test_too_many_levels_for_floats_are_refused() -> None:
    levels = tuple(Fraction(i, 1000) for i in range(1, 1000))
    with pytest.raises(InvalidParameter, match="'epsilon' of JointExponential must be smaller for so many"):
        JointExponential(epsilon=1, levels=levels, places=1 << 20)
    with pytest.raises(InvalidParameter, match="'epsilon' of JointExponential must be larger for so many"):
        JointExponential(epsilon=2.0**-12, levels=levels[::40], places=1 << 20)  # type: ignore[arg-type]
    assert JointExponential(epsilon=1000, levels=DECILES, places=1 << 20).slack < Fraction(1, 10)


def test_so_many_places_that_values_would_crowd_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="'places' of JointExponential"):
        JointExponential(epsilon=1, levels=DECILES, places=(1 << 41) + 1)


def test_it_is_concentrated_as_an_exponential_mechanism_is() -> None:
    loss = JointExponential(epsilon=3, levels=DECILES, places=50).loss(Distance.hamming(2))
    assert loss.rho == Fraction(36, 8)
    assert float(loss.profile(0.0)) == pytest.approx(math.tanh(6 / 4))


def test_extremes_of_a_grid() -> None:
    """One place, two places, all at an end: always on the grid."""
    for places, value in [(1, 0), (2, 1), (1 << 41, (1 << 41) - 1), (7, 0)]:
        mechanism = JointExponential(epsilon=30, levels=DECILES, places=places)
        found = mechanism.draw(SortedPlaces(np.full(400, value)), 1, SeededBits(1))
        assert found.tolist() == [[value] * 9]
