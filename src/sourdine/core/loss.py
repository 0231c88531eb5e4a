"""The privacy loss of a mechanism at one input distance: what every accountant reads.

There are ways to state one by both of its distributions, by an epsilon alone, with a small probability that
all is told, for a mechanism of bounded range, such as the exponential mechanism, and by two exact laws on the
same finite set of outcomes.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import AtomLaw, Floats, LossDistribution, Pair, float_above, pure_law
from sourdine.core.errors import InvalidParameter
from sourdine.core.interval_arithmetic import above, ball, precision

Chances = Mapping[Hashable, Fraction | float] | Sequence[Fraction | float] | NDArray[np.float64]
"""Probabilities by outcome, or in the order of the outcomes; numbers as people write them, 0.3 as 3/10."""
MOST_OUTCOMES = 1 << 16
_MOST_BITS = 512  # of a denominator, so that files can hold it
_PRECISION = 192


class FiniteLaws(NamedTuple):
    """The chances of all outcomes under both laws, each adding up to exactly 1."""

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]


class Ratios(NamedTuple):
    """What a pair loses: its laws in both orders, and bounds outside what tells everything.

    `epsilon` bounds every finite log-ratio, in either order; `delta` the chance, under either law, of an
    outcome that the other one lacks. `settled` is the same as `epsilon` once both are conditioned on outcomes
    that they share, which is what delta-approximate concentrated privacy is about.
    """

    forth: AtomLaw
    back: AtomLaw
    epsilon: float
    settled: float
    delta: Fraction


def finite_laws(owner: str, first: Chances, second: Chances) -> FiniteLaws:
    """Two laws as they are stated, or a refusal; an outcome that only one mapping names has no chance else.

    >>> finite_laws("demo", {"yes": 0.75, "no": 0.25}, {"no": 1}).second
    (Fraction(0, 1), Fraction(1, 1))
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        outcomes = dict.fromkeys([*first, *second])
        pair = FiniteLaws(
            *(tuple(_chance(owner, law.get(outcome, 0)) for outcome in outcomes) for law in (first, second))
        )
    elif isinstance(first, Mapping) or isinstance(second, Mapping):
        raise check.fail(owner, "second", "be a mapping or a sequence, like the first", type(second).__name__)
    else:
        pair = FiniteLaws(*(tuple(_chance(owner, chance) for chance in law) for law in (first, second)))
    if len(pair.first) != len(pair.second):
        remedy = "Give an outcome that one of them lacks a probability of 0, or give mappings by outcome."
        raise check.fail(owner, "second", "have as many outcomes as the first", len(pair.second), remedy)
    if not 1 <= len(pair.first) <= MOST_OUTCOMES:
        raise check.fail(owner, "first", f"have 1 to {MOST_OUTCOMES:,} outcomes", len(pair.first))
    for name, law in zip(FiniteLaws._fields, pair, strict=True):
        if (total := sum(law)) != 1:
            raise InvalidParameter(
                f"The probabilities of the {name} law of {owner} must add up to exactly 1. They add up to "
                f"{float(total):.17g}. Give fractions, such as Fraction(1, 3), where decimals end too soon."
            )
    return pair


def _chance(owner: str, chance: object) -> Fraction:
    exact = check.decimal(owner, "probability", chance)
    if not 0 <= exact <= 1 or exact.denominator.bit_length() > _MOST_BITS:
        must = f"lie between 0 and 1, with a denominator of {_MOST_BITS} bits at most"
        raise check.fail(owner, "probability", must, chance)
    return exact


def ratios(pair: FiniteLaws) -> Ratios:
    """What a pair loses; every log-ratio is computed in balls, and bounds are rounded up.

    >>> ratios(FiniteLaws((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))).delta
    Fraction(0, 1)
    """
    shared = [(p, q) for p, q in zip(*pair, strict=True) if p and q]
    only_first = sum((p for p, q in zip(*pair, strict=True) if not q), Fraction(0))
    only_second = sum((q for p, q in zip(*pair, strict=True) if not p), Fraction(0))
    factor = (1 - only_second) / (1 - only_first) if shared else Fraction(1)
    with precision(_PRECISION):
        losses = [float(ball(p / q).log()) for p, q in shared]
        epsilon, settled = (
            max((_log_above(max(p * f / q, q / (p * f))) for p, q in shared), default=0.0)
            for f in (Fraction(1), factor)
        )
    p, q = ([float(each[side]) for each in shared] for side in (0, 1))
    losses, p, q = losses or [0.0], p or [0.0], q or [0.0]
    return Ratios(
        AtomLaw(losses, p, q, float_above(only_first)),
        AtomLaw([-loss for loss in losses], q, p, float_above(only_second)),
        epsilon,
        settled,
        max(only_first, only_second),
    )


def _log_above(ratio: Fraction) -> float:
    """The logarithm of a ratio of 1 or more, rounded up; exactly 0 where it is."""
    return 0.0 if ratio == 1 else above(ball(ratio).log())


@dataclass(frozen=True, kw_only=True)
class PrivacyLoss:
    """What a mechanism may reveal of one unit, at one input distance.

    `remove` is the law of log P/Q where P is the output with the unit and Q without it; `add` is the other
    way round. Under replacement and zero-out the two name the two orders of the pair. `epsilon` and `rho`
    (zero-concentrated) are bounds, exact where they are rational, infinite where there is none.

    `delta` is the probability of an event outside which epsilon and rho hold: (epsilon, delta)-DP and
    delta-approximate rho-zCDP (Bun and Steinke 2016). The laws hold that mass at infinity.
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
