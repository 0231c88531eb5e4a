"""Laws on 0, 1, 2, ... given by weights: what the table sampler needs to know of each.

A law states its first `count` weights, up to one common factor, as certified balls at the ambient
precision, and a bound on the sum of all the others.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from sourdine.core.certified import ball, exponential


class Weights(ABC):
    """A law known by its weights; frozen and hashable, so that its table is built once."""

    @property
    def size(self) -> int | None:
        """How many outcomes there are; None when they never end."""
        return None

    @abstractmethod
    def first(self, count: int) -> list[arb]:
        """The weights of outcomes 0 .. count - 1."""

    @abstractmethod
    def rest(self, count: int) -> arb:
        """At least the sum of the weights from outcome `count` on."""


class Finite(Weights):
    """A law with finitely many outcomes."""

    def rest(self, count: int) -> arb:
        return arb(0)


@dataclass(frozen=True)
class Terms(Finite):
    """Outcome i weighs factor_i * e^{exponent_i}."""

    factors: tuple[Fraction | int, ...]
    exponents: tuple[Fraction | int, ...]

    @property
    def size(self) -> int:
        return len(self.factors)

    def first(self, count: int) -> list[arb]:
        pairs = zip(self.factors[:count], self.exponents[:count], strict=True)
        return [ball(factor) * exponential(exponent) for factor, exponent in pairs]


@dataclass(frozen=True)
class GeometricDigit(Finite):
    """Outcome k weighs e^{-k/scale}, for k below the base: the last digit of a geometric variable."""

    scale: Fraction
    base: int

    @property
    def size(self) -> int:
        return self.base

    def first(self, count: int) -> list[arb]:
        return _powers(exponential(-1 / self.scale), count)


@dataclass(frozen=True)
class GeometricWeights(Weights):
    """Outcome k weighs e^{-k/scale}, without end."""

    scale: Fraction

    def first(self, count: int) -> list[arb]:
        return _powers(exponential(-1 / self.scale), count)

    def rest(self, count: int) -> arb:
        ratio = exponential(-1 / self.scale)
        return ratio**count / (1 - ratio)


@dataclass(frozen=True)
class LaplaceWeights(Weights):
    """Two-sided geometric in zigzag order 0, -1, 1, -2, 2, ...: outcome i weighs e^{-ceil(i/2)/scale}."""

    scale: Fraction

    def first(self, count: int) -> list[arb]:
        return _zigzag(_powers(exponential(-1 / self.scale), count // 2 + 1), count)

    def rest(self, count: int) -> arb:
        ratio = exponential(-1 / self.scale)
        return 2 * ratio ** ((count + 1) // 2) / (1 - ratio)


@dataclass(frozen=True)
class GaussianWeights(Weights):
    """Discrete Gaussian in zigzag order: outcome i weighs e^{-k^2/(2 variance)}, k = ceil(i/2)."""

    variance: Fraction

    def first(self, count: int) -> list[arb]:
        return _zigzag(_squares(self.variance, 1, count // 2 + 1), count)

    def rest(self, count: int) -> arb:
        return 2 * _square_tail(self.variance, 1, (count + 1) // 2)


@dataclass(frozen=True)
class GaussianBlocks(Weights):
    """The ceiling of a Gaussian over blocks: outcome b weighs e^{-(b width)^2/(2 variance)}."""

    variance: Fraction
    width: int

    def first(self, count: int) -> list[arb]:
        return _squares(self.variance, self.width, count)

    def rest(self, count: int) -> arb:
        return _square_tail(self.variance, self.width, count)


def _powers(ratio: arb, count: int) -> list[arb]:
    powers = [arb(1)]
    for _ in range(count - 1):
        powers.append(powers[-1] * ratio)
    return powers[:count]


def _zigzag(sides: list[arb], count: int) -> list[arb]:
    return [sides[(i + 1) // 2] for i in range(count)]


def _squares(variance: Fraction, width: int, count: int) -> list[arb]:
    rate = ball(Fraction(-(width**2)) / (2 * variance))
    return [(rate * (k * k)).exp() for k in range(count)]


def _square_tail(variance: Fraction, width: int, start: int) -> arb:
    """A bound on sum_{k >= start} e^{-(k width)^2/(2 variance)}: ratios of neighbours only fall."""
    rate = Fraction(width**2) / (2 * variance)
    return exponential(-rate * start**2) / (1 - exponential(-rate * (2 * start + 1)))
