import math

import numpy as np
import pytest
from mpmath import mp

from sourdine.audit import binomial


def at_least(hits: int, trials: int, p: float) -> mp.mpf:
    """P[Binomial(trials, p) >= hits], term by term."""
    return 1 - at_most(hits - 1, trials, p)


def at_most(hits: int, trials: int, p: float) -> mp.mpf:
    x = mp.mpf(p)
    return mp.fsum(mp.binomial(trials, i) * x**i * (1 - x) ** (trials - i) for i in range(hits + 1))


@pytest.mark.parametrize("beta", [0.3, 1e-3, 1e-9])
@pytest.mark.parametrize(("hits", "trials"), [(1, 10), (4, 9), (10, 10), (40, 500_000), (7, 123)])
def test_lower_bound_solves_its_equation(hits: int, trials: int, beta: float) -> None:
    with mp.workdps(60):
        assert float(at_least(hits, trials, binomial.least(hits, trials, beta))) == pytest.approx(
            beta, rel=1e-6
        )


@pytest.mark.parametrize("beta", [0.3, 1e-3, 1e-9])
@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (4, 9), (9, 10), (0, 500_000), (40, 500_000)])
def test_upper_bound_solves_its_equation(hits: int, trials: int, beta: float) -> None:
    with mp.workdps(60):
        assert float(at_most(hits, trials, binomial.most(hits, trials, beta))) == pytest.approx(
            beta, rel=1e-6
        )


def test_nothing_is_learnt_at_the_ends() -> None:
    assert binomial.least(0, 50, 0.01) == 0
    assert binomial.most(50, 50, 0.01) == 1


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.93])
def test_both_bounds_cover(p: float) -> None:
    trials, beta = 30, 0.05
    chances = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
    too_high = sum(c for k, c in enumerate(chances) if binomial.least(k, trials, beta) > p)
    too_low = sum(c for k, c in enumerate(chances) if binomial.most(k, trials, beta) < p)
    assert too_high + too_low > 0  # the bounds are not idle
    assert max(too_high, too_low) <= beta


def test_both_bounds_of_many_counts_are_those_of_each() -> None:
    hits = np.array([0, 1, 30, 500, 9_000, 10_000])
    low, high = binomial.both(hits, 10_000, 1e-7)
    assert low == pytest.approx([binomial.least(int(k), 10_000, 1e-7) for k in hits], rel=1e-9)
    assert high == pytest.approx([binomial.most(int(k), 10_000, 1e-7) for k in hits], rel=1e-9)
