"""Gaussian noise rounded to integers, or to a declared grid: it costs what the Gaussian costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sourdine.core import check, grid
from sourdine.core.distance import Distance, Norm, root_above
from sourdine.core.distributions import GaussianLaw, float_above
from sourdine.core.lazy import ndtri
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.samplers import Noise, RoundedNormal
from sourdine.mechanisms.additive import AdditiveNoise

LEAST_SIGMA = Fraction(8)
MOST_SIGMA = Fraction(1 << 30)


@dataclass(frozen=True, kw_only=True)
class RoundedGaussian(AdditiveNoise):
    """Adds the nearest integer to a normal number to every number.

    On integers, x + round(Z) = round(x + Z), so a change of d in L2 costs no more than under Gaussian noise
    that was not rounded, over however many numbers it is spread: rho = d^2 / (2 sigma^2) (Bun and Steinke
    2016, proposition 1.6) and a normal loss with mu = d/sigma (Dong, Roth, Su 2022, theorem 2.7). All that
    holds of Gaussian noise under sampling holds of it. With a granularity g the values are reals, rounded to
    multiples of g first, and d grows by g sqrt(c) when c numbers change.

    >>> RoundedGaussian(sigma=20).loss(Distance.l2(10)).rho
    Fraction(1, 8)
    """

    name: ClassVar[str] = "rounded-gaussian/1"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Fraction
    granularity: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check.positive("RoundedGaussian", "sigma", self.sigma))
        object.__setattr__(self, "granularity", grid.step("RoundedGaussian", self.granularity))
        if not LEAST_SIGMA <= self._unit_sigma <= MOST_SIGMA:
            remedy = "Change sigma or the granularity."
            raise check.fail(
                "RoundedGaussian", "sigma", "lie between 8 and 2^30 grid steps", self.sigma, remedy
            )

    @property
    def _unit_sigma(self) -> Fraction:
        return self.sigma / (self.granularity or 1)

    def _make_noise(self) -> Noise:
        return RoundedNormal(self._unit_sigma)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        square = grid.distance_units(distance, self.granularity) / self._unit_sigma**2
        law = GaussianLaw(float_above(root_above(square)))
        return PrivacyLoss.symmetric(law, neighbours=distance.neighbours, rho=square / 2)

    def error(self, confidence: float = 0.95) -> float:
        confidence = check.confidence("RoundedGaussian.error", confidence)
        reach = -float(ndtri((1 - confidence) / 2)) * float(self._unit_sigma)
        return grid.error_from_units(int(reach) + 1, self.granularity)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(sigma=Fraction(28, 3)),
            value=0,
            neighbour=7,
            distance=Distance.l2(7, coordinates=1),
        )
        yield Example(
            mechanism=cls(sigma=Fraction(1, 2), granularity=Fraction(1, 32)),
            value=0.0,
            neighbour=0.25,
            distance=Distance.l2(0.25, coordinates=1),
            code=lambda answers: np.rint(answers * 32).astype(np.int64),
        )
        yield Example(
            mechanism=cls(sigma=20),
            value=[0, 0],
            neighbour=[12, 12],
            distance=Distance.l2(square=288, coordinates=2),
            code=lambda answers: answers.sum(axis=-1),
        )
