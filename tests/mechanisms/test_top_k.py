import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.distance import Distance
from sourdine.mechanisms import TopK
from sourdine.testing import SeededBits
from tests.choice_laws import top_k as law_of
from tests.errors import refusal_of
from tests.statistics import ALARM, fit


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_epsilon_and_rho_cover_every_small_pair_of_scores(k: int, monotone: bool) -> None:
    """Rényi divergences of the enumerated laws, over all changes of four scores by at most one."""
    mechanism = TopK(epsilon=Fraction(2), sensitivity=Fraction(1), candidates=4, k=k, monotone=monotone)
    loss = mechanism.loss(Distance.linf(1))
    rises = (0, 1) if monotone else (-1, 0, 1)
    worst, steepest = 0.0, 0.0
    for scores in ([3, 3, 3, 3], [0, 2, 3, 5], [9, 0, 0, 0]):
        p = law_of(mechanism, scores)
        for change in itertools.product(rises, repeat=4):
            q = law_of(mechanism, [s + c for s, c in zip(scores, change, strict=True)])
            worst = max(worst, *(abs(math.log(p[code] / q[code])) for code in p))
            for order in (1.5, 2.0, 8.0):
                for one, other in ((p, q), (q, p)):
                    moment = sum(one[code] ** order * other[code] ** (1 - order) for code in one)
                    steepest = max(steepest, math.log(moment) / (order * (order - 1)))
    assert 0.5 * float(loss.epsilon) < worst <= float(loss.epsilon) + 1e-12
    assert 0.5 * float(loss.rho) < steepest <= float(loss.rho) + 1e-12


def test_it_is_the_order_of_the_highest_scores_with_gumbel_noise() -> None:
    """The one-shot law, written as an integral: no peeling in it."""
    mechanism = TopK(epsilon=Fraction(3), sensitivity=Fraction(1), candidates=3, k=2)
    scores = np.array([1.0, 0.0, 2.0]) * float(mechanism.rate)
    grid = np.linspace(-12, 40, 4001)
    density = [np.exp(-(grid - s) - np.exp(-(grid - s))) for s in scores]
    below = [np.exp(-np.exp(-(grid - s))) for s in scores]
    step = grid[1] - grid[0]
    for first, second in itertools.permutations(range(3), 2):
        third = 3 - first - second
        inner = np.cumsum(density[second] * below[third]) * step
        chance = float((density[first] * inner).sum() * step)
        assert chance == pytest.approx(law_of(mechanism, [1, 0, 2])[first + 16 * second], abs=5e-3)


def test_the_indices_of_a_row_are_all_different_and_rows_are_on_their_own() -> None:
    mechanism = TopK(epsilon=Fraction(1), sensitivity=Fraction(1), candidates=6, k=6)
    drawn = mechanism.sample(np.zeros((50, 4, 6), np.int64), SeededBits(1))
    assert drawn.shape == (50, 4, 6)
    assert np.array_equal(np.sort(drawn, axis=-1), np.broadcast_to(np.arange(6), drawn.shape))
    assert len(np.unique(drawn.reshape(-1, 6), axis=0)) > 100


def test_scores_of_minus_infinity_come_last() -> None:
    mechanism = TopK(epsilon=Fraction(1), sensitivity=Fraction(1), candidates=4, k=3)
    drawn = mechanism.sample(np.broadcast_to([-np.inf, 1.0, np.nan, 2.0], (20_000, 4)), SeededBits(2))
    assert set(np.unique(drawn[:, :2])) == {1, 3}
    last = drawn[:, 2]
    assert fit(last, {0: 0.5, 2: 0.5}) > ALARM


def test_a_large_budget_finds_the_best_in_order() -> None:
    mechanism = TopK(epsilon=Fraction(900), sensitivity=Fraction(1), candidates=100, k=5)
    scores = np.random.default_rng(1).permutation(100) * 10
    best = np.argsort(-scores)[:5]
    assert np.array_equal(mechanism.sample(scores, SeededBits(3)), best)


def test_the_error_holds_for_all_choices_at_once() -> None:
    mechanism = TopK(epsilon=Fraction(4), sensitivity=Fraction(1), candidates=5, k=2)
    gap = mechanism.error(0.9)
    scores = [math.ceil(gap) + 1, math.ceil(gap) + 1, 0, 0, 0]
    law = law_of(mechanism, scores)
    assert sum(law.get(code, 0.0) for code in (0 + 16, 1)) >= 0.9


def test_within_keeps_to_a_rho() -> None:
    made = TopK.within(rho=Fraction(1, 100), candidates=50, k=7, sensitivity=3, monotone=True)
    rho = made.loss(Distance.linf(3)).rho
    assert Fraction(1, 100) * (1 - Fraction(1, 10**6)) < rho <= Fraction(1, 100)
    assert TopK.within(epsilon=2, candidates=50, k=7).loss(Distance.linf(1)).epsilon == 2


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"epsilon": 1, "rho": 1, "candidates": 5, "k": 2}, "epsilon"),
        ({"candidates": 5, "k": 2}, "epsilon"),
        ({"epsilon": 1, "candidates": 5, "k": 6}, "k"),
        ({"epsilon": 1, "candidates": 5, "k": 0}, "k"),
        ({"rho": 1, "candidates": 5, "k": 0}, "k"),
        ({"rho": 0, "candidates": 5, "k": 1}, "rho"),
        ({"rho": 1e-40, "candidates": 5, "k": 1}, "epsilon"),
    ],
)
def test_what_is_declared_wrongly_is_named(given: dict[str, object], named: str) -> None:
    with refusal_of(named):
        TopK.within(**given)  # type: ignore[arg-type]
