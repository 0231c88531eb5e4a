"""Randomized responses that lie too little, or in the wrong way."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits, coins
from sourdine.mechanisms import KaryResponse, OneCoin, TwoCoins, Warner
from tests.mutants.mutant import Mutant

_EPSILON = Fraction(1)
_CATEGORIES = 4
_KARY = Example(
    mechanism=KaryResponse(epsilon=_EPSILON, categories=_CATEGORIES),
    value=3,
    neighbour=0,
    distance=Distance.hamming(),
)
_WARNER = Example(mechanism=Warner(truth=Fraction(3, 4)), value=1, neighbour=0, distance=Distance.hamming())


def mutants() -> Iterator[Mutant]:
    yield Mutant(
        name="two coins, only one",
        fault="tails always says yes, so that a no betrays itself",
        honest=Example(mechanism=TwoCoins(), value=0, neighbour=1, distance=Distance.hamming()),
        sampler=OneCoin().sample,
    )
    yield Mutant(
        name="Warner, too much truth",
        fault="7 answers in 8 are true, and the claim is for 3 in 4",
        honest=_WARNER,
        sampler=Warner(truth=Fraction(7, 8)).sample,
    )
    yield Mutant(
        name="Warner, a yes never turned",
        fault="bits that are set are reported as they are",
        honest=_WARNER,
        sampler=lambda values, bits: (values > 0) | exact.bernoulli(Fraction(1, 4), len(values), bits),
    )
    yield Mutant(
        name="Warner, a yes hardly turned",
        fault="a yes is turned half as often as a no",
        honest=_WARNER,
        sampler=_gentle,
    )
    yield Mutant(
        name="k-ary, odds of two categories",
        fault="the truth is kept as if there were one lie to choose from",
        honest=_KARY,
        sampler=lambda values, bits: _respond(values, Fraction(1), _lie(values, bits), bits),
    )
    yield Mutant(
        name="k-ary, lies that are true",
        fault="the lie is drawn among all categories, the true one too",
        honest=_KARY,
        sampler=lambda values, bits: _respond(
            values, Fraction(1, 3), exact.uniform(_CATEGORIES, len(values), bits), bits
        ),
    )
    yield Mutant(
        name="k-ary, lie by modulo",
        fault="three bits modulo three choose the lie, which favours two of three",
        honest=_KARY,
        sampler=lambda values, bits: _respond(
            values, Fraction(1, 3), (values + 1 + exact.uniform(8, len(values), bits) % 3) % 4, bits
        ),
    )
    yield Mutant(
        name="k-ary, one lie",
        fault="the lie is always the next category",
        honest=_KARY,
        sampler=lambda values, bits: _respond(values, Fraction(1, 3), (values + 1) % 4, bits),
    )


def _gentle(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    turned = exact.bernoulli(Fraction(1, 4), len(values), bits)
    return np.where(values > 0, ~(turned & coins(bits, len(values))), turned)


def _lie(values: NDArray[Any], bits: Bits) -> NDArray[np.int64]:
    """Another category, all equally likely."""
    return (values + 1 + exact.uniform(_CATEGORIES - 1, len(values), bits)) % _CATEGORIES


def _respond(values: NDArray[Any], factor: Fraction, lies: NDArray[Any], bits: Bits) -> NDArray[Any]:
    """The truth with odds of factor * e^epsilon, and else the lie."""
    return np.where(exact.bernoulli_odds(_EPSILON, factor, len(values), bits), values, lies)
