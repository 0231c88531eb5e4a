"""Lower bounds on epsilon of a run by right guesses: the least noise that a run of its shape could have.

Guesses by the trained model may depend on each other (docs/guarantees/audit_one_run.md); those by gradient
canaries are taken for independent (docs/guarantees/audit.md).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.special import betainc
from scipy.stats import binom

from sourdine.accounting.dpsgd.training import steps_cost
from sourdine.accounting.pld.accountant import PLD, directions
from sourdine.accounting.pld.composition import profile_above
from sourdine.audit import binomial
from sourdine.audit.one_run import (
    SHARES,
    Flags,
    GaussianTradeOff,
    Guesses,
    OneRunBound,
    ProfileTradeOff,
    TradeOff,
    mu_from_guesses,
    numbers_of_guesses,
    tail_bound,
)
from sourdine.audit.training.checks import POWER, Check, Floats

_LEAST, _MOST = math.log(1 / 16), math.log(2**20)  # of noise, beyond which nothing is told
_STEP, _CLOSE = 0.25, 1e-3  # in its logarithm: of the search, and how near is near enough
_TURNS = 6  # trade-offs of a sampled run that are looked at: each takes a tenth of a second
_POINTS = 48  # of a profile: the bound loses less than a two-hundredth of epsilon to what lies between them
_RAREST = 1e-8  # a delta below the chances that an alarm of a hundredth meets among 2^20 canaries
_ROUGH = 2e-3  # how loose a delta may be, as a share of itself
_ASIDE = 0.02  # in the logarithm of a chance: how far below the alarm is aimed, so that it is met from below
_NEARLY = 0.05  # the same: what is left open, about a thousandth of the noise


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


def bound_of_model(
    found: list[Guesses], candidates: int, plan: ClaimedRun, *, confidence: float
) -> OneRunBound:
    """Bound epsilon by guesses from a trained model, one number of guesses after the other.

    Refuted is the trade-off function of a run of the plan's shape with as much noise, hence with more. Of the
    numbers of guesses, that is looked at which would show most of Gaussian noise; each has its share of the
    alarm, so that any may be.
    """
    alarm = (1 - confidence) / len(SHARES)
    mu, best = max(
        (mu_from_guesses(*each, candidates=candidates, confidence=1 - alarm), each) for each in found
    )
    if mu == 0:
        return OneRunBound(0.0, *best)
    if plan.sampling_rate == 1:  # such a run is Gaussian
        noise = math.sqrt(plan.steps) / mu
    else:
        noise = _refuted_noise(mu, best, candidates, plan, alarm)
    return OneRunBound(_epsilon(noise, plan), *best)


def largest_bound_of_model(candidates: int, plan: ClaimedRun, *, confidence: float) -> float:
    """Return the bound of `bound_of_model` if every guess is right."""
    found = [Guesses(count, count) for count in numbers_of_guesses(candidates)]
    return bound_of_model(found, candidates, plan, confidence=confidence).epsilon


def _refuted_noise(mu: float, found: Guesses, candidates: int, plan: ClaimedRun, alarm: float) -> float:
    """Return nearly the least noise of a sampled run that is refuted, by secants; infinite if none is."""

    def excess(curve: TradeOff) -> float:
        chance = tail_bound(curve, *found, candidates=candidates)
        return math.log(chance) - math.log(alarm)

    # the central limit of many steps is Gaussian, with this mu (Dong, Roth, Su 2022, corollary 5.4)
    at = -0.5 * math.log(math.log1p((mu / plan.sampling_rate) ** 2 / plan.steps))
    slope = (excess(GaussianTradeOff(mu / 1.02)) - excess(GaussianTradeOff(mu))) / math.log(1.02)
    least, before = math.inf, None
    for _ in range(_TURNS):
        at = min(max(at, _LEAST), _MOST)
        above = excess(_trade_off(math.exp(at), float(plan.sampling_rate), plan.steps))
        if above <= 0:
            least = min(least, at)
            if above >= -_NEARLY or at == _LEAST:
                break
        if before is not None and (above - before[1]) * (at - before[0]) < 0:
            slope = (above - before[1]) / (at - before[0])
        before = (at, above)
        at -= min(max((above + _ASIDE) / min(slope, -1.0), -_STEP), _STEP)
    return math.exp(least)


@lru_cache(maxsize=64)
def _trade_off(noise: float, rate: float, steps: int) -> ProfileTradeOff:
    """Return what the accountant knows of a run, from above, for one example added or removed."""
    cost = steps_cost(noise, rate, steps)
    top = PLD(width=_ROUGH).epsilon(cost, _RAREST).upper
    if not math.isfinite(top):
        return ProfileTradeOff([], [])  # nothing is known, and nothing is refuted
    epsilons = top * np.linspace(0.0, 1.0, _POINTS) ** 2  # curves bend most near 0
    deltas = [profile_above(laws, epsilons, _ROUGH) for laws in directions(cost)]
    return ProfileTradeOff(epsilons.tolist(), np.maximum(*deltas).tolist())


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
