"""Bounds that hold at every look: by closed forms, and over honest streams looked at after each report."""

import math
from itertools import accumulate, product

import numpy as np
import pytest
from scipy.stats import binom

from sourdine.local.poisoning.ever import chance_of_fewer, chance_of_more, chance_of_sum

SHARES = [0.003, 0.1, 0.5, 0.9]


@pytest.mark.parametrize("share", SHARES)
def test_ever_is_no_rarer_than_now(share: float) -> None:
    for n in (1, 7, 100, 3000):
        for hits in {0, n // 100, n // 10, n // 2, n - 1, n}:
            assert chance_of_more(hits, n, share) >= min(1.0, float(binom.sf(hits - 1, n, share)))
            assert chance_of_fewer(hits, n, share) >= min(1.0, float(binom.cdf(hits, n, share)))


@pytest.mark.parametrize("share", SHARES)
def test_little_is_lost_beside_the_best_bound_for_one_look(share: float) -> None:
    """The best exponent is n KL(hits/n, share): 64 rates cost log 64, and one near the best some per cent."""
    n = 1000
    for factor in (0.5, 0.9, 1.1, 1.5):
        hits = round(n * min(share * factor, (1 + share) / 2))
        part = hits / n
        best = n * (part * math.log(part / share) + (1 - part) * math.log((1 - part) / (1 - share)))
        found = chance_of_more(hits, n, share) if part > share else chance_of_fewer(hits, n, share)
        assert -math.log(found) >= min(0.95 * best - math.log(64) - 0.1, 700)


def test_the_chance_of_ever_by_enumeration() -> None:
    """All streams of 10 reports: those that ever come below c have a probability of at most c."""
    share, length = 0.3, 10
    known = {(n, hits): chance_of_more(hits, n, share) for n in range(1, length + 1) for hits in range(n + 1)}
    below = {0.5: 0.0, 0.2: 0.0, 0.05: 0.0}
    for stream in product((0, 1), repeat=length):
        weight = math.prod(share if each else 1 - share for each in stream)
        least = min(known[n, hits] for n, hits in enumerate(accumulate(stream), 1))
        for level in below:
            below[level] += weight * (least <= level)
    assert all(0 < found <= level for level, found in below.items())


def test_many_looks_at_honest_streams_raise_few_alarms_where_a_test_for_one_look_does() -> None:
    """300 streams, each looked at after all of 200 reports, at a level of 0.1."""
    dice, share, n = np.random.default_rng(1), 0.2, 200
    hits, sizes = np.cumsum(dice.random((300, n)) < share, axis=1), np.arange(1, n + 1)
    assert np.any(binom.sf(hits - 1, sizes, share) <= 0.1, axis=1).mean() > 0.3
    for ever in (chance_of_fewer, chance_of_more):
        known = np.ones((n + 1, n + 1))
        for size, some in {(k, int(row[k - 1])) for row in hits for k in range(1, n + 1)}:
            known[size, some] = ever(some, size, share)
        assert np.any(known[sizes, hits] <= 0.1, axis=1).mean() <= 0.1


def test_sums_of_bounded_numbers() -> None:
    """Honest sums within their level at every look; those that drift are found."""
    dice, n = np.random.default_rng(2), 2000
    looks = np.unique(np.geomspace(1, n, 40).astype(int))

    def least(drift: float) -> float:
        total = np.cumsum(dice.integers(0, 5, n) - 2 + drift)
        return min(chance_of_sum(float(total[k - 1]), -float(total[k - 1]), int(k), 2.0, 2.0) for k in looks)

    assert np.mean([least(0.0) <= 0.2 for _ in range(200)]) <= 0.2
    assert all(least(0.4) < 1e-6 for _ in range(5))
    assert all(least(-0.4) < 1e-6 for _ in range(5))
