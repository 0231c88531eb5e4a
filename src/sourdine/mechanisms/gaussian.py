"""Gaussian noise on integers, or on reals rounded to a declared grid."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sourdine.core import check, grid
from sourdine.core.composed import ComposedDistribution
from sourdine.core.distance import Distance, Norm
from sourdine.core.distributions import DiscreteGaussianLaw, LossDistribution, RhoLaw, float_above
from sourdine.core.lazy import ndtri
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.mechanisms.additive import AdditiveNoise

LEAST_SIGMA = Fraction(1, 10)
MOST_SIGMA = Fraction(1 << 30)


@dataclass(frozen=True, kw_only=True)
class Gaussian(AdditiveNoise):
    """Adds discrete Gaussian noise to every number.

    A change of d in L2 costs rho = d^2 / (2 sigma^2) (Canonne, Kamath, Steinke 2020). With a
    granularity g the values are reals, rounded to multiples of g first, and d grows by g sqrt(c) when c
    numbers change.

    >>> Gaussian(sigma=2).loss(Distance.l2(1)).rho
    Fraction(1, 8)
    """

    name: ClassVar[str] = "gaussian/1"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Fraction
    granularity: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check.positive("Gaussian", "sigma", self.sigma))
        object.__setattr__(self, "granularity", grid.step("Gaussian", self.granularity))
        if not LEAST_SIGMA <= self._unit_sigma <= MOST_SIGMA:
            remedy = "Change sigma or the granularity."
            raise check.fail("Gaussian", "sigma", "lie between 1/10 and 2^30 grid steps", self.sigma, remedy)

    @property
    def _unit_sigma(self) -> Fraction:
        return self.sigma / (self.granularity or 1)

    def _make_noise(self) -> exact.Noise:
        return exact.gaussian_noise(self._unit_sigma**2)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        square = grid.distance_units(distance, self.granularity)
        rho = square / (2 * self._unit_sigma**2)
        return PrivacyLoss.symmetric(self._law(square, distance), neighbours=distance.neighbours, rho=rho)

    def _law(self, square: Fraction, distance: Distance) -> LossDistribution:
        """Whole numbers that are known to move by so many steps each have laws, which compose.

        Else it is the worst law that rho allows, and where they would have a larger rho together.
        """
        count, steps = grid.cells_moved(distance, square, self.granularity)
        if not 0 < count * steps**2 <= square:
            return RhoLaw(float_above(square / (2 * self._unit_sigma**2)))
        one = DiscreteGaussianLaw(steps, float(self._unit_sigma**2))
        return one if count == 1 else ComposedDistribution(((one, count),))

    def error(self, confidence: float = 0.95) -> float:
        confidence = check.confidence("Gaussian.error", confidence)
        return grid.error_from_units(gaussian_quantile(self._unit_sigma, confidence), self.granularity)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(mechanism=cls(sigma=Fraction(4, 3)), value=0, neighbour=1, distance=Distance.l2(1))
        yield Example(
            mechanism=cls(sigma=Fraction(10, 3)), value=0, neighbour=2, distance=Distance.l2(2, coordinates=1)
        )
        yield Example(
            mechanism=cls(sigma=Fraction(1, 2), granularity=Fraction(1, 32)),
            value=0.0,
            neighbour=0.25,
            distance=Distance.l2(0.25, coordinates=1),
            code=lambda answers: np.rint(answers * 32).astype(np.int64),
        )
        yield Example(
            mechanism=cls(sigma=2),
            value=[0, 0],
            neighbour=[1, 1],
            distance=Distance.l2(square=2, coordinates=2),
            code=lambda answers: answers.sum(axis=-1),
        )


def gaussian_quantile(sigma: Fraction, confidence: float) -> int:
    """A k with P[|noise| <= k] >= confidence: the least for a small sigma.

    Above 1000 a discrete mass is at most e^{1/(8 sigma^2)} times the normal mass of its unit interval, so
    one more step than the normal quantile covers.
    """
    if sigma > 1000:
        tail = (1 - confidence) * math.exp(-1 / 8e6) / 2
        return math.ceil(-float(ndtri(tail)) * float(sigma)) + 1
    reach = math.ceil(float(sigma) * 40) + 1
    weights = np.exp(-(np.arange(reach) ** 2) / (2 * float(sigma) ** 2))
    weights[1:] *= 2
    inside = np.cumsum(weights) / weights.sum()
    return int(np.searchsorted(inside, confidence * (1 + 1e-13)))
