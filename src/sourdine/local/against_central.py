"""What it costs not to trust a curator: the error of a share by local reports and by central noise."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sourdine.core import check
from sourdine.local.survey import Survey, best_survey
from sourdine.mechanisms.geometric import Geometric
from sourdine.mechanisms.response import LEAST_EPSILON, MOST_EPSILON


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A share among n people, or in the population they were drawn from, both ways at one epsilon.

    For the people themselves, `best_survey` has variance e^epsilon/(n (e^epsilon - 1)^2), and geometric noise
    on their count 2 e^epsilon/(n^2 (e^epsilon - 1)^2): the first is exactly n/2 times that. Drawing adds
    f(1 - f)/n to both, and then the ratio never exceeds 1 + e^epsilon/((e^epsilon - 1)^2 f(1 - f)).

    >>> same = Comparison(epsilon=1, people=10_000)
    >>> round(same.local / same.central), round(same.drawn_local / same.drawn_central, 2)
    (5000, 4.68)
    """

    epsilon: Fraction
    people: int
    share: float = 0.5

    def __post_init__(self) -> None:
        owner = "Comparison"
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
        object.__setattr__(self, "epsilon", epsilon)
        check.keep(self, people=check.integer(owner, "people", self.people, 1, 1 << 62))
        share = float(check.between(owner, "share", self.share, Fraction(0), Fraction(1)))
        object.__setattr__(self, "share", share)

    @property
    def mechanism(self) -> Geometric:
        """The noise on the count of yes, which one person changes by 1 at most."""
        return Geometric(scale=1 / self.epsilon)

    @property
    def local(self) -> float:
        """The variance by local reports, for the share among the people."""
        return float(Survey.of(best_survey(self.epsilon)).variance(self.share, self.people))

    @property
    def central(self) -> float:
        """The variance by noise on their count."""
        return 2 * math.exp(-self.epsilon) / (math.expm1(-self.epsilon) * self.people) ** 2

    @property
    def drawn_local(self) -> float:
        """The variance by local reports, for the share in the population."""
        return self.local + self._drawing

    @property
    def drawn_central(self) -> float:
        """The variance by noise on the count, for the share in the population."""
        return self.central + self._drawing

    @property
    def _drawing(self) -> float:
        return self.share * (1 - self.share) / self.people
