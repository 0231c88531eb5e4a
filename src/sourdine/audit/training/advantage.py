"""What gradient canaries show of epsilon: how often they are told apart, beside what noise of a size allows.

docs/guarantees/audit.md has the proof, and what it rests on.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from scipy.special import betainc
from scipy.stats import binom

from sourdine.accounting.dpsgd.training import steps_cost
from sourdine.accounting.pld.accountant import PLD
from sourdine.audit import binomial
from sourdine.audit.one_run import Flags
from sourdine.audit.training.checks import POWER, Check, Floats

_LEAST, _MOST = math.log(1 / 16), math.log(2**20)  # of noise, beyond which nothing is told
_STEP, _CLOSE = 0.25, 1e-3  # in its logarithm: of the search, and how near is near enough


class ClaimedRun(Protocol):
    """Steps with independent noise, by which a run is priced."""

    @property
    def noise_multiplier(self) -> float: ...
    @property
    def sampling_rate(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def delta(self) -> float: ...


@dataclass(frozen=True, kw_only=True)
class GradientAudit:
    """What canaries in gradient space showed, with every noisy sum seen.

    The run tells as much as one whose noise is at most `noise_multiplier` clipping norms; such a run has an
    epsilon of at least `audited`, at the delta of the claim. `typical` is what a run without any fault shows
    on average, and `least_noise` the share of the claimed noise below which the canaries alone refute a run
    in 19 of 20.
    """

    audited: float
    noise_multiplier: float
    claimed_noise_multiplier: float
    typical: float
    least_noise: float
    right: int
    canaries: int
    evidence: Floats
    included: Flags


def audit_gradients(
    evidence: Floats, included: Flags, plan: ClaimedRun, *, confidence: float, alarm: float
) -> tuple[GradientAudit, Check]:
    """Guess that a canary is in where the evidence speaks for it, and bound the noise by the right guesses.

    A run with privacy profile delta(epsilon) lets a fair coin be guessed with a chance of at most
    (1 + delta(0))/2. If the canaries' scores are independent, the right guesses are at most binomial.
    """
    count = len(included)
    right = int(((evidence > 0) == included).sum())
    claimed = told_apart(plan.noise_multiplier, plan.sampling_rate, plan.steps)
    noise = noise_from_guesses(right, count, plan, 1 - confidence)
    usual = noise_from_guesses(round(count * (1 + claimed) / 2), count, plan, 1 - confidence)
    chance = binomial_tail(right, count, (1 + claimed) / 2)
    needed = _needed(count, claimed, alarm)
    gradients = GradientAudit(
        audited=_epsilon(noise, plan),
        noise_multiplier=noise,
        claimed_noise_multiplier=plan.noise_multiplier,
        typical=_epsilon(usual, plan),
        least_noise=min(1.0, _noise_for(2 * needed - 1, plan) / plan.noise_multiplier),
        right=right,
        canaries=count,
        evidence=evidence,
        included=included,
    )
    mean = count * (1 + claimed) / 2
    verdict = Check(
        name="gradient canaries",
        finding=f"{right:,} of {count:,} guessed right, at most {mean:,.0f} on average by the claim",
        chance=chance,
        alarm=alarm,
        smallest=f"noise below {gradients.least_noise:.3f} times the claim",
    )
    return gradients, verdict


def told_apart(noise: float, rate: float, steps: int) -> float:
    """The most by which the chance of any event can differ for neighbours: delta at epsilon 0, from above."""
    if rate == 1:
        return math.erf(math.sqrt(steps / 8) / noise)
    return min(1.0, _profile(float(noise), float(rate), steps))


@lru_cache(maxsize=256)
def _profile(noise: float, rate: float, steps: int) -> float:
    return PLD().delta(steps_cost(noise, rate, steps), 0.0).upper


def noise_from_guesses(right: int, guesses: int, plan: ClaimedRun, beta: float) -> float:
    """What the noise of a run shaped like the plan is at most, wrong with a chance of at most beta."""
    return _noise_for(2 * binomial.least(right, guesses, beta) - 1, plan)


def binomial_tail(right: int, guesses: int, chance: float) -> float:
    """The chance of at least so many right guesses."""
    return float(betainc(right, guesses - right + 1, chance)) if right > 0 else 1.0


def _noise_for(apart: float, plan: ClaimedRun) -> float:
    """The least noise, from above, by which a run of the plan's shape tells neighbours apart less well."""
    if apart <= 0:
        return math.inf

    def less(log_noise: float) -> bool:
        return told_apart(math.exp(log_noise), plan.sampling_rate, plan.steps) < apart

    low = high = math.log(plan.noise_multiplier)
    while not less(high):
        low, high = high, high + _STEP
        if high > _MOST:
            return math.inf
    while less(low):
        low, high = low - _STEP, low
        if low < _LEAST:
            return math.exp(high)
    while high - low > _CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if less(middle) else (middle, high)
    return math.exp(high)


def _epsilon(noise: float, plan: ClaimedRun) -> float:
    """What a run with so much noise loses at least, at the plan's delta."""
    if not math.isfinite(noise):
        return 0.0
    return PLD(width=1e-3).epsilon(steps_cost(noise, plan.sampling_rate, plan.steps), plan.delta).lower


def _needed(count: int, claimed: float, alarm: float) -> float:
    """The chance of right guesses with which a run would be refuted POWER of the time."""
    allowed = int(binom.isf(alarm, count, (1 + claimed) / 2))
    return binomial.most(min(allowed, count), count, 1 - POWER)
