"""From a budget back to a run: the noise that keeps to it, or the epochs that fit into it."""

import math
from collections.abc import Callable
from dataclasses import replace

from sourdine.accounting.dpsgd.cost import loss_of_training
from sourdine.accounting.dpsgd.training import Sampler, Training, least_noise, noise_for, step_loss
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.rdp.accountant import Renyi
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import float_below
from sourdine.core.loss import PrivacyLoss

_CLOSE = 1e-4  # how much more noise than the least may be taken, relative
_MOST_NOISE = 2.0**20
_LEAST_NOISE = 2.0**-4
_MOST_COUNT = 10**9
_CLOSELY = 10**6
_GROWTH = 1.25
_LIKE_POISSON = (Sampler.TRUNCATED, Sampler.ALLOCATION)  # the noise of Poisson batches is a good guess


def noise_for_training(training: Training, epsilon: float, delta: float) -> float:
    """The least noise that keeps such a run within (epsilon, delta), rounded up; its own noise is not read.

    >>> run = Training(size=60000, batch_size=64, noise_multiplier=1.0, epochs=15)
    >>> round(noise_for_training(run, 3, 1e-5), 3)
    0.593
    """
    if training.sampler in (Sampler.POISSON, Sampler.CYCLIC):
        return noise_for(
            epsilon,
            delta,
            float(training.turn_rate),
            training.uses,
            neighbours=training.relation,
            group=training.group,
        )
    budget = _Budget(epsilon, delta)
    if training.sampler in _LIKE_POISSON:
        near = noise_for(epsilon, delta, training.sampling_rate, training.steps)
        ends = (budget.epsilon, budget.delta)
        return least_noise(
            lambda noise_multiplier: loss_of_training(replace(training, noise_multiplier=noise_multiplier))[
                0
            ],
            training.uses,
            ends,
            math.log(near),
        )

    def fits(noise_multiplier: float) -> bool:
        return budget.holds(*loss_of_training(replace(training, noise_multiplier=noise_multiplier)))

    low = high = 1.0
    while not fits(high):
        low, high = high, 2 * high
        if high > _MOST_NOISE:
            raise check.fail("training", "epsilon", "be reached with noise up to 2^20", epsilon)
    while low == high or fits(low):
        low, high = low / 2, low
        if low < _LEAST_NOISE:
            return high
    while high > low * (1 + _CLOSE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def epochs_within(training: Training, epsilon: float, delta: float) -> int:
    """How many epochs of such a run fit into (epsilon, delta); 0 if not even one does.

    Beyond a million steps the answer is what Renyi moments allow, which is somewhat fewer than would fit.

    >>> epochs_within(Training(size=60000, batch_size=64, noise_multiplier=1.0, epochs=1), 1, 1e-5)
    37
    """
    loss, each = loss_of_training(replace(training, epochs=1))
    return _Budget(epsilon, delta).most(loss, each)


def steps_within(
    noise_multiplier: float,
    sampling_rate: float,
    epsilon: float,
    delta: float,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    group: int = 1,
) -> int:
    """How many steps with Poisson batches fit into (epsilon, delta); 0 if not even one does."""
    return _Budget(epsilon, delta).most(step_loss(noise_multiplier, sampling_rate, neighbours, group), 1)


class _Budget:
    """An (epsilon, delta) that repeated losses stay within, or not."""

    def __init__(self, epsilon: float, delta: float) -> None:
        self.epsilon = float_below(check.positive("training", "epsilon", epsilon, 2**20))  # never beyond it
        self.delta = float(check.inside("training", "delta", delta, 0, 1))
        self._whole = PLD(width=1e-3 * min(1.0, self.epsilon))
        self._moments = Renyi()

    def holds(self, loss: PrivacyLoss, count: int) -> bool:
        """Whether so many losses stay within, by the certified bracket."""
        cost = self._whole.repeat(self._whole.lift(loss), count)
        return self._whole.epsilon(cost, self.delta).upper <= self.epsilon

    def most(self, loss: PrivacyLoss, each: int) -> int:
        """How often `each` losses fit: at least as often as quick moments say, then searched from there."""
        cost = self._moments.repeat(self._moments.lift(loss), each)

        def surely(times: int) -> bool:
            repeated = self._moments.repeat(cost, times)
            return self._moments.epsilon(repeated, self.delta).upper <= self.epsilon

        low = _last(surely, 0, 1, 2.0)
        if low * each > _CLOSELY:
            return low
        return _last(
            lambda times: self.holds(loss, each * times), low, math.ceil(_GROWTH * low) or 1, _GROWTH
        )


def _last(fits: Callable[[int], bool], low: int, high: int, growth: float) -> int:
    """The largest number that fits, where `low` does: first by growing steps, then by halving."""
    while fits(high):
        low, high = high, math.ceil(growth * high) + 1
        if high > _MOST_COUNT:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
