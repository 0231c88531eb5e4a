"""From what an attack may achieve back to the noise: a limit on its advantage, or on its true positives.

An attack tells from the answer whether a unit is in the data. It says yes on a set S of answers, with
true positives P[S] and false ones Q[S]. The most by which P[S] can exceed Q[S] is delta(0), and
the most it can be where Q[S] is at most a is the least of delta(epsilon) + e^epsilon a over all epsilon
(docs/guarantees/explain.md).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.calibration import Plan, least
from sourdine.accounting.dpsgd.cost import loss_of_training
from sourdine.accounting.dpsgd.training import Training
from sourdine.accounting.explain.curve import Curve
from sourdine.accounting.pld.accountant import PLD, PldCost, delta_of, directions
from sourdine.accounting.pld.scout import Repeated
from sourdine.accounting.spend import Spend, plan_cost
from sourdine.accounting.subsampling.samplers import Sampling
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.distributions import Floats, LossDistribution
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism

_CLOSE = 1e-5  # which share of an attack's success may stay open
_SEARCHING = 1e-4  # the same while a noise is looked for, and how much more of it than the least may be taken
_ROUGH = 1e-2
_ROUNDING = 1e-14
_ROUNDS = 4
_AROUND = np.linspace(-1.0, 1.0, 201)


@dataclass(frozen=True, kw_only=True)
class AttackLimit:
    """What no attack may exceed: an advantage, or true positives at a rate of false positives.

    >>> AttackLimit(advantage=0.1).excess(0.2) > 0 > AttackLimit(advantage=0.1).excess(0.05)
    True
    """

    advantage: Fraction | float | None = None
    true_positives: Fraction | float | None = None
    false_positives: Fraction | float | None = None

    def __post_init__(self) -> None:
        rates = self.true_positives, self.false_positives
        if (self.advantage is None) == (rates == (None, None)) or rates.count(None) == 1:
            raise InvalidParameter(
                "A limit on attacks is an advantage, or true positives together with the false positives at "
                "which they are counted. Give one of the two, such as advantage=0.1, or true_positives=0.05 "
                "with false_positives=0.01."
            )
        if self.advantage is not None:
            check.keep(self, advantage=check.inside("AttackLimit", "advantage", self.advantage, 0, 1))
            return
        low = check.inside("AttackLimit", "false_positives", self.false_positives, 0, 1)
        high = check.inside("AttackLimit", "true_positives", self.true_positives, 0, 1)
        if high <= low:
            remedy = "Guessing alone has as many true positives as false ones."
            raise check.fail(
                "AttackLimit", "true_positives", "be above false_positives", self.true_positives, remedy
            )
        check.keep(self, true_positives=high, false_positives=low)

    def success(self, cost: PldCost, share: float = _CLOSE) -> float:
        """The most that an attack achieves against these losses, in the terms of this limit."""
        if self.advantage is not None:
            return attack_advantage(cost, share).upper
        return attack_true_positives(cost, self.false_positives, share)  # type: ignore[arg-type]

    def excess(self, success: float) -> float:
        """How far a success lies above the limit, as the log of a ratio: 0 or less where it keeps to it."""
        base, most = Fraction(0), self.advantage
        if most is None:  # what guessing achieves does not count
            base, most = Fraction(self.false_positives or 0), self.true_positives
        exact = check.rational("AttackLimit", "success", success)
        ratio = (exact - base) / (Fraction(most or 0) - base)
        return math.copysign(abs(math.log(ratio)), ratio - 1) if ratio > 0 else -math.inf


def attack_advantage(cost: PldCost, share: float = _CLOSE) -> Bracket:
    """The most by which an attack's true positives exceed its false ones: delta(0), between proven bounds.

    >>> from sourdine.core.distributions import GaussianLaw
    >>> from sourdine.core.distance import Neighbours
    >>> from sourdine.core.loss import PrivacyLoss
    >>> one = PLD().lift(PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE))
    >>> round(attack_advantage(one).upper, 4)  # 2 Phi(1/2) - 1
    0.3829
    """
    width = float(check.positive("attack_advantage", "share", share, 1))
    return PLD(width=width).delta(cost, 0.0)


def attack_true_positives(cost: PldCost, false_positives: Fraction | float, share: float = _CLOSE) -> float:
    """The most true positives of an attack at a rate of false positives, rounded up.

    Every epsilon gives a bound, delta(epsilon) + e^epsilon a, and the least of a few near the best is taken.

    >>> from sourdine.core.distributions import GaussianLaw
    >>> from sourdine.core.distance import Neighbours
    >>> from sourdine.core.loss import PrivacyLoss
    >>> one = PLD().lift(PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE))
    >>> round(attack_true_positives(one, 0.01), 4)  # Phi(Phi^-1(0.01) + 1)
    0.0924
    """
    rate = float(check.inside("attack_true_positives", "false_positives", false_positives, 0, 1))
    width = float(check.positive("attack_true_positives", "share", share, 1))
    curve = Curve.of_cost(cost)
    remove, add = directions(cost)
    ways = [(remove, add, curve.remove, curve.add), (add, remove, curve.add, curve.remove)]
    return max(
        _way(first, second, _Rough(curve.epsilons, low, high), rate, width)
        for first, second, low, high in (ways[:1] if add is remove else ways)
    )


@dataclass(frozen=True)
class _Rough:
    """A rough curve, in the direction that is asked for and in the other one."""

    epsilons: Floats
    first: Floats
    second: Floats

    def best(self, rate: float) -> tuple[float, float]:
        """About the epsilon with the least bound on true positives, which may be negative, and the bound."""
        up, down = np.exp(self.epsilons), np.exp(-self.epsilons)
        bounds = np.concatenate([1 - down * (1 - rate - self.second), self.first + up * rate])
        at = int(np.argmin(bounds))
        return float(np.concatenate([-self.epsilons, self.epsilons])[at]), float(bounds[at])


def _way(first: list[Repeated], second: list[Repeated], rough: _Rough, rate: float, width: float) -> float:
    """The least bound on true positives, looked for where a rough curve has it."""

    def bound(epsilon: float) -> float:
        if epsilon >= 0:
            return delta_of(first, epsilon, width).upper + math.exp(epsilon) * rate
        return 1 - math.exp(epsilon) * (1 - rate - delta_of(second, -epsilon, width).upper)

    middle, least_bound = rough.best(rate)
    if all(len(laws) == 1 and laws[0].count == 1 for laws in (first, second)):
        return _single(first[0].law, second[0].law, rough, rate)
    if width >= _ROUGH:
        return min(1.0, least_bound)
    step = float(rough.epsilons[1])
    sides = [middle - step, middle, middle + step]
    values = [bound(epsilon) for epsilon in sides]
    bend = values[0] - 2 * values[1] + values[2]
    if bend > 0:  # where a parabola through the three is least
        vertex = middle + step * (values[0] - values[2]) / (2 * bend)
        values.append(bound(min(max(vertex, middle - 4 * step), middle + 4 * step)))
    return min(1.0, least_bound, min(values) * (1 + _ROUNDING) + _ROUNDING)


def _single(first: LossDistribution, second: LossDistribution, rough: _Rough, rate: float) -> float:
    """The same for one law, whose profile costs nothing: grids close in on a valley that may be sharp."""
    step = float(rough.epsilons[1])
    middle, least_bound = rough.best(rate)
    for _ in range(_ROUNDS):
        near = middle + step * _AROUND
        up = first.profile(np.abs(near)) + np.exp(np.abs(near)) * rate
        down = 1 - np.exp(-np.abs(near)) * (1 - rate - second.profile(np.abs(near)))
        bounds = np.where(near >= 0, up, down) * (1 + _ROUNDING) + _ROUNDING
        middle, step = float(near[int(np.argmin(bounds))]), 2 * step * float(_AROUND[1] - _AROUND[0])
        least_bound = min(least_bound, float(bounds.min()))
    return min(1.0, least_bound)


def calibrate_to_attack(
    mechanism: Callable[[Fraction], Mechanism],
    distance: Distance,
    *,
    advantage: Fraction | float | None = None,
    true_positives: Fraction | float | None = None,
    false_positives: Fraction | float | None = None,
    count: int = 1,
    sampling: Sampling | None = None,
) -> Mechanism:
    """The mechanism with the least noise against which no attack does better than a limit allows.

    Used `count` times in a plan fixed beforehand; the noise is above the least by a relative 1e-4 at most.

    >>> from sourdine.mechanisms import Laplace
    >>> best = calibrate_to_attack(lambda scale: Laplace(scale=scale), Distance.l1(1), advantage=0.1)
    >>> round(float(best.scale), 2)  # tanh(1/(2 scale)) is 0.1
    4.98
    """
    limit = AttackLimit(advantage=advantage, true_positives=true_positives, false_positives=false_positives)

    def plan(noise: Fraction) -> list[Spend]:
        return [Spend(mechanism=mechanism(noise), distance=distance, count=count, sampling=sampling)]

    return calibrate_plan_to_attack(plan, limit)[0].mechanism


def calibrate_plan_to_attack(plan: Plan, limit: AttackLimit) -> Sequence[Spend]:
    """The plan with the least noise that keeps to a limit; `plan` makes it from a common factor of noise."""
    return plan(_least_noise(lambda noise: plan_cost(plan(noise), PLD()), limit))


def noise_for_attack(training: Training, limit: AttackLimit) -> float:
    """The least noise of a training run that keeps to a limit on attacks; its own noise is not read.

    >>> run = Training(size=60000, batch_size=600, noise_multiplier=1.0, epochs=1)
    >>> noise_for_attack(run, AttackLimit(advantage=0.5)) < noise_for_attack(run, AttackLimit(advantage=0.1))
    True
    """

    def cost_at(noise: Fraction) -> PldCost:
        loss, count = loss_of_training(replace(training, noise_multiplier=float(noise)))
        return PLD().repeat(PLD().lift(loss), count)

    return float(_least_noise(cost_at, limit))


def _least_noise(cost_at: Callable[[Fraction], PldCost], limit: AttackLimit) -> Fraction:
    def looking(share: float) -> Callable[[Fraction], float]:
        return lambda noise: limit.excess(limit.success(cost_at(noise), share))

    return least(looking(_SEARCHING), looking(_ROUGH), _SEARCHING / 4)
