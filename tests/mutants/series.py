"""Series with noise for fewer periods than a unit counts in, or with rows that are drawn once too often."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import CorrelatedGaussian, CorrelatedNoise
from tests.mutants.mutant import Mutant


def mutants() -> Iterator[Mutant]:
    once, twice, _ = CorrelatedGaussian.examples()
    yield Mutant(
        name="Series, wrong separation",
        fault="a unit comes twice, and the noise is for units that come once",
        honest=twice,
        sampler=_of_one_period,
    )
    yield Mutant(
        name="Series, a row drawn twice",
        fault="a row that was lost is drawn anew without being paid for, and the reader takes the mean",
        honest=once,
        sampler=_first_row_twice,
    )
    yield Mutant(
        name="Series, rounding ignored",
        fault="entries are rounded up, and the noise is for the lengths of their real columns",
        honest=once,
        sampler=_rounded_up,
    )
    yield Mutant(
        name="Series, history read again",
        fault="a record whose date is rewritten counts in each of three periods",
        honest=once,
        sampler=_in_each_period,
    )


def _mechanism(example: Example) -> CorrelatedGaussian:
    assert isinstance(example.mechanism, CorrelatedGaussian)
    return example.mechanism


def _of_one_period(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """The noise that would do if a unit came once, at the same rho."""
    _, twice, _ = CorrelatedGaussian.examples()
    claimed = _mechanism(twice)
    alone: CorrelatedNoise = replace(claimed, times=1, separation=1)
    lengths = [each.matrix.squared_length(each.participation) for each in (alone, claimed)]
    sigma = claimed.sigma * Fraction(float(np.sqrt(lengths[0] / lengths[1]))).limit_denominator(1000)
    return replace(claimed, sigma=sigma).sample(values, bits)


def _first_row_twice(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    claimed = _mechanism(next(CorrelatedGaussian.examples()))
    rows = claimed.sample(values, bits)
    again = claimed.sample_rows(values[..., :1], bits)
    rows[..., :1] = (rows[..., :1] + again) // 2
    return rows


def _rounded_up(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """Coefficients 4, 2, 3/2 become 5, 3, 3, and nobody looks at their lengths again."""
    claimed = _mechanism(next(CorrelatedGaussian.examples()))
    entries = np.array([[5, 0, 0], [3, 5, 0], [3, 3, 5]])
    noise = exact.gaussian(claimed.sigma**2, values.size, bits).reshape(values.shape)
    return np.asarray(values @ entries.T + noise)


def _in_each_period(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    claimed = _mechanism(next(CorrelatedGaussian.examples()))
    return claimed.sample(np.repeat(values[..., :1], values.shape[-1], axis=-1), bits)
