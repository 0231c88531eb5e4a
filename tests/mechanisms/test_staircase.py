import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.mechanisms import Staircase
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.statistics import ALARM, fit


def steps(k: np.ndarray, period: int, inner: int) -> np.ndarray:
    """Which step a noise of size k stands on: the definition."""
    return (np.abs(k) + period - inner) // period


def masses(epsilon: float, period: int, inner: int) -> tuple[np.ndarray, np.ndarray]:
    reach = int(period * (45 / epsilon + 3))
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-epsilon * steps(k, period, inner))
    return k, weights / weights.sum()


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 40))
def test_one_number_pays_for_every_period_it_begins(period: int, inner: int, distance: int) -> None:
    """The claim is the largest ratio there is, by enumeration: not less, and not more."""
    inner = min(inner, period)
    mechanism = Staircase(epsilon=Fraction(1, 3), inner=inner, sensitivity=Fraction(period))
    k = np.arange(-100, 101)
    worst = max(
        (steps(k + d, period, inner) - steps(k, period, inner)).max() for d in range(-distance, distance + 1)
    )
    assert mechanism.loss(Distance.l1(distance, coordinates=1)).epsilon == worst * Fraction(1, 3)


@given(st.integers(1, 5), st.integers(1, 12), st.integers(1, 4))
def test_a_vector_pays_for_the_worst_split(period: int, distance: int, coordinates: int) -> None:
    splits = product(range(distance + 1), repeat=coordinates)
    worst = max(sum(-(-u // period) for u in split) for split in splits if sum(split) <= distance)
    mechanism = Staircase(epsilon=Fraction(2, 7), inner=1, sensitivity=Fraction(period))
    assert mechanism.loss(Distance.l1(distance, coordinates=coordinates)).epsilon == worst * Fraction(2, 7)
    assert mechanism.loss(Distance.l1(distance)).epsilon == distance * Fraction(2, 7)


def test_the_declared_sensitivity_costs_epsilon() -> None:
    integers = Staircase(epsilon=Fraction(1, 2), inner=3, sensitivity=Fraction(15, 2))
    assert integers.loss(Distance.l1(7.5, coordinates=1)).epsilon == Fraction(1, 2)
    assert integers.loss(Distance.l1(8, coordinates=1)).epsilon == 1
    assert integers.loss(Distance.l1(0.5)).epsilon == 0
    reals = Staircase(epsilon=Fraction(1, 2), inner=3, sensitivity=Fraction(1), granularity=Fraction(1, 16))
    loss = reals.loss(Distance.l1(1, coordinates=1, neighbours=Neighbours.REPLACE))
    assert loss.epsilon == Fraction(1, 2)
    assert loss.neighbours is Neighbours.REPLACE
    assert reals.loss(Distance.l1(17 / 16, coordinates=1)).epsilon == 1
    with pytest.raises(UnsupportedLoss, match="coordinates"):
        reals.loss(Distance.l1(1))


def law(epsilon: float, period: int, inner: int, width: int) -> dict[int, float]:
    """The probability of each cell of a width."""
    k, mass = masses(epsilon, period, inner)
    cells = k // width
    shares = np.bincount(cells - cells[0], mass)
    return {int(cells[0]) + i: share for i, share in enumerate(shares.tolist())}


@pytest.mark.parametrize(
    ("period", "inner", "width"),
    [(1, 1, 1), (2, 1, 1), (2, 2, 1), (9, 1, 1), (9, 4, 1), (9, 9, 1), (1000, 311, 100)],
)
@pytest.mark.parametrize("count", [100_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
def test_noise_follows_its_law_and_refuses_another(period: int, inner: int, width: int, count: int) -> None:
    mechanism = Staircase(epsilon=Fraction(7, 11), inner=inner, sensitivity=Fraction(period))
    samples = mechanism.sample(np.zeros(count, dtype=np.int64), SeededBits(31)) // width
    assert fit(samples, law(7 / 11, period, inner, width)) > ALARM
    assert fit(samples, law(7.7 / 11, period, inner, width)) < ALARM
    assert fit(samples, law(7 / 11, period + width, inner, width)) < ALARM


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("period", [1, 2, 3, 7, 40])
def test_the_best_inner_is_the_best_by_enumeration(epsilon: float, period: int) -> None:
    for power, build in [(1, Staircase.for_absolute_error), (2, Staircase.for_squared_error)]:
        moments = []
        for inner in range(1, period + 1):
            k, mass = masses(epsilon, period, inner)
            moments.append(float((np.abs(k).astype(float) ** power * mass).sum()))
        best = build(epsilon=epsilon, sensitivity=period).inner
        assert moments[best - 1] == pytest.approx(min(moments), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_fine_grids_reach_the_continuous_optimum(epsilon: float) -> None:
    """The shares that Geng and Viswanath derive for reals."""
    fine = 1 << 24
    absolute = Staircase.for_absolute_error(epsilon=epsilon, sensitivity=fine).inner / fine
    assert absolute == pytest.approx(1 / (1 + math.exp(epsilon / 2)), abs=1e-3)
    b = math.exp(-epsilon)
    cubic = (b - 2 * b**2 + 2 * b**4 - b**5) ** (1 / 3) / (2 ** (1 / 3) * (1 - b) ** 2)
    squared = Staircase.for_squared_error(epsilon=epsilon, sensitivity=fine).inner / fine
    assert squared == pytest.approx(cubic - b / (1 - b), abs=1e-3)


@pytest.mark.parametrize(("epsilon", "variance"), [(1.0, 7.67), (5.0, 0.119)])
def test_its_variance_is_the_published_one(epsilon: float, variance: float) -> None:
    """One number in [-1, 1] under replacement; Laplace would have 8 and 0.32."""
    mechanism = Staircase.for_squared_error(epsilon=epsilon, sensitivity=2000)
    k, mass = masses(epsilon, 2000, mechanism.inner)
    assert float((k**2 * mass).sum()) / 1000**2 == pytest.approx(variance, rel=5e-3)


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9, 0.95, 0.9999])
@pytest.mark.parametrize(("period", "inner"), [(1, 1), (5, 1), (5, 3), (5, 5), (60, 17)])
def test_the_error_is_the_least_that_covers(period: int, inner: int, confidence: float) -> None:
    epsilon = Fraction(3, 4)
    error = Staircase(epsilon=epsilon, inner=inner, sensitivity=Fraction(period)).error(confidence)
    k, mass = masses(0.75, period, inner)
    assert mass[np.abs(k) <= error].sum() >= confidence - 1e-12
    assert error == 0 or mass[np.abs(k) <= error - 1].sum() < confidence


def test_the_error_of_reals_covers_their_rounding() -> None:
    whole = Staircase(epsilon=Fraction(1), inner=2, sensitivity=Fraction(5)).error(0.9)
    reals = Staircase(
        epsilon=Fraction(1), inner=2, sensitivity=Fraction(1), granularity=Fraction(1, 4)
    )  # also five steps
    assert reals.error(0.9) == (whole + 0.5) / 4
    answers = reals.sample(np.full(20_000, 0.124), SeededBits(32))
    assert np.mean(np.abs(answers - 0.124) <= reals.error(0.9)) > 0.89


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("epsilon", {"epsilon": 65}),
        ("epsilon", {"epsilon": 2.0**-41}),
        ("sensitivity", {"sensitivity": 0.5}),
        ("sensitivity", {"sensitivity": 2.0**41}),
        ("inner", {"inner": 0}),
        ("inner", {"inner": 2}),
        ("inner", {"inner": True}),
        ("granularity", {"granularity": 0.1}),
    ],
)
def test_bad_parameters_name_themselves(name: str, fields: dict[str, object]) -> None:
    with refusal_of(name, "Staircase"):
        Staircase(**{"epsilon": 1, "inner": 1} | fields)  # type: ignore[arg-type]


def test_shapes_and_extreme_values_pass() -> None:
    mechanism = Staircase.for_absolute_error(epsilon=1, granularity=2.0**-10)
    assert mechanism.sample([[0.5, math.nan], [math.inf, -1e300]]).shape == (2, 2)
    assert mechanism.sample(3).shape == ()
    assert Staircase(epsilon=1, inner=1).sample(np.array([], dtype=np.int64)).dtype == np.int64
