"""The right noise for the wrong distance between neighbours."""

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

_UNIT_LAPLACE = Laplace(scale=Fraction(2))
_SIXTEEN = Example(
    mechanism=Laplace(scale=Fraction(16)),
    value=[0] * 16,
    neighbour=[1] * 16,
    distance=Distance.l1(16, coordinates=16),
    code=lambda answers: answers.sum(axis=-1),
)


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="Laplace, each record twice",
        fault="a join counts every record twice",
        honest=Example(mechanism=_UNIT_LAPLACE, value=0, neighbour=1, distance=Distance.l1(1)),
        sampler=lambda values, bits: 2 * values + exact.laplace(Fraction(2), len(values), bits),
    )
    yield Mutant(
        name="Laplace, contributions unlimited",
        fault="one person may be in three cells, and the claim is for one",
        honest=Example(
            mechanism=_UNIT_LAPLACE,
            value=[0, 0, 0],
            neighbour=[1, 0, 0],
            distance=Distance.l1(1),
            code=lambda answers: answers.sum(axis=-1),
        ),
        sampler=_spread,
    )
    yield Mutant(
        name="Laplace, L2 distance",
        fault="the Euclidean length of the change, 4 instead of 16, sets the scale",
        honest=_SIXTEEN,
        sampler=lambda values, bits: (
            values + exact.laplace(Fraction(4), values.size, bits).reshape(values.shape)
        ),
    )
    yield Mutant(
        name="Gaussian, length for square",
        fault="a change of 4 in L1 is taken for the square of its length",
        honest=Example(
            mechanism=Gaussian(sigma=Fraction(4)),
            value=0,
            neighbour=4,
            distance=Distance.l2(4, coordinates=1),
        ),
        sampler=lambda values, bits: values + exact.gaussian(Fraction(4), len(values), bits),
    )


def _spread(values: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """The one person of the first cell is counted in all three."""
    noise = exact.laplace(Fraction(2), values.size, bits).reshape(values.shape)
    return values[:, :1] + noise
