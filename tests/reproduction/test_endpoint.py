"""The end of uniform values: errors as forecast, intervals that hold, and what bad values can do: nothing."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.local.surveys.statistical_query import Query, QueryAnswer
from sourdine.mechanisms import Exponential
from sourdine.testing import SeededBits
from sourdine_reproduction.surveys.endpoint_methods import (
    CentralEndpoint,
    EndpointMethod,
    LocalEndpoint,
    NoisyMaximum,
    PlainEndpoint,
    QueriedEndpoint,
    ask_endpoint,
)
from tests.errors import refusal_of

BOUND = Fraction(100)
PLAIN = PlainEndpoint(bound=BOUND)
CENTRAL = CentralEndpoint(bound=BOUND, epsilon=Fraction(1), cells=1 << 14)
LOCAL = LocalEndpoint(bound=BOUND, epsilon=Fraction(1))
QUERIED = QueriedEndpoint(bound=BOUND, epsilon=Fraction(1))
NOISY = NoisyMaximum(bound=BOUND, epsilon=Fraction(30))
METHODS = [PLAIN, CENTRAL, LOCAL, QUERIED, NOISY]


def drawn(people: int, end: float, trials: int, seed: int) -> np.ndarray:
    return end * (SeededBits(seed).words(people * trials).reshape(trials, people) / 2.0**64)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("end", [20.0, 90.0])
def test_errors_are_as_forecast_and_intervals_hold(method: EndpointMethod, end: float) -> None:
    people, bits = 4000, SeededBits(8)
    found = [method.estimate(row, bits) for row in drawn(people, end, 200, 7)]
    errors = np.array([each.value - end for each in found])
    forecast = method.deviation(end, people)
    assert math.sqrt(float((errors**2).mean())) == pytest.approx(forecast, rel=0.35)
    assert abs(float(errors.mean())) < 5 * forecast / math.sqrt(200) + float(BOUND) / (1 << 14)
    assert np.mean([each.lower <= end <= each.upper for each in found]) > 0.89
    assert all(0 <= each.lower <= each.upper <= 100 and each.confidence == 0.95 for each in found)


def test_the_plain_estimate_by_hand() -> None:
    found = PLAIN.estimate([3.0, 6.0, 1.0], confidence=0.9)
    assert found.value == pytest.approx(8)
    assert (6 / found.lower) ** 3 == pytest.approx(0.95)
    assert (6 / found.upper) ** 3 == pytest.approx(0.05)
    assert PLAIN.deviation(6, 3) == pytest.approx(6 / math.sqrt(15))


def test_a_noisy_maximum_does_not_improve_with_more_values() -> None:
    one = NoisyMaximum(bound=BOUND, epsilon=Fraction(4))
    assert one.deviation(10, 100) == one.deviation(10, 10**9) == pytest.approx(math.sqrt(2) * 25, rel=1e-5)


def test_the_curator_falls_like_one_over_n_and_local_reports_like_its_root() -> None:
    fine = CentralEndpoint(bound=BOUND, epsilon=Fraction(1))
    for method, ratio in ((fine, 100), (LOCAL, 10), (QUERIED, 10), (PLAIN, 100)):
        fall = method.deviation(50, 10**4) / method.deviation(50, 10**6)
        assert 0.6 * ratio < fall < 1.4 * ratio


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_spend_states_epsilon(method: EndpointMethod) -> None:
    if isinstance(method, PlainEndpoint):
        assert method.spend is None
        return
    assert method.spend is not None
    loss = method.spend.loss()
    assert isinstance(loss, PrivacyLoss)
    assert loss.epsilon == method.epsilon  # type: ignore[attr-defined]


@pytest.mark.parametrize("new", [0.0, 37.5, 37.500001, 100.0, 1e9, -5.0, math.nan])
def test_scores_of_the_curator_change_by_one_at_most(new: float, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []

    def sample(self: Exponential, values: np.ndarray, bits: object) -> np.ndarray:
        seen.append(values)
        return np.array(0)

    monkeypatch.setattr(Exponential, "sample", sample)
    values = np.linspace(0, 60, 50)
    CENTRAL.estimate(values)
    CENTRAL.estimate(np.append(values[:-1], new))
    before, after = seen
    assert before.shape == after.shape == (CENTRAL.cells,)
    assert np.abs(before - after).max() == 1


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_wild_values_are_taken_as_bounds(method: EndpointMethod) -> None:
    wild = np.array([np.nan, np.inf, -np.inf, 1e300, -7.0] * 200)
    tame = np.array([0.0, 100.0, 0.0, 100.0, 0.0] * 200)
    assert method.estimate(wild, SeededBits(1)) == method.estimate(tame, SeededBits(1))
    assert 0 <= method.estimate([1], SeededBits(1)).value <= 100


@pytest.mark.parametrize("values", [[], [[1.0]], ["a"]])
def test_what_is_no_row_of_numbers_is_refused(values: list[object]) -> None:
    with pytest.raises(InvalidParameter, match="one row of numbers"):
        PLAIN.estimate(values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (PlainEndpoint, {"bound": 0}),
        (LocalEndpoint, {"bound": 1, "epsilon": 0}),
        (CentralEndpoint, {"bound": 1, "epsilon": 1, "cells": 1}),
        (QueriedEndpoint, {"bound": 1, "epsilon": 1, "levels": 0}),
    ],
)
def test_bad_parameters_name_themselves(kind: type[EndpointMethod], bad: dict[str, Any]) -> None:
    with refusal_of(list(bad)[-1]):
        kind(**bad)


class Adversary:
    """Answers as far off as it may, to either side, or anywhere between."""

    def __init__(self, end: float, tolerance: float, seed: int) -> None:
        self.end, self.tolerance, self.asked = end, tolerance, 0
        self._words = iter((SeededBits(seed).words(64) % np.uint64(1 << 20)).tolist())

    def ask(self, query: Query, *, last: bool = False) -> QueryAnswer:
        self.asked += 1
        grid = self.end * (np.arange(1 << 15) + 0.5) / (1 << 15)
        word = next(self._words)
        lean = (-1, 1, word / (1 << 19) - 1)[word % 3]
        mean = float(np.mean(np.asarray(query(grid), np.float64))) + lean * (self.tolerance - 2.0**-14)
        return QueryAnswer(mean, self.tolerance)


def test_queries_find_the_end_within_three_halves_of_the_tolerance() -> None:
    worst = 0.0
    for seed in range(400):
        tolerance = (1 / 16, 0.03, 0.01)[seed % 3]
        end = 100 * 2.0 ** -(7 * seed / 400)
        adversary = Adversary(end, tolerance, seed)
        value, lower, upper = ask_endpoint(adversary, 100, 8)
        worst = max(worst, abs(value - end) / (tolerance * end))
        assert lower <= end <= upper
        assert adversary.asked <= 9
    assert 1 < worst <= 1.5


def test_an_end_below_all_levels_is_not_claimed() -> None:
    value, lower, upper = ask_endpoint(Adversary(0.01, 0.01, 1), 100, 4)
    assert lower == 0
    assert 0.01 <= value <= upper
