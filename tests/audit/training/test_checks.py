import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from mpmath import mp
from scipy.stats import binom, chi2

from sourdine.audit.training import Check
from sourdine.audit.training.batch_checks import clipping_check, drawing_check, size_check, steps_check
from sourdine.audit.training.checks import either, farthest, least_scale, of_normal, of_square, spread
from sourdine.audit.training.noise_checks import law_check, reuse_check, scale_check
from sourdine.audit.training.trace import Trace
from sourdine.testing import SeededBits

LAYERS = {"weight": 600, "bias": 40}
STEPS, UNITS, RATE, ALARM = 12, 300, Fraction(1, 4), 1e-6


def simulated(
    seed: int, *, scale: float = 1.0, rate: float = float(RATE), steps: int = STEPS, reuse: bool = False
) -> Trace:
    """A trace of plain normal numbers and coins, by another generator than the engine's."""
    random = np.random.default_rng(seed)
    trace = Trace(LAYERS, steps=steps, units=UNITS, canaries=4)
    first: dict[str, torch.Tensor] = {}
    for _ in range(steps):
        noise = {name: torch.from_numpy(scale * random.normal(size=size)) for name, size in LAYERS.items()}
        first = first or noise
        clean = {name: torch.from_numpy(random.normal(size=size)) for name, size in LAYERS.items()}
        trace.take_noise(first if reuse else noise, clean)
        trace.take_batch(np.flatnonzero(random.random(UNITS) < rate))
    return trace


def looked_at(trace: Trace, seed: int = 1) -> list[Check]:
    return [
        scale_check(trace, ALARM),
        law_check(trace, ALARM),
        reuse_check(trace, ALARM),
        size_check(trace, UNITS, RATE, ALARM, SeededBits(seed)),
        drawing_check(trace, UNITS, RATE, ALARM, SeededBits(seed + 1)),
    ]


def test_p_values_are_those_of_the_textbook() -> None:
    for value, degrees in ((3.0, 5), (300.0, 350), (100_700.0, 100_000)):
        low, high = chi2.cdf(value, degrees), chi2.sf(value, degrees)
        assert of_square(value, degrees) == pytest.approx(min(1, 2 * min(low, high)), rel=1e-6)
    assert of_square(math.inf, 3) == of_square(math.nan, 3) == of_square(0.0, 3) == 0
    assert of_normal(-5.5, 7) == pytest.approx(float(7 * mp.erfc(5.5 / mp.sqrt(2))), rel=1e-9)
    assert of_normal(math.inf) == of_normal(math.nan) == 0
    assert of_normal(farthest(1e-7, 30), 30) == pytest.approx(1e-7)
    assert either(0.5, 0.01) == 0.02


@pytest.mark.parametrize(("trials", "rate"), [(1, 0.5), (7, 0.2), (5000, 0.03), (4, 1.0)])
def test_counts_of_coins_become_normal_numbers_exactly(trials: int, rate: float) -> None:
    """With the place within a count's chance on a grid, the law comes out by adding up, without chance."""
    grid = (np.arange(2000) + 0.5) / 2000

    class Grid:
        secure = False

        def words(self, count: int, /) -> np.ndarray:
            return (grid[np.arange(count) % 2000] * 2.0**64).astype(np.uint64)

    counts = np.arange(trials + 1)
    counts = counts[binom.pmf(counts, trials, rate) > 1e-12]
    found = spread(np.repeat(counts, 2000), trials, rate, Grid())
    weight = np.repeat(binom.pmf(counts, trials, rate), 2000) / 2000
    for point in (-3.0, -1.0, 0.0, 0.7, 2.5):
        expected = 0.5 * math.erfc(-point / math.sqrt(2))
        assert weight[found <= point].sum() == pytest.approx(expected, abs=1e-3)


def test_a_count_that_cannot_be_is_infinitely_far() -> None:
    assert spread([3, 4], 4, 1.0, SeededBits(1))[0] == -1e6
    assert of_square(1e12, 1e6) == 0  # one among a million units is enough


@pytest.mark.parametrize("runs", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_honest_traces_give_p_values_that_are_no_smaller_than_they_say(runs: int) -> None:
    chances = np.array([[each.chance for each in looked_at(simulated(s), s)] for s in range(runs)])
    assert chances.min() > 1e-6
    for level in (0.01, 0.05, 0.2):
        allowed = runs * level + 4.5 * math.sqrt(runs * level)
        assert ((chances < level).sum(0) <= allowed).all()
    assert (np.median(chances, axis=0) < 1).all()  # and they do not sleep


def test_the_smallest_fault_that_is_told_is_seen_as_often_as_told() -> None:
    degrees, alarm = 480, 1e-3
    factor = least_scale(degrees, alarm)
    squares = factor**2 * np.random.default_rng(1).chisquare(degrees, 20_000)
    seen = np.mean([of_square(value, degrees) < alarm for value in squares.tolist()])
    assert seen == pytest.approx(0.95, abs=6 * math.sqrt(0.95 * 0.05 / 20_000))


def failed(trace: Trace) -> set[str]:
    return {each.name for each in looked_at(trace) if each.failed}


def test_faults_of_the_noise_fail() -> None:
    assert failed(simulated(1)) == set()
    assert "noise scale" in failed(simulated(1, scale=0.9))
    assert "noise scale" in failed(simulated(1, scale=1.1))  # nor is more noise what was claimed
    assert "noise reuse" in failed(simulated(1, reuse=True))


def test_faults_of_the_batches_fail() -> None:
    assert failed(simulated(2, rate=0.4)) >= {"batch sizes", "drawing"}
    twice = simulated(3)
    twice.take_batch(np.array([1, 1, 2]))
    assert drawing_check(twice, UNITS, RATE, ALARM, SeededBits(1)).failed


def test_noise_that_follows_the_batches_fails() -> None:
    """Sums divided by how many were drawn have less noise where more were."""
    random = np.random.default_rng(8)
    trace = Trace({"weight": 20_000}, steps=40, units=2000, canaries=4)
    for _ in range(40):
        places = np.flatnonzero(random.random(2000) < 0.25)
        trace.take_batch(places)
        noise = torch.from_numpy(random.normal(size=20_000) * 500 / len(places))
        trace.take_noise({"weight": noise}, {"weight": torch.ones(20_000, dtype=torch.float64)})
    assert scale_check(trace, ALARM).chance < 1e-12


def test_one_step_is_enough_to_look_at_and_accuses_nobody() -> None:
    assert failed(simulated(4, steps=1)) == set()
    alone = simulated(5, steps=2, rate=1.0)
    checks = (
        size_check(alone, UNITS, Fraction(1), ALARM, SeededBits(1)),
        drawing_check(alone, UNITS, Fraction(1), ALARM, SeededBits(1)),
    )
    assert not any(each.failed for each in checks)  # everybody is drawn, as a rate of 1 says


def test_what_moves_too_far_or_too_often_fails() -> None:
    trace = simulated(6)
    trace.moved = 1 - 2.0**-18
    assert not clipping_check(trace, 1.0, ALARM).failed
    assert clipping_check(trace, 1.001, ALARM).failed
    trace.moved = 2.0
    assert clipping_check(trace, 1.0, ALARM).failed
    trace.moved, trace.astray = 1.0, 1
    assert clipping_check(trace, 1.0, ALARM).failed
    assert not steps_check(trace, STEPS, ALARM).failed
    assert steps_check(trace, STEPS - 1, ALARM).failed


def test_a_sealed_check_tells_the_verdict_alone() -> None:
    honest, broken = (scale_check(simulated(7, scale=each), ALARM).sealed() for each in (1.0, 0.5))
    assert (honest.finding, honest.chance, honest.failed) == ("", 1.0, False)
    assert (broken.finding, broken.chance, broken.failed) == ("", 0.0, True)
