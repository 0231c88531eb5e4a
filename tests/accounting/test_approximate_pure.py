import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import Pure
from sourdine.accounting.accountant import exactly
from sourdine.accounting.approximate import PureCost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import float_above
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian
from tests.errors import refusal_of

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=100)


@settings(max_examples=30)
@given(st.lists(positive, min_size=1, max_size=20))
def test_epsilons_add_up_exactly(epsilons: list[Fraction]) -> None:
    pure = Pure()
    cost = pure.lift(PrivacyLoss.pure(epsilons[0]))
    for epsilon in epsilons[1:]:
        cost = pure.join(cost, pure.lift(PrivacyLoss.pure(epsilon)))
    assert cost.epsilon == sum(epsilons)
    assert Fraction(pure.epsilon(cost, 0.0).upper) >= cost.epsilon


def test_twenty_twentieths_are_one() -> None:
    cost = Pure().repeat(Pure().lift(PrivacyLoss.pure(Fraction(1, 20))), 20)
    assert cost.epsilon == 1
    assert Pure().epsilon(cost, 1e-5).upper == 1.0


def test_a_float_is_taken_as_the_fraction_it_is() -> None:
    cost = Pure().repeat(Pure().lift(PrivacyLoss.pure(0.1)), 10)
    assert cost.epsilon == 10 * Fraction(0.1) > 1


@given(positive, st.floats(0, 20))
def test_delta_is_that_of_randomized_response(epsilon: Fraction, at: float) -> None:
    found = Pure().delta(Pure().lift(PrivacyLoss.pure(epsilon)), at).upper
    true = max(0.0, (math.exp(epsilon) - math.exp(at)) / (1 + math.exp(epsilon)))
    assert found >= true * (1 - 1e-9)
    assert found == pytest.approx(true, abs=1e-9)


def test_gaussian_noise_has_no_epsilon() -> None:
    with pytest.raises(UnsupportedLoss, match=r"no finite epsilon.*Use an accountant that takes a delta"):
        Pure().lift(Gaussian(sigma=2).loss(Distance.l2(1)))


@given(st.fractions())
def test_the_float_above_is_the_next_one(number: Fraction) -> None:
    found = float_above(number)
    assert Fraction(found) >= number
    assert Fraction(math.nextafter(found, -math.inf)) < number


def test_numbers_beyond_floats_are_infinite() -> None:
    assert float_above(Fraction(10) ** 400) == math.inf
    assert exactly(math.inf) == math.inf
    assert exactly(0.1) == Fraction(0.1)


def test_a_bad_epsilon_is_refused() -> None:
    with refusal_of("epsilon", "Pure"):
        Pure().delta(Pure().lift(PrivacyLoss.pure(1)), math.nan)


def test_epsilon_holds_at_exactly_the_delta_that_was_spent() -> None:
    cost = PureCost(Neighbours.ADD_REMOVE, Fraction(1), Fraction(1, 1 << 20))
    assert Pure().epsilon(cost, 2.0**-20).upper == 1.0
    assert Pure().epsilon(cost, 2.0**-21).upper == math.inf
