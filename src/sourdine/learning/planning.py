"""A run before it is paid: noise, batches, memory, time, and how loud the signal is beside the noise."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.dpsgd.calibration import (
    epochs_within,
    noise_for_steps,
    noise_for_training,
    steps_within,
)
from sourdine.accounting.dpsgd.cost import TrainingCost, cost_of_steps, cost_of_training
from sourdine.accounting.dpsgd.training import Sampler, Training, largest_batch, warn_of_delta
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.format import counted, plain
from sourdine.learning.data.batches import (
    AllocatedBatches,
    Batches,
    FixedBatches,
    PoissonBatches,
    ShuffledBatches,
    TruncatedBatches,
)
from sourdine.learning.gradients.noisy_gradient import NoisyGradient
from sourdine.learning.memory.model import Memory

_DIGITS = 10**4  # noise is rounded up to this, so that people can write it down
_WORTH = 0.95  # of the best signal-to-noise ratio is enough: larger batches only take longer
_ENOUGH = 100  # steps that an optimizer should have, however clear its gradients are
_KINDS: dict[Sampler, type[Batches]] = {
    Sampler.POISSON: PoissonBatches,
    Sampler.FIXED: FixedBatches,
    Sampler.SHUFFLE: ShuffledBatches,
    Sampler.ALLOCATION: AllocatedBatches,
}


_LIKE_POISSON = (Sampler.TRUNCATED, Sampler.ALLOCATION)


def batches_of(
    sampler: Sampler,
    *,
    size: int,
    batch: int,
    epochs: int,
    most: int | None = None,
    neighbours: Neighbours | None = None,
    group: int = 1,
) -> Batches:
    """What draws the batches of a run, and states what it costs."""
    if sampler is Sampler.TRUNCATED:
        return TruncatedBatches(
            size=size, batch=batch, epochs=epochs, neighbours=neighbours, group=group, most=most
        )
    if most is not None:
        remedy = "Only truncated batches have a maximum: take the sampler 'truncated'."
        raise check.fail("plan", "most", f"not be given for {sampler} batches", most, remedy)
    return _KINDS[sampler](size=size, batch=batch, epochs=epochs, neighbours=neighbours, group=group)


@dataclass(frozen=True, kw_only=True)
class StepForecast:
    """What steps take on this machine, measured on made-up examples; `physical` of them fit at once.

    Memory is that of tensors. It does not count the data, nor what torch itself takes.
    """

    parameters: int
    physical: int
    memory: Memory
    seconds: float
    seconds_each: float


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A run of private training, all of it public: from `plan`, to read, to hand to `fit`, to pay for.

    `size`, `batch` and `physical` count units: examples, or people. `forecast` is there if a model was given.
    """

    size: int
    batch: int
    steps: int
    noise: float
    delta: float
    sampler: Sampler
    cost: TrainingCost
    forecast: StepForecast | None = None
    most: int | None = None
    group: int = 1

    @property
    def rate(self) -> float:
        """The share of the units in a batch."""
        return self.batch / self.size

    @property
    def epochs(self) -> float:
        """How often a unit is used on average."""
        return self.steps * self.batch / self.size

    @property
    def epsilon(self) -> Bracket:
        """What the whole run costs; the upper end is the claim."""
        return self.cost.epsilon

    @property
    def neighbours(self) -> Neighbours:
        """The pairs of data sets that the guarantee is about."""
        return self.cost.neighbours

    @property
    def batches(self) -> Batches:
        """What draws the batches; the run stops after `steps` of them."""
        each = -(-self.size // self.batch)
        return batches_of(
            self.sampler,
            size=self.size,
            batch=self.batch,
            epochs=-(-self.steps // each),
            most=self.most,
            neighbours=self.neighbours,
            group=self.group,
        )

    @property
    def order(self) -> float:
        """The Renyi order of a ledger that would find the run cheapest."""
        return self.cost.renyi.order

    @property
    def signal_to_noise(self) -> float | None:
        """The length of the sum of a batch beside that of its noise, if all clipped gradients agree.

        The noise has a length of about noise times the square root of the number of parameters. Below 1 a
        single step is mostly noise; over the run it averages out by the square root of the steps.
        """
        if self.forecast is None:
            return None
        return self.batch / (self.noise * math.sqrt(self.forecast.parameters))

    @property
    def memory(self) -> int | None:
        """The bytes that the tensors of training should take at most.

        Batches that are drawn unit by unit are larger than `batch` at times: five standard deviations are
        allowed for.
        """
        if self.forecast is None:
            return None
        largest, physical = self.batch, self.forecast.physical
        if self.most is not None:
            largest = self.most
        elif self.sampler in (Sampler.POISSON, Sampler.ALLOCATION):
            largest = largest_batch(largest, self.size)
        return self.forecast.memory.peak(min(physical, largest), parts=largest > physical)

    @property
    def seconds(self) -> float | None:
        """How long the run should take on this machine."""
        if self.forecast is None:
            return None
        return self.steps * (self.forecast.seconds + self.batch * self.forecast.seconds_each)

    def spend(self, norm: float = 1.0) -> Spend:
        """What a ledger is charged, for gradients clipped to a norm."""
        clipped = check.positive("TrainingPlan", "norm", norm, 1 << 40)
        run = self.batches.training(self.noise)
        return Spend(
            mechanism=NoisyGradient(sigma=Fraction(self.noise) * clipped),
            distance=Distance.l2(run.moved * clipped, neighbours=run.relation),
            count=run.uses if self.sampler.by_epoch else self.steps,
            sampling=run.sampling,
        )

    @property
    def warning(self) -> str:
        """What is doubtful about the guarantee; empty if nothing is."""
        return warn_of_delta(self.delta, self.size, f"the {counted(self.size, 'unit')}")

    def words(self) -> dict[str, str]:
        """The plan as people read it, line by line."""
        told = {
            "units": f"{self.size:,}",
            "batch": f"{self.batch:,} ({_DRAWN[self.sampler]}), {100 * self.rate:.3g} % of the units",
            "steps": f"{self.steps:,} ({counted(self.epochs, 'epoch', '.4g')})",
            "noise": f"{self.noise:.6g} clipping norms",
            "epsilon": f"{self.epsilon.upper:.4g} at delta {plain(self.delta)}, {self.neighbours} neighbours",
        }
        if self.most is not None:
            told["batch"] += f", at most {self.most:,}"
        if self.group > 1:
            told["epsilon"] += f", for {self.group:,} units together"
        if self.forecast is not None:
            ratio = self.signal_to_noise or 0.0
            told |= {
                "parameters": f"{self.forecast.parameters:,}",
                "physical batch": f"{self.forecast.physical:,}",
                "memory": f"about {(self.memory or 0) / 2**20:,.3g} MiB for tensors",
                "time": f"about {_duration(self.seconds or 0.0)} on this machine",
                "signal to noise": f"{ratio:.3g} a step, {ratio * math.sqrt(self.steps):.3g} over the run",
            }
        return told


def plan(
    *,
    size: int,
    delta: float,
    epsilon: float | None = None,
    noise: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    sampler: Sampler | str = Sampler.POISSON,
    most: int | None = None,
    neighbours: Neighbours | str | None = None,
    group: int = 1,
    forecast: StepForecast | None = None,
) -> TrainingPlan:
    """A run from what is known of it.

    With `epsilon`, the least noise that keeps to it; with `noise`, the epsilon it comes to; with both, as
    many steps as fit, and no more than asked for. Without `batch`, the smallest one whose signal-to-noise
    ratio over the run is within 5 % of the best that leaves a hundred steps. `most` is the largest batch
    where batches are truncated. `neighbours` are those of the sampler unless told, and `group` is how many
    units are protected together. `forecast` comes from `measure`.

    >>> made = plan(size=60_000, delta=1e-5, epsilon=3, epochs=15, batch=256)
    >>> made.noise, made.steps, made.epsilon.upper <= 3
    (0.7285, 3525, True)
    >>> plan(size=60_000, delta=1e-5, noise=1.0, epochs=15, batch=64, sampler="truncated").most
    104
    >>> plan(size=60_000, delta=1e-5, epsilon=1, epochs=20).batch
    1024
    """
    kind = _sampler(sampler)
    size = check.integer("plan", "size", size, 1, 1 << 40)
    delta = float(check.inside("plan", "delta", delta, 0, 1))
    if epsilon is not None:
        epsilon = float(check.positive("plan", "epsilon", epsilon, 1 << 20))
    if batch is not None:
        batch = check.integer("plan", "batch", batch, 1, 1 << 40)
    if batch is not None and batch > size:
        remedy = "Batches are parts of the data."
        raise check.fail("plan", "batch", f"not be larger than the data, {size:,}", batch, remedy)
    if epsilon is None and noise is None:
        raise check.fail("plan", "epsilon", "be given, or else 'noise'", None)
    if epochs is not None and steps is not None:
        raise check.fail("plan", "steps", "not be given together with 'epochs'", steps)
    relation = None if neighbours is None else _relation(neighbours)
    if steps is not None and kind is not Sampler.POISSON:
        raise check.fail("plan", "steps", f"be stated as 'epochs' for {kind} batches", steps)
    if batch is None:
        if noise is not None or epsilon is None or (epochs is None and steps is None):
            raise check.fail("plan", "batch", "be given unless 'epsilon' and the epochs are", None)
        batch = _best_batch(_Shape(size, size, kind, epochs, steps, None, relation, group), (epsilon, delta))
    shape = _Shape(size, batch, kind, epochs, steps, most, relation, group)
    if noise is None:
        assert epsilon is not None
        return shape.planned(shape.least_noise(epsilon, delta), delta, epsilon, forecast)
    noise = float(check.positive("plan", "noise", noise, 1 << 20))
    if epsilon is not None:
        shape = shape.within(noise, epsilon, delta)
    return shape.planned(noise, delta, epsilon, forecast)


@dataclass(frozen=True)
class _Shape:
    """A run without its noise; its length is stated in one of two ways, or not at all."""

    size: int
    batch: int
    sampler: Sampler
    epochs: int | None
    count: int | None
    most: int | None = None
    neighbours: Neighbours | None = None
    group: int = 1

    def __post_init__(self) -> None:
        if self.epochs is not None:
            check.keep(self, epochs=check.integer("plan", "epochs", self.epochs, 1, 1 << 30))
        if self.count is not None:
            check.keep(self, count=check.integer("plan", "steps", self.count, 1, 1 << 40))
        stated = self.training()  # which refuses what is not accounted for
        check.keep(self, group=stated.group, most=stated.max_batch_size)

    @property
    def rate(self) -> float:
        return self.batch / self.size

    @property
    def steps(self) -> int:
        if self.count is None and self.epochs is None:
            remedy = "Or give both 'epsilon' and 'noise', and training stops where the budget ends."
            raise check.fail("plan", "epochs", "be given, or else 'steps'", None, remedy)
        return self.count if self.count is not None else (self.epochs or 1) * -(-self.size // self.batch)

    def training(self, noise: float = 1.0) -> Training:
        drawn = batches_of(
            self.sampler,
            size=self.size,
            batch=self.batch,
            epochs=self.epochs or 1,
            most=self.most,
            neighbours=self.neighbours,
            group=self.group,
        )
        return drawn.training(noise)

    def noise(self, epsilon: float, delta: float) -> float:
        """The least noise that keeps within a budget, as the accounting finds it."""
        if self.sampler is Sampler.POISSON:
            return noise_for_steps(
                epsilon,
                delta,
                self.rate,
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
                self.rate,
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
                noise, self.rate, epsilon, delta, neighbours=self.training().relation, group=self.group
            )
        else:
            most = epochs_within(self.training(noise), epsilon, delta)
        if most == 0:
            remedy = "Take more noise, a smaller batch, or a larger epsilon."
            must = f"be enough for one step within epsilon {epsilon:g}"
            raise check.fail("plan", "noise", must, noise, remedy)
        if self.sampler is not Sampler.POISSON:
            return replace(self, epochs=min(most, most if self.epochs is None else self.epochs))
        stated = self.epochs is not None or self.count is not None
        return replace(self, epochs=None, count=min(most, self.steps) if stated else most)

    def planned(
        self, noise: float, delta: float, epsilon: float | None, forecast: StepForecast | None
    ) -> TrainingPlan:
        return TrainingPlan(
            size=self.size,
            batch=self.batch,
            steps=self.steps,
            noise=noise,
            delta=float(delta),
            sampler=self.sampler,
            cost=self.cost(noise, delta, epsilon),
            forecast=forecast,
            most=self.training().max_batch_size,
            group=self.group,
        )


def _best_batch(any_batch: _Shape, budget: tuple[float, float]) -> int:
    """The smallest of a few batches with nearly the best ratio of batch * sqrt(steps) to noise.

    At a fixed number of epochs the ratio rises with the batch and levels off, where noise grows like the
    square root of the batch. Batches that leave few steps are not looked at, unless all do.
    """
    size = any_batch.size
    sizes = [2**power for power in range(4, size.bit_length()) if 2**power < size] + [size]
    if any_batch.sampler in _LIKE_POISSON:  # which need about the noise of Poisson batches, and take longer
        any_batch = replace(any_batch, sampler=Sampler.POISSON, neighbours=None, most=None)
    shapes = [replace(any_batch, batch=batch) for batch in sizes]
    long = [shape for shape in shapes if shape.steps >= _ENOUGH] or shapes[:1]
    ratios: dict[int, float] = {}
    for shape in long:
        ratios[shape.batch] = shape.batch * math.sqrt(shape.steps) / shape.noise(*budget)
    best = max(ratios.values())
    return next(batch for batch, ratio in ratios.items() if ratio >= _WORTH * best)


def _sampler(given: Sampler | str) -> Sampler:
    try:
        return Sampler(given)
    except ValueError:
        raise check.fail("plan", "sampler", f"be one of {', '.join(Sampler)}", given) from None


def _relation(given: Neighbours | str) -> Neighbours:
    try:
        return Neighbours(given)
    except ValueError:
        raise check.fail("plan", "neighbours", f"be one of {', '.join(Neighbours)}", given) from None


def _duration(seconds: float) -> str:
    """A time as people say it.

    >>> _duration(90), _duration(7500), _duration(4)
    ('1.5 minutes', '2.1 hours', '4.0 seconds')
    """
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} seconds"


_DRAWN = {
    Sampler.POISSON: "each unit drawn independently",
    Sampler.FIXED: "exactly so many drawn afresh",
    Sampler.SHUFFLE: "cut from shuffled epochs",
    Sampler.TRUNCATED: "each unit drawn independently, cut where they are too many",
    Sampler.ALLOCATION: "each unit in one batch of each epoch, drawn independently",
}
