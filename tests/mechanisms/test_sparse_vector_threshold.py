import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import AboveThreshold
from sourdine.mechanisms.sparse_vector import _reach
from sourdine.testing import SeededBits
from tests.choice_laws import above_threshold, laplace_tail

ROWS = st.lists(st.tuples(st.integers(-6, 6), st.integers(-2, 2)), min_size=1, max_size=6)


def mechanism(queries: int, *, monotone: bool = False, epsilon: Fraction = Fraction(5, 3)) -> AboveThreshold:
    return AboveThreshold(
        epsilon=epsilon, queries=queries, threshold=0, sensitivity=Fraction(2), monotone=monotone
    )


def worst(m: AboveThreshold, row: Sequence[int], other: Sequence[int]) -> float:
    p, q = above_threshold(m, row), above_threshold(m, other)
    return max(abs(math.log(p[answer] / q[answer])) for answer in p)


@given(ROWS)
def test_no_change_of_queries_costs_more_than_epsilon(pairs: list[tuple[int, int]]) -> None:
    row, other = [q for q, _ in pairs], [q + d for q, d in pairs]
    assert worst(mechanism(len(row)), row, other) <= 5 / 3 + 1e-9


@given(ROWS, st.sampled_from([1, -1]))
def test_queries_that_move_one_way_need_less_noise(pairs: list[tuple[int, int]], sign: int) -> None:
    row, other = [q for q, _ in pairs], [q + sign * abs(d) for q, d in pairs]
    assert worst(mechanism(len(row), monotone=True), row, other) <= 5 / 3 + 1e-9


@pytest.mark.parametrize(("monotone", "last"), [(False, -2), (True, 0)])
def test_both_variants_are_tight(monotone: bool, last: int) -> None:
    m = mechanism(12, monotone=monotone)
    assert worst(m, [0] * 12, [2] * 11 + [last]) > 0.998 * 5 / 3


def test_the_monotone_noise_costs_half_as_much_again_on_other_queries() -> None:
    m = mechanism(12, monotone=True)
    cost = worst(m, [0] * 12, [2] * 11 + [-2])
    assert cost == pytest.approx(1.5 * 5 / 3, rel=1e-3)


def test_scales_are_those_of_the_theorem() -> None:
    plain, ordered = mechanism(3), mechanism(3, monotone=True)
    assert (plain.threshold_scale, plain.query_scale) == (Fraction(12, 5), Fraction(24, 5))
    assert (ordered.threshold_scale, ordered.query_scale) == (Fraction(12, 5), Fraction(12, 5))


def test_costs_are_proportional_to_whole_steps() -> None:
    m = mechanism(4)
    assert m.loss(Distance.linf(2)).epsilon == Fraction(5, 3)
    assert m.loss(Distance.linf(6)).epsilon == 5
    assert m.loss(Distance.linf(1.9)).epsilon == Fraction(5, 6)
    assert m.loss(Distance.linf(0.9)).epsilon == 0
    assert m.loss(Distance.linf(2)).rho == Fraction(25, 18)


def test_the_examples_come_close_to_their_claims() -> None:
    for example in AboveThreshold.examples():
        m = example.mechanism
        assert isinstance(m, AboveThreshold)
        claim = float(m.loss(example.distance).epsilon)
        row, other = np.array(example.value).tolist(), np.array(example.neighbour).tolist()
        assert 0.85 * claim < worst(m, row, other) <= claim


def test_none_above_is_one_past_the_last_index() -> None:
    m = mechanism(3)
    rows = [[-900, -900, -900], [-900, 900, -900], [900, 900, 900], [-900, -900, 900]]
    assert m.sample(rows, SeededBits(1)).tolist() == [3, 1, 0, 2]
    assert m.sample(rows[0], SeededBits(1)).shape == ()


def test_extreme_queries_are_compared_without_overflow() -> None:
    top = 2**62 - 1
    high = AboveThreshold(epsilon=1, queries=2, threshold=top)
    assert high.sample([[-(10**30), -top], [10**30, 0], [-top, 10**30]], SeededBits(2)).tolist()[0] == 2
    low = AboveThreshold(epsilon=1, queries=2, threshold=-top)
    assert low.sample([[10**30, 0], [0, -(10**30)]], SeededBits(2)).tolist() == [0, 0]


@pytest.mark.parametrize("queries", [1, 7, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_error_covers(queries: int, confidence: float, monotone: bool) -> None:
    """Exactly: all queries too low and one reported, or one high enough at the end and not reported."""
    m = mechanism(queries, monotone=monotone)
    alpha = m.error(confidence)
    assert alpha == int(alpha)
    noise = np.arange(-400, 401)
    mass = np.exp(-np.abs(noise) / float(m.threshold_scale))
    mass /= mass.sum()
    false_alarm = 1 - np.sum(mass * (1 - laplace_tail(noise + alpha + 1, float(m.query_scale))) ** queries)
    missed = np.sum(mass * (1 - laplace_tail(noise - alpha, float(m.query_scale)) ** queries))
    assert max(false_alarm, missed) <= 1 - confidence
    bound = 8 * 2 / (5 / 3) * (math.log(queries) + math.log(2 / (1 - confidence)))
    assert alpha <= bound + 2  # Dwork and Roth's, and a step of rounding for each noise


@given(st.fractions(Fraction(1, 5), 50), st.floats(1e-9, 0.9))
def test_the_reach_of_the_noise_is_the_least(scale: Fraction, tail: float) -> None:
    def outside(k: int) -> float:
        return 2 * math.exp(-(k + 1) / scale) / (1 + math.exp(-1 / scale))

    k = _reach(scale, tail)
    assert outside(k) <= tail * (1 + 1e-9)
    assert k == 0 or outside(k - 1) > tail * (1 - 1e-9)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("epsilon", 0),
        ("epsilon", Fraction(1, 2**41)),
        ("queries", 0),
        ("threshold", 0.5),
        ("threshold", 2**63),
        ("sensitivity", 0),
        ("monotone", "yes"),
    ],
)
def test_bad_parameters_are_refused(field: str, bad: object) -> None:
    good = {"epsilon": Fraction(1), "queries": 3, "threshold": 0}
    with pytest.raises(InvalidParameter, match=f"The '{field}' of AboveThreshold"):
        AboveThreshold(**good | {field: bad})  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[1, 2], [0.5, 1.0, 2.0], 4])
def test_wrong_shapes_and_kinds_are_refused(values: object) -> None:
    with pytest.raises(InvalidParameter, match="given to AboveThreshold"):
        mechanism(3).sample(values)  # type: ignore[arg-type]
