"""What a user asks of a run of private training, and the run that follows from it: `plan` prices it."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from sourdine.accounting.dpsgd.training import Sampler
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.learning.correlation.declared import FactorCandidate, GradientCorrelation
from sourdine.learning.noise.noisy_gradient import rounded_noise
from sourdine.learning.pricing import NoiseForecast, PricedPlan, StepForecast
from sourdine.learning.shape import Shape, best_batch_size

_LARGEST = 1 << 40
_OWNER = "TrainingPlan"

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
    - `correlation`: how the noise of steps is correlated, so that sums of gradients have less of it:
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
                "What correlated noise costs depends on where the run ends, so it ends where it was planned."
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

    def _shape(self, size: int, batch_size: int) -> Shape:
        return Shape(
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
        batch_size = best_batch_size(any_batch, (epsilon, delta))
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


def _correlated(shape: Shape, wanted: TrainingPlan) -> tuple[Shape, tuple[NoiseForecast, ...]]:
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


def _choice(name: str, value: Choice | str, kinds: type[Choice]) -> Choice:
    try:
        return kinds(value)
    except ValueError:
        raise check.fail(_OWNER, name, f"be one of {', '.join(kinds)}", value) from None
