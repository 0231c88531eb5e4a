import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from sourdine.tables.synthetic.agreement import mean_total, on_simplex, weighted_mean, with_margins

numbers = st.floats(-50, 100)


@settings(max_examples=60)
@given(arrays(np.float64, 5, elements=numbers), arrays(np.float64, 5, elements=st.floats(0.5, 9)))
def test_the_projection_is_the_nearest_point_of_the_simplex(
    values: np.ndarray, variances: np.ndarray
) -> None:
    total = 70.0
    ours = on_simplex(values, variances, total)
    assert ours.min() >= 0
    assert ours.sum() == pytest.approx(total)
    # the conditions of an optimum: one multiplier for all that is above 0, and none below it elsewhere
    slope = (values - ours) / variances
    inside = ours > 1e-9
    assert np.ptp(slope[inside]) < 1e-6 * (1 + np.abs(slope).max())
    assert (slope[~inside] <= slope[inside].min() + 1e-6).all()


def test_nothing_is_left_of_an_empty_total() -> None:
    assert on_simplex(np.array([3.0, -2.0]), np.ones(2), 0.0).tolist() == [0, 0]
    assert with_margins(np.ones((2, 2)), np.zeros(2), np.zeros(2), None).tolist() == [[0, 0], [0, 0]]
    assert mean_total([(-5.0, 1.0), (-3.0, 2.0)]) == 0


@settings(max_examples=40)
@given(
    arrays(np.float64, (4, 3), elements=numbers),
    arrays(np.float64, 4, elements=st.floats(0, 40)),
    arrays(np.float64, 3, elements=st.floats(0, 40)),
)
def test_tables_get_their_margins(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
    if rows.sum() < 1 or columns.sum() < 1:
        return
    columns = columns * rows.sum() / columns.sum()
    fitted = with_margins(table, rows, columns, None)
    assert np.isfinite(fitted).all()
    assert fitted.min() >= 0
    assert fitted.sum(1) == pytest.approx(rows, abs=1e-2 * rows.sum())
    assert fitted.sum(0) == pytest.approx(columns, abs=1e-2 * rows.sum())


def test_the_table_is_the_nearest_one_by_an_independent_solver() -> None:
    dice = np.random.default_rng(3)
    table, rows, columns = dice.normal(5, 6, (3, 3)), np.array([20.0, 10, 15]), np.array([5.0, 25, 15])
    ours = with_margins(table, rows, columns, None)
    matrix = np.array(
        [np.kron(np.eye(3)[i], np.ones(3)) for i in range(3)]
        + [np.kron(np.ones(3), np.eye(3)[j]) for j in range(2)]
    )
    sums = LinearConstraint(matrix, [*rows, *columns[:2]], [*rows, *columns[:2]])
    start = np.outer(rows, columns).ravel() / rows.sum()

    def off(cells: NDArray[np.float64]) -> float:
        return float(((cells - table.ravel()) ** 2).sum())

    best = minimize(off, start, constraints=sums, bounds=[(0, None)] * 9)
    assert ours.ravel() == pytest.approx(best.x, abs=1e-3)


def test_declared_zeros_stay_zero_and_no_row_is_lost() -> None:
    allowed = np.array([[False, True], [True, True]])
    fitted = with_margins(np.array([[9.0, 0], [0, 0]]), np.array([4.0, 6]), np.array([5.0, 5]), allowed)
    assert fitted[0, 0] == 0
    assert fitted.sum(1) == pytest.approx([4, 6], abs=1e-3)


@pytest.mark.parametrize("total", [0.0, 10.0])
def test_where_zeros_leave_no_table_every_row_and_column_has_weight_where_it_may(total: float) -> None:
    """Somebody drawn in a row without weight would go anywhere, also where nobody can be."""
    allowed = np.array([[False, False, True], [True, True, True]])
    rows, columns = np.array([0.9, 0.1]) * total, np.array([1.0, 0, 0]) * total
    fitted = with_margins(np.array([[5.0, 2, -1], [3, 0, 0]]), rows, columns, allowed)
    assert not fitted[~allowed].any()
    assert (fitted.sum(1) > 0).all()
    assert (fitted.sum(0) > 0).all()
    assert fitted.sum(1) == pytest.approx(rows, abs=1e-6)


def test_means_know_nothing_of_what_has_no_variance() -> None:
    mean, variance = weighted_mean([np.array([3.0]), np.array([99.0])], [np.ones(1), np.array([np.inf])])
    assert (mean.tolist(), variance.tolist()) == ([3], [1])
