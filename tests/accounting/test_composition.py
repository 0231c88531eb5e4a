import numpy as np
import pytest
from scipy.stats import norm

from sourdine.accounting.composition import Repeated, delta_bracket, profile_above
from sourdine.accounting.dpsgd import step_loss
from sourdine.core.laws import Floats, GaussianLaw, pure_law


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
