"""Distributions from reports: EM against the conditions of a maximum, intervals against brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import BoundedLaplaceOracle, Distribution, Hybrid, NumericOracle, Piecewise, SquareWave
from sourdine.local.numeric.distribution import StrictBounds, maximised
from sourdine.testing import SeededBits
from tests.errors import refusal_of

WAVE = SquareWave(epsilon=1, lower=0, upper=1, cells=12)


def seen(oracle: NumericOracle, values: np.ndarray, seed: int = 1) -> Distribution:
    counts = oracle.tally(oracle.sample(values, SeededBits(seed)))
    return oracle.distribution(counts)  # type: ignore[attr-defined]


def test_em_finds_the_most_likely_distribution() -> None:
    """At a maximum no place would gain: the mean likelihood ratio is 1 where mass is, and at most 1 else."""
    values = np.concatenate([np.full(3000, 0.25), np.full(2000, 0.9)])
    sums = WAVE.tally(WAVE.sample(values, SeededBits(4))).sums
    mass = maximised(WAVE.channel, sums, 1e-9, 0.0)
    ratios = WAVE.channel @ (sums / sums.sum() / (mass @ WAVE.channel))
    assert mass.sum() == pytest.approx(1)
    assert ratios.max() < 1 + 1e-3
    assert mass @ np.abs(ratios - 1) < 1e-4


def test_smoothing_brings_neighbours_nearer() -> None:
    sums = WAVE.tally(WAVE.sample(np.full(5000, 0.5), SeededBits(4))).sums
    rough, smooth = (maximised(WAVE.channel, sums, 1e-6, given) for given in (0.0, 0.25))
    assert np.abs(np.diff(smooth)).max() < np.abs(np.diff(rough)).max() / 2
    assert smooth.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", [SquareWave, Piecewise, Hybrid, BoundedLaplaceOracle])
def test_without_noise_the_distribution_is_the_histogram(kind: type[NumericOracle]) -> None:
    oracle = kind(epsilon=50, lower=0, upper=1, cells=8)
    values = np.repeat([0.0, 0.25, 0.5, 1.0], [10, 20, 30, 40])
    found = oracle.distribution(oracle.tally(oracle.sample(values, SeededBits(1))), smooth=False)  # type: ignore[attr-defined]
    expected = np.zeros(9)
    expected[[0, 2, 4, 8]] = [0.1, 0.2, 0.3, 0.4]
    assert found.mass == pytest.approx(expected, abs=0.05)
    assert found.mean == pytest.approx(0.6, abs=0.03)
    assert found.places == pytest.approx(np.arange(9) / 8)


def test_shares_and_quantiles_are_those_of_the_mass() -> None:
    found = seen(WAVE, np.linspace(0, 1, 20_000))
    shares = found.shares(4, bits=SeededBits(1))
    edges = found.edges(4)
    assert shares.value.sum() == pytest.approx(1)
    assert edges[0] == 0
    assert edges[-1] == 1
    inside = [(found.places > low) & (found.places < high) for low, high in itertools.pairwise(edges[1:-1])]
    assert shares.value[1:-1] == pytest.approx([found.mass[each].sum() for each in inside])
    assert np.all(shares.lower <= shares.upper)
    assert np.all((shares.lower <= 0.25 + 1 / 12) & (shares.upper >= 0.25 - 1 / 12))
    half = found.quantiles([0.1, 0.5], bits=SeededBits(1))
    at = np.searchsorted(found.places, half.value)
    below = np.cumsum(found.mass)
    assert np.all((below[at] >= [0.1, 0.5]) & (below[at - 1] < [0.1, 0.5]))
    assert np.all((half.lower <= half.value) & (half.value <= half.upper))
    assert half.lower[1] <= 0.5 <= half.upper[1]


def test_bins_hold_every_place_once() -> None:
    for cells, bins in itertools.product((7, 12, 128), (1, 2, 3, 7)):
        oracle = SquareWave(epsilon=1, lower=-2, upper=5, cells=cells)
        edges = seen(oracle, np.zeros(10)).edges(bins)
        places = np.linspace(-2, 5, cells + 1)
        held = np.histogram(places, edges)[0]
        assert held.sum() == cells + 1
        assert held.max() - held.min() <= 1


def brute(channel: np.ndarray, sums: np.ndarray, member: np.ndarray, allowed: float) -> tuple[float, float]:
    """The shares of all distributions on a fine net whose chi-square is little above the least."""
    net = np.array([(i, j, 300 - i - j) for i in range(301) for j in range(301 - i)]) / 300
    n = sums.sum()
    expected = maximised(channel, sums, 1e-9, 0.0) @ channel * n
    chi = ((sums - n * net @ channel) ** 2 / expected).sum(axis=1)
    kept = net[chi <= chi.min() + allowed] @ member
    return float(kept.min()), float(kept.max())


@pytest.mark.parametrize("member", [[1, 0, 0], [0, 1, 0], [1, 1, 0]])
@pytest.mark.parametrize("truth", [(300, 400, 300), (1000, 0, 0)])
def test_intervals_hold_what_fits_and_little_more(member: list[int], truth: tuple[int, ...]) -> None:
    oracle = SquareWave(epsilon=2, lower=0, upper=1, cells=2, window=1)
    sums = oracle.tally(oracle.sample(np.repeat([0.0, 0.5, 1.0], truth), SeededBits(3))).sums
    mass = maximised(oracle.channel, sums, 1e-9, 0.0)
    bounds = StrictBounds(oracle.channel, sums, mass, np.arange(3))
    low, high = bounds.interval(np.array(member, float), 0.95, SeededBits(1))
    least, most = brute(oracle.channel, sums, np.array(member), 1.96**2)
    assert low <= least + 0.005
    assert high >= most - 0.005
    widest = brute(oracle.channel, sums, np.array(member), 3 * 1.96**2)
    assert widest[0] - 0.005 <= low
    assert high <= widest[1] + 0.005


def test_bad_arguments_are_refused() -> None:
    found = seen(WAVE, np.zeros(100))
    for bad in (0, 14, 2.5):
        with refusal_of("bins", "shares"):
            found.shares(bad)  # type: ignore[arg-type]
    for level in (0, 1.0, math.nan):
        with refusal_of("levels", "quantiles"):
            found.quantiles(level)
    with pytest.raises(InvalidParameter, match=r"at most 0\.99"):
        found.shares(2, confidence=0.999)
    with refusal_of("smooth", "SquareWave.distribution"):
        WAVE.distribution(WAVE.tally(np.zeros(1, int)), smooth=2)  # type: ignore[arg-type]


SHAPES = {
    "bimodal": lambda x: np.exp(-((x - 0.3) ** 2) / 0.02) + 0.5 * np.exp(-((x - 0.75) ** 2) / 0.005),
    "one value": lambda x: (np.abs(x - 0.25) < 0.01).astype(float),
    "both ends": lambda x: ((x < 0.01) | (x > 0.99)).astype(float),
    "falling": lambda x: np.exp(-8 * x),
}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_cover_whatever_the_shape(shape: str, epsilon: int) -> None:
    """60 tries of 5 shares and 2 quantiles each, at 95 %."""
    oracle = SquareWave(epsilon=Fraction(epsilon), lower=0, upper=1, cells=32)
    places = np.arange(33) / 32
    weights = SHAPES[shape](places)
    people = np.repeat(places, np.rint(20_000 * weights / weights.sum()).astype(int))
    true = np.histogram(people, seen(oracle, people).edges(5))[0] / len(people)
    middle = np.quantile(people, [0.5, 0.8], method="inverted_cdf")
    hits = []
    for seed in range(60):
        found = seen(oracle, people, seed)
        shares = found.shares(5, bits=SeededBits(seed))
        hits += list((shares.lower <= true + 1e-9) & (true <= shares.upper + 1e-9))
        cuts = found.quantiles([0.5, 0.8], bits=SeededBits(seed))
        hits += list((cuts.lower <= middle) & (middle <= cuts.upper))
    assert np.mean(hits) >= 0.94


@pytest.mark.slow
def test_a_smoothed_wave_finds_a_distribution() -> None:
    """Mean distance of the distribution functions at 10^5 reports and epsilon 1, against a coarse guess."""
    rng = np.random.default_rng(1)
    values = rng.beta(5, 2, 100_000)
    oracle = SquareWave(epsilon=1, lower=0, upper=1)
    found = seen(oracle, values)
    true = np.searchsorted(np.sort(values), found.places + 0.5 / 128) / len(values)
    assert np.abs(np.cumsum(found.mass) - true).mean() < 0.012
