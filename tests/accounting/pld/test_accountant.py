import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from sourdine.accounting import PLD, Bracket, dpsgd_epsilon
from sourdine.accounting.dpsgd.training import step_loss
from sourdine.accounting.pld.accountant import PldCost
from sourdine.accounting.subsampling.poisson import PoissonAdd, PoissonRemove
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian, KaryResponse, Laplace
from tests.errors import refusal_of


def many(loss: PrivacyLoss, count: int) -> PldCost:
    return PLD().repeat(PLD().lift(loss), count)


def gaussian(mu: float, relation: Neighbours = Neighbours.ADD_REMOVE) -> PrivacyLoss:
    return PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=relation)


def solve(delta: Callable[[float], float], target: float, high: float) -> float:
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= target else (middle, high)
    return high


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Balle and Wang 2018, theorem 8."""
    return float(ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)))


@settings(max_examples=25)
@given(st.floats(0.02, 3), st.integers(1, 400), st.floats(-12, -1))
def test_gaussians_compose_exactly(mu: float, count: int, log_delta: float) -> None:
    delta, total = 10**log_delta, mu * math.sqrt(count)
    truth = solve(lambda e: gaussian_delta(total, e), delta, total**2 / 2 + 40 * total)
    bracket = PLD().epsilon(many(gaussian(mu), count), delta)
    assert bracket.lower - 1e-9 <= truth <= bracket.upper + 1e-9
    assert bracket.width < 1.01e-3


@pytest.mark.parametrize("count", [1, 2, 10, 100])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_randomized_responses_compose_exactly(count: int, delta: float) -> None:
    """Peers have returned the epsilon of one response for ten (1.0987 at ln 3)."""

    def truth(epsilon: float) -> float:
        return sum(
            math.comb(count, k)
            * max(0.0, 0.75 ** (count - k) * 0.25**k - math.exp(epsilon) * 0.25 ** (count - k) * 0.75**k)
            for k in range(count + 1)
        )

    bracket = PLD().epsilon(many(PrivacyLoss.pure(math.log(3)), count), delta)
    epsilon = solve(truth, delta, count * math.log(3))
    assert bracket.lower - 1e-9 <= epsilon <= bracket.upper + 1e-9
    assert bracket.width < 1e-4


def test_different_losses_together_against_enumeration() -> None:
    """Laplace, k-ary response and discrete Gaussian in one plan, outcome by outcome."""
    laplace = Laplace(scale=Fraction(3, 2)).loss(Distance.l1(1, neighbours=Neighbours.REPLACE))
    response = KaryResponse(epsilon=Fraction(2, 3), categories=4).loss(Distance.hamming())
    gauss = Gaussian(sigma=2).loss(Distance.l2(1, neighbours=Neighbours.REPLACE))
    y = np.arange(-60, 61)
    pairs = [
        [np.exp(-np.abs(y - shift) / 1.5) for shift in (0, 1)],
        [np.array(row) for row in ([math.exp(2 / 3), 1, 1, 1], [1, math.exp(2 / 3), 1, 1])],
        [np.exp(-((y - shift) ** 2) / 8) for shift in (0, 1)],
    ]
    p, q = (np.array([1.0]), np.array([1.0]))
    for one, other in pairs:
        p, q = np.outer(p, one / one.sum()).ravel(), np.outer(q, other / other.sum()).ravel()
    for delta in (1e-2, 1e-4):
        truth = solve(lambda e: float(np.maximum(p - math.exp(e) * q, 0).sum()), delta, 20)
        orders = [
            PLD().epsilon(_join(order), delta)
            for order in ([laplace, response, gauss], [gauss, laplace, response])
        ]
        for bracket in orders:
            assert bracket.lower - 1e-9 <= truth <= bracket.upper + 1e-9
            assert bracket.width <= 1.1e-3


def _join(losses: list[PrivacyLoss]) -> PldCost:
    cost = PLD().lift(losses[0])
    for loss in losses[1:]:
        cost = PLD().join(cost, PLD().lift(loss))
    return cost


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.3, 0.7), (1e-4, 2.0)])
@pytest.mark.parametrize("epsilon", [0.0, 0.005, 0.3])
def test_sampled_laws_against_numerical_integration(rate: float, sigma: float, epsilon: float) -> None:
    def normal(x: float, mean: float) -> float:
        return math.exp(-((x - mean) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))

    def mixture(x: float) -> float:
        return (1 - rate) * normal(x, 0) + rate * normal(x, 1)

    base, factor = GaussianLaw(1 / sigma), math.exp(epsilon)
    places = [k * sigma for k in range(-12, 20)]
    for law, one, other in [
        (PoissonRemove(base, rate), mixture, lambda x: normal(x, 0)),
        (PoissonAdd(base, rate), lambda x: normal(x, 0), mixture),
    ]:
        truth = sum(
            quad(lambda x: max(0.0, one(x) - factor * other(x)), left, left + sigma, epsabs=1e-14)[0]  # noqa: B023
            for left in places
        )
        assert float(law.profile(epsilon)) == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta", "truth", "slack"),
    [
        (1.0, 64 / 60000, 14070, 1e-5, 0.61108, 1e-5),
        (0.8, 4096 / 1e6, 100_000, 1e-8, 17.12152, 1e-4),
        (1.0, 1e-3, 10**6, 1e-10, 8.88301, 1e-4),
        (1.0, 64 / 60000, 14070, 1e-14, 1.7575, 1e-3),
        (1.0, 64 / 60000, 14070, 1e-16, 2.2207, 1e-3),
    ],
)
def test_known_hard_cases(
    noise: float, rate: float, steps: int, delta: float, truth: float, slack: float
) -> None:
    bracket = dpsgd_epsilon(noise, rate, steps, delta, width=1e-3 if truth < 5 else 1e-2)
    assert bracket.lower - slack <= truth <= bracket.upper + slack
    assert bracket.width < (1e-3 if truth < 5 else 1e-2)


def test_a_finer_bracket_lies_inside_a_coarser_one() -> None:
    coarse = dpsgd_epsilon(1.0, 64 / 60000, 14070, 1e-5, width=1e-2)
    fine = dpsgd_epsilon(1.0, 64 / 60000, 14070, 1e-5, width=1e-4)
    assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper
    assert fine.width <= 1e-4


def test_replace_one_gaussian_is_not_the_add_remove_one() -> None:
    """Gaussian(1) moved by 2: another accountant gives 4.73 where the truth is 9.997."""
    assert 9.99725614 in PLD().epsilon(many(gaussian(2.0, Neighbours.REPLACE), 1), 1e-5)


@settings(max_examples=15)
@given(st.floats(0.5, 3), st.floats(1e-4, 0.5), st.integers(1, 300), st.floats(-9, -2))
def test_epsilon_is_monotone_in_every_parameter(
    noise: float, rate: float, steps: int, log_delta: float
) -> None:
    delta = 10**log_delta
    base = dpsgd_epsilon(noise, rate, steps, delta)
    for worse in (
        dpsgd_epsilon(noise / 1.3, rate, steps, delta),
        dpsgd_epsilon(noise, min(1.0, rate * 1.3), steps, delta),
        dpsgd_epsilon(noise, rate, 2 * steps, delta),
        dpsgd_epsilon(noise, rate, steps, delta / 10),
    ):
        assert base.lower <= worse.upper


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_delta_of_gaussians(epsilon: float) -> None:
    bracket = PLD().delta(many(gaussian(0.3), 9), epsilon)
    assert bracket.lower <= gaussian_delta(0.9, epsilon) <= bracket.upper
    assert bracket.width <= 1e-3 * bracket.upper


def test_delta_and_epsilon_are_inverse() -> None:
    cost = many(step_loss(1.0, 0.01), 100)
    epsilon = PLD().epsilon(cost, 1e-6)
    assert PLD().delta(cost, epsilon.upper).lower <= 1e-6 <= PLD().delta(cost, epsilon.lower).upper


def test_pure_losses_cost_their_sum_at_delta_zero() -> None:
    cost = many(Laplace(scale=2).loss(Distance.l1(1)), 3)
    assert PLD().epsilon(cost, 0) == Bracket(0.0, 1.5)
    with refusal_of("delta", "PLD"):
        PLD().epsilon(many(gaussian(1.0), 2), 0)


@pytest.mark.parametrize("loss", [PrivacyLoss.pure(Fraction(1, 10)), gaussian(1.0), step_loss(1.0, 0.01)])
def test_any_count_that_can_be_asked_for_has_a_bracket(loss: PrivacyLoss) -> None:
    bracket = PLD().epsilon(many(loss, 2**60), 1e-5)
    assert bracket.lower == 0
    assert bracket.upper > 1e9
    assert PLD().delta(many(loss, 2**60), 1.0) == Bracket(0.0, 1.0)


def test_rhos_add_up_before_they_are_converted() -> None:
    loss = Gaussian(sigma=4).loss(Distance.l2(square=4, coordinates=4))
    four = PLD().epsilon(many(loss, 4), 1e-6)
    once = Gaussian(sigma=2).loss(Distance.l2(square=4, coordinates=4))
    assert four.upper == pytest.approx(PLD().epsilon(many(once, 1), 1e-6).upper, abs=2e-3)


def test_repeat_equals_joins() -> None:
    loss = gaussian(0.4)
    joined = PLD().lift(loss)
    for _ in range(6):
        joined = PLD().join(joined, PLD().lift(loss))
    assert joined == many(loss, 7)


def test_order_of_composition_does_not_matter() -> None:
    losses = [gaussian(0.4), PrivacyLoss.pure(0.3), step_loss(1.0, 0.1)]
    brackets = [PLD().epsilon(_join([losses[i] for i in order]), 1e-5) for order in ((0, 1, 2), (2, 0, 1))]
    assert brackets[0].lower <= brackets[1].upper
    assert brackets[1].lower <= brackets[0].upper


def test_relations_do_not_mix() -> None:
    with pytest.raises(UnsupportedLoss, match="add-remove neighbours and the other for replace"):
        PLD().join(PLD().lift(gaussian(1.0)), PLD().lift(gaussian(1.0, Neighbours.REPLACE)))


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, "small"])
def test_a_bad_delta_is_refused(delta: float) -> None:
    with refusal_of("delta", "PLD"):
        PLD().epsilon(many(gaussian(1.0), 1), delta)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_bad_count_is_refused(count: int) -> None:
    with refusal_of("count", "PLD"):
        PLD().repeat(PLD().lift(gaussian(1.0)), count)


def test_every_infinite_atom_is_charged() -> None:
    """Outcomes that only one data set can give: 1 - (1 - 0.001)^5 of delta at any epsilon."""
    from sourdine.core.distributions import AtomLaw

    law = AtomLaw.between([0.499, 0.5, 0.001], [0.5, 0.5, 0.0])
    cost = many(PrivacyLoss.symmetric(law, neighbours=Neighbours.REPLACE), 5)
    sure = 1 - 0.999**5
    assert PLD().epsilon(cost, sure * 0.99).upper == math.inf
    assert PLD().epsilon(cost, sure * 1.01 + 0.01).upper < 1
    p, q = [0.499, 0.5, 0.001], [0.5, 0.5, 0.0]
    truth = sum(
        max(0.0, math.prod(p[i] for i in row) - math.exp(0.001) * math.prod(q[i] for i in row))
        for row in product(range(3), repeat=5)
    )
    assert PLD().delta(cost, 0.001).upper >= truth - 1e-12


def test_a_loss_that_is_infinite_in_one_direction_only_is_an_answer() -> None:
    """With four or more ratios no enumeration is made, and the finite direction has nothing to add."""
    first = [Fraction(chance, 15) for chance in (1, 2, 3, 4, 5)]
    second = [Fraction(chance, 14) for chance in (5, 4, 3, 2, 0)]
    for pair in ((first, second), (second, first)):
        loss = PrivacyLoss.between(*pair, neighbours=Neighbours.ADD_REMOVE)
        assert PLD().epsilon(PLD().lift(loss), 1e-5) == Bracket(math.inf, math.inf)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (0.01, 1.0, 1, 1e-5),
        pytest.param(0.05, 0.01, 100, 1e-5, marks=pytest.mark.slow),
        (1.0, 1e-9, 1000, 1e-30),
        (1.0, 1.0, 10**6, 1e-5),
    ],
)
def test_extreme_runs_get_a_true_if_wide_bracket(noise: float, rate: float, steps: int, delta: float) -> None:
    bracket = dpsgd_epsilon(noise, rate, steps, delta)
    assert 0 <= bracket.lower <= bracket.upper
    if rate == 1.0:
        truth = solve(lambda e: gaussian_delta(math.sqrt(steps) / noise, e), delta, 1e6)
        assert bracket.lower <= truth <= bracket.upper
