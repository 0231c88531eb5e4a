"""Integers and reals: noise on the declared range, and a coin of its own for what is missing.

The noise stays inside the range, or is right on average.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import shorten_up
from sourdine.core.interval_arithmetic import above, ball, exponential, precision
from sourdine.core.random.bits import Bits
from sourdine.frames.expressions.tree import MOST_STEPS
from sourdine.frames.quality import cell_place, number_in
from sourdine.frames.schema import Integer, Number, Real, span
from sourdine.frames.source import Source
from sourdine.local.cleaner.cells import Cleaned, CleanedCells, Gap
from sourdine.local.cleaner.correction import correction_of, pulled
from sourdine.local.estimate import Estimate, deviations
from sourdine.local.numeric.piecewise import Hybrid
from sourdine.mechanisms import bounded_laplace, bounded_staircase
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase
from sourdine.mechanisms.randomized_response import Channel, KaryResponse

Floats = NDArray[np.float64]


class Method(StrEnum):
    """What is done to a number."""

    LAPLACE = "laplace"
    STAIRCASE = "staircase"
    UNBIASED = "unbiased"


@dataclass(frozen=True)
class PlaceNoise(ABC):
    """Noise for places that may change at will, at a cost of epsilon."""

    epsilon: Fraction
    last: int

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called."""

    @property
    @abstractmethod
    def whole(self) -> bool:
        """Whether what comes out are places again."""

    @property
    @abstractmethod
    def spend(self) -> Spend:
        """What one cell costs."""

    @abstractmethod
    def sample(self, places: NDArray[np.int64], bits: Bits) -> NDArray[Any]:
        """Noisy places."""

    @abstractmethod
    def scores(self, places: Floats, cells: int) -> tuple[Floats, float, float]:
        """Numbers whose mean is that of the true places of so many cells, the largest bias of that, and the
        least variance that the noise gives one of them."""

    @abstractmethod
    def words(self, step: float) -> str:
        """What one noisy cell is worth, for places that are a step apart."""

    @abstractmethod
    def remedy(self, lower: float, upper: float) -> str:
        """How to read statistics off noisy cells between two bounds."""


class BoundedNoise(PlaceNoise):
    """Noise that stays in the range and on its grid, and so pulls everything towards the middle."""

    @property
    @abstractmethod
    def mechanism(self) -> BoundedLaplace | BoundedStaircase:
        """What a place goes through."""

    @property
    def whole(self) -> bool:
        return True

    @property
    def spend(self) -> Spend:
        change = Distance.l1(self.last, coordinates=1, neighbours=Neighbours.REPLACE)
        return Spend(mechanism=self.mechanism, distance=change)

    def sample(self, places: NDArray[np.int64], bits: Bits) -> NDArray[Any]:
        drawn: NDArray[np.int64] = np.rint(self.mechanism.sample(places, bits)).astype(np.int64)
        return drawn

    def scores(self, places: Floats, cells: int) -> tuple[Floats, float, float]:
        correction = correction_of(self.mechanism, cells)
        return correction.of(np.rint(places)), correction.bias, correction.least

    def words(self, step: float) -> str:
        return f"within {shorten_up(self.mechanism.error(0.95) * step, 3)} of the truth, 95 % of the time"

    def remedy(self, lower: float, upper: float) -> str:
        near = lower + pulled(self.mechanism) * (upper - lower)
        return (
            f"Cleaned cells lie too near to the middle: people at {lower:g} have cleaned cells of mean "
            f"{near:.3g}, people at {upper:g} of mean {lower + upper - near:.3g}. Use the corrected mean."
        )


class LaplaceNoise(BoundedNoise):
    """Bounded Laplace noise over the whole range."""

    @property
    def name(self) -> str:
        return "bounded Laplace"

    @cached_property
    def mechanism(self) -> BoundedLaplace:
        return BoundedLaplace.calibrated(epsilon=self.epsilon, lower=0, upper=self.last, cells=self.last)


class StaircaseNoise(BoundedNoise):
    """Bounded staircase noise, calibrated to its exact level."""

    @property
    def name(self) -> str:
        return "bounded staircase"

    @cached_property
    def mechanism(self) -> BoundedStaircase:
        return BoundedStaircase.calibrated(epsilon=self.epsilon, lower=0, upper=self.last, cells=self.last)


class UnbiasedNoise(PlaceNoise):
    """Reports of the hybrid oracle, decoded: far outside the range at times, and right on average."""

    @property
    def name(self) -> str:
        return "hybrid, unbiased"

    @property
    def whole(self) -> bool:
        return False

    @cached_property
    def oracle(self) -> Hybrid:
        """What a place goes through."""
        return Hybrid(epsilon=self.epsilon, lower=Fraction(0), upper=Fraction(self.last))

    @property
    def spend(self) -> Spend:
        return self.oracle.spend

    def sample(self, places: NDArray[np.int64], bits: Bits) -> NDArray[Any]:
        decoded = self.oracle.middle + self.oracle.reach * self.oracle.decoded
        drawn: Floats = decoded[self.oracle.sample(places, bits)]
        return drawn

    def scores(self, places: Floats, cells: int) -> tuple[Floats, float, float]:
        constant, square = self.oracle.noise
        return places, 0.0, (constant + min(square, 0.0)) * self.oracle.reach**2

    def words(self, step: float) -> str:
        wide = math.sqrt(self.oracle.worst_variance) * step
        return f"right on average, with a standard deviation of at most {shorten_up(wide, 3)}"

    def remedy(self, lower: float, upper: float) -> str:
        return (
            "Means of cleaned values are right as they are, and so are covariances with other columns. "
            f"Single cells may lie far outside {lower:g} to {upper:g}. Variances hold that of the noise."
        )


NOISES: dict[Method, type[PlaceNoise]] = {
    Method.LAPLACE: LaplaceNoise,
    Method.STAIRCASE: StaircaseNoise,
    Method.UNBIASED: UnbiasedNoise,
}
MOST_PLACES = {
    Method.LAPLACE: bounded_laplace.MOST_CELLS,
    Method.STAIRCASE: bounded_staircase.MOST_CELLS,
    Method.UNBIASED: MOST_STEPS + 1,
}


LEAST_EPSILON, MOST_EPSILON = Fraction(1, 1 << 16), Fraction(64)
_STEPS = 16  # a real without a declared grid is cleaned on one this many times as coarse
_DIGITS = 7  # of the range, that a real number is shown with where it lies on no grid
_SURE = Channel(1.0, 0.0)
_PRECISION = 256
_FINE = 10**9  # prices are rounded up to so many parts of one


def _weight(rate: Fraction, x: int, last: int) -> arb:
    """The sum of e^{-rate |y - x|} over places y from 0 to last, but for a factor that all x share."""
    return 1 + exponential(-rate) - exponential(-rate * (x + 1)) - exponential(-rate * (last - x + 1))


def gridded(column: Number) -> Number:
    """The column with the grid it is cleaned on: noise is as wide as the range, so fine steps are in vain."""
    if isinstance(column, Integer) or column.granularity is not None:
        return column
    return column.model_copy(update={"granularity": float(column.step * _STEPS)})


@dataclass(frozen=True, kw_only=True)
class NumberCells(CleanedCells):
    """Cells between two bounds.

    Where nothing takes the place of a missing cell, a `share` of epsilon pays for a coin that tells, truly or
    not, whether the cell is missing, and the rest for its value; that of a missing cell is the middle of the
    range, with noise as for any other. A cell whose coin says missing is shown as missing.
    """

    column: Integer | Real
    kind: Method
    share: Fraction

    def __post_init__(self) -> None:
        owner = f"the column '{self.name}'"
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, MOST_EPSILON)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "share", check.inside(owner, "share for missing", self.share, 0, 1))
        check.member(owner, "method", self.kind, Method)
        check.member(owner, "gap", self.gap, Gap)
        if self.last > MOST_PLACES[self.kind]:
            raise InvalidParameter(
                f"The column '{self.name}' has {self.last:,} steps between its bounds, and {self.method} "
                f"noise takes at most {MOST_PLACES[self.kind]:,}. Declare a coarser granularity."
            )
        _ = self.spends  # mechanisms refuse what they cannot do now, and not once the table was read

    @property
    def method(self) -> str:
        return self.noise.name

    @property
    def last(self) -> int:
        """The place of the upper bound; that of the lower one is 0."""
        low, high = span(self.column)
        return high - low

    @property
    def keeps_missing(self) -> bool:
        return self.column.missing == "drop"

    @property
    def labels(self) -> None:
        return None

    @cached_property
    def coin(self) -> KaryResponse | None:
        """What tells whether a cell is missing."""
        return KaryResponse(epsilon=self.epsilon * self.share, categories=2) if self.keeps_missing else None

    @cached_property
    def noise(self) -> PlaceNoise:
        """What the value goes through."""
        epsilon = self.epsilon * (1 - self.share) if self.keeps_missing else self.epsilon
        return NOISES[self.kind](epsilon, self.last)

    @property
    def spends(self) -> tuple[Spend, ...]:
        coins = [] if self.coin is None else [Spend(mechanism=self.coin, distance=Distance.hamming())]
        return (*coins, self.noise.spend)

    @cached_property
    def price(self) -> Fraction:
        """With bounded Laplace noise and a coin, the largest log-ratio of two cells, rounded up.

        Two values differ by their noise alone, since the coin tells the same of both. A value and a missing
        cell differ by the coin and by the noise between that value and the middle, which is at most half the
        range away (docs/guarantees/cleaner.md).
        """
        if self.coin is None or not isinstance(self.noise, LaplaceNoise):
            return self.epsilon
        middle, rate = self.last // 2, 1 / self.noise.mechanism.scale
        with precision(_PRECISION):
            total = {x: _weight(rate, x, self.last) for x in (0, middle, self.last)}
            apart = max(
                above(ball(abs(x - middle) * rate) + (total[middle] / total[x]).log()) for x in (0, self.last)
            )
        worst = max(self.last * rate, self.coin.epsilon + Fraction(apart))
        return min(self.epsilon, Fraction(math.ceil(worst * _FINE), _FINE))

    @property
    def charges(self) -> tuple[Spend, ...]:
        """Where the price is below epsilon, the randomized response at that price, which dominates a cell."""
        if self.price == self.epsilon:
            return self.spends
        return (Spend(mechanism=KaryResponse(epsilon=self.price, categories=2), distance=Distance.hamming()),)

    def read(self, source: Source) -> str:
        return cell_place(source, self.name)

    def sample(self, cells: NDArray[np.int64], bits: Bits) -> Cleaned:
        absent = cells < 0
        values = self.at(self.noise.sample(np.where(absent, self.last // 2, cells), bits))
        if self.coin is None:
            return np.ma.MaskedArray(values, mask=np.zeros(len(values), np.bool_))
        hidden = self.coin.sample(absent.astype(np.int64), bits) > 0
        return np.ma.MaskedArray(np.where(hidden, values.dtype.type(0), values), mask=hidden)

    @property
    def places(self) -> int:
        return self.last + 1

    def at(self, places: NDArray[Any]) -> NDArray[Any]:
        """Places as values, with no more digits than the grid has, or than the range is worth."""
        shifted, step = places + span(self.column)[0], self.column.step
        if not self.noise.whole:
            digits = _DIGITS - 1 - math.floor(math.log10(self.last * step))
            return np.round(shifted * float(step), digits)
        if isinstance(self.column, Integer):
            return shifted
        most = max(abs(end) for end in span(self.column))
        if most * step.numerator < 1 << 53 and step.denominator < 1 << 53:  # exact but for one division
            return shifted * float(step.numerator) / float(step.denominator)
        return shifted * float(step)

    def reread(self, source: Source) -> str:
        return number_in(self.name)

    def restored(self, cells: Cleaned) -> Cleaned:
        values = np.ma.filled(np.ma.asarray(cells, np.float64), np.nan)
        lost = ~np.isfinite(values)
        return np.ma.MaskedArray(np.where(lost, 0.0, values), mask=lost)

    def estimate(self, cells: Cleaned, confidence: float) -> Estimate:
        """The mean of the true cells that are not missing.

        With scores h of mean x but for a bias below B, and a coin that says present with probability p for a
        cell that is and q for one that is not, the sum of h - c over what is shown has mean p times the sum
        of x - c over what is there, c being the middle of the range. Both sums and their ratio are estimated,
        the variance of the ratio to first order, and B widens the interval. Few cells may look alike by
        chance, so the variance is taken to be no less than noise alone makes it.
        """
        n = len(cells)
        shown = ~np.ma.getmaskarray(cells)
        p, q = self.coin.channel if self.coin is not None else _SURE
        there = (float(shown.mean()) - q) / (p - q) if n else 0.0
        if n == 0 or there <= 2 * math.sqrt(p * (1 - p) / n) / (p - q):
            return self._unknown(n, confidence)
        low, step, middle = span(self.column)[0], float(self.column.step), self.last // 2
        scores, bias, least = self.noise.scores(cells.filled(0) / step - low, n)
        terms = np.where(shown, scores - middle, 0.0) / p
        mean = terms.mean() / there
        spread = max((terms - mean * (shown - q) / (p - q)).var(), least * there / p) / n / there**2
        bias *= 1 + q * max(0.0, 1 - there) / (p * there)
        value, reach = (
            (mean + middle + low) * step,
            (deviations(confidence) * math.sqrt(spread) + bias) * step,
        )
        return Estimate(
            np.array([value]),
            np.array([spread * step**2]),
            np.array([value - reach]),
            np.array([value + reach]),
            n,
            confidence,
        )

    def _unknown(self, n: int, confidence: float) -> Estimate:
        """The whole range, where nothing more can be said."""
        ends = np.array([float(self.column.lower), float(self.column.upper)])
        middle = ends.mean(keepdims=True)
        return Estimate(middle, (ends[1:] - middle) ** 2, ends[:1], ends[1:], n, confidence)

    def words(self) -> str:
        return self.noise.words(float(self.column.step))

    def remedy(self) -> str:
        advice = self.noise.remedy(float(self.column.lower), float(self.column.upper))
        if self.keeps_missing:
            advice += (
                " Some cells that are shown were missing, and stand for the middle: use the corrected mean."
            )
        return advice
