"""The first of several queries that reaches a threshold."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.mechanisms.crossing import Crossing


@dataclass(frozen=True, kw_only=True)
class AboveThreshold(Crossing):
    """Finds the index of the first query whose noisy value reaches the noisy threshold.

    When none does, the answer is `queries`: one past the last index, so that no query can be taken for it.
    Integer queries that change by at most t cost epsilon t / sensitivity, with discrete Laplace noise of
    scale 2 sensitivity/epsilon on the threshold and 4 sensitivity/epsilon on each query (Dwork, Roth 2014,
    theorem 3.23), or 2 sensitivity/epsilon on both when all queries move the same way between neighbours
    (monotone; Lyu, Su, Li 2017, theorem 5).

    >>> AboveThreshold(epsilon=1, queries=10, threshold=50).loss(Distance.linf(1)).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "above-threshold/1"

    @property
    def threshold_scale(self) -> Fraction:
        return 2 * self.sensitivity / self.epsilon

    @property
    def query_scale(self) -> Fraction:
        return 2 * self.spread / self.epsilon

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        above = self._above(values, bits)
        return np.where(above.any(axis=-1), above.argmax(axis=-1), self.queries)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=7),
            value=[7, 7, 7, 7, 7, 7],
            neighbour=[8, 8, 8, 8, 8, 6],
            distance=Distance.linf(1),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=0, monotone=True),
            value=[0, 0, 0, 0, 0, 1],
            neighbour=[1, 1, 1, 1, 1, 1],
            distance=Distance.linf(1),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(7, 3), queries=6, threshold=-9, sensitivity=Fraction(2)),
            value=[-9, -9, -9, -9, -9, -9],
            neighbour=[-7, -7, -7, -7, -7, -11],
            distance=Distance.linf(2),
        )
