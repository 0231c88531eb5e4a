"""Numbers of a declared range as an oracle's questions: what all such oracles share.

A value is clamped to [lower, upper] and put on a grid of `cells` equal cells. A report is a code, and counts
are a histogram of codes. Everything read from them is about the people who reported, or, on request, about
the population that they were drawn from.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.spend import Spend
from sourdine.core import check, grid
from sourdine.core.distance import Distance, Norm
from sourdine.core.grid import Interval
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.estimate import Counts, Estimate, deviations, normal
from sourdine.local.numeric.distribution import Distribution
from sourdine.local.oracle import CodeReports
from sourdine.mechanisms.randomized_response import LEAST_EPSILON, MOST_EPSILON, mean_error

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_FLOATS = 1e-9  # a place is found in floats of relative error 2^-52, for at most 2^28 cells
_CHUNK = 1 << 15  # values handled at once, so that the arrays stay in the cache


class Noise(NamedTuple):
    """The variance of a decoded report of t, a place on [-1, 1]: constant + square t^2."""

    constant: float
    square: float

    @property
    def worst(self) -> float:
        """The largest variance: at an end of the range, or in its middle."""
        return self.constant + max(self.square, 0.0)

    def second_moment(self, mean: float, observed: float) -> float:
        """The mean of t^2 among people, from the first two moments of what their reports decode to.

        A report of t has the second moment constant + (1 + square) t^2. Where that tells nothing of t, the
        least mean of t^2 is taken, and so the most noise.
        """
        least = min(mean**2, 1.0)
        if 1 + self.square <= 0:
            return least
        return min(max((observed - self.constant) / (1 + self.square), least), 1.0)


@dataclass(frozen=True, kw_only=True)
class NumericOracle(CodeReports):
    """Oracles that tell about numbers in [lower, upper]."""

    norm: ClassVar[Norm] = Norm.HAMMING
    most_cells: ClassVar[int] = 1 << 10
    most_epsilon: ClassVar[Fraction] = Fraction(MOST_EPSILON)
    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    cells: int = 128

    def __post_init__(self) -> None:
        owner = type(self).__name__
        interval = Interval.declared(owner, self.lower, self.upper, self.cells, self.most_cells)
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, self.most_epsilon)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "lower", interval.lower)
        object.__setattr__(self, "upper", interval.upper)
        object.__setattr__(self, "cells", interval.cells)

    @property
    def spend(self) -> Spend:
        return Spend(mechanism=self, distance=Distance.hamming())

    @property
    def interval(self) -> Interval:
        """The declared range and its grid."""
        return Interval(self.lower, self.upper, self.cells)

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return float((self.lower + self.upper) / 2)

    @property
    def reach(self) -> float:
        """Half the length of the range."""
        return float((self.upper - self.lower) / 2)

    @property
    def rounding(self) -> float:
        """How far the nearest place of the grid may lie from a value, on [-1, 1]: half a cell.

        All people may have one value and round it the same way, so the mean may be off by as much. Intervals
        allow for it. The factor is for the rounding of floats.
        """
        return (1 + _FLOATS) / self.cells

    @abstractmethod
    def encode(self, values: NDArray[Any], bits: Bits) -> Ints:
        """The codes of values in a flat array."""

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        array = grid.reals(values)
        flat, codes = array.reshape(-1), np.empty(array.size, np.int64)
        for start in range(0, max(array.size, 1), _CHUNK):
            codes[start : start + _CHUNK] = self.encode(flat[start : start + _CHUNK], bits)
        return codes.reshape(array.shape)

    @abstractmethod
    def mean(self, counts: Counts, confidence: float = 0.95, *, population: bool = False) -> Estimate:
        """The mean of those who reported, or of the population that they are a random sample of."""

    def estimate(self, counts: Counts, confidence: float = 0.95) -> Estimate:
        """The mean of those who reported."""
        return self.mean(counts, confidence)

    @abstractmethod
    def error(self, confidence: float = 0.95, reports: int = 1) -> float:
        """The half-width of an interval around the mean of those who report, whatever their values."""


class UnbiasedOracle(NumericOracle):
    """Oracles whose codes decode to numbers that are right on average, for each person."""

    @property
    @abstractmethod
    def decoded(self) -> Floats:
        """What each code stands for, on [-1, 1] and beyond: its mean is the place of the true value."""

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """The variance of a decoded report."""

    @property
    def blur(self) -> float:
        """At most the variance that rounding a value at random to the grid adds, on [-1, 1]."""
        return 0.0

    def variance(self, values: ArrayLike) -> Floats:
        """The variance of one decoded report of each value, in the square of the values' unit."""
        inside = np.clip(np.asarray(values, float), float(self.lower), float(self.upper))
        places = (inside - self.middle) / self.reach
        constant, square = self.noise
        return np.asarray((constant + square * places**2) * self.reach**2)

    @property
    def worst_variance(self) -> float:
        """At most the variance of one decoded report, whatever the value, in the square of its unit."""
        return (self.noise.worst + self.blur) * self.reach**2

    def mean(self, counts: Counts, confidence: float = 0.95, *, population: bool = False) -> Estimate:
        """The unbiased mean of those who reported, or of the population that they are a random sample of.

        The variance is estimated from the reports: that of their noise, and for a population also that of
        the values.
        """
        owner = f"{type(self).__name__}.mean"
        level = check.confidence(owner, confidence)
        about_all = check.boolean(owner, "population", population)
        known = self.known(counts)
        shares = known.sums / known.reports
        mean, observed = float(shares @ self.decoded), float(shares @ self.decoded**2)
        square = self.noise.second_moment(mean, observed)
        variance = self.noise.constant + self.noise.square * square + self.blur
        if about_all:
            variance += max(square - mean**2, 0.0)
        scale = self.reach**2 / known.reports
        value = np.asarray(self.middle + self.reach * mean)
        if 1 + self.noise.square <= 0:
            ends = self._scores(mean, mean, known.reports, level)
            low, high = map(np.asarray, self.middle + self.reach * ends)
            return Estimate(value, np.asarray(variance * scale), low, high, known.reports, level)
        return normal(value, np.asarray(variance * scale), known.reports, level, self.reach * self.rounding)

    def honest_mean(self, estimate: Estimate, attackers: int) -> tuple[Floats, Floats]:
        """An interval for the mean of the honest people, if so many of the reports were made up.

        The attackers' reports decode to anything between the least and the largest code, and have no noise.
        The noise of the others is at most the worst. Where its variance grows with the values, the second
        moment of all reports bounds that of the honest ones.
        """
        owner = f"{type(self).__name__}.honest_mean"
        made_up = check.integer(owner, "attackers", attackers, 0, estimate.reports - 1)
        honest, level = estimate.reports - made_up, estimate.confidence
        mean = (float(estimate.value) - self.middle) / self.reach
        low, high = (
            (estimate.reports * mean - made_up * end) / honest
            for end in (float(self.decoded.max()), float(self.decoded.min()))
        )
        if 1 + self.noise.square <= 0:
            ends = self._scores(max(low, -1.0), min(high, 1.0), honest, level)
        else:
            constant, square = self.noise
            spread = constant + self.blur
            if square > 0:
                variance = float(estimate.variance) * estimate.reports / self.reach**2
                moment = min(max((variance - spread) / square, 0.0), 1.0)  # the mean of t^2 among all
                observed = estimate.reports / honest * (constant + (1 + square) * moment)
                spread += square * min((observed - constant) / (1 + square), 1.0)
            reach = deviations(level) * math.sqrt(spread / honest) + self.rounding
            ends = np.array([low - reach, high + reach])
        lower, upper = np.clip(self.middle + self.reach * ends, float(self.lower), float(self.upper))
        return np.asarray(lower), np.asarray(upper)

    def _scores(self, lowest: float, highest: float, reports: int, confidence: float) -> Floats:
        """The ends of all means t that an observed one lies within z deviations of, at the most noise for t.

        Reports that tell nothing of the spread of values have at most the noise constant + square t^2, since
        square is below 0 and the mean of squares at least the square of the mean. So the ends are the roots
        of a quadratic (Wilson 1927), which holds from few reports on, where an estimated variance would not.
        """
        z = deviations(confidence) ** 2 / reports
        widened = 1 - z * self.noise.square
        observed = np.array([lowest, highest])
        below_root = observed**2 - widened * (observed**2 - z * (self.noise.constant + self.blur))
        sides = np.array([-1.0, 1.0])
        ends = (observed + sides * np.sqrt(np.maximum(below_root, 0.0))) / widened
        return np.asarray(ends + sides * self.rounding)

    def error(self, confidence: float = 0.95, reports: int = 1) -> float:
        """The half-width of an interval around the mean of those who report, whatever their values."""
        owner = f"{type(self).__name__}.error"
        level = check.confidence(owner, confidence)
        count = check.integer(owner, "reports", reports, 1, 1 << 62)
        variance = self.noise.worst + self.blur
        return self.reach * (half_width(self.decoded, variance, level, count) + self.rounding)


class ResolvedOracle(NumericOracle):
    """Oracles whose reports tell the whole distribution of the values."""

    @property
    @abstractmethod
    def channel(self) -> Floats:
        """The probability of each code (columns) from each place of the grid (rows)."""

    def distribution(self, counts: Counts, *, smooth: bool = True) -> Distribution:
        """The distribution of the values of those who reported, by (smoothed) EM."""
        check.boolean(f"{type(self).__name__}.distribution", "smooth", smooth)
        known = self.known(counts)
        return Distribution.fitted(self.interval, self.channel, known.sums, float(self.epsilon), smooth)


def half_width(decoded: Floats, variance: float, confidence: float, reports: int) -> float:
    """What the error of a mean of decoded reports stays within, for places on [-1, 1]."""
    low, high = float(decoded.min()), float(decoded.max())
    return mean_error(high - low, max(high, -low) + 1, variance, confidence, reports)


def numeric_examples(
    kind: type[NumericOracle], cases: Iterable[tuple[Fraction, int, float]]
) -> Iterator[Example]:
    """A value in [0, 1] against the upper end, for each (epsilon, cells, value)."""
    for epsilon, cells, value in cases:
        yield Example(
            mechanism=kind(epsilon=epsilon, lower=Fraction(0), upper=Fraction(1), cells=cells),
            value=value,
            neighbour=1.0,
            distance=Distance.hamming(),
        )
