"""The exponential mechanism: one of several candidates, the better the likelier."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, select
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.bounded_range import BoundedRangeLaw
from sourdine.core.distance import Distance
from sourdine.core.loss import Loss
from sourdine.core.mechanism import Example
from sourdine.mechanisms.selection import Selection


@dataclass(frozen=True, kw_only=True)
class Exponential(Selection):
    """Chooses index i with probability proportional to e^{epsilon score_i / (2 sensitivity)}.

    Scores that change by at most t cost epsilon t / sensitivity (McSherry, Talwar 2007, theorem 6), with
    rho = that^2 / 8 (Cesar, Rogers 2021, by bounded range). When all scores move the same way between
    neighbours (monotone), the 2 falls away at the same cost. Scores are integers, or floats taken as the
    binary fractions they are; a score of -inf or NaN is never chosen while there is another.

    >>> Exponential(epsilon=1, sensitivity=1, candidates=5).loss(Distance.linf(1)).rho
    Fraction(1, 8)
    """

    name: ClassVar[str] = "exponential/1"

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        return select.choose(select.scores("Exponential", values, self.candidates), self.rate, bits)

    def loss(self, distance: Distance) -> Loss:
        epsilon = self._epsilon_at(distance)
        law = BoundedRangeLaw(float(epsilon))
        return Loss.symmetric(law, neighbours=distance.neighbours, epsilon=epsilon, rho=epsilon**2 / 8)

    def error(self, confidence: float = 0.95) -> float:
        """How far the chosen score may lie below the best: ln((m - 1)(1 - beta)/beta)/rate, and no further.

        It is attained when m - 1 candidates lie exactly that far below one best. Dwork and Roth 2014,
        corollary 3.12, have ln(m/beta)/rate.
        """
        beta = 1 - check.confidence("Exponential.error", confidence)
        return self._gap((self.candidates - 1) * (1 - beta) / beta)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), sensitivity=Fraction(1), candidates=5),
            value=[4, 9, 9, 9, 8],
            neighbour=[5, 8, 8, 8, 7],
            distance=Distance.linf(1),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 7), sensitivity=Fraction(3), candidates=3, monotone=True),
            value=[0, 12, 12],
            neighbour=[3, 12, 12],
            distance=Distance.linf(3),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(7, 5), sensitivity=Fraction(1, 4), candidates=4),
            value=[-0.75, 0.25, 0.125, -math.inf],
            neighbour=[-0.5, 0.0, -0.125, -math.inf],
            distance=Distance.linf(0.25),
        )
