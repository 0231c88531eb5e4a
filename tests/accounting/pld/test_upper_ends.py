"""Upper ends are the least of what is proven, and more accuracy never costs any."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import e, mp, mpf, ncdf
from scipy.stats import binom

from sourdine.accounting import (
    PLD,
    Renyi,
    dpsgd_epsilon,
    dpsgd_epsilons,
    gdp_epsilon,
    group_distance,
    poisson,
)
from sourdine.accounting.dpsgd.training import step_loss
from sourdine.accounting.pld.accountant import PldCost
from sourdine.accounting.pld.enumeration import outcomes
from sourdine.accounting.pld.scout import Repeated
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import AtomLaw, pure_law
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables.measurement import moved
from tests.accounting.profiles import hockey_stick, least_epsilon

REPLACE = Neighbours.REPLACE
SLOW = ((0.5, 0.001), (0.5, 0.5), (2.0, 0.001), (1e6, 0.001))


def many(loss: PrivacyLoss, count: int) -> PldCost:
    return PLD().repeat(PLD().lift(loss), count)


def two_valued_epsilon(p: float, q: float, count: int, delta: float) -> float:
    """Of a coin of chance p against one of q < p: the loss rises with the number of heads."""
    up, down = math.log(p / q), math.log((1 - p) / (1 - q))

    def profile(epsilon: float) -> float:
        heads = math.floor((epsilon - count * down) / (up - down))
        return float(binom.sf(heads, count, p) - math.exp(epsilon) * binom.sf(heads, count, q))

    return least_epsilon(profile, delta, 50.0)


def test_a_narrower_width_never_gives_a_wider_bracket() -> None:
    """Sampled randomized responses, whose farthest losses no float holds the exponential of."""
    cost = many(poisson(PrivacyLoss.pure(math.log(9)), Fraction(1, 1000)), 10**5)
    true = two_valued_epsilon(0.1 + 0.8e-3, 0.1, 10**5, 1e-9)
    assert true == pytest.approx(5.1566, abs=1e-4)
    for width in (1e-2, 1e-3, 1e-4, 1e-6):
        bracket = PLD(width=width).epsilon(cost, 1e-9)
        assert bracket.lower - 1e-8 <= true <= bracket.upper + 1e-8
        assert bracket.width < 1e-6
        assert PLD(width=width).why_wide(cost, 1e-9) == ""


def test_coarser_lattices_are_tried_where_the_finest_says_little() -> None:
    """Four values, so that outcomes are too many, and no point of a lattice is where they are."""
    p, q = np.array([0.85, 0.05, 0.05, 0.05]), np.array([0.05, 0.05, 0.1, 0.8])
    cost = many(PrivacyLoss.symmetric(AtomLaw.between(1e-3 * p + 0.999 * q, q), neighbours=REPLACE), 10**5)
    coarse, fine = (PLD(width=width).epsilon(cost, 1e-9) for width in (1e-2, 1e-4))
    assert "between the points" in PLD(width=1e-2).why_wide(cost, 1e-9)
    assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper


@settings(max_examples=15)
@given(st.integers(2, 300_000), st.floats(0.01, 0.5), st.floats(0.01, 1), st.floats(-12, -1))
def test_outcomes_that_hardly_come_out_are_left_out(
    count: int, chance: float, loud: float, log_delta: float
) -> None:
    q = chance / (1 + loud / math.sqrt(count))
    found = outcomes(
        [Repeated(AtomLaw.between([chance, 1 - chance], [q, 1 - q]), count)], 1e-9 * 10**log_delta
    )
    assert found is not None
    bracket = found.epsilon(10**log_delta)
    true = two_valued_epsilon(chance, q, count, 10**log_delta)
    assert bracket.lower - 1e-6 <= true <= bracket.upper + 1e-6
    assert bracket.width < 1e-6


def test_outcomes_of_three_values_within_windows() -> None:
    p, q, count = np.array([0.01, 0.19, 0.8]), np.array([0.008, 0.2, 0.792]), 300
    found = outcomes([Repeated(AtomLaw.between(p, q), count)], 1e-16)
    whole = outcomes([Repeated(AtomLaw.between(p, q), count)], 1e-100)
    assert found is not None
    assert whole is not None
    assert len(found.losses) < len(whole.losses) / 2
    for epsilon in (0.0, 0.3, 1.0):
        near, far = found.delta(epsilon), whole.delta(epsilon)
        assert near.lower <= far.upper
        assert far.lower <= near.upper
        assert near.width < 1e-10


def test_far_outcomes_that_matter_are_left_to_the_lattice() -> None:
    assert outcomes([Repeated(pure_law(8.0), 100)], 1e-12) is None


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta", "most"),
    [
        (1e6, 0.5, 1000, 1e-30, 5.9e-4),
        pytest.param(1e6, 0.5, 10**9, 1e-30, 0.347, marks=pytest.mark.slow),
        (0.001, 0.5, 1, 1e-5, 504_300),
    ],
)
def test_sampling_never_costs_more_than_no_sampling(
    noise: float, rate: float, steps: int, delta: float, most: float
) -> None:
    found, whole = dpsgd_epsilon(noise, rate, steps, delta), dpsgd_epsilon(noise, 1, steps, delta)
    assert found.upper <= whole.upper <= most
    assert dpsgd_epsilons(noise, rate, steps, delta).upper == found.upper


@pytest.mark.parametrize(
    ("noise", "steps", "delta"), [(0.001, 1, 1e-5), (1e6, 1000, 1e-30), (1e6, 10**9, 1e-30), (1.0, 1, 1e-10)]
)
def test_gaussians_without_sampling_have_their_closed_form(noise: float, steps: int, delta: float) -> None:
    with mp.workdps(60):
        mu = mp.sqrt(steps) / mpf(noise)

        def profile(epsilon: float) -> mpf:
            x = mpf(epsilon)
            return ncdf(mu / 2 - x / mu) - e**x * ncdf(-mu / 2 - x / mu)

        found = dpsgd_epsilon(noise, 1, steps, delta)
        assert profile(found.upper) <= delta <= profile(found.lower)
    assert found.upper - found.lower <= 1e-6 * found.upper


@pytest.mark.parametrize(
    ("noise", "rate"),
    [(2.0, 0.5), (1e6, 0.5), *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)],
)
def test_upper_ends_never_rise_with_delta(noise: float, rate: float) -> None:
    deltas = [10.0**-k for k in (30, 20, 10, 5, 1)]
    uppers = [dpsgd_epsilon(noise, rate, 1000, delta).upper for delta in deltas]
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.slow
def test_upper_ends_never_rise_with_delta_whatever_the_run() -> None:
    """Under much noise the end of a sampled law is far beyond its mass, and once decided the tilt."""
    rng = np.random.default_rng(5)  # made up
    for _ in range(600):
        noise, rate = float(10 ** rng.uniform(-0.3, 6)), float(10 ** rng.uniform(-3, 0))
        steps, less = int(10 ** rng.uniform(0, 5)), float(10 ** -rng.uniform(1, 30))
        more = min(0.5, less * float(10 ** rng.uniform(0.5, 8)))
        low, high = dpsgd_epsilon(noise, rate, steps, more), dpsgd_epsilon(noise, rate, steps, less)
        assert low.upper <= high.upper
        assert low.lower <= high.upper


@pytest.mark.parametrize("steps", [1000, pytest.param(10**9, marks=pytest.mark.slow)])
def test_much_noise_on_samples_is_bracketed_narrowly(steps: int) -> None:
    """Near to Gaussian noise of mu = rate sqrt(steps)/noise, of which a step differs by about 1e-12."""
    found, limit = dpsgd_epsilon(1e6, 0.5, steps, 1e-30), gdp_epsilon(Fraction(steps, 4 * 10**12), 1e-30)
    assert found.lower * (1 - 1e-3) <= limit <= found.upper * (1 + 1e-3)
    assert found.width <= 0.01 * found.upper


def test_a_small_epsilon_is_known_to_a_share_of_itself() -> None:
    found = dpsgd_epsilon(1e6, 0.5, 1000, 1e-10)
    assert 0 < found.width <= 0.02 * found.upper
    narrow = PLD(relative_width=1e-3)
    cost = narrow.repeat(narrow.lift(step_loss(10.0, 0.01)), 100)
    found = narrow.epsilon(cost, 1e-5)
    assert 0 < found.width <= 1e-3 * found.upper


@pytest.mark.parametrize("noise", [pytest.param(0.5, marks=pytest.mark.slow), 3.0])
def test_no_upper_end_is_above_what_moments_say(noise: float) -> None:
    loss, renyi = step_loss(noise, 0.3), Renyi()
    for count, delta in ((10**4, 1e-5), (10**6, 1e-5), (10, 1e-40)):
        moments = renyi.epsilon(renyi.repeat(renyi.lift(loss), count), delta).upper
        assert PLD().epsilon(many(loss, count), delta).upper <= moments * (1 + 1e-9)


def test_a_histogram_under_replacement_is_two_cells() -> None:
    loss = Gaussian(sigma=Fraction("5.977")).loss(
        Distance.l2(square=2, coordinates=2, largest=1, neighbours=REPLACE)
    )
    found = PLD().epsilon(PLD().lift(loss), 1e-6)
    y = np.arange(-100, 101)
    mass = np.exp(-(y**2) / (2 * 5.977**2))
    p, q = mass / mass.sum(), np.roll(mass, 1) / mass.sum()
    true = least_epsilon(lambda x: hockey_stick(np.outer(p, p).ravel(), np.outer(q, q).ravel(), x), 1e-6, 5.0)
    assert true == pytest.approx(1.0, abs=1e-3)
    assert found.lower - 1e-6 <= true <= found.upper + 1e-6
    assert found.width <= 1e-3


def moved_pair(mechanism: Mechanism, moves: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The laws of all noisy cells, moved or not."""
    y = np.arange(-60, 61)
    weights = -np.abs(y) / 2 if isinstance(mechanism, Laplace) else -(y**2) / 8
    p, q = np.ones(1), np.ones(1)
    for move in moves:
        mass = np.exp(weights) / np.exp(weights).sum()
        p, q = np.outer(p, mass).ravel(), np.outer(q, np.roll(mass, move)).ravel()
    return p, q


@pytest.mark.parametrize(
    ("mechanism", "distance", "moves"),
    [
        (Gaussian(sigma=2), Distance.l2(square=2, largest=1), [(1, 1), (1, 0)]),
        (Gaussian(sigma=2), Distance.l2(square=8, coordinates=2, largest=2), [(2, 2), (2, 1), (1, 1)]),
        (Laplace(scale=2), Distance.l1(2, coordinates=2, largest=1), [(1, 1), (1, 0)]),
        (Laplace(scale=2), Distance.l1(4, coordinates=2, largest=2), [(2, 2), (2, 1), (0, 2)]),
        (Laplace(scale=2), Distance.l1(2, coordinates=2), [(1, 1), (2, 0)]),
        (Gaussian(sigma=2), Distance.l2(square=4, coordinates=2), [(1, 1), (2, 0)]),
    ],
)
def test_no_move_within_the_distance_costs_more(
    mechanism: Mechanism, distance: Distance, moves: list[tuple[int, ...]]
) -> None:
    loss = mechanism.loss(distance)
    for move in moves:
        p, q = moved_pair(mechanism, move)
        for epsilon in (-0.5, 0.0, 0.2, 0.7, 1.5):
            assert hockey_stick(p, q, epsilon) <= float(loss.profile(epsilon)) + 1e-9


def test_cells_of_known_moves_have_the_sum_of_their_costs() -> None:
    known = Laplace(scale=2).loss(Distance.l1(2, coordinates=2, largest=1))
    assert (known.epsilon, known.rho) == (1, Fraction(1, 4))
    assert Laplace(scale=2).loss(Distance.l1(2, coordinates=2)).rho == Fraction(1, 2)
    two = group_distance(Distance.l1(2, coordinates=2, largest=1), 2)
    assert (two.amount, two.coordinates, two.largest) == (4, 4, 2)


def test_tables_say_by_how_much_each_cell_moves() -> None:
    """One record leaves a cell of a histogram, and enters another."""
    distance = moved(REPLACE, True, length=1, copies=1, each=1)
    assert (distance.amount, distance.coordinates, distance.largest) == (2, 2, 1)
    assert moved(REPLACE, False, length=5, copies=1, each=1).largest == 5
    assert moved(REPLACE, True, length=5, copies=1, each=1, signed=True).largest is None
    assert moved(REPLACE, True, length=5, copies=1, each=2).largest is None
