import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

from sourdine.accounting import PLD, Renyi, poisson, random_allocation
from sourdine.accounting.rdp.moments import log_moments
from sourdine.accounting.subsampling.allocation import AllocatedLaw, Direction
from sourdine.accounting.subsampling.allocation_sum import mean_of_ratios
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats, GaussianLaw, pure_law
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from tests.errors import refusal_of

ADD_REMOVE = Neighbours.ADD_REMOVE


def normal(mu: float, neighbours: Neighbours = ADD_REMOVE) -> PrivacyLoss:
    return PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=neighbours)


def call(mu: float, strike: Floats) -> Floats:
    """E (X - strike)+ of one ratio X = e^{mu z - mu^2/2} (Black and Scholes)."""
    positive = np.maximum(strike, 1e-300)
    d = (-np.log(positive) + mu * mu / 2) / mu
    return np.where(strike <= 0, 1 - strike, ndtr(d) - positive * ndtr(d - mu))


def excess(mu: float, batches: int, x: float) -> float:
    """E (W - x)+ by Gauss and Legendre over all terms but the last, which has a closed form."""
    nodes, weights = np.polynomial.legendre.leggauss(60 if batches == 2 else 20)
    cuts = np.linspace(-11, 11 + mu, 24)
    z = np.concatenate([(b - a) / 2 * nodes + (a + b) / 2 for a, b in pairwise(cuts)])
    w = np.concatenate([(b - a) / 2 * weights for a, b in pairwise(cuts)])
    w = w * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    one = np.exp(mu * z - mu * mu / 2)
    total, mass = one, w
    for _ in range(batches - 2):
        total, mass = np.add.outer(total, one).ravel(), np.multiply.outer(mass, w).ravel()
    return float(mass @ call(mu, batches * x - total)) / batches


@pytest.mark.parametrize(("mu", "batches"), [(0.5, 2), (1.0, 2), (2.0, 2), (1.0, 3)])
def test_the_profile_is_enclosed(mu: float, batches: int) -> None:
    """E (1 - x W)+ = x E (1/x - W)+ = x (E (W - 1/x)+ - 1 + 1/x)."""
    loss = random_allocation(normal(mu), batches)
    for epsilon in (-0.5, 0.0, 0.1, 0.5, 1.0, 2.0):
        x = math.exp(epsilon)
        remove = excess(mu, batches, x)
        add = x * (excess(mu, batches, 1 / x) - 1 + 1 / x)
        for law, true in ((loss.remove, remove), (loss.add, add)):
            assert law.least.profile(epsilon) <= true + 1e-9
            assert law.profile(epsilon) >= true - 1e-9
            assert law.profile(epsilon) - law.least.profile(epsilon) < 2e-4


def test_many_batches_against_a_simulation() -> None:
    """Numbers drawn by numpy from a seed; five standard errors are allowed for."""
    mu, batches, many = 1.0, 200, 20_000
    z = np.random.default_rng(1).standard_normal((many, batches - 1))
    rest = np.exp(mu * z - mu * mu / 2).sum(axis=1)
    loss = random_allocation(normal(mu), batches)
    for epsilon in (0.0, 0.1, 0.3):
        drawn = call(mu, batches * math.exp(epsilon) - rest) / batches
        error = 5 * float(drawn.std()) / math.sqrt(many)
        low, high = (float(law.profile(epsilon)) for law in (loss.remove.least, loss.remove))
        assert low - error <= drawn.mean() <= high + error
        assert high - low < 0.01 * high + 1e-6


@pytest.mark.parametrize("above", [True, False])
def test_means_are_kept(above: bool) -> None:
    for mu, batches in ((0.3, 7), (1.0, 38), (3.0, 12)):
        atoms = mean_of_ratios(mu, batches, 300, above=above)
        assert atoms.masses.sum() == pytest.approx(1, abs=1e-11)
        assert atoms.masses @ atoms.values + atoms.infinite == pytest.approx(1, abs=1e-11)
        assert np.all(np.diff(atoms.values) > 0)
        variance = float(atoms.masses @ (atoms.values - 1) ** 2)
        true = math.expm1(mu**2) / batches
        assert (variance > true) if above else (variance < true)


def test_the_sides_close_in() -> None:
    gaps = []
    for cells in (200, 400, 800):
        high, low = (mean_of_ratios(1.0, 20, cells, above=above) for above in (True, False))
        gaps.append(float(high.masses @ (high.values - 1) ** 2 - low.masses @ (low.values - 1) ** 2))
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2] > 0


def test_the_known_run() -> None:
    loss = random_allocation(normal(1.0), 938)
    found = PLD().epsilon(PLD().repeat(PLD().lift(loss), 15), 1e-5)
    assert 0.5975 < found.lower < 0.5985 < found.upper < 0.5992
    free = PLD().epsilon(PLD().repeat(PLD().lift(poisson(normal(1.0), 1 / 938)), 14_070), 1e-5)
    assert found.upper < free.lower
    moments = Renyi()
    assert moments.epsilon(moments.repeat(moments.lift(loss), 15), 1e-5).upper == pytest.approx(
        0.865, abs=0.01
    )


def test_moments_of_removing_are_sums_over_ways() -> None:
    """Order 2 has a short form; order 3 is the sum over how three terms are alike."""
    for mu, t in ((0.5, 4), (1.0, 938)):
        law = AllocatedLaw(mu, t, Direction.REMOVE)
        one, three = math.exp(mu**2), math.exp(3 * mu**2)
        second = math.log1p((one - 1) / t)
        third = math.log((t * three + 3 * t * (t - 1) * one + t * (t - 1) * (t - 2)) / t**3)
        assert log_moments(law, np.array([2.0, 3.0])) == pytest.approx([second, third], rel=1e-9, abs=1e-10)
        between = float(log_moments(law, np.array([2.5]))[0])
        assert between <= (second + third) / 2 + 1e-9


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(("mu", "batches"), [(0.5, 3), (1.0, 50), (1.0, 938)])
def test_moments_are_not_below_those_from_below(direction: Direction, mu: float, batches: int) -> None:
    atoms = mean_of_ratios(mu, batches, 1000, above=False)
    for order in (1.5, 2.0, 4.0, 9.0, 16.0):
        power = order if direction is Direction.REMOVE else 1 - order
        least = math.log(float(atoms.masses @ atoms.values**power))
        found = float(log_moments(AllocatedLaw(mu, batches, direction), np.array([order]))[0])
        assert found >= least - 1e-12
        whole = order == round(order)
        if whole and order < 10:
            assert found <= 1.03 * least + 1e-6


def test_little_noise_costs_what_one_batch_does() -> None:
    base = normal(5.0)
    assert random_allocation(base, 10) is base
    assert random_allocation(normal(1.0), 1) == normal(1.0)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedLoss, match="this loss is for replacement"):
        random_allocation(normal(1.0, Neighbours.REPLACE), 10)
    with pytest.raises(UnsupportedLoss, match="continuous Gaussian noise only"):
        random_allocation(PrivacyLoss.symmetric(pure_law(1.0), neighbours=ADD_REMOVE), 10)
    with refusal_of("batches", "random_allocation"):
        random_allocation(normal(1.0), 0)


@pytest.mark.parametrize("direction", Direction)
def test_both_sides_of_a_law_leave_room_for_rounding(direction: Direction) -> None:
    """Masses are off 1 by several times what their sums may err (1e-11), and towards the safe side."""
    law = AllocatedLaw(1.0, 10, direction)
    above, below = law.survival(-np.inf), law.least.survival(-np.inf)
    room = 5e-11
    assert float(above.p) > 1 + room
    assert float(above.q) < 1 - room
    assert float(below.p) < 1 - room
    assert float(below.q) > 1 + room
