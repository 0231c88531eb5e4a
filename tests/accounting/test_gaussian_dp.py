import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from sourdine.accounting import (
    PLD,
    Poisson,
    PoissonGroup,
    Spend,
    dominating_square,
    gdp_epsilon,
    mu_of_epsilon,
)
from sourdine.accounting.explain import explain_ledger
from sourdine.accounting.ledger import GaussianBudget, Ledger
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import AtomLaw, GaussianLaw
from sourdine.core.errors import BudgetExceeded, InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.learning import NoisyGradient
from sourdine.mechanisms import Exponential, FinitePair, Gaussian, KaryResponse, Laplace
from tests.errors import refusal_of


def gaussian_profile(mu: mpf, epsilon: mpf) -> mpf:
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def discrete_profile(sigma: int, units: int, epsilon: mpf) -> mpf:
    y = range(-20 * sigma - units, 20 * sigma + units + 1)
    p = [mp.exp(-(mpf(each) ** 2) / (2 * sigma**2)) for each in y]
    q = [mp.exp(-(mpf(each - units) ** 2) / (2 * sigma**2)) for each in y]
    total = mp.fsum(p)
    return mp.fsum(max(mpf(0), a - mp.exp(epsilon) * b) for a, b in zip(p, q, strict=True)) / total


@pytest.mark.parametrize(("sigma", "units"), [(1, 1), (2, 1), (3, 5)])
def test_discrete_gaussian_noise_is_dominated_and_hardly_more(sigma: int, units: int) -> None:
    loss = Gaussian(sigma=Fraction(sigma)).loss(Distance.l2(units, coordinates=1))
    square = dominating_square(loss)
    mu, tight = math.sqrt(square), False
    with mp.workdps(50):
        for epsilon in np.linspace(-6, 6, 61):
            true = discrete_profile(sigma, units, mpf(epsilon))
            assert true <= gaussian_profile(mpf(mu), mpf(epsilon)) + mpf(10) ** -20
            tight |= bool(true > gaussian_profile(mpf(mu) * (1 - mpf(10) ** -3), mpf(epsilon)))
    assert tight
    assert mu > units / sigma


def test_sigma_one_is_not_mu_one() -> None:
    loss = Gaussian(sigma=Fraction(1)).loss(Distance.l2(1))
    assert float(loss.profile(0)) == pytest.approx(0.3989, abs=1e-4)
    assert float(GaussianLaw(1.0).profile(0)) == pytest.approx(0.3829, abs=1e-4)
    assert math.sqrt(dominating_square(loss)) == pytest.approx(1.04576, abs=1e-5)


def test_continuous_noise_is_exact() -> None:
    loss = NoisyGradient(sigma=Fraction(3)).loss(Distance.l2(square=2))
    assert dominating_square(loss) == Fraction(2, 9)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.data())
def test_finite_pairs_are_dominated_and_no_less_serves(first: list[int], data: st.DataObject) -> None:
    second = data.draw(st.lists(st.integers(1, 50), min_size=len(first), max_size=len(first)))
    p, q = ([Fraction(each, sum(law)) for each in law] for law in (first, second))
    loss = PrivacyLoss.between(p, q)
    mu = math.sqrt(dominating_square(loss))
    corners = sorted(zip(p, q, strict=True), key=lambda pair: -pair[0] / pair[1])
    with mp.workdps(30):
        sums = [
            (sum(a for a, _ in corners[:i]), sum(b for _, b in corners[:i])) for i in range(1, len(corners))
        ]
        z = [
            tuple(mp.sqrt(2) * mp.erfinv(2 * mpf(s.numerator) / s.denominator - 1) for s in pair)
            for pair in sums
        ]
        least = max([t - a for t, a in z] + [mpf(0)])  # by symmetry the other direction has the same corners
    assert float(least) <= mu <= float(least) + 1e-8
    epsilons = np.linspace(-4, 4, 81)
    if mu > 1e-3:
        assert np.all(GaussianLaw(mu).profile(epsilons) >= loss.remove.profile(epsilons) - 1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(10)])
def test_a_pure_epsilon_has_its_mu(epsilon: Fraction) -> None:
    with mp.workdps(40):
        share = 1 / (1 + mp.exp(-mpf(epsilon.numerator) / epsilon.denominator))
        true = 2 * mp.sqrt(2) * mp.erfinv(2 * share - 1)
    assert float(true) <= mu_of_epsilon(epsilon) <= float(true) * (1 + 1e-8)
    square = dominating_square(
        Exponential(epsilon=epsilon, candidates=3, sensitivity=Fraction(1)).loss(Distance.linf(1))
    )
    assert math.sqrt(square) <= mu_of_epsilon(epsilon) * (1 + 1e-9)
    response = dominating_square(KaryResponse(epsilon=epsilon, categories=2).loss(Distance.hamming()))
    assert math.sqrt(response) == pytest.approx(float(true), rel=1e-7)
    assert dominating_square(PrivacyLoss.pure(0)) == 0
    for wrong in (-1, math.inf):
        with refusal_of("epsilon", "mu_of_epsilon"):
            mu_of_epsilon(wrong)


@pytest.mark.parametrize("exponent", [-324, -300, -17, -16, -14, -12, -9, -8, -6, -4, -3])
@pytest.mark.parametrize("digit", [1, 2, 5, 9])
def test_a_small_epsilon_has_a_mu_no_less(exponent: int, digit: int) -> None:
    epsilon = Fraction(digit) * Fraction(10) ** exponent
    with mp.workdps(50):
        exact = mpf(epsilon.numerator) / epsilon.denominator
        true = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(exact / 2))
        assert true <= mpf(mu_of_epsilon(epsilon)) <= true * (1 + mpf(10) ** -8) + mpf(10) ** -322
    assert dominating_square(PrivacyLoss.pure(epsilon)) > 0


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 2), Fraction(1, 100)])
@pytest.mark.parametrize("group", [2, 5])
@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1)])
def test_a_bound_that_lacks_mass_under_q_has_no_corners_to_go_by(
    rate: Fraction, group: int, scale: Fraction
) -> None:
    """The profile of a group is bounded by a law whose Q lacks mass: the corner at P = 1 has no mu."""
    loss = PoissonGroup(sampling_rate=rate, group=group).apply(Laplace(scale=scale).loss(Distance.l1(1)))
    mu = mu_of_epsilon(loss.epsilon)
    assert mu**2 <= dominating_square(loss) <= mu**2 * (1 + 1e-9)


def test_a_stated_law_that_lacks_mass_under_q_has_no_mu() -> None:
    one = PrivacyLoss.symmetric(AtomLaw([1.0], [1.0], [math.exp(-1)]), neighbours=Neighbours.ADD_REMOVE)
    assert dominating_square(one) == math.inf


def test_laws_that_floats_cannot_tell_apart_cost_something() -> None:
    close = Fraction(1, 2) + Fraction(1, 1 << 250)
    assert dominating_square(PrivacyLoss.between([close, 1 - close], [1 - close, close])) > 0


def test_a_rounded_mu_is_not_preferred_to_its_exact_square() -> None:
    below = math.nextafter(math.sqrt(2), 0)
    loss = PrivacyLoss.symmetric(GaussianLaw(below), neighbours=Neighbours.ADD_REMOVE, rho=Fraction(1))
    assert dominating_square(loss) == 2


@pytest.mark.parametrize(
    "loss",
    [
        Gaussian(sigma=Fraction(1)).loss(Distance.l2(1 << 60, coordinates=1)),  # too many corners to hold
        FinitePair.between([0.999, 0.001], [1, 0]).loss(Distance.hamming()),
        FinitePair.between([1, 0], [0.999, 0.001]).loss(Distance.hamming()),
        Gaussian(sigma=Fraction(2)).loss(Distance.l2(square=2, coordinates=2)),
        Gaussian(sigma=Fraction(5000)).loss(Distance.l2(1)),
        Poisson(sampling_rate=Fraction(1, 2)).apply(NoisyGradient(sigma=Fraction(2)).loss(Distance.l2(1))),
    ],
)
def test_what_no_mu_is_proven_for_has_none(loss: PrivacyLoss) -> None:
    assert dominating_square(loss) == math.inf


@pytest.mark.parametrize(
    ("mu", "delta"),
    [
        (0.001, 1e-9),
        (0.5, 1e-6),
        (1.0, 1e-5),
        (5.0, 1e-12),
        (0.1, 0.3),
        (1.6195081050892851e-07, 2.08417471046043e-202),  # logarithms of 460, which agree in all but 1e-6
        (6.13072020907747e-07, 1.2538878401080072e-157),
        (1e-3, 1e-320),
    ],
)
def test_epsilon_of_a_mu(mu: float, delta: float) -> None:
    found, close = gdp_epsilon(Fraction(mu) ** 2, delta), -6 if delta > 1e-100 else -3
    with mp.workdps(400):
        assert gaussian_profile(mpf(mu), mpf(found)) <= delta
        if found:
            assert gaussian_profile(mpf(mu), mpf(found) * (1 - mpf(10) ** close)) > delta
    assert gdp_epsilon(Fraction(0), delta) == 0
    assert gdp_epsilon(Fraction(10**14), delta) == math.inf


def test_a_ledger_in_mu(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", mu="1/2", delta=1e-6)
    assert ledger.terms.budget == GaussianBudget(limit=Fraction(1, 4))
    noise = Spend(mechanism=NoisyGradient(sigma=Fraction(4)), distance=Distance.l2(1), count=2)
    assert ledger.charge(noise, purpose="two sums").price == Fraction(1, 8)
    assert ledger.charge(noise, purpose="two more").left == 0
    with pytest.raises(BudgetExceeded):
        ledger.charge(noise, purpose="no more")
    again = Ledger.open(tmp_path / "a.ledger")
    assert [entry.price for entry in again.history()] == [Fraction(1, 8)] * 2
    status = again.status()
    assert (status.currency, status.limit, status.spent) == ("mu^2", Fraction(1, 4), Fraction(1, 4))
    true = PLD().epsilon(
        PLD().lift(PrivacyLoss.symmetric(GaussianLaw(0.5), neighbours=Neighbours.ADD_REMOVE)), 1e-6
    )
    assert true.lower <= status.epsilon <= true.upper * (1 + 1e-6)
    assert explain_ledger(again).curve.advantage == pytest.approx(0.1974, abs=1e-4)


def test_a_ledger_in_mu_pays_discrete_noise_and_refuses_what_has_no_mu(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "a.ledger", mu=2, delta=1e-6)
    counted = Spend(mechanism=Gaussian(sigma=Fraction(1)), distance=Distance.l2(1))
    assert float(ledger.charge(counted, purpose="a count").price) == pytest.approx(1.04576**2, rel=1e-5)
    laplace = Spend(mechanism=Laplace(scale=Fraction(1)), distance=Distance.l1(1))
    assert float(ledger.charge(laplace, purpose="a count").price) == pytest.approx(1.23204**2, rel=1e-5)
    assert len(ledger.history()) == 2
    leaky = Spend(
        mechanism=FinitePair.between([0.999, 0.001], [1, 0]),
        distance=Distance.hamming(neighbours=Neighbours.ADD_REMOVE),
    )
    half = Poisson(sampling_rate=Fraction(1, 2))
    sampled = Spend(mechanism=NoisyGradient(sigma=Fraction(4)), distance=Distance.l2(1), sampling=half)
    for refused in (leaky, sampled):
        with pytest.raises(UnsupportedLoss):
            ledger.charge(refused, purpose="refused")
    assert ledger.status().blocks == 2


def test_terms_in_mu(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        Ledger.create(tmp_path / "a.ledger", mu=1)
    with refusal_of("selection_delta", "Ledger"):
        Ledger.create(tmp_path / "a.ledger", mu=1, delta=1e-6, selection_delta=1e-7)
    with pytest.raises(InvalidParameter, match="More than one budget"):
        Ledger.create(tmp_path / "a.ledger", mu=1, rho=1, delta=1e-6)
