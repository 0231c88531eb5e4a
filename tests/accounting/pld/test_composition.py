import math

import numpy as np
import pytest
from scipy.stats import norm

from sourdine.accounting import dpsgd_epsilon
from sourdine.accounting.dpsgd.training import step_loss
from sourdine.accounting.pld import lattice
from sourdine.accounting.pld.composition import (
    delta_bracket,
    epsilon_above,
    epsilon_and_tilt,
    epsilon_bracket,
    profile_above,
)
from sourdine.accounting.pld.scout import Repeated
from sourdine.accounting.pld.tilt import Tilt
from sourdine.accounting.subsampling.poisson import PoissonRemove
from sourdine.core.composed import above
from sourdine.core.distributions import AtomLaw, Floats, GaussianLaw, GeometricLaw, LossDistribution, pure_law
from tests.accounting.profiles import gaussian_delta, least_epsilon


def gaussian_profile(mu: float, epsilons: Floats) -> Floats:
    """Balle and Wang 2018, theorem 8."""
    first, second = norm.cdf(mu / 2 - epsilons / mu), norm.cdf(-mu / 2 - epsilons / mu)
    return np.asarray(first - np.exp(epsilons) * second)


@pytest.mark.parametrize(("mu", "count"), [(0.05, 400), (0.5, 16), (2.0, 1)])
def test_a_whole_profile_of_gaussian_noise(mu: float, count: int) -> None:
    whole = mu * count**0.5
    epsilons = np.linspace(0, 6 * whole, 60)
    true = gaussian_profile(whole, epsilons)
    ours = profile_above([Repeated(GaussianLaw(mu), count)], epsilons, 1e-3)
    assert np.all(ours >= true * (1 - 1e-9) - 1e-15)
    assert np.allclose(ours, true, rtol=5e-3, atol=1e-14)


def test_a_whole_profile_of_coins() -> None:
    """The laws of how many of 10 coins tell the truth."""
    epsilon, count = 0.3, 10
    yes = 1 / (1 + np.exp(-epsilon))
    k = np.arange(count + 1)
    ways = np.array(
        [float(np.prod(np.arange(count - i + 1, count + 1)) / np.prod(np.arange(1, i + 1))) for i in k]
    )
    p = ways * yes**k * (1 - yes) ** (count - k)
    epsilons = np.linspace(0, 2.9, 30)
    true = np.maximum(p[:, None] - np.exp(epsilons) * p[::-1, None], 0).sum(axis=0)
    ours = profile_above([Repeated(pure_law(epsilon), count)], epsilons, 1e-3)
    assert np.all(ours >= true - 1e-15)
    assert np.allclose(ours, true, rtol=1e-3)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_whole_profile_agrees_with_its_points(direction: str) -> None:
    laws = [Repeated(getattr(step_loss(1.0, 64 / 60000), direction), 14070)]
    epsilons = np.array([0.0, 0.3, 0.6, 0.9])
    ours = profile_above(laws, epsilons, 1e-3)
    for epsilon, delta in zip(epsilons, ours, strict=True):
        bracket = delta_bracket(laws, float(epsilon), 2e-3)
        assert bracket.lower <= delta <= bracket.upper * 1.01


@pytest.mark.parametrize("epsilon", [-20.0, 0.0, 1.0])
def test_mass_below_the_window_counts(epsilon: float) -> None:
    """Where nearly every loss lies far above epsilon, the rest must not be forgotten."""
    true = float(gaussian_profile(18.0, np.array(epsilon)))
    assert true <= delta_bracket([Repeated(GaussianLaw(18.0), 1)], epsilon, 1e-3).upper


@pytest.mark.parametrize("mu", [1e-6, 1.2e-4, 0.01])
@pytest.mark.parametrize("delta", [1e-15, 1e-9])
def test_tiny_losses_are_tilted_by_large_orders(mu: float, delta: float) -> None:
    truth = least_epsilon(lambda epsilon: gaussian_delta(mu, epsilon), delta, 40 * mu)
    bracket = epsilon_bracket([Repeated(GaussianLaw(mu), 1)], delta, 0.01 * mu)
    assert bracket.lower - 1e-4 * mu <= truth <= bracket.upper + 1e-4 * mu
    assert bracket.width <= 0.01 * mu


def test_a_highest_loss_that_is_rounded_down_keeps_its_atom() -> None:
    law = PoissonRemove(GeometricLaw(1, 3.3), 0.01)
    assert law.survival(law.highest).p > 1e-3  # the atom lies above what is called the highest loss
    assert epsilon_bracket([Repeated(law, 3)], 1e-5, 1e-3).upper < 0.02


def infinite_law() -> AtomLaw:
    """Five outcomes, and one that gives everything away."""
    return AtomLaw.between([0.199, 0.2, 0.2, 0.2, 0.2, 0.001], [0.21, 0.19, 0.22, 0.18, 0.2, 0.0])


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 5.0])
def test_both_ends_count_infinite_losses(epsilon: float) -> None:
    p, q = np.array([0.199, 0.2, 0.2, 0.2, 0.2, 0.001]), np.array([0.21, 0.19, 0.22, 0.18, 0.2, 0.0])
    all_p, all_q = np.ones(1), np.ones(1)
    for _ in range(5):
        all_p, all_q = np.outer(all_p, p).ravel(), np.outer(all_q, q).ravel()
    truth = float(np.maximum(all_p - math.exp(epsilon) * all_q, 0).sum())
    bracket = delta_bracket([Repeated(infinite_law(), 5)], epsilon, 1e-3)
    assert bracket.lower <= truth * (1 + 1e-9)
    assert truth <= bracket.upper * (1 + 1e-9)
    assert bracket.lower >= 0.99 * truth


def test_no_epsilon_below_the_chance_of_an_infinite_loss() -> None:
    sure = 1 - 0.999**5
    laws = [Repeated(infinite_law(), 5)]
    assert epsilon_bracket(laws, 0.99 * sure, 1e-3).lower == math.inf
    bracket = epsilon_bracket(laws, 1.1 * sure, 1e-3)
    assert 0 < bracket.lower < bracket.upper < 1


def test_ends_that_cross_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower end that claims too much must not be hidden."""
    monkeypatch.setattr(lattice, "below", lambda law, losses: above(law, losses - 0.01)[0])
    for bracket in (epsilon_bracket, delta_bracket):
        with pytest.raises(ArithmeticError, match="lies above the upper one"):
            bracket([Repeated(GaussianLaw(0.1), 100)], 1e-5 if bracket is epsilon_bracket else 1.0, 1e-3)


@pytest.mark.parametrize("count", [2**45, 2**60])
def test_a_count_beyond_floats_gives_the_widest_bracket(count: int) -> None:
    laws = [Repeated(GaussianLaw(1.0), count)]
    assert epsilon_bracket(laws, 1e-5, 1e-3).lower == 0
    assert epsilon_above(laws, 1e-5, 1e-3) == epsilon_bracket(laws, 1e-5, 1e-3).upper == math.inf
    assert (delta_bracket(laws, 1.0, 1e-3).lower, delta_bracket(laws, 1.0, 1e-3).upper) == (0, 1)
    assert profile_above(laws, np.array([0.0, 1.0]), 1e-3).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("law", "epsilon", "delta"),
    [
        (AtomLaw([700.0], [1.0], [math.exp(-700)]), 700.0, 1.0),  # nothing that a lattice holds
        (GaussianLaw(100.0), math.inf, 1.0),
        (AtomLaw([0.0], [1e-17], [1.0], 1.0), math.inf, 1.0),  # hardly ever finite
        (AtomLaw([0.0] * 4, [0.25] * 4, [0.25] * 4), 0.0, 0.0),  # no loss, which any step would show
    ],
    ids=["beyond", "far", "infinite", "none"],
)
def test_laws_at_the_end_of_floats_still_have_a_bracket(
    law: LossDistribution, epsilon: float, delta: float
) -> None:
    laws = [Repeated(law, 1)]
    found, share = epsilon_bracket(laws, 1e-6, 1e-3), delta_bracket(laws, 1.0, 1e-3)
    assert found.lower <= epsilon
    assert share.lower <= delta <= share.upper
    assert profile_above(laws, np.array([1.0, 2.0]), 1e-3)[0] >= delta
    if epsilon < math.inf:
        assert epsilon <= found.upper
        assert epsilon <= epsilon_above(laws, 1e-6, 1e-3)


@pytest.mark.parametrize("order", [0.3, 4.0, 60.0])
@pytest.mark.parametrize("spare", [None, 0.0, 5.0])
def test_no_tilt_of_the_other_direction_makes_a_bracket_wrong(order: float, spare: float | None) -> None:
    """Whatever tilt is tried first, only an epsilon at which Balle and Wang's delta is met is said to do."""
    laws, near = [Repeated(GaussianLaw(0.1), 25)], Tilt(order, order, spare)
    true = epsilon_bracket(laws, 1e-6, 1e-4)
    for least in (0.5 * true.lower, true.lower - 1e-3, true.upper + 1e-3, 2 * true.upper):
        found, _ = epsilon_and_tilt(laws, 1e-6, 1e-3, least, near)
        assert gaussian_delta(0.5, found.upper) <= 1e-6
        assert found.lower == 0 or gaussian_delta(0.5, found.lower) >= 1e-6
        assert found.width <= 1e-3 or found.upper <= least


def test_the_tilt_of_one_direction_tells_that_the_other_is_below() -> None:
    """What is left out for speed leaves the answer as it is: the seed's run, its second direction."""
    loss = step_loss(1.0, 64 / 60000)
    first, tilt = epsilon_and_tilt([Repeated(loss.remove, 14070)], 1e-5, 1e-3)
    second, same = epsilon_and_tilt([Repeated(loss.add, 14070)], 1e-5, 1e-3, first.lower, tilt)
    assert second.upper == first.lower
    assert same is tilt is not None
    assert epsilon_bracket([Repeated(loss.add, 14070)], 1e-5, 1e-3).upper < first.lower


def test_masses_below_the_smallest_float_leave_a_finite_bracket() -> None:
    found = dpsgd_epsilon(noise_multiplier=1.0, sampling_rate=1e-3, steps=1000, delta=1e-300)
    assert 20 < found.lower < found.upper < 70
