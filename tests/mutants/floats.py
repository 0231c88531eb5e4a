"""Faults that come with floating-point numbers."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Gaussian, Laplace
from tests.mutants.mutant import Mutant

_GRID = Fraction(1, 1 << 20)
_HUGE = 1 << 60
_REAL = Laplace(scale=Fraction(1), granularity=_GRID)
_WHOLE = Example(mechanism=Laplace(scale=Fraction(3, 2)), value=0, neighbour=1, distance=Distance.l1(1))


def finest_bit(answers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The exponent of the lowest bit set in each float: -53 for an odd multiple of 2^-53."""
    mantissas, exponents = np.frexp(answers)
    whole = np.abs(mantissas * 2.0**53).astype(np.int64)
    lowest = np.where(whole == 0, 1 << 52, whole & -whole)
    return np.frexp(lowest.astype(np.float64))[1].astype(np.int64) - 1 + exponents - 53


def float_laplace(scale: float, count: int, bits: Bits) -> NDArray[np.float64]:
    """The textbook inverse of the distribution function, in floats."""
    uniform = (bits.words(count) >> np.uint64(11)) * 2.0**-53 - 0.5
    magnitude = np.maximum(1 - 2 * np.abs(uniform), 2.0**-60)
    noise: NDArray[np.float64] = -scale * np.sign(uniform) * np.log(magnitude)
    return noise


def float_gaussian(sigma: float, count: int, bits: Bits) -> NDArray[np.float64]:
    """Box and Muller, in floats."""
    uniform = ((bits.words(2 * count) >> np.uint64(11)) * 2.0**-53).reshape(2, count)
    noise: NDArray[np.float64] = np.sqrt(-2 * np.log(1 - uniform[0])) * np.cos(2 * np.pi * uniform[1])
    return sigma * noise


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="Laplace, porous floats",
        fault="the lowest bits of a float answer tell which value it came from",
        honest=Example(
            mechanism=_REAL,
            value=0.0,
            neighbour=1.0,
            distance=Distance.l1(1, coordinates=1),
            code=finest_bit,
        ),
        sampler=lambda values, bits: values + float_laplace(1.0, len(values), bits),
    )
    yield Mutant(
        name="Gaussian, porous floats",
        fault="the lowest bits of a float answer tell which value it came from",
        honest=Example(
            mechanism=Gaussian(sigma=Fraction(2), granularity=_GRID),
            value=0.0,
            neighbour=1.0,
            distance=Distance.l2(1, coordinates=1),
            code=finest_bit,
        ),
        sampler=lambda values, bits: values + float_gaussian(2.0, len(values), bits),
    )
    yield Mutant(
        name="Laplace, value off the grid",
        fault="noise on the grid is added to a value that is not on it",
        honest=Example(
            mechanism=Laplace(scale=Fraction(1), granularity=Fraction(1, 8)),
            value=0.0,
            neighbour=0.3,
            distance=Distance.l1(0.3, coordinates=1),
            code=lambda answers: np.rint(answers * 2.0**20).astype(np.int64),
        ),
        sampler=lambda values, bits: values + exact.laplace(Fraction(8), len(values), bits) / 8,
    )
    yield Mutant(
        name="Laplace, float noise rounded",
        fault="continuous noise is rounded to integers, which is another law",
        honest=_WHOLE,
        sampler=lambda values, bits: values + np.rint(float_laplace(1.5, len(values), bits)).astype(np.int64),
    )
    yield Mutant(
        name="Laplace, float noise cut",
        fault="continuous noise is cut towards 0, so that 0 comes twice as often",
        honest=_WHOLE,
        sampler=lambda values, bits: values + float_laplace(1.5, len(values), bits).astype(np.int64),
    )
    yield Mutant(
        name="Laplace, huge integers",
        fault="float64 moves 2^60 + 129 to 2^60 + 256 before the noise",
        honest=Example(
            mechanism=Laplace(scale=Fraction(129)),
            value=_HUGE,
            neighbour=_HUGE + 129,
            distance=Distance.l1(129, coordinates=1),
            code=lambda answers: answers.astype(np.int64) - _HUGE,
        ),
        sampler=lambda values, bits: (
            values.astype(np.float64) + exact.laplace(Fraction(129), len(values), bits)
        ),
    )
    yield Mutant(
        name="Laplace, NaN passed on",
        fault="one record that is not a number makes the answer not a number",
        honest=Example(
            mechanism=_REAL,
            value=0.0,
            neighbour=np.nan,
            distance=Distance.l1(1, coordinates=1),
            code=lambda answers: np.isnan(answers).astype(np.int64),
        ),
        sampler=lambda values, bits: values + exact.laplace(1 / _GRID, len(values), bits) * float(_GRID),
    )
