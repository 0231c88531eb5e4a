import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import PLD, known, poisson
from sourdine.accounting.pld.composition import delta_bracket, epsilon_bracket
from sourdine.accounting.pld.enumeration import outcomes
from sourdine.accounting.pld.scout import Repeated
from sourdine.core.distance import Distance
from sourdine.core.distributions import AtomLaw, GaussianLaw, GeometricLaw, LossDistribution, pure_law
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import KaryResponse, Laplace
from tests.accounting.profiles import hockey_stick, least_epsilon, responses_delta


@settings(max_examples=60)
@given(st.lists(st.floats(0.01, 4), min_size=1, max_size=8), st.floats(-9, -0.5))
def test_responses_are_bracketed_to_many_digits(epsilons: list[float], log_delta: float) -> None:
    found = outcomes([Repeated(pure_law(epsilon), 1) for epsilon in epsilons], 1e-30)
    assert found is not None
    bracket = found.epsilon(10**log_delta)
    true = least_epsilon(lambda x: responses_delta(epsilons, x), 10**log_delta, sum(epsilons))
    assert bracket.lower - 1e-9 <= true <= bracket.upper + 1e-9
    assert bracket.width < 1e-8


def product(p: np.ndarray, q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    one, other = np.ones(1), np.ones(1)
    for _ in range(count):
        one, other = np.outer(one, p).ravel(), np.outer(other, q).ravel()
    return one, other


@pytest.mark.parametrize("infinite", [0.0, 0.01])
@pytest.mark.parametrize("count", [1, 4, 6])
def test_three_values_and_an_outcome_that_tells_everything(infinite: float, count: int) -> None:
    p = np.array([0.6 - infinite, 0.3, 0.1, infinite])
    q = np.array([0.2, 0.3, 0.5, 0.0])
    found = outcomes([Repeated(AtomLaw.between(p, q), count)], 1e-30)
    assert found is not None
    one, other = product(p, q, count)
    for epsilon in (-1.0, 0.0, 0.7, 2.0, 5.0):
        bracket = found.delta(epsilon)
        true = hockey_stick(one, other, epsilon)
        assert bracket.lower - 1e-14 <= true <= bracket.upper + 1e-14
        assert bracket.upper == pytest.approx(true, abs=1e-11)


def test_a_delta_below_what_tells_everything() -> None:
    found = outcomes([Repeated(known(1, 1e-3).remove, 2)], 1e-30)
    assert found is not None
    assert found.epsilon(1e-3).upper == math.inf
    assert found.epsilon(0.5).upper < 1


@pytest.mark.parametrize(
    "law",
    [
        pure_law(0.3),
        GeometricLaw(1, 2.0),
        KaryResponse(epsilon=Fraction(1), categories=6).loss(Distance.hamming()).remove,
    ],
)
@pytest.mark.parametrize("count", [1, 20, 100])
def test_it_agrees_with_the_lattice(law: LossDistribution, count: int) -> None:
    laws = [Repeated(law, count)]
    found = outcomes(laws, 1e-30)
    assert found is not None
    for delta in (1e-2, 1e-6):
        exact, rough = found.epsilon(delta), epsilon_bracket(laws, delta, 1e-3)
        assert rough.lower - 1e-9 <= exact.upper
        assert exact.lower <= rough.upper + 1e-9
    exact, rough = found.delta(0.5), delta_bracket(laws, 0.5, 1e-3)
    assert rough.lower * (1 - 1e-9) <= exact.upper
    assert exact.lower <= rough.upper * (1 + 1e-9)


def test_both_directions_of_sampled_responses() -> None:
    loss = poisson(PrivacyLoss.pure(1), Fraction(1, 10))
    p, q = np.array([1, 1 / math.e]) / (1 + 1 / math.e), np.array([1 / math.e, 1]) / (1 + 1 / math.e)
    mixed = 0.9 * q + 0.1 * p
    true = max(
        least_epsilon(lambda e: hockey_stick(*product(mixed, q, 7), e), 1e-3, 5),
        least_epsilon(lambda e: hockey_stick(*product(q, mixed, 7), e), 1e-3, 5),
    )
    bracket = PLD().epsilon(PLD().repeat(PLD().lift(loss), 7), 1e-3)
    assert bracket.lower - 1e-9 <= true <= bracket.upper + 1e-9
    assert bracket.width < 1e-9


def test_counts_of_a_million() -> None:
    """Many outcomes, and very unlikely ones."""
    cost = PLD().repeat(PLD().lift(Laplace(scale=1000).loss(Distance.l1(1))), 100_000)
    bracket = PLD().epsilon(cost, 1e-6)
    lattice = epsilon_bracket([Repeated(GeometricLaw(1, 1000.0), 100_000)], 1e-6, 1e-3)
    assert bracket.width < 1e-6
    assert lattice.lower - 1e-6 <= bracket.upper <= lattice.upper + 1e-6


@pytest.mark.parametrize(
    "laws",
    [
        [Repeated(GaussianLaw(1.0), 1)],
        [Repeated(pure_law(1.0), 1), Repeated(GeometricLaw(2, 1.0), 1)],
        [Repeated(pure_law(1.0), 1 << 20)],
        [Repeated(pure_law(8.0), 100)],
        [Repeated(pure_law(0.1 * i), 100) for i in range(1, 6)],
        [Repeated(AtomLaw.between([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]), 2)],
    ],
)
def test_too_many_outcomes_are_left_to_the_lattice(laws: list[Repeated]) -> None:
    assert outcomes(laws, 1e-30) is None
