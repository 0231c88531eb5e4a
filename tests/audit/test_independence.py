import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from sourdine.audit.independence import _equal_as_often, _pairs, _suggested, _untied, independent
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Laplace, Warner
from sourdine.testing import SeededBits
from tests.mutants.mutant import Resampled

LAPLACE = Laplace(scale=Fraction(3))
WIDE = Laplace(scale=Fraction(1 << 40))
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


def apart(lag: int) -> Any:
    def sampler(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
        noise = LAPLACE.sample(np.zeros(len(values), np.int64), bits)
        places = np.arange(len(values))
        return np.asarray(values + noise[places - lag * (places // lag % 2)])

    return sampler


def opposite(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """Noise comes again 700 answers later with the other sign."""
    noise = LAPLACE.sample(np.zeros(len(values), np.int64), bits)
    places = np.arange(len(values))
    again = places // 700 % 2 == 1
    return np.asarray(values + np.where(again, -noise[places - 700 * again], noise))


def wide_again(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """One answer in 200 carries the noise of any other: no lag has many of them."""
    noise = WIDE.sample(np.zeros(len(values), np.int64), bits)
    others = (bits.words(len(values)) % np.uint64(len(values))).astype(np.int64)
    return np.asarray(values + np.where(np.arange(len(values)) % 200 == 7, noise[others], noise))


@pytest.mark.parametrize(
    "sampler",
    [
        *(twice, shifted, mirrored, stuck, opposite, wide_again),
        *(pytest.param(apart(lag), id=f"lag {lag}") for lag in (3, 700, 5461, 12_345)),
    ],
)
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


def test_calls_that_overlap_are_seen_at_any_shift() -> None:
    """The second call begins with noise from the middle of the first."""
    noise = np.random.default_rng(1).integers(0, 8, 2 * 16_384)
    for shift in (-3000, -1, 17, 5000):
        first, second = noise[8000:][:16_384], noise[8000 + shift :][:16_384]
        assert min(_untied(one, other) for one, other in _suggested(first, second)) < 1e-30


def test_suggested_pairs_are_no_more_often_tied_than_stated() -> None:
    """What suggests a lag is independent of what is looked at there: p-values as of any other table."""
    random, found = np.random.default_rng(2), []
    for _ in range(25):
        first, second = random.integers(0, 8, (2, 16_384))
        for one, other in _suggested(first, second):
            assert len(one) == len(other) >= 50
            found.append(_untied(one, other))
    assert len(found) >= 100
    for level in (0.3, 0.05):
        assert np.mean(np.array(found) < level) <= binom.isf(1e-6, len(found), level) / len(found)


@pytest.mark.parametrize("values", [5, 1000, 10**6])
def test_equal_answers_are_in_one_call_as_often_as_in_two(values: int) -> None:
    random = np.random.default_rng(3)
    found = np.array([_equal_as_often(*random.integers(0, values, (2, 2000))) for _ in range(400)])
    for level in (0.5, 0.1, 0.02):
        assert np.sum(found < level) <= binom.isf(1e-6, len(found), level)
    if values < 10**6:
        assert np.mean(found < 0.5) > 0.3  # and the test wastes little


def test_equal_answers_are_counted_by_hand() -> None:
    """Two pairs in a call and one across: P[Binomial(3, 1/2) >= 2] = 1/2. Equal places do not count."""
    one = np.array([1, 1, 2, 3, 4, 5, 9, 30])
    other = np.array([10, 11, 12, 13, 4, 2, 6, 6])
    assert _equal_as_often(one, other) == pytest.approx(0.5)
    assert _equal_as_often(np.arange(8), np.arange(8)) == 1.0
