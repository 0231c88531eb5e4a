import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import (
    PLD,
    Accountant,
    Poisson,
    Pure,
    Renyi,
    Spend,
    ZeroConcentrated,
    calibrate_noise,
    calibrate_plan,
    epsilon_for_error,
    plan_cost,
    uses_within,
)
from sourdine.accounting.calibration import _simplest
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import Gaussian, Geometric, KaryResponse, Laplace
from tests.accounting.profiles import least_epsilon
from tests.errors import refusal_of

positive = st.fractions(Fraction(1, 50), 50, max_denominator=60)


def laplace(scale: Fraction) -> Laplace:
    return Laplace(scale=scale)


def gaussian(sigma: Fraction) -> Gaussian:
    return Gaussian(sigma=sigma)


@settings(max_examples=20)
@given(positive, st.integers(1, 40), st.integers(1, 60))
def test_pure_noise_is_exact(epsilon: Fraction, distance: int, count: int) -> None:
    found = calibrate_noise(laplace, Distance.l1(distance), epsilon, count=count)
    exact = Fraction(distance) * count / epsilon
    assert exact <= found.scale <= exact * Fraction(100_001, 100_000)  # type: ignore[attr-defined]
    if exact.denominator <= 1000:
        assert found.scale == exact  # type: ignore[attr-defined]


def discrete_delta(sigma: float, epsilon: float) -> float:
    y = np.arange(-400, 401)
    p, q = np.exp(-(y**2) / (2 * sigma**2)), np.exp(-((y - 1) ** 2) / (2 * sigma**2))
    return float(np.maximum(p / p.sum() - math.exp(epsilon) * q / q.sum(), 0).sum())


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (3, 1e-9), (0.2, 1e-4)])
def test_gaussian_noise_is_least(epsilon: float, delta: float) -> None:
    sigma = float(calibrate_noise(gaussian, Distance.l2(1), epsilon, delta).sigma)  # type: ignore[attr-defined]
    assert least_epsilon(lambda e: discrete_delta(sigma, e), delta, 20) <= epsilon
    assert least_epsilon(lambda e: discrete_delta(sigma * 0.9998, e), delta, 20) > epsilon


@pytest.mark.parametrize("accountant", [ZeroConcentrated(), Renyi()], ids=lambda a: type(a).__name__)
def test_other_accountants_want_more_noise(accountant: Renyi) -> None:
    sharp = calibrate_noise(gaussian, Distance.l2(1), 1, 1e-6, count=5)
    other = calibrate_noise(gaussian, Distance.l2(1), 1, 1e-6, count=5, accountant=accountant)
    assert sharp.sigma < other.sigma < 1.1 * sharp.sigma  # type: ignore[attr-defined]
    spend = Spend(mechanism=other, distance=Distance.l2(1), count=5)
    assert accountant.epsilon(plan_cost([spend], accountant), 1e-6).upper <= 1


def test_sampling_needs_less_noise() -> None:
    grid = lambda sigma: Gaussian(sigma=sigma, granularity=Fraction(1, 256))
    distance, sampling = Distance.l2(1, coordinates=1), Poisson(sampling_rate=Fraction(1, 50))
    plain = calibrate_noise(grid, distance, 2, 1e-6, count=100)
    drawn = calibrate_noise(grid, distance, 2, 1e-6, count=100, sampling=sampling)
    assert drawn.sigma < plain.sigma / 5  # type: ignore[attr-defined]
    spend = Spend(mechanism=drawn, distance=distance, count=100, sampling=sampling)
    bracket = PLD().epsilon(plan_cost([spend], PLD()), 1e-6)
    assert bracket.lower <= 2
    assert bracket.upper == pytest.approx(2, abs=2e-3)


def test_different_mechanisms_by_one_factor() -> None:
    def plan(noise: Fraction) -> list[Spend]:
        return [
            Spend(mechanism=Laplace(scale=3 * noise), distance=Distance.l1(1)),
            Spend(mechanism=Gaussian(sigma=2 * noise), distance=Distance.l2(1), count=3),
        ]

    found = calibrate_plan(plan, 1, 1e-6)
    assert found[0].mechanism.scale / 3 == found[1].mechanism.sigma / 2  # type: ignore[attr-defined]
    assert PLD().epsilon(plan_cost(found, PLD()), 1e-6).upper <= 1
    less = plan(found[0].mechanism.scale / 3 * Fraction(999, 1000))  # type: ignore[attr-defined]
    assert PLD().epsilon(plan_cost(less, PLD()), 1e-6).upper > 1


def test_a_parameter_that_falls_with_noise() -> None:
    """Response has an epsilon, not a scale: its noise is one over it."""
    found = calibrate_noise(
        lambda noise: KaryResponse(epsilon=1 / noise, categories=4),
        Distance.hamming(),
        Fraction(3, 2),
        count=2,
    )
    assert found == KaryResponse(epsilon=Fraction(3, 4), categories=4)


def test_a_mechanism_with_limits_is_searched_within_them() -> None:
    """A sigma below a tenth of the grid is refused, and is not wanted either."""
    coarse = lambda sigma: Gaussian(sigma=sigma, granularity=1 << 20)
    found = calibrate_noise(coarse, Distance.l2(1, coordinates=1), 1, 1e-6)
    assert found.sigma > 1 << 20  # type: ignore[attr-defined]
    loud = calibrate_noise(gaussian, Distance.l2(1), 2000, 1e-6)
    assert loud.sigma == Fraction(1, 10)  # type: ignore[attr-defined]


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), 1, Fraction(7, 2)])
@pytest.mark.parametrize("scale", [1, 20, Fraction(7, 3)])
def test_pure_uses_are_exact(epsilon: Fraction, scale: Fraction) -> None:
    spend = Spend(mechanism=Laplace(scale=scale), distance=Distance.l1(1))
    assert uses_within([spend], epsilon) == math.floor(epsilon * scale)


@pytest.mark.parametrize("accountant", [None, ZeroConcentrated()])
@pytest.mark.parametrize("sigma", [10, 40])
def test_uses_are_the_most(accountant: ZeroConcentrated | None, sigma: int) -> None:
    spends = [Spend(mechanism=gaussian(Fraction(sigma)), distance=Distance.l2(1))]
    most = uses_within(spends, 1, 1e-6, accountant=accountant)
    checker: Accountant[Any] = accountant or PLD(width=1e-4)
    one = plan_cost(spends, checker)
    assert checker.epsilon(checker.repeat(one, most), 1e-6).upper <= 1
    assert checker.epsilon(checker.repeat(one, most + 1), 1e-6).upper > 1 - 1e-4


def test_what_does_not_fit_once_is_not_used() -> None:
    assert uses_within([Spend(mechanism=Laplace(scale=1), distance=Distance.l1(2))], 1) == 0


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_noisiest_within_an_error(confidence: float) -> None:
    found = epsilon_for_error(laplace, Distance.l1(1), 25, confidence=confidence)
    assert found.mechanism.error(confidence) <= 25
    assert Laplace(scale=found.mechanism.scale * Fraction(10_001, 10_000)).error(confidence) > 25  # type: ignore[attr-defined]
    assert found.epsilon.upper == pytest.approx(float(1 / found.mechanism.scale), rel=1e-12)  # type: ignore[attr-defined]


def test_an_error_for_gaussian_noise() -> None:
    found = epsilon_for_error(gaussian, Distance.l2(1), 30, 1e-6, count=4)
    assert found.mechanism.error() <= 30
    spend = Spend(mechanism=found.mechanism, distance=Distance.l2(1), count=4)
    assert found.epsilon.upper == pytest.approx(PLD().epsilon(plan_cost([spend], PLD()), 1e-6).upper)


def test_more_privacy_needs_more_noise() -> None:
    by_epsilon = [calibrate_noise(gaussian, Distance.l2(1), e, 1e-6).sigma for e in (0.1, 1, 4)]  # type: ignore[attr-defined]
    by_delta = [calibrate_noise(gaussian, Distance.l2(1), 1, d).sigma for d in (1e-12, 1e-6, 1e-3)]  # type: ignore[attr-defined]
    by_count = [calibrate_noise(laplace, Distance.l1(1), 1, count=n).scale for n in (9, 3, 1)]  # type: ignore[attr-defined]
    for noises in (by_epsilon, by_delta, by_count):
        assert noises == sorted(noises, reverse=True)


def test_gaussian_noise_needs_a_delta() -> None:
    with refusal_of("delta", "calibrate_plan"):
        calibrate_noise(gaussian, Distance.l2(1), 1)
    with refusal_of("delta", "uses_within"):
        uses_within([Spend(mechanism=gaussian(Fraction(1)), distance=Distance.l2(1))], 1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-6), (-1, 1e-6), (math.inf, 1e-6), (1, 1), (1, -1e-3)])
def test_a_bad_target_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="of calibrate_plan must"):
        calibrate_noise(gaussian, Distance.l2(1), epsilon, delta)


def test_a_bad_mechanism_speaks_for_itself() -> None:
    with refusal_of("lower", "Geometric"):
        calibrate_noise(lambda scale: Geometric(scale=scale, lower=0.5), Distance.l1(1), 1)  # type: ignore[arg-type]


def test_noise_beyond_the_mechanism_is_refused() -> None:
    with refusal_of("scale", "Laplace"):
        calibrate_noise(laplace, Distance.l1(2**60), Fraction(1, 2**20), accountant=Pure())


@settings(max_examples=40)
@given(st.fractions(0, 100), st.fractions(Fraction(1, 10**6), 10))
def test_the_simplest_fraction(low: Fraction, width: Fraction) -> None:
    found = _simplest(low, low + width)
    assert low < found <= low + width
    for denominator in range(1, min(found.denominator, 200)):
        assert math.floor(low * denominator) == math.floor((low + width) * denominator)
