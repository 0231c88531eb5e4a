"""The distribution of values behind noisy reports: by EM, with intervals that hold for any distribution."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.interval import Interval
from sourdine.local.strict_bounds import StrictBounds

Floats = NDArray[np.float64]
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
        found = [bounds.interval(bounds.grouped(row), level, bits) for row in member]
        return Bands(member @ self.mass, *np.array(found).T)

    def quantiles(self, levels: ArrayLike, confidence: float = 0.95, bits: Bits = SYSTEM) -> Bands:
        """The values below which shares of all of them lie, each with its interval."""
        stated = np.atleast_1d(np.asarray(levels, float)).tolist()
        asked = np.array([float(check.inside("quantiles", "levels", each, 0, 1)) for each in stated])
        level = _level("quantiles", confidence)
        bounds = self._bounds()
        ends = np.array([bounds.crossing(share, level, bits) for share in asked.tolist()])
        last = np.append(bounds.first[1:], len(self.places)) - 1
        low, high = self.places[bounds.first[ends[:, 0]]], self.places[last[ends[:, 1]]]
        at = np.searchsorted(np.cumsum(self.mass), asked)
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


def maximised(channel: Floats, sums: NDArray[np.int64], gain: float, given: float) -> Floats:
    """The distribution that makes the counts of codes most likely, by EM from a flat start.

    Each step multiplies a place's mass by the mean, over the reports, of how much likelier it made them; then
    a place gives a share of its mass to each of its neighbours, if it is to be smooth (1/4 in Li et al.
    2020). Steps end as soon as one gains less than `gain` in log-likelihood.
    """
    seen = sums > 0
    heard, channel = sums[seen] / sums.sum(), np.ascontiguousarray(channel[:, seen])
    mass = np.full(len(channel), 1 / len(channel))
    before = -math.inf
    for _ in range(_STEPS):
        expected = mass @ channel
        likelihood = float(sums.sum() * (heard @ np.log(expected)))
        if likelihood - before < gain:
            break
        before = likelihood
        mass = mass * (channel @ (heard / expected))
        if given:
            beside = np.pad(mass, 1, mode="edge")
            mass = mass + given * (beside[2:] - 2 * mass + beside[:-2])
        mass /= mass.sum()
    return mass
