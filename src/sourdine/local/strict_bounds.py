"""Intervals for shares of a distribution seen through noise, without assuming that it is smooth.

A share t is kept if some distribution with that share fits the counts hardly worse than the best one does: if
its chi-square exceeds the least one by no more than it would, at the confidence, were that distribution the
true one. How much that is, is simulated (Stark 1990 on strict bounds; Chuang, Lai 2000 on such resampling),
and taken to be no less than the square of the normal quantile.
"""

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, ndtri

from sourdine.core.bits import Bits
from sourdine.local.estimate import deviations

Floats = NDArray[np.float64]
_STIFF = 1e3  # how much harder a constraint is than the data
_RANK = 3  # an excess is significant if fewer than this many simulated ones are larger
_ROUNDS = 4  # an end moves out until its own simulation no longer asks for more
_BEYOND = 1e-9  # how rarely noise is so large that it is not even simulated
_GRID = 1 << 12  # shares are found to one part in this many


class StrictBounds:
    """Least-squares fits of distributions, none of them negative, to counts of codes."""

    def __init__(
        self, channel: Floats, sums: NDArray[np.int64], mass: Floats, first: NDArray[np.int64]
    ) -> None:
        """`first` begins groups of places, inside which the mass is taken to be spread evenly."""
        reports = float(sums.sum())
        sizes = np.diff(first, append=len(channel))
        rows = np.add.reduceat(channel, first, axis=0) / sizes[:, None]
        # a code expected less than once weighs as if it were expected once: its count is far from normal
        expected = np.maximum(mass @ channel, 1 / reports)
        weight = np.sqrt(reports / expected)
        turned, self._rows = np.linalg.qr((rows * weight).T)
        self._seen: Floats = turned.T @ (sums / reports * weight)
        self._stiff = _STIFF * math.sqrt(reports)
        self._ones = np.ones(len(first))
        self.first = first
        self._best, self._least = self._fit(self._seen)

    def grouped(self, member: ArrayLike) -> Floats:
        """A sum over places as one over groups."""
        return np.asarray(member, float)[self.first]

    def interval(self, member: Floats, confidence: float, bits: Bits) -> tuple[float, float]:
        """The shares that a sum over some groups may have."""
        at = float(np.clip(member @ self._best, 0.0, 1.0))
        return self._end(member, at, 0.0, confidence, bits), self._end(member, at, 1.0, confidence, bits)

    def crossing(self, share: float, confidence: float, bits: Bits) -> tuple[int, int]:
        """The groups in which the sum from the first on may reach a share: from one to another."""
        below = np.cumsum(self._best)
        at = min(int(np.searchsorted(below, share)), len(below) - 1)

        def kept(group: int) -> bool:
            return self._kept(self._upto(group), share, confidence, bits)

        low = bisect_left(range(at), 1, key=kept)
        high = bisect_left(range(at, len(below) - 1), 1, key=lambda group: not kept(group))
        return low, at + high

    def _upto(self, group: int) -> Floats:
        return (np.arange(len(self.first)) <= group).astype(float)

    def _kept(self, member: Floats, share: float, confidence: float, bits: Bits) -> bool:
        """Whether the sum over some groups may be this share.

        The excess of the truth is at most the chi-square of its noise, so what is beyond that needs no
        simulation.
        """
        excess = self._excess(member, share)
        if excess <= deviations(confidence) ** 2:
            return True
        if excess > float(chdtri(len(self._seen), _BEYOND)):
            return False
        return excess <= self._critical(member, share, confidence, bits)

    def _end(self, member: Floats, at: float, limit: float, confidence: float, bits: Bits) -> float:
        """How far towards a limit the share may lie."""
        allowed, end = deviations(confidence) ** 2, at
        for _ in range(_ROUNDS):
            end = self._farthest(member, end, limit, allowed)
            if end == limit:
                return limit
            asked = self._critical(member, end, confidence, bits)
            if asked <= allowed:
                return end
            allowed = asked
        return self._farthest(member, end, limit, allowed)

    def _farthest(self, member: Floats, start: float, limit: float, allowed: float) -> float:
        """The share nearest to the limit whose excess is allowed; the excess is convex in the share."""

        def share(step: int) -> float:
            return start + (limit - start) * step / _GRID

        first = bisect_left(range(_GRID), 1, key=lambda step: self._excess(member, share(step)) > allowed)
        return share(first)

    def _excess(self, member: Floats, share: float) -> float:
        return self._fit(self._seen, member, share)[1] - self._least

    def _critical(self, member: Floats, share: float, confidence: float, bits: Bits) -> float:
        """What the excess stays within, with this confidence, if the best fit of this share is the truth."""
        tries = math.ceil(_RANK / (1 - confidence)) - 1
        truth = self._rows @ self._fit(self._seen, member, share)[0]
        words = bits.words(tries * len(truth)).reshape(tries, -1)
        noise = ndtri((words >> np.uint64(11)) * 2.0**-53 + 2.0**-54)
        excesses = [self._fit(seen, member, share)[1] - self._fit(seen)[1] for seen in truth + noise]
        return max(float(np.sort(excesses)[-_RANK]), deviations(confidence) ** 2)

    def _fit(self, seen: Floats, member: Floats | None = None, share: float = 0.0) -> tuple[Floats, float]:
        """The distribution of least chi-square, perhaps with a given share, and that chi-square."""
        from scipy.optimize import nnls  # half a second to import, and only intervals need it

        hard = np.stack([self._ones] if member is None else [self._ones, member])
        sums = np.array([1.0] if member is None else [1.0, share])
        rows = np.concatenate([self._rows, self._stiff * hard])
        wanted = np.concatenate([seen, self._stiff * sums])
        found, size = nnls(rows, wanted, maxiter=100 * len(self._ones))
        return found, float(size) ** 2
