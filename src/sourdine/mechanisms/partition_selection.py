"""Keys that nobody declared, shown only where enough units hold them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

from flint import arb
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core import interval_arithmetic as balls
from sourdine.core.distance import Distance, Neighbours, Norm, root_above
from sourdine.core.distributions import (
    DiscreteGaussianLaw,
    GeometricLaw,
    LossDistribution,
    RhoLaw,
    float_above,
    pure_law,
)
from sourdine.core.interval_arithmetic import any_of, gaussian_tail, laplace_tail
from sourdine.core.loss import LeakyLaw, PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms.gaussian import LEAST_SIGMA, MOST_SIGMA, gaussian_quantile
from sourdine.mechanisms.laplace import LEAST_SCALE, MOST_SCALE, laplace_quantile
from sourdine.mechanisms.sparse_vector import bits_to_integer

MOST_KEYS = 1 << 30


class KeyNoise(StrEnum):
    """Which noise the counts of units get before they meet the threshold."""

    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"


@dataclass(frozen=True, kw_only=True)
class PartitionThreshold(Mechanism):
    """Shows the keys whose count of units, with noise, reaches a threshold.

    The counts are whole numbers, one a key that holds somebody; a count of 0 is a key that is not there, and
    is never shown. One unit adds 1 to at most `keys` counts. Then the answer is delta-approximately private,
    with delta = 1 - (1 - P[1 + noise >= threshold])^keys, and epsilon = keys/scale with discrete Laplace
    noise, rho = keys/(2 scale^2) with discrete Gaussian noise, whose sigma is `scale`. Replacement doubles
    epsilon and rho, and leaves delta. A distance of t in Linf means t such units (Korolova, Kenthapadi,
    Mishra, Ntoulas 2009 for Laplace noise; docs/guarantees/key_threshold.md proves all of it).

    >>> mechanism = PartitionThreshold.within(epsilon=1, delta=1e-6, keys=2)
    >>> mechanism.threshold, mechanism.loss(Distance.linf(1)).epsilon
    (30, Fraction(1, 1))
    """

    name: ClassVar[str] = "partition-threshold/1"
    norm: ClassVar[Norm] = Norm.LINF
    noise: KeyNoise
    scale: Fraction
    threshold: int
    keys: int = 1

    def __post_init__(self) -> None:
        check.member("PartitionThreshold", "noise", self.noise, KeyNoise)
        least, most = _scales(self.noise)
        scale = check.between("PartitionThreshold", "scale", self.scale, least, most)
        object.__setattr__(self, "scale", scale)
        threshold = check.integer("PartitionThreshold", "threshold", self.threshold, 1, grid.LIMIT)
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "keys", check.integer("PartitionThreshold", "keys", self.keys, 1, MOST_KEYS))

    @classmethod
    def within(
        cls,
        *,
        epsilon: Fraction | float | None = None,
        rho: Fraction | float | None = None,
        delta: Fraction | float,
        keys: int = 1,
        minimum: int = 1,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> "PartitionThreshold":
        """The least noise and the least threshold that keep to an epsilon (or a rho) and a delta.

        An epsilon gives Laplace noise and a rho Gaussian noise. `minimum` raises the threshold to at least
        that many units, and never lowers it: a larger group is asked for than privacy needs.
        """
        owner = "PartitionThreshold.within"
        if (epsilon is None) == (rho is None):
            raise check.fail(owner, "epsilon", "be given, or else 'rho', not both", epsilon)
        wanted = check.inside(owner, "delta", delta, 0, 1)
        keys = check.integer(owner, "keys", keys, 1, MOST_KEYS)
        least = check.integer(owner, "minimum", minimum, 1, grid.LIMIT)
        moved = keys * _units(neighbours)
        if epsilon is not None:
            noise = KeyNoise.LAPLACE
            scale = moved / check.positive(owner, "epsilon", epsilon)
        else:
            noise = KeyNoise.GAUSSIAN
            scale = root_above(moved / (2 * check.positive(owner, "rho", rho)))
        scale = max(scale, _scales(noise)[0])
        low, high = 1, 2  # at 1 a key of one unit is shown as often as not
        while cls(noise=noise, scale=scale, threshold=high, keys=keys).leak() > wanted:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            enough = cls(noise=noise, scale=scale, threshold=middle, keys=keys).leak() <= wanted
            low, high = (low, middle) if enough else (middle, high)
        return cls(noise=noise, scale=scale, threshold=max(high, least), keys=keys)

    def leak(self, units: int = 1) -> float:
        """At least the probability that a key is shown which only these units hold, rounded up.

        One unit holds at most `keys` of them, each with a count of 1. Several may share keys, so that each
        count is at most their number, and there are at most that many times `keys`.
        """
        units = check.integer("PartitionThreshold.leak", "units", units, 1, 1 << 62)
        return min(1.0, balls.above(any_of(self._tail(self.threshold - units), units * self.keys)))

    def _tail(self, start: int) -> arb:
        """At least the probability that the noise reaches `start`."""
        if self.noise is KeyNoise.LAPLACE:
            return laplace_tail(self.scale, start)
        return gaussian_tail(self.scale**2, start)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """Which keys are shown: a boolean for each count."""
        counts = grid.to_units("PartitionThreshold", values, None)
        if self.noise is KeyNoise.LAPLACE:
            noise = exact.laplace(self.scale, counts.size, bits)
        else:
            noise = exact.gaussian(self.scale**2, counts.size, bits)
        shown: NDArray[Any] = grid.plus(counts, noise.reshape(counts.shape)) >= self.threshold
        return shown & (counts > 0)

    def loss(self, distance: Distance) -> PrivacyLoss:
        """What the noise costs on the counts that others share, with a leak of the keys that nobody does."""
        self.require(distance)
        units = math.floor(distance.amount)
        if units == 0:
            return PrivacyLoss.pure(Fraction(0), neighbours=distance.neighbours)
        moved = self.keys * _units(distance.neighbours)
        epsilon: Fraction | float = moved * units / self.scale
        rho = moved * units**2 / (2 * self.scale**2)
        if self.noise is KeyNoise.GAUSSIAN:
            epsilon = math.inf
        delta = self.leak(units)
        law = LeakyLaw(self._noise_law(moved, units), delta)
        return PrivacyLoss.symmetric(
            law, neighbours=distance.neighbours, epsilon=epsilon, rho=rho, delta=delta
        )

    def _noise_law(self, moved: int, units: int) -> LossDistribution:
        """One count that moves by 1 has a known law; else the worst that epsilon or rho allows."""
        laplace = self.noise is KeyNoise.LAPLACE
        if moved == units == 1:
            scale = float(self.scale)
            return GeometricLaw(1, scale) if laplace else DiscreteGaussianLaw(1, float(self.scale**2))
        if laplace:
            return pure_law(float_above(moved * units / self.scale))
        return RhoLaw(float_above(moved * units**2 / (2 * self.scale**2)))

    def error(self, confidence: float = 0.95) -> float:
        """How far a count may lie from the threshold and its key still be decided the other way."""
        confidence = check.confidence("PartitionThreshold.error", confidence)
        if self.noise is KeyNoise.LAPLACE:
            return float(laplace_quantile(self.scale, confidence))
        return float(gaussian_quantile(self.scale, confidence))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        """A key that one unit holds alone, several such, and keys that others hold, too."""
        yield Example(
            mechanism=cls(noise=KeyNoise.LAPLACE, scale=Fraction(3, 2), threshold=5),
            value=[1],
            neighbour=[0],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )
        yield Example(
            mechanism=cls(noise=KeyNoise.LAPLACE, scale=Fraction(3), threshold=9, keys=3),
            value=[1, 1, 1],
            neighbour=[0, 0, 0],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )
        yield Example(
            mechanism=cls(noise=KeyNoise.LAPLACE, scale=Fraction(3), threshold=14, keys=2),
            value=[13, 1],
            neighbour=[12, 0],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )
        yield Example(
            mechanism=cls(noise=KeyNoise.GAUSSIAN, scale=Fraction(2), threshold=12, keys=2),
            value=[10, 10],
            neighbour=[9, 9],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )
        yield Example(
            mechanism=cls(noise=KeyNoise.LAPLACE, scale=Fraction(2), threshold=12, keys=2),
            value=[11, 11, 10, 10],
            neighbour=[10, 10, 11, 11],
            distance=Distance.linf(1, neighbours=Neighbours.REPLACE),
            code=bits_to_integer,
        )


def _scales(noise: KeyNoise) -> tuple[Fraction, Fraction]:
    return (LEAST_SCALE, MOST_SCALE) if noise is KeyNoise.LAPLACE else (LEAST_SIGMA, MOST_SIGMA)


def _units(neighbours: Neighbours) -> int:
    """How many units differ between neighbours: one that goes and one that comes are two."""
    check.member("PartitionThreshold", "neighbours", neighbours, Neighbours)
    return 2 if neighbours is Neighbours.REPLACE else 1
