"""Exact binomial coverage, against sums over every count of masses by logarithms of factorials."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlog1py, xlogy

from sourdine.local.surveys.design import (
    MOST,
    coverage,
    enough_people,
    least_coverage,
    sure_reach,
    surely_enough,
)


def summed(rates: ArrayLike, reach: float, people: int) -> np.ndarray:
    rate, counts = np.atleast_1d(rates)[:, None], np.arange(people + 1)
    ways = gammaln(people + 1) - gammaln(counts + 1) - gammaln(people - counts + 1)
    masses = np.exp(ways + xlogy(counts, rate) + xlog1py(people - counts, -rate))
    return np.sum(masses, axis=1, where=np.abs(counts / people - rate) <= reach + 1e-12)


@settings(max_examples=200)
@given(st.integers(1, 80), st.floats(0, 1), st.floats(0.001, 1))
def test_coverage_is_a_sum_of_masses(people: int, rate: float, reach: float) -> None:
    assert float(coverage(rate, reach, people)) == pytest.approx(summed(rate, reach, people)[0], abs=1e-10)


@pytest.mark.parametrize("people", [1, 2, 7, 30, 150])
@pytest.mark.parametrize("reach", [0.0107, 0.1003, 0.2317, 0.4009])
@pytest.mark.parametrize("span", [(0.0, 1.0), (0.2, 0.75), (0.6, 0.6)])
def test_the_least_coverage_is_below_all_and_nearly_reached(
    people: int, reach: float, span: tuple[float, float]
) -> None:
    least = least_coverage(*span, reach, people)
    ends = [k / people + way * (reach + 1e-9) for k in range(people + 1) for way in (1, -1)]
    tried = [*np.linspace(*span, 301), *(rate for rate in ends if span[0] <= rate <= span[1])]
    found = summed(tried, reach, people).min()
    assert least <= found + 1e-9
    assert least == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("people", [2, 30, 150])
@pytest.mark.parametrize("reach", [0.01, 0.1, 0.4])
def test_where_counts_change_on_both_sides_at_once_it_errs_to_the_safe_side(
    people: int, reach: float
) -> None:
    found = summed(np.linspace(0.2, 0.75, 5001), reach, people).min()
    assert least_coverage(0.2, 0.75, reach, people) <= found + 1e-9


@pytest.mark.parametrize("reach", [0.2, 0.05, 0.021])
@pytest.mark.parametrize("confidence", [0.9, 0.999])
def test_enough_people_are_enough_and_few(reach: float, confidence: float) -> None:
    people = enough_people(0.25, 0.75, reach, confidence)
    assert people is not None
    assert summed(np.linspace(0.25, 0.75, 997), reach, people).min() >= confidence
    assert people <= surely_enough(reach, confidence)
    fewer = math.floor(0.97 * people) - 2
    assert least_coverage(0.25, 0.75, reach, fewer) < confidence


def test_a_search_beyond_its_limit_says_so() -> None:
    assert enough_people(0.25, 0.75, 0.0005, 0.95) is None
    assert surely_enough(0.0005, 0.95) > MOST


def test_hoeffding_by_its_formula() -> None:
    assert surely_enough(0.1, 0.95) == math.ceil(math.log(40) / 0.02)
    assert sure_reach(surely_enough(0.1, 0.95), 0.95) <= 0.1
    assert 2 * math.exp(-2 * 500 * sure_reach(500, 0.99) ** 2) == pytest.approx(0.01)
