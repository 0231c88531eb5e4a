"""What the proof of the joint mechanism asks of the code: windows of neighbours, and what floats cost."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from sourdine.core.distance import Distance, Neighbours
from sourdine.frames.rank_counts import SeparateRanks, SortedPlaces
from sourdine.tables.quantiles import JointExponential, joint
from sourdine.tables.quantiles import method as jitter
from sourdine.tables.quantiles.joint import Chains, LogSums, Stretches
from sourdine.tables.quantiles.method import Jittered, JitteredGroups, SetApart
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.statistics import ALARM

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))


def held(values: np.ndarray, places: int) -> Jittered:
    return Jittered(SortedPlaces(np.sort(values)), places, SeededBits(0))


@pytest.mark.parametrize("relation", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
@pytest.mark.parametrize("distinct", [1, 2, 40, 3000])
def test_what_only_one_window_holds_weighs_next_to_nothing(
    relation: Neighbours, distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crowds of equal fine places and all: a rank beyond a window is folds and epsilon below all chains."""
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
        for one in (values, other):
            window = mechanism._window(held(one, places))
            whole = log_total(mechanism, window, one.size)
            lows, lengths = window.first[0].tolist(), window.length[0].tolist()
            for level, low, length in zip(levels, lows, lengths, strict=True):
                aim = float(level * one.size)
                for rank, end in ((low, 0), (low + length - 1, one.size)):
                    if rank != end:
                        off = abs(rank + (1 if rank > aim else -1) - aim)  # one rank further lies beyond
                        assert 2 * rate * off + whole >= folds + mechanism.epsilon


def log_total(mechanism: JointExponential, window: Stretches, total: int) -> float:
    """The logarithm of what all chains of a window weigh."""
    chains = Chains.toward(window, mechanism.levels, np.array([total]), float(mechanism.rate))
    ranks = np.arange(window.edges.shape[2] - 1)
    after = -chains.rate * np.abs(ranks + chains.step(chains.outputs)[0][0])
    return float(np.logaddexp.reduce(LogSums.of(chains).sums[-1][0] + after))


@pytest.mark.parametrize("distinct", [1, 40, 3000])
def test_windows_of_one_group_and_of_many_are_the_same(distinct: int) -> None:
    places = 3000
    mechanism = JointExponential(epsilon=8, levels=DECILES, places=places)
    values = np.sort(np.random.default_rng(distinct).integers(0, distinct, 2500))
    groups = SeparateRanks((), (SortedPlaces(values),))
    many = JitteredGroups.of(groups, np.array([0]), places, SeededBits(3))
    one = mechanism._window(SetApart(many.places[1:-1], places, 20))
    alike = mechanism._windows(many)
    np.testing.assert_array_equal(alike.first, one.first)
    np.testing.assert_array_equal(alike.length, one.length)
    np.testing.assert_array_equal(alike.sizes, one.sizes)


def test_windows_hold_all_ranks_of_few_values() -> None:
    mechanism = JointExponential(epsilon=1, levels=DECILES, places=100)
    window = mechanism._window(held(np.arange(100), 100))
    assert np.all(window.first == 0)
    assert np.all(window.length == 101)
    assert np.all(window.sizes.sum(axis=2) == 100 << 20)
    assert np.all(window.edges[..., 0] == -1)
    assert np.all(window.edges[..., -1] == (100 << 20) - 1)


def test_a_window_leaves_out_what_lies_far_off() -> None:
    mechanism = JointExponential(epsilon=1, levels=DECILES, places=1 << 20)
    values = np.sort(np.random.default_rng(1).integers(0, 1 << 20, 10**5))
    window = mechanism._window(held(values, 1 << 20))
    ends = zip(DECILES, window.first[0].tolist(), window.length[0].tolist(), window.edges[0], strict=True)
    for level, first, length, edges in ends:
        assert length < 6000
        assert first < level * 10**5 < first + length
        np.testing.assert_array_equal(edges[: length + 1] >> 20, values[first - 1 : first + length])


@pytest.mark.parametrize("fine", [0, 2, 20])
def test_windows_of_groups_are_those_of_each(fine: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where values crowd fine places, of groups of every size, of none and of one value."""
    monkeypatch.setattr(jitter, "_FINE", fine)
    monkeypatch.setattr(joint, "_NEAR", 1)
    rng, places = np.random.default_rng(fine), 40
    mechanism = JointExponential(
        epsilon=40, levels=(Fraction(1, 7), Fraction(1, 2), Fraction(9, 10)), places=places
    )
    values = [np.sort(rng.integers(0, places, size)) for size in (0, 1, 2, 30, 700)]
    groups = SeparateRanks((), tuple(map(SortedPlaces, [*values, np.full(300, 17)])))
    fines = JitteredGroups.of(groups, np.arange(len(groups)), places, SeededBits(1))
    windows = mechanism._windows(fines)
    for g, start in enumerate(fines.starts.tolist()):
        mine = fines.places[start + 1 : start + 1 + int(fines.counts[g])]
        assert np.array_equal(mine >> jitter.fine_bits(places), groups.values_of(np.array([g])))
        alone = mechanism._window(SetApart(mine, places, jitter.fine_bits(places)))
        assert np.array_equal(windows.first[g], alone.first[0])
        assert np.array_equal(windows.length[g], alone.length[0])
        for j, length in enumerate(alone.length[0].tolist()):
            assert np.array_equal(windows.edges[g, j, : length + 1], alone.edges[0, j, : length + 1])


@pytest.mark.parametrize("times", [600, pytest.param(4000, marks=pytest.mark.slow)])
def test_groups_are_answered_by_the_same_law_as_each_alone(times: int) -> None:
    """Copies of one small group beside others, against answers of it by itself."""
    mechanism = JointExponential(epsilon=3, levels=(Fraction(1, 4), Fraction(3, 5)), places=4)
    mine, other = SortedPlaces(np.array([0, 1, 1, 3])), SortedPlaces(np.full(90, 2))
    drawn = mechanism.draw_groups(SeparateRanks((), (mine, other, mine) * times), SeededBits(5))
    together = np.concatenate([drawn[0::3], drawn[2::3]]) @ [4, 1]
    bits = SeededBits(6)
    drawn_apart = [mechanism.draw_apart(Jittered(mine, 4, bits), 1, bits) for _ in range(times)]
    apart = np.concatenate(drawn_apart) @ [4, 1]
    seen = np.array([np.bincount(each, minlength=16) for each in (together, apart)])
    assert chi2_contingency(seen[:, seen.sum(axis=0) > 0]).pvalue > ALARM
    assert np.all(drawn[1::3] == 2)


def test_groups_too_large_to_set_apart_at_once_go_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "WHOLE", 50)
    monkeypatch.setattr(joint, "_CELLS", 1000)
    mechanism = JointExponential(epsilon=1 << 10, levels=DECILES, places=1000)
    values = [np.arange(size) * 1000 // size for size in (100, 40, 50, 51, 1000, 1)]
    found = mechanism.draw_groups(SeparateRanks((), tuple(map(SortedPlaces, values))), SeededBits(1))
    for row, mine in zip(found, values, strict=True):
        ranks = np.array([float(level) for level in DECILES]) * len(mine)
        assert np.abs(np.searchsorted(mine, row) - ranks).max() <= 2


@pytest.mark.parametrize(("m", "epsilon"), [(1, 0.01), (9, 0.1), (9, 1), (29, 1), (29, 30)])
def test_the_slack_is_small_and_above_any_error_seen(m: int, epsilon: float) -> None:
    levels = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    mechanism = JointExponential(epsilon=epsilon, levels=levels, places=1 << 20)
    assert 2.0**-30 < mechanism.slack < 0.005 * epsilon
    assert mechanism.rate * 2 * mechanism.moved + mechanism.slack == mechanism.epsilon


def test_too_many_levels_for_floats_are_refused() -> None:
    levels = tuple(Fraction(i, 1000) for i in range(1, 1000))
    with refusal_of("epsilon", "JointExponential"):
        JointExponential(epsilon=1, levels=levels, places=1 << 20)
    with refusal_of("epsilon", "JointExponential"):
        JointExponential(epsilon=2.0**-12, levels=levels[::40], places=1 << 20)
    assert JointExponential(epsilon=1000, levels=DECILES, places=1 << 20).slack < Fraction(1, 10)


def test_so_many_places_that_values_would_crowd_are_refused() -> None:
    with refusal_of("places", "JointExponential"):
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
