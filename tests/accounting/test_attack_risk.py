import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from sourdine.accounting import (
    PLD,
    AttackLimit,
    Spend,
    Training,
    attack_advantage,
    attack_true_positives,
    calibrate_to_attack,
    noise_for_attack,
    plan_cost,
)
from sourdine.accounting.dpsgd.training import steps_cost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian, Laplace


def normal(mu: float, count: int = 1) -> object:
    loss = PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=Neighbours.ADD_REMOVE)
    return PLD().repeat(PLD().lift(loss), count)


@pytest.mark.parametrize(("mu", "count"), [(0.1, 1), (1.0, 1), (3.0, 1), (0.5, 4)])
def test_gaussian_noise_by_its_closed_form(mu: float, count: int) -> None:
    cost, total = normal(mu, count), mu * math.sqrt(count)
    advantage = 2 * ndtr(total / 2) - 1
    found = attack_advantage(cost)  # type: ignore[arg-type]
    assert found.lower <= advantage <= found.upper <= advantage * (1 + 2e-5)
    for rate in (1e-4, 0.01, 0.9):
        true = ndtr(ndtri(rate) + total)
        assert true <= attack_true_positives(cost, rate) <= true * (1 + 1e-5)  # type: ignore[arg-type]


def best_test(p: np.ndarray, q: np.ndarray, rate: float) -> float:
    """Neyman and Pearson: the likeliest outcomes first, the last of them by a coin."""
    order = np.argsort(-(p / q))
    p, q = p[order], q[order]
    before = np.append(0.0, np.cumsum(q))
    at = int(np.searchsorted(before, rate, side="right")) - 1
    share = (rate - before[at]) / q[at]
    return float(p[:at].sum() + share * p[at])


@pytest.mark.parametrize("rate", [0.001, 0.02, 0.3, 0.8])
def test_no_test_on_whole_numbers_does_better(rate: float) -> None:
    y = np.arange(-100, 101)
    noise = {
        Laplace(scale=Fraction(3)): np.exp(-np.abs(y) / 3),
        Gaussian(sigma=Fraction(2)): np.exp(-(y**2) / 8),
    }
    for mechanism, weights in noise.items():
        mass = weights / weights.sum()
        p, q = np.append(mass, 0) + 1e-300, np.append(0, mass) + 1e-300
        kind = Distance.l1(1) if isinstance(mechanism, Laplace) else Distance.l2(1)
        cost = plan_cost([Spend(mechanism=mechanism, distance=kind)], PLD())
        found = attack_true_positives(cost, rate)
        true = max(best_test(p, q, rate), best_test(q, p, rate))
        assert true * (1 - 1e-9) - 1e-12 <= found <= true * (1 + 1e-6) + 1e-9


def test_noise_is_least_for_an_advantage() -> None:
    found = calibrate_to_attack(lambda scale: Laplace(scale=scale), Distance.l1(1), advantage=0.1)
    assert found.scale == pytest.approx(1 / (2 * math.atanh(0.1)), rel=2e-4)  # type: ignore[attr-defined]
    sigma = calibrate_to_attack(lambda sigma: Gaussian(sigma=sigma), Distance.l2(1), advantage=0.1).sigma  # type: ignore[attr-defined]
    y = np.arange(-100, 101)
    mass = np.exp(-(y**2) / (2 * float(sigma) ** 2))
    assert 0.0999 < mass.max() / mass.sum() <= 0.1  # moved by one, the largest mass is the total variation


def test_noise_is_least_for_true_positives() -> None:
    limit = AttackLimit(true_positives=0.05, false_positives=0.01)
    found = noise_for_attack(Training(size=10, batch_size=10, noise_multiplier=1.0, epochs=1), limit)
    exact = 1 / (ndtri(0.05) - ndtri(0.01))
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 2e-4)


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.7])
def test_the_worse_direction_counts(rate: float) -> None:
    """One sampled step: P is (1-q) N(0) + q N(1) and Q is N(0); tests are thresholds in either direction."""
    q, cut = 0.25, np.linspace(-12, 12, 2_000_001)
    present = (1 - q) * rate + q * ndtr(1 + ndtri(rate))
    false = (1 - q) * ndtr(cut) + q * ndtr(cut - 1)
    absent = float(ndtr(cut[np.searchsorted(false, rate)]))
    found = attack_true_positives(steps_cost(1.0, q, 1), rate)
    assert found == pytest.approx(max(present, absent), rel=1e-4)
    assert found >= max(present, absent) * (1 - 1e-4)


def test_a_training_run_against_another_package() -> None:
    """riskcal 1.5 tells 0.0659651 for this run, rounded up on a lattice of 1e-4."""
    found = attack_advantage(steps_cost(1.0, 64 / 60000, 14070))
    assert found.upper <= 0.0659652
    assert found.upper == pytest.approx(0.0659651, rel=1e-3)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({}, "Give one of the two"),
        ({"advantage": 0.1, "true_positives": 0.5, "false_positives": 0.1}, "Give one of the two"),
        ({"true_positives": 0.5}, "Give one of the two"),
        ({"false_positives": 0.5}, "Give one of the two"),
        ({"advantage": 1}, "advantage"),
        ({"advantage": math.nan}, "advantage"),
        ({"true_positives": 0.1, "false_positives": 0.1}, "above false_positives"),
        ({"true_positives": 0.1, "false_positives": 0}, "false_positives"),
    ],
)
def test_a_limit_is_one_thing(limit: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        AttackLimit(**limit)
