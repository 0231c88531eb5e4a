"""Statistics of two columns off noisy sums of products: exact without noise, covered with it."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables.intervals import GroupEstimate, Noisy
from sourdine.tables.statistics.pairs import NoisyPairs
from tests.statistics import ALARM

WIDTH = 1000
DEGREES = [(1, 1), (2, 1), (1, 2), (2, 2)]


def records(size: int, slope: float, seed: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    random = np.random.default_rng(seed)
    x = np.rint(WIDTH * random.beta(2, 3, size))
    y = np.rint(np.clip(WIDTH * (0.3 + random.normal(0, 0.15, size)) + slope * (x - 400), 0, WIDTH))
    return x, y


def polynomials(degree: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those of Bernstein, written out."""
    rest = WIDTH - x
    return np.stack([rest, x] if degree == 1 else [rest**2, 2 * x * rest, x**2])


def sums(x: NDArray[np.float64], y: NDArray[np.float64], degrees: tuple[int, int]) -> NDArray[np.float64]:
    return np.einsum("ir,jr->ij", polynomials(degrees[0], x), polynomials(degrees[1], y)).ravel()


def noisy(exact: NDArray[np.float64], degrees: tuple[int, int], law: str, runs: int) -> NoisyPairs:
    reach, random = WIDTH ** sum(degrees), np.random.default_rng(7)
    mechanism: Mechanism
    if law == "laplace":
        mechanism, drawn = Laplace(scale=reach), random.laplace(0, reach, (runs, exact.size))
    else:
        step = Fraction(1 << max(0, reach.bit_length() - 15))
        mechanism = Gaussian(sigma=4 * reach, granularity=step)
        drawn = random.normal(0, 4 * reach, (runs, exact.size))
    read = Noisy(numbers=exact + drawn, mechanism=mechanism, confidence=0.95)
    return NoisyPairs(noisy=read, degrees=degrees, widths=(WIDTH, WIDTH))


@pytest.mark.parametrize("degrees", DEGREES)
def test_moments_are_weighted_sums(degrees: tuple[int, int]) -> None:
    x, y = records(200, 0.5)
    pairs, exact = noisy(np.zeros(1), degrees, "laplace", 1), sums(x, y, degrees)
    for p in range(degrees[0] + 1):
        for q in range(degrees[1] + 1):
            truth = ((x / WIDTH) ** p * (y / WIDTH) ** q).sum()
            assert exact @ pairs.weights(p, q) == pytest.approx(truth, rel=1e-12)


def test_without_noise_they_are_numpys() -> None:
    x, y = records(500, 0.8)

    def exact(degrees: tuple[int, int]) -> NoisyPairs:
        read = Noisy(numbers=sums(x, y, degrees)[None], mechanism=Laplace(scale=1), confidence=0.95)
        return NoisyPairs(noisy=read, degrees=degrees, widths=(WIDTH, WIDTH))

    slope, intercept = np.polyfit(x / WIDTH, y / WIDTH, 1)
    assert exact((1, 1)).covariance().value[0] == pytest.approx(np.cov(x, y, bias=True)[0, 1] / WIDTH**2)
    assert exact((2, 2)).correlation().value[0] == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert exact((2, 1)).slope().value[0] == pytest.approx(slope)
    assert exact((2, 1)).line_at(0.0).value[0] == pytest.approx(intercept)
    assert exact((1, 2)).turned().slope().value[0] == pytest.approx(np.polyfit(y, x, 1)[0])
    assert exact((2, 1)).line_at(0.7).value[0] == pytest.approx(intercept + 0.7 * slope)


def covered(size: int, slope: float, law: str, runs: int, least: float) -> dict[str, float]:
    x, y = records(size, slope)
    one, two = x / WIDTH, y / WIDTH
    covariance = float(np.mean(one * two) - one.mean() * two.mean())
    steep = covariance / one.var()
    middle = float(two.mean() - steep * one.mean())

    def read(*degrees: int) -> NoisyPairs:
        first, second = degrees
        return noisy(sums(x, y, (first, second)), (first, second), law, runs)

    # floats may take the correlation of two records a little beyond 1
    correlation = float(np.clip(covariance / np.sqrt(one.var() * two.var()), -1, 1))
    cases: dict[str, tuple[GroupEstimate, float]] = {
        "covariance": (read(1, 1).covariance(), covariance),
        "correlation": (read(2, 2).correlation(), correlation),
        "slope": (read(2, 1).slope(), steep),
        "intercept": (read(2, 1).line_at(0.0), middle),
        "far": (read(2, 1).line_at(1.0), middle + steep),
    }
    share = {}
    for name, (found, truth) in cases.items():
        inside = int(((found.lower <= truth) & (truth <= found.upper)).sum())
        assert inside >= binom.ppf(ALARM, runs, least), (name, inside / runs)
        share[name] = inside / runs
    return share


@pytest.mark.parametrize("law", ["laplace", "normal"])
@pytest.mark.parametrize("size", [20, 300, 3000])
def test_intervals_hold_the_exact_value(size: int, law: str) -> None:
    covered(size, 0.8, law, 1000, 0.94)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["laplace", "normal"])
@pytest.mark.parametrize("slope", [0.0, 0.8, -2.0])
@pytest.mark.parametrize("size", [2, 20, 50, 100, 300, 1000, 3000, 10_000, 100_000])
def test_intervals_hold_the_exact_value_in_thousands_of_runs(size: int, slope: float, law: str) -> None:
    print(size, slope, law, covered(size, slope, law, 20_000, 0.94))


def test_a_law_that_is_wider_than_it_says_is_seen() -> None:
    x, y = records(3000, 0.8)
    pairs = noisy(sums(x, y, (2, 1)), (2, 1), "laplace", 1000)
    half = Noisy(numbers=pairs.noisy.numbers, mechanism=Laplace(scale=WIDTH**3 // 2), confidence=0.95)
    found = NoisyPairs(noisy=half, degrees=(2, 1), widths=(WIDTH, WIDTH)).slope()
    truth = np.polyfit(x / WIDTH, y / WIDTH, 1)[0]
    inside = int(((found.lower <= truth) & (truth <= found.upper)).sum())
    assert inside < binom.ppf(ALARM, 1000, 0.94)


def test_groups_lost_in_noise_are_told_as_unknown() -> None:
    x, y = records(2, 0.0)
    pairs = noisy(sums(x, y, (2, 2)), (2, 2), "normal", 50)
    found = pairs.correlation()
    assert np.mean((found.lower == -1) & (found.upper == 1)) > 0.9
    assert np.all((pairs.covariance().lower >= -0.25) & (pairs.covariance().upper <= 0.25))
