"""Noise that is known, shared or left out."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance, Norm
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Gaussian, Laplace
from tests.mutants.mutant import Mutant

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
    for mechanism, distance in (
        (Laplace(scale=_SCALE), Distance.l1(2, coordinates=2)),
        (Gaussian(sigma=Fraction(2)), Distance.l2(square=2, coordinates=2)),
    ):
        kind = type(mechanism).__name__
        yield Mutant(
            name=f"{kind}, one noise for two coordinates",
            fault="both coordinates of an answer carry the same noise",
            honest=Example(
                mechanism=mechanism,
                value=[0, 0],
                neighbour=[1, 1],
                distance=distance,
                code=lambda answers: answers.sum(axis=-1),
            ),
            sampler=partial(_one_noise, mechanism),
        )
        yield Mutant(
            name=f"{kind}, every 4,096th again",
            fault="noise is drawn in blocks of 4,096, and the generator starts each of them anew",
            honest=Example(mechanism=mechanism, value=0, neighbour=1, distance=_one_of(distance)),
            sampler=partial(_in_blocks, mechanism),
        )
        yield Mutant(
            name=f"{kind}, twice at a distance of 700",
            fault="noise is drawn for 700 answers, and used again for the next 700",
            honest=Example(mechanism=mechanism, value=0, neighbour=1, distance=_one_of(distance)),
            sampler=partial(_twice, mechanism, 700),
        )
        yield Mutant(
            name=f"{kind}, the end like the start",
            fault="the last 64th of a call carries the noise of the first 64th",
            honest=Example(mechanism=mechanism, value=0, neighbour=1, distance=_one_of(distance)),
            sampler=partial(_wrapped, mechanism, 1),
        )
        yield Mutant(
            name=f"{kind}, one noise at the end",
            fault="the last 64th of a call carries the noise of the first answer",
            honest=Example(mechanism=mechanism, value=0, neighbour=1, distance=_one_of(distance)),
            sampler=partial(_wrapped, mechanism, 0),
        )
    wide = Laplace(scale=Fraction(1 << 40))
    yield Mutant(
        name="Laplace, any earlier noise again",
        fault="one answer in 100 carries the noise of another one of the call, chosen at random",
        honest=Example(
            mechanism=wide, value=0, neighbour=1 << 40, distance=Distance.l1(1 << 40, coordinates=1)
        ),
        sampler=partial(_recycled, wide),
    )
    yield Mutant(
        name="Laplace, both ends the same",
        fault="the noise of a call is drawn for its first half and mirrored",
        honest=_ONE,
        sampler=_mirrored,
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


def _one_of(distance: Distance) -> Distance:
    """The distance of one coordinate."""
    return Distance.l1(1) if distance.norm is Norm.L1 else Distance.l2(1)


def _one_noise(mechanism: Mechanism, values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    noise = mechanism.sample(np.zeros(len(values), np.int64), bits)
    return np.asarray(values + noise[:, np.newaxis])


def _in_blocks(mechanism: Mechanism, values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    block = mechanism.sample(np.zeros(min(len(values), 4096), np.int64), bits)
    return np.asarray(values + np.resize(block, len(values)))


def _twice(mechanism: Mechanism, lag: int, values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    noise = mechanism.sample(np.zeros(len(values), np.int64), bits)
    places = np.arange(len(values))
    return np.asarray(values + noise[places - lag * (places // lag % 2)])


def _wrapped(mechanism: Mechanism, step: int, values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    noise = mechanism.sample(np.zeros(len(values), np.int64), bits)
    last = len(noise) // 64
    noise[len(noise) - last :] = noise[step * np.arange(last)]
    return np.asarray(values + noise)


def _recycled(mechanism: Mechanism, values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    noise = mechanism.sample(np.zeros(len(values), np.int64), bits)
    again = exact.bernoulli(Fraction(1, 100), len(values), bits)
    others = (bits.words(len(values)) % np.uint64(len(values))).astype(np.int64)
    return np.asarray(values + np.where(again, noise[others], noise))


def _mirrored(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    half = exact.laplace(_SCALE, (len(values) + 1) // 2, bits)
    return np.asarray(values + np.concatenate([half, half[::-1]])[: len(values)])


def _average_of_four(values: NDArray[Any], bits: Bits) -> NDArray[Any]:
    noise = exact.gaussian(Fraction(4), 4 * len(values), bits).reshape(4, -1).sum(axis=0)
    return np.asarray(values + np.rint(noise / 4).astype(np.int64))
