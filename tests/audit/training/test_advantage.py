import math

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import binom, norm

from sourdine.audit.training.advantage import audit_gradients, noise_from_guesses, told_apart
from sourdine.learning import PricedPlan, TrainingPlan, plan


@pytest.fixture(scope="module")
def planned() -> PricedPlan:
    return plan(TrainingPlan(size=1000, delta=1e-6, epsilon=2, steps=10, batch_size=1000))


def test_neighbours_are_told_apart_as_closed_forms_say() -> None:
    for noise, steps in ((1.0, 1), (5.0, 20), (0.7, 3)):
        mean = mp.sqrt(steps) / noise
        assert told_apart(noise, 1.0, steps) == pytest.approx(float(2 * mp.ncdf(mean / 2) - 1), rel=1e-12)
    # one step: the drawn share of the distance of two normal laws
    found = told_apart(2.0, 0.3, 1)
    exact = float(0.3 * (2 * mp.ncdf(mp.mpf(1) / 4) - 1))
    assert exact <= found <= exact * 1.002


def test_two_sampled_steps_by_integration() -> None:
    noise, rate = 1.3, 0.5
    x = np.linspace(-12, 14, 2001)
    out = norm.pdf(x, 0, noise)
    drawn = (1 - rate) * out + rate * norm.pdf(x, 1, noise)
    apart = np.abs(np.outer(drawn, drawn) - np.outer(out, out)).sum() * (x[1] - x[0]) ** 2 / 2
    assert apart * (1 - 1e-6) <= told_apart(noise, rate, 2) <= apart * 1.003


@pytest.mark.parametrize("count", [500, 20_000])
def test_a_faultless_run_is_accused_as_rarely_as_stated_and_hardly_more_rarely(
    planned: PricedPlan, count: int
) -> None:
    """Right guesses are binomial with the chance that the claim allows: all is known."""
    share = (1 + told_apart(planned.noise_multiplier, 1.0, planned.steps)) / 2
    middle, width = int(count * share), int(8 * math.sqrt(count))
    rights = np.arange(max(0, middle - width), min(count, middle + width))
    # the bound on the noise falls as more guesses are right
    accused = next(
        int(right)
        for right in rights[rights > middle]
        if noise_from_guesses(int(right), count, planned, 0.05) < planned.noise_multiplier
    )
    assert binom.sf(accused - 1, count, share) <= 0.05
    assert binom.sf(accused - 3, count, share) > 0.05 - 3 * binom.pmf(accused, count, share)


def test_the_bound_comes_near_the_claim(planned: PricedPlan) -> None:
    """Scores by another generator: one normal number a canary, as all steps together give."""
    random = np.random.default_rng(1)
    included = random.random(20_000) < 0.5
    shift = math.sqrt(planned.steps) / planned.noise_multiplier
    scores = random.normal(size=20_000) + shift * included - shift / 2
    seen, told = audit_gradients(scores, included, planned, confidence=0.95, alarm=1e-7)
    assert 1.7 < seen.audited < 2.05
    assert 1.7 < seen.typical < 2
    assert not told.failed
    half, told = audit_gradients(
        random.normal(size=20_000) + 2 * shift * included - shift,
        included,
        planned,
        confidence=0.95,
        alarm=1e-7,
    )
    assert told.failed
    assert half.audited > 3.5
    assert half.noise_multiplier == pytest.approx(planned.noise_multiplier / 2, rel=0.08)


def test_the_smallest_fault_that_is_told_is_seen_as_often_as_told(planned: PricedPlan) -> None:
    random, alarm, count = np.random.default_rng(2), 1e-3, 2000
    included = np.arange(count) % 2 == 0
    seen, _ = audit_gradients(np.where(included, 1.0, -1.0), included, planned, confidence=0.95, alarm=alarm)
    broken = (1 + told_apart(seen.least_noise * planned.noise_multiplier, 1.0, planned.steps)) / 2
    claimed = (1 + told_apart(planned.noise_multiplier, 1.0, planned.steps)) / 2
    rights = random.binomial(count, broken, 4000)
    caught = float(np.mean(binom.sf(rights - 1, count, claimed) < alarm))
    assert caught == pytest.approx(0.95, abs=0.025)


def test_chance_alone_shows_nothing(planned: PricedPlan) -> None:
    included = np.arange(1000) % 2 == 0
    seen, told = audit_gradients(np.ones(1000), included, planned, confidence=0.95, alarm=1e-7)
    assert (seen.audited, seen.noise_multiplier, seen.right) == (0.0, math.inf, 500)
    assert not told.failed
