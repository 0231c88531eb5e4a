from fractions import Fraction

import numpy as np
import pytest

from sourdine.audit import examine, find_examples, textbook
from sourdine.audit.outcomes import kinds
from sourdine.audit.textbook import reports
from sourdine.audit.textbook.dice import gaussian, laplace, staircase
from sourdine.core.mechanism import Example
from sourdine.local import OUE
from sourdine.testing import SeededBits
from tests.contract import one_of_each


def test_every_mechanism_is_known() -> None:
    unknown = [name for name, kind in kinds().items() if not textbook.known(next(kind.examples()).mechanism)]
    assert unknown == [], (
        "write how a textbook draws it in audit/textbook (central.py, reports.py or quantiles.py), and its "
        "line in _WAYS of audit/textbook/__init__.py"
    )


def test_a_unary_encoding_without_its_own_chances_is_not_drawn_as_another() -> None:
    class Other(OUE):
        pass

    with pytest.raises(NotImplementedError, match=r"Other .* draw_unary"):
        reports.draw_unary(Other(epsilon=1, categories=3), 0, 5, np.random.default_rng(1))


@pytest.mark.parametrize("example", one_of_each(find_examples()))
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
