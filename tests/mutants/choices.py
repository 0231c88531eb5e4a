"""Wrong choices among scored candidates."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Exponential, PermuteAndFlip
from tests.mutants.mutant import Mutant

_EPSILON = Fraction(1)
_EXPONENTIAL = Exponential(epsilon=_EPSILON, sensitivity=Fraction(1), candidates=4)
_FLIP = PermuteAndFlip(epsilon=_EPSILON, sensitivity=Fraction(1), candidates=3)
_BOTH_WAYS = Example(
    mechanism=_EXPONENTIAL, value=[4, 5, 5, 5], neighbour=[5, 4, 4, 4], distance=Distance.linf(1)
)


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="Exponential, 2 forgotten",
        fault="scores that move both ways get the weights for one way",
        honest=_BOTH_WAYS,
        sampler=replace(_EXPONENTIAL, monotone=True).sample,
    )
    yield Mutant(
        name="Exponential, 5 % too sharp",
        fault="the weights are those of an epsilon 5 % larger",
        honest=_BOTH_WAYS,
        sampler=replace(_EXPONENTIAL, epsilon=_EPSILON * 21 / 20).sample,
    )
    yield Mutant(
        name="Exponential, half sensitivity",
        fault="scores may change by twice the sensitivity that was declared",
        honest=_BOTH_WAYS,
        sampler=replace(_EXPONENTIAL, sensitivity=Fraction(1, 2)).sample,
    )
    yield Mutant(
        name="Exponential, scores scaled by data",
        fault="scores are stretched to [0, 5] by the best of them: the data set the scale",
        honest=replace(_BOTH_WAYS, value=[0, 1, 1, 1], neighbour=[1, 0, 0, 0]),
        sampler=_scaled,
    )
    yield Mutant(
        name="Exponential, best always",
        fault="ties apart, the best candidate is given without noise",
        honest=_BOTH_WAYS,
        sampler=lambda values, bits: values.argmax(axis=-1),
    )
    yield Mutant(
        name="permute-and-flip, not permuted",
        fault="candidates are visited in a fixed order",
        honest=Example(mechanism=_FLIP, value=[5, 5, 4], neighbour=[4, 5, 5], distance=Distance.linf(1)),
        sampler=_in_order,
    )


def _scaled(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    return _EXPONENTIAL.sample(5 * values / values.max(axis=-1, keepdims=True), bits)


def _in_order(values: NDArray[Any], bits: Bits) -> NDArray[np.int64]:
    uniform = ((bits.words(values.size) >> np.uint64(11)) * 2.0**-53).reshape(values.shape)
    heads = uniform < np.exp((values - values.max(axis=-1, keepdims=True)) * float(_FLIP.rate))
    return np.asarray(heads.argmax(axis=-1))
