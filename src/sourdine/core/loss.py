"""The privacy loss of a mechanism at one input distance: what every accountant reads."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.laws import Floats, Law, float_above, pure_law
from sourdine.core.pair import Chances, finite_laws, ratios


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a mechanism may reveal of one unit, at one input distance.

    `remove` is the law of log P/Q where P is the output with the unit and Q without it; `add` is the other
    way round. Under replacement and zero-out the two name the two orders of the pair. `epsilon` and `rho`
    (zero-concentrated) are bounds, exact where they are rational, infinite where there is none.

    `delta` is the probability of an event outside which epsilon and rho hold: (epsilon, delta)-DP and
    delta-approximate rho-zCDP (Bun and Steinke 2016, definition 8.1). The laws hold that mass at infinity.
    It is 0 where epsilon and rho hold always.

    >>> round(float(Loss.pure(Fraction(1, 2)).profile(0.25)), 4)
    0.1377
    """

    remove: Law
    add: Law
    neighbours: Neighbours
    epsilon: Fraction | float = math.inf
    rho: Fraction | float = math.inf
    delta: Fraction | float = 0

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho", "delta"):
            check.keep(self, **{name: check.number("Loss", name, getattr(self, name))})

    @classmethod
    def symmetric(
        cls,
        law: Law,
        *,
        neighbours: Neighbours,
        epsilon: Fraction | float = math.inf,
        rho: Fraction | float = math.inf,
        delta: Fraction | float = 0,
    ) -> "Loss":
        """A loss with the same law in both directions."""
        return cls(remove=law, add=law, neighbours=neighbours, epsilon=epsilon, rho=rho, delta=delta)

    @classmethod
    def pure(
        cls,
        epsilon: Fraction | float,
        *,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        rho: Fraction | float | None = None,
    ) -> "Loss":
        """A mechanism known only by its epsilon: randomized response at that epsilon dominates it.

        Without a better bound, rho = epsilon^2/2 (Bun and Steinke 2016, proposition 1.4).
        """
        known = check.number("Loss", "epsilon", epsilon)
        best = rho
        if best is None:
            best = math.inf if known == math.inf else Fraction(known) ** 2 / 2
        return cls.symmetric(pure_law(float_above(known)), neighbours=neighbours, epsilon=known, rho=best)

    @classmethod
    def between(
        cls, first: Chances, second: Chances, *, neighbours: Neighbours = Neighbours.ADD_REMOVE
    ) -> "Loss":
        """The loss between two laws on finitely many outcomes, given by their exact probabilities.

        `first` is the law of the outcome with the unit and `second` without it, as sequences or as mappings
        by outcome. Whatever is obtained from such an outcome loses no more (docs/guarantees/finite_pair.md).

        >>> loss = Loss.between({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
        >>> round(loss.epsilon, 4), float(loss.profile(0))
        (1.0986, 0.5)
        """
        found = ratios(finite_laws("Loss.between", first, second))
        return cls(
            remove=found.forth,
            add=found.back,
            neighbours=neighbours,
            epsilon=max(found.epsilon, found.settled),
            rho=Fraction(found.settled) ** 2 / 2,
            delta=found.delta,
        )

    def profile(self, epsilon: ArrayLike) -> Floats:
        """delta(epsilon): the larger of both directions."""
        return np.maximum(self.remove.profile(epsilon), self.add.profile(epsilon))
