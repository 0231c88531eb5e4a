"""How many reports speak for each part that a prefix may go on with, by one transform for all parts."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sourdine.local.frequency.field import vectors, walsh_hadamard
from sourdine.local.words.spelling import Ints
from sourdine.local.words.tree import WordTree

Floats = NDArray[np.float64]
_RADIX = 64  # of a transform
_EXACT = 1 << 24  # whole numbers below it are exact in short floats


@dataclass(frozen=True, eq=False)
class PartReports:
    """Reports about one more part after a prefix, made ready to be asked for every such part at once.

    Those of longer prefixes may be among them: they speak for words that are over with this part.
    """

    oracle: WordTree
    responses: NDArray[np.uint8]
    before: NDArray[np.uint16]
    """The seeds of the parts before, a row a part."""
    seeds: Ints

    @classmethod
    def of(cls, oracle: WordTree, responses: Ints, seeds: Ints, place: int) -> "PartReports":
        """Reports by their responses and all their seeds, asked for the part at a place, from 0 on."""
        before = np.ascontiguousarray(seeds[:, :place].T.astype(np.uint16))
        return cls(oracle, responses.astype(np.uint8), before, seeds[:, place])

    def __len__(self) -> int:
        return len(self.responses)

    def supports(self, prefix: Ints, parts: Ints) -> Ints:
        """How many reports speak for the prefix with each of some parts after it.

        The mean over all factors c of sums of characters of c(<seed, part> - rest): multiples of seeds are
        brought together first, so that one transform over the seeds gives all parts. Digits that are 0 in
        each of the parts are left out, which makes it shorter where words are over.
        """
        order, every = self.oracle.groups, np.arange(self.oracle.seeds)
        rest = self.responses
        for seeds, part in zip(self.before, prefix, strict=True):
            dots = self.oracle.space.dot(every, np.full(self.oracle.seeds, part)).astype(np.uint8)
            rest = rest ^ dots[seeds]
        without = 0
        while without + 1 < self.oracle.digits and not (parts % order ** (without + 1)).any():
            without += 1
        tables = _tables(order, self.oracle.digits - without)
        cut = order**without
        size = self.oracle.seeds // cut
        counts = np.bincount(rest * np.int64(size) + self.seeds // cut, minlength=size * order)
        kind = np.float32 if len(rest) < _EXACT else np.float64
        by_factor = tables.signs.astype(kind) @ counts.reshape(order, -1).astype(kind)
        sums = np.zeros(size)
        for factor, places in enumerate(tables.places, 1):
            sums += by_factor[factor][places]
        counted = _walsh_hadamard(sums)[parts // cut]
        return np.asarray(np.rint((len(rest) + counted) / order), np.int64)


@dataclass(frozen=True, eq=False)
class _Tables:
    places: NDArray[np.int32]
    """For each factor other than 0, where the multiple of a seed stands in the transform."""
    signs: Floats
    """The character of each product of two elements."""


@lru_cache(maxsize=16)
def _tables(order: int, digits: int) -> _Tables:
    space, every = vectors(order, digits), np.arange(order**digits)
    # where V[a] has to go to stand at the dual of c a: read at the inverse multiple
    places = np.empty((order - 1, len(every)), np.int32)
    for factor in range(1, order):
        places[factor - 1, space.duals(space.scaled(factor, every))] = every
    traces = space.field.dual[space.field.times] & 1  # the first bit of the dual of x is the trace of x
    return _Tables(places, (1 - 2 * traces).astype(np.float64))


def _walsh_hadamard(sums: Floats) -> Floats:
    """The transform of up to 2^53 in all, which floats hold exactly, by products with small matrices."""
    out, done = sums, 1
    while done < len(sums):
        step = min(_RADIX, len(sums) // done)
        out = _matrix(step) @ out.reshape(-1, step, done)
        done *= step
    return out.reshape(-1)


@lru_cache(maxsize=8)
def _matrix(size: int) -> Floats:
    return walsh_hadamard(np.eye(size, dtype=np.int64)).astype(np.float64)
