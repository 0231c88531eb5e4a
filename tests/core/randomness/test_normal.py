"""Rounded normal numbers: floats and balls agree, rare words are settled, and the law is the normal one."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from sourdine.core.random import samplers as normal
from sourdine.core.random.samplers import rounded_normal
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

FULL = (1 << 64) - 1


def exactly(length: int, turn: int, sigma: Fraction, size: int = 64) -> tuple[int, int]:
    """The pair at the middle of what these bits leave open, by a second big-number library."""
    mpmath.mp.prec = 400
    u, v = (mpmath.mpf(2 * word + 1) / mpmath.mpf(2) ** (size + 1) for word in (length, turn))
    radius = mpmath.mpf(sigma.numerator) / sigma.denominator * mpmath.sqrt(-2 * mpmath.log(u))
    return tuple(
        int(mpmath.floor(radius * wave(2 * mpmath.pi * v) + 0.5)) for wave in (mpmath.cos, mpmath.sin)
    )  # type: ignore[return-value]


@pytest.mark.parametrize("sigma", [Fraction(8), Fraction(10**6, 3), Fraction(1 << 20)])
def test_words_become_the_numbers_of_a_second_library(sigma: Fraction) -> None:
    drawn = rounded_normal(sigma, 300, SeededBits(5))
    words = SeededBits(5).words(300)
    expected = [exactly(int(words[i]), int(words[150 + i]), sigma) for i in range(150)]
    assert drawn.tolist() == [a for a, _ in expected] + [b for _, b in expected]


@pytest.mark.parametrize("length", [0, 1, 1 << 20, FULL - (1 << 20), FULL - 1, FULL])
def test_rare_lengths_are_settled_with_more_bits(length: int) -> None:
    bits = ScriptedBits([length, 12345 << 48, *[7 << 50, 9 << 40] * 3])
    cosine, sine = rounded_normal(Fraction(1 << 20), 2, bits).tolist()
    length, turn = length << 128 | 7 << 114 | 7 << 50, (12345 << 48) << 128 | 9 << 104 | 9 << 40
    assert (cosine, sine) == exactly(length, turn, Fraction(1 << 20), 192)
    assert abs(cosine) < 20 << 20


def test_a_number_on_the_edge_of_two_waits_for_bits_that_tell() -> None:
    """sigma is chosen so that the cosine of the first words lies half-way between 100 and 101."""
    length, turn = 1 << 62, 1 << 60
    mpmath.mp.prec = 400
    real = mpmath.sqrt(-2 * mpmath.log(mpmath.mpf(1) / 4)) * mpmath.cos(mpmath.pi / 8)
    sigma = Fraction(int(mpmath.floor(100.5 / real * 2**200)), 1 << 200)
    low = rounded_normal(sigma, 2, ScriptedBits([length, turn, FULL, FULL, FULL, FULL]))
    high = rounded_normal(sigma, 2, ScriptedBits([length, turn, 0, 0, 0, 0, 0, 0], seed=4))
    assert low[0] == 100
    assert high[0] in (100, 101)
    assert low[1] == high[1] == exactly(length, turn, sigma)[1]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 2 * normal._CHUNK + 3])
def test_any_count(count: int) -> None:
    drawn = rounded_normal(Fraction(1000), count, SeededBits(2))
    assert drawn.shape == (count,)
    assert drawn.dtype == np.int64
    if count > 1000:
        assert abs(drawn.mean()) < 5 * 1000 / count**0.5
        assert abs(drawn.std() / 1000 - 1) < 5 / count**0.5


def masses(sigma: float, edges: np.ndarray) -> dict[int, float]:
    """The chance of each cell, by its number: below the first edge, from each edge on."""
    below = ndtr(np.concatenate([[-np.inf], edges - 0.5, [np.inf]]) / sigma)
    return dict(enumerate(np.diff(below).tolist()))


@pytest.mark.parametrize("sigma", [Fraction(28, 3), Fraction(1 << 20)])
def test_law(sigma: Fraction) -> None:
    drawn = rounded_normal(sigma, 40_000, SeededBits(11))
    edges = np.rint(np.linspace(-3, 3, 41) * float(sigma))
    cells = np.searchsorted(edges, drawn, side="right").astype(np.int64)
    assert fit(cells, masses(float(sigma), edges)) > ALARM
    assert fit(cells, masses(1.1 * float(sigma), edges)) < ALARM


def test_balls_that_are_unsure_of_everything_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the margin so wide that floats decide nothing, the numbers would be the same."""
    floats = rounded_normal(Fraction(12345, 7), 200, SeededBits(8))
    monkeypatch.setattr(normal, "_MARGIN", 1.0)
    assert rounded_normal(Fraction(12345, 7), 200, SeededBits(8)).tolist() == floats.tolist()
