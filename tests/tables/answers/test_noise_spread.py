"""What sums of noises stay within, against sums of the exact law."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables.intervals import half_width, like_terms


def law(scale: float) -> NDArray[np.float64]:
    """The masses of discrete Laplace noise, 0 in the middle."""
    reach = math.ceil(40 * scale) + 2
    masses: NDArray[np.float64] = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return masses / masses.sum()


def inside(weights: list[int], scale: float, reach: float) -> float:
    """P[|sum of weights times noises| <= reach], by convolution."""
    total = np.ones(1)
    for weight in weights:
        one = law(scale)
        spread = np.zeros((len(one) - 1) * weight + 1)
        spread[::weight] = one
        total = np.convolve(total, spread)
    middle = len(total) // 2
    places = np.arange(len(total)) - middle
    return float(total[np.abs(places) <= reach + 1e-9].sum())


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(2), Fraction(20)])
@pytest.mark.parametrize("many", [1, 2, 3, 6, 12])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_sums_of_like_noises_are_covered_and_hardly_more(
    scale: Fraction, many: int, confidence: float
) -> None:
    reach = float(half_width(Laplace(scale=scale), np.ones(many), confidence))
    assert reach.is_integer()
    covered = inside([1] * many, float(scale), reach)
    assert covered >= confidence
    if scale >= 2:
        assert inside([1] * many, float(scale), reach - 2) < confidence


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3), Fraction(10)])
@pytest.mark.parametrize("weights", [[1, 2], [1, 9], [3, 4], [1, 2, 3], [1, 1, 8], [1, 2, 4, 8]])
def test_sums_of_unlike_noises_are_covered(scale: Fraction, weights: list[int]) -> None:
    reach = float(half_width(Laplace(scale=scale), np.array(weights), 0.95))
    covered = inside(weights, float(scale), reach)
    assert covered >= 0.94
    if scale >= 3:
        assert covered <= 0.965


def test_weights_go_along_the_first_axis() -> None:
    mechanism = Laplace(scale=Fraction(7))
    both = half_width(mechanism, np.array([[1.0, 3.0, 0.0, 0.0], [2.0, -4.0, 5.0, 0.0]]), 0.95)
    assert both[0] == half_width(mechanism, np.array([1.0, 2.0]), 0.95)
    assert both[1] == half_width(mechanism, np.array([3.0, 4.0]), 0.95)
    assert both[2] == 5 * mechanism.error(0.95)
    assert both[3] == 0


def test_sums_of_gaussian_noises_are_normal() -> None:
    reach = float(half_width(Gaussian(sigma=Fraction(50)), np.array([3.0, 4.0]), 0.95))
    assert reach == pytest.approx(250 * float(mpmath.sqrt(2) * mpmath.erfinv(0.95)), rel=1e-9)


@pytest.mark.parametrize("terms", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_quantiles_are_those_of_the_variance_gamma_law(terms: int, confidence: float) -> None:
    """The density of a sum of k Laplace noises is |x|^(k - 1/2) K_(k - 1/2)(|x|) up to a constant."""
    mpmath.mp.dps = 20
    unit = mpmath.sqrt(2 * terms)  # variance of a noise of scale 1 is 2
    order = mpmath.mpf(terms) - mpmath.mpf(1) / 2
    density = lambda x: x**order * mpmath.besselk(order, x) if x else mpmath.mpf(0)
    edge = float(like_terms(terms, confidence)) * unit
    constant = 2 ** (order - 1) * mpmath.sqrt(mpmath.pi) * mpmath.gamma(terms)
    mass = mpmath.quad(density, [mpmath.mpf(10) ** -12, edge / 2, edge]) / constant
    assert float(mass) == pytest.approx(confidence, abs=2e-4)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("weights", [[9, 1], [100, 1], [1, 0.001], [5, 1, 1]])
def test_more_noises_never_narrow_an_interval(scale: Fraction, weights: list[float]) -> None:
    alone = float(half_width(Laplace(scale=scale), weights[:1], 0.95))
    assert float(half_width(Laplace(scale=scale), weights, 0.95)) >= alone
