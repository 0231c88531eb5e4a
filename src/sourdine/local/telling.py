"""What oracles share whose report tells two categories apart or does not tell at all."""

import math
from abc import abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance
from sourdine.core.laws import AtomLaw
from sourdine.core.loss import Loss
from sourdine.local.oracle import FrequencyOracle
from sourdine.mechanisms.response import LEAST_EPSILON, MOST_CATEGORIES, MOST_EPSILON, response_loss

Ints = NDArray[np.int64]


class TellingOracle(FrequencyOracle):
    """Oracles under which each report has one of two probabilities, e^epsilon apart."""

    def check_declared(self) -> None:
        """Bring epsilon and the number of categories into their exact form."""
        owner = type(self).__name__
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
        object.__setattr__(self, "epsilon", epsilon)
        categories = check.integer(owner, "categories", self.categories, 2, MOST_CATEGORIES)
        object.__setattr__(self, "categories", categories)

    @property
    @abstractmethod
    def revealing(self) -> float:
        """How often, at most, a report favours the true category and not another that it is told from."""

    def truth(self, values: ArrayLike) -> Ints:
        """Values as categories, all of them within 0 .. k-1."""
        return np.clip(grid.to_units(type(self).__name__, values, None), 0, self.categories - 1)

    def loss(self, distance: Distance) -> Loss:
        """One changed answer: +epsilon where the report favours it alone, -epsilon the other way, else 0."""
        self.require(distance)
        epsilon, up = float(self.epsilon), self.revealing
        down = up * math.exp(-epsilon)
        same = max(0.0, 1 - up - down)  # floats may round it to less than nothing
        law = AtomLaw([epsilon, 0.0, -epsilon], [up, same, down], [down, same, up])
        changed = math.floor(distance.amount)
        return response_loss(distance, changed, changed * self.epsilon, law)
