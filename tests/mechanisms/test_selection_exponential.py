import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import Exponential
from sourdine.testing import SeededBits
from tests.choice_laws import exponential
from tests.statistics import ALARM, fit

ROWS = st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 2)), min_size=2, max_size=6)


def mechanism(size: int = 4, *, monotone: bool = False, epsilon: Fraction = Fraction(4, 3)) -> Exponential:
    return Exponential(epsilon=epsilon, sensitivity=Fraction(2), candidates=size, monotone=monotone)


def losses(chooser: Exponential, row: list[int], other: list[int]) -> list[float]:
    p, q = exponential(chooser, row), exponential(chooser, other)
    return [math.log(p[i] / q[i]) for i in p]


@given(ROWS)
def test_the_range_of_the_loss_is_at_most_epsilon(pairs: list[tuple[int, int]]) -> None:
    row, other = [s for s, _ in pairs], [s + d for s, d in pairs]
    loss = losses(mechanism(len(row)), row, other)
    assert max(loss) - min(loss) <= 4 / 3 + 1e-9
    assert max(map(abs, loss)) <= 4 / 3 + 1e-9


@given(ROWS, st.sampled_from([1, -1]))
def test_scores_that_move_one_way_need_half_the_noise(pairs: list[tuple[int, int]], sign: int) -> None:
    row, other = [s for s, _ in pairs], [s + sign * abs(d) for s, d in pairs]
    loss = losses(mechanism(len(row), monotone=True), row, other)
    assert max(loss) - min(loss) <= 4 / 3 + 1e-9


def test_the_monotone_rate_would_cost_double_on_other_scores() -> None:
    loss = losses(mechanism(2, monotone=True), [0, 60], [2, 58])
    assert max(map(abs, loss)) == pytest.approx(2 * 4 / 3, rel=1e-6)


def test_costs_are_proportional_to_the_distance() -> None:
    chooser = mechanism()
    one, three = chooser.loss(Distance.linf(2)), chooser.loss(Distance.linf(6))
    assert (one.epsilon, three.epsilon) == (Fraction(4, 3), Fraction(4))
    assert (one.rho, three.rho) == (Fraction(2, 9), Fraction(2))
    assert chooser.loss(Distance.linf(Fraction(1, 3))).epsilon == Fraction(2, 9)
    assert chooser.loss(Distance.linf(2, neighbours=Neighbours.REPLACE)).neighbours is Neighbours.REPLACE
    assert mechanism(monotone=True).loss(Distance.linf(2)) == one


def test_the_examples_come_close_to_their_claims() -> None:
    for example in Exponential.examples():
        p, q = (exponential(example.mechanism, row) for row in (example.value, example.neighbour))
        worst = max(abs(math.log(p[i] / q[i])) for i in p)
        claim = float(example.mechanism.loss(example.distance).epsilon)
        assert 0.9 * claim < worst <= claim


@pytest.mark.parametrize("size", [2, 5, 1000])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.9999])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_error_is_the_least_that_covers(size: int, confidence: float, monotone: bool) -> None:
    chooser = mechanism(size, monotone=monotone)
    alpha = chooser.error(confidence)
    if alpha == 0:
        assert 1 - 1 / size <= 1 - confidence + 1e-12
        return
    law = exponential(chooser, [0.0] + [-alpha] * (size - 1))  # everybody else exactly that far below
    assert 1 - law[0] == pytest.approx(1 - confidence, rel=1e-6)
    assert 1 - law[0] <= (1 - confidence) * (1 + 1e-9)
    assert alpha <= math.log(size / (1 - confidence)) / float(chooser.rate)  # the usual bound


@given(ROWS, st.sampled_from([0.6, 0.9, 0.99]))
def test_the_error_covers_every_row(pairs: list[tuple[int, int]], confidence: float) -> None:
    row = [s for s, _ in pairs]
    chooser = mechanism(len(row))
    alpha = chooser.error(confidence)
    missed = sum(mass for i, mass in exponential(chooser, row).items() if max(row) - row[i] > alpha)
    assert missed <= 1 - confidence + 1e-12


def test_a_choice_of_one_is_no_choice() -> None:
    assert mechanism(1).error(0.999) == 0
    assert mechanism(1).sample([[5], [7]], SeededBits(1)).tolist() == [0, 0]


def test_floats_follow_the_law_of_the_fractions_they_are() -> None:
    row = [0.1, 0.7, math.nan, -math.inf, -1.3]
    chooser = Exponential(epsilon=Fraction(5, 3), sensitivity=Fraction(1, 2), candidates=5)
    drawn = chooser.sample(np.broadcast_to(row, (200_000, 5)), SeededBits(4))
    repaired = [-math.inf if math.isnan(score) else score for score in row]
    law = exponential(chooser, repaired)
    assert set(law) == {0, 1, 4}
    assert fit(drawn, law) > ALARM
    wrong = Exponential(epsilon=Fraction(11, 6), sensitivity=Fraction(1, 2), candidates=5)
    assert fit(drawn, exponential(wrong, repaired)) < ALARM


def test_data_never_raise() -> None:
    rows = list(itertools.product([math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0], repeat=3))
    chosen = mechanism(3).sample(rows, SeededBits(5))
    for row, index in zip(rows, chosen.tolist(), strict=True):
        alive = [i for i, score in enumerate(row) if not (math.isnan(score) or score == -math.inf)]
        assert index in (alive or range(3))
    huge = mechanism(2).sample([[10**40, 0], [-(10**40), 10**40]], SeededBits(6))
    assert huge.tolist() == [0, 1]


def test_a_long_row_is_one_choice() -> None:
    scores = np.zeros(100_000)
    scores[77_777] = 60
    assert mechanism(100_000).sample(scores, SeededBits(7)) == 77_777
    middle = mechanism(100_000).sample(np.broadcast_to(np.zeros(100_000, int), (30, 100_000)), SeededBits(8))
    assert len(set(middle.tolist())) == 30
    assert 20_000 < middle.mean() < 80_000


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("epsilon", 0),
        ("epsilon", 2000),
        ("sensitivity", -1),
        ("sensitivity", 2.0**-200),
        ("candidates", 0),
        ("candidates", 2.0),
        ("candidates", 1 << 21),
        ("monotone", 1),
    ],
)
def test_bad_parameters_are_refused(field: str, bad: object) -> None:
    good = {"epsilon": Fraction(1), "sensitivity": Fraction(1), "candidates": 3, "monotone": False}
    with pytest.raises(InvalidParameter, match=f"The '{field}' of Exponential"):
        Exponential(**good | {field: bad})  # type: ignore[arg-type]
