"""Two-sided geometric noise renormalised on a declared range of integers."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, ClassVar, Self

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance, Norm
from sourdine.core.interval_arithmetic import above, ball, precision
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.tables import GeometricDecay, Truncated
from sourdine.mechanisms.laplace import MOST_SCALE

MOST_LAST = 1 << 30
LEAST_SCALE = Fraction(1, 1 << 10)
_PARTS = 1 << 32  # a calibrated scale is this many parts of the least conceivable one, or more


@dataclass(frozen=True, kw_only=True)
class TruncatedGeometric(Mechanism):
    """Answers y in lower .. upper with probability proportional to e^{-|y - x|/scale}.

    With N = upper - lower and a = e^{-1/scale}, a change of d units costs
    epsilon = d/scale + ln[(1 + a - a^{d+1} - a^{N-d+1})/(1 - a^{N+1})], more than d/scale unless d = N: the
    normaliser depends on the input (proof in docs/guarantees/truncated_geometric.md). Inputs are clamped.

    >>> TruncatedGeometric(scale=2, lower=0, upper=9).loss(Distance.l1(9, coordinates=1)).epsilon
    Fraction(9, 2)
    """

    name: ClassVar[str] = "truncated-geometric/1"
    norm: ClassVar[Norm] = Norm.L1
    scale: Fraction
    lower: int
    upper: int

    def __post_init__(self) -> None:
        owner = "TruncatedGeometric"
        scale = check.between(owner, "scale", self.scale, LEAST_SCALE, Fraction(MOST_SCALE))
        object.__setattr__(self, "scale", scale)
        for name in ("lower", "upper"):
            bound = check.integer(owner, name, getattr(self, name), -grid.LIMIT, grid.LIMIT)
            object.__setattr__(self, name, bound)
        if not 1 <= self.upper - self.lower <= MOST_LAST:
            raise check.fail(owner, "upper", f"be 1 to 2^30 above the lower bound {self.lower}", self.upper)

    @classmethod
    def calibrated(
        cls, *, epsilon: Fraction | float, lower: int, upper: int, sensitivity: int | None = None
    ) -> Self:
        """The least noise that costs at most epsilon for a change of `sensitivity`, or of the whole range."""
        widest = cls(scale=Fraction(1), lower=lower, upper=upper)
        change = widest._last if sensitivity is None else sensitivity
        units = check.integer(cls.__name__, "sensitivity", change, 1, grid.LIMIT)
        return cls(scale=least_scale(cls.__name__, epsilon, widest._last, units), lower=lower, upper=upper)

    @property
    def _last(self) -> int:
        return self.upper - self.lower

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        units = np.clip(grid.to_units("TruncatedGeometric", values, None), self.lower, self.upper)
        law = Truncated(GeometricDecay(self.scale), self._last)
        return law.sample(units.ravel() - self.lower, bits).reshape(units.shape) + self.lower

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        units = floor(distance.amount)
        count = units if distance.coordinates is None else distance.coordinates
        epsilon = truncated_level(self.scale, self._last, units, count)
        return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours)

    def error(self, confidence: float = 0.95) -> float:
        """For a value inside the range; one outside is clamped first."""
        confidence = check.confidence("TruncatedGeometric.error", confidence)
        return float(Truncated(GeometricDecay(self.scale), self._last).reach(confidence))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(scale=Fraction(7, 3), lower=0, upper=9),
            value=0,
            neighbour=1,
            distance=Distance.l1(1),
        )
        yield Example(
            mechanism=cls(scale=Fraction(10, 3), lower=-5, upper=20),
            value=-5,
            neighbour=-2,
            distance=Distance.l1(3, coordinates=1),
        )


def truncated_level(scale: Fraction, last: int, units: int, count: int) -> Fraction | float:
    """The epsilon when `count` numbers change by `units` steps together, each on a range of `last` steps.

    The cost of one number is concave in its change, so the worst split is the most even one. Over the whole
    range the normalisers cancel and the cost is exactly last/scale.
    """
    count = min(count, units)
    if units >= count * last:
        return count * last / scale
    each, more = divmod(units, count)
    with precision(256):
        return above(more * _level(scale, last, each + 1) + (count - more) * _level(scale, last, each))


def _level(scale: Fraction, last: int, units: int) -> arb:
    """What one number costs that moves by so many steps: as much as moving away from an end."""
    law = Truncated(GeometricDecay(scale), last)
    return ball(units / scale) + (law.certified_total(units) / law.certified_total(0)).log()


def least_scale(owner: str, epsilon: object, last: int, units: int) -> Fraction:
    """The least scale, to nine digits, at which a change of `units` of `last` steps costs at most epsilon.

    It lies between units/epsilon and, as the cost grows with the change, last/epsilon. The scale found has
    itself been seen to cost no more.
    """
    target = check.between(owner, "epsilon", epsilon, Fraction(1, 1 << 20), Fraction(64))
    if units >= last:
        return last / target
    least = units / target / _PARTS
    choices = range(_PARTS, 2 * _PARTS * last // units)
    place = bisect_left(
        choices, 1, key=lambda parts: truncated_level(parts * least, last, units, 1) <= target
    )
    return choices[place] * least
