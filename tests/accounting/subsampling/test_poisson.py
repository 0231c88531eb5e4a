import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.accounting import known, poisson
from sourdine.accounting.subsampling.poisson import PoissonAdd, PoissonRemove, amplified, lone_mass
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import (
    AtomLaw,
    GaussianLaw,
    GeometricLaw,
    LossDistribution,
    RhoLaw,
    pure_law,
)
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Laplace
from tests.accounting.profiles import hockey_stick, integrated, normal_mixture
from tests.errors import refusal_of

EPSILONS = [-1.5, -0.3, -0.01, 0.0, 0.02, 0.3, 1.0, 2.5]


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_a_sampled_gaussian_against_integration(rate: float, mu: float) -> None:
    loss = poisson(PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=Neighbours.ADD_REMOVE), rate)
    mixed, alone = normal_mixture([1 - rate, rate], [0, mu]), normal_mixture([1], [0])
    for epsilon in EPSILONS:
        assert loss.remove.profile(epsilon) == pytest.approx(integrated(mixed, alone, epsilon), abs=1e-11)
        assert loss.add.profile(epsilon) == pytest.approx(integrated(alone, mixed, epsilon), abs=1e-11)


@pytest.mark.parametrize("base", [GaussianLaw(0.7), AtomLaw([-1.0, 2.0], [0.3, 0.6], [0.6, 0.3], 0.1)])
def test_both_tails_at_once_are_each_of_them(base: LossDistribution) -> None:
    losses = np.array([-700.0, -1.5, -0.01, 0.0, 0.02, 1.0, 650.0])
    for law in (PoissonRemove(base, 0.2), PoissonAdd(base, 0.2)):
        for pair, alone in zip(law.both(losses), (law.survival(losses), law.cumulative(losses)), strict=True):
            assert np.array_equal(pair.p, alone.p)
            assert np.array_equal(pair.q, alone.q)


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 3)])
def test_sampled_laplace_noise_against_the_sum_over_outcomes(rate: Fraction) -> None:
    y, q = np.arange(-400, 401), float(rate)
    p0, q0 = np.exp(-np.abs(y - 2) / 3.0), np.exp(-np.abs(y) / 3.0)
    p0, q0 = p0 / p0.sum(), q0 / q0.sum()
    loss = poisson(Laplace(scale=3).loss(Distance.l1(2, coordinates=1)), rate)
    for epsilon in EPSILONS:
        mixed = (1 - q) * q0 + q * p0
        assert loss.remove.profile(epsilon) == pytest.approx(hockey_stick(mixed, q0, epsilon), abs=1e-12)
        assert loss.add.profile(epsilon) == pytest.approx(hockey_stick(q0, mixed, epsilon), abs=1e-12)


@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=5),
    st.tuples(st.floats(0.01, 1), *[st.just(0.0) | st.floats(0.01, 1)] * 4),
    st.floats(0.001, 0.999),
)
def test_sampled_atoms_against_mixtures(p: list[float], q: tuple[float, ...], rate: float) -> None:
    """Outcomes that one side never gives included."""
    first = np.append(p, 0.0) / sum(p)
    second = np.array([*q[: len(p)], 0.1]) / (sum(q[: len(p)]) + 0.1)
    base = PrivacyLoss(
        remove=AtomLaw.between(first, second),
        add=AtomLaw.between(second, first),
        neighbours=Neighbours.ADD_REMOVE,
    )
    loss = poisson(base, rate)
    mixed = (1 - rate) * second + rate * first
    for epsilon in EPSILONS:
        assert loss.remove.profile(epsilon) == pytest.approx(hockey_stick(mixed, second, epsilon), abs=1e-12)
        assert loss.add.profile(epsilon) == pytest.approx(hockey_stick(second, mixed, epsilon), abs=1e-12)


@pytest.mark.parametrize("base", [RhoLaw(0.5), GaussianLaw(1.0), GeometricLaw(3, 2.0), known(1, 0.1).remove])
@pytest.mark.parametrize("kind", [PoissonRemove, PoissonAdd])
def test_what_lies_above_and_below_is_everything(base: object, kind: type) -> None:
    """Also where the base has outcomes that one side never gives."""
    law = kind(base, 0.2)
    at = np.linspace(law.lowest if math.isfinite(law.lowest) else -3.0, 3.0, 50) + 1e-9
    assert law.survival(at).p + law.cumulative(at).p == pytest.approx(1.0, abs=1e-9)
    missing = 0.2 * lone_mass(base) if kind is PoissonAdd else 0.0  # type: ignore[arg-type]
    assert law.survival(at).q + law.cumulative(at).q == pytest.approx(1.0 - missing, abs=1e-9)


@given(st.fractions(Fraction(1, 10**9), 1), st.fractions(Fraction(1, 10**6), 50))
def test_epsilon_is_amplified_and_rounded_up(rate: Fraction, epsilon: Fraction) -> None:
    with mp.workdps(60):
        share = mp.mpf(rate.numerator) / rate.denominator
        true = mp.log1p(share * mp.expm1(mp.mpf(epsilon.numerator) / epsilon.denominator))
        found = mp.mpf(amplified(epsilon, rate))
    assert true <= found <= true * (1 + mp.mpf(10) ** -15)


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_the_sampled_profile_ends_at_the_amplified_epsilon(epsilon: float) -> None:
    loss = poisson(PrivacyLoss.pure(epsilon), 0.1)
    assert loss.profile(loss.epsilon) <= 1e-16
    assert loss.profile(loss.epsilon * 0.999) > 0
    assert math.isinf(loss.rho)


def test_a_smaller_rate_costs_less_and_a_rate_of_one_changes_nothing() -> None:
    base = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE, rho=Fraction(1, 2))
    assert poisson(base, 1) is base
    for epsilon in (0.0, 0.5, 2.0):
        deltas = [float(poisson(base, rate).profile(epsilon)) for rate in (0.001, 0.01, 0.3, 0.9, 1)]
        assert deltas == sorted(deltas)


@pytest.mark.parametrize("rate", [0, -0.1, 1.01, math.nan, "half"])
def test_a_bad_rate_is_refused(rate: float) -> None:
    with refusal_of("sampling_rate", "poisson"):
        poisson(PrivacyLoss.pure(1), rate)


@pytest.mark.parametrize("relation", [Neighbours.REPLACE])
def test_other_relations_are_refused(relation: Neighbours) -> None:
    with pytest.raises(UnsupportedLoss, match=f"zero-out neighbours, and this one is for {relation}"):
        poisson(PrivacyLoss.pure(1, neighbours=relation), 0.1)


def test_no_mass_is_alone_where_both_sides_give_the_same_outcomes() -> None:
    assert lone_mass(pure_law(1.0)) == pytest.approx(0, abs=1e-15)
    assert lone_mass(known(1, 0.25).remove) == pytest.approx(0.25, abs=1e-12)
    assert lone_mass(RhoLaw(0.5)) == pytest.approx(1 - math.exp(-0.5), abs=1e-9)
