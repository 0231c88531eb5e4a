"""The distribution of values behind noisy reports: by EM, with intervals that hold for any distribution.

Intervals do not assume that it is smooth. A share t is kept if some distribution with that share fits the
counts hardly worse than the best one does: if its chi-square exceeds the least one by no more than it would,
at the confidence, were that distribution the true one. How much that is, is simulated (Stark 1990 on strict
bounds; Chuang, Lai 2000 on such resampling), and taken to be no less than the square of the normal quantile.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.grid import Interval
from sourdine.core.lazy import chdtri, ndtri
from sourdine.core.random.bits import SYSTEM, Bits
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
        self._target: Floats = turned.T @ (sums / reports * weight)
        self._stiff = _STIFF * math.sqrt(reports)
        self._ones = np.ones(len(first))
        self.first = first
        self._best, self._least = self._fit(self._target)

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

        def fits(group: int) -> bool:
            return self._accepts(self._upto(group), share, confidence, bits)

        low = bisect_left(range(at), 1, key=fits)
        high = bisect_left(range(at, len(below) - 1), 1, key=lambda group: not fits(group))
        return low, at + high

    def _upto(self, group: int) -> Floats:
        return (np.arange(len(self.first)) <= group).astype(float)

    def _accepts(self, member: Floats, share: float, confidence: float, bits: Bits) -> bool:
        """Whether the sum over some groups may be this share.

        The excess of the truth is at most the chi-square of its noise, so what is beyond that needs no
        simulation.
        """
        excess = self._excess(member, share)
        if excess <= deviations(confidence) ** 2:
            return True
        if excess > float(chdtri(len(self._target), _BEYOND)):
            return False
        return excess <= self._critical(member, share, confidence, bits)

    def _end(self, member: Floats, at: float, limit: float, confidence: float, bits: Bits) -> float:
        """How far towards a limit the share may lie."""
        allowed, end = deviations(confidence) ** 2, at
        for _ in range(_ROUNDS):
            end = self._farthest(member, end, limit, allowed)
            if end == limit:
                return limit
            critical = self._critical(member, end, confidence, bits)
            if critical <= allowed:
                return end
            allowed = critical
        return self._farthest(member, end, limit, allowed)

    def _farthest(self, member: Floats, start: float, limit: float, allowed: float) -> float:
        """The share nearest to the limit whose excess is allowed; the excess is convex in the share."""

        def share(step: int) -> float:
            return start + (limit - start) * step / _GRID

        first = bisect_left(range(_GRID), 1, key=lambda step: self._excess(member, share(step)) > allowed)
        return share(first)

    def _excess(self, member: Floats, share: float) -> float:
        return self._fit(self._target, member, share)[1] - self._least

    def _critical(self, member: Floats, share: float, confidence: float, bits: Bits) -> float:
        """What the excess stays within, with this confidence, if the best fit of this share is the truth."""
        tries = math.ceil(_RANK / (1 - confidence)) - 1
        truth = self._rows @ self._fit(self._target, member, share)[0]
        words = bits.words(tries * len(truth)).reshape(tries, -1)
        noise = ndtri((words >> np.uint64(11)) * 2.0**-53 + 2.0**-54)
        excesses = [self._fit(target, member, share)[1] - self._fit(target)[1] for target in truth + noise]
        return max(float(np.sort(excesses)[-_RANK]), deviations(confidence) ** 2)

    def _fit(self, target: Floats, member: Floats | None = None, share: float = 0.0) -> tuple[Floats, float]:
        """The distribution of least chi-square, perhaps with a given share, and that chi-square."""
        from scipy.optimize import nnls  # half a second to import, and only intervals need it

        hard = np.stack([self._ones] if member is None else [self._ones, member])
        sums = np.array([1.0] if member is None else [1.0, share])
        rows = np.concatenate([self._rows, self._stiff * hard])
        wanted = np.concatenate([target, self._stiff * sums])
        mass, size = nnls(rows, wanted, maxiter=100 * len(self._ones))
        return mass, float(size) ** 2


_NODES = 129  # places that an interval tells apart; more are taken by groups
_GAIN = 1e-3  # of log-likelihood: less in one step ends EM
_STEPS = 10_000
_PUBLISHED = 512  # cells at which neighbours are averaged as published; fewer are further apart


class Bands(NamedTuple):
    """Values with an interval for each."""

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class Distribution:
    """How the values of those who reported are spread over the places of their grid.

    `mass` is the estimate by EM, one number a place. Shares and quantiles have intervals that assume nothing
    of the distribution (see docs/guarantees/local_numeric.md); they take seconds where `mass` takes
    milliseconds, as each is checked on simulated reports.
    """

    places: Floats
    mass: Floats
    reports: int
    _channel: Floats = field(repr=False)
    _sums: NDArray[np.int64] = field(repr=False)

    @classmethod
    def fitted(
        cls, interval: Interval, channel: Floats, sums: NDArray[np.int64], epsilon: float, smooth: bool
    ) -> "Distribution":
        """The distribution of counts of codes; `channel` holds a row a place and a column a code."""
        if smooth:
            mass = maximised(channel, sums, _GAIN, min(interval.cells / _PUBLISHED, 1.0) ** 2 / 4)
        else:
            mass = maximised(channel, sums, _GAIN * math.exp(min(epsilon, 50.0)), 0.0)
        places = interval.values(np.arange(interval.cells + 1))
        return cls(places, mass, int(sums.sum()), channel, sums)

    @property
    def mean(self) -> float:
        """The mean of the estimated distribution; the oracle's own mean has an interval."""
        return float(self.mass @ self.places)

    def edges(self, bins: int) -> Floats:
        """Where bins of about as many places each begin and end: halfway between two places."""
        first = self._first(check.integer("edges", "bins", bins, 1, len(self.places)))
        step = (self.places[-1] - self.places[0]) / (len(self.places) - 1)
        return np.concatenate([self.places[:1], self.places[first[1:]] - step / 2, self.places[-1:]])

    def shares(self, bins: int = 10, confidence: float = 0.95, bits: Bits = SYSTEM) -> Bands:
        """The share of the values in each bin."""
        first = self._first(check.integer("shares", "bins", bins, 1, min(len(self.places), _NODES)))
        level = _level("shares", confidence)
        member = np.repeat(np.eye(len(first)), np.diff(first, append=len(self.places)), axis=1)
        bounds = self._bounds(first)
        ends = [bounds.interval(bounds.grouped(row), level, bits) for row in member]
        return Bands(member @ self.mass, *np.array(ends).T)

    def quantiles(self, levels: ArrayLike, confidence: float = 0.95, bits: Bits = SYSTEM) -> Bands:
        """The values below which shares of all of them lie, each with its interval."""
        stated = np.atleast_1d(np.asarray(levels, float)).tolist()
        shares = np.array([float(check.inside("quantiles", "levels", each, 0, 1)) for each in stated])
        level = _level("quantiles", confidence)
        bounds = self._bounds()
        ends = np.array([bounds.crossing(share, level, bits) for share in shares.tolist()])
        last = np.append(bounds.first[1:], len(self.places)) - 1
        low, high = self.places[bounds.first[ends[:, 0]]], self.places[last[ends[:, 1]]]
        # A value is read at its nearest place, so it may lie half a cell from it.
        half = (self.places[-1] - self.places[0]) / (len(self.places) - 1) / 2
        low, high = np.maximum(low - half, self.places[0]), np.minimum(high + half, self.places[-1])
        at = np.searchsorted(np.cumsum(self.mass), shares)
        return Bands(self.places[np.minimum(at, len(self.places) - 1)], low, high)

    def _first(self, bins: int) -> NDArray[np.int64]:
        """The first place of each bin."""
        return -(-np.arange(bins) * len(self.places) // bins)

    def _bounds(self, cuts: ArrayLike = ()) -> StrictBounds:
        """The fits behind the intervals, on groups of places that no cut goes through."""
        groups = min(len(self.places), _NODES)
        first = np.union1d(self._first(groups), np.asarray(cuts, np.int64))
        return StrictBounds(self._channel, self._sums, self.mass, first)


def _level(owner: str, confidence: float) -> float:
    """A confidence that simulation can check."""
    level = check.confidence(owner, confidence)
    if level > 0.99:
        raise check.fail(owner, "confidence", "be at most 0.99, as it is checked by simulation", confidence)
    return level


def maximised(channel: Floats, sums: NDArray[np.int64], gain: float, smoothing: float) -> Floats:
    """The distribution that makes the counts of codes most likely, by EM from a flat start.

    Each step multiplies a place's mass by the mean, over the reports, of how much likelier it made them; then
    a place gives a share of its mass to each of its neighbours, if it is to be smooth (1/4 in Li et al.
    2020). Steps end as soon as one gains less than `gain` in log-likelihood.
    """
    present = sums > 0
    heard, channel = sums[present] / sums.sum(), np.ascontiguousarray(channel[:, present])
    mass = np.full(len(channel), 1 / len(channel))
    before = -math.inf
    for _ in range(_STEPS):
        expected = mass @ channel
        likelihood = float(sums.sum() * (heard @ np.log(expected)))
        if likelihood - before < gain:
            break
        before = likelihood
        mass = mass * (channel @ (heard / expected))
        if smoothing:
            beside = np.pad(mass, 1, mode="edge")
            mass = mass + smoothing * (beside[2:] - 2 * mass + beside[:-2])
        mass /= mass.sum()
    return mass
