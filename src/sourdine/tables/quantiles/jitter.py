"""Places on a finer grid, where values that are equal stand apart.

Each value gets a random place among the fine steps of its own. The random part depends on no value, so with
the same random parts neighbours still differ in one value only, and the guarantee of what is done with the
fine places is that of the whole. Rounding back to the coarse grid is post-processing.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import Bits
from sourdine.frames.ranks import RankSource

Ints = NDArray[np.int64]
_FINE = 20  # bits a step is cut into, at most
_LONGEST = 61  # bits of a fine place, at most
_BLOCK = 1 << 10  # ranks whose random parts are drawn together
_WORD = 64  # bits
_GOLDEN = 648_055  # near the golden section of 2^20 and odd, so that its multiples stand far apart


def fine_bits(places: int) -> int:
    """Into how many bits each step of a grid is cut."""
    return max(0, min(_FINE, _LONGEST - (places - 1).bit_length()))


class FinePlaces(Protocol):
    """Values on the finer grid."""

    @property
    def count(self) -> int:
        """How many values there are."""

    @property
    def size(self) -> int:
        """How many fine places there are."""

    def between(self, first: int, last: int) -> Ints:
        """The fine places of the ranks first .. last - 1, counted from 0, in rising order."""


@dataclass
class Jittered:
    """The fine places of values by rank; each value's random part is drawn once, when first looked at."""

    source: RankSource
    places: int
    bits: Bits

    def __post_init__(self) -> None:
        self._drawn: dict[int, Ints] = {}  # random parts, by blocks of ranks
        self._sorted: dict[tuple[int, int], Ints] = {}  # fine places, by the ranks from which to which

    @property
    def count(self) -> int:
        return self.source.size

    @property
    def size(self) -> int:
        return self.places << fine_bits(self.places)

    def between(self, first: int, last: int) -> Ints:
        values = self.source.values_between(first, last)
        if values.size == 0:
            return values
        distinct = np.unique(values)
        below, upto = self.source.count_below(distinct), self.source.count_below(distinct + 1)
        begin, end = int(below[0]), int(upto[-1])  # all that are equal to the first and to the last
        if (begin, end) not in self._sorted:
            coarse = np.repeat(distinct, upto - below) << fine_bits(self.places)
            self._sorted[begin, end] = np.sort(coarse + self._parts(begin, end))
        skipped = max(first, 0) - begin
        return self._sorted[begin, end][skipped : skipped + values.size]

    def _parts(self, first: int, last: int) -> Ints:
        """The random parts of these ranks: among equal values it does not matter whose is whose."""
        blocks = range(first // _BLOCK, -(-last // _BLOCK))
        fine = np.uint64(64 - fine_bits(self.places))
        for block in blocks:
            if block not in self._drawn:
                words = self.bits.words(_BLOCK) >> fine if fine < _WORD else np.zeros(_BLOCK, np.uint64)
                self._drawn[block] = words.astype(np.int64)
        joined = np.concatenate([self._drawn[block] for block in blocks])
        start = first - blocks[0] * _BLOCK
        return joined[start : start + last - first]


@dataclass(frozen=True)
class SetApart:
    """Fine places that are known already, in rising order."""

    fine: Ints
    places: int

    @classmethod
    def evenly(cls, values: ArrayLike, places: int) -> "SetApart":
        """Values set apart by a part that depends on where in the list each stands.

        Of a value that is replaced, or of the last if it is removed, the others keep their parts. So this is
        how neighbours look that were set apart by the same random parts.
        """
        held = np.asarray(values, np.int64)
        parts = np.arange(1, held.size + 1) * _GOLDEN % (1 << fine_bits(places))
        return cls(np.sort((held << fine_bits(places)) + parts), places)

    @property
    def count(self) -> int:
        return int(self.fine.size)

    @property
    def size(self) -> int:
        return self.places << fine_bits(self.places)

    def between(self, first: int, last: int) -> Ints:
        return self.fine[max(first, 0) : max(last, 0)]
