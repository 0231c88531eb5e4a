import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sourdine.audit.one_run import epsilon_from_guesses, farthest, guess
from sourdine.core.errors import InvalidParameter


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("count", [20, 300])
def test_randomised_response_is_accused_as_rarely_as_stated_and_hardly_more_rarely(
    epsilon: float, count: int
) -> None:
    """All coins answered with exactly epsilon: the number of right guesses is binomial, so all is known."""
    share = 1 / (1 + math.exp(-epsilon))
    accused = [
        right
        for right in range(count + 1)
        if epsilon_from_guesses(right, count, candidates=count, delta=0.0, confidence=0.9) > epsilon
    ]
    alarm = sum(binom.pmf(right, count, share) for right in accused)
    assert alarm <= 0.1
    one_less = binom.pmf(min(accused, default=count + 1) - 1, count, share)
    assert alarm + one_less > 0.1  # the bound wastes nothing: one right guess fewer would be too often


@pytest.mark.parametrize("delta", [1e-4, 1e-3])
def test_coins_that_leak_with_delta_are_accused_as_rarely_as_stated(delta: float) -> None:
    count, epsilon = 100, 1.0
    q = 1 / (1 + math.exp(-epsilon))
    share = (1 - delta) * q + delta  # (epsilon, delta)-private: outright with delta, else randomised
    alarm = sum(
        binom.pmf(right, count, share)
        for right in range(count + 1)
        if epsilon_from_guesses(right, count, candidates=count, delta=delta, confidence=0.9) > epsilon
    )
    assert alarm <= 0.1


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 1.5]), st.sampled_from([2, 3]))
def test_the_inequality_holds_for_any_mechanism(seed: int, epsilon: float, count: int) -> None:
    """Any table of chances from coins to guesses, with its delta counted out over all neighbours."""
    random = np.random.default_rng(seed)
    coins = np.array(list(itertools.product([-1, 1], repeat=count)))
    guesses = np.array(list(itertools.product([-1, 0, 1], repeat=count)))
    chance = random.dirichlet(np.full(len(guesses), random.choice([0.05, 0.3, 2.0])), size=len(coins))
    chance = random.uniform() * chance + (1 - random.uniform()) * chance.mean(0)
    chance /= chance.sum(1, keepdims=True)
    delta = max(
        np.maximum(chance[i] - math.exp(epsilon) * chance[j], 0).sum()
        for i, j in itertools.permutations(range(len(coins)), 2)
        if (coins[i] != coins[j]).sum() == 1
    )
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    right = (coins[:, None, :] * guesses[None, :, :] == 1).sum(2)
    made = (guesses != 0).sum(1)
    allowed = lambda least: np.array([binom.sf(least - 1, int(r), share) for r in made])
    for least in range(1, count + 1):
        found = (chance * (right >= least)).sum(1).mean()
        # the number of guesses may vary here: the binomial part is then its mean over what was guessed
        most = (chance.mean(0) * allowed(least)).sum() + count * delta / (1 + math.exp(epsilon))
        assert found <= most + 1e-12


def test_the_inequality_is_sharp_enough_to_fail_without_its_last_term() -> None:
    """One coin told outright with chance delta: more right guesses than the binomial part allows."""
    delta, q = 0.2, 0.5
    assert (1 - delta) * q + delta > binom.sf(0, 1, q)
    assert (1 - delta) * q + delta == pytest.approx(
        binom.sf(0, 1, q) + delta / 2
    )  # and no smaller term would do


def test_guesses_are_the_ends_of_the_order_and_the_best_share_is_told() -> None:
    included = np.array([True, False] * 64)
    perfect = guess(np.where(included, 1.0, -1.0), included, delta=0.0, confidence=0.95)
    assert (perfect.right, perfect.guesses) == (64, 64)
    assert perfect.epsilon == pytest.approx(math.log(0.0125 ** (1 / 64) / (1 - 0.0125 ** (1 / 64))))
    assert perfect.epsilon == farthest(128, delta=0.0, confidence=0.95)
    assert guess(-np.where(included, 1.0, -1.0), included, delta=0.0, confidence=0.95).epsilon == 0
    only_ends = np.where(included, 1.0, -1.0)
    only_ends[8:-8] = 0.0
    only_ends[8:-8][::3] *= -1
    few = guess(only_ends, included, delta=0.0, confidence=0.95)
    assert few.right == few.guesses == 16
    assert guess(np.full(128, np.nan), included, delta=0.0, confidence=0.95).epsilon < 1


def test_the_four_ways_share_the_confidence() -> None:
    """Coins of epsilon 0: the best of four bounds is above 0 no more often than stated."""
    random = np.random.default_rng(1)
    accused = sum(
        guess(random.normal(size=200), random.random(200) < 0.5, delta=0.0, confidence=0.8).epsilon > 0
        for _ in range(2000)
    )
    assert 20 < accused < 400 + 6 * math.sqrt(2000 * 0.2 * 0.8)


def test_a_large_delta_leaves_nothing_to_say() -> None:
    assert epsilon_from_guesses(1000, 1000, candidates=1000, delta=1e-3, confidence=0.95) == 0
    assert epsilon_from_guesses(10**6, 10**6, candidates=10**6, delta=0.0, confidence=0.95) < 14


@pytest.mark.parametrize(
    "wrong", [{"right": 11}, {"guesses": 21}, {"delta": -0.1}, {"confidence": 1.0}, {"candidates": 0}]
)
def test_wrong_numbers_are_refused(wrong: dict[str, Any]) -> None:
    stated = {"right": 5, "guesses": 10, "candidates": 20, "delta": 0.0, "confidence": 0.9, **wrong}
    with pytest.raises(InvalidParameter):
        epsilon_from_guesses(**stated)
