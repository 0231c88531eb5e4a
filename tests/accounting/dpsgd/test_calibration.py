import math
from dataclasses import replace

import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from sourdine.accounting import (
    Sampler,
    Training,
    dpsgd_epsilon,
    epochs_within,
    noise_for_training,
    steps_within,
)
from sourdine.core.errors import InvalidParameter

RUN = Training(size=60_000, batch_size=64, noise_multiplier=1.0, epochs=15)
SHUFFLED = replace(RUN, sampler=Sampler.SHUFFLE)


def distance(epsilon: float, delta: float) -> float:
    """How far a Gaussian of deviation 1 may move within (epsilon, delta)."""
    return float(
        brentq(
            lambda mu: ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu) - delta,
            1e-3,
            50,
        )
    )


def test_noise_for_the_seed_case() -> None:
    assert noise_for_training(RUN, 3, 1e-5) == pytest.approx(0.59333, abs=2e-5)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 40.0])
def test_noise_for_shuffled_epochs_has_a_closed_form(epsilon: float) -> None:
    least = math.sqrt(15) / distance(epsilon, 1e-5)
    assert least <= noise_for_training(SHUFFLED, epsilon, 1e-5) < least * 1.001


def test_noise_for_fixed_batches_has_a_closed_form_when_they_are_everything() -> None:
    whole = Training(size=64, batch_size=64, noise_multiplier=1.0, epochs=9, sampler=Sampler.FIXED)
    least = 2 * math.sqrt(9) / distance(2.0, 1e-5)
    assert least <= noise_for_training(whole, 2.0, 1e-5) < least * 1.001


@pytest.mark.parametrize("epsilon", [1.0, 8.0, 30.0])
def test_shuffled_epochs_within_a_budget_have_a_closed_form(epsilon: float) -> None:
    most = math.floor((distance(epsilon, 1e-5) * SHUFFLED.noise_multiplier) ** 2)
    assert epochs_within(SHUFFLED, epsilon, 1e-5) == most


def test_one_step_more_does_not_fit() -> None:
    rate = 64 / 60_000
    steps = steps_within(1.0, rate, 0.6, 1e-5)
    assert dpsgd_epsilon(1.0, rate, steps, 1e-5, 1e-4).lower <= 0.6
    assert dpsgd_epsilon(1.0, rate, steps + 30, 1e-5, 1e-4).upper > 0.6
    assert epochs_within(RUN, 0.6, 1e-5) == steps // 938


def test_nothing_fits_into_a_tiny_budget() -> None:
    assert epochs_within(SHUFFLED, 0.1, 1e-5) == 0
    assert steps_within(0.5, 1.0, 0.1, 1e-5) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1e-5), (-1, 1e-5), (1, 0), (1, 1)])
def test_a_wrong_budget_is_one_sentence(epsilon: float, delta: float) -> None:
    for search in (epochs_within, noise_for_training):
        with pytest.raises(InvalidParameter, match=r"The '(epsilon|delta)' of"):
            search(SHUFFLED, epsilon, delta)
