"""Answers whose bits, types or layouts tell what their values do not."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import BoundedLaplace, Gaussian, Laplace
from tests.mutants.mutant import Mutant

_GRID = Fraction(1, 8)
_BELOW = 2.0**-30  # far below the grid, and within the precision of the answers
_OFF = 0.3  # on no point of the grid

Dressed = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[Any]]


def to_eighths(answers: NDArray[Any]) -> NDArray[np.int64]:
    """The nearest point of the grid: whatever lies below it is lost."""
    return np.asarray(np.rint(answers * 8), np.int64)


def mutants() -> Iterator[Mutant]:
    whole = Laplace(scale=Fraction(3))
    integers = Example(mechanism=whole, value=0, neighbour=1, distance=Distance.l1(1))
    for mechanism, distance in (
        (Laplace(scale=Fraction(1), granularity=_GRID), Distance.l1(1, coordinates=1)),
        (Gaussian(sigma=Fraction(2), granularity=_GRID), Distance.l2(1, coordinates=1)),
        (BoundedLaplace(scale=2, lower=-8, upper=8, cells=128), Distance.l1(1, coordinates=1)),
    ):
        yield _dressed(
            f"{type(mechanism).__name__}, a bit below the grid",
            "2^-30 is added to the answer for a positive value",
            Example(mechanism=mechanism, value=0.0, neighbour=1.0, distance=distance, code=to_eighths),
            lambda answers, positive: answers + _BELOW * positive,
        )
    reals = Example(
        mechanism=Laplace(scale=Fraction(1), granularity=_GRID),
        value=0.0,
        neighbour=1.0,
        distance=Distance.l1(1, coordinates=1),
        code=to_eighths,
    )
    yield _dressed(
        "Laplace, the sign of zero",
        "an answer of 0 is -0.0 for a positive value",
        reals,
        lambda answers, positive: np.where((answers == 0) & positive, -0.0, answers),
    )
    yield _dressed(
        "Laplace, another type for the neighbour",
        "answers have 32 bits for positive values, and 64 otherwise",
        integers,
        lambda answers, positive: answers.astype(np.int32) if positive.any() else answers,
    )
    yield _dressed(
        "Laplace, another order of bytes",
        "the bytes of an answer are in another order for positive values",
        integers,
        lambda answers, positive: answers.astype(">i8") if positive.any() else answers,
    )
    yield _dressed(
        "Laplace, another shape for the neighbour",
        "answers have a second axis for positive values",
        Example(
            mechanism=whole,
            value=0,
            neighbour=1,
            distance=Distance.l1(1),
            code=lambda answers: answers.ravel(),
        ),
        lambda answers, positive: answers[:, np.newaxis] if positive.any() else answers,
    )
    yield _dressed(
        "Laplace, other strides for the neighbour",
        "answers for positive values are every second item of an array",
        integers,
        lambda answers, positive: np.repeat(answers, 2)[::2] if positive.any() else answers,
    )
    yield Mutant(
        name="Laplace, the value once in 100,000",
        fault="once in 100,000 answers the value is published as it is, off the grid",
        honest=Example(
            mechanism=Laplace(scale=Fraction(1), granularity=_GRID),
            value=_OFF,
            neighbour=0.0,
            distance=Distance.l1(_OFF, coordinates=1),
            code=to_eighths,
        ),
        sampler=_bare,
    )


def _dressed(name: str, fault: str, honest: Example, dress: Dressed) -> Mutant:
    def sampler(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
        mechanism: Mechanism = honest.mechanism
        return dress(mechanism.sample(values, bits), np.asarray(values > 0))

    return Mutant(name=name, fault=fault, honest=honest, sampler=sampler)


def _bare(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    noisy = Laplace(scale=Fraction(1), granularity=_GRID).sample(values, bits)
    return np.where(exact.bernoulli(Fraction(1, 100_000), len(values), bits), values, noisy)
