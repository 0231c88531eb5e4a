"""Exact sampling from a law of weights, by inverse distribution function on certified tables.

Let U be uniform on [0, 1) with endless binary digits, and X the number of cumulative probabilities that
are at most U. The first 16 bits of U settle X unless a cumulative probability lies in that cell; then 48
more bits are compared with certified 64-bit thresholds; and when those tie, which happens about once in
2^63 comparisons, `_resolve` draws digits until balls of any precision tell. No step approximates.

Open cells are mostly those of rare outcomes, so a small call searches for every sample: otherwise the time
of a single draw would tell a large noise from a small one.
"""

from functools import lru_cache
from itertools import accumulate

import numpy as np
from flint import arb, ctx, fmpz
from numpy.typing import NDArray

from sourdine.core.bits import Bits, sixteens
from sourdine.core.certified import floor_scaled, precision, up_to
from sourdine.core.weights import Weights

_GUARD = 128  # bits of precision beyond the 64 compared
_CELLS = 1 << 16
_MOST = 1 << 24  # outcomes a table may need; every scale that mechanisms allow needs far fewer
_CHUNK = 1 << 16  # samples handled at once, so that the arrays stay in the cache
_STEADY = 1 << 12  # so few samples are all searched: rare outcomes share cells, and a search would show


class Table:
    """Certified thresholds of one law, and the samples drawn with them."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._thresholds = self._certify()
        self._guide = self._cells()
        self._zeros, self._ones = (int(np.count_nonzero(self._guide == outcome)) for outcome in (0, 1))

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        """`count` independent outcomes."""
        if count <= _STEADY:
            return self._search(sixteens(bits, count), bits)
        out = np.empty(count, dtype=np.int64)
        for start in range(0, count, _CHUNK):
            part = out[start : start + _CHUNK]
            cells = sixteens(bits, len(part))
            part[:] = self._guide[cells]
            open_ = np.flatnonzero(part < 0)
            if len(open_):
                part[open_] = self._search(cells[open_], bits)
        return out

    def coins(self, count: int, bits: Bits) -> NDArray[np.bool_]:
        """`count` outcomes of a law that has two, as booleans.

        The cells that settle 1 are the last ones, those that settle 0 the first; what is between is searched.
        """
        if count <= _STEADY:
            return self._search(sixteens(bits, count), bits).astype(np.bool_)
        cells = sixteens(bits, count)
        heads: NDArray[np.bool_] = cells >= _CELLS - self._ones
        open_ = np.flatnonzero(cells - np.uint16(self._zeros) < _CELLS - self._ones - self._zeros)
        heads[open_] = self._search(cells[open_], bits)
        return heads

    def _search(self, cells: NDArray[np.uint16], bits: Bits) -> NDArray[np.int64]:
        words = bits.words(len(cells)) >> np.uint64(16) | cells.astype(np.uint64) << np.uint64(48)
        found = np.searchsorted(self._thresholds, words).astype(np.int64)
        last = len(self._thresholds) - 1
        tie = self._thresholds[np.minimum(found, last)] == words
        tie |= (found > 0) & (self._thresholds[np.maximum(found - 1, 0)] + np.uint64(1) == words)
        for i in np.flatnonzero(tie):
            found[i] = self._resolve(int(words[i]), bits)
        return found

    def _resolve(self, word: int, bits: Bits) -> int:
        """The outcome of a U that begins with 64 bits too close to a threshold to tell."""
        size = 64
        while True:
            word = word << 64 | int(bits.words(1)[0])
            size += 64
            with precision(size + _GUARD):
                low = arb(fmpz(word)) / arb(fmpz(1) << size)
                high = arb(fmpz(word + 1)) / arb(fmpz(1) << size)
                cumulative = self._cumulative()
                settled = next((k for k, at in enumerate(cumulative) if not low >= at), len(cumulative))
                last = settled == len(cumulative)
                if (last and self._weights.size) or (not last and high <= cumulative[settled]):
                    return settled

    def _certify(self) -> NDArray[np.uint64]:
        """floor(2^64 P[X <= k]), or one less: a tie with either neighbour goes to `_resolve`."""
        with precision(64 + _GUARD):
            brackets = [floor_scaled(at, 64) for at in self._cumulative()]
        if any(high - low > 1 for low, high in brackets):
            raise ArithmeticError("A certified threshold is wider than one word; raise the guard bits.")
        return np.array([min(low, (1 << 64) - 1) for low, _ in brackets], dtype=np.uint64)

    def _cumulative(self) -> list[arb]:
        """P[X <= k] as balls, as many as the precision can tell from 1.

        The last of a finite law is 1 and is left out. An endless law is cut where the rest weighs less
        than the precision, so that its last threshold is the last word there is.
        """
        count = self._weights.size or 64
        while not self._weights.rest(count) * (fmpz(1) << (ctx.prec - _GUARD // 2)) <= 1:
            count *= 2
            if count > _MOST:
                raise ArithmeticError("The weights of a law do not fall as they should.")
        sums = list(accumulate(self._weights.first(count)))
        total = sums[-1] + up_to(self._weights.rest(count))
        return [part / total for part in (sums[:-1] if self._weights.size else sums)]

    def _cells(self) -> NDArray[np.int32]:
        """The outcome each 16-bit cell settles, or -1 where a threshold lies in it or beside it."""
        first = np.arange(_CELLS, dtype=np.uint64) << np.uint64(48)
        before = np.searchsorted(self._thresholds, np.maximum(first, 1) - np.uint64(1), side="left")
        until = np.searchsorted(self._thresholds, first + np.uint64((1 << 48) - 1), side="right")
        return np.where(before == until, before, -1).astype(np.int32)


@lru_cache(maxsize=512)
def table(weights: Weights) -> Table:
    """The table of a law, built on first use."""
    return Table(weights)
