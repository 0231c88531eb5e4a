import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sourdine.tables.synthetic.fit import PartModel
from sourdine.tables.synthetic.model import draw_records, shares_of, shuffle_within
from sourdine.testing import SeededBits


def star(rows: float = 4000.0) -> PartModel:
    """A parent with two children that are independent, given it."""
    margin = np.array([rows / 2, rows / 2])
    table = np.array([[0.7, 0.3], [0.2, 0.8]]) * rows / 2
    other = table.sum(0)
    return PartModel(
        total=rows,
        margins=(margin, other, other),
        cells=(np.arange(2),) * 3,
        edges=((0, 1), (0, 2)),
        tables=(table, table),
    )


@settings(max_examples=60)
@given(arrays(np.float64, (3, 4), elements=st.floats(0, 9)), st.integers(0, 1000), st.integers(0, 2**32))
def test_shares_are_rounded_up_or_down_and_add_up(weights: np.ndarray, total: int, seed: int) -> None:
    totals = np.array([total, 2 * total, 0])
    shares = shares_of(weights, totals, SeededBits(seed))
    assert (shares.sum(1) == totals).all()
    sums = weights.sum(1, keepdims=True)
    exact = np.where(sums > 0, weights / np.where(sums > 0, sums, 1), 0.25) * totals[:, None]
    assert (np.abs(shares - exact) <= 1 + 1e-6).all()


class NoShift(SeededBits):
    """Bits whose words are all 0: the shift of a row that rounds down the most."""

    def words(self, count: int) -> np.ndarray:
        return np.zeros(count, np.uint64)


def test_the_last_cell_gets_nobody_by_rounding() -> None:
    """A tenth ten times is a little less than 1 in floats; who is left over is not where nobody may be."""
    weights = np.array([[0.1] * 10 + [0.0]])
    assert np.cumsum(weights)[-1] < 1
    assert shares_of(weights, np.array([10]), NoShift(1))[0, -1] == 0


def test_pairs_of_the_tree_hold_what_the_model_says() -> None:
    drawn = draw_records(star(), 4000, SeededBits(1))
    for child in (1, 2):
        counts = np.zeros((2, 2))
        np.add.at(counts, (drawn[0], drawn[child]), 1)
        assert counts == pytest.approx(star().tables[0], abs=1.5)


def test_children_of_one_parent_are_independent_given_it() -> None:
    """Given out in the order of rows, they would rise together: 0.3 of rows then have both."""
    drawn = draw_records(star(), 4000, SeededBits(2))
    within = drawn[0] == 0
    both = float(((drawn[1] == 1) & (drawn[2] == 1))[within].mean())
    assert both == pytest.approx(0.09, abs=0.02)


def test_rare_cells_come_back_in_proportion() -> None:
    model = PartModel(
        total=100.0,
        margins=(np.array([60.0, 30, 10, 0]),),
        cells=(np.array([0, 1, 1, 1]),),
        edges=(),
        tables=(),
    )
    (drawn,) = draw_records(model, 1000, SeededBits(3))
    assert np.bincount(drawn, minlength=4) == pytest.approx([600, 300, 100, 0], abs=1)


def test_an_order_is_a_permutation_within_groups() -> None:
    groups = np.array([1, 0, 1, 1, 0])
    order = shuffle_within(groups, SeededBits(4))
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4]
    assert groups[order].tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_are_drawn_without_fuss(rows: int) -> None:
    assert [len(each) for each in draw_records(star(), rows, SeededBits(5))] == [rows] * 3
