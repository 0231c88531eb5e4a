"""Permute-and-flip: one of several candidates, nearer to the best than the exponential mechanism."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, select
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance
from sourdine.core.loss import Loss
from sourdine.core.mechanism import Example
from sourdine.mechanisms.selection import Selection


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(Selection):
    """Visits candidates in random order and chooses the first whose coin falls on heads.

    The coin of i has probability e^{-epsilon (best - score_i) / (2 sensitivity)}. Scores that change by at
    most t cost epsilon t / sensitivity (McKenna, Sheldon 2020, theorem 1); without the 2 when all scores
    move the same way between neighbours (monotone). Its range is not bounded by epsilon: rho is only
    epsilon^2 / 2. Scores are read as by Exponential.

    >>> PermuteAndFlip(epsilon=1, sensitivity=1, candidates=5).loss(Distance.linf(1)).rho
    Fraction(1, 2)
    """

    name: ClassVar[str] = "permute-and-flip/1"

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        return select.flip(select.scores("PermuteAndFlip", values, self.candidates), self.rate, bits)

    def loss(self, distance: Distance) -> Loss:
        return Loss.pure(self._epsilon_at(distance), neighbours=distance.neighbours)

    def error(self, confidence: float = 0.95) -> float:
        """How far the chosen score may lie below the best: ln((m - 1) min(1/2, 1 - beta)/beta)/rate."""
        beta = 1 - check.confidence("PermuteAndFlip.error", confidence)
        return self._gap((self.candidates - 1) * min(0.5, 1 - beta) / beta)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), sensitivity=Fraction(1), candidates=5),
            value=[3, 9, 0, 0, 0],
            neighbour=[4, 8, 1, 1, 1],
            distance=Distance.linf(1),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 7), sensitivity=Fraction(3), candidates=3, monotone=True),
            value=[0, 12, 12],
            neighbour=[3, 12, 12],
            distance=Distance.linf(3),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(7, 5), sensitivity=Fraction(1, 4), candidates=3),
            value=[-0.75, 0.25, -0.5],
            neighbour=[-0.5, 0.0, -0.75],
            distance=Distance.linf(0.25),
        )
