"""What an accountant is: a monoid over privacy losses, read off at a delta as a bracket of proven bounds.

Floats in it are rounded so that they never understate a cost.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from sourdine.core import check
from sourdine.core.display import Viewable
from sourdine.core.distance import Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.format import shorten_down, shorten_up
from sourdine.core.loss import PrivacyLoss


@dataclass(frozen=True)
class Bracket(Viewable):
    """Proven bounds on one number; `upper` is the claim.

    >>> Bracket(0.61, 0.62).width
    0.01
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How much is left open."""
        return round(self.upper - self.lower, 15) if self.upper != self.lower else 0.0

    def __str__(self) -> str:
        """Both ends in a few digits, rounded outwards."""
        return f"{shorten_down(self.lower)} to {shorten_up(self.upper)}"

    def __contains__(self, number: float) -> bool:
        return self.lower <= number <= self.upper


C = TypeVar("C")


class Accountant(ABC, Generic[C]):
    """Adds up losses. `C` is what it keeps of them; it must be immutable and carry its neighbour relation."""

    @abstractmethod
    def lift(self, loss: PrivacyLoss) -> C:
        """What is kept of one loss."""

    @abstractmethod
    def join(self, first: C, second: C) -> C:
        """Both together; unlike neighbour relations are refused."""

    def repeat(self, cost: C, count: int) -> C:
        """The same loss paid `count` times, by doubling: no accountant can forget the count."""
        count = check.integer(type(self).__name__, "count", count, 1, 2**62)
        if count == 1:
            return cost
        half = self.repeat(cost, count // 2)
        twice = self.join(half, half)
        return self.join(twice, cost) if count % 2 else twice

    @abstractmethod
    def epsilon(self, cost: C, delta: float) -> Bracket:
        """The least epsilon at this delta, as proven bounds."""

    @abstractmethod
    def delta(self, cost: C, epsilon: float) -> Bracket:
        """The least delta at this epsilon, as proven bounds."""


def same_relation(first: Neighbours, second: Neighbours) -> Neighbours:
    """The relation both speak of, or a refusal."""
    if first is not second:
        raise UnsupportedLoss(
            f"One loss is stated for {first} neighbours and the other for {second}. "
            "Their sum would protect against neither. State both for the same relation."
        )
    return first


def without_delta(owner: str, loss: PrivacyLoss, remedy: str) -> None:
    """Refuse a loss whose epsilon and rho hold only outside an event: what it becomes here is not proven."""
    if loss.delta:
        raise UnsupportedLoss(
            f"This loss has a delta of its own, as where keys are chosen privately, and {owner} is not "
            f"proven for such. {remedy}"
        )


def left_of(delta: float, spent: Fraction) -> float:
    """What is left of a delta once losses spent theirs, rounded down; negative where that is too little."""
    left = Fraction(delta) - spent
    nearest = float(left)
    return nearest if nearest <= left else math.nextafter(nearest, -math.inf)


def check_delta(owner: str, delta: float) -> float:
    """A delta in [0, 1)."""
    exact = check.rational(owner, "delta", delta)
    if not 0 <= exact < 1:
        raise check.fail(owner, "delta", "be at least 0 and below 1", delta, "A common choice is 1e-6.")
    return float(exact)


def exactly(number: Fraction | float) -> Fraction | float:
    """A finite number as the fraction it is, so that sums and products of it are exact."""
    return number if number == math.inf else Fraction(number)


def with_margin(value: float, size: float = 1.0) -> float:
    """A value pushed up by more than a short computation with numbers of this size can err."""
    return value + 2.0**-44 * (abs(value) + size)
