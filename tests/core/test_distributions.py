import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.distributions import (
    AtomLaw,
    DiscreteGaussianLaw,
    GeometricLaw,
    LossDistribution,
    RhoLaw,
    pure_law,
)
from sourdine.core.loss import PrivacyLoss

EPSILONS = np.array([-3.0, -0.7, 0.0, 0.01, 0.3, 1.0, 1.9, 4.0, 9.0])


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("scale", [0.4, 1.5, 20.0])
@pytest.mark.parametrize("units", [1, 2, 7])
def test_geometric_law_against_the_sum_over_outcomes(scale: float, units: int) -> None:
    y = np.arange(-4000, 4001)
    p, q = np.exp(-np.abs(y) / scale), np.exp(-np.abs(y - units) / scale)
    law = GeometricLaw(units, scale)
    for epsilon in EPSILONS:
        assert law.profile(epsilon) == pytest.approx(
            hockey_stick(p / p.sum(), q / q.sum(), epsilon), abs=1e-14
        )


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 2.5])
def test_discrete_gaussian_law_against_the_sum_over_outcomes(sigma: float, ratio: float) -> None:
    units = max(1, round(ratio * sigma))
    y = np.arange(-20_000, 20_001)
    p, q = np.exp(-(y**2) / (2 * sigma**2)), np.exp(-((y - units) ** 2) / (2 * sigma**2))
    law = DiscreteGaussianLaw(units, sigma**2)
    for epsilon in EPSILONS:
        assert law.profile(epsilon) == pytest.approx(
            hockey_stick(p / p.sum(), q / q.sum(), epsilon), abs=1e-13
        )


@pytest.mark.parametrize("sigma", [1024.5, 3000.0])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 2.5])
def test_a_large_sigma_is_bounded_from_above_and_closely(sigma: float, ratio: float) -> None:
    units = round(ratio * sigma)
    y = np.arange(-100_000, 100_001)
    p, q = np.exp(-(y**2) / (2 * sigma**2)), np.exp(-((y - units) ** 2) / (2 * sigma**2))
    law = DiscreteGaussianLaw(units, sigma**2)
    for epsilon in EPSILONS:
        truth = hockey_stick(p / p.sum(), q / q.sum(), epsilon)
        ours = float(law.profile(epsilon))
        assert truth * (1 - 1e-9) - 1e-300 <= ours <= truth * (1 + 1e-3) + 1e-5 * truth**0.5 + 1e-15


@pytest.mark.parametrize("rho", [1e-4, 0.03, 0.5, 8.0])
def test_rho_law_is_the_best_conversion_over_orders(rho: float) -> None:
    orders = 1 + np.geomspace(1e-6, 1e6, 2_000_001)
    for epsilon in (0.0, rho, rho + math.sqrt(rho), rho + 6 * math.sqrt(rho)):
        less = orders - 1
        log_delta = less * (orders * rho - epsilon) + less * np.log(less) - orders * np.log(orders)
        assert float(RhoLaw(rho).profile(epsilon)) == pytest.approx(math.exp(log_delta.min()), rel=1e-6)


@given(st.floats(0.01, 4.0), st.floats(0.01, 6.0))
def test_rho_law_covers_gaussian_noise_of_that_rho(mu: float, epsilon: float) -> None:
    """delta of the continuous Gaussian, by its own formula, is below what rho alone allows."""

    def phi(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    truth = phi(-epsilon / mu + mu / 2) - math.exp(epsilon) * phi(-epsilon / mu - mu / 2)
    assert float(RhoLaw(mu**2 / 2).profile(epsilon)) >= truth


def test_pure_law_is_binary_randomized_response() -> None:
    law = pure_law(math.log(3))
    assert float(law.profile(0.0)) == pytest.approx(0.5)
    assert float(law.profile(math.log(3))) == pytest.approx(0.0, abs=1e-15)


def test_atoms_where_the_neighbour_has_none_are_infinite() -> None:
    law = AtomLaw.between([0.9, 0.1, 0.0], [0.8, 0.0, 0.2])
    assert law.infinite == pytest.approx(0.1)
    assert float(law.profile(50.0)) == pytest.approx(0.1)


def test_the_lower_tail_keeps_its_digits() -> None:
    truth = math.exp(-60) / (1 + math.exp(-1)) * math.exp(-1) * math.e
    assert float(GeometricLaw(60, 1.0).cumulative(-59.0).p) == pytest.approx(truth, rel=1e-6)
    assert 0 < float(RhoLaw(0.5).cumulative(-30.0).p) < 1e-20


LAWS: list[LossDistribution] = [
    pure_law(0.7),
    GeometricLaw(5, 3.3),
    DiscreteGaussianLaw(3, 6.0),
    DiscreteGaussianLaw(900, 3000.0**2),
    RhoLaw(0.2),
    AtomLaw.between([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_survival_and_cumulative_complete_each_other(law: LossDistribution) -> None:
    losses = np.linspace(-4, 4, 801)
    above, below = law.survival(losses), law.cumulative(losses)
    everything = law.survival(-1e9)
    np.testing.assert_allclose(above.p + below.p, everything.p, atol=1e-6)
    np.testing.assert_allclose(above.q + below.q, everything.q, atol=1e-5)
    assert np.all(np.diff(above.p) <= 1e-15)
    assert np.all(np.diff(above.q) <= 1e-15)
    assert float(law.survival(np.inf).p) == pytest.approx(law.infinite)
    assert float(law.cumulative(-np.inf).p) == 0


def test_laws_without_a_common_outcome_give_everything_away() -> None:
    law = AtomLaw.between([0.5, 0.5, 0.0], [0.0, 0.0, 1.0])
    assert law.infinite == 1
    assert law.profile([-1.0, 0.0, 50.0]).tolist() == [1, 1, 1]


def test_rho_of_a_pure_loss_is_exact() -> None:
    assert PrivacyLoss.pure(0.1).rho == Fraction(0.1) ** 2 / 2
    assert PrivacyLoss.pure(Fraction(1, 3)).rho == Fraction(1, 18)
