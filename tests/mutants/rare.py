"""Faults that show once in thousands of answers."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Exponential, Gaussian, KaryResponse, Laplace, PartitionThreshold
from sourdine.mechanisms.sparse_vector import bits_to_integer
from tests.mutants.mutant import Mutant

_ONCE = Fraction(1, 5000)
_GRID = Fraction(1, 8)
_OFF = 0.3  # on no grid of eighths, so that no honest answer is like it


def mutants() -> Iterator[Mutant]:
    fine = lambda answers: np.rint(answers * 2.0**20).astype(np.int64)
    for mechanism, distance in (
        (Laplace(scale=Fraction(1), granularity=_GRID), Distance.l1(_OFF, coordinates=1)),
        (Gaussian(sigma=Fraction(1), granularity=_GRID), Distance.l2(_OFF, coordinates=1)),
    ):
        yield Mutant(
            name=f"{type(mechanism).__name__}, the value once in 5,000",
            fault="once in 5,000 answers the value is published as it is",
            honest=Example(mechanism=mechanism, value=_OFF, neighbour=0.0, distance=distance, code=fine),
            sampler=partial(_bare, mechanism, _ONCE),
        )
    choice = Exponential(epsilon=Fraction(1), sensitivity=Fraction(1), candidates=3)
    yield Mutant(
        name="Exponential, a bad one once in 5,000",
        fault="once in 5,000 choices the worst is taken, which its score makes all but impossible",
        honest=Example(mechanism=choice, value=[0, 60, 60], neighbour=[1, 60, 59], distance=Distance.linf(1)),
        sampler=lambda values, bits: np.where(
            exact.bernoulli(_ONCE, len(values), bits), values.argmin(axis=-1), choice.sample(values, bits)
        ),
    )
    many = KaryResponse(epsilon=Fraction(1), categories=1 << 16)
    yield Mutant(
        name="k-ary, the truth once in 5,000",
        fault="once in 5,000 reports no coin is thrown, and there are 65,536 categories",
        honest=Example(mechanism=many, value=7, neighbour=9, distance=Distance.hamming()),
        sampler=partial(_bare, many, _ONCE),
    )
    keys = PartitionThreshold.within(epsilon=1, delta=Fraction(1, 10**5))
    yield Mutant(
        name="keys, a lone one once in 5,000",
        fault="once in 5,000 a key is shown that one unit holds, where delta allows 1 in 100,000",
        honest=Example(
            mechanism=keys, value=[1], neighbour=[0], distance=Distance.linf(1), code=bits_to_integer
        ),
        sampler=lambda values, bits: (
            keys.sample(values, bits)
            | ((values > 0) & exact.bernoulli(_ONCE, values.size, bits).reshape(values.shape))
        ),
    )
    tail = Laplace(scale=Fraction(2))
    yield Mutant(
        name="Laplace, far away once in 5,000",
        fault="once in 5,000 answers the noise of a positive value gets 1,000 more",
        honest=Example(mechanism=tail, value=1, neighbour=0, distance=Distance.l1(1)),
        sampler=lambda values, bits: (
            tail.sample(values, bits) + 1000 * ((values > 0) & exact.bernoulli(_ONCE, len(values), bits))
        ),
    )
    yield from _flagged()


def _flagged() -> Iterator[Mutant]:
    """A generator that fails now and then, and leaves out the noise."""
    for scale in (20, 500):
        wide = Laplace(scale=Fraction(scale))
        yield Mutant(
            name=f"Laplace of scale {scale}, none once in 500",
            fault="once in 500 answers there is no noise",
            honest=Example(
                mechanism=wide, value=0, neighbour=scale, distance=Distance.l1(scale, coordinates=1)
            ),
            sampler=partial(_bare, wide, Fraction(1, 500)),
        )


def _bare(mechanism: Mechanism, often: Fraction, values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """The value itself, so often."""
    return np.where(exact.bernoulli(often, len(values), bits), values, mechanism.sample(values, bits))
