"""What a user asks of a run of private training, and the run that follows from it: `plan` prices it."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from sourdine.accounting.dpsgd.calibration import (
    epochs_within,
    noise_for_training,
    steps_within,
)
from sourdine.accounting.dpsgd.cost import TrainingCost, cost_of_steps, cost_of_training
from sourdine.accounting.dpsgd.training import Sampler, Training, noise_for
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.learning.correlation.declared import FactorCandidate, GradientCorrelation
from sourdine.learning.correlation.factor import Factor
from sourdine.learning.gradients.noisy_gradient import rounded_noise
from sourdine.learning.pricing import SGD, NoiseForecast, PricedPlan, StepForecast, batches_of

_DIGITS = 10**4  # noise is rounded up to this, so that people can write it down
_WORTH = 0.95  # of the best signal-to-noise ratio is enough: larger batches only take longer
_ENOUGH = 100  # steps that an optimizer should have, however clear its gradients are
_LARGEST = 1 << 40
_LIKE_POISSON = (Sampler.TRUNCATED, Sampler.ALLOCATION, Sampler.CYCLIC)
_OWNER = "TrainingPlan"
_EACH = "Each example's gradient is clipped"
_CORRELATED = (
    "Each example's gradient is clipped to a norm of C before the sum. Noise is correlated over the steps, "
    "and as large as it must be for all that one example moves together; what is kept of it between steps "
    "stays secret."
)

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """The privacy budget of a run and how its batches are drawn, as a user states them.

    With `epsilon`, the noise follows from the epochs (or steps); with `noise_multiplier`, the epsilon does;
    with both, training stops where the budget ends. `plan` makes a priced run of it, and `fit` does so by
    itself.

    - `batch_size`: how many units come into a batch, on average where each is drawn by itself. Unless given,
      the smallest one whose signal-to-noise ratio over the run is within 5 % of the best that leaves a
      hundred steps.
    - `sampler`: "poisson" or "allocation" (the guarantee is for adding or removing a unit), "fixed"
      (replacing one), "truncated" or "shuffle" (leaving one out), each with its own epsilon. With
      "allocation" each unit is in exactly one batch of each epoch; with "truncated" no batch is larger than
      `max_batch_size`; with "cyclic" batches have a fixed order (leaving one out).
    - `correlation`: how the noise of steps hangs together, so that sums of gradients have less of it:
      `Banded`, `BLT`, `BinaryTree`, or `LeastNoise`, which takes the best of them and of DP-SGD. Batches are
      cyclic then.
    - `exact`: gradients and noise in whole numbers, so that the guarantee does not assume real ones. It
      costs time, and no epsilon.
    - `neighbours`: "add-remove", "zero-out" or "replace", where the sampler is accounted for others than its
      own.
    - `group`: how many units are protected together, for Poisson batches.
    - `size`: a public number of units for the sampling rate. Unless given, that of the data.

    >>> TrainingPlan(epsilon=3, delta=1e-5, epochs=10).sampler
    <Sampler.POISSON: 'poisson'>
    """

    delta: float
    epsilon: float | None = None
    noise_multiplier: float | None = None
    epochs: int | None = None
    steps: int | None = None
    batch_size: int | None = None
    sampler: Sampler | str | None = None
    max_batch_size: int | None = None
    neighbours: Neighbours | str | None = None
    group: int = 1
    size: int | None = None
    correlation: GradientCorrelation | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        usual = Sampler.POISSON if self.correlation is None else Sampler.CYCLIC
        kind = usual if self.sampler is None else _choice("sampler", self.sampler, Sampler)
        self._check_correlation(kind)
        self._check_exact()
        check.keep(self, sampler=kind, delta=float(check.inside(_OWNER, "delta", self.delta, 0, 1)))
        for name in ("epsilon", "noise_multiplier"):
            if (stated := getattr(self, name)) is not None:
                check.keep(self, **{name: float(check.positive(_OWNER, name, stated, 1 << 20))})
        for name, most in (
            ("epochs", 1 << 30),
            ("steps", _LARGEST),
            ("size", _LARGEST),
            ("batch_size", _LARGEST),
            ("group", _LARGEST),
        ):
            if (whole := getattr(self, name)) is not None:
                check.keep(self, **{name: check.integer(_OWNER, name, whole, 1, most)})
        if self.epsilon is None and self.noise_multiplier is None:
            raise check.fail(_OWNER, "epsilon", "be given, or else 'noise_multiplier'", None)
        if self.epochs is not None and self.steps is not None:
            raise check.fail(_OWNER, "steps", "not be given together with 'epochs'", self.steps)
        if self.steps is not None and kind is not Sampler.POISSON:
            raise check.fail(_OWNER, "steps", f"be stated as 'epochs' for {kind} batches", self.steps)
        if self.neighbours is not None:
            check.keep(self, neighbours=_choice("neighbours", self.neighbours, Neighbours))
        size = _LARGEST if self.size is None else self.size
        _check_batch(self.batch_size, size)
        if self.max_batch_size is not None and kind is Sampler.TRUNCATED:
            largest = check.integer(_OWNER, "max_batch_size", self.max_batch_size, self.batch_size or 1, size)
            check.keep(self, max_batch_size=largest)
        self._shape(size, self.batch_size or 1)  # which refuses what is not accounted for

    def _check_correlation(self, kind: Sampler) -> None:
        if self.correlation is None:
            return
        value: object = self.correlation
        if not isinstance(value, GradientCorrelation):
            raise check.fail(_OWNER, "correlation", "be Banded, BLT, BinaryTree or LeastNoise", value)
        if kind is not Sampler.CYCLIC:
            remedy = "Correlated noise is proven where a unit comes back after a fixed number of steps."
            raise check.fail(_OWNER, "sampler", "be cyclic, or left out, with a 'correlation'", kind, remedy)
        if self.epsilon is not None and self.noise_multiplier is not None:
            remedy = (
                "What correlated noise costs hangs on where the run ends, so it ends where it was planned."
            )
            raise check.fail(
                _OWNER,
                "noise_multiplier",
                "not be given with 'epsilon' and a 'correlation'",
                self.noise_multiplier,
                remedy,
            )

    def _check_exact(self) -> None:
        check.boolean(_OWNER, "exact", self.exact)
        if self.exact and self.correlation is not None:
            remedy = "Noise that takes some of itself back is made of real numbers."
            raise check.fail(_OWNER, "exact", "not be given with a 'correlation'", True, remedy)
        if self.exact and self.noise_multiplier is not None:
            noise = check.positive(_OWNER, "noise_multiplier", self.noise_multiplier, 1 << 20)
            rounded_noise(_OWNER, noise)

    def _shape(self, size: int, batch_size: int) -> "_Shape":
        return _Shape(
            size=size,
            batch_size=batch_size,
            sampler=Sampler(self.sampler or Sampler.POISSON),
            epochs=self.epochs,
            count=self.steps,
            max_batch_size=self.max_batch_size,
            neighbours=None if self.neighbours is None else Neighbours(self.neighbours),
            group=self.group,
            exact=self.exact,
        )


def plan(
    wanted: TrainingPlan, *, size: int | None = None, forecast: StepForecast | None = None
) -> PricedPlan:
    """The run that a plan comes to, with its price, on so many units: `size`, unless the plan states its own.

    With `epsilon`, the least noise that keeps to it; with `noise_multiplier`, the epsilon it comes to; with
    both, as many steps as fit, and no more than asked for. `forecast` comes from `measure`.

    >>> priced = plan(TrainingPlan(size=60_000, delta=1e-5, epsilon=3, epochs=15, batch_size=256))
    >>> priced.noise_multiplier, priced.steps, priced.epsilon.upper <= 3
    (0.7285, 3525, True)
    >>> plan(TrainingPlan(epsilon=1, delta=1e-5, epochs=20), size=60_000).batch_size
    1024
    """
    wanted = check_plan("plan", wanted)
    stated = size if wanted.size is None else wanted.size
    if stated is None:
        raise check.fail(_OWNER, "size", "be given where there are no data to count", None)
    units = check.integer("plan", "size", stated, 1, _LARGEST)
    _check_batch(wanted.batch_size, units)
    delta, epsilon, noise = wanted.delta, wanted.epsilon, wanted.noise_multiplier
    batch_size = wanted.batch_size
    if batch_size is None:
        if noise is not None or epsilon is None or (wanted.epochs is None and wanted.steps is None):
            raise check.fail(_OWNER, "batch_size", "be given unless 'epsilon' and the epochs are", None)
        any_batch = replace(wanted, max_batch_size=None)._shape(units, units)
        batch_size = _best_batch_size(any_batch, (epsilon, delta))
    shape = wanted._shape(units, batch_size)
    compared: tuple[NoiseForecast, ...] = ()
    if wanted.correlation is not None:
        shape, compared = _correlated(shape, wanted)
    if noise is None:
        assert epsilon is not None
        priced = shape.priced(shape.least_noise(epsilon, delta), delta, epsilon, forecast)
        return replace(priced, compared=compared)
    if epsilon is not None:
        shape = shape.within(noise, epsilon, delta)
    return shape.priced(noise, delta, epsilon, forecast)


def _correlated(shape: "_Shape", wanted: TrainingPlan) -> tuple["_Shape", tuple[NoiseForecast, ...]]:
    """The run with the factor that leaves the least noise in sums of gradients, and what others would leave.

    All at the same epsilon; DP-SGD is among those compared, whether or not it may be taken.
    """
    assert wanted.correlation is not None
    candidates = list(wanted.correlation.candidates(steps=shape.steps, batches=shape.batches))
    if wanted.epsilon is None:
        if len(candidates) > 1:
            remedy = "Or state the one that is wanted, such as Banded(bands=16)."
            raise check.fail(_OWNER, "epsilon", "be given to choose among correlations", None, remedy)
        return shape.with_factor(candidates[0]), ()
    shapes = [shape.with_factor(each) for each in candidates]
    forecasts = [each.noise_forecast(wanted.epsilon, wanted.delta) for each in shapes]
    best = min(range(len(shapes)), key=lambda i: forecasts[i].deviation)
    first = forecasts.pop(best)
    independent = shape.with_factor(FactorCandidate(None))
    if independent not in shapes:
        forecasts.append(independent.noise_forecast(wanted.epsilon, wanted.delta))
    return shapes[best], (first, *sorted(forecasts, key=lambda each: each.deviation))


def check_plan(owner: str, plan: object) -> TrainingPlan:
    """A plan as it is, or what to write in the place of something else."""
    if not isinstance(plan, TrainingPlan):
        remedy = "Write TrainingPlan(epsilon=3, delta=1e-5, epochs=10), for example."
        raise check.fail(owner, "plan", "be a TrainingPlan", plan, remedy)
    return plan


def _check_batch(batch_size: int | None, size: int) -> None:
    if batch_size is not None and batch_size > size:
        must = f"not be larger than the data, {size:,}"
        raise check.fail(_OWNER, "batch_size", must, batch_size, "Batches are parts of the data.")


@dataclass(frozen=True)
class _Shape:
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

    def with_factor(self, candidate: FactorCandidate) -> "_Shape":
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

    def within(self, noise: float, epsilon: float, delta: float) -> "_Shape":
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


def _best_batch_size(any_batch: _Shape, budget: tuple[float, float]) -> int:
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


def _choice(name: str, value: Choice | str, kinds: type[Choice]) -> Choice:
    try:
        return kinds(value)
    except ValueError:
        raise check.fail(_OWNER, name, f"be one of {', '.join(kinds)}", value) from None
