"""Noise that is known, shared or left out."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.audit.mutants.mutant import Mutant
from sourdine.core import exact
from sourdine.core.bits import Bits
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.mechanisms import Gaussian, Laplace

_SCALE = Fraction(3)
_ONE = Example(mechanism=Laplace(scale=_SCALE), value=0, neighbour=1, distance=Distance.l1(1))


class _Stuck:
    """A generator that starts from the same seed at every call."""

    secure = False

    def words(self, count: int, /) -> NDArray[np.uint64]:
        return np.full(count, 0x9E3779B97F4A7C15, dtype=np.uint64)


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="Laplace, fixed seed",
        fault="every call draws the same noise",
        honest=_ONE,
        sampler=lambda values, bits: values + exact.laplace(_SCALE, len(values), _Stuck()),
    )
    yield Mutant(
        name="Laplace, noise shared",
        fault="two answers carry the same noise, and their difference carries none",
        honest=Example(
            mechanism=Laplace(scale=_SCALE),
            value=[0, 0],
            neighbour=[1, 0],
            distance=Distance.l1(1),
            code=lambda answers: answers[:, 0] - answers[:, 1],
        ),
        sampler=lambda values, bits: values + exact.laplace(_SCALE, len(values), bits)[:, np.newaxis],
    )
    yield Mutant(
        name="Gaussian, averaged",
        fault="four answers to the same question are given for the price of one",
        honest=Example(
            mechanism=Gaussian(sigma=Fraction(2)),
            value=0,
            neighbour=2,
            distance=Distance.l2(2, coordinates=1),
        ),
        sampler=_average_of_four,
    )
    yield Mutant(
        name="Laplace, zeros without noise",
        fault="a count of 0 is published as it is",
        honest=_ONE,
        sampler=lambda values, bits: np.where(
            values == 0, 0, values + exact.laplace(_SCALE, len(values), bits)
        ),
    )
    yield Mutant(
        name="Laplace, small counts hidden",
        fault="cells are hidden by their true count, below 5",
        honest=Example(mechanism=Laplace(scale=_SCALE), value=4, neighbour=5, distance=Distance.l1(1)),
        sampler=lambda values, bits: np.where(
            values < 5, 0, values + exact.laplace(_SCALE, len(values), bits)
        ),
    )


def _average_of_four(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    noise = exact.gaussian(Fraction(4), 4 * len(values), bits).reshape(4, -1).sum(axis=0)
    return np.asarray(values + np.rint(noise / 4).astype(np.int64))
