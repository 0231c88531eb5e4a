"""The privacy loss of a mechanism at one input distance: what every accountant reads.

There are ways to state one by both of its distributions, by an epsilon alone, with a small probability that
all is told, and for a mechanism of bounded range, such as the exponential mechanism.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats, LossDistribution, Pair, float_above, pure_law
from sourdine.core.pair import Chances, finite_laws, ratios


@dataclass(frozen=True, kw_only=True)
class PrivacyLoss:
    """What a mechanism may reveal of one unit, at one input distance.

    `remove` is the law of log P/Q where P is the output with the unit and Q without it; `add` is the other
    way round. Under replacement and zero-out the two name the two orders of the pair. `epsilon` and `rho`
    (zero-concentrated) are bounds, exact where they are rational, infinite where there is none.

    `delta` is the probability of an event outside which epsilon and rho hold: (epsilon, delta)-DP and
    delta-approximate rho-zCDP (Bun and Steinke 2016, definition 8.1). The laws hold that mass at infinity.
    It is 0 where epsilon and rho hold always.

    >>> round(float(PrivacyLoss.pure(Fraction(1, 2)).profile(0.25)), 4)
    0.1377
    """

    remove: LossDistribution
    add: LossDistribution
    neighbours: Neighbours
    epsilon: Fraction | float = math.inf
    rho: Fraction | float = math.inf
    delta: Fraction | float = 0

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho", "delta"):
            check.keep(self, **{name: check.number("PrivacyLoss", name, getattr(self, name))})

    @classmethod
    def symmetric(
        cls,
        law: LossDistribution,
        *,
        neighbours: Neighbours,
        epsilon: Fraction | float = math.inf,
        rho: Fraction | float = math.inf,
        delta: Fraction | float = 0,
    ) -> "PrivacyLoss":
        """A loss with the same law in both directions."""
        return cls(remove=law, add=law, neighbours=neighbours, epsilon=epsilon, rho=rho, delta=delta)

    @classmethod
    def pure(
        cls,
        epsilon: Fraction | float,
        *,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rho: Fraction | float | None = None,
    ) -> "PrivacyLoss":
        """A mechanism known only by its epsilon: randomized response at that epsilon dominates it.

        Without a better bound, rho = epsilon^2/2 (Bun and Steinke 2016, proposition 1.4).
        """
        known = check.number("PrivacyLoss", "epsilon", epsilon)
        best = rho
        if best is None:
            best = math.inf if known == math.inf else Fraction(known) ** 2 / 2
        return cls.symmetric(pure_law(float_above(known)), neighbours=neighbours, epsilon=known, rho=best)

    @classmethod
    def between(
        cls, first: Chances, second: Chances, *, neighbours: Neighbours = Neighbours.ADD_REMOVE
    ) -> "PrivacyLoss":
        """The loss between two laws on finitely many outcomes, given by their exact probabilities.

        `first` is the law of the outcome with the unit and `second` without it, as sequences or as mappings
        by outcome. Whatever is obtained from such an outcome loses no more (docs/guarantees/finite_pair.md).

        >>> loss = PrivacyLoss.between({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
        >>> round(loss.epsilon, 4), float(loss.profile(0))
        (1.0986, 0.5)
        """
        pair = ratios(finite_laws("PrivacyLoss.between", first, second))
        return cls(
            remove=pair.forth,
            add=pair.back,
            neighbours=neighbours,
            epsilon=max(pair.epsilon, pair.settled),
            rho=Fraction(pair.settled) ** 2 / 2,
            delta=pair.delta,
        )

    def profile(self, epsilon: ArrayLike | Fraction) -> Floats:
        """delta(epsilon): the larger of both directions."""
        at = float(epsilon) if isinstance(epsilon, Fraction) else epsilon
        return np.maximum(self.remove.profile(at), self.add.profile(at))


@dataclass(frozen=True)
class LeakyLaw(LossDistribution):
    """With probability delta the outcome tells everything, else it has the loss of another law.

    P = delta [leak] + (1 - delta) P0 and Q = delta [another leak] + (1 - delta) Q0, so that the profile is
    delta + (1 - delta) times that of the base. It grows with delta, and dominates whatever follows
    the base outside an event of probability delta (docs/guarantees/key_threshold.md).

    >>> from sourdine.core.distributions import pure_law
    >>> round(float(LeakyLaw(pure_law(1.0), 0.25).profile(1.0)), 9)
    0.25
    """

    base: LossDistribution
    delta: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return self.base.lowest

    @property
    def highest(self) -> float:  # type: ignore[override]
        return self.base.highest

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self.delta + (1 - self.delta) * self.base.infinite

    @property
    def spacing(self) -> float | None:  # type: ignore[override]
        return self.base.spacing

    def survival(self, loss: ArrayLike) -> Pair:
        above = self.base.survival(loss)
        return Pair(self.delta + (1 - self.delta) * above.p, (1 - self.delta) * above.q)

    def cumulative(self, loss: ArrayLike) -> Pair:
        below = self.base.cumulative(loss)
        return Pair((1 - self.delta) * below.p, (1 - self.delta) * below.q)


@dataclass(frozen=True)
class BoundedRangeLaw(LossDistribution):
    """The law that dominates every mechanism whose loss stays within an interval of length epsilon.

    Where the interval lies may depend on the two data sets. delta(x) = (1 - e^{(x - epsilon)/2})^2 /
    (1 - e^{-epsilon}) for |x| <= epsilon (Dong, Durfee, Rogers 2020; docs/guarantees/exponential.md proves
    it): at x = 0, about half of what pure epsilon-DP alone would give.

    >>> round(float(BoundedRangeLaw(1.0).profile(0.0)), 4)
    0.2449
    """

    epsilon: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return -self.epsilon

    @property
    def highest(self) -> float:  # type: ignore[override]
        return self.epsilon

    def survival(self, loss: ArrayLike) -> Pair:
        x = self._inside(loss)
        p = np.expm1((x - self.epsilon) / 2) / np.expm1(-self.epsilon)
        return Pair(p, np.exp(-(x + self.epsilon) / 2) * p)

    def cumulative(self, loss: ArrayLike) -> Pair:
        x = self._inside(loss)
        q = np.expm1(-(x + self.epsilon) / 2) / np.expm1(-self.epsilon)
        return Pair(np.exp((x - self.epsilon) / 2) * q, q)

    def profile(self, epsilon: ArrayLike) -> Floats:
        x = self._inside(epsilon)
        inner = np.expm1((x - self.epsilon) / 2) ** 2 / -np.expm1(-self.epsilon)
        low = np.minimum(np.asarray(epsilon, float), -self.epsilon)
        delta: Floats = np.where(low < -self.epsilon, -np.expm1(low), inner)
        return delta

    def _inside(self, loss: ArrayLike) -> Floats:
        inside: Floats = np.clip(np.asarray(loss, float), -self.epsilon, self.epsilon)
        return inside
