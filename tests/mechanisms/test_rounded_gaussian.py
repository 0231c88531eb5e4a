"""The loss of rounded Gaussian noise is the Gaussian's, and its own law loses no more."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from sourdine.core.distance import Distance
from sourdine.core.distributions import AtomLaw
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import RoundedGaussian
from sourdine.testing import SeededBits


@pytest.mark.parametrize("moved", [1, 5, 12])
def test_loss_is_that_of_gaussian_noise(moved: int) -> None:
    loss = RoundedGaussian(sigma=10).loss(Distance.l2(moved))
    mu = moved / 10
    epsilons = np.linspace(-1, 4, 30)
    formula = ndtr(mu / 2 - epsilons / mu) - np.exp(epsilons) * ndtr(-mu / 2 - epsilons / mu)
    np.testing.assert_allclose(loss.profile(epsilons), formula, rtol=1e-9, atol=1e-15)
    assert loss.rho == Fraction(moved**2, 200)


@pytest.mark.parametrize(("sigma", "moved"), [(8, 1), (8, 8), (11, 40)])
def test_its_own_law_loses_no_more_and_hardly_less(sigma: int, moved: int) -> None:
    k = np.arange(-20 * sigma, 20 * sigma + 1)
    masses = lambda at: ndtr((k + 0.5 - at) / sigma) - ndtr((k - 0.5 - at) / sigma)
    p, q = masses(0), masses(moved)
    true = AtomLaw.between(p[(p > 0) & (q > 0)], q[(p > 0) & (q > 0)])
    epsilons = np.linspace(0, 3 * moved / sigma, 20)
    claimed = RoundedGaussian(sigma=sigma).loss(Distance.l2(moved)).profile(epsilons)
    found = true.profile(epsilons)
    assert np.all(found <= claimed * (1 + 1e-9) + 1e-15)
    assert np.all(found >= claimed * 0.98 - 1e-6)


def test_a_split_change_loses_the_same() -> None:
    mechanism = RoundedGaussian(sigma=30)
    one = mechanism.loss(Distance.l2(20, coordinates=1))
    many = mechanism.loss(Distance.l2(20, coordinates=400))
    assert one == many


def test_a_grid_adds_its_rounding() -> None:
    fine = RoundedGaussian(sigma=1, granularity=Fraction(1, 1 << 10))
    loss = fine.loss(Distance.l2(1, coordinates=4))
    assert Fraction(1, 2) < loss.rho <= Fraction(1, 2) * Fraction(513, 512) ** 2
    answers = fine.sample([0.3, float("nan"), float("inf"), -0.0], SeededBits(1))
    assert np.all(np.isfinite(answers))
    assert np.all(answers * 1024 == np.rint(answers * 1024))


@pytest.mark.parametrize("sigma", [Fraction(15, 2), 1 << 31])
def test_a_grid_that_is_too_coarse_or_too_fine_is_refused(sigma: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="between 8 and 2\\^30 grid steps"):
        RoundedGaussian(sigma=sigma)
