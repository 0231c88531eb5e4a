"""What oracles share whose report has one bit a category."""

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance
from sourdine.core.laws import AtomLaw
from sourdine.core.loss import Loss
from sourdine.local.counts import Counts
from sourdine.local.oracle import BitReports, Bytes, FrequencyOracle
from sourdine.mechanisms.response import LEAST_EPSILON, MOST_CATEGORIES, MOST_EPSILON, response_loss


class BitwiseOracle(BitReports, FrequencyOracle):
    """Oracles whose report speaks for the categories whose bits are set."""

    def check_declared(self) -> None:
        """Bring epsilon and the number of categories into their exact form."""
        owner = type(self).__name__
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
        object.__setattr__(self, "epsilon", epsilon)
        categories = check.integer(owner, "categories", self.categories, 2, MOST_CATEGORIES)
        object.__setattr__(self, "categories", categories)

    @property
    def bits(self) -> int:
        return self.categories

    @property
    @abstractmethod
    def revealing(self) -> float:
        """How often a report speaks for the true category and not for a given other one."""

    @abstractmethod
    def encode(self, truth: NDArray[np.int64], bits: Bits) -> Bytes:
        """The reports of categories, all of them within 0 .. k-1."""

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        truth = np.clip(grid.to_units(type(self).__name__, values, None), 0, self.categories - 1)
        return self.encode(truth.reshape(-1), bits).reshape(*truth.shape, self.width)

    def supports(self, counts: Counts) -> NDArray[np.int64]:
        return counts.sums

    def loss(self, distance: Distance) -> Loss:
        """Only two bits have another law: +epsilon where they speak for the one category alone, -epsilon
        where for the other alone, else 0."""
        self.require(distance)
        epsilon, up = float(self.epsilon), self.revealing
        down = up * math.exp(-epsilon)
        same = max(0.0, 1 - up - down)  # floats may round it to less than nothing
        law = AtomLaw([epsilon, 0.0, -epsilon], [up, same, down], [down, same, up])
        changed = math.floor(distance.amount)
        return response_loss(distance, changed, changed * self.epsilon, law)
