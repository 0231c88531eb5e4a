"""A run of private training without its noise: how much noise it needs, and what it costs."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from sourdine.accounting.dpsgd.calibration import (
    epochs_within,
    noise_for_training,
    steps_within,
)
from sourdine.accounting.dpsgd.cost import TrainingCost, cost_of_steps, cost_of_training
from sourdine.accounting.dpsgd.training import Sampler, Training, noise_for
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.learning.correlation.declared import FactorCandidate
from sourdine.learning.correlation.factor import Factor
from sourdine.learning.noise.noisy_gradient import rounded_noise
from sourdine.learning.pricing import SGD, NoiseForecast, PricedPlan, StepForecast, batches_of

_DIGITS = 10**4  # noise is rounded up to this, so that people can write it down
_WORTH = 0.95  # of the best signal-to-noise ratio is enough: larger batches only take longer
_ENOUGH = 100  # steps that an optimizer should have, however clear its gradients are
_LIKE_POISSON = (Sampler.TRUNCATED, Sampler.ALLOCATION, Sampler.CYCLIC)
_OWNER = "TrainingPlan"
_EACH = "Each example's gradient is clipped"
_CORRELATED = (
    "Each example's gradient is clipped to a norm of C before the sum. Noise is correlated over the steps, "
    "and as large as it must be for all that one example moves together; what is kept of it between steps "
    "stays secret."
)


@dataclass(frozen=True)
class Shape:
    """A run without its noise; its length is stated in one of two ways, or not at all."""

    size: int
    batch_size: int
    sampler: Sampler
    epochs: int | None
    count: int | None
    max_batch_size: int | None = None
    neighbours: Neighbours | None = None
    group: int = 1
    parts: int | None = None
    factor: Factor | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        stated = self.training()  # which refuses what is not accounted for
        check.keep(self, group=stated.group, max_batch_size=stated.max_batch_size)

    @property
    def sampling_rate(self) -> float:
        return self.batch_size / self.size

    @property
    def steps(self) -> int:
        if self.count is None and self.epochs is None:
            remedy = "Or give 'epsilon' and 'noise_multiplier', and training stops where the budget ends."
            raise check.fail(_OWNER, "epochs", "be given, or else 'steps'", None, remedy)
        return self.count if self.count is not None else (self.epochs or 1) * -(-self.size // self.batch_size)

    @property
    def batches(self) -> int:
        """How many an epoch has."""
        return -(-self.size // self.batch_size)

    def with_factor(self, candidate: FactorCandidate) -> "Shape":
        """The run with correlated noise; without a factor, with batches drawn from all units."""
        if candidate.factor is None:
            return replace(self, sampler=Sampler.POISSON, parts=None, factor=None)
        return replace(self, parts=candidate.parts, factor=candidate.factor)

    def noise_forecast(self, epsilon: float, delta: float) -> NoiseForecast:
        """How noisy sums of gradients are within a budget."""
        noise = self.noise(epsilon, delta)
        error = (
            math.sqrt((self.steps + 1) / 2)
            if self.factor is None
            else self.factor.error(self.parts or self.batches)
        )
        return NoiseForecast(
            correlation=SGD if self.factor is None else self.factor.words,
            sampling=self.factor is None or self.parts is not None,
            noise_multiplier=noise,
            deviation=noise * error,
            copies=0 if self.factor is None else self.factor.copies,
        )

    def training(self, noise: float = 1.0) -> Training:
        drawn = batches_of(
            self.sampler,
            size=self.size,
            batch_size=self.batch_size,
            epochs=self.epochs or 1,
            max_batch_size=self.max_batch_size,
            neighbours=self.neighbours,
            group=self.group,
            parts=self.parts,
        )
        return drawn.training(noise)

    def noise(self, epsilon: float, delta: float) -> float:
        """The least noise that keeps within a budget, as the accounting finds it."""
        if self.sampler is Sampler.POISSON:
            return noise_for(
                epsilon,
                delta,
                self.sampling_rate,
                self.steps,
                neighbours=self.training().relation,
                group=self.group,
            )
        return noise_for_training(self.training(), epsilon, delta)

    def least_noise(self, epsilon: float, delta: float) -> float:
        """The same, of four decimals, with a certified epsilon of at most what was asked for."""
        whole = math.ceil(self.noise(epsilon, delta) * _DIGITS)
        while self.cost(whole / _DIGITS, delta, epsilon).epsilon.upper > epsilon:
            whole += max(1, whole // 20_000)
        return whole / _DIGITS

    def cost(self, noise: float, delta: float, epsilon: float | None) -> TrainingCost:
        """What the run costs, told as closely as the noise is chosen."""
        scale = 1.0 if epsilon is None else min(float(epsilon), 1.0)
        if self.sampler is Sampler.POISSON:
            width = 1e-3 if epsilon is None else 5e-5 * scale
            return cost_of_steps(
                noise,
                self.sampling_rate,
                self.steps,
                delta,
                width=width,
                neighbours=self.training().relation,
                group=self.group,
            )
        share = 2e-4 if self.sampler in _LIKE_POISSON and epsilon is not None else 1e-3
        return cost_of_training(self.training(noise), delta, width=share * scale)

    def within(self, noise: float, epsilon: float, delta: float) -> "Shape":
        """As much of the run as fits into a budget."""
        if self.sampler is Sampler.POISSON:
            most = steps_within(
                noise,
                self.sampling_rate,
                epsilon,
                delta,
                neighbours=self.training().relation,
                group=self.group,
            )
        else:
            most = epochs_within(self.training(noise), epsilon, delta)
        if most == 0:
            remedy = "Take more noise, a smaller batch, or a larger epsilon."
            must = f"be enough for one step within epsilon {epsilon:g}"
            raise check.fail(_OWNER, "noise_multiplier", must, noise, remedy)
        if self.sampler is not Sampler.POISSON:
            return replace(self, epochs=min(most, most if self.epochs is None else self.epochs))
        stated = self.epochs is not None or self.count is not None
        return replace(self, epochs=None, count=min(most, self.steps) if stated else most)

    def priced(
        self, noise: float, delta: float, epsilon: float | None, forecast: StepForecast | None
    ) -> PricedPlan:
        cost = self.cost(noise, delta, epsilon)
        if self.factor is not None:
            assumptions = [_CORRELATED if each.startswith(_EACH) else each for each in cost.assumptions]
            cost = replace(cost, assumptions=tuple(assumptions))
        if self.exact:
            rounded_noise(_OWNER, Fraction(noise))
        return PricedPlan(
            size=self.size,
            batch_size=self.batch_size,
            steps=self.steps,
            noise_multiplier=noise,
            delta=float(delta),
            sampler=self.sampler,
            cost=cost,
            forecast=forecast,
            max_batch_size=self.training().max_batch_size,
            group=self.group,
            parts=self.parts,
            factor=self.factor,
            exact=self.exact,
        )


def best_batch_size(any_batch: Shape, budget: tuple[float, float]) -> int:
    """The smallest of a few batches with nearly the best ratio of batch * sqrt(steps) to noise.

    At a fixed number of epochs the ratio rises with the batch and levels off, where noise grows like the
    square root of the batch. Batches that leave few steps are not looked at, unless all do.
    """
    size = any_batch.size
    sizes = [2**power for power in range(4, size.bit_length()) if 2**power < size] + [size]
    if any_batch.sampler in _LIKE_POISSON:  # which need about the noise of Poisson batches, and take longer
        any_batch = replace(any_batch, sampler=Sampler.POISSON, neighbours=None, max_batch_size=None)
    shapes = [replace(any_batch, batch_size=batch_size) for batch_size in sizes]
    long = [shape for shape in shapes if shape.steps >= _ENOUGH] or shapes[:1]
    ratios: dict[int, float] = {}
    for shape in long:
        ratios[shape.batch_size] = shape.batch_size * math.sqrt(shape.steps) / shape.noise(*budget)
    best = max(ratios.values())
    return next(batch for batch, ratio in ratios.items() if ratio >= _WORTH * best)
