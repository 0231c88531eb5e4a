"""Differences and ratios: closed forms, and coverage whether errors are independent, equal or large."""

import numpy as np
import pytest
from scipy.stats import binom

from sourdine.tables.compare import difference, ratio, share, total
from sourdine.tables.intervals import GroupEstimate
from tests.statistics import ALARM

RUNS = 20_000
QUANTILE = {"laplace": -np.log(0.05) / np.sqrt(2), "normal": 1.959964}  # of standard deviation 1


def estimates(law: str, truth: float, deviation: float, seed: int) -> GroupEstimate:
    random = np.random.default_rng(seed)
    noise = random.laplace(0, 0.5**0.5, RUNS) if law == "laplace" else random.normal(0, 1, RUNS)
    value, reach = truth + deviation * noise, deviation * QUANTILE[law]
    return GroupEstimate(value, value - reach, value + reach)


def alone(value: float, lower: float, upper: float) -> GroupEstimate:
    return GroupEstimate(*(np.array([each]) for each in (value, lower, upper)))


def ends(found: GroupEstimate) -> tuple[float, float]:
    return float(found.lower[0]), float(found.upper[0])


def check(found: GroupEstimate, truth: float, most: float = 1.0) -> None:
    assert np.all((found.lower <= found.value) & (found.value <= found.upper))
    inside = int(((found.lower <= truth) & (truth <= found.upper)).sum())
    assert inside >= binom.ppf(ALARM, RUNS, 0.945), inside / RUNS
    assert inside <= binom.isf(ALARM, RUNS, most), inside / RUNS


CASES = [
    (10.0, 1.0, 5.0, 1.0),
    (10.0, 1.0, 5.0, 0.1),
    (-3.0, 1.0, 5.0, 1.0),
    (0.1, 1.0, 3.0, 1.0),
    (100.0, 1.0, 100.0, 1.0),
    (10.0, 1.0, -5.0, 1.0),
    (5.0, 1.0, 1.0, 1.0),
    (-10.0, 0.1, -5.0, 2.0),
]


@pytest.mark.parametrize("law", QUANTILE)
@pytest.mark.parametrize("case", CASES)
def test_intervals_of_independent_estimates_hold_the_truth(
    case: tuple[float, float, float, float], law: str
) -> None:
    one, two = estimates(law, case[0], case[1], 1), estimates(law, case[2], case[3], 2)
    check(difference(one, two), case[0] - case[2], 0.97)
    check(ratio(one, two), case[0] / case[2])
    if case[0] > 0 and case[2] > 0:
        check(share(one, two), case[0] / (case[0] + case[2]))


@pytest.mark.parametrize("sign", [1, -1])
def test_intervals_of_estimates_with_the_same_noise_hold_the_truth(sign: int) -> None:
    one = estimates("normal", 10, 1, 3)
    value = 5 + sign * (one.value - 10)
    two = GroupEstimate(value, value - QUANTILE["normal"], value + QUANTILE["normal"])
    check(difference(one, two, independent=False), 5)
    check(ratio(one, two, independent=False), 2)
    if sign < 0:  # as if they were independent it would be too narrow, and is seen to be
        with pytest.raises(AssertionError):
            check(difference(one, two), 5)


def test_a_ratio_is_that_of_donner_and_zou() -> None:
    found = ratio(alone(10, 9, 11), alone(5, 4, 6))
    lower = (50 - (2500 - 9 * 6 * (20 - 9) * (10 - 6)) ** 0.5) / (6 * (10 - 6))
    upper = (50 + (2500 - 11 * 4 * (20 - 11) * (10 - 4)) ** 0.5) / (4 * (10 - 4))
    assert ends(found) == pytest.approx((lower, upper))
    turned = ratio(alone(-10, -11, -9), alone(5, 4, 6))
    assert ends(turned) == pytest.approx((-upper, -lower))
    assert ends(ratio(alone(-10, -11, -9), alone(-5, -6, -4))) == pytest.approx((lower, upper))


def test_what_may_be_nothing_divides_nothing() -> None:
    assert ends(ratio(alone(10, 9, 11), alone(1, -1, 3))) == (-np.inf, np.inf)
    assert ends(ratio(alone(10, 9, 11), alone(0, 0, 0))) == (-np.inf, np.inf)
    assert ends(ratio(alone(10, -np.inf, np.inf), alone(5, 4, 6))) == (-np.inf, np.inf)
    assert ends(difference(alone(10, -np.inf, 11), alone(5, 4, 6)))[0] == -np.inf
    assert ends(share(alone(1, -1, 3), alone(1, -1, 3))) == (0, 1)


def test_a_wide_bottom_that_is_not_nothing_leaves_a_ratio_an_end() -> None:
    """Its interval reaches more than twice its value, where the quadratic opens downwards."""
    low, high = ends(ratio(alone(10, 9, 11), alone(5, 4, 50)))
    assert 0 < low < 2 < high < np.inf


def test_nothing_over_something_is_nothing() -> None:
    assert ends(ratio(alone(0, 0, 0), alone(5, 5, 5))) == (0, 0)


def test_a_sum_of_groups() -> None:
    each = GroupEstimate(np.array([1.0, 2.0]), np.array([-2.0, -2.0]), np.array([1.5, 4.0]))
    assert ends(total(each)) == (3 - 5, 3 + 4.25**0.5)
    assert ends(total(each, independent=False)) == (3 - 7, 5.5)
