import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import SparseVector
from sourdine.testing import SeededBits
from tests.choice_laws import laplace_tail, sparse_vector

ROWS = st.lists(st.tuples(st.integers(-6, 6), st.integers(-2, 2)), min_size=1, max_size=6)


def mechanism(queries: int, answers: int, *, monotone: bool = False) -> SparseVector:
    return SparseVector(
        epsilon=Fraction(5, 3),
        queries=queries,
        threshold=0,
        sensitivity=Fraction(2),
        answers=answers,
        monotone=monotone,
    )


def worst(m: SparseVector, row: Sequence[int], other: Sequence[int]) -> float:
    p, q = sparse_vector(m, row), sparse_vector(m, other)
    return max(abs(math.log(p[answer] / q[answer])) for answer in p)


@given(ROWS, st.integers(1, 4))
def test_no_change_of_queries_costs_more_than_epsilon(pairs: list[tuple[int, int]], answers: int) -> None:
    row, other = [q for q, _ in pairs], [q + d for q, d in pairs]
    assert worst(mechanism(len(row), answers), row, other) <= 5 / 3 + 1e-9


@given(ROWS, st.integers(1, 4), st.sampled_from([1, -1]))
def test_queries_that_move_one_way_need_less_noise(
    pairs: list[tuple[int, int]], answers: int, sign: int
) -> None:
    row, other = [q for q, _ in pairs], [q + sign * abs(d) for q, d in pairs]
    assert worst(mechanism(len(row), answers, monotone=True), row, other) <= 5 / 3 + 1e-9


@pytest.mark.parametrize(("monotone", "last"), [(False, -2), (True, 0)])
def test_both_variants_are_tight(monotone: bool, last: int) -> None:
    m = mechanism(10, 2, monotone=monotone)
    assert worst(m, [6] * 8 + [0] * 2, [8] * 8 + [last] * 2) > 0.98 * 5 / 3


def test_the_monotone_noise_costs_more_on_other_queries() -> None:
    m = mechanism(10, 2, monotone=True)
    assert worst(m, [6] * 8 + [0] * 2, [8] * 8 + [-2] * 2) > 1.4 * 5 / 3


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("answers", [1, 2, 3, 50, 1000])
def test_the_two_shares_are_all_of_epsilon(answers: int, monotone: bool) -> None:
    m = mechanism(5, answers, monotone=monotone)
    spread = 2 if monotone else 4
    assert 2 / m.threshold_scale + answers * spread / m.query_scale == Fraction(5, 3)
    ratio = float(answers * spread / m.query_scale / (2 / m.threshold_scale))
    assert ratio == pytest.approx((answers * spread / 2) ** (2 / 3), rel=1e-3)
    assert m.loss(Distance.linf(2)).epsilon == Fraction(5, 3)
    assert m.loss(Distance.linf(5)).epsilon == Fraction(25, 6)


def test_the_split_is_near_the_least_noise() -> None:
    m = mechanism(5, 3)
    noise = lambda share: (2 / share) ** 2 + (12 / (5 / 3 - share)) ** 2
    best = min(noise(share) for share in np.linspace(0.01, 1.65, 2000))
    assert float(m.threshold_scale) ** 2 + float(m.query_scale) ** 2 <= best * (1 + 1e-6)


def test_nothing_is_reported_after_the_last_answer() -> None:
    m = mechanism(6, 2)
    sure = [9000, -9000, 9000, 9000, -9000, 9000]
    assert m.sample(sure, SeededBits(1)).tolist() == [True, False, True, False, False, False]
    rows = m.sample(np.zeros((5000, 6), int), SeededBits(2))
    assert rows.dtype == np.bool_
    assert rows.sum(axis=-1).max() == 2
    assert np.all(rows[rows.sum(axis=-1) == 2].argmax(axis=-1) < 5)


def test_the_threshold_is_drawn_once_for_a_row() -> None:
    """Two queries share the noise of the threshold, so that their answers go together."""
    m = SparseVector(epsilon=Fraction(1), queries=2, threshold=0, answers=2)
    rows = m.sample(np.zeros((100_000, 2), int), SeededBits(3))
    law = sparse_vector(m, [0, 0])
    alone = law[1] + law[3]
    assert law[3] > alone * (law[2] + law[3]) * 1.02
    assert np.all(rows, axis=-1).mean() == pytest.approx(law[3], abs=5 * math.sqrt(law[3] / 100_000))


def test_the_examples_come_close_to_their_claims() -> None:
    for example in SparseVector.examples():
        m = example.mechanism
        assert isinstance(m, SparseVector)
        claim = float(m.loss(example.distance).epsilon)
        row, other = np.array(example.value).tolist(), np.array(example.neighbour).tolist()
        assert 0.8 * claim < worst(m, row, other) <= claim
        assert set(example.outcomes(row, 2000, SeededBits(4)).tolist()) <= set(sparse_vector(m, row))


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_error_covers(confidence: float) -> None:
    m = mechanism(40, 3)
    alpha = m.error(confidence)
    noise = np.arange(-800, 801)
    mass = np.exp(-np.abs(noise) / float(m.threshold_scale))
    mass /= mass.sum()
    false_alarm = 1 - np.sum(mass * (1 - laplace_tail(noise + alpha + 1, float(m.query_scale))) ** 40)
    missed = np.sum(mass * (1 - laplace_tail(noise - alpha, float(m.query_scale)) ** 40))
    assert max(false_alarm, missed) <= 1 - confidence


@pytest.mark.parametrize(
    ("field", "bad"), [("answers", 0), ("answers", 1.0), ("epsilon", -1), ("queries", 0)]
)
def test_bad_parameters_are_refused(field: str, bad: object) -> None:
    good = {"epsilon": Fraction(1), "queries": 3, "threshold": 0, "answers": 2}
    with pytest.raises(InvalidParameter, match=f"The '{field}' of SparseVector"):
        SparseVector(**good | {field: bad})  # type: ignore[arg-type]
