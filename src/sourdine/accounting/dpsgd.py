"""Budgets of private training: noisy sums of clipped gradients over random batches.

The noise of one step is continuous Gaussian with a standard deviation of `noise` clipping norms.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from scipy.optimize import brentq
from scipy.special import ndtr

from sourdine.accounting.bracket import Bracket
from sourdine.accounting.composition import Repeated, epsilon_above
from sourdine.accounting.pld import PLD, PldCost
from sourdine.accounting.sampling import poisson
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.laws import GaussianLaw
from sourdine.core.loss import Loss


class Sampler(StrEnum):
    """How batches are drawn."""

    POISSON = "poisson"
    FIXED = "fixed"
    SHUFFLE = "shuffle"


@dataclass(frozen=True, kw_only=True)
class Training:
    """A run of private training, as its planner states it."""

    size: int
    batch: int
    noise: float
    epochs: int
    sampler: Sampler = Sampler.POISSON

    def __post_init__(self) -> None:
        check.integer("Training", "size", self.size, 1, 2**50)
        check.integer("Training", "batch", self.batch, 1, self.size)
        check.positive("Training", "noise", self.noise, 2**20)
        check.integer("Training", "epochs", self.epochs, 1, 2**30)
        check.member("Training", "sampler", self.sampler, Sampler)

    @property
    def rate(self) -> float:
        """The share of the data in a batch."""
        return self.batch / self.size

    @property
    def steps(self) -> int:
        """Steps of the optimizer: epochs times the batches of one epoch, rounded up."""
        return self.epochs * -(-self.size // self.batch)


def step_loss(noise: float, rate: float) -> Loss:
    """The loss of one step with a Poisson batch, for adding or removing one example."""
    check.positive("step_loss", "noise", noise, 2**20)
    base = Loss.symmetric(GaussianLaw(1 / float(noise)), neighbours=Neighbours.ADD_REMOVE)
    return poisson(base, rate)


def steps_cost(noise: float, rate: float, steps: int) -> PldCost:
    """Many steps, each with a fresh Poisson batch."""
    accountant = PLD()
    return accountant.repeat(accountant.lift(step_loss(noise, rate)), steps)


def epsilon_of_steps(noise: float, rate: float, steps: int, delta: float, width: float = 1e-3) -> Bracket:
    """epsilon of so many steps at a sampling rate.

    >>> 0.6111 in epsilon_of_steps(1.0, 64 / 60000, 14070, 1e-5)
    True
    """
    return PLD(width=width).epsilon(steps_cost(noise, rate, steps), delta)


def noise_for(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The least noise with which so many steps stay within (epsilon, delta), rounded up by about 1e-5.

    A secant on the logarithm of the noise finds it on the upper end of the bracket: first on a coarse
    lattice from the start that the central limit gives, then on a fine one. The answer is checked in both
    directions.
    """
    check.positive("noise_for", "epsilon", epsilon, 2**20)
    check.inside("noise_for", "delta", delta, 0, 1)
    epsilon, delta = float(epsilon), float(delta)

    def excess(log_noise: float, width: float) -> float:
        law = step_loss(math.exp(log_noise), rate).remove
        return math.log(max(epsilon_above([Repeated(law, steps)], delta, width), 1e-12) / epsilon)

    def refused_by_add(log_noise: float) -> bool:
        law = step_loss(math.exp(log_noise), rate).add
        return all(epsilon_above([Repeated(law, steps)], delta, width) > epsilon for width in (coarse, fine))

    coarse, fine = 0.02 * epsilon, 5e-5 * min(epsilon, 1.0)
    at, slope = _central_limit(epsilon, delta, rate, steps), -1.5
    for width, close in ((coarse, 1e-3), (coarse / 15, 2e-5), (fine, 0.0)):
        before = None
        for _ in range(40):
            value = excess(at, width)
            if before is not None and (value - before[1]) / (at - before[0]) < -1e-3:
                slope = (value - before[1]) / (at - before[0])
            if close == 0.0 and -2e-5 < value <= 0 and not refused_by_add(at):
                return math.exp(at)
            before = (at, value)
            move = min(max(-(value + 5e-6) / slope, -0.7), 0.7)
            at += move
            if abs(move) < close:
                break
    raise ArithmeticError("The search for the noise did not settle.")


def _central_limit(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The logarithm of the noise that the Gaussian limit of many steps suggests; a start, not a bound."""

    def log_ratio(log_mu: float) -> float:
        mu = math.exp(log_mu)
        tail = ndtr(-epsilon / mu + mu / 2) - math.exp(min(epsilon, 700.0)) * ndtr(-epsilon / mu - mu / 2)
        return math.log(max(tail, 1e-300) / delta)

    mu = math.exp(brentq(log_ratio, -12.0, 6.0, xtol=1e-3))
    return math.log(max(1 / math.sqrt(math.log1p((mu / rate) ** 2 / steps)), 0.25))
