"""Correlation matrices against brute force, closed forms and published figures."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.mechanisms.correlation import (
    CorrelationMatrix,
    LevelMatrix,
    Participation,
    PowerMatrix,
    TreeMatrix,
    least_error,
)
from sourdine.mechanisms.correlation.roots import power_coefficients
from tests.errors import refusal_of

HALF = Fraction(1, 2)
ONCE = Participation()


def whole(matrix: CorrelationMatrix) -> np.ndarray:
    rows = [matrix.rows_of(t) for t in range(1, matrix.periods + 1)]
    return np.concatenate([np.pad(each, ((0, 0), (0, matrix.periods - each.shape[1]))) for each in rows])


def patterns(periods: int, participation: Participation) -> list[tuple[int, ...]]:
    most = min(participation.times, periods)
    return [
        chosen
        for size in range(1, most + 1)
        for chosen in itertools.combinations(range(periods), size)
        if all(later - each >= participation.separation for each, later in itertools.pairwise(chosen))
    ]


def deviation(matrix: CorrelationMatrix, length: float) -> tuple[float, float]:
    """Root mean square over steps, and the worst step, of totals."""
    norms = [float(np.linalg.norm(matrix.coefficients(1, t))) for t in range(1, matrix.periods + 1)]
    return length * math.sqrt(np.mean(np.square(norms))), length * max(norms)


MATRICES = [
    PowerMatrix(7, HALF, 16),
    PowerMatrix(7, Fraction(1, 4), 16),
    PowerMatrix(7, Fraction(0), 1),
    LevelMatrix(7, HALF, 32),
    TreeMatrix(7, 2),
    TreeMatrix(7, 3),
    least_error(np.tril(np.ones((7, 7))), 64),
]


@pytest.mark.parametrize("matrix", MATRICES, ids=repr)
@pytest.mark.parametrize("pattern", [(1, 1), (2, 1), (2, 3), (3, 2), (7, 1)])
def test_lengths_cover_every_pattern(matrix: CorrelationMatrix, pattern: tuple[int, int]) -> None:
    participation, entries = Participation(*pattern), whole(matrix)
    moved = [entries[:, chosen].sum(axis=1) for chosen in patterns(7, participation)]
    squares, sums = max(int(each @ each) for each in moved), max(int(each.sum()) for each in moved)
    rows = max(int(each.max()) for each in moved)
    assert matrix.squared_length(participation) >= squares
    if isinstance(matrix, PowerMatrix) or participation.times == 1:
        assert matrix.squared_length(participation) == squares
    assert matrix.length(participation) == sums
    assert matrix.row_reach(participation) == rows


@pytest.mark.parametrize("matrix", MATRICES, ids=repr)
def test_coefficients_give_back_each_span(matrix: CorrelationMatrix) -> None:
    entries = whole(matrix)
    for first in range(1, 8):
        for last in range(first, 8):
            found = matrix.coefficients(first, last) @ entries[: matrix.rows_until(last)]
            assert found == pytest.approx([float(first <= t <= last) for t in range(1, 8)], abs=1e-9)


@pytest.mark.parametrize("fan", [2, 3, 5])
def test_a_tree_tells_its_variance_without_its_coefficients(fan: int) -> None:
    tree = TreeMatrix(30, fan)
    for first in range(1, 31, 4):
        for last in range(first, 31):
            length = float(np.linalg.norm(tree.coefficients(first, last)))
            assert tree.variance(first, last) == pytest.approx(length**2)


@pytest.mark.parametrize("matrix", MATRICES, ids=repr)
def test_no_row_looks_ahead(matrix: CorrelationMatrix) -> None:
    for t in range(1, 8):
        assert matrix.rows_of(t).shape[1] == t
        assert sum(len(matrix.rows_of(each)) for each in range(1, t + 1)) == matrix.rows_until(t)
    assert (whole(matrix) >= 0).all()


@given(
    weights=st.lists(st.integers(0, 100), min_size=1, max_size=9),
    times=st.integers(1, 5),
    separation=st.integers(1, 4),
)
def test_the_heaviest_periods_are_those_of_brute_force(
    weights: list[int], times: int, separation: int
) -> None:
    participation = Participation(times, separation)
    best = max(sum(weights[i] for i in chosen) for chosen in patterns(len(weights), participation))
    assert participation.heaviest(np.array(weights)) == best


@pytest.mark.parametrize(
    ("periods", "squared", "length"),
    [(52, 2435045, 8311), (104, 2667041, 11767), (365, 3086758, 22066), (10000, 4192174, 115500)],
)
def test_the_square_root_in_whole_numbers(periods: int, squared: int, length: int) -> None:
    matrix = PowerMatrix(periods, HALF, 1024)
    assert (matrix.squared_length(ONCE), matrix.length(ONCE)) == (squared, length)


def test_coefficients_are_binomials_with_halves_up() -> None:
    exact = [(2 * 1024 * math.comb(2 * k, k) + 4**k) // (2 * 4**k) for k in range(400)]
    assert power_coefficients(HALF, 400, 1024) == exact
    assert exact[7] == 215  # 214.5


@pytest.mark.parametrize(
    ("periods", "root", "level"),
    [(52, (2.164, 2.322), (2.065, 2.148)), (104, (2.383, 2.544), (2.278, 2.364))],
)
def test_deviations_of_totals(periods: int, root: tuple[float, float], level: tuple[float, float]) -> None:
    for matrix, known in [
        (PowerMatrix(periods, HALF, 1024), root),
        (LevelMatrix(periods, HALF, 2048), level),
    ]:
        found = deviation(matrix, math.sqrt(matrix.squared_length(ONCE)))
        assert found == pytest.approx(known, abs=1e-3)


def test_the_best_tree_for_pure_epsilon() -> None:
    found = {fan: deviation(TreeMatrix(52, fan), TreeMatrix(52, fan).length(ONCE))[0] for fan in range(2, 12)}
    assert min(found, key=found.__getitem__) == 8
    assert found[8] == pytest.approx(4.894, abs=1e-3)


def test_the_dense_matrix_is_near_the_bound_that_holds_for_all() -> None:
    matrix = least_error(np.tril(np.ones((52, 52))), 2048)
    found = deviation(matrix, math.sqrt(matrix.squared_length(ONCE)))[0]
    least = sum(1 / (2 * math.sin((2 * j - 1) * math.pi / (4 * 52 + 2))) for j in range(1, 53)) / 52
    assert least == pytest.approx(1.977, abs=1e-3)
    assert least < found < 2.04


def test_each_period_alone_needs_no_correlation() -> None:
    matrix = least_error(np.eye(6), 64)
    assert (whole(matrix) == 64 * np.eye(6)).all()


def test_a_shared_total_is_worst_in_one_period() -> None:
    matrix = LevelMatrix(7, HALF, 32)
    assert matrix.squared_length(Participation(shared=True)) == matrix.squared_length(ONCE)
    with refusal_of("times", "Participation"):
        Participation(times=2, shared=True)


def test_participation_in_words() -> None:
    assert Participation().words == "in one period"
    assert Participation(4, 13).words == "in at most 4 periods, at least 13 apart"
    assert Participation(shared=True).words == "in any periods, with a bounded total"
