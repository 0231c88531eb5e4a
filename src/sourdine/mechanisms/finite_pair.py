"""A mechanism known by its two laws: what comes out with a unit, and what comes out without it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Norm
from sourdine.core.distributions import float_above, pure_law
from sourdine.core.loss import Chances, FiniteLaws, LeakyLaw, PrivacyLoss, finite_laws
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.tables import WeightTerms, table
from sourdine.mechanisms.randomized_response import Channel, yes_or_no


@dataclass(frozen=True, kw_only=True)
class FinitePair(Mechanism):
    """Draws one of finitely many outcomes by `first` if a private answer is yes, and by `second` if it is no.

    One changed answer loses log(first/second), or its opposite: the loss of every mechanism that this pair
    dominates (docs/guarantees/finite_pair.md). The probabilities are exact and add up to 1. Use it to pay for
    what somebody else's mechanism loses, once its pair of laws is known.

    >>> pair = FinitePair.between({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75})
    >>> round(pair.loss(Distance.hamming()).epsilon, 4)
    1.0986
    """

    name: ClassVar[str] = "finite-pair/1"
    norm: ClassVar[Norm] = Norm.HAMMING
    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        pair = finite_laws("FinitePair", self.first, self.second)
        check.keep(self, first=pair.first, second=pair.second)

    @classmethod
    def between(cls, first: Chances, second: Chances) -> "FinitePair":
        """The same from sequences, or from mappings by outcome; an outcome is told by its place."""
        pair = finite_laws("FinitePair", first, second)
        return cls(first=pair.first, second=pair.second)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """The places of outcomes. Both laws are drawn from, so that no time tells which one counts."""
        yes = yes_or_no("FinitePair", values)
        drawn = [_draw(law, yes.size, bits).reshape(yes.shape) for law in (self.first, self.second)]
        return np.where(yes, *drawn)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        one = PrivacyLoss.between(self.first, self.second, neighbours=distance.neighbours)
        changed = floor(distance.amount)
        if changed == 1:
            return one
        epsilon, rho = changed * Fraction(one.epsilon), changed * Fraction(one.rho)
        if not one.delta or not changed:
            return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours, rho=rho)
        delta = 1 - (1 - Fraction(one.delta)) ** min(changed, _MANY) if changed <= _MANY else Fraction(1)
        law = LeakyLaw(pure_law(float_above(epsilon)), float_above(delta))
        return PrivacyLoss.symmetric(
            law, neighbours=distance.neighbours, epsilon=epsilon, rho=rho, delta=delta
        )

    @property
    def channel(self) -> Channel:
        """How often an outcome speaks for yes, if that is the answer and if it is not."""
        speaks = [(p, q) for p, q in zip(*FiniteLaws(self.first, self.second), strict=True) if p > q]
        return Channel(*(float(sum(each[side] for each in speaks)) for side in (0, 1)))

    def error(self, confidence: float = 0.95) -> float:
        """The half-width of an interval around the share of yes, from one outcome; at most 1."""
        confidence = check.confidence("FinitePair.error", confidence)
        channel = self.channel
        return min(1.0, channel.half_width(confidence, 1)) if channel.p > channel.q else 1.0

    @classmethod
    def examples(cls) -> Iterator[Example]:
        fifth, twelfth = Fraction(1, 5), Fraction(1, 12)
        for first, second in (
            ((3 * fifth, fifth, fifth), (fifth, fifth, 3 * fifth)),
            ((6 * twelfth, 4 * twelfth, 2 * twelfth), (3 * twelfth, 4 * twelfth, 5 * twelfth)),
        ):
            yield Example(
                mechanism=cls(first=first, second=second), value=1, neighbour=0, distance=Distance.hamming()
            )


_MANY = 1 << 12  # changed answers beyond which a leak counts as sure


def _draw(law: tuple[Fraction, ...], count: int, bits: Bits) -> NDArray[np.int64]:
    """So many places, exactly by a law; what has no chance is not even in the table."""
    places = np.flatnonzero([chance > 0 for chance in law])
    if len(places) == 1:
        return np.full(count, places[0], np.int64)
    weights = WeightTerms(tuple(law[place] for place in places), (0,) * len(places))
    return np.asarray(places[table(weights).sample(count, bits)], np.int64)
