import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import Exponential, PermuteAndFlip
from sourdine.testing import SeededBits
from tests.choice_laws import exponential, permute_and_flip
from tests.statistics import ALARM, fit

ROWS = st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 2)), min_size=2, max_size=5)


def mechanism(size: int = 4, *, monotone: bool = False) -> PermuteAndFlip:
    return PermuteAndFlip(epsilon=Fraction(4, 3), sensitivity=Fraction(2), candidates=size, monotone=monotone)


def losses(chooser: PermuteAndFlip, row: list[int], other: list[int]) -> list[float]:
    p, q = permute_and_flip(chooser, row), permute_and_flip(chooser, other)
    return [math.log(p[i] / q[i]) for i in p]


def test_three_ways_to_the_same_law() -> None:
    """The first head of a random order, a uniform one of the heads, the largest with exponential noise."""
    row = [3, 0, 5, 4]
    chooser = mechanism(4)
    rate = float(chooser.rate)
    heads = [math.exp(rate * (score - max(row))) for score in row]
    uniform = [0.0] * 4
    for shown in itertools.product((0, 1), repeat=4):
        chance = math.prod(p if up else 1 - p for p, up in zip(heads, shown, strict=True))
        for i, up in enumerate(shown):
            uniform[i] += up * chance / max(1, sum(shown))

    def wins(i: int) -> float:
        others = [score for j, score in enumerate(row) if j != i]
        start = max(0.0, max(others) - row[i])

        def density(z: float) -> float:
            below = math.prod(-math.expm1(-rate * (row[i] + z - score)) for score in others)
            return rate * math.exp(-rate * z) * below

        return float(quad(density, start, start + 60 / rate, epsabs=1e-12)[0])

    law = permute_and_flip(chooser, row)
    for i in range(4):
        assert law[i] == pytest.approx(uniform[i], rel=1e-12)
        assert law[i] == pytest.approx(wins(i), rel=1e-8)


@given(ROWS)
def test_no_change_of_scores_costs_more_than_epsilon(pairs: list[tuple[int, int]]) -> None:
    row, other = [s for s, _ in pairs], [s + d for s, d in pairs]
    assert max(map(abs, losses(mechanism(len(row)), row, other))) <= 4 / 3 + 1e-9


@given(ROWS, st.sampled_from([1, -1]))
def test_scores_that_move_one_way_need_half_the_noise(pairs: list[tuple[int, int]], sign: int) -> None:
    row, other = [s for s, _ in pairs], [s + sign * abs(d) for s, d in pairs]
    assert max(map(abs, losses(mechanism(len(row), monotone=True), row, other))) <= 4 / 3 + 1e-9


def test_its_range_is_wider_than_epsilon() -> None:
    """So that the bound on rho of the exponential mechanism must not be used."""
    loss = losses(mechanism(2), [4, 2], [2, 4])
    assert max(loss) - min(loss) > 1.5 * 4 / 3
    assert mechanism().loss(Distance.linf(2)).rho == Fraction(8, 9)
    assert mechanism().loss(Distance.linf(1)).epsilon == Fraction(2, 3)


def test_the_examples_come_close_to_their_claims() -> None:
    for example in PermuteAndFlip.examples():
        p, q = (permute_and_flip(example.mechanism, row) for row in (example.value, example.neighbour))
        worst = max(abs(math.log(p[i] / q[i])) for i in p)
        claim = float(example.mechanism.loss(example.distance).epsilon)
        assert 0.9 * claim < worst <= claim


def missed(size: int, alpha: float, rate: float) -> float:
    """P[gap >= alpha] when all others lie exactly alpha below one best: 1 - (1 - (1-p)^m)/(m p)."""
    p = math.exp(-rate * alpha)
    heads = np.arange(size)
    chances = np.array([math.comb(size - 1, h) for h in heads]) * p**heads * (1 - p) ** (size - 1 - heads)
    return float(np.sum(chances * heads / (1 + heads)))


@pytest.mark.parametrize("size", [2, 5, 40])
@pytest.mark.parametrize("confidence", [0.1, 0.6, 0.95, 0.9999])
def test_the_error_covers_the_worst_row(size: int, confidence: float) -> None:
    chooser = mechanism(size)
    alpha = chooser.error(confidence)
    beyond = math.nextafter(alpha, math.inf)
    assert missed(size, beyond, float(chooser.rate)) <= (1 - confidence) * (1 + 1e-9)
    if confidence > 0.9:
        assert missed(size, alpha - 0.2, float(chooser.rate)) > 1 - confidence  # little to spare
    other = Exponential(epsilon=chooser.epsilon, sensitivity=chooser.sensitivity, candidates=size)
    assert alpha <= other.error(confidence)


@given(ROWS, st.sampled_from([0.6, 0.9, 0.99]))
def test_the_error_covers_every_row(pairs: list[tuple[int, int]], confidence: float) -> None:
    row = [s for s, _ in pairs]
    chooser = mechanism(len(row))
    alpha = chooser.error(confidence)
    law = permute_and_flip(chooser, row)
    assert sum(law[i] for i, score in enumerate(row) if max(row) - score > alpha) <= 1 - confidence + 1e-12


@given(ROWS)
def test_it_is_never_further_from_the_best_than_the_exponential_mechanism(
    pairs: list[tuple[int, int]],
) -> None:
    row = [s for s, _ in pairs]
    chooser = mechanism(len(row))
    flipped, weighed = permute_and_flip(chooser, row), exponential(chooser, row)
    for gap in range(19):
        far = [i for i, score in enumerate(row) if max(row) - score >= gap]
        assert sum(flipped[i] for i in far) <= sum(weighed[i] for i in far) + 1e-12


def test_floats_follow_the_law_of_the_fractions_they_are() -> None:
    row = [0.1, 0.7, math.nan, -math.inf, -1.3]
    chooser = PermuteAndFlip(epsilon=Fraction(5, 3), sensitivity=Fraction(1, 2), candidates=5)
    drawn = chooser.sample(np.broadcast_to(row, (200_000, 5)), SeededBits(4))
    repaired = [-math.inf if math.isnan(score) else score for score in row]
    assert set(drawn.tolist()) == {0, 1, 4}
    assert fit(drawn, permute_and_flip(chooser, repaired)) > ALARM
    assert fit(drawn, exponential(chooser, repaired)) < ALARM


def test_data_never_raise() -> None:
    rows = list(itertools.product([math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0], repeat=3))
    chosen = mechanism(3).sample(rows, SeededBits(5))
    for row, index in zip(rows, chosen.tolist(), strict=True):
        alive = [i for i, score in enumerate(row) if not (math.isnan(score) or score == -math.inf)]
        assert index in (alive or range(3))


@pytest.mark.parametrize(("field", "bad"), [("epsilon", -1), ("sensitivity", math.nan), ("candidates", 0)])
def test_bad_parameters_are_refused(field: str, bad: object) -> None:
    good = {"epsilon": Fraction(1), "sensitivity": Fraction(1), "candidates": 3}
    with pytest.raises(InvalidParameter, match=f"The '{field}' of PermuteAndFlip"):
        PermuteAndFlip(**good | {field: bad})  # type: ignore[arg-type]
