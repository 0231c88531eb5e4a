"""The tightest accountant for a plan fixed beforehand: the whole law of the privacy loss, composed."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from sourdine.accounting.accountant import Accountant, Bracket, check_delta, exactly, same_relation
from sourdine.accounting.gaussian_dp import dominating_square, gdp_bracket, gdp_epsilon
from sourdine.accounting.joint import either_order
from sourdine.accounting.pld.composition import Width, delta_bracket, epsilon_and_tilt, ordered, why_wide
from sourdine.accounting.pld.enumeration import outcomes
from sourdine.accounting.pld.scout import Repeated
from sourdine.accounting.pld.tilt import Tilt
from sourdine.accounting.rdp.accountant import Renyi
from sourdine.accounting.zcdp import RhoCost, ZeroConcentrated, above_zero
from sourdine.core import check
from sourdine.core.composed import ComposedDistribution
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw, LossDistribution, RhoLaw, float_above, pure_law
from sourdine.core.loss import LeakyLaw, PrivacyLoss


@dataclass(frozen=True)
class PldCost:
    """The losses paid, each with its count."""

    neighbours: Neighbours
    losses: tuple[tuple[PrivacyLoss, int], ...]

    @property
    def leaks(self) -> Fraction:
        """The sum of the deltas of losses that have one."""
        return sum((Fraction(loss.delta) * count for loss, count in self.losses), Fraction(0))


@dataclass(frozen=True, kw_only=True)
class PLD(Accountant[PldCost]):
    """Composes privacy loss distributions and brackets the answer (docs/guarantees/pld.md).

    `width` is how much of epsilon, or which share of delta, may stay open, and `relative_width` which share
    of epsilon: both are met where floats allow.

    >>> from sourdine.core.distributions import GaussianLaw
    >>> loss = PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE)
    >>> round(PLD().epsilon(PLD().lift(loss), 1e-5).upper, 4)
    4.3772
    """

    width: float = 1e-3
    relative_width: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("width", "relative_width"):
            check.keep(self, **{name: float(check.positive("PLD", name, getattr(self, name), 1))})

    def lift(self, loss: PrivacyLoss) -> PldCost:
        return PldCost(loss.neighbours, ((either_order(loss), 1),))

    def join(self, first: PldCost, second: PldCost) -> PldCost:
        relation = same_relation(first.neighbours, second.neighbours)
        counts: dict[int, tuple[PrivacyLoss, int]] = {}
        for loss, count in first.losses + second.losses:
            key = id(loss)
            counts[key] = (loss, count + (counts[key][1] if key in counts else 0))
        return PldCost(relation, tuple(counts.values()))

    def repeat(self, cost: PldCost, count: int) -> PldCost:
        count = check.integer("PLD", "count", count, 1, 2**62)
        return PldCost(cost.neighbours, tuple((loss, each * count) for loss, each in cost.losses))

    def epsilon(self, cost: PldCost, delta: float) -> Bracket:
        delta = check_delta("PLD", delta)
        pure = float_above(sum(exactly(loss.epsilon) * count for loss, count in cost.losses))
        if delta == 0 and cost.leaks:
            return Bracket(math.inf, math.inf)
        if delta < cost.leaks:  # the epsilons hold outside events that are likelier than that
            pure = math.inf
        if pure == math.inf:
            delta = above_zero("PLD", delta)
        if delta == 0 or pure == 0:
            return Bracket(0.0, pure)
        remove, add = directions(cost)
        if exact := _gaussian(remove, add, delta):
            return Bracket(exact.lower, min(exact.upper, pure))
        if pure - (top := _from_top(remove, delta, self._width.at(pure) / 20)) <= self._width.at(pure) / 10:
            return Bracket(min(top, pure), pure)
        first, tilt = self._epsilon(remove, delta)
        both = first
        if add is not remove and first.lower < math.inf:
            second, _ = self._epsilon(add, delta, first.lower, tilt)
            both = Bracket(max(first.lower, second.lower), max(first.upper, second.upper))
        upper = min(both.upper, pure, _concentrated(cost, delta))
        if upper - both.lower > self._width.at(upper):
            upper = min(upper, self._otherwise(cost, delta))
        return Bracket(min(both.lower, upper), upper)

    def delta(self, cost: PldCost, epsilon: float) -> Bracket:
        epsilon = float(check.rational("PLD", "epsilon", epsilon))
        remove, add = directions(cost)
        ends = [delta_of(remove, epsilon, self.width)]
        if add is not remove:
            ends.append(delta_of(add, epsilon, self.width))
        return Bracket(max(end.lower for end in ends), max(end.upper for end in ends))

    def why_wide(self, cost: PldCost, delta: float) -> str:
        """What keeps `epsilon` from being known to within the width; empty where it is."""
        delta = check_delta("PLD", delta)
        found = self.epsilon(cost, delta)
        if self.meets(found) or delta == 0:
            return ""
        reasons = [why_wide(laws, delta, self._width.at(found.upper)) for laws in directions(cost)]
        return next((reason for reason in reasons if reason), "")

    def meets(self, bracket: Bracket) -> bool:
        """Whether a bracket of epsilon is as narrow as asked."""
        return bracket.width <= self._width.at(bracket.upper)

    @property
    def _width(self) -> Width:
        return Width(self.width, self.relative_width)

    def _epsilon(
        self, laws: list[Repeated], delta: float, least: float = 0.0, near: Tilt | None = None
    ) -> tuple[Bracket, Tilt | None]:
        """One direction: by enumeration where that is possible, else on a lattice; the best of both ends."""
        by_outcome = Bracket(0.0, math.inf)
        if most := outcomes(laws, _ROOM * delta):
            by_outcome = most.epsilon(delta)
            if self.meets(by_outcome):
                return by_outcome, None
        found, tilt = epsilon_and_tilt(laws, delta, self._width, least, near)
        return _both_hold("epsilon", by_outcome, found), tilt

    def _otherwise(self, cost: PldCost, delta: float) -> float:
        """The least that other proofs say of epsilon, where the composed law leaves too much open.

        By a Gaussian that dominates each loss, by Renyi moments, and by the same losses without sampling.
        """
        squares = [exactly(dominating_square(loss)) * count for loss, count in cost.losses]
        renyi = Renyi()
        lifted = [renyi.repeat(renyi.lift(loss), count) for loss, count in cost.losses]
        bounds = [renyi.epsilon(reduce(renyi.join, lifted), delta).upper]
        if math.inf not in squares:
            bounds.append(gdp_epsilon(Fraction(sum(squares)), delta))
        whole = tuple((_unsampled(loss), count) for loss, count in cost.losses)
        if any(one is not other for (one, _), (other, _) in zip(whole, cost.losses, strict=True)):
            bounds.append(self.epsilon(PldCost(cost.neighbours, whole), delta).upper)
        return min(bounds)


_ROOM = 1e-9  # the share of delta that outcomes may weigh that are not looked at
_NEVER = 1e-60  # the same where delta is what is asked for


def delta_of(laws: list[Repeated], epsilon: float, width: float) -> Bracket:
    """delta of one direction at an epsilon: by enumeration where that is possible, else on a lattice."""
    by_outcome = Bracket(0.0, 1.0)
    if most := outcomes(laws, _NEVER):
        by_outcome = most.delta(epsilon)
        if by_outcome.width <= width * by_outcome.upper:
            return by_outcome
    return _both_hold("delta", by_outcome, delta_bracket(laws, epsilon, width))


def _both_hold(name: str, first: Bracket, second: Bracket) -> Bracket:
    """What is left of two brackets of one number, both of them proven."""
    lower, upper = max(first.lower, second.lower), min(first.upper, second.upper)
    return Bracket(lower, upper) if lower <= upper else ordered(name, lower, upper)


def _gaussian(remove: list[Repeated], add: list[Repeated], delta: float) -> Bracket | None:
    """The closed form, where all noise is continuous Gaussian and nothing hides the unit.

    Shifts of mu_1, mu_2, ... together are one of their Euclidean length.
    """
    square = Fraction(0)
    for item in remove:
        if not isinstance(item.law, GaussianLaw):
            return None
        square += Fraction(item.law.mu) ** 2 * item.count
    return gdp_bracket(square, delta) if add is remove or add == remove else None


def _unsampled(loss: PrivacyLoss) -> PrivacyLoss:
    """The loss without the chance that hides the unit; the loss itself where there is none."""
    remove, add = loss.remove.unsampled, loss.add.unsampled
    if remove is loss.remove and add is loss.add:
        return loss
    return replace(loss, remove=remove, add=remove if add == remove else add)


def directions(cost: PldCost) -> tuple[list[Repeated], list[Repeated]]:
    """The laws of both directions, the same list where every loss is symmetric."""
    remove = _laws([(loss.remove, count) for loss, count in cost.losses])
    if all(loss.remove is loss.add for loss, _ in cost.losses):
        return remove, remove
    return remove, _laws([(loss.add, count) for loss, count in cost.losses])


def _laws(laws: list[tuple[LossDistribution, int]]) -> list[Repeated]:
    """The laws with their counts; those that are several together one by one.

    A loss known only by its rho has the worst law that rho allows. The rhos add up first: the law of their
    sum is tighter than the sum of their laws (Bun and Steinke 2016). A law that leaks is its base
    together with a leak of nothing else.
    """
    repeats, rho = [], 0.0
    while laws:
        law, count = laws.pop(0)
        if isinstance(law, ComposedDistribution):
            laws = [(part, each * count) for part, each in law.parts] + laws
        elif isinstance(law, LeakyLaw) and isinstance(law.base, RhoLaw):
            laws = [(law.base, count), (LeakyLaw(pure_law(0.0), law.delta), count), *laws]
        elif isinstance(law, RhoLaw):
            rho += law.rho * count
        else:
            repeats.append(Repeated(law, count))
    return repeats + ([Repeated(RhoLaw(rho * (1 + 1e-12)), 1)] if rho else [])


def _from_top(laws: list[Repeated], delta: float, slack: float) -> float:
    """At most epsilon: with chance t every loss is at its highest, so epsilon >= s + log(1 - delta/t).

    Here s is the sum of the highest losses. Where t is well above delta, nothing else needs to be known.
    """
    total, chance = 0.0, 0.0
    for item in laws:
        if not math.isfinite(item.law.highest):
            return 0.0
        near = item.law.highest - slack / sum(one.count for one in laws)
        total += item.count * near
        chance += item.count * math.log(max(float(item.law.survival(near).p), 1e-300))
    share = delta * math.exp(min(-chance, 700.0))
    return max(0.0, (total + math.log1p(-share)) * (1 - 1e-12)) if share < 0.5 else 0.0


def _concentrated(cost: PldCost, delta: float) -> float:
    """What the sum of the rhos says: it may know more than laws that stand for many mechanisms at once."""
    rho = sum(exactly(loss.rho) * count for loss, count in cost.losses)
    if rho == math.inf:
        return math.inf
    return ZeroConcentrated().epsilon(RhoCost(cost.neighbours, Fraction(rho), cost.leaks), delta).upper
