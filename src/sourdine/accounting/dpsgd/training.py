"""Budgets of private training: noisy sums of clipped gradients over random batches.

The noise of one step is continuous Gaussian with a standard deviation of `noise_multiplier` clipping norms.
A delta that is too large for the number of people it is about gets a warning.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.accountant import PLD, PldCost
from sourdine.accounting.pld.composition import epsilon_above
from sourdine.accounting.pld.scout import Repeated
from sourdine.accounting.subsampling.mixture import MOST, poisson_group, poisson_replace
from sourdine.accounting.subsampling.poisson import poisson
from sourdine.accounting.subsampling.samplers import (
    FixedSize,
    Poisson,
    PoissonGroup,
    PoissonReplace,
    RandomAllocation,
    Sampling,
    Shuffled,
    TruncatedPoisson,
)
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.format import plain
from sourdine.core.lazy import log_ndtr, ndtr
from sourdine.core.loss import PrivacyLoss

_LEAST, _MOST = math.log(2.0**-4), math.log(2.0**20)
_TURNS = 60
_NEAR = 1e-8


class Sampler(StrEnum):
    """How batches are drawn."""

    POISSON = "poisson"
    FIXED = "fixed"
    SHUFFLE = "shuffle"
    TRUNCATED = "truncated"
    ALLOCATION = "allocation"
    CYCLIC = "cyclic"

    @property
    def by_epoch(self) -> bool:
        """Whether a whole epoch is drawn at once, and paid at once."""
        return self in (Sampler.SHUFFLE, Sampler.ALLOCATION)

    @property
    def relations(self) -> tuple[Neighbours, ...]:
        """The neighbours that it is accounted for; the first unless told."""
        return _RELATIONS[self]


_RELATIONS = {
    Sampler.POISSON: (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE),
    Sampler.FIXED: (Neighbours.REPLACE,),
    Sampler.SHUFFLE: (Neighbours.ZERO_OUT,),
    Sampler.TRUNCATED: (Neighbours.ZERO_OUT, Neighbours.ADD_REMOVE),
    Sampler.ALLOCATION: (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT),
    Sampler.CYCLIC: (Neighbours.ZERO_OUT, Neighbours.REPLACE),
}
_HALF = Fraction(1, 2)  # of a replacement: two clipped gradients may pull opposite ways
_TIGHT = PLD()


@dataclass(frozen=True, kw_only=True)
class Training:
    """A run of private training, as its planner states it.

    `max_batch_size` is where batches are truncated: five deviations above `batch_size` unless told.
    `neighbours` are the sampler's own unless told. `group` is how many examples are protected together, such
    as all of somebody who has at most so many. `parts` is for cyclic batches: the data are cut into so many
    parts, which take turns, and each of a part comes into its batch with the same probability; unless told,
    parts are the batches of an epoch, and chance has no share in them.
    """

    size: int
    batch_size: int
    noise_multiplier: float
    epochs: int
    sampler: Sampler = Sampler.POISSON
    max_batch_size: int | None = None
    neighbours: Neighbours | None = None
    group: int = 1
    parts: int | None = None

    def __post_init__(self) -> None:
        check.keep(self, size=check.integer("Training", "size", self.size, 1, 2**50))
        check.keep(self, batch_size=check.integer("Training", "batch_size", self.batch_size, 1, self.size))
        check.keep(
            self,
            noise_multiplier=float(
                check.positive("Training", "noise_multiplier", self.noise_multiplier, 2**20)
            ),
        )
        check.keep(self, epochs=check.integer("Training", "epochs", self.epochs, 1, 2**30))
        check.member("Training", "sampler", self.sampler, Sampler)
        check.keep(self, group=check.integer("Training", "group", self.group, 1, MOST))
        if self.group > 1 and self.sampler is not Sampler.POISSON:
            remedy = (
                f"Of a group under {self.sampler} batches nothing tight is proven. Draw by Poisson sampling."
            )
            raise check.fail("Training", "group", "be 1 unless the sampler is poisson", self.group, remedy)
        if self.neighbours is not None and self.neighbours not in self.sampler.relations:
            must = f"be {' or '.join(self.sampler.relations)} for {self.sampler} batches"
            remedy = "Leave it out, or draw by Poisson sampling, which is proven for all of them."
            raise check.fail("Training", "neighbours", must, str(self.neighbours), remedy)
        self._check_parts()
        if self.sampler is not Sampler.TRUNCATED:
            if self.max_batch_size is not None:
                remedy = "Only truncated batches have a maximum: take the sampler 'truncated'."
                raise check.fail(
                    "Training",
                    "max_batch_size",
                    f"not be given for {self.sampler} batches",
                    self.max_batch_size,
                    remedy,
                )
        elif self.max_batch_size is None:
            check.keep(self, max_batch_size=largest_batch(self.batch_size, self.size))
        else:
            check.keep(
                self,
                max_batch_size=check.integer(
                    "Training", "max_batch_size", self.max_batch_size, self.batch_size, self.size
                ),
            )

    def _check_parts(self) -> None:
        if self.parts is None:
            return
        if self.sampler is not Sampler.CYCLIC:
            remedy = "Only cyclic batches are drawn from parts of the data that take turns."
            raise check.fail(
                "Training", "parts", f"not be given for {self.sampler} batches", self.parts, remedy
            )
        most = self.size // self.batch_size
        check.keep(self, parts=check.integer("Training", "parts", self.parts, 1, most))

    @property
    def relation(self) -> Neighbours:
        """The neighbours that the guarantee is about."""
        return self.sampler.relations[0] if self.neighbours is None else Neighbours(self.neighbours)

    @property
    def moved(self) -> int:
        """By how many clipping norms a step's sum moves, between neighbours."""
        return 2 if self.relation is Neighbours.REPLACE else 1

    @property
    def turn_rate(self) -> Fraction:
        """The probability that a unit comes into a batch that it may come into."""
        if self.sampler is Sampler.CYCLIC:
            return Fraction(1) if self.parts is None else Fraction(self.batch_size * self.parts, self.size)
        return Fraction(self.batch_size, self.size)

    @property
    def sampling(self) -> Sampling | None:
        """How a unit comes into a batch, as a ledger is told; nothing where no chance has a share in it."""
        sampling_rate = self.turn_rate
        if self.sampler is Sampler.CYCLIC and self.parts is None:
            return None
        if self.sampler is Sampler.FIXED:
            return FixedSize(batch_size=self.batch_size, size=self.size)
        if self.sampler is Sampler.SHUFFLE:
            return Shuffled(batch_size=self.batch_size, size=self.size)
        if self.sampler is Sampler.TRUNCATED:
            assert self.max_batch_size is not None
            return TruncatedPoisson(
                batch_size=self.batch_size, size=self.size, max_batch_size=self.max_batch_size
            )
        if self.sampler is Sampler.ALLOCATION:
            return RandomAllocation(batches=self.steps // self.epochs)
        if self.relation is Neighbours.REPLACE:
            return PoissonReplace(sampling_rate=sampling_rate, alone=_HALF, group=self.group)
        return (
            Poisson(sampling_rate=sampling_rate)
            if self.group == 1
            else PoissonGroup(sampling_rate=sampling_rate, group=self.group)
        )

    @property
    def uses(self) -> int:
        """How often its sampling is used, and paid: by step, by epoch, or by turn of all parts."""
        return self.uses_until(self.steps)

    def uses_until(self, step: int) -> int:
        """How often it is used in the first steps."""
        if self.sampler is Sampler.CYCLIC and self.parts is not None:
            return -(-step // self.parts)
        if self.sampler is Sampler.CYCLIC or self.sampler.by_epoch:
            return -(-step * self.epochs // self.steps)
        return step

    @property
    def sampling_rate(self) -> float:
        """The share of the data in a batch."""
        return self.batch_size / self.size

    @property
    def steps(self) -> int:
        """Steps of the optimizer: epochs times the batches of one epoch, rounded up."""
        return self.epochs * -(-self.size // self.batch_size)


def largest_batch(batch: int, size: int) -> int:
    """What a Poisson batch of this size on average hardly ever exceeds: five deviations more.

    >>> largest_batch(64, 60_000)
    104
    """
    return min(size, batch + math.ceil(5 * math.sqrt(batch)))


def step_loss(
    noise_multiplier: float,
    sampling_rate: Fraction | float,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    group: int = 1,
) -> PrivacyLoss:
    """The loss of one step with a Poisson batch, for one example or a group of them."""
    noise_multiplier = float(check.positive("step_loss", "noise_multiplier", noise_multiplier, 2**20))
    if neighbours is Neighbours.REPLACE:
        moved = PrivacyLoss.symmetric(GaussianLaw(2 / noise_multiplier), neighbours=neighbours)
        return poisson_replace(moved, sampling_rate, _HALF, group)
    base = PrivacyLoss.symmetric(GaussianLaw(1 / noise_multiplier), neighbours=neighbours)
    return poisson(base, sampling_rate) if group == 1 else poisson_group(base, sampling_rate, group)


def steps_cost(
    noise_multiplier: float,
    sampling_rate: Fraction | float,
    steps: int,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    group: int = 1,
) -> PldCost:
    """Many steps, each with a fresh Poisson batch."""
    loss = step_loss(noise_multiplier, sampling_rate, neighbours, group)
    return _TIGHT.repeat(_TIGHT.lift(loss), steps)


def dpsgd_epsilon(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    width: float = 1e-3,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    group: int = 1,
) -> Bracket:
    """epsilon of DP-SGD: so many steps on Poisson batches, for one example or a group of them.

    `noise_multiplier` is the standard deviation of the noise in clipping norms.

    >>> 0.6111 in dpsgd_epsilon(1.0, 64 / 60000, 14070, 1e-5)
    True
    >>> 1.0252 in dpsgd_epsilon(1.0, 64 / 60000, 14070, 1e-5, neighbours=Neighbours.REPLACE)
    True
    >>> 1.3081 in dpsgd_epsilon(1.0, 64 / 60000, 14070, 1e-5, group=2)
    True
    """
    noise = float(check.positive("dpsgd_epsilon", "noise_multiplier", noise_multiplier, 2**20))
    rate = check.positive("dpsgd_epsilon", "sampling_rate", sampling_rate, 1)
    return PLD(width=width).epsilon(steps_cost(noise, rate, steps, neighbours, group), delta)


def noise_for(
    epsilon: float,
    delta: float,
    sampling_rate: float,
    steps: int,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    group: int = 1,
) -> float:
    """The least noise with which so many steps stay within (epsilon, delta), rounded up by about 1e-5.

    Less than 1/16 is never returned, even where any noise would do. The search runs on the upper end of the
    bracket, first on a coarse lattice from the start that the central limit gives, then on a fine one. The
    answer holds in both directions.

    >>> round(noise_for(3, 1e-5, 64 / 60000, 14070), 3)
    0.593
    """
    epsilon = float(check.positive("noise_for", "epsilon", epsilon, 2**20))
    delta = float(check.inside("noise_for", "delta", delta, 0, 1))
    sampling_rate = float(check.positive("noise_for", "sampling_rate", sampling_rate, 1))
    steps = check.integer("noise_for", "steps", steps, 1, 2**62)
    start = _central_limit(epsilon, delta, sampling_rate, steps)
    return least_noise(
        lambda noise: step_loss(noise, sampling_rate, neighbours, group), steps, (epsilon, delta), start
    )


def least_noise(
    loss_at: Callable[[float], PrivacyLoss], count: int, budget: tuple[float, float], start: float
) -> float:
    """The least noise with which a loss, paid so often, stays within a budget; from the logarithm of a
    guess."""
    epsilon, delta = budget

    def excess(width: float, log_noise: float) -> float:
        loss = loss_at(math.exp(log_noise))
        laws = (loss.remove, loss.add) if both and loss.add is not loss.remove else (loss.remove,)
        cost = max(epsilon_above([Repeated(law, count)], delta, width) for law in laws)
        return math.log(max(cost, 1e-12 * epsilon) / epsilon)

    both = False  # removing an example nearly always costs more than adding one
    coarse, fine = 0.02 * epsilon, 5e-5 * min(epsilon, 1.0)
    at = start
    for width, close in ((coarse, 1e-3), (coarse / 15, 5e-5), (fine, 2e-5)):
        at = _root(partial(excess, width), at, close)
    both = True
    if excess(fine, at) > 0:
        at = _root(partial(excess, fine), at, 2e-5)
    if excess(fine, at) > 0:
        remedy = "Take a larger epsilon, a larger delta, or fewer steps."
        raise check.fail("noise_for", "epsilon", "be within reach of a noise up to 2^20", epsilon, remedy)
    return math.exp(at)


def _root(excess: Callable[[float], float], at: float, close: float) -> float:
    """Where a falling function reaches 0, from the side where it is negative, to within `close` of 0.

    Secants between bounds. Where even the least noise does, it is that; where the most does not, that.
    """
    low, high, slope = -math.inf, math.inf, -1.5
    before: tuple[float, float] | None = None
    for _ in range(_TURNS):
        at = min(max(at, _LEAST), _MOST)
        if not low < at < high:
            at = (low + high) / 2
        value = excess(at)
        if -close < value <= 0 or (at == _LEAST and value <= 0) or (at == _MOST and value > 0):
            return at
        low, high = (at, high) if value > 0 else (low, at)
        if high - low < _NEAR:  # the lattice lets the function jump
            return high
        if before is not None and (value - before[1]) * (at - before[0]) < 0:
            slope = min((value - before[1]) / (at - before[0]), -1e-3)
        before = (at, value)
        at += min(max(-(value + close / 4) / slope, -0.7), 0.7)
    return min(high, _MOST)


def _central_limit(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The logarithm of the noise that the Gaussian limit of many steps suggests; a start, not a bound."""

    def log_ratio(log_mu: float) -> float:
        mu = math.exp(log_mu)
        tail = ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))
        return math.log(max(tail, 1e-300)) - math.log(delta)

    from scipy.optimize import brentq  # takes long to load

    low, high = -30.0, 8.0
    if log_ratio(low) < 0 < log_ratio(high):
        low = high = brentq(log_ratio, low, high, xtol=1e-3)
    mu = math.exp(low if log_ratio(low) >= 0 else high)
    return math.log(max(1 / math.sqrt(math.log1p((mu / rate) ** 2 / steps)), 0.25))


def warn_of_delta(delta: float, size: int, counted: str) -> str:
    """What is doubtful about a delta for so many units, in words too; empty if nothing is.

    Publishing the whole record of one in `size` units, drawn at random, is (0, 1/size)-DP.

    >>> warn_of_delta(1e-5, 60_000, "the 60,000 people")
    ''
    >>> warn_of_delta(0.1, 60_000, "the 60,000 people")[:57]
    'The delta of 0.1 is above 1 divided by the 60,000 people:'
    """
    if delta * size <= 1:
        return ""
    return (
        f"The delta of {plain(delta)} is above 1 divided by {counted}: such a guarantee would even allow "
        "to publish the whole record of somebody drawn at random. Take a delta far below that."
    )
