import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import PLD, known, poisson, together
from sourdine.core.composed import ComposedDistribution
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw, RhoLaw, pure_law
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from tests.accounting.profiles import gaussian_delta, responses_delta
from tests.errors import refusal_of


@settings(max_examples=10)
@given(st.floats(0.05, 2), st.sampled_from([1, 2, 3, 16, 100]))
def test_gaussians_add_in_squares(mu: float, count: int) -> None:
    law, total = ComposedDistribution(((GaussianLaw(mu), count),)), mu * math.sqrt(count)
    for epsilon in np.linspace(0, total**2 / 2 + 5 * total, 9):
        true = gaussian_delta(total, float(epsilon))
        assert true * (1 - 1e-9) - 1e-15 <= float(law.profile(epsilon)) <= true * 1.02 + 1e-12


@settings(max_examples=15)
@given(st.lists(st.floats(0.05, 3), min_size=1, max_size=6), st.floats(-1, 5))
def test_responses_against_all_outcomes(epsilons: list[float], at: float) -> None:
    law = ComposedDistribution(tuple((pure_law(epsilon), 1) for epsilon in epsilons))
    true = responses_delta(epsilons, at)
    assert true - 1e-12 <= float(law.profile(at)) <= true + 2e-3


def test_tails_keep_their_digits() -> None:
    law = ComposedDistribution(((GaussianLaw(1.0), 4),))
    for epsilon in (20.0, 22.0):
        true = gaussian_delta(2.0, epsilon)
        assert true < 1e-15
        assert true <= float(law.profile(epsilon)) <= 1.1 * true + 1e-28


def test_it_is_a_law() -> None:
    law = ComposedDistribution(((GaussianLaw(0.5), 2), (pure_law(1.0), 1), (RhoLaw(0.1), 1)))
    x = np.linspace(0.05, 12, 2000)
    slopes = np.diff(law.profile(np.log(x))) / np.diff(x)
    assert np.all(np.diff(slopes) >= -1e-9)
    at = np.linspace(-4, 4, 30)
    assert law.survival(at).p + law.cumulative(at).p == pytest.approx(1, abs=1e-9)
    assert law.lowest < -1 < 1 < law.highest
    assert law.infinite < 1e-28


def test_what_tells_everything_adds_up() -> None:
    law = together([(known(1, 1e-3), 3)]).remove
    assert 1 - (1 - 1e-3) ** 3 <= law.infinite <= 3.0000001e-3


def test_numbers_add_up_exactly() -> None:
    loss = together([(PrivacyLoss.pure(Fraction(1, 3)), 2), (PrivacyLoss.pure(0.1), 5)])
    assert loss.epsilon == Fraction(2, 3) + 5 * Fraction(0.1)
    assert loss.rho == 2 * Fraction(1, 18) + 5 * Fraction(0.1) ** 2 / 2
    one = PrivacyLoss.pure(1)
    assert together([(one, 1)]) is one
    assert math.isinf(together([(one, 1), (known(1, 0.1), 1)]).epsilon)


def test_directions_stay_apart() -> None:
    sampled = poisson(PrivacyLoss.symmetric(GaussianLaw(2.0), neighbours=Neighbours.ADD_REMOVE), 0.1)
    both = together([(sampled, 2)])
    assert both.remove is not both.add
    assert both.remove.profile(1.0) > both.add.profile(1.0)
    same = together([(PrivacyLoss.pure(1), 2)])
    assert same.remove is same.add


def test_the_sharp_accountant_looks_inside() -> None:
    """One loss made of many costs as much as the many."""
    parts = [(poisson(PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE), 0.01), 300)]
    inside = PLD().epsilon(PLD().lift(together(parts)), 1e-6)
    outside = PLD().epsilon(PLD().repeat(PLD().lift(parts[0][0]), 300), 1e-6)
    assert inside == outside


def test_bad_parts_are_refused() -> None:
    with refusal_of("parts", "together"):
        together([])
    with refusal_of("count", "together"):
        together([(PrivacyLoss.pure(1), 0)])
    with pytest.raises(UnsupportedLoss):
        together([(PrivacyLoss.pure(1), 1), (PrivacyLoss.pure(1, neighbours=Neighbours.ZERO_OUT), 1)])


def test_losses_whose_exponential_is_no_float() -> None:
    law = ComposedDistribution(((pure_law(800.0), 2),))
    assert law.profile([0.0, 800.0, 1500.0]) == pytest.approx(1)
    assert law.profile(1601.0) == pytest.approx(0, abs=1e-25)
