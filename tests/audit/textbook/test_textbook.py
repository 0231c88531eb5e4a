from fractions import Fraction

import numpy as np
import pytest

from sourdine.audit import examine, find_examples, textbook
from sourdine.audit.outcomes import kinds, title
from sourdine.audit.textbook.dice import gaussian, laplace, staircase
from sourdine.core.mechanism import Example
from sourdine.testing import SeededBits


def test_every_mechanism_is_known() -> None:
    unknown = [name for name, kind in kinds().items() if not textbook.known(next(kind.examples()).mechanism)]
    assert unknown == []


@pytest.mark.parametrize(
    "example", [pytest.param(one, id=f"{i}-{title(one.mechanism)}") for i, one in enumerate(find_examples())]
)
def test_every_mechanism_has_the_law_of_its_textbook(example: Example) -> None:
    verdict = examine(example, samples=20_000, false_alarm=1e-3, bits=SeededBits(1))
    assert verdict.caught_by is None, verdict
    assert verdict.law is not None
    assert verdict.law > 1e-4


def test_noise_has_its_moments() -> None:
    """Sums over the laws themselves: a/(1-a)^2 twice for Laplace noise of e^{-1/scale} = a."""
    dice, count = np.random.default_rng(1), 400_000
    a = np.exp(-1 / 2.5)
    assert np.var(laplace(2.5, count, dice)) == pytest.approx(2 * a / (1 - a) ** 2, rel=0.02)
    assert np.var(gaussian(3.0, count, dice)) == pytest.approx(9.0, rel=0.02)
    assert np.var(gaussian(5000.0, count, dice)) == pytest.approx(25e6, rel=0.02)
    k = np.arange(-200, 201)
    steps = np.where(np.abs(k) < 2, 0, 1 + (np.abs(k) - 2) // 5)
    weights = np.exp(-0.75 * steps)
    variance = np.sum(weights * k**2) / np.sum(weights)
    assert np.var(staircase(Fraction(3, 4), 5, 2, count, dice)) == pytest.approx(variance, rel=0.02)
