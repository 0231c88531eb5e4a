from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.audit.independence import independent
from sourdine.audit.mutants.mutant import Resampled
from sourdine.core.bits import Bits
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
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
    found = [independent(example(claimed.sample, claimed), 0, SeededBits(seed)) for seed in range(40)]
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
