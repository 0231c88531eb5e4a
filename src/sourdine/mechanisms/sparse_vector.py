"""All queries that reach a threshold, up to a declared number of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.mechanisms.crossing import Crossing


@dataclass(frozen=True, kw_only=True)
class SparseVector(Crossing):
    """Tells for each query whether its noisy value reaches the noisy threshold, until `answers` have.

    After that many, every query reads False, whatever its value. Integer queries that change by at most t
    cost epsilon t / sensitivity: with epsilon = e1 + e2, discrete Laplace noise of scale sensitivity/e1 on
    the threshold, drawn once, and 2 answers sensitivity/e2 on each query, without the 2 when all queries
    move the same way between neighbours (Lyu, Su, Li 2017, theorems 4 and 5).

    >>> SparseVector(epsilon=1, queries=10, threshold=50, answers=3).loss(Distance.linf(1)).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "sparse-vector/1"
    answers: int

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "answers", check.integer("SparseVector", "answers", self.answers, 1, 1 << 20)
        )
        super().__post_init__()

    @property
    def _threshold_epsilon(self) -> Fraction:
        """e1, with e1 : e2 as 1 : (answers spread/sensitivity)^{2/3}, which minimises the noise compared.

        Any split keeps the guarantee; this one is rounded to 1/1024, so that it is the same everywhere.
        """
        ratio = self.answers * (1 if self.monotone else 2)
        return self.epsilon / (1 + Fraction(round(1024 * ratio ** (2 / 3)), 1024))

    @property
    def threshold_scale(self) -> Fraction:
        return self.sensitivity / self._threshold_epsilon

    @property
    def query_scale(self) -> Fraction:
        return self.answers * self.spread / (self.epsilon - self._threshold_epsilon)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        above = self._above(values, bits)
        above &= np.cumsum(above, axis=-1) <= self.answers
        return above

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=3, answers=2),
            value=[3, 3, 3, 3, 3, 3],
            neighbour=[4, 4, 4, 4, 2, 2],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=0, answers=2, monotone=True),
            value=[1, 1, 1, 1, 2, 2],
            neighbour=[2, 2, 2, 2, 2, 2],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )


def bits_to_integer(answers: NDArray[Any]) -> NDArray[np.int64]:
    """Rows of booleans as binary numbers, the first one lowest."""
    return answers.astype(np.int64) @ (1 << np.arange(answers.shape[-1]))
