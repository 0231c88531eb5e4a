"""Correlated noise: claims against brute force, rows one by one against all at once, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import RhoLaw
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.mechanisms import CorrelatedGaussian, CorrelatedLaplace, NoiseCorrelation
from sourdine.mechanisms.correlation import Participation, PowerMatrix, TreeMatrix
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.series_laws import matrix_of

WEEKS = CorrelatedGaussian(sigma=2000, periods=52, correlation=NoiseCorrelation.POWER)
KINDS: list[CorrelatedGaussian | CorrelatedLaplace] = [
    CorrelatedGaussian(sigma=3, periods=6, correlation=NoiseCorrelation.INDEPENDENT),
    CorrelatedGaussian(sigma=300, periods=6, correlation=NoiseCorrelation.POWER),
    CorrelatedGaussian(sigma=300, periods=6, correlation=NoiseCorrelation.LEVEL),
    CorrelatedLaplace(scale=3, periods=6, correlation=NoiseCorrelation.TREE, fan=3),
    CorrelatedLaplace(scale=3, periods=3, correlation=NoiseCorrelation.DENSE, triangle=(3, 2, 3, 1, 1, 3)),
]


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda each: each.correlation.value)
def test_rows_are_the_matrix_times_the_periods(mechanism: CorrelatedGaussian | CorrelatedLaplace) -> None:
    values = np.arange(2 * mechanism.periods).reshape(2, -1)
    exact = values @ np.array(matrix_of(mechanism)).T
    seen = np.mean([mechanism.sample(values, SeededBits(seed)) for seed in range(300)], axis=0)
    sigma = math.sqrt(2) * 3 if isinstance(mechanism, CorrelatedLaplace) else float(mechanism.sigma)
    assert np.abs(seen - exact).max() < 6 * sigma / math.sqrt(300)


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda each: each.correlation.value)
def test_rows_one_by_one_have_the_law_of_all_at_once(
    mechanism: CorrelatedGaussian | CorrelatedLaplace,
) -> None:
    values = np.arange(5 * mechanism.periods).reshape(5, -1)
    whole = mechanism.sample(np.zeros_like(values), SeededBits(0))
    rows = [mechanism.sample_rows(values[:, :t], SeededBits(t)) for t in range(1, mechanism.periods + 1)]
    assert np.concatenate(rows, axis=-1).shape == whole.shape
    exact = values @ np.array(matrix_of(mechanism)).T
    sigma = math.sqrt(2) * 3 if isinstance(mechanism, CorrelatedLaplace) else float(mechanism.sigma)
    assert np.abs(np.concatenate(rows, axis=-1) - exact).max() < 12 * sigma


@pytest.mark.parametrize("moved", [3, 6])  # the nearest floats are below what these cost
def test_a_law_of_floats_costs_no_less_than_the_fraction(moved: int) -> None:
    loss = WEEKS.loss(Distance.l2(moved))
    assert loss.rho is not None
    assert isinstance(loss.remove, RhoLaw)
    assert Fraction(float(loss.rho)) < loss.rho <= Fraction(loss.remove.rho)


def test_the_claim_is_that_of_the_rounded_matrix() -> None:
    assert WEEKS.loss(Distance.l2(1)).rho == Fraction(2435045, 2 * 2000**2)
    for times, separation, square in [(2, 1, 8391981), (4, 4, 23201219), (52, 1, 1822239651)]:
        often = CorrelatedGaussian(
            sigma=2000, periods=52, correlation=NoiseCorrelation.POWER, times=times, separation=separation
        )
        assert often.loss(Distance.l2(square=3)).rho == Fraction(3 * square, 2 * 2000**2)


def test_a_shared_total_costs_as_one_period() -> None:
    shared = CorrelatedGaussian(sigma=2000, periods=52, correlation=NoiseCorrelation.POWER, shared=True)
    assert shared.loss(Distance.l2(5)).rho == WEEKS.loss(Distance.l2(5)).rho


def test_a_grid_moves_each_number_by_one_step_more() -> None:
    coarse = CorrelatedGaussian(sigma=2000, periods=52, correlation=NoiseCorrelation.POWER, granularity=4)
    moved = Distance.l2(64, coordinates=1)
    assert coarse.loss(moved).rho == Fraction(17**2 * 2435045, 2 * 500**2)
    shared = CorrelatedGaussian(
        sigma=2000, periods=52, correlation=NoiseCorrelation.POWER, granularity=4, shared=True
    )
    assert shared.loss(Distance.l2(64, coordinates=9)).rho == Fraction(25**2 * 2435045, 2 * 500**2)
    with pytest.raises(UnsupportedLoss, match="how many numbers change"):
        shared.loss(Distance.l2(64))


def test_a_replaced_unit_keeps_its_relation() -> None:
    loss = WEEKS.loss(Distance.l2(1, neighbours=Neighbours.REPLACE))
    assert loss.neighbours is Neighbours.REPLACE


def test_laplace_pays_for_the_worst_columns() -> None:
    tree = CorrelatedLaplace(scale=10, periods=8, correlation=NoiseCorrelation.TREE, times=2)
    assert tree.loss(Distance.l1(3)).epsilon == Fraction(3 * 8, 10)


def test_sums_beyond_62_bits_are_clipped_and_no_error_is_told() -> None:
    most = (1 << 62) - 1
    values = np.full((2, 52), most)
    values[1] *= -1
    rows = WEEKS.sample(values, SeededBits(1))
    assert (rows[0] > most - 20_000).all()
    assert (rows[1] < -most + 20_000).all()


def test_large_sums_are_exact() -> None:
    huge = PowerMatrix(3, Fraction(1, 2), 1024)
    history = np.array([(1 << 50) + 1, -(1 << 49) - 3, 7])
    exact = 384 * ((1 << 50) + 1) - 512 * ((1 << 49) + 3) + 1024 * 7
    assert huge.correlate(history).tolist() == [exact]


def test_other_shapes_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="52 periods along their last axis"):
        WEEKS.sample(np.zeros(51, int))
    with pytest.raises(InvalidParameter, match="1 to 52 periods"):
        WEEKS.sample_rows(np.zeros(53, int))


@pytest.mark.parametrize(
    ("triangle", "reason"),
    [((1, 2), "hold 3 whole numbers"), ((1, -1, 1), "hold 3"), ((1, 1, 0), "zero on its diagonal")],
)
def test_a_triangle_that_is_none_is_refused(triangle: tuple[int, ...], reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        CorrelatedGaussian(sigma=9, periods=2, correlation=NoiseCorrelation.DENSE, triangle=triangle)


def test_a_triangle_goes_with_a_dense_correlation_alone() -> None:
    with pytest.raises(InvalidParameter, match="be empty"):
        CorrelatedGaussian(sigma=9, periods=2, correlation=NoiseCorrelation.POWER, triangle=(1, 1, 1))
    with refusal_of("times", "Participation"):
        CorrelatedGaussian(sigma=9, periods=2, correlation=NoiseCorrelation.POWER, shared=True, times=2)


def test_a_mechanism_is_made_of_its_matrix() -> None:
    for each in KINDS:
        noise = each.scale if isinstance(each, CorrelatedLaplace) else each.sigma
        assert type(each).from_matrix(each.matrix, each.participation, noise) == each
    tree = CorrelatedLaplace.from_matrix(TreeMatrix(9, 3), Participation(2, 2), 4)
    assert (tree.fan, tree.times, tree.separation) == (3, 2, 2)
