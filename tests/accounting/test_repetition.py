"""The best of a geometric number of runs: the claim against sums over all outcomes."""

from fractions import Fraction

import numpy as np
import pytest

from sourdine.accounting import Renyi, Spend
from sourdine.accounting.repetition import best_epsilon, best_of
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import AtomLaw, GaussianLaw
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Laplace, RoundedGaussian


def best_law(run: np.ndarray, mean: float) -> np.ndarray:
    """The law of the best of a geometric number of outcomes, the last being the best."""
    below = np.cumsum(run)
    return np.diff(below / (mean - (mean - 1) * below), prepend=0.0)


@pytest.mark.parametrize("mean", [1.5, 4.0, 50.0])
@pytest.mark.parametrize("seed", range(8))
def test_no_pair_of_laws_loses_more(mean: float, seed: int) -> None:
    dice = np.random.default_rng(seed)
    p = dice.dirichlet(np.full(12, 0.5)) * 0.999 + 0.001 / 12
    q = p * np.exp(dice.normal(0, 0.5, 12))
    q /= q.sum()
    loss = PrivacyLoss(
        remove=AtomLaw.between(p, q), add=AtomLaw.between(q, p), neighbours=Neighbours.ADD_REMOVE
    )
    claimed = best_of(loss, mean)
    first, second = best_law(p, mean), best_law(q, mean)
    epsilons = np.linspace(0, 4, 60)
    for one, other in ((first, second), (second, first)):
        true = np.maximum(one - np.exp(epsilons)[:, None] * other, 0).sum(1)
        assert np.all(true <= claimed.profile(epsilons) + 1e-12)
        orders = np.array([1.5, 2.0, 8.0])
        divergences = np.log((one ** orders[:, None] * other ** (1 - orders[:, None])).sum(1)) / (orders - 1)
        found = Renyi(orders=tuple(orders)).lift(claimed).remove / (orders - 1)
        assert np.all(divergences <= found)


def test_a_pure_run_costs_three_of_it() -> None:
    best = best_of(PrivacyLoss.pure(Fraction(1, 3)), 100)
    assert best.epsilon == 1
    assert float(best.profile(1.0)) < 1e-12
    assert best_of(PrivacyLoss.pure(Fraction(1, 3)), 1).epsilon == Fraction(1, 3)


def test_the_epsilon_is_that_of_the_law_or_less() -> None:
    runs = [[Spend(mechanism=RoundedGaussian(sigma=40), distance=Distance.l2(20), count=4)]]
    found = best_epsilon(runs, 5, 1e-6)
    law = best_of(PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE), 5)
    assert float(law.profile(found * 1.01)) <= 1e-6
    assert float(law.profile(found * 0.97)) > 1e-6
    weak = [*runs, [Spend(mechanism=Laplace(scale=100), distance=Distance.l1(1))]]
    assert best_epsilon(weak, 5, 1e-6) == pytest.approx(found)  # the worst setting counts
    assert best_epsilon(runs, 1, 1e-6) < best_epsilon(runs, 2, 1e-6) < found
