"""Bounds that are missing, taken from the data, or imposed after the fact."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Geometric, Laplace
from tests.mutants.mutant import Mutant, Resampled

_SCALE = Fraction(5, 2)
_RANGED = Example(
    mechanism=Geometric(scale=_SCALE, lower=0, upper=9), value=0, neighbour=1, distance=Distance.l1(1)
)
_BOUND = 8  # the declared upper bound of a record
_SUM = Laplace(scale=Fraction(2 * _BOUND))


def _clamped_sum(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    return _SUM.sample(np.clip(values, 0, _BOUND).sum(axis=-1), bits)


_TOTAL = Example(
    mechanism=Resampled(claimed=_SUM, sampler=_clamped_sum),
    value=[1, 1, 2, 0],
    neighbour=[1, 1, 2, 8],
    distance=Distance.l1(_BOUND),
)


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="sum, records not clamped",
        fault="records beyond the declared bound of 8 enter the sum",
        honest=replace(_TOTAL, neighbour=[1, 1, 2, 40]),
        sampler=lambda values, bits: _SUM.sample(values.sum(axis=-1), bits),
    )
    yield Mutant(
        name="sum, bounds from the data",
        fault="the largest record sets the bound, and so the scale",
        honest=_TOTAL,
        sampler=lambda values, bits: (
            values.sum(axis=-1) + exact.laplace(Fraction(2 * int(values.max())), len(values), bits)
        ),
    )
    yield Mutant(
        name="Geometric, renormalised",
        fault="answers outside the range are drawn again, with the claim for clamping",
        honest=_RANGED,
        sampler=_again_until_inside,
    )
    yield Mutant(
        name="Geometric, folded back",
        fault="answers outside the range become 0, on either side",
        honest=_RANGED,
        sampler=_outside_to_zero,
    )
    yield Mutant(
        name="Geometric, range forgotten",
        fault="answers leave the declared range",
        honest=_RANGED,
        sampler=lambda values, bits: values + exact.laplace(_SCALE, len(values), bits),
    )


def _again_until_inside(values: NDArray[Any], bits: Bits) -> NDArray[np.int64]:
    out = np.full(len(values), -1, dtype=np.int64)
    while len(todo := np.flatnonzero((out < 0) | (out > 9))):
        out[todo] = values[todo] + exact.laplace(_SCALE, len(todo), bits)
    return out


def _outside_to_zero(values: NDArray[Any], bits: Bits) -> NDArray[np.int64]:
    answers = values + exact.laplace(_SCALE, len(values), bits)
    return np.where((answers < 0) | (answers > 9), 0, answers)
