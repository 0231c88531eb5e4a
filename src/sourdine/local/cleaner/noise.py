"""What is done to the place of a number, 0 .. last: noise inside the range, or right on average."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core.bits import Bits
from sourdine.core.digits import shorten_up
from sourdine.core.distance import Distance, Neighbours
from sourdine.frames.schema import MOST_STEPS
from sourdine.local.cleaner.correction import correction_of, pulled
from sourdine.local.hybrid import Hybrid
from sourdine.mechanisms import bounded_laplace, bounded_staircase
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase

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
        found = correction_of(self.mechanism, cells)
        return found.of(np.rint(places)), found.bias, found.least

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
