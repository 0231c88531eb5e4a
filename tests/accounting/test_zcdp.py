import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import ZeroConcentrated, poisson
from sourdine.accounting.zcdp import RhoCost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian
from tests.accounting.profiles import gaussian_delta, least_epsilon


def cost(rho: Fraction | float) -> RhoCost:
    return RhoCost(Neighbours.ADD_REMOVE, Fraction(rho))


def best(rho: float, delta: float) -> float:
    """The least over orders, in high precision (Canonne, Kamath, Steinke 2020, proposition 12)."""
    with mp.workdps(30):

        def bound(t: mp.mpf) -> mp.mpf:
            a = 1 + mp.exp(t)
            return a * rho + mp.log1p(-1 / a) - (mp.log(a) + mp.log(delta)) / (a - 1)

        low, high = mp.mpf(-20), mp.mpf(30)
        for _ in range(150):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if bound(left) < bound(right) else (left, high)
        return float(bound(low))


@settings(max_examples=12)
@given(st.floats(-6, 3), st.floats(-15, -1))
def test_epsilon_is_at_the_best_order(log_rho: float, log_delta: float) -> None:
    rho, delta = 10**log_rho, 10**log_delta
    found, true = ZeroConcentrated().epsilon(cost(rho), delta).upper, max(0.0, best(rho, delta))
    assert found >= true - 1e-12
    assert found == pytest.approx(true, rel=1e-6, abs=1e-9)


def test_rhos_add_up_exactly() -> None:
    loss = Gaussian(sigma=Fraction(7, 3)).loss(Distance.l2(1))
    total = ZeroConcentrated().repeat(ZeroConcentrated().lift(loss), 49)
    assert total.rho == 49 * Fraction(9, 98)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_it_covers_gaussian_noise_and_is_near(mu: float, delta: float) -> None:
    true = least_epsilon(lambda e: gaussian_delta(mu, e), delta, 60.0)
    found = ZeroConcentrated().epsilon(cost(mu**2 / 2), delta).upper
    assert true <= found <= 1.25 * true


@pytest.mark.parametrize("rho", [0.01, 0.5, 20.0])
def test_delta_undoes_epsilon(rho: float) -> None:
    for delta in (1e-2, 1e-6, 1e-12):
        epsilon = ZeroConcentrated().epsilon(cost(rho), delta).upper
        assert ZeroConcentrated().delta(cost(rho), epsilon).upper == pytest.approx(delta, rel=1e-5)


def test_nothing_costs_nothing() -> None:
    assert ZeroConcentrated().epsilon(cost(0), 1e-6).upper == 0
    assert ZeroConcentrated().delta(cost(0), 1.0).upper == 0


def test_sampling_leaves_no_rho() -> None:
    with pytest.raises(UnsupportedLoss, match=r"no finite rho.*Use PLD or Renyi"):
        ZeroConcentrated().lift(poisson(PrivacyLoss.pure(1), Fraction(1, 2)))
    assert math.isinf(poisson(PrivacyLoss.pure(1), Fraction(1, 2)).rho)


def test_it_says_nothing_once_its_delta_is_spent() -> None:
    delta = 2.0**-20
    spent = RhoCost(Neighbours.ADD_REMOVE, Fraction(1, 2), Fraction(delta))
    assert ZeroConcentrated().epsilon(spent, delta).upper == math.inf
    assert ZeroConcentrated().epsilon(spent, 2 * delta).upper < math.inf
    nothing = RhoCost(Neighbours.ADD_REMOVE, Fraction(0), Fraction(delta))
    assert ZeroConcentrated().epsilon(nothing, delta).upper == 0.0
