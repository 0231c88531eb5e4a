"""How far apart the inputs of a mechanism are for two neighbouring data sets."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isqrt

from sourdine.core import check
from sourdine.core.serialization import added


class Norm(StrEnum):
    """How a change of the input is measured."""

    L1 = "L1"
    L2 = "L2"
    LINF = "Linf"
    HAMMING = "Hamming"


class Neighbours(StrEnum):
    """Which pairs of data sets count as neighbours."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
    ZERO_OUT = "zero-out"


@dataclass(frozen=True, kw_only=True)
class Distance:
    """A bound on the change of a mechanism's input between neighbours.

    `amount` is the bound itself in L1, Linf and Hamming, and its *square* in L2, so that the square root
    of 2 stays exact. `coordinates` is how many numbers of the input change at most, and `largest` by how much
    each of them does; None when nobody knows. Use the constructors:

    >>> Distance.l2(square=2, coordinates=2).amount
    Fraction(2, 1)
    """

    norm: Norm
    amount: Fraction
    coordinates: int | None = None
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    largest: Fraction | None = added(None)

    def __post_init__(self) -> None:
        check.member("Distance", "norm", self.norm, Norm)
        check.member("Distance", "neighbours", self.neighbours, Neighbours)
        check.keep(self, amount=check.positive("Distance", "amount", self.amount))
        if self.coordinates is not None:
            count = check.integer("Distance", "coordinates", self.coordinates, 1, 2**62)
            check.keep(self, coordinates=count)
        if self.largest is not None:
            check.keep(self, largest=check.positive("Distance", "largest", self.largest))

    @classmethod
    def l1(
        cls,
        value: Fraction | float,
        *,
        coordinates: int | None = None,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        largest: Fraction | int | None = None,
    ) -> "Distance":
        """A sum of absolute changes."""
        amount = check.positive("Distance", "value", value)
        return cls(
            norm=Norm.L1,
            amount=amount,
            coordinates=coordinates,
            neighbours=neighbours,
            largest=_exact(largest),
        )

    @classmethod
    def l2(
        cls,
        value: Fraction | float | None = None,
        *,
        square: Fraction | float | None = None,
        coordinates: int | None = None,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        largest: Fraction | int | None = None,
    ) -> "Distance":
        """A Euclidean length, or its square."""
        if (value is None) == (square is None):
            raise check.fail("Distance.l2", "value", "be given, or else 'square', not both", value)
        if square is None:
            amount = check.positive("Distance.l2", "value", value) ** 2
        else:
            amount = check.positive("Distance.l2", "square", square)
        return cls(
            norm=Norm.L2,
            amount=amount,
            coordinates=coordinates,
            neighbours=neighbours,
            largest=_exact(largest),
        )

    @classmethod
    def linf(cls, value: Fraction | float, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> "Distance":
        """The largest absolute change of any coordinate, however many change."""
        return cls(norm=Norm.LINF, amount=check.positive("Distance", "value", value), neighbours=neighbours)

    @classmethod
    def hamming(cls, value: int = 1, *, neighbours: Neighbours = Neighbours.REPLACE) -> "Distance":
        """How many answers change."""
        count = check.integer("Distance", "value", value, 1, 2**62)
        return cls(norm=Norm.HAMMING, amount=Fraction(count), neighbours=neighbours)


def _exact(largest: Fraction | int | None) -> Fraction | None:
    return None if largest is None else check.positive("Distance", "largest", largest)


def root_above(square: Fraction) -> Fraction:
    """A rational at least the square root, equal to it where it is rational."""
    numerator, denominator = square.numerator, square.denominator
    exact = Fraction(isqrt(numerator), isqrt(denominator))
    if exact**2 == square:
        return exact
    scale = 1 << 64
    return Fraction(isqrt(numerator * scale**2 // denominator) + 1, scale)
