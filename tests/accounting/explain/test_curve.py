import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from sourdine.accounting import PLD, known
from sourdine.accounting.dpsgd.training import steps_cost
from sourdine.accounting.explain import Curve
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import AtomLaw, Floats, GaussianLaw
from sourdine.core.loss import PrivacyLoss
from tests.errors import refusal_of

RATES = np.array([0.0, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0])


def gaussian(mu: float) -> PrivacyLoss:
    return PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=Neighbours.ADD_REMOVE)


def between(p: Floats, q: Floats) -> PrivacyLoss:
    return PrivacyLoss(
        remove=AtomLaw.between(p, q), add=AtomLaw.between(q, p), neighbours=Neighbours.ADD_REMOVE
    )


def best_test(p: Floats, q: Floats, rate: float) -> float:
    """Neyman and Pearson: accuse the likeliest outcomes first, the last one by a coin."""
    found, left = 0.0, rate
    with np.errstate(divide="ignore"):
        order = np.argsort(-np.where(q > 0, p / np.where(q > 0, q, 1.0), np.inf))
    for i in order:
        share = 1.0 if q[i] <= left else left / q[i]
        found, left = found + share * p[i], left - share * q[i]
    return found


def two_laws(size: int) -> st.SearchStrategy[tuple[Floats, Floats]]:
    weights = st.lists(st.integers(1, 100), min_size=size, max_size=size)
    return st.tuples(weights, weights).map(
        lambda pair: tuple(np.array(side) / sum(side) for side in pair)  # type: ignore[arg-type, return-value]
    )


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_curve_of_gaussian_noise(mu: float) -> None:
    curve = Curve.of_loss(gaussian(mu))
    true = norm.cdf(norm.ppf(RATES) + mu)
    ours = curve.true_positives(RATES)
    assert np.all(ours >= true - 1e-12)
    assert np.allclose(ours, true, rtol=2e-3, atol=1e-9)
    assert curve.accuracy() == pytest.approx(norm.cdf(mu / 2), rel=1e-6)
    assert curve.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-6)


@pytest.mark.parametrize("prior", [0.05, 0.4, 0.5, 0.8, 0.99])
def test_accuracy_for_any_prior(prior: float) -> None:
    mu = 1.5
    right, _ = quad(
        lambda x: max(prior * norm.pdf(x - mu), (1 - prior) * norm.pdf(x)), -10, 12, limit=500, epsabs=1e-10
    )
    ours = Curve.of_loss(gaussian(mu)).accuracy(prior)
    assert right - 1e-9 <= ours <= right + 1e-4


@given(st.floats(0.01, 20), st.floats(0, 0.3))
def test_a_point_gives_the_region_of_kairouz_oh_viswanath(epsilon: float, delta: float) -> None:
    curve = Curve.of_loss(known(epsilon, delta))
    first = delta + np.exp(epsilon) * RATES
    second = 1 - np.exp(-epsilon) * (1 - RATES - delta)
    assert np.allclose(curve.true_positives(RATES), np.minimum(np.minimum(first, second), 1), atol=1e-9)
    best = delta + (1 - delta) / (1 + math.exp(-epsilon))
    assert curve.accuracy() == pytest.approx(
        (1 + delta + (1 - delta) * (2 * (best - delta) / (1 - delta) - 1)) / 2
    )


@given(two_laws(4), st.floats(0, 1), st.floats(0.01, 0.99))
def test_no_test_beats_the_curve(laws: tuple[Floats, Floats], rate: float, prior: float) -> None:
    p, q = laws
    curve = Curve.of_loss(between(p, q))
    ways = best_test(p, q, rate), best_test(q, p, rate)
    assert max(ways) - 1e-9 <= float(curve.true_positives(rate)) <= max(ways) + 0.02
    right = max(float(np.maximum(prior * one, (1 - prior) * two).sum()) for one, two in ((p, q), (q, p)))
    assert right - 1e-9 <= curve.accuracy(prior) <= right + 0.02
    assert curve.advantage == pytest.approx(float(np.abs(p - q).sum()) / 2, abs=1e-9)


@given(two_laws(4), st.floats(0.001, 0.9))
def test_losses_exceed_their_reach_seldom(laws: tuple[Floats, Floats], chance: float) -> None:
    p, q = laws
    curve = Curve.of_loss(between(p, q))
    reach = curve.reach(chance)
    losses = np.log(p / q)
    assert float(p[losses > reach].sum()) <= chance
    assert float(q[-losses > reach].sum()) <= chance
    for epsilon in (0.0, 0.3, 1.0):
        assert curve.exceeding(epsilon) >= float(p[losses > epsilon].sum()) - 1e-12
    prior = 0.3
    after = prior * p / (prior * p + (1 - prior) * q)
    bounds = curve.posterior(prior, chance)
    assert float(p[after > bounds.upper + 1e-12].sum()) <= chance
    assert float(q[after < bounds.lower - 1e-12].sum()) <= chance


def test_delta_is_not_the_chance_of_a_large_loss() -> None:
    """Randomized response a little above 1 is (1, 1e-5)-DP, and its loss exceeds 1 three times in four."""
    loss = PrivacyLoss.pure(1 + 1.3e-5)
    above = float(loss.remove.survival(1.0).p)
    assert float(loss.profile(1.0)) < 1e-5
    assert above > 0.73
    assert Curve.of_loss(known(1, 1e-5)).exceeding(1.0) >= above
    assert Curve.of_loss(gaussian(1.0)).exceeding(4.377) >= float(norm.sf(4.377 - 0.5)) > 5e-5


def test_reach_and_exceeding_are_inverse() -> None:
    curve = Curve.of_loss(gaussian(1.0))
    for chance in (1e-6, 1e-3, 0.1):
        assert curve.exceeding(curve.reach(chance) + 1e-9) == pytest.approx(chance, rel=1e-6)
    assert curve.reach(0) == math.inf
    assert curve.exceeding(0.0) == 1


def test_a_pure_guarantee_has_no_exceptions() -> None:
    curve = Curve.of_loss(PrivacyLoss.pure(1.17))
    assert curve.reach(0) == pytest.approx(1.17)
    assert curve.exceeding(1.17 + 1e-12) == 0
    assert curve.posterior(0.5, 0.0).upper == pytest.approx(0.763, abs=5e-4)


def test_many_losses_together_are_one_gaussian() -> None:
    accountant = PLD()
    curve = Curve.of_cost(accountant.repeat(accountant.lift(gaussian(0.1)), 400))
    true = norm.cdf(norm.ppf(RATES) + 2.0)
    assert np.all(curve.true_positives(RATES) >= true - 1e-12)
    assert np.allclose(curve.true_positives(RATES), true, rtol=5e-3, atol=1e-9)
    once = Curve.of_cost(accountant.lift(gaussian(2.0)))
    assert once.advantage == pytest.approx(curve.advantage, rel=1e-3)


def test_a_pure_plan_ends_at_its_epsilon() -> None:
    accountant = PLD()
    curve = Curve.of_cost(accountant.repeat(accountant.lift(PrivacyLoss.pure(0.25)), 4))
    assert curve.reach(0) == pytest.approx(1.0)
    # four coins: enumerate how many of them tell the truth
    yes = 1 / (1 + math.exp(-0.25))
    p = np.array([math.comb(4, k) * yes**k * (1 - yes) ** (4 - k) for k in range(5)])
    assert curve.advantage == pytest.approx(float(np.abs(p - p[::-1]).sum()) / 2, rel=5e-3)


def sum_by_plain_transform(noise: float, rate: float, steps: int) -> tuple[Floats, Floats, Floats]:
    """The loss of many steps under P and Q: a histogram of one step, and its power; no bounds, no tilt."""
    x = np.linspace(-12 * noise, 12 * noise + 1, 2_000_001)
    loss = np.log1p(rate * np.expm1((2 * x - 1) / (2 * noise**2)))
    q = norm.pdf(x / noise)
    q /= q.sum()
    p = q * np.exp(loss)
    step, half = 1e-5, 1 << 19
    powers = []
    for mass in (p, q):
        place = np.floor(loss / step).astype(int)
        up = loss / step - place  # between two places, so that the mean stays
        one = np.bincount(place % (2 * half), mass * (1 - up), 2 * half)
        one += np.bincount((place + 1) % (2 * half), mass * up, 2 * half)
        powers.append(np.roll(np.fft.irfft(np.fft.rfft(one) ** steps), half))
    losses: Floats = np.arange(-half, half, dtype=np.float64) * step
    return losses, powers[0], powers[1]


def test_the_seed_run() -> None:
    curve = Curve.of_cost(steps_cost(1.0, 64 / 60000, 14070))
    found = float(curve.true_positives(0.01))
    assert round(100 * found, 2) == 1.55
    assert round(100 * curve.accuracy(), 1) == 53.3
    assert round(curve.advantage, 3) == 0.066
    losses, p, q = sum_by_plain_transform(1.0, 64 / 60000, 14070)
    assert curve.advantage == pytest.approx(float(np.maximum(p - q, 0).sum()), rel=2e-3)
    false = np.cumsum(q[::-1])
    true = np.cumsum(p[::-1])
    assert found == pytest.approx(float(np.interp(0.01, false, true)), rel=3e-3)
    assert curve.exceeding(0.6115) >= float(p[losses > 0.6115].sum()) > 5 * 1e-5


def test_the_premium_of_the_source() -> None:
    assert Curve.of_loss(PrivacyLoss.pure(0.01)).expected(2000, 100_000) == pytest.approx(2020.10, abs=0.005)
    with_delta = Curve.of_loss(known(0.01, 1e-3)).expected(2000, 100_000)
    assert with_delta == pytest.approx(2000 * math.exp(0.01) + 1e-3 * 100_000)


@given(two_laws(3), st.lists(st.floats(0, 50), min_size=3, max_size=3))
def test_no_mean_beats_the_expected_one(laws: tuple[Floats, Floats], sums: list[float]) -> None:
    p, q = laws
    values = np.array(sums)
    assert float(p @ values) <= Curve.of_loss(between(p, q)).expected(float(q @ values), 50) + 1e-9


def test_a_huge_epsilon_bounds_nothing() -> None:
    curve = Curve.of_loss(gaussian(40.0))
    assert curve.advantage == 1
    assert curve.reach(1e-3) == math.inf
    assert float(Curve.of_loss(PrivacyLoss.pure(1000)).true_positives(0.01)) == 1


def test_precision_is_bayes_rule() -> None:
    curve = Curve.of_loss(PrivacyLoss.pure(1.0))
    assert curve.precision(0.5, 0.01) == pytest.approx(math.e / (math.e + 1))
    assert curve.precision(0.1, 0.01) == pytest.approx(0.1 * math.e / (0.1 * math.e + 0.9))


def test_bad_parameters_name_themselves() -> None:
    curve = Curve.of_loss(PrivacyLoss.pure(1.0))
    with refusal_of("false_positives", "true_positives"):
        curve.true_positives([0.5, 1.5])
    with refusal_of("prior", "accuracy"):
        curve.accuracy(2)
    with refusal_of("chance", "reach"):
        curve.reach(-1)
    with refusal_of("mean", "expected"):
        curve.expected(3, 2)
