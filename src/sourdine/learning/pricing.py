"""A run whose size, length, noise and price are settled, before it is paid.

Beside the price it tells memory, time, and how loud the signal is beside the noise.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.dpsgd.cost import TrainingCost
from sourdine.accounting.dpsgd.training import Sampler, largest_batch, warn_of_delta
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.format import counted, plain
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.correlation.factor import Factor
from sourdine.learning.data.batches import (
    AllocatedBatches,
    Batches,
    CyclicBatches,
    FixedBatches,
    IndependentBatches,
    Indices,
    PoissonBatches,
    ShuffledBatches,
    TruncatedBatches,
)
from sourdine.learning.memory.model import Memory
from sourdine.learning.noise.noisy_gradient import GRID_STEPS, NoisyGradient, rounded_noise

if TYPE_CHECKING:
    from sourdine.learning.batch_order import DrawnBatches

_KINDS: dict[Sampler, type[Batches]] = {
    Sampler.POISSON: PoissonBatches,
    Sampler.FIXED: FixedBatches,
    Sampler.SHUFFLE: ShuffledBatches,
    Sampler.ALLOCATION: AllocatedBatches,
}

SGD = "DP-SGD"  # batches drawn from all units, noise independent in each step
_BYTES = 4  # of a number that is kept between steps


def batches_of(
    sampler: Sampler,
    *,
    size: int,
    batch_size: int,
    epochs: int,
    max_batch_size: int | None = None,
    neighbours: Neighbours | None = None,
    group: int = 1,
    parts: int | None = None,
) -> Batches:
    """What draws the batches of a run, and states what it costs."""
    if sampler is Sampler.TRUNCATED:
        return TruncatedBatches(
            size=size,
            batch_size=batch_size,
            epochs=epochs,
            neighbours=neighbours,
            group=group,
            max_batch_size=max_batch_size,
        )
    if max_batch_size is not None:
        must = f"not be given for {sampler} batches"
        remedy = "Only truncated batches have a maximum: take the sampler 'truncated'."
        raise check.fail("TrainingPlan", "max_batch_size", must, max_batch_size, remedy)
    if sampler is Sampler.CYCLIC:
        return CyclicBatches(
            size=size,
            batch_size=batch_size,
            epochs=epochs,
            neighbours=neighbours,
            group=group,
            parts=parts,
        )
    return _KINDS[sampler](
        size=size, batch_size=batch_size, epochs=epochs, neighbours=neighbours, group=group
    )


@dataclass(frozen=True, kw_only=True)
class StepForecast:
    """What steps take on this machine, measured on made-up examples.

    `physical_batch_size` is how many units fit into memory at once. Memory is that of tensors. It does not
    count the data, nor what torch itself takes.
    """

    parameters: int
    physical_batch_size: int
    memory: Memory
    seconds: float
    seconds_each: float


@dataclass(frozen=True, kw_only=True)
class NoiseForecast:
    """How noisy sums of gradients are with a correlation, at the epsilon of the plan.

    `deviation` is that of each number in the sum over the steps so far, in clipping norms, the root mean
    square over all steps. `copies` of the model are kept between steps.
    """

    correlation: str
    sampling: bool
    noise_multiplier: float
    deviation: float
    copies: int


@dataclass(frozen=True, kw_only=True)
class PricedPlan:
    """A run of private training, all of it public: what `plan` makes of a TrainingPlan, to read and to pay.

    `size` and `batch_size` count units: examples, or people. `forecast` is there if a model was measured.
    With `exact` sums and noise are whole numbers.
    With a `factor` the noise of steps is correlated; `compared` tells how noisy sums of gradients are with
    it, and then with what else was looked at, DP-SGD among them.
    """

    size: int
    batch_size: int
    steps: int
    noise_multiplier: float
    delta: float
    sampler: Sampler
    cost: TrainingCost
    forecast: StepForecast | None = None
    max_batch_size: int | None = None
    group: int = 1
    parts: int | None = None
    factor: Factor | None = None
    exact: bool = False
    compared: tuple[NoiseForecast, ...] = ()

    @property
    def sampling_rate(self) -> float:
        """The share of the units in a batch."""
        return self.batch_size / self.size

    @property
    def epochs(self) -> float:
        """How often a unit is used on average."""
        return self.steps * self.batch_size / self.size

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
        each = -(-self.size // self.batch_size)
        return batches_of(
            self.sampler,
            size=self.size,
            batch_size=self.batch_size,
            epochs=-(-self.steps // each),
            max_batch_size=self.max_batch_size,
            neighbours=self.neighbours,
            group=self.group,
            parts=self.parts,
        )

    def draw(self, bits: Bits = SYSTEM, *, present: int | None = None) -> Iterator[Indices]:
        """The places of every batch, one after the other, as many as there are steps; some may be empty.

        `present` is how many units there really are, where a plan states another number. A `Step` made of
        this plan takes these batches in this order.
        """
        if find_spec("torch") is None:
            return self._drawn(bits, present)
        return self.drawing(bits, present=present).each()

    def drawing(self, bits: Bits = SYSTEM, *, present: int | None = None) -> "DrawnBatches":
        """The batches of one run, each of which is given out once."""
        from sourdine.learning.batch_order import DrawnBatches

        return DrawnBatches(self, self.batches, self.steps, self._drawn(bits, present))

    def _drawn(self, bits: Bits, present: int | None) -> Iterator[Indices]:
        batches = self.batches
        if present is not None and isinstance(batches, IndependentBatches):
            batches = replace(batches, present=present)
        return itertools.islice(batches.draw(bits), self.steps)

    @property
    def every(self) -> int:
        """After how many steps a unit may come again, where the order of batches is fixed."""
        return self.parts or -(-self.size // self.batch_size)

    @property
    def order(self) -> float:
        """The Renyi order of a ledger that would find the run cheapest."""
        return self.cost.renyi.order

    @property
    def signal_to_noise(self) -> float | None:
        """The length of the sum of a batch beside that of its noise, if all clipped gradients agree.

        The noise has a length of about the noise multiplier times the square root of the number of
        parameters. Below 1 a single step is mostly noise; over the run it averages out by the square root of
        the steps.
        """
        if self.forecast is None:
            return None
        return self.batch_size / (self._step_noise * math.sqrt(self.forecast.parameters))

    @property
    def _step_noise(self) -> float:
        """The deviation of the noise of a step; the first has none to take back."""
        stretch = 1.0 if self.factor is None else self.factor.stretch(self.every)
        return self.noise_multiplier * stretch

    @property
    def _total_noise(self) -> float:
        """The deviation of the noise in the sum of all steps."""
        total = self.steps if self.factor is None else self.factor.variances[-1]
        return self._step_noise * math.sqrt(total)

    @property
    def memory(self) -> int | None:
        """The bytes that the tensors of training should take at most.

        Batches that are drawn unit by unit are larger than `batch_size` at times: five standard deviations
        are allowed for.
        """
        if self.forecast is None:
            return None
        largest, physical = self.batch_size, self.forecast.physical_batch_size
        if self.max_batch_size is not None:
            largest = self.max_batch_size
        elif self.sampler in (Sampler.POISSON, Sampler.ALLOCATION) or self.parts is not None:
            largest = largest_batch(largest, self.size)
        noise = 0 if self.factor is None else _BYTES * self.factor.copies * self.forecast.parameters
        return noise + self.forecast.memory.peak(min(physical, largest), parts=largest > physical)

    @property
    def seconds(self) -> float | None:
        """How long the run should take on this machine."""
        if self.forecast is None:
            return None
        return self.steps * (self.forecast.seconds + self.batch_size * self.forecast.seconds_each)

    def spend(self, norm: float = 1.0) -> Spend:
        """What a ledger is charged, for gradients clipped to a norm."""
        clipped = check.positive("PricedPlan", "norm", norm, 1 << 40)
        run = self.batches.training(self.noise_multiplier)
        noise = Fraction(self.noise_multiplier)
        length = GRID_STEPS if self.exact else clipped
        return Spend(
            mechanism=(
                rounded_noise("PricedPlan", noise) if self.exact else NoisyGradient(sigma=noise * clipped)
            ),
            distance=Distance.l2(run.moved * length, neighbours=run.relation),
            count=run.uses_until(self.steps),
            sampling=run.sampling,
        )

    @property
    def warning(self) -> str:
        """What is doubtful about the guarantee; empty if nothing is."""
        return warn_of_delta(self.delta, self.size, f"the {counted(self.size, 'unit')}")

    @property
    def _run_ratio(self) -> float:
        assert self.forecast is not None
        return self.batch_size * self.steps / (self._total_noise * math.sqrt(self.forecast.parameters))

    def words(self) -> dict[str, str]:
        """The plan as people read it, line by line."""
        share = f"{100 * self.sampling_rate:.3g} % of the units"
        lines = {
            "units": f"{self.size:,}",
            "batch": f"{self.batch_size:,} ({_DRAWN[self.sampler]}), {share}",
            "steps": f"{self.steps:,} ({counted(self.epochs, 'epoch', '.4g')})",
            "noise": f"{self.noise_multiplier:.6g} clipping norms",
            "epsilon": f"{self.epsilon.upper:.4g} at delta {plain(self.delta)}, {self.neighbours} neighbours",
        }
        if self.max_batch_size is not None:
            lines["batch"] += f", at most {self.max_batch_size:,}"
        if self.parts is not None:
            drawn = f"each unit drawn independently, from {self.parts:,} parts that take turns"
            lines["batch"] = f"{self.batch_size:,} ({drawn}), {share}"
        if self.exact:
            lines["noise"] += f", exact, in steps of 1/{GRID_STEPS:,} of them"
        if self.factor is not None:
            lines["noise"] += f", {self.factor.words}"
            if self.factor.copies:
                numbers = counted(self.factor.copies, "number", "d")
                lines["noise kept"] = f"{numbers} for each parameter, as secret as the data"
        if self.compared:
            lines["why"] = _why(self.compared)
        if self.group > 1:
            lines["epsilon"] += f", for {self.group:,} units together"
        if self.forecast is not None:
            ratio = self.signal_to_noise or 0.0
            lines |= {
                "parameters": f"{self.forecast.parameters:,}",
                "physical batch": f"{self.forecast.physical_batch_size:,}",
                "memory": f"about {(self.memory or 0) / 2**20:,.3g} MiB for tensors",
                "time": f"about {_duration(self.seconds or 0.0)} on this machine",
                "signal to noise": f"{ratio:.3g} a step, {self._run_ratio:.3g} over the run",
            }
        return lines


def _why(compared: tuple[NoiseForecast, ...]) -> str:
    """What was taken, beside the next best and DP-SGD, by the noise in sums of gradients."""
    first, *rest = compared
    shown = [each for i, each in enumerate(rest) if i == 0 or each.correlation == SGD]
    lines = []
    for each in shown:
        name = each.correlation if each.correlation == SGD else f"noise {each.correlation}"
        apart = "" if each.sampling else " and no sampling"
        lines.append(f"{each.deviation / first.deviation:.2f} times as noisy with {name}{apart}")
    return "at this epsilon sums of gradients would be " + ", and ".join(lines)


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
    Sampler.CYCLIC: "in a fixed order",
}
