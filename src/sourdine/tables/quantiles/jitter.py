"""Places on a finer grid, where values that are equal stand apart.

Each value gets a random place among the fine steps of its own. The random part depends on no value, so with
the same random parts neighbours still differ in one value only, and the guarantee of what is done with the
fine places is that of the whole. Rounding back to the coarse grid is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.frames.ranks import RankSource

Ints = NDArray[np.int64]
_FINE = 20  # bits a step is cut into, at most
_LONGEST = 61  # bits of a fine place, at most


def fine_bits(places: int) -> int:
    """Into how many bits each step of a grid is cut."""
    return max(0, min(_FINE, _LONGEST - (places - 1).bit_length()))


@dataclass
class Jittered:
    """The fine places of values by rank; each value's random part is drawn once, when first looked at."""

    source: RankSource
    places: int
    bits: Bits

    def __post_init__(self) -> None:
        self._drawn: dict[int, Ints] = {}

    @property
    def size(self) -> int:
        """How many fine places there are."""
        return self.places << fine_bits(self.places)

    def between(self, first: int, last: int) -> Ints:
        """The fine places of the ranks first .. last - 1, counted from 0, in rising order."""
        values = self.source.values_between(first, last)
        if values.size == 0:
            return values
        distinct, starts = np.unique(values, return_index=True)
        below = self.source.count_below(distinct)
        upto = self.source.count_below(distinct + 1)
        ends = np.append(starts[1:], values.size)
        out = np.empty(values.size, np.int64)
        alone = upto - below == 1
        fine = fine_bits(self.places)
        single = np.flatnonzero(alone)
        if single.size:
            known = [int(v) for v in distinct[single]]
            new = [v for v in known if v not in self._drawn]
            for v, place in zip(new, self._places(len(new)), strict=True):
                self._drawn[v] = np.array([place])
            out[starts[single]] = [(v << fine) + int(self._drawn[v][0]) for v in known]
        for i in np.flatnonzero(~alone):
            v = int(distinct[i])
            if v not in self._drawn:
                self._drawn[v] = np.sort(self._places(int(upto[i] - below[i])))
            begin = first + int(starts[i]) - int(below[i])
            held = self._drawn[v][begin : begin + int(ends[i] - starts[i])]
            out[starts[i] : ends[i]] = (v << fine) + held
        return out

    def _places(self, count: int) -> Ints:
        fine = fine_bits(self.places)
        if fine == 0:
            return np.zeros(count, np.int64)
        return (self.bits.words(count) >> np.uint64(64 - fine)).astype(np.int64)
