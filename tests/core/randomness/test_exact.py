from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sourdine.core.random import samplers as exact
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

LAPLACE = [Fraction(1, 7), Fraction(3, 2), Fraction(31, 3), Fraction(1000, 3), Fraction(2**40)]
GAUSSIAN = [Fraction(1, 10), Fraction(4, 3), Fraction(10), Fraction(1000, 3), Fraction(2**30)]


def laplace_law(scale: float) -> dict[int, float]:
    reach = int(40 * scale) + 2
    k = np.arange(-reach, reach + 1)
    p = np.exp(-np.abs(k) / scale)
    return dict(zip(k.tolist(), (p / p.sum()).tolist(), strict=True))


def gaussian_law(sigma: float) -> dict[int, float]:
    reach = int(12 * sigma) + 4
    k = np.arange(-reach, reach + 1)
    p = np.exp(-(k**2) / (2 * sigma**2))
    return dict(zip(k.tolist(), (p / p.sum()).tolist(), strict=True))


def binned(samples: np.ndarray, unit: float) -> np.ndarray:
    return np.floor(samples / unit + 0.5).astype(np.int64)


def binned_laplace(unit: float) -> dict[int, float]:
    """The continuous Laplace law of scale 1 over bins of a width; a huge discrete scale is as good."""
    return {
        k: float(np.exp(-abs(k) * unit) * np.sinh(unit / 2)) if k else float(-np.expm1(-unit / 2))
        for k in range(-400, 401)
    }


def check_laplace(scale: Fraction, count: int) -> None:
    samples = exact.laplace(scale, count, SeededBits(11))
    if scale < 2**20:
        assert fit(samples, laplace_law(float(scale))) > ALARM
        assert fit(samples, laplace_law(float(scale) * 1.1)) < ALARM
    else:
        assert fit(binned(samples / float(scale), 0.1), binned_laplace(0.1)) > ALARM
        assert fit(binned(samples / float(scale) * 1.1, 0.1), binned_laplace(0.1)) < ALARM


def check_gaussian(sigma: Fraction, count: int) -> None:
    samples = exact.gaussian(sigma**2, count, SeededBits(12))
    if sigma < 2**20:
        law, wrong = gaussian_law(float(sigma)), gaussian_law(float(sigma) * 1.1)
    else:  # a bin of a huge sigma is a difference of normal distribution functions
        samples = binned(samples / float(sigma), 0.1)
        law = {k: float(mpmath.ncdf((k + 0.5) * 0.1) - mpmath.ncdf((k - 0.5) * 0.1)) for k in range(-99, 100)}
        wrong = gaussian_law(11.0)
    assert fit(samples, law) > ALARM
    if sigma >= 1:  # at 1/10 nearly every draw is 0, whatever the sigma
        assert fit(samples, wrong) < ALARM


@pytest.mark.parametrize("scale", LAPLACE)
def test_laplace_follows_its_law(scale: Fraction) -> None:
    check_laplace(scale, 150_000)


@pytest.mark.slow
@pytest.mark.parametrize("scale", LAPLACE)
def test_laplace_follows_its_law_on_two_million_draws(scale: Fraction) -> None:
    check_laplace(scale, 2_000_000)


@pytest.mark.parametrize("sigma", GAUSSIAN)
def test_gaussian_follows_its_law(sigma: Fraction) -> None:
    check_gaussian(sigma, 150_000)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", GAUSSIAN)
def test_gaussian_follows_its_law_on_two_million_draws(sigma: Fraction) -> None:
    check_gaussian(sigma, 2_000_000)


@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(500, 3)])
@pytest.mark.parametrize("count", [150_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
def test_geometric_follows_its_law(scale: Fraction, count: int) -> None:
    a = np.exp(-1 / float(scale))
    law = {k: (1 - a) * a**k for k in range(int(60 * scale) + 60)}
    samples = exact.geometric(scale, count, SeededBits(13))
    assert fit(samples, law) > ALARM
    assert fit(samples + 1, law) < ALARM


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 2**32 + 1, 2**62])
@pytest.mark.parametrize("count", [100_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
def test_uniform_integers_have_no_modulo_bias(size: int, count: int) -> None:
    samples = exact.uniform(size, count, SeededBits(14))
    assert samples.min() >= 0
    assert samples.max() < size
    cells = min(size, 1000)
    edges = [size * i // cells for i in range(cells + 1)]
    coarse = np.searchsorted(np.array(edges[1:], dtype=np.int64), samples, side="right")
    law = {i: (edges[i + 1] - edges[i]) / size for i in range(cells)}
    assert fit(coarse, law) > ALARM


def test_uniform_draws_again_what_is_too_large() -> None:
    assert list(exact.uniform(3, 1, ScriptedBits([3 << 14, 2 << 14]))) == [2]  # 16 bits of each word
    assert list(exact.uniform((1 << 20) + 1, 1, ScriptedBits([1 << 31 | 1 << 11, 1 << 31]))) == [1 << 20]
    assert list(exact.uniform((1 << 40) + 1, 1, ScriptedBits([1 << 63 | 1 << 23, 1 << 63]))) == [1 << 40]


@pytest.mark.parametrize("size", [3, 1000, (1 << 16) - 1, (1 << 20) + 7, (1 << 40) + 3])
def test_uniform_numbers_of_any_length_are_uniform(size: int) -> None:
    drawn = exact.uniform(size, 200_000, SeededBits(size))
    assert drawn.min() >= 0
    assert drawn.max() < size
    tenths = np.minimum(drawn * 10.0 / size, 9).astype(int)
    edges = np.ceil(np.arange(11) * size / 10)
    law = {i: float((edges[i + 1] - edges[i]) / size) for i in range(10)}
    assert fit(tenths, law) > ALARM


@pytest.mark.parametrize("count", [100_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
def test_bernoulli_coins_follow_their_law(count: int) -> None:
    bits = SeededBits(15)
    assert fit(exact.bernoulli(Fraction(1, 3), count, bits) * 1, {0: 2 / 3, 1: 1 / 3}) > ALARM
    odds = 1.5 * np.exp(0.25)
    coins = exact.bernoulli_odds(Fraction(1, 4), Fraction(3, 2), count, bits)
    assert fit(coins * 1, {0: 1 / (1 + odds), 1: odds / (1 + odds)}) > ALARM


def test_negative_gaussians_begin_at_minus_one() -> None:
    """Zero is not counted twice: at a large sigma both signs of a block have their own places."""
    samples = exact.gaussian(Fraction(1000**2), 400_000, SeededBits(16))
    near = samples[np.abs(samples) <= 8]
    assert fit(near, dict.fromkeys(range(-8, 9), 1 / 17)) > ALARM


def test_negative_laplaces_begin_at_minus_one() -> None:
    samples = exact.laplace(Fraction(1000), 400_000, SeededBits(17))
    near = samples[np.abs(samples) <= 8]
    weights = np.exp(-np.abs(np.arange(-8, 9)) / 1000)
    law = dict(zip(range(-8, 9), (weights / weights.sum()).tolist(), strict=True))
    assert fit(near, law) > ALARM
    assert fit(np.where(near == -1, 0, near), law) < ALARM


@pytest.mark.parametrize("scale", [Fraction(33), Fraction(2**46)])
def test_laplace_at_the_ends_of_a_construction_follows_its_law(scale: Fraction) -> None:
    """One step above the largest single table, and above the largest block that fits in a word."""
    check_laplace(scale, 150_000)


def test_what_is_drawn_in_small_calls_follows_the_law_too() -> None:
    """A small call searches for all its samples, on a path of its own."""
    bits = SeededBits(18)
    laplace = np.concatenate([exact.laplace(Fraction(100), 4096, bits) for _ in range(20)])
    assert fit(laplace, laplace_law(100)) > ALARM
    assert fit(laplace, laplace_law(110)) < ALARM
    gaussian = np.concatenate([exact.gaussian(Fraction(200**2), 4096, bits) for _ in range(20)])
    assert fit(gaussian, gaussian_law(200)) > ALARM
    assert fit(gaussian, gaussian_law(220)) < ALARM
