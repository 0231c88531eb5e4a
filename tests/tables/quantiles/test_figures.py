"""Errors measured against reference figures: deciles at epsilon 1, one value replaced."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from sourdine.tables.quantiles import quantiles
from sourdine.testing import SeededBits

DECILES = [i / 10 for i in range(1, 10)]
Maker = Callable[[np.random.Generator, int], np.ndarray]


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(0, 1, n)


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 1, n)


def errors(
    make: Maker, bounds: tuple[float, float], n: int, samples: int, method: str
) -> tuple[float, float]:
    """Means over samples: the root mean square error of the deciles, and the ranks they are off."""
    rng, bits = np.random.default_rng(11), SeededBits(11)
    square, off = [], []
    for _ in range(samples):
        values = np.sort(make(rng, n))
        truth = values[[math.ceil(i * n / 10) - 1 for i in range(1, 10)]]
        found = quantiles(
            values, levels=DECILES, bounds=bounds, epsilon=1, method=method, size=n, bits=bits
        ).values
        square.append(math.sqrt(np.mean((found - truth) ** 2)))
        off.append(np.mean(np.abs(np.searchsorted(values, found) - np.arange(1, 10) * n / 10)))
    return float(np.mean(square)), float(np.mean(off))


QUICK = [
    ("joint", uniform, (0, 1), 0.0015),
    ("joint", normal, (-6, 6), 0.0055),
    ("recursive", uniform, (0, 1), 0.0031),
    ("inverse", uniform, (0, 1), 0.0049),
    ("inverse", normal, (-6, 6), 0.0182),
    ("monotone histogram", uniform, (0, 1), 0.0076),
    ("histogram", uniform, (0, 1), 0.0159),
]


@pytest.mark.parametrize(("method", "make", "bounds", "most"), QUICK)
def test_a_few_samples_come_near(method: str, make: Maker, bounds: tuple[float, float], most: float) -> None:
    """Ten samples, whose mean is within a quarter of that of many."""
    assert errors(make, bounds, 5000, 10, method)[0] < 1.25 * most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "flat", "bell"),
    [
        ("inverse", 0.0049, 0.0182),
        ("histogram", 0.0159, 0.0431),
        ("monotone histogram", 0.0076, 0.0248),
    ],
)
def test_the_methods_of_the_source_are_within_ten_percent(method: str, flat: float, bell: float) -> None:
    assert errors(uniform, (0, 1), 5000, 200, method)[0] < 1.1 * flat
    assert errors(normal, (-6, 6), 5000, 200, method)[0] < 1.1 * bell


@pytest.mark.slow
def test_joint_deciles() -> None:
    assert errors(uniform, (0, 1), 5000, 200, "joint")[0] < 0.0015
    assert errors(normal, (-6, 6), 5000, 200, "joint")[0] < 0.0055


@pytest.mark.slow
def test_joint_deciles_within_wide_bounds() -> None:
    """The mean number of values between a decile and its estimate: 5.7, and two standard errors of 600."""
    make: Maker = lambda rng, n: rng.uniform(-5, 5, n)
    assert errors(make, (-100, 100), 1000, 600, "joint")[1] < 5.95


def test_a_radius_saves_repeated_values() -> None:
    """80 % equal values among 10^4, a range of 5e5, epsilon 1/2."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(10**4) < 0.8, 250_000, rng.integers(0, 500_001, 10**4))
    bits = SeededBits(3)

    def mean_error(method: str, samples: int) -> float:
        found = [
            quantiles(
                values,
                levels=[0.5],
                bounds=(0, 500_000),
                epsilon=0.5,
                method=method,
                granularity=1,
                bits=bits,
            ).values[0]
            for _ in range(samples)
        ]
        return float(np.mean(np.abs(np.array(found) - 250_000)))

    assert mean_error("smooth", 100) < 1
