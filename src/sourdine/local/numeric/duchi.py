"""Numbers by one bit: rounded at random to an end of their range, then randomized response."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.local.numeric.oracle import Floats, Ints, Noise, UnbiasedOracle
from sourdine.mechanisms.randomized_response import KaryResponse


@dataclass(frozen=True, kw_only=True)
class Duchi(UnbiasedOracle):
    """Reports one bit of a number: which end of its range, at random by how near it is, and perhaps flipped.

    A changed value costs epsilon (Duchi, Jordan, Wainwright 2018; proof in docs/guarantees/duchi.md). The bit
    decodes to +-(e^epsilon + 1)/(e^epsilon - 1) on [-1, 1], without bias. It tells the mean, and nothing else
    of the distribution.

    >>> round(Duchi(epsilon=1, lower=-1, upper=1).worst_variance, 2)
    4.68
    """

    name: ClassVar[str] = "duchi/1"
    most_cells: ClassVar[int] = 1 << 28
    cells: int = 1 << 20

    @property
    def codes(self) -> int:
        return 2

    @property
    def response(self) -> KaryResponse:
        """What the bit goes through."""
        return KaryResponse(epsilon=self.epsilon, categories=2)

    @property
    def decoded(self) -> Floats:
        return ends_decoded(self.epsilon)

    @property
    def noise(self) -> Noise:
        return ends_noise(self.epsilon)

    def encode(self, values: NDArray[Any], bits: Bits) -> Ints:
        places = self.interval.places("Duchi", values)
        return self.response.sample(upper_end(places, self.cells, bits), bits)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        return self.response.loss(distance)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for epsilon, value in ((Fraction(1), 0.0), (Fraction(5, 2), 3.0)):
            yield Example(
                mechanism=cls(epsilon=epsilon, lower=Fraction(0), upper=Fraction(10), cells=40),
                value=value,
                neighbour=10.0,
                distance=Distance.hamming(),
            )


def upper_end(places: Ints, cells: int, bits: Bits) -> Ints:
    """1 with probability places/cells, exactly, otherwise 0."""
    drawn = exact.uniform(cells, places.size, bits).reshape(places.shape)
    return (drawn < places).astype(np.int64)


def ends_decoded(epsilon: Fraction) -> Floats:
    """What a report of the lower and of the upper end stands for, on [-1, 1]."""
    far = 1 / math.tanh(epsilon / 2)
    return np.array([-far, far])


def ends_noise(epsilon: Fraction) -> Noise:
    """A report is +-C, with mean t: its variance is C^2 - t^2."""
    return Noise(1 / math.tanh(epsilon / 2) ** 2, -1.0)
