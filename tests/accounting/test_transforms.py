import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import PLD, group, group_distance, poisson
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw, pure_law
from sourdine.core.loss import LeakyLaw, PrivacyLoss
from sourdine.mechanisms import Gaussian, Laplace
from tests.accounting.profiles import hockey_stick
from tests.errors import refusal_of


def test_distances_scale() -> None:
    assert group_distance(Distance.l1(2, coordinates=1), 3) == Distance.l1(6, coordinates=3)
    assert group_distance(Distance.l2(square=2), 3) == Distance.l2(square=18)
    assert group_distance(Distance.hamming(1), 4) == Distance.hamming(4)
    assert group_distance(Distance.linf(Fraction(1, 2)), 2) == Distance.linf(1)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_what_is_known_of_one_covers_what_is_true_of_the_group(size: int) -> None:
    """The group's own law, at the distance of the group, stays below."""
    for mechanism, distance in [
        (Laplace(scale=6), Distance.l1(1, coordinates=1)),
        (Gaussian(sigma=4), Distance.l2(1, coordinates=1)),
    ]:
        claimed = group(mechanism.loss(distance), size)
        far = group_distance(distance, size)
        true = mechanism.loss(Distance(norm=far.norm, amount=far.amount, coordinates=1))
        assert claimed.epsilon == true.epsilon
        assert claimed.rho == true.rho
        for epsilon in np.linspace(-3, 6, 40):
            assert claimed.profile(epsilon) >= float(true.profile(epsilon)) - 1e-12


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.5, 4.0])
def test_the_profile_is_the_formulas(size: int, epsilon: float) -> None:
    loss = PrivacyLoss.symmetric(GaussianLaw(0.4), neighbours=Neighbours.ADD_REMOVE)
    formula = float(loss.profile(epsilon / size)) * math.expm1(epsilon) / math.expm1(epsilon / size)
    found = float(group(loss, size).profile(epsilon))
    assert formula * (1 - 1e-9) <= found * (1 + 1e-9)
    assert found == pytest.approx(formula, rel=2e-3)


def test_a_pure_group_is_randomized_response() -> None:
    for epsilon in (0.0, 0.5, 1.4):
        found = group(PrivacyLoss.pure(Fraction(1, 2)), 3).profile(epsilon)
        assert found == pytest.approx((math.exp(1.5) - math.exp(epsilon)) / (1 + math.exp(1.5)), abs=1e-9)


@settings(max_examples=10)
@given(st.floats(0.02, 0.9), st.integers(2, 3))
def test_sampled_groups_by_enumeration(rate: float, size: int) -> None:
    """Noise on a count of the drawn members of a group, all draws counted."""
    y, scale = np.arange(-120, 121), 3.0
    law = lambda at: np.exp(-np.abs(y - at) / scale) / np.exp(-np.abs(y) / scale).sum()
    with_group = sum(
        rate ** sum(drawn) * (1 - rate) ** (size - sum(drawn)) * law(sum(drawn))
        for drawn in product((0, 1), repeat=size)
    )
    claimed = group(poisson(Laplace(scale=3).loss(Distance.l1(1)), rate), size)
    for epsilon in (0.0, 0.1, 0.4, 0.8):
        assert hockey_stick(with_group, law(0), epsilon) <= float(claimed.profile(epsilon)) + 1e-9
        assert hockey_stick(law(0), with_group, epsilon) <= float(claimed.profile(epsilon)) + 1e-9


def test_groups_compose() -> None:
    loss = poisson(
        PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE), Fraction(1, 100)
    )
    epsilons = []
    for size in (1, 2, 3):
        cost = PLD().repeat(PLD().lift(group(loss, size)), 100)
        epsilons.append(PLD().epsilon(cost, 1e-6).upper)
    assert epsilons == sorted(epsilons)
    assert math.isfinite(epsilons[-1])


def test_floats_are_multiplied_exactly() -> None:
    assert group(PrivacyLoss.pure(0.3), 3).epsilon == 3 * Fraction(0.3)


def test_one_is_no_group() -> None:
    loss = PrivacyLoss.pure(1)
    assert group(loss, 1) is loss


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_a_bad_size_is_refused(size: int) -> None:
    with refusal_of("size", "group"):
        group(PrivacyLoss.pure(1), size)
    with refusal_of("size", "group_distance"):
        group_distance(Distance.l1(1), size)


def test_what_tells_everything_of_one_tells_it_of_the_group_at_its_epsilon() -> None:
    """delta (1 + e^epsilon + ...) from size times epsilon on: the deltas of the steps add up."""
    leaky = PrivacyLoss.symmetric(LeakyLaw(pure_law(1.0), 1e-3), neighbours=Neighbours.ADD_REMOVE)
    for size in (2, 3):
        law = group(leaky, size).remove
        expected = 1e-3 * sum(math.exp(k) for k in range(size))
        assert law.infinite == pytest.approx(expected, rel=1e-6)
        assert float(law.profile(size)) == pytest.approx(expected, rel=1e-6)
