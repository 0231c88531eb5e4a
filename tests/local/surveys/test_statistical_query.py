"""Statistical queries by local reports: within tolerance as often as promised, and nobody answers twice."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from sourdine.core.errors import InvalidParameter
from sourdine.local import LocalCrowd, QueryPlan, best_each, best_survey
from sourdine.local.surveys.statistical_query import TolerantOracle, count_yes
from sourdine.testing import SeededBits
from tests.errors import refusal_of

TEN = np.arange(20_000) % 10


def test_the_published_size_makes_a_standard_error_of_about_the_tolerance() -> None:
    for epsilon in (0.1, 0.5, 1.0):
        plan = QueryPlan(epsilon=Fraction(epsilon), queries=5, tolerance=0.02)
        assert plan.published == math.ceil(5 / (plan.epsilon * Fraction(0.02)) ** 2)
        assert plan.deviation(plan.published) == pytest.approx(0.02, rel=0.1)
    far = QueryPlan(epsilon=Fraction(4), queries=5, tolerance=0.02)
    assert far.deviation(far.published) > 0.04


def test_hoeffding_by_its_formula() -> None:
    plan = QueryPlan(epsilon=Fraction(1), queries=7, tolerance=0.1, confidence=0.9)
    gap = math.tanh(0.5)
    assert plan.surely == 7 * math.ceil(math.log(2 * 7 / 0.1) / (2 * gap**2 * 0.1**2))
    halved = QueryPlan(epsilon=Fraction(1), queries=7, tolerance=0.1, confidence=0.9, each=7)
    gap = math.tanh(1 / 14)
    assert halved.surely == math.ceil(math.log(2 * 7 / 0.1) / (2 * gap**2 * 0.1**2))


@pytest.mark.parametrize("each", [1, 2])
def test_enough_people_by_the_binomial_law(each: int) -> None:
    plan = QueryPlan(epsilon=Fraction(2), queries=4, tolerance=0.1, each=each)
    assert plan.enough is not None
    assert plan.enough < plan.surely
    group = plan.enough * each // 4
    q = 1 / (1 + math.exp(2 / each))
    reach = (1 - 2 * q) * 0.1
    for rate in np.linspace(q, 1 - q, 60):
        low, high = math.ceil(group * (rate - reach) - 1e-9), math.floor(group * (rate + reach) + 1e-9)
        near = binom.cdf(high, group, rate) - binom.cdf(low - 1, group, rate)
        assert near >= 1 - 0.05 / 4
    assert QueryPlan(epsilon=Fraction(1), queries=4, tolerance=0.0005).enough is None


@pytest.mark.parametrize("each", [1, 2, 3, 5])
def test_everyone_answers_as_many_queries_as_planned(each: int) -> None:
    plan = QueryPlan(epsilon=Fraction(1), queries=5, tolerance=0.1, each=each)
    seen: list[np.ndarray] = []

    def query(people: np.ndarray) -> np.ndarray:
        seen.append(people)
        return people < 0

    plan.answer([query] * 5, np.arange(1003), SeededBits(1))
    assert set(np.bincount(np.concatenate(seen))) == {each}
    sizes = [len(group) for group in seen]
    assert min(sizes) >= 1003 * each // 5
    assert max(sizes) <= 1003 * each // 5 + each
    assert plan.oracle.epsilon * each == plan.epsilon


def test_answers_are_unbiased_with_the_stated_deviation() -> None:
    plan = QueryPlan(epsilon=Fraction(1), queries=2, tolerance=0.1)
    bits = SeededBits(3)
    values = bits.words(600 * 1000).reshape(600, 1000) / 2.0**64
    found = np.array([plan.answer([lambda x: x**2, lambda x: x < 0.5], row, bits).value for row in values])
    assert found.mean(axis=0) == pytest.approx([1 / 3, 1 / 2], abs=0.015)
    for place, mean in enumerate((1 / 3, 1 / 2)):
        assert found[:, place].std() == pytest.approx(plan.deviation(1000, mean), rel=0.12)


@pytest.mark.slow
def test_all_answers_hold_as_often_as_promised_and_the_published_size_fails() -> None:
    plan = QueryPlan(epsilon=Fraction(1), queries=4, tolerance=0.1)
    assert plan.enough is not None
    bits = SeededBits(9)
    queries = [lambda x, k=k: x < k / 5 for k in range(1, 5)]
    for people, least, most in ((plan.enough, 0.935, 1.0), (plan.published, 0.0, 0.4)):
        held = [
            np.all(
                np.abs(plan.answer(queries, bits.words(people) / 2.0**64, bits).value - np.arange(1, 5) / 5)
                <= 0.1
            )
            for _ in range(2000)
        ]
        assert least <= np.mean(held) <= most


def test_a_crowd_answers_within_its_tolerance_and_runs_out() -> None:
    crowd = LocalCrowd(TEN, epsilon=2, group=6000, confidence=1 - 1e-6, bits=SeededBits(2))
    for digit in range(3):
        mean, tolerance = crowd.ask(partial(np.greater_equal, digit))
        assert abs(mean - (digit + 1) / 10) <= tolerance
        assert tolerance == pytest.approx(math.sqrt(math.log(2e6) / 12_000) / math.tanh(1))
    assert crowd.left == 2000
    with pytest.raises(InvalidParameter, match=r"6,000 and only 2,000"):
        crowd.ask(lambda x: x < 5)
    assert crowd.ask(lambda x: x < 5, last=True).tolerance > tolerance
    with pytest.raises(InvalidParameter, match="Nobody may answer twice"):
        crowd.ask(lambda x: x < 5, last=True)


def test_a_query_may_return_anything_but_another_shape() -> None:
    oracle, bits = best_survey(20), SeededBits(6)
    wild = np.array([np.nan, -np.inf, -3.0, 0.0, 1.0, 7.0, np.inf] * 100)
    assert count_yes(oracle, lambda x: x, wild, bits) == 300
    with pytest.raises(InvalidParameter, match="one number for each person"):
        count_yes(oracle, lambda x: 0.5, wild, bits)


def test_rounding_has_the_law_of_duchis_mechanism() -> None:
    epsilon, value, people = 1.0, 0.3, 400_000
    yes = count_yes(best_survey(epsilon), lambda x: x, np.full(people, value), SeededBits(7)) / people
    e = math.exp(epsilon)
    expected = 1 / (e + 1) + value * (e - 1) / (e + 1)
    assert yes == pytest.approx(expected, abs=5 * math.sqrt(0.25 / people))


def test_the_oracle_of_the_theory_leans_as_far_as_it_may() -> None:
    for lean in (-1.0, 0.0, 0.5):
        answer = TolerantOracle(TEN, tolerance=0.02, lean=lean).ask(lambda x: x < 3)
        assert answer.value == pytest.approx(0.3 + 0.02 * lean)
    assert TolerantOracle(TEN, tolerance=0.5).ask(lambda x: x < 9).value == 1.0


def test_how_many_queries_everyone_should_answer() -> None:
    assert [best_each(epsilon, 8) for epsilon in (0.01, 1, 2)] == [1, 1, 1]
    assert best_each(100, 8) == 8
    x = brentq(lambda x: np.sinh(x) - 2 * x, 1, 4)  # least of x coth(x/2)^2
    assert best_each(50, 1000) == pytest.approx(50 / x, abs=1)
    for epsilon in (3, 6, 12):
        plans = [
            QueryPlan(epsilon=Fraction(epsilon), queries=8, tolerance=0.1, each=each).deviation(80_000)
            for each in range(1, 9)
        ]
        assert 1 + int(np.argmin(plans)) == best_each(epsilon, 8)


@pytest.mark.parametrize(
    "bad", [{"epsilon": 0}, {"queries": 0}, {"tolerance": 0}, {"confidence": 1}, {"each": 4}, {"each": 0}]
)
def test_bad_plans_name_their_parameter(bad: dict[str, float]) -> None:
    with refusal_of(next(iter(bad)), "QueryPlan"):
        QueryPlan(**{"epsilon": 1, "queries": 3, "tolerance": 0.1, **bad})  # type: ignore[arg-type]


def test_bad_calls_name_their_parameter() -> None:
    plan = QueryPlan(epsilon=Fraction(1), queries=3, tolerance=0.1)
    with refusal_of("queries", "QueryPlan.answer"):
        plan.answer([lambda x: x], TEN)
    with refusal_of("values", "QueryPlan.answer"):
        plan.answer([lambda x: x] * 3, TEN[:2])
    with refusal_of("group", "LocalCrowd"):
        LocalCrowd(TEN, epsilon=1, group=0)
    with refusal_of("lean", "TolerantOracle"):
        TolerantOracle(TEN, tolerance=0.1, lean=2)
    with refusal_of("queries", "best_each"):
        best_each(1, 0)
