import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.audit.independence import _pairs, _untied, independent
from sourdine.audit.mutants.mutant import Resampled
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.randomness.bits import Bits
from sourdine.mechanisms import Laplace, Warner
from sourdine.testing import SeededBits

LAPLACE = Laplace(scale=Fraction(3))
LAZY = Warner(truth=Fraction(19, 20))


def example(sampler: Any, claimed: Any = LAPLACE) -> Example:
    return Example(
        mechanism=Resampled(claimed=claimed, sampler=sampler), value=0, neighbour=1, distance=Distance.l1(1)
    )


@pytest.mark.parametrize("claimed", [LAPLACE, LAZY])
def test_independent_answers_are_left_alone(claimed: Any) -> None:
    found = [independent(example(claimed.sample, claimed), 0, SeededBits(seed)) for seed in range(12)]
    assert min(found) > 1e-4
    assert np.mean(np.array(found) < 0.1) < 0.3


def twice(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    half = LAZY.sample(values[: len(values) // 2], bits)
    return np.concatenate([half, half])


def shifted(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """Every answer carries half of the noise of the one before."""
    noise = LAPLACE.sample(np.zeros(len(values) + 1, np.int64), bits)
    return np.asarray(values + noise[1:] + noise[:-1] // 2)


def mirrored(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    half = LAPLACE.sample(values[: len(values) // 2], bits)
    return np.concatenate([half, half[::-1]])


def stuck(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    return LAPLACE.sample(values, SeededBits(1))


@pytest.mark.parametrize("sampler", [twice, shifted, mirrored, stuck])
def test_ties_are_seen(sampler: Any) -> None:
    assert independent(example(sampler), 0, SeededBits(1)) < 1e-9


@pytest.mark.parametrize(("pairs", "rare"), [(8192, 287), (2048, 102), (256, 128)])
def test_honest_answers_are_accused_as_seldom_as_stated(pairs: int, rare: int) -> None:
    """Every table of two groups with these margins, by its exact chance: far out chi-square is too sure."""
    ways = math.comb(pairs, rare)
    one = np.arange(pairs) < rare
    found = []
    for both in range(rare + 1):
        other = (np.arange(pairs) < both) | (np.arange(pairs) >= pairs - rare + both)
        chance = Fraction(math.comb(rare, both) * math.comb(pairs - rare, rare - both), ways)
        found.append((_untied(one.astype(np.int64), other.astype(np.int64)), chance))
    for level in (1e-2, 1e-4, 1e-7, 1e-10):
        assert sum(chance for p_value, chance in found if p_value < level) <= Fraction(level)


def test_no_answer_is_in_two_pairs_of_one_table() -> None:
    first, second = np.arange(64), np.arange(64, 128)
    tables = [np.concatenate(pair) for pair in _pairs(first, second)]
    assert all(len(np.unique(table)) == len(table) for table in tables)
    apart = {(int(a), int(b)) for pair in _pairs(first, second) for a, b in zip(*pair, strict=True)}
    assert {(i, i + lag) for lag in (1, 2, 4, 8, 16, 32) for i in range(64 - lag)} <= apart
