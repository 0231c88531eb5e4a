import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import sourdine as sd
from sourdine.accounting import dpsgd_epsilon, dpsgd_epsilons
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from tests.errors import refusal_of

WIDTH = 1e-3


def overlap(*settings: object, width: float = WIDTH) -> None:
    """Each bracket meets that of the setting alone, and is no wider than asked, or than that one."""
    lower, upper = dpsgd_epsilons(*settings, width=width)  # type: ignore[arg-type,misc]
    grids = np.broadcast_arrays(*settings)  # type: ignore[arg-type]
    assert lower.shape == upper.shape == grids[0].shape
    places = zip(*(grid.flat for grid in grids), strict=True)
    for low, high, (noise, rate, steps, delta) in zip(lower.flat, upper.flat, places, strict=True):
        alone = dpsgd_epsilon(noise, rate, steps, delta, width)
        assert low <= alone.upper, (noise, rate, steps, delta)
        assert alone.lower <= high, (noise, rate, steps, delta)
        assert high - low <= max(width, alone.width) + 1e-12, (noise, rate, steps, delta)


def test_random_settings_agree_with_each_alone() -> None:
    random = np.random.default_rng(35)
    noise, rate = np.exp(random.uniform(np.log(0.6), np.log(6), 12)), 10 ** random.uniform(-4, -1, 12)
    overlap(noise, rate, (10 ** random.uniform(0, 4, 12)).astype(int), 10 ** random.uniform(-9, -3, 12))


def test_a_grid_shares_what_it_can_and_agrees() -> None:
    overlap(*np.ix_([0.8, 2.0], [1e-3, 0.05], [1, 300], [1e-9, 1e-7, 1e-5, 1e-2]))


def test_a_curve_follows_its_neighbours_and_agrees() -> None:
    overlap(np.geomspace(0.7, 0.75, 8), 64 / 60000, 2000, 1e-5)
    overlap(5.0, 1e-3, np.arange(1000, 1100, 15), 1e-6)


@pytest.mark.slow
def test_many_random_settings_agree_with_each_alone() -> None:
    random = np.random.default_rng(36)
    noise, rate = np.exp(random.uniform(np.log(0.4), np.log(20), 150)), 10 ** random.uniform(-5, 0, 150)
    overlap(noise, rate, (10 ** random.uniform(0, 5, 150)).astype(int), 10 ** random.uniform(-12, -1, 150))
    grid: list[object] = [np.geomspace(0.5, 8, 5), [1e-4, 1e-2, 1.0], [1, 100, 10_000], [1e-10, 1e-6, 1e-5]]
    overlap(*np.ix_(*grid), width=1e-2)
    overlap(np.geomspace(0.5, 0.53, 20), 64 / 60000, 14070, 1e-5)


@pytest.mark.parametrize(("noise", "rate"), [(0.7, 0.01), (1.0, 0.3), (4.0, 0.05)])
def test_one_step_holds_the_true_epsilon(noise: float, rate: float) -> None:
    """delta of one step with Poisson sampling, in fifty digits: both directions, solved for epsilon."""
    deltas = [1e-3, 1e-5, 1e-6]
    lower, upper = dpsgd_epsilons(noise, rate, 1, deltas, 1e-4)
    with mpmath.workdps(50):
        for low, high, delta in zip(lower, upper, deltas, strict=True):
            assert _one_step(noise, rate, high) <= delta
            assert low == 0 or _one_step(noise, rate, low) >= delta


def _one_step(noise: float, rate: float, epsilon: float) -> mpmath.mpf:
    """P = (1-q) N(0, s^2) + q N(1, s^2) against Q = N(0, s^2), and Q against P."""
    s, q, x = mpmath.mpf(noise), mpmath.mpf(rate), mpmath.exp(mpmath.mpf(epsilon))
    ratio = (x - 1 + q) / q  # P/Q exceeds x above this point
    at = s**2 * mpmath.log(ratio) + mpmath.mpf(1) / 2
    above = mpmath.ncdf(-at / s), mpmath.ncdf((1 - at) / s)
    remove = (1 - q - x) * above[0] + q * above[1]
    ratio = (1 / x - 1 + q) / q  # Q/P exceeds x below this one
    if ratio <= 0:
        return remove
    at = s**2 * mpmath.log(ratio) + mpmath.mpf(1) / 2
    below = mpmath.ncdf(at / s), mpmath.ncdf((at - 1) / s)
    return max(remove, below[0] - x * ((1 - q) * below[0] + q * below[1]))


def test_known_runs_lie_inside() -> None:
    """The seed's run, and the truths that benchmarks/accounting has from dp_accounting, to about 1e-4."""
    lower, upper = dpsgd_epsilons([1.0, 0.8], [64 / 60000, 4096 / 1e6], [14070, 100_000], [1e-5, 1e-8], 1e-2)
    assert np.all(lower <= np.array([0.6112, 17.1216]))
    assert np.all(upper >= np.array([0.6110, 17.1214]))


def test_other_neighbours_and_groups() -> None:
    for also in ({"neighbours": Neighbours.REPLACE}, {"group": 2}):
        lower, upper = dpsgd_epsilons([1.0, 1.5], 0.01, 100, 1e-5, 1e-2, **also)
        for k, noise in enumerate((1.0, 1.5)):
            alone = dpsgd_epsilon(noise, 0.01, 100, 1e-5, 1e-2, **also)
            assert lower[k] <= alone.upper
            assert alone.lower <= upper[k]


def test_without_sampling_it_is_gaussian_noise() -> None:
    overlap([1.0, 3.0], 1, [1, 4], 1e-5)
    overlap(2.0, [0.5, 1.0], 3, 1e-5)


def test_shapes_are_broadcast() -> None:
    lower, upper = sd.accounting.dpsgd_epsilons([1.0, 2.0], 0.01, [[10], [20], [30]], 1e-5, width=0.1)
    assert lower.shape == upper.shape == (3, 2)
    assert np.all(np.diff(upper, axis=1) < 0)
    one = sd.accounting.dpsgd_epsilons(1, np.array(Fraction(1, 100)), 10, 1e-5, width=0.1)
    assert one.upper.shape == ()
    assert lower[0, 0] <= one.upper
    assert one.lower <= upper[0, 0]
    none = sd.accounting.dpsgd_epsilons([], 0.01, 10, 1e-5)
    assert none.lower.shape == none.upper.shape == (0,)
    assert none.upper.dtype == np.float64


def test_numbers_of_other_libraries_are_numbers() -> None:
    plain = dpsgd_epsilons(1.0, 0.25, [10, 20], 1e-3, 0.1)
    for steps in (np.array([10, 20], np.uint8), np.array([10, 20], object), (np.int16(10), np.int64(20))):
        same = dpsgd_epsilons(np.float32(1), np.array(0.25, np.float32), steps, 1e-3, 0.1)
        assert np.array_equal(same.upper, plain.upper)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("noise_multipliers", [1.0, math.nan]),
        ("noise_multipliers", [1.0, 0.0]),
        ("noise_multipliers", ["1"]),
        ("noise_multipliers", [[1.0], [1.0, 2.0]]),
        ("sampling_rates", [0.1, 1.5]),
        ("sampling_rates", [math.inf]),
        ("steps", [10, 0]),
        ("steps", np.array([10.0])),
        ("steps", [True]),
        ("steps", np.array([3], "m8[s]")),
        ("deltas", [1e-5, 0.0]),
        ("deltas", [1e-5, 1.0]),
        ("deltas", None),
    ],
)
def test_errors_name_the_parameter(name: str, bad: object) -> None:
    good = {"noise_multipliers": 1.0, "sampling_rates": 0.1, "steps": 10, "deltas": 1e-5}
    with refusal_of(name, "dpsgd_epsilons"):
        dpsgd_epsilons(**(good | {name: bad}))  # type: ignore[arg-type]


def test_shapes_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(InvalidParameter, match="broadcast"):
        dpsgd_epsilons([1.0, 2.0], [0.1, 0.2, 0.3], 10, 1e-5)
