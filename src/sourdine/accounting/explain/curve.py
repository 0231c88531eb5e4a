"""What a whole curve of losses lets an attacker do.

Let P be the law of the answer if the suspicion is true (a person was in the data, say) and Q its law if it
is false. A guarantee says P[S] - e^epsilon Q[S] <= delta(epsilon) for every set S of answers and every
epsilon, and the same with P and Q exchanged. All bounds here follow from that; docs/guarantees/explain.md
has the proofs. For a pure epsilon, what somebody may believe afterwards follows from what they believed
before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.accountant import PldCost, directions
from sourdine.accounting.pld.composition import epsilon_above, profile_above
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats, LossDistribution, float_above
from sourdine.core.loss import PrivacyLoss

# the rows and columns of the source's table
PRIORS = tuple(Fraction(percent, 100) for percent in (1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99))
EPSILONS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0)


def posterior_bounds(prior: Fraction | float, epsilon: Fraction | float) -> Bracket:
    """Between which beliefs an answer can leave somebody who held `prior` before.

    p/(p + e^epsilon (1-p)) <= p' <= p/(p + e^-epsilon (1-p)): the odds p'/(1-p') are the old odds times the
    ratio of the likelihoods, which epsilon bounds (Bayes' rule; Kasiviswanathan and Smith 2014).
    Both ends are reached, by randomized response. With a delta they do not hold: see `Curve.reach`.

    >>> bounds = posterior_bounds(0.5, 1.17)
    >>> round(100 * bounds.lower, 1), round(100 * bounds.upper, 1)
    (23.7, 76.3)
    """
    p = float(check.between("posterior_bounds", "prior", prior, Fraction(0), Fraction(1)))
    if not epsilon >= 0:
        raise check.fail("posterior_bounds", "epsilon", "be at least 0", epsilon)
    if p in (0.0, 1.0):
        return Bracket(p, p)
    factor = math.exp(-float(epsilon))
    return Bracket(p * factor / (p * factor + (1 - p)), p / (p + factor * (1 - p)))


def posterior_table(
    priors: Sequence[Fraction | float] = PRIORS, epsilons: Sequence[Fraction | float] = EPSILONS
) -> tuple[tuple[Bracket, ...], ...]:
    """Both bounds for each prior (a row) and each epsilon (a column).

    >>> [round(100 * bounds.upper, 2) for bounds in posterior_table()[0]]
    [1.01, 1.05, 1.1, 1.22, 1.64, 2.67, 6.95, 16.87]
    """
    return tuple(tuple(posterior_bounds(prior, epsilon) for epsilon in epsilons) for prior in priors)


_POINTS = 401
_TAIL = 1e-11  # deltas below it are not looked at
_LARGEST = 60.0  # an epsilon above it bounds nothing that matters: e^-60 is below 1e-26
_ROUNDING = 1e-14
_SHARE = 2e-3  # about how loose a composed delta may be, relative to itself


@dataclass(frozen=True)
class Curve:
    """Proven upper bounds on the profile of a guarantee at increasing epsilons from 0, in both directions.

    >>> from sourdine.accounting.approximate import known
    >>> curve = Curve.of_loss(known(1, 1e-5))
    >>> round(float(curve.true_positives(0.01)), 4)
    0.0272
    """

    epsilons: Floats
    remove: Floats
    add: Floats
    neighbours: Neighbours

    @classmethod
    def of_loss(cls, loss: PrivacyLoss) -> "Curve":
        """The curve of one loss."""
        epsilons = _grid(float_above(loss.epsilon), max(_top(loss.remove), _top(loss.add)))
        deltas = [law.profile(epsilons) for law in (loss.remove, loss.add)]
        return cls._capped(epsilons, deltas, loss.epsilon, float_above(Fraction(loss.delta)), loss.neighbours)

    @classmethod
    def of_cost(cls, cost: PldCost) -> "Curve":
        """The curve of many losses, composed."""
        (loss, count), *others = cost.losses
        if not others and count == 1:
            return cls.of_loss(loss)
        remove, add = directions(cost)
        distinct = [remove] if add is remove else [remove, add]
        pure = sum((loss.epsilon * count for loss, count in cost.losses), Fraction(0))
        leaks = float_above(cost.leaks)
        tail = min(_TAIL + leaks * (1 + _ROUNDING), 0.5)
        epsilons = _grid(float_above(pure), max(epsilon_above(laws, tail, 0.05) for laws in distinct))
        deltas = [profile_above(laws, epsilons, _SHARE) for laws in distinct]
        return cls._capped(epsilons, deltas, pure, leaks, cost.neighbours)

    @classmethod
    def _capped(
        cls,
        epsilons: Floats,
        deltas: list[Floats],
        pure: Fraction | float,
        leaks: float,
        neighbours: Neighbours,
    ) -> "Curve":
        """Nothing but the leaks is left at the pure epsilon; elsewhere a little is added for rounding."""
        deltas = [np.minimum(each * (1 + _ROUNDING) + _ROUNDING, 1.0) for each in deltas]
        for each in deltas:
            each[epsilons >= float_above(pure)] = min(leaks, 1.0)
        return cls(epsilons, deltas[0], deltas[-1], neighbours)

    @property
    def advantage(self) -> float:
        """The most by which true positives can exceed false ones, at any threshold: delta(0).

        It is the total variation between P and Q, hence also 2 * accuracy - 1 when both are equally likely.
        """
        return float(max(self.remove[0], self.add[0]))

    def true_positives(self, false_positives: ArrayLike) -> Floats:
        """The largest rate of true positives of any test, at a rate of false positives.

        A test that says "yes" on S has a = Q[S] false and P[S] true positives. For every epsilon, P[S] is at
        most delta(epsilon) + e^epsilon a, and by the other direction at most 1 - e^-epsilon (1 - a -
        delta(epsilon)) (Kairouz, Oh, Viswanath 2015; Dong, Roth, Su 2022, proposition 2.12). The
        larger of both ways to ask is given: whether the suspicion is true, and whether it is false.
        """
        a = np.asarray(false_positives, float)[..., np.newaxis]
        if not np.all((a >= 0) & (a <= 1)):
            raise check.fail("true_positives", "false_positives", "lie between 0 and 1", false_positives)
        up, down = np.exp(self.epsilons), np.exp(-self.epsilons)
        ways = [
            np.minimum((first + up * a).min(axis=-1), (1 - down * (1 - a - second)).min(axis=-1))
            for first, second in ((self.remove, self.add), (self.add, self.remove))
        ]
        rates: Floats = np.clip(np.maximum(*ways), a[..., 0], 1.0)
        return rates

    def accuracy(self, prior: Fraction | float = 0.5) -> float:
        """The largest share of right guesses of somebody who knows the prior p.

        A test is right with probability p P[S] + (1-p)(1 - Q[S]), at most 1 - p + p delta(log((1-p)/p)). For
        p above 1/2 the directions change places. The larger of both ways to ask is given, as in
        `true_positives`: p may be the prior of the suspicion or of its opposite.
        """
        p = float(check.between("accuracy", "prior", prior, Fraction(0), Fraction(1)))
        less = min(p, 1 - p)
        if less == 0:
            return 1.0
        return float(1 - less + less * self._delta(self._worst, math.log((1 - less) / less)))

    def precision(self, prior: Fraction | float, false_positives: float) -> float:
        """The largest share of "yes" that is right, for a test with this rate of false positives.

        Bayes' rule: p t/(p t + (1-p) a), with the largest rate t of true positives at a.
        """
        p = float(check.between("precision", "prior", prior, Fraction(0), Fraction(1)))
        a = float(check.positive("precision", "false_positives", false_positives, 1))
        hits = float(self.true_positives(a))
        return p * hits / (p * hits + (1 - p) * a)

    def exceeding(self, epsilon: float) -> float:
        """A bound on the probability that the loss of an answer is above epsilon, in either direction.

        On S = {L > epsilon}, Q[S] <= e^-epsilon P[S], so P[S] (1 - e^{x-epsilon}) <= delta(x), x < epsilon.
        This is not delta(epsilon), which may be much smaller.
        """
        epsilon = float(check.number("exceeding", "epsilon", epsilon))
        if epsilon >= self.reach(0):
            return 0.0
        lower = self.epsilons < epsilon
        bounds = self._worst[lower] / -np.expm1(self.epsilons[lower] - epsilon)
        return float(np.min(bounds, initial=1.0))

    def reach(self, chance: float) -> float:
        """An epsilon that the loss of an answer exceeds with this probability at most, in either direction.

        It solves the bound of `exceeding`: the least x - log(1 - delta(x)/chance). Infinite where none is
        proven; with a chance of 0 it is the pure epsilon.
        """
        chance = float(check.between("reach", "chance", chance, Fraction(0), Fraction(1)))
        if chance == 0:
            return float(np.min(self.epsilons, initial=math.inf, where=self._worst == 0))
        below = self._worst < chance
        moved = self.epsilons[below] - np.log1p(-self._worst[below] / chance)
        return float(np.min(moved, initial=math.inf))

    def posterior(self, prior: Fraction | float, chance: float) -> Bracket:
        """Beliefs that an answer leaves with probability `chance` at most, on each side, true or false alike.

        The pure bounds at `reach(chance)`.
        """
        return posterior_bounds(prior, self.reach(chance))

    def expected(self, mean: float, upper: float) -> float:
        """The largest mean, if the suspicion is true, of a sum in [0, upper] that has this mean if it is not.

        Such a sum over `upper` is a randomised test, so its mean is `upper` times a rate of true positives.
        """
        top = check.positive("expected", "upper", upper)
        share = check.between("expected", "mean", mean, Fraction(0), top) / top
        return float(top) * float(self.true_positives(float(share)))

    def _delta(self, direction: Floats, epsilon: float) -> float:
        """Between points a chord in e^epsilon, which lies above, since a profile is convex there."""
        x = math.exp(min(epsilon, 700.0))
        return float(np.interp(x, np.exp(self.epsilons), direction))

    @property
    def _worst(self) -> Floats:
        return np.maximum(self.remove, self.add)


def _top(law: LossDistribution) -> float:
    """The largest loss, or one above which hardly any delta is left."""
    if math.isfinite(law.highest):
        return law.highest
    losses = np.append(np.geomspace(1e-6, _LARGEST, 400), _LARGEST)
    few = law.profile(losses) - law.infinite <= _TAIL
    few[-1] = True
    return float(losses[int(np.argmax(few))])


def _grid(pure: float, top: float) -> Floats:
    """From 0 to where a curve ends."""
    return np.linspace(0.0, max(min(pure if math.isfinite(pure) else top, _LARGEST), 1e-9), _POINTS)
