"""Bounded Laplace and bounded staircase as oracles: their answers as codes, read without their bias.

Codes are read as scores whose mean is nearly that of the true places. Noise inside a range has a mean that
is no straight line in the true place, so no factor mends it. Scores of the codes may do so exactly, but
their variance then grows with the places without limit.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import Bits
from sourdine.local.estimate import Counts, Estimate, deviations
from sourdine.local.numeric.oracle import (
    Floats,
    Ints,
    NumericOracle,
    ResolvedOracle,
    half_width,
    numeric_examples,
)
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import MOST_DROP, BoundedStaircase


class CodeScores(NamedTuple):
    """A score for each code, and at each true place the bias of a report's score and its variance."""

    codes: Floats
    bias: Floats
    variance: Floats


def ridge_scores(
    channel: Floats, places: Floats, ridges: Sequence[float], reports: int
) -> Iterator[CodeScores]:
    """For each ridge r the scores of least squared bias + r variance / reports, over all places alike.

    `channel` has the law of the codes, a row for each place.
    """
    flat = channel.mean(axis=0)
    square, target = channel.T @ channel / len(channel), channel.T @ places / len(channel)
    for ridge in ridges:
        codes = np.asarray(np.linalg.solve(square + np.diag(flat * ridge / reports), target), np.float64)
        mean = channel @ codes
        yield CodeScores(codes, mean - places, channel @ codes**2 - mean**2)


_RIDGES = tuple(4.0**power for power in range(-6, 5))
_MOST_COUNT = 1 << 40  # more reports would not be decoded any better in floats


class CodeValues(NamedTuple):
    """What codes stand for on [-1, 1], the largest bias of that, and the largest variance."""

    codes: Floats
    bias: float
    variance: float


class BoundedOracle(ResolvedOracle):
    """Oracles around a mechanism that answers a place of the grid."""

    most_epsilon: ClassVar[Fraction] = MOST_DROP

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What makes the answers, calibrated to epsilon over the whole range."""

    @property
    @abstractmethod
    def log_weights(self) -> Floats:
        """The logarithm of the weight of each distance 0 .. cells."""

    @property
    def codes(self) -> int:
        return self.cells + 1

    @property
    def channel(self) -> Floats:
        place = np.arange(self.cells + 1)
        weights = np.exp(self.log_weights)[np.abs(place - place[:, None])]
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def encode(self, values: NDArray[Any], bits: Bits) -> Ints:
        return self.interval.places(type(self).__name__, self.mechanism.sample(values, bits))

    def loss(self, distance: Distance) -> PrivacyLoss:
        """Each changed value costs epsilon."""
        self.require(distance)
        changed = math.floor(distance.amount)
        rho = changed * self.epsilon**2 / 2
        return PrivacyLoss.pure(changed * self.epsilon, neighbours=distance.neighbours, rho=rho)

    def decoding(self, reports: int) -> CodeValues:
        """How the codes of so many reports are read for their mean."""
        count = check.integer(f"{type(self).__name__}.decoding", "reports", reports, 1, 1 << 62)
        return _decoding(self, min(count, _MOST_COUNT))

    def mean(self, counts: Counts, confidence: float = 0.95, *, population: bool = False) -> Estimate:
        """The mean of those who reported, and of the population that they are a random sample of.

        The interval allows for the largest bias that is left, and for rounding to the grid. Its variance is
        that of the decoded reports, with the spread of the values: more than the noise alone, so for those
        who reported it covers more often. The worst variance is mixed in as if it were one report more.
        """
        owner = f"{type(self).__name__}.mean"
        level = check.confidence(owner, confidence)
        check.boolean(owner, "population", population)
        known = self.known(counts)
        decoding = self.decoding(known.reports)
        shares = known.sums / known.reports
        mean = float(shares @ decoding.codes)
        spread = float(shares @ (decoding.codes - mean) ** 2)
        spread += decoding.variance / known.reports  # few reports mostly show too little of the spread
        variance = self.reach**2 * spread / known.reports
        value = np.asarray(self.middle + self.reach * mean)
        bias = self.reach * (decoding.bias + self.rounding)
        reach = deviations(level) * math.sqrt(variance) + bias
        return Estimate(value, np.asarray(variance), value - reach, value + reach, known.reports, level)

    def error(self, confidence: float = 0.95, reports: int = 1) -> float:
        """The half-width of an interval around the mean of those who report, whatever their values."""
        owner = f"{type(self).__name__}.error"
        level = check.confidence(owner, confidence)
        count = check.integer(owner, "reports", reports, 1, 1 << 62)
        decoding = self.decoding(count)
        noise = half_width(decoding.codes, decoding.variance, level, count)
        return self.reach * (noise + decoding.bias + self.rounding)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        return numeric_examples(cls, ((Fraction(1), 14, 0.0), (Fraction(3), 10, 0.5)))


@lru_cache(maxsize=64)
def _decoding(oracle: BoundedOracle, reports: int) -> CodeValues:
    """The ridge scores whose worst bias plus two worst deviations of a mean is least."""
    places = np.linspace(-1, 1, oracle.cells + 1)
    offers = (
        CodeValues(codes, float(np.abs(bias).max()), float(variance.max()))
        for codes, bias, variance in ridge_scores(oracle.channel, places, _RIDGES, reports)
    )
    return min(offers, key=lambda offer: offer.bias + 2 * math.sqrt(offer.variance / reports))


@dataclass(frozen=True, kw_only=True)
class BoundedLaplaceOracle(BoundedOracle):
    """`BoundedLaplace` over the whole range, with tally, mean and distribution.

    A changed value costs epsilon (docs/guarantees/bounded_laplace.md). Its answers are biased towards the
    middle of the range; estimates are not, but for a bias that their intervals hold.

    >>> round(BoundedLaplaceOracle(epsilon=1, lower=-1, upper=1).error(reports=10_000), 2)
    0.17
    """

    name: ClassVar[str] = "bounded-laplace-oracle/1"

    @property
    def mechanism(self) -> BoundedLaplace:
        return BoundedLaplace.calibrated(
            epsilon=self.epsilon, lower=self.lower, upper=self.upper, cells=self.cells
        )

    @property
    def log_weights(self) -> Floats:
        return np.linspace(0.0, -float(self.epsilon), self.cells + 1)


@dataclass(frozen=True, kw_only=True)
class BoundedStaircaseOracle(BoundedOracle):
    """`BoundedStaircase` over the whole range, with tally, mean and distribution.

    A changed value costs at most epsilon, by its exact level (docs/guarantees/bounded_staircase.md). Its mean
    can be read without bias only if the steps of 2 inner - 1 places divide the places, cells + 1, evenly; the
    longest such step is the default, and a third of the places the best.

    >>> BoundedStaircaseOracle(epsilon=1, lower=-1, upper=1, cells=128).inner
    22
    """

    name: ClassVar[str] = "bounded-staircase-oracle/1"
    inner: int | None = None

    def __post_init__(self) -> None:
        NumericOracle.__post_init__(self)
        inner = (_longest_step(self.cells + 1) + 1) // 2 if self.inner is None else self.inner
        inner = check.integer("BoundedStaircaseOracle", "inner", inner, 1, self.cells)
        object.__setattr__(self, "inner", inner)

    @property
    def mechanism(self) -> BoundedStaircase:
        return _staircase(self.epsilon, self.lower, self.upper, self.cells, self.inner)

    @property
    def log_weights(self) -> Floats:
        steps = self.mechanism
        distance = np.arange(self.cells + 1)
        return np.asarray(-float(steps.drop) * ((distance + steps.period - steps.inner) // steps.period))


def _longest_step(places: int) -> int:
    """The largest odd divisor below the number itself."""
    return max(step for step in range(1, places, 2) if places % step == 0)


@lru_cache(maxsize=64)
def _staircase(
    epsilon: Fraction, lower: Fraction, upper: Fraction, cells: int, inner: int | None
) -> BoundedStaircase:
    return BoundedStaircase.calibrated(epsilon=epsilon, lower=lower, upper=upper, cells=cells, inner=inner)
