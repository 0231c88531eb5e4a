"""Staircases and bounded answers with the wrong steps, or without the price of renormalising."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import BoundedLaplace, BoundedStaircase, Staircase, TruncatedGeometric
from tests.mutants.mutant import Mutant

_STAIRS = Staircase(epsilon=Fraction(1), inner=2, sensitivity=Fraction(5))
_CLIMB = Example(mechanism=_STAIRS, value=0, neighbour=5, distance=Distance.l1(5, coordinates=1))
_TRUNCATED = TruncatedGeometric(scale=Fraction(5, 2), lower=0, upper=9)
_BOUNDED = BoundedLaplace.calibrated(epsilon=1, lower=0, upper=10, cells=100, sensitivity=Fraction(1))
_STEPS = BoundedStaircase.calibrated(epsilon=1, lower=0, upper=1, cells=100)


def _cells(answers: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(answers * 100).astype(np.int64)


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="Staircase, steep",
        fault="the steps fall by e^{-2 epsilon}",
        honest=_CLIMB,
        sampler=replace(_STAIRS, epsilon=Fraction(2)).sample,
    )
    yield Mutant(
        name="Staircase, short steps",
        fault="the steps are shorter than the change that was declared",
        honest=_CLIMB,
        sampler=replace(_STAIRS, sensitivity=Fraction(3)).sample,
    )
    yield Mutant(
        name="Staircase, zero twice",
        fault="a sign times whole steps: no shorter first step, and 0 from both signs",
        honest=_CLIMB,
        sampler=_signed_steps,
    )
    yield Mutant(
        name="bounded Laplace, no surcharge",
        fault="the scale is sensitivity/epsilon, as if renormalising were free",
        honest=Example(
            mechanism=_BOUNDED,
            value=0.0,
            neighbour=1.0,
            distance=Distance.l1(1, coordinates=1),
            code=_cells,
        ),
        sampler=replace(_BOUNDED, scale=Fraction(1)).sample,
    )
    yield Mutant(
        name="bounded staircase, by rejection",
        fault="answers outside are drawn again at the nominal epsilon, which costs a third more",
        honest=Example(
            mechanism=_STEPS,
            value=0.0,
            neighbour=0.5,
            distance=Distance.l1(1, coordinates=1),
            code=_cells,
        ),
        sampler=replace(_STEPS, drop=Fraction(1)).sample,
    )
    yield Mutant(
        name="truncated geometric, clamped",
        fault="answers outside pile up at the ends instead of being renormalised",
        honest=Example(mechanism=_TRUNCATED, value=0, neighbour=1, distance=Distance.l1(1)),
        sampler=lambda values, bits: np.clip(
            values + exact.laplace(_TRUNCATED.scale, len(values), bits), 0, 9
        ),
    )


def _signed_steps(values: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """A geometric number of whole steps of 5, a place on the step and a sign."""
    size = 5 * exact.geometric(Fraction(1), len(values), bits) + exact.uniform(5, len(values), bits)
    return values + np.where(exact.uniform(2, len(values), bits) > 0, size, -size)
