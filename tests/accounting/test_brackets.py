"""Brackets hold the truth and are as narrow as asked, against enumerations and integrals of their own."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from sourdine.accounting import PLD, Bracket, dpsgd_epsilon
from sourdine.accounting.dpsgd.training import step_loss, steps_cost
from sourdine.accounting.pld import composition, lattice
from sourdine.accounting.pld.composition import epsilon_bracket
from sourdine.accounting.pld.convolution import LossSum
from sourdine.accounting.pld.scout import Repeated
from sourdine.core.distance import Distance
from sourdine.core.distributions import AtomLaw, DiscreteGaussianLaw
from sourdine.mechanisms import Gaussian

WIDE = np.longdouble


def all_outcomes(p: np.ndarray, q: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The chances of every way in which `count` uses of a small mechanism may turn out, in long doubles."""
    ways = list(_shares(count, len(p)))
    times = np.array(ways)
    factorials = np.array([math.factorial(n) for n in range(count + 1)], object)
    many = np.array([factorials[count] // math.prod(factorials[n] for n in way) for way in ways], WIDE)
    return tuple(many * np.prod(each.astype(WIDE) ** times, axis=1) for each in (p, q))


def _shares(count: int, values: int) -> Iterator[tuple[int, ...]]:
    if values == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in _shares(count - first, values - 1):
            yield (first, *rest)


def true_delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - np.exp(WIDE(epsilon)) * q, 0).sum())


def check_enumerated(seed: int) -> None:
    rng = np.random.default_rng(seed)  # made up
    laws, p, q = [], np.ones(1, WIDE), np.ones(1, WIDE)
    for _ in range(int(rng.integers(1, 3))):
        values, count = int(rng.integers(4, 6)), int(rng.integers(1, 7))
        one, two = (rng.dirichlet(np.full(values, rng.choice([0.3, 1.0, 5.0]))) + 1e-7 for _ in range(2))
        mixed = rng.choice([1e-4, 1e-2, 0.3, 1.0])
        one, two = (each / each.sum() for each in (one * mixed + two * (1 - mixed), two))
        laws.append(Repeated(AtomLaw.between(one, two), count))
        each = all_outcomes(one, two, count)
        p, q = np.outer(p, each[0]).ravel(), np.outer(q, each[1]).ravel()
    delta = float(10 ** rng.uniform(-9, -1))
    width = float(10 ** rng.uniform(-5, -2))
    found = epsilon_bracket(laws, delta, width)
    assert true_delta(p, q, found.upper) <= delta * (1 + 1e-12)
    if found.lower > 0:
        assert true_delta(p, q, found.lower) >= delta * (1 - 1e-12)


def contour_delta(noise: float, rate: float, steps: int, epsilon: float) -> float:
    """delta of steps on Poisson samples, removing, as an integral along a line in the complex plane.

    With K the cumulants of the sum, delta = 1/(2 pi) int e^{K(z) - z epsilon}/(z (z + 1)) dt, z = c + it, for
    any c > 0. Moments are integrals over the noise by the trapezoidal rule, which converges quickly.
    """
    x = np.linspace(-14, 14 + 1 / noise, 6001)
    density = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    loss = np.log1p(rate * np.expm1((x - 0.5 / noise) / noise))

    def exponent(z: np.ndarray) -> np.ndarray:
        return steps * np.log(np.exp(np.outer(z + 1, loss)) @ density) - z * epsilon - np.log(z * (1 + z))

    orders = np.geomspace(1e-2, 30, 300)
    c = float(orders[np.argmin(exponent(orders))])  # there the integrand is least, and turns least
    near = exponent(c * np.array([0.99, 1.0, 1.01]))
    step = 0.2 * 0.01 * c / math.sqrt(near[0] - 2 * near[1] + near[2])
    total = -math.exp(near[1]) / 2
    for start in range(0, 100_000, 200):
        values = np.exp(exponent(c + 1j * step * np.arange(start, start + 200)))
        total += float(values.real.sum())
        if np.abs(values).max() < 1e-11 * math.exp(near[1]):
            return total * step / math.pi
    raise AssertionError("the integral does not end")


def check_integrated(seed: int) -> None:
    rng = np.random.default_rng(seed)  # made up
    noise, rate = float(rng.uniform(0.8, 4)), float(10 ** rng.uniform(-3, -1))
    steps, delta = int(10 ** rng.uniform(2.5, 4.5)), float(10 ** rng.uniform(-9, -3))
    law = step_loss(noise, rate).remove
    found = epsilon_bracket([Repeated(law, steps)], delta, 1e-3)
    if found.lower < 0.05:
        return
    assert contour_delta(noise, rate, steps, found.upper) <= delta * (1 + 1e-7)
    assert contour_delta(noise, rate, steps, found.lower) >= delta * (1 - 1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_a_bracket_holds_what_enumeration_finds(seed: int) -> None:
    check_enumerated(seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_bracket_holds_what_an_integral_finds(seed: int) -> None:
    check_integrated(1000 + seed)


@pytest.mark.slow
def test_a_thousand_brackets_hold_the_truth() -> None:
    for seed in range(900):
        check_enumerated(10_000 + seed)
    for seed in range(100):
        check_integrated(20_000 + seed)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta", "truth"),
    [
        (0.3, 1e-6, 10**5, 1e-5, 3.5026),
        pytest.param(0.4, 1e-6, 10**5, 1e-6, 0.4348, marks=pytest.mark.slow),
    ],
)
def test_a_small_rate_leaves_the_bracket_narrow(
    noise: float, rate: float, steps: int, delta: float, truth: float
) -> None:
    """A loss that is nearly always the same is a point of the lattice, and not rounded down every time."""
    found = dpsgd_epsilon(noise, rate, steps, delta)
    assert found.upper - found.lower <= 1e-3
    assert found.lower - 1e-4 <= truth <= found.upper + 1e-4


@pytest.mark.slow
def test_asking_for_less_never_widens_a_bracket() -> None:
    seed = (1.0, 64 / 60000, 14070, 1e-16)
    coarse, fine = dpsgd_epsilon(*seed, 1e-5), dpsgd_epsilon(*seed, 1e-6)
    assert coarse.upper - coarse.lower <= 1e-5
    assert fine.upper - fine.lower <= coarse.upper - coarse.lower


@pytest.mark.parametrize(
    ("steps", "rate", "delta", "words"),
    [
        (1000, 1e-3, 1e-300, "smallest float"),
        pytest.param(10**12, 1e-5, 1e-5, "places", marks=pytest.mark.slow),
    ],
)
def test_what_keeps_a_bracket_wide_is_told(steps: int, rate: float, delta: float, words: str) -> None:
    cost = steps_cost(1.0, rate, steps)
    assert PLD().epsilon(cost, delta).width > 1e-3
    assert words in PLD().why_wide(cost, delta)
    assert PLD().why_wide(steps_cost(1.0, 64 / 60000, 14070), 1e-5) == ""


def test_ends_that_cross_are_an_error_and_not_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    def lifted(*given: object) -> object:
        return _Lifted(true_below(*given))  # type: ignore[arg-type]

    class _Lifted:
        def __init__(self, found: LossSum) -> None:
            self.found = found

        def epsilon(self, delta: float, near: float | None = None) -> float:
            return self.found.epsilon(delta, near) + 1e-3 + 1e-9

        def holds(self, epsilon: float) -> bool:
            return self.found.holds(epsilon)

    true_below = lattice.sum_below
    monkeypatch.setattr(composition, "sum_below", lifted)
    with pytest.raises(ArithmeticError, match="one of them is wrong"):
        dpsgd_epsilon(1.0, 64 / 60000, 14070, 1e-5, 1e-3)


@pytest.mark.parametrize("sigma", [1025, 3000])
def test_a_wide_discrete_gaussian_is_summed(sigma: int) -> None:
    """Its tails against plain sums in long doubles; the bound that stood for them was 5.7 % loose."""
    y = np.arange(-13 * sigma, 13 * sigma + 1).astype(WIDE)
    mass = np.exp(-(y * y) / (2 * WIDE(sigma) ** 2))
    mass /= mass.sum()
    for units in (1, 7, sigma):
        law = DiscreteGaussianLaw(units, float(sigma) ** 2)
        for epsilon in np.array([0.0, 0.5, 2.0]) * units / sigma:
            q = np.zeros_like(mass)
            q[units:] = mass[:-units]
            true = float(np.maximum(mass - np.exp(WIDE(epsilon)) * q, 0).sum())
            assert float(law.profile(epsilon)) == pytest.approx(true, rel=1e-9)
    found = PLD().epsilon(
        PLD().lift(Gaussian(sigma=Fraction(sigma)).loss(Distance.l2(1, coordinates=1))), 1e-6
    )
    assert isinstance(found, Bracket)
