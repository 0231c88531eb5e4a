"""From what is wanted back to the mechanism: noise for a budget, uses for a budget, a budget for an error."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from sourdine.accounting.accountant import Accountant, Bracket, check_delta, exactly, without_delta
from sourdine.accounting.approximate import Pure
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.spend import Spend, plan_cost
from sourdine.accounting.subsampling.samplers import Sampling
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.mechanism import Mechanism

Plan = Callable[[Fraction], Sequence[Spend]]
TOLERANCE = 1e-5  # how much more noise than the least may be taken, relative
_WIDTH = 1e-3  # of the bracket; its upper end, which counts, is much closer
_EXACT = 1e-11  # the same where a simple fraction is to be met exactly
_TRIES = 40
_SMALL = 1000  # a denominator worth a look: what is asked for is often a simple fraction
_FARTHEST = 60  # powers of 4 on either side of 1


class ForError(NamedTuple):
    """A mechanism as noisy as an error allows, and what it costs."""

    mechanism: Mechanism
    epsilon: Bracket


def calibrate_noise(
    mechanism: Callable[[Fraction], Mechanism],
    distance: Distance,
    epsilon: Fraction | float,
    delta: float = 0.0,
    *,
    count: int = 1,
    sampling: Sampling | None = None,
    accountant: Accountant[Any] | None = None,
) -> Mechanism:
    """The mechanism with the least noise that stays within (epsilon, delta) when used `count` times.

    `mechanism` makes it from its noise. At delta 0 epsilons add up exactly, and the answer is exact where it
    is rational; else it is above the least by a relative 1e-5 at most, as the accountant sees it (PLD, unless
    told otherwise).

    >>> from sourdine.mechanisms import Laplace
    >>> calibrate_noise(lambda scale: Laplace(scale=scale), Distance.l1(1), 1, count=3)
    Laplace(scale=Fraction(3, 1), granularity=None)
    """

    def plan(noise: Fraction) -> list[Spend]:
        return [Spend(mechanism=mechanism(noise), distance=distance, count=count, sampling=sampling)]

    return calibrate_plan(plan, epsilon, delta, accountant=accountant)[0].mechanism


def calibrate_plan(
    plan: Plan,
    epsilon: Fraction | float,
    delta: float = 0.0,
    *,
    accountant: Accountant[Any] | None = None,
) -> Sequence[Spend]:
    """The plan with the least noise that stays within (epsilon, delta).

    `plan` makes all spends from one common factor of their noise.
    """
    target = _Target.declared("calibrate_plan", epsilon, delta, accountant)

    def costing(noise: Fraction) -> Sequence[Spend]:
        spends = plan(noise)
        for spend in spends:  # its delta grows with the noise unless the threshold does, too
            without_delta("a search for its noise", spend.one_loss(), "Use PartitionThreshold.within.")
        return spends

    rough = target.rough()
    return plan(
        least(
            lambda noise: target.excess(costing(noise)),
            None if rough is None else lambda noise: rough.excess(costing(noise)),
            _EXACT if isinstance(target.accountant, Pure) else TOLERANCE / 4,
        )
    )


def uses_within(
    spends: Sequence[Spend],
    epsilon: Fraction | float,
    delta: float = 0.0,
    *,
    accountant: Accountant[Any] | None = None,
) -> int:
    """How often a plan can be carried out within (epsilon, delta); 0 if not even once.

    >>> from sourdine.mechanisms import Laplace
    >>> uses_within([Spend(mechanism=Laplace(scale=20), distance=Distance.l1(1))], 1)
    20
    """
    target = _Target.declared("uses_within", epsilon, delta, accountant)
    low, high = 0, 1
    excess_low, excess_high = -math.inf, target.excess(spends)
    while excess_high <= 0:
        if high >= 1 << 40:
            raise check.fail("uses_within", "epsilon", "be used up by 2^40 uses", epsilon)
        low, excess_low = high, excess_high
        grown = high * math.exp(min(-2 * excess_high, 9.0)) * 1.05
        high = min(max(math.ceil(grown), 2 * high), 1 << 40)
        excess_high = target.excess(spends, high)
    while high - low > 1:
        middle = _between(low, high, excess_low, excess_high)
        excess = target.excess(spends, middle)
        if excess <= 0:
            low, excess_low, excess_high = middle, excess, excess_high / 2
        else:
            high, excess_high, excess_low = middle, excess, excess_low / 2
    return low


def epsilon_for_error(
    mechanism: Callable[[Fraction], Mechanism],
    distance: Distance,
    error: float,
    delta: float = 0.0,
    *,
    confidence: float = 0.95,
    count: int = 1,
    sampling: Sampling | None = None,
    accountant: Accountant[Any] | None = None,
) -> ForError:
    """The noisiest mechanism whose error stays within `error` with this confidence, and its epsilon.

    >>> from sourdine.mechanisms import Laplace
    >>> best = epsilon_for_error(lambda scale: Laplace(scale=scale), Distance.l1(1), 30)
    >>> round(float(best.mechanism.scale), 2), round(best.epsilon.upper, 3)
    (10.19, 0.098)
    """
    wanted = float(check.positive("epsilon_for_error", "error", error))
    confidence = check.confidence("epsilon_for_error", confidence)
    delta = check_delta("epsilon_for_error", delta)

    def excess(precision: Fraction) -> float:
        bound = mechanism(1 / precision).error(confidence)
        return math.log(bound / wanted) if bound > 0 else -math.inf

    best = mechanism(1 / least(excess))
    spend = Spend(mechanism=best, distance=distance, count=count, sampling=sampling)
    chosen: Accountant[Any] = accountant or (Pure() if delta == 0 else PLD())
    return ForError(best, chosen.epsilon(plan_cost([spend], chosen), delta))


@dataclass(frozen=True)
class _Target:
    """An (epsilon, delta) to stay within, as one accountant sees it."""

    owner: str
    epsilon: Fraction
    delta: float
    accountant: Accountant[Any]

    @classmethod
    def declared(
        cls, owner: str, epsilon: Fraction | float, delta: float, accountant: Accountant[Any] | None
    ) -> "_Target":
        exact = check.positive(owner, "epsilon", epsilon, 1 << 20)
        delta = check_delta(owner, delta)
        near = max(1e-6, _WIDTH * min(1.0, float(exact)))
        return cls(owner, exact, delta, accountant or (Pure() if delta == 0 else PLD(width=near)))

    def rough(self) -> "_Target | None":
        """The same, looked at less closely, if that is quicker."""
        if not isinstance(self.accountant, PLD):
            return None
        return replace(self, accountant=PLD(width=min(1.0, 20 * self.accountant.width)))

    def excess(self, spends: Sequence[Spend], times: int = 1) -> float:
        """log(cost / epsilon) of a plan carried out so many times: 0 or less where it stays within."""
        try:
            cost = self.accountant.repeat(plan_cost(spends, self.accountant), times)
        except UnsupportedLoss as problem:
            if self.delta > 0 or not isinstance(self.accountant, Pure):
                raise
            remedy = "This plan has no epsilon at delta 0, as with Gaussian noise. A common choice is 1e-6."
            raise check.fail(self.owner, "delta", "be above 0", 0, remedy) from problem
        if isinstance(self.accountant, Pure):
            if Fraction(self.delta) < cost.delta:
                return math.inf
            ratio = cost.epsilon / self.epsilon
            return 0.0 if ratio == 1 else math.copysign(max(abs(math.log(ratio)), 1e-300), ratio - 1)
        upper = self.accountant.epsilon(cost, self.delta).upper
        if upper == 0:
            return -math.inf
        ratio = exactly(upper) / self.epsilon
        return math.inf if upper == math.inf else math.copysign(abs(math.log(ratio)), ratio - 1)


def least(
    excess: Callable[[Fraction], float],
    rough: Callable[[Fraction], float] | None = None,
    tolerance: float = TOLERANCE / 4,
) -> Fraction:
    """About the least number where the excess, which falls, is at most 0; a fraction with few digits.

    A rough excess, quicker to compute, tells where to begin. Numbers that are refused (InvalidParameter)
    count as too small.
    """
    start = _start(rough or excess)
    if rough is not None:
        _, start = _bracket(rough, start, 3e-3)
    low, high = _bracket(excess, start, tolerance)
    return _simple(low, high, lambda number: _safe(excess, number, start) <= 0)


def _bracket(
    excess: Callable[[Fraction], float], start: Fraction, tolerance: float
) -> tuple[Fraction, Fraction]:
    """Two numbers within a tolerance, of which the first is too small and the second is not."""
    low = high = start
    at_low = at_high = _safe(excess, start, start)
    while at_high > 0:
        low, at_low = high, at_high
        high = _short(high * Fraction(min(4.0, math.exp(min(1.5 * at_high, 2.0)) * 1.003)))
        at_high = _safe(excess, high, start)
    while at_low <= 0:
        high, at_high = low, at_low
        low = _short(low * Fraction(max(0.25, math.exp(max(1.5 * at_low, -2.0)) / 1.003)))
        if low < Fraction(1, 1 << 200):
            return low, high
        at_low = _safe(excess, low, start)
    while high > low * Fraction(1 + tolerance):
        middle = _inside(low, high, at_low, at_high)
        value = _safe(excess, middle, start)
        if value <= 0:  # the end that stays is halved, so that it moves in turn (Illinois)
            high, at_high, at_low = middle, value, at_low / 2
        else:
            low, at_low, at_high = middle, value, at_high / 2
    return low, high


def _safe(excess: Callable[[Fraction], float], number: Fraction, good: Fraction) -> float:
    """The excess, infinite where a number below a good one is refused."""
    try:
        return excess(number)
    except InvalidParameter:
        if number >= good:
            raise
        return math.inf


def _start(excess: Callable[[Fraction], float]) -> Fraction:
    """A number near 1 that is not refused."""
    refusal: InvalidParameter | None = None
    for power in sorted(range(-_FARTHEST, _FARTHEST + 1), key=abs):
        number = Fraction(4) ** power
        try:
            excess(number)
            return number
        except InvalidParameter as problem:
            refusal = refusal or problem
    raise refusal or InvalidParameter("No noise at all is accepted.")


def _inside(low: Fraction, high: Fraction, at_low: float, at_high: float) -> Fraction:
    """A number between two, about where a straight line through the logarithms crosses 0."""
    share = 0.5
    if math.isfinite(at_low) and math.isfinite(at_high) and at_low > at_high:
        share = min(max(at_low / (at_low - at_high), 0.02), 0.98)
    short = _short(low * Fraction(float(high / low) ** share))
    return short if low < short < high else (low + high) / 2


def _short(number: Fraction) -> Fraction:
    """The number to fifteen digits."""
    unit = Fraction(10) ** (math.floor(math.log10(number)) - 14)
    return round(number / unit) * unit


def _between(low: int, high: int, at_low: float, at_high: float) -> int:
    """A whole number strictly between two, about where the excess crosses 0."""
    share = 0.5
    if low > 0 and math.isfinite(at_low) and math.isfinite(at_high) and at_high > at_low:
        share = min(max(-at_low / (at_high - at_low), 0.02), 0.98)
    guess = round(float(max(low, 1) * (high / max(low, 1)) ** share))
    return min(max(guess, low + 1), high - 1)


def _simple(low: Fraction, high: Fraction, fits: Callable[[Fraction], bool]) -> Fraction:
    """A fraction above low, hardly above high, which fits: one with a small denominator, or few decimals."""
    for _ in range(_TRIES):
        number = _simplest(low, high)
        if number.denominator > _SMALL:
            break
        if fits(number):
            return number
        low = number
    unit = Fraction(10) ** math.floor(math.log10(high))
    while math.ceil(high / unit) * unit > high * Fraction(1 + TOLERANCE / 2):
        unit /= 10
    number = math.ceil(high / unit) * unit
    return number if fits(number) else high


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the least denominator in (low, high]."""
    floor = math.floor(low)
    if floor + 1 <= high:
        return Fraction(floor + 1)
    rest = high - floor
    inner = _simplest_from(1 / rest, None if low == floor else 1 / (low - floor))
    return floor + 1 / inner


def _simplest_from(low: Fraction, high: Fraction | None) -> Fraction:
    """The fraction with the least denominator in [low, high), or in [low, infinity)."""
    ceiling = math.ceil(low)
    if high is None or ceiling < high:
        return Fraction(ceiling)
    floor = math.floor(low)
    return floor + 1 / _simplest(1 / (high - floor), 1 / (low - floor))
