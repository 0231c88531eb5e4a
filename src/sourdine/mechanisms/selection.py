"""Choosing one of several scored candidates: the exponential mechanism and permute-and-flip."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Norm
from sourdine.core.loss import BoundedRangeLaw, PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import selection
from sourdine.core.random.bits import SYSTEM, Bits

LEAST_EPSILON = Fraction(1, 1 << 40)
MOST_EPSILON = Fraction(1 << 10)
LEAST_SENSITIVITY = Fraction(1, 1 << 100)
MOST_SENSITIVITY = Fraction(1 << 62)  # scores beyond it are clipped


@dataclass(frozen=True, kw_only=True)
class Selection(Mechanism):
    """A choice among candidates whose scores change by at most `sensitivity` between neighbours.

    `monotone` declares that all scores move the same way, whichever two neighbours are compared.
    """

    norm: ClassVar[Norm] = Norm.LINF
    epsilon: Fraction
    sensitivity: Fraction
    candidates: int
    monotone: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, MOST_EPSILON)
        sensitivity = check.between(
            owner, "sensitivity", self.sensitivity, LEAST_SENSITIVITY, MOST_SENSITIVITY
        )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(
            self,
            "candidates",
            check.integer(owner, "candidates", self.candidates, 1, selection.MOST_CANDIDATES),
        )
        check.boolean(owner, "monotone", self.monotone)

    @property
    def rate(self) -> Fraction:
        """What one unit of score adds to the logarithm of a weight."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def _epsilon_at(self, distance: Distance) -> Fraction:
        """Epsilon when scores change by at most this distance."""
        self.require(distance)
        return self.epsilon * distance.amount / self.sensitivity

    def _gap(self, odds: float) -> float:
        """The gap at which a weight is 1/odds, rounded up; 0 when the odds are at most 1."""
        return math.log(odds) / float(self.rate) * (1 + 1e-12) if odds > 1 else 0.0


@dataclass(frozen=True, kw_only=True)
class Exponential(Selection):
    """Chooses index i with probability proportional to e^{epsilon score_i / (2 sensitivity)}.

    Scores that change by at most t cost epsilon t / sensitivity (McSherry, Talwar 2007), with
    rho = that^2 / 8 (Cesar, Rogers 2021, by bounded range). When all scores move the same way between
    neighbours (monotone), the 2 falls away at the same cost. Scores are integers, or floats taken as the
    binary fractions they are; a score of -inf or NaN is never chosen while there is another.

    >>> Exponential(epsilon=1, sensitivity=1, candidates=5).loss(Distance.linf(1)).rho
    Fraction(1, 8)
    """

    name: ClassVar[str] = "exponential/1"

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        return selection.choose(selection.scores("Exponential", values, self.candidates), self.rate, bits)

    def loss(self, distance: Distance) -> PrivacyLoss:
        epsilon = self._epsilon_at(distance)
        law = BoundedRangeLaw(float(epsilon))
        return PrivacyLoss.symmetric(law, neighbours=distance.neighbours, epsilon=epsilon, rho=epsilon**2 / 8)

    def error(self, confidence: float = 0.95) -> float:
        """How far the chosen score may lie below the best: ln((m - 1)(1 - beta)/beta)/rate, and no further.

        It is attained when m - 1 candidates lie exactly that far below one best. Dwork and
        Roth 2014 have ln(m/beta)/rate.
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


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(Selection):
    """Visits candidates in random order and chooses the first whose coin falls on heads.

    The coin of i has probability e^{-epsilon (best - score_i) / (2 sensitivity)}. Scores that change by at
    most t cost epsilon t / sensitivity (McKenna, Sheldon 2020); without the 2 when all scores
    move the same way between neighbours (monotone). Its range is not bounded by epsilon: rho is only
    epsilon^2 / 2. Scores are read as by Exponential.

    >>> PermuteAndFlip(epsilon=1, sensitivity=1, candidates=5).loss(Distance.linf(1)).rho
    Fraction(1, 2)
    """

    name: ClassVar[str] = "permute-and-flip/1"

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        return selection.flip(selection.scores("PermuteAndFlip", values, self.candidates), self.rate, bits)

    def loss(self, distance: Distance) -> PrivacyLoss:
        return PrivacyLoss.pure(self._epsilon_at(distance), neighbours=distance.neighbours)

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
