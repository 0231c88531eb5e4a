"""Estimates from reports of bits: their spread and their intervals, on many collections."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.mechanism import Mechanism
from sourdine.local.frequency.supports import BitwiseOracle
from sourdine.testing import SeededBits
from tests import contract

KINDS = contract.oracles(BitwiseOracle)
PEOPLE = 4096


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [16, 1000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_variance_and_coverage_are_as_stated(
    kind: Callable[..., BitwiseOracle], k: int, epsilon: Fraction
) -> None:
    """64,000 estimates: 3 % is 5.4 standard deviations of their mean square, 0.5 % is 5 of the coverage."""
    oracle = kind(epsilon=epsilon, categories=k)
    truth = np.minimum(k / (1 + np.arange(PEOPLE) / PEOPLE * (k - 1)), k).astype(np.int64) - 1
    f = np.bincount(truth, minlength=k) / PEOPLE
    bits = SeededBits(k)
    ratios, covered = [], []
    for _ in range(4000 // k):
        for rows in oracle.sample(np.broadcast_to(truth, (16, PEOPLE)), bits):
            found = oracle.estimate(oracle.tally(rows))
            ratios.append((found.value - f) ** 2 / oracle.variance(f, PEOPLE))
            covered.append((found.lower <= f) & (f <= found.upper))
    assert np.mean(ratios) == pytest.approx(1, abs=0.03)
    held = np.array(covered)
    assert 0.945 < np.mean(held[:, f > 0]) < 0.965
    assert f.min() > 0 or np.mean(held[:, f == 0]) > 0.97  # no interval lies below a share that nobody has


@pytest.mark.parametrize("kind", KINDS)
def test_counts_of_parts_add_up_and_survive_json(kind: Callable[..., BitwiseOracle]) -> None:
    oracle = kind(epsilon=Fraction(1), categories=13)
    assert Mechanism.from_json(oracle.to_json()) == oracle
    rows = oracle.sample(np.arange(1000) % 13, SeededBits(1))
    parts = oracle.tally(rows[:300]) + oracle.tally(rows[300:])
    assert np.array_equal(parts.sums, oracle.tally(rows).sums)
    assert np.array_equal(parts.sums, np.unpackbits(rows, axis=1)[:, :13].sum(axis=0))
    found = oracle.estimate(parts)
    assert np.abs(found.value - 1 / 13).max() < 6 * float(np.sqrt(oracle.variance(1 / 13, 1000)))
