"""A mechanism as somebody outside this package would write it, and register it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting import Spend
from sourdine.core.distance import Distance, Norm
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.serialization import register
from sourdine.mechanisms import Geometric

NAME = "tests.example/rounded-count/1"


@dataclass(frozen=True, kw_only=True)
class Unregistered(Mechanism):
    """Counts with geometric noise, rounded to a step afterwards."""

    norm: ClassVar[Norm] = Norm.L1
    scale: Fraction
    step: int = 10

    @property
    def noise(self) -> Geometric:
        return Geometric(scale=self.scale)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        return self.step * np.rint(self.noise.sample(values, bits) / self.step).astype(np.int64)

    def loss(self, distance: Distance) -> PrivacyLoss:
        return self.noise.loss(distance)

    def error(self, confidence: float = 0.95) -> float:
        return self.noise.error(confidence) + self.step / 2

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(mechanism=cls(scale=Fraction(2)), value=0, neighbour=1, distance=Distance.l1(1))


@register(NAME)
@dataclass(frozen=True, kw_only=True)
class RoundedCount(Unregistered):
    """The same, with a name."""


OWN = Spend(mechanism=RoundedCount(scale=Fraction(4)), distance=Distance.l1(1))
