"""Laplace noise on integers, or on reals rounded to a declared grid."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sourdine.core import check, grid
from sourdine.core.composed import ComposedDistribution
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.distributions import GeometricLaw
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.mechanisms.additive import AdditiveNoise

LEAST_SCALE = Fraction(1, 1 << 40)
MOST_SCALE = Fraction(1 << 40)


@dataclass(frozen=True, kw_only=True)
class Laplace(AdditiveNoise):
    """Adds discrete Laplace noise to every number.

    A change of d in L1 costs epsilon = d / scale (Dwork and Roth 2014, theorem 3.6, with the two-sided
    geometric law of Ghosh, Roughgarden, Sundararajan 2009 on the grid). With a granularity g
    the values are reals, rounded to multiples of g first, and d grows by g for each number that changes.

    >>> Laplace(scale=2).loss(Distance.l1(1)).epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "laplace/1"
    norm: ClassVar[Norm] = Norm.L1
    scale: Fraction
    granularity: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check.positive("Laplace", "scale", self.scale))
        object.__setattr__(self, "granularity", grid.step("Laplace", self.granularity))
        if not LEAST_SCALE <= self._unit_scale <= MOST_SCALE:
            remedy = "Change the scale or the granularity."
            raise check.fail("Laplace", "scale", "lie between 2^-40 and 2^40 grid steps", self.scale, remedy)

    @property
    def _unit_scale(self) -> Fraction:
        return self.scale / (self.granularity or 1)

    def _make_noise(self) -> exact.Noise:
        return exact.laplace_noise(self._unit_scale)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        units = grid.distance_units(distance, self.granularity)
        return laplace_loss(units, self._unit_scale, distance, self.granularity)

    def error(self, confidence: float = 0.95) -> float:
        confidence = check.confidence("Laplace.error", confidence)
        return grid.error_from_units(laplace_quantile(self._unit_scale, confidence), self.granularity)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(mechanism=cls(scale=Fraction(3, 2)), value=0, neighbour=1, distance=Distance.l1(1))
        yield Example(
            mechanism=cls(scale=Fraction(10, 3)), value=7, neighbour=4, distance=Distance.l1(3, coordinates=1)
        )
        yield Example(
            mechanism=cls(scale=Fraction(1, 2), granularity=Fraction(1, 64)),
            value=0.0,
            neighbour=0.25,
            distance=Distance.l1(0.25, coordinates=1, neighbours=Neighbours.REPLACE),
            code=lambda answers: np.rint(answers * 64).astype(np.int64),
        )
        yield Example(
            mechanism=cls(scale=2),
            value=[0, 0],
            neighbour=[1, 1],
            distance=Distance.l1(2, coordinates=2),
            code=lambda answers: answers.sum(axis=-1),
        )


def laplace_loss(
    units: Fraction, scale: Fraction, distance: Distance, granularity: Fraction | None = None
) -> PrivacyLoss:
    """The loss of discrete Laplace noise for a change in L1 of at most `units` grid steps.

    When one number changes, or it is known by how much each does, laws are known, and compose. When the split
    is not, the law that dominates every epsilon-DP mechanism stands in.
    """
    whole = math.floor(units)
    epsilon = Fraction(whole) / scale
    count, steps = grid.cells_moved(distance, units, granularity)
    if not 0 < count * steps <= whole:
        return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours)
    one, each = GeometricLaw(steps, float(scale)), Fraction(steps) / scale
    return PrivacyLoss.symmetric(
        one if count == 1 else ComposedDistribution(((one, count),)),
        neighbours=distance.neighbours,
        epsilon=count * each,
        rho=count * each**2 / 2,
    )


def laplace_quantile(scale: Fraction, confidence: float) -> int:
    """The least k with P[|noise| <= k] >= confidence; P[|noise| > k] = 2 a^{k+1}/(1 + a)."""
    log_tail = math.log1p(-confidence) + math.log1p(math.exp(-1 / scale)) - math.log(2)
    return max(0, math.ceil(-log_tail * float(scale) * (1 + 1e-12) - 1 + 1e-12))
