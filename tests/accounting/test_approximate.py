import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import Approximate, advanced_composition, known, known_at
from sourdine.accounting.approximate import ApproximateCost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian
from tests.accounting.profiles import gaussian_delta, least_epsilon, responses_delta
from tests.errors import refusal_of


def joined(*losses: PrivacyLoss) -> ApproximateCost:
    accountant = Approximate()
    cost = accountant.lift(losses[0])
    for loss in losses[1:]:
        cost = accountant.join(cost, accountant.lift(loss))
    return cost


def optimal_delta(epsilon: float, delta: float, count: int, at: float) -> float:
    """Kairouz, Oh, Viswanath 2015, theorem 3.3, in high precision."""
    with mp.workdps(40):
        e, x = mp.mpf(epsilon), mp.mpf(at)
        inner = (
            mp.fsum(
                mp.binomial(count, j) * mp.exp(j * e) * max(0, 1 - mp.exp(x - (2 * j - count) * e))
                for j in range(count + 1)
            )
            / (1 + mp.exp(e)) ** count
        )
        return float(1 - (1 - mp.mpf(delta)) ** count * (1 - inner))


@settings(max_examples=15)
@given(
    st.floats(-2, 0.8),
    st.sampled_from([0.0, 1e-12, 1e-7, 1e-4]),
    st.sampled_from([1, 2, 5, 20, 60]),
    st.floats(-10, -1),
)
def test_equal_pairs_compose_optimally(
    log_epsilon: float, delta: float, count: int, log_target: float
) -> None:
    epsilon, target = 10**log_epsilon, 10**log_target
    accountant = Approximate()
    bracket = accountant.epsilon(accountant.repeat(accountant.lift(known(epsilon, delta)), count), target)
    spent = -math.expm1(count * math.log1p(-delta))
    if target < spent * (1 - 1e-9):
        assert bracket.lower == math.inf
    elif target > spent * (1 + 1e-6):
        true = least_epsilon(lambda x: optimal_delta(epsilon, delta, count, x), target, count * epsilon)
        assert bracket.lower - 1e-9 <= true <= bracket.upper + 1e-9
        assert bracket.width <= 1.01e-3


@settings(max_examples=2)
@given(st.lists(st.sampled_from([0.25, 0.7, 1.3]), min_size=2, max_size=6), st.floats(-6, -1))
def test_different_pairs_compose_optimally(epsilons: list[float], log_target: float) -> None:
    target = 10**log_target
    bracket = Approximate().epsilon(joined(*(known(epsilon, 0) for epsilon in epsilons)), target)
    true = least_epsilon(lambda x: responses_delta(epsilons, x), target, sum(epsilons))
    assert bracket.lower - 1e-9 <= true <= bracket.upper + 1e-9


def test_ten_responses_of_ln_3() -> None:
    """A peer forgets the count and says 1.0987."""
    epsilon = math.log(3)
    cost = Approximate().repeat(Approximate().lift(PrivacyLoss.pure(epsilon)), 10)
    for delta in (1e-2, 1e-5):
        true = least_epsilon(lambda x: optimal_delta(epsilon, 0, 10, x), delta, 10 * epsilon)
        assert Approximate().epsilon(cost, delta).upper == pytest.approx(true, abs=1e-4)


def test_delta_of_many_pairs() -> None:
    cost = Approximate().repeat(Approximate().lift(known(0.5, 1e-4)), 12)
    for epsilon in (0.0, 1.0, 4.0, 6.5):
        true = optimal_delta(0.5, 1e-4, 12, epsilon)
        bracket = Approximate().delta(cost, epsilon)
        assert bracket.lower <= true * (1 + 1e-9) <= bracket.upper * (1 + 2e-9)
        assert bracket.upper == pytest.approx(true, rel=2e-3)


def test_without_a_delta_epsilons_add_up() -> None:
    cost = joined(
        PrivacyLoss.pure(Fraction(1, 3)), PrivacyLoss.pure(Fraction(1, 3)), PrivacyLoss.pure(Fraction(1, 4))
    )
    assert Approximate().epsilon(cost, 0.0).upper == pytest.approx(11 / 12, abs=1e-15)
    assert cost.points == (((Fraction(1, 4), 0), 1), ((Fraction(1, 3), 0), 2))


@given(st.floats(0.01, 3), st.sampled_from([0.0, 1e-9]), st.integers(1, 50), st.floats(-9, -2))
@settings(max_examples=10)
def test_optimal_composition_is_never_worse_than_advanced(
    epsilon: float, delta: float, count: int, log_slack: float
) -> None:
    point = advanced_composition(epsilon, delta, count, 10**log_slack)
    cost = Approximate().repeat(Approximate().lift(known(epsilon, delta)), count)
    assert Approximate().epsilon(cost, float(point.delta)).upper <= float(point.epsilon) + 1e-3


def test_advanced_composition_by_hand() -> None:
    point = advanced_composition(0.5, 1e-6, 8, 1e-4)
    assert point.epsilon == pytest.approx(
        math.sqrt(16 * math.log(1e4)) * 0.5 + 4 * math.expm1(0.5), rel=1e-12
    )
    assert point.delta == pytest.approx(8e-6 + 1e-4, rel=1e-12)


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"delta": 1}, {"count": 0}, {"slack": 0}, {"slack": 1}])
def test_advanced_composition_refuses(bad: dict[str, Any]) -> None:
    good = {"epsilon": 0.1, "delta": 0.0, "count": 3, "slack": 0.1}
    with refusal_of(next(iter(bad)), "advanced_composition"):
        advanced_composition(**{**good, **bad})


def test_one_point_of_a_gaussian() -> None:
    loss = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE)
    epsilon, delta = Approximate().lift(known_at(loss, 1e-5)).points[0][0]
    assert float(delta) == 1e-5
    true = least_epsilon(lambda x: gaussian_delta(1.0, x), 1e-5, 20)
    assert true <= float(epsilon) <= true + 1e-9
    point = known_at(loss, 1e-5)
    for x in (0.0, 1.0, 5.0):
        assert point.profile(x) >= loss.profile(x)


def test_a_point_of_a_pure_loss_is_no_higher_than_its_epsilon() -> None:
    assert known_at(PrivacyLoss.pure(Fraction(1, 2)), 0.0).epsilon == Fraction(1, 2)
    assert math.isinf(known_at(PrivacyLoss.pure(Fraction(1, 2)), 1e-3).epsilon)


def test_a_whole_curve_is_not_one_pair() -> None:
    loss = Gaussian(sigma=1).loss(Distance.l2(1))
    with pytest.raises(UnsupportedLoss, match=r"takes one pair.*known_at"):
        Approximate().lift(loss)
    with refusal_of("delta", "known_at"):
        known_at(loss, 0.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0), (math.inf, 0), (1, 1), (1, -0.1)])
def test_a_bad_pair_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="of known must"):
        known(epsilon, delta)
