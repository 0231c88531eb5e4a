"""What every method for quantiles shares: it draws places of a grid for values seen through their ranks."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.mechanism import Mechanism
from sourdine.frames.ranks import RankSource
from sourdine.tables.quantiles.levels import check_levels
from sourdine.tables.quantiles.values import Values, ranked

MOST_PLACES = 1 << 52
EPSILONS = (Fraction(1, 1 << 20), Fraction(1 << 20))


@dataclass(frozen=True, kw_only=True)
class QuantileMethod(Mechanism):
    """Quantiles at some levels, as places 0 .. places - 1 of a grid.

    The unit is a value; neighbours have one value replaced, or one more or less. Distances count the values
    that change. Where it is made for values that come and go, one replaced is one that goes and one that
    comes.
    """

    norm: ClassVar[Norm] = Norm.HAMMING
    epsilon: Fraction
    levels: tuple[Fraction, ...]
    places: int
    neighbours: Neighbours = Neighbours.REPLACE

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "epsilon", check.between(name, "epsilon", self.epsilon, *EPSILONS))
        object.__setattr__(self, "levels", check_levels(name, self.levels))
        object.__setattr__(self, "places", check.integer(name, "places", self.places, 1, MOST_PLACES))
        check.member(name, "neighbours", self.neighbours, Neighbours)
        if self.neighbours is Neighbours.ZERO_OUT:
            must = "be replace or add-remove"
            raise check.fail(name, "neighbours", must, str(self.neighbours), "Quantiles have no other.")

    @abstractmethod
    def draw(self, source: RankSource, count: int, bits: Bits = SYSTEM) -> NDArray[np.int64]:
        """So many independent answers for the same values: one row an answer, one column a level."""

    def sample(self, values: Values, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The places of the quantiles of a RankSource, or of places along the last axis of an array.

        They come in rising order, which is post-processing where the method does not see to it.
        """
        found = ranked(values, self.places, lambda source, count: self.draw(source, count, bits))
        return np.sort(found, axis=-1)

    def spent(self, distance: Distance) -> Fraction:
        """The epsilon of a distance; one for neighbours that it was not made for is refused."""
        self.require(distance)
        if distance.neighbours is self.neighbours:
            return self.epsilon * distance.amount
        if distance.neighbours is Neighbours.REPLACE:
            return self.epsilon * distance.amount * 2
        must = f"be those it was made for, {self.neighbours}"
        raise check.fail(type(self).__name__, "neighbours", must, str(distance.neighbours))

    @classmethod
    def rho_at_one(cls, levels: int) -> Fraction:
        """The rho of epsilon 1 for so many levels; that of another epsilon grows with its square."""
        return Fraction(1, 2)

    def ranks_off(self, confidence: float = 0.95) -> float | None:
        """How many ranks any answer is off at most, all at once, whatever the values; None if not known.

        A place is off by as many values as lie between it and a quantile, none of those equal to either.
        Where answers are coarser than the grid, it is so of some place within `near` steps of each.
        """
        return self.error(confidence)

    @property
    def near(self) -> int:
        """How many steps from an answer the place may lie that `ranks_off` is about."""
        return 0
