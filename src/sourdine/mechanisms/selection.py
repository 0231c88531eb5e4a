"""What the mechanisms that choose among scored candidates have in common."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sourdine.core import check, select
from sourdine.core.distance import Distance, Norm
from sourdine.core.mechanism import Mechanism

LEAST_EPSILON = Fraction(1, 1 << 40)
MOST_EPSILON = Fraction(1 << 10)
LEAST_SENSITIVITY = Fraction(1, 1 << 100)
MOST_SENSITIVITY = Fraction(1 << 62)  # scores beyond it are clipped


@dataclass(frozen=True, kw_only=True)
class Selection(Mechanism):
    """A choice among candidates whose scores change by at most `sensitivity` between neighbours.

    `monotone` declares that all scores move the same way, whichever two neighbours are compared.
    """

    norm: ClassVar[Norm] = Norm.LINF
    epsilon: Fraction
    sensitivity: Fraction
    candidates: int
    monotone: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, MOST_EPSILON)
        sensitivity = check.between(
            owner, "sensitivity", self.sensitivity, LEAST_SENSITIVITY, MOST_SENSITIVITY
        )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(
            self, "candidates", check.integer(owner, "candidates", self.candidates, 1, select.MOST_CANDIDATES)
        )
        check.boolean(owner, "monotone", self.monotone)

    @property
    def rate(self) -> Fraction:
        """What one unit of score adds to the logarithm of a weight."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def _epsilon_at(self, distance: Distance) -> Fraction:
        """Epsilon when scores change by at most this distance."""
        self.require(distance)
        return self.epsilon * distance.amount / self.sensitivity

    def _gap(self, odds: float) -> float:
        """The gap at which a weight is 1/odds, rounded up; 0 when the odds are at most 1."""
        return math.log(odds) / float(self.rate) * (1 + 1e-12) if odds > 1 else 0.0
