"""The samplers follow the laws of their definitions."""

import itertools
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.distance import Neighbours
from sourdine.frames.rank_counts import SeparateRanks, SortedPlaces
from sourdine.tables.quantiles import (
    InverseSensitivity,
    JointExponential,
    NaiveLaplace,
    QuantileMethod,
    RecursiveQuantiles,
    ThresholdHistogram,
    joint,
)
from sourdine.tables.quantiles import inverse as inverse_file
from sourdine.tables.quantiles import (
    method as jitter,
)
from sourdine.tables.quantiles.inverse import draw_places
from sourdine.tables.quantiles.joint import multisets
from sourdine.tables.quantiles.method import Jittered, Targets
from sourdine.testing import SeededBits
from tests.choice_laws import laplace_tail
from tests.statistics import ALARM, fit
from tests.tables.quantiles import brute

RELATIONS = [brute.REPLACE, brute.ADD_REMOVE]
HALF = (Fraction(1, 2),)
MORE = Fraction(11, 10)


def fits(drawn: np.ndarray, law: Mapping[tuple[int, ...], float]) -> float:
    """The p-value of rows of places; what cannot be drawn has not been."""
    codes = {key: i for i, key in enumerate(sorted(law))}
    found = [codes[tuple(row)] for row in drawn.tolist()]
    return fit(np.array(found), {codes[key]: chance for key, chance in law.items()})


def drawn_from(mechanism: QuantileMethod, values: list[int], count: int, seed: int = 0) -> np.ndarray:
    return mechanism.draw(SortedPlaces(np.array(values, np.int64)), count, SeededBits(seed))


@pytest.mark.parametrize("values", [[], [3], [4, 4, 4, 4], [0, 0, 6, 6], [0, 1, 1, 5, 6]])
@pytest.mark.parametrize("radius", [0, 1])
@pytest.mark.parametrize("relation", RELATIONS)
def test_inverse_sensitivity(relation: Neighbours, radius: int, values: list[int]) -> None:
    level = Fraction(3, 10)
    mechanism = InverseSensitivity(
        epsilon=Fraction(5, 3), levels=(level,), places=7, radius=radius, neighbours=relation
    )
    drawn = drawn_from(mechanism, values, 40_000)[:, 0]
    law = brute.inverse(tuple(values), level, relation, 7, radius, Fraction(5, 3))
    assert fit(drawn, dict(enumerate(law))) > ALARM


def test_an_inverse_sensitivity_ten_percent_off_is_refused() -> None:
    mechanism = InverseSensitivity(epsilon=2, levels=HALF, places=9)
    drawn = drawn_from(mechanism, [0, 1, 2, 4, 4, 6, 8], 200_000)[:, 0]
    laws = [
        dict(enumerate(brute.inverse((0, 1, 2, 4, 4, 6, 8), HALF[0], brute.REPLACE, 9, 0, 2 * factor)))
        for factor in (Fraction(1), MORE)
    ]
    assert fit(drawn, laws[0]) > ALARM
    assert fit(drawn, laws[1]) < ALARM


@pytest.mark.parametrize("count", [1000, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("radius", [0, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_tails_are_drawn_by_rejection(
    relation: Neighbours, radius: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reach cut short most places are in the tails, and the law is the same."""
    monkeypatch.setattr(inverse_file, "_NEGLIGIBLE", -3.6)
    values, level = tuple(range(2, 42, 2)), Fraction(2, 5)
    source = SeparateRanks.alone(SortedPlaces(np.array(values)))
    epsilon = Fraction(2, 5)
    rate = InverseSensitivity(epsilon=epsilon, levels=(level,), places=44, neighbours=relation).rate(level)
    drawn = draw_places(
        source,
        Targets.of(level, source.sizes, relation),
        places=np.array([44]),
        rate=rate,
        radius=radius,
        owner=np.zeros(count, np.int64),
        bits=SeededBits(5),
    )
    law = dict(enumerate(brute.inverse(values, level, relation, 44, radius, epsilon)))
    assert fit(drawn, law) > ALARM
    assert len(set(drawn.tolist())) > 30


@pytest.mark.parametrize("values", [(), (1, 1, 3), (0, 2, 2, 3)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_recursive_quantiles(
    relation: Neighbours, values: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jitter, "_FINE", 1)
    levels = tuple(Fraction(i, 4) for i in (1, 2, 3))
    mechanism = RecursiveQuantiles(
        epsilon=4, levels=levels, places=4, neighbours=relation, radius=len(values) % 2
    )
    law = brute.recursive_apart(values, levels, relation, 4, len(values) % 2, Fraction(4), 1)
    drawn = drawn_from(mechanism, list(values), 300)
    assert fits(drawn, law) > ALARM


@pytest.mark.slow
def test_recursive_quantiles_ten_percent_off_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jitter, "_FINE", 1)
    values, levels = (0, 2, 2, 3), tuple(Fraction(i, 4) for i in (1, 2, 3))
    mechanism = RecursiveQuantiles(epsilon=12, levels=levels, places=4)
    drawn = drawn_from(mechanism, list(values), 20_000)
    for epsilon, right in ((Fraction(12), True), (12 * MORE * MORE, False)):
        law = brute.recursive_apart(values, levels, brute.REPLACE, 4, 0, epsilon, 1)
        assert (fits(drawn, law) > ALARM) == right


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("relation", RELATIONS)
def test_threshold_histogram(relation: Neighbours, monotone: bool) -> None:
    values, level, epsilon = (0, 1, 1, 4, 6), Fraction(3, 10), Fraction(3)
    mechanism = ThresholdHistogram(
        epsilon=epsilon, levels=(level,), places=7, cuts=3, monotone=monotone, neighbours=relation
    )
    drawn = drawn_from(mechanism, list(values), 100_000)[:, 0]
    for factor, right in ((Fraction(1), True), (MORE * MORE, False)):
        chances = brute.first_crossing(values, level, relation, [1, 3, 5], epsilon * factor, monotone)
        law = dict(zip([0, 2, 4, 6], chances, strict=True))  # the upper bound where no cut is crossed
        assert (fit(drawn, law) > ALARM) == right


def test_naive_laplace() -> None:
    mechanism = NaiveLaplace(epsilon=2, levels=HALF, places=6)
    drawn = drawn_from(mechanism, [1, 2, 5], 100_000)[:, 0]

    def law(scale: float) -> dict[int, float]:
        tails = laplace_tail(np.arange(1, 6) - 2, scale)
        return dict(enumerate(-np.diff([1.0, *tails, 0.0])))

    assert fit(drawn, law(2.5)) > ALARM
    assert fit(drawn, law(2.5 * 1.1)) < ALARM


@pytest.mark.parametrize(("size", "count"), [(1, 4), (4, 1), (3, 3), (6, 2)])
def test_multisets_are_all_equally_likely(size: int, count: int) -> None:
    held = list(itertools.combinations_with_replacement(range(size), count))
    bits = SeededBits(size)
    drawn = multisets(np.full(3000, size), count, bits)
    assert fits(drawn, dict.fromkeys(held, 1 / len(held))) > ALARM


def test_multisets_of_many_places() -> None:
    drawn = multisets(np.array([1 << 61]), 999, SeededBits(1))[0]
    assert np.all(np.diff(drawn) >= 0)
    assert 0 <= drawn.min() <= drawn.max() < 1 << 61


@pytest.mark.parametrize("values", [[2], [1, 1, 1], [0, 0, 3, 3], [0, 1, 1, 3]])
@pytest.mark.parametrize("relation", RELATIONS)
def test_joint_exponential_for_values_set_apart(
    relation: Neighbours, values: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the fine places, the law is the brute one; 2 bits a step leave some of them equal."""
    monkeypatch.setattr(jitter, "_FINE", 2)
    levels = (Fraction(1, 4), Fraction(3, 5))
    mechanism = JointExponential(epsilon=3, levels=levels, places=4, neighbours=relation)
    bits = SeededBits(len(values))
    held = Jittered(SortedPlaces(np.array(values, np.int64)), 4, bits)
    drawn = mechanism.draw_apart(held, 8000, bits)
    fine = held.between(0, len(values)).tolist()

    def law(rate: float) -> dict[tuple[int, ...], float]:
        weights = brute.joint_weights(fine, levels, 16, rate)
        found: dict[tuple[int, ...], float] = defaultdict(float)
        for key, weight in weights.items():
            found[tuple(t >> 2 for t in key)] += weight / sum(weights.values())
        return found

    assert fits(drawn, law(float(mechanism.rate))) > ALARM
    if len(values) > 3:
        assert fits(drawn, law(1.5 * float(mechanism.rate))) < ALARM


def test_joint_exponential_over_all_ways_to_set_values_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jitter, "_FINE", 1)
    levels = (Fraction(1, 3), Fraction(2, 3))
    mechanism = JointExponential(epsilon=6, levels=levels, places=3)
    drawn = drawn_from(mechanism, [0, 0, 1], 400)
    assert fits(drawn, brute.joint((0, 0, 1), levels, 3, float(mechanism.rate), 1)) > ALARM


def test_now_and_then_the_joint_answer_ignores_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one bit in place of 40, half the answers are uniform multisets of fine places."""
    monkeypatch.setattr(joint, "_RARE", 1)
    monkeypatch.setattr(jitter, "_FINE", 0)
    mechanism = JointExponential(epsilon=4, levels=(Fraction(1, 4), Fraction(3, 5)), places=4)
    bits = SeededBits(2)
    drawn = mechanism.draw_apart(Jittered(SortedPlaces(np.array([0, 1, 1, 3])), 4, bits), 6000, bits)
    weights = brute.joint_weights([0, 1, 1, 3], mechanism.levels, 4, float(mechanism.rate))
    total = sum(weights.values())
    assert fits(drawn, {key: w / total / 2 + 1 / len(weights) / 2 for key, w in weights.items()}) > ALARM
    assert fits(drawn, {key: w / total for key, w in weights.items()}) < ALARM


def test_levels_of_one_draw_are_independent_of_their_number() -> None:
    """Each of m levels is one at epsilon / m."""
    pair = InverseSensitivity(epsilon=2, levels=(Fraction(1, 4), Fraction(1, 2)), places=7)
    drawn = drawn_from(pair, [0, 2, 2, 5], 50_000)
    for column, level in enumerate(pair.levels):
        law = brute.inverse((0, 2, 2, 5), level, brute.REPLACE, 7, 0, Fraction(1))
        assert fit(drawn[:, column], dict(enumerate(law))) > ALARM
