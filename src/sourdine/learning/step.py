"""One step of private training, for people with a loop of their own."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.errors import BudgetExceeded, InvalidParameter, VoidRun
from sourdine.core.format import counted
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.batch_order import BatchOrder, BatchPart
from sourdine.learning.correlation.factor import Factor
from sourdine.learning.correlation.stream import NoiseStream, stream_of
from sourdine.learning.data.batches import Batches
from sourdine.learning.data.trees import Tree, count_of, made_up, part_of, tiled, tree_of
from sourdine.learning.devices.counter import counter_gaussian
from sourdine.learning.devices.exchange import GradientExchange
from sourdine.learning.devices.processes import Processes, ProcessGone
from sourdine.learning.devices.wrapping import unwrap
from sourdine.learning.exact import add_whole_noise, usual_places
from sourdine.learning.gradients.adaptive import WITHIN, NormFollower, QuantileClipping
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.drawing import full_batch
from sourdine.learning.gradients.engine import Sums
from sourdine.learning.gradients.owners import check_model
from sourdine.learning.gradients.precision import full_precision
from sourdine.learning.gradients.self_test import REHEARSED
from sourdine.learning.gradients.way import GradientWay
from sourdine.learning.intake import Intake
from sourdine.learning.masks import unforeseen
from sourdine.learning.model_state import ParameterWatch, StateSnapshot
from sourdine.learning.noise.noisy_gradient import GRID_STEPS, NoisyGradient, rounded_noise
from sourdine.learning.noise.normal import gaussian, make_noisy_means
from sourdine.learning.tested import SelfTests, check_function, trained_of
from sourdine.mechanisms.rounded_gaussian import RoundedGaussian

MOST_STEPS = 1 << 40
_REMEDY = (
    "Made-up examples were tried. If they cannot be right, call step.check(losses, ...) first, with the "
    "parts of a small batch of public examples."
)


class StepPlan(Protocol):
    """What steps need of a plan that has a price (`PricedPlan`)."""

    @property
    def noise_multiplier(self) -> float: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    @property
    def factor(self) -> Factor | None: ...
    @property
    def every(self) -> int: ...
    @property
    def batches(self) -> Batches: ...
    def spend(self, norm: float = ...) -> Spend: ...


class Step:
    """The noisy gradient of one logical batch, for any optimizer of torch.

    `add` takes a batch in, whole or in parts; `close` adds noise once, divides by the declared
    `batch_size`, a public constant, and writes `.grad`. A batch without examples is closed like any other.
    Batches of a `loader` are taken each once, in their order; `drop` gives one up, which counts as taken.
    The noise has a standard deviation of `noise_multiplier` clipping norms, so what a step costs is what the
    accounting says of it and of the way the batches were drawn. With a `correlation` the noise of a step
    takes back some of the noise before it, and what a run costs is what a plan with that correlation says.
    With `exact` clipped gradients are whole numbers of steps of a grid, and so is the noise: nothing of the
    guarantee depends on how floats round. `physical_batch_size` then says how many places for units every
    batch has that the model sees.
    At most `steps` of them are taken, which is what was paid for. `Step.of` takes all from a plan, and pays.

    The first `add` tests the gradients of the model on made-up examples before it looks at any.

    With `processes`, or for a model in DistributedDataParallel, several make the same steps together: each
    takes its own share of a batch in, and all get the gradient that the first adds noise to.

    >>> model = nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> step = Step(model, noise_multiplier=1.1, batch_size=2, steps=1)
    >>> step.add(lambda x: model(x).squeeze(1), torch.ones(2, 3))
    False
    >>> step.close()
    >>> optimizer.step()
    >>> step.left
    0
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        noise_multiplier: float,
        batch_size: int,
        steps: int,
        clipping: Clipping | None = None,
        physical_batch_size: int | None = None,
        correlation: NoiseStream | None = None,
        processes: Processes | None = None,
        exact: bool = False,
        bits: Bits = SYSTEM,
    ) -> None:
        self._outer, self.correlation = model, correlation
        model, self.processes = unwrap(model, processes)
        self.model = model
        self.clipping = Flat() if clipping is None else clipping
        deviations = check.positive("Step", "noise_multiplier", noise_multiplier, 1 << 20)
        self.batch_size = check.integer("Step", "batch_size", batch_size, 1, 1 << 40)
        self.steps = self._left = check.integer("Step", "steps", steps, 1, MOST_STEPS)
        self.physical_batch_size = (
            None
            if physical_batch_size is None
            else check.integer("Step", "physical_batch_size", physical_batch_size, 1, 1 << 30)
        )
        self.exact = check.boolean("Step", "exact", exact)
        if exact and (correlation is not None or self.processes.several):
            other = "a 'correlation'" if correlation is not None else "several processes"
            raise check.fail("Step", "exact", f"not be given with {other}", exact)
        self.mechanism: NoisyGradient | RoundedGaussian
        if exact:
            self.mechanism = rounded_noise("Step", deviations)
        else:
            norm = check.rational("Step", "norm", self.clipping.norm)
            self.mechanism = NoisyGradient(sigma=deviations * norm)
        self._follower: NormFollower | None = None
        if isinstance(self.clipping, QuantileClipping):
            if exact or correlation is not None or self.processes.several:
                other = "'exact', a 'correlation' or several processes"
                raise check.fail("Step", "clipping", f"have a fixed norm with {other}", self.clipping)
            self._follower = NormFollower(self.clipping, float(deviations), self.batch_size)
        check_model(model)
        self._bits = bits
        self._intake = Intake(
            model,
            self._outer,
            self.clipping if self._follower is None else self._follower.clipping,
            places=(self.physical_batch_size or usual_places(model, self.batch_size)) if exact else None,
            bits=bits,
        )
        self._wanted = trained_of(model)
        self._exchange = GradientExchange(self.processes, self._wanted)
        self._sums: Sums = {}
        self._tests = SelfTests(model, self._outer, _REMEDY)
        self._public: Tree | None = None  # examples to test with, where made-up ones cannot be right
        self._watch = ParameterWatch(model)
        self._state: StateSnapshot | None = None
        self._begun = False
        self._pay: Callable[[], None] | None = None
        self._plan: StepPlan | None = None
        self._order = BatchOrder()
        self._process, self._busy = os.getpid(), False
        self._thread: int | None = None
        self._void = ""

    @property
    def left(self) -> int:
        """How many of the steps that were paid for are left."""
        return self._left

    @property
    def claimed(self) -> int:
        """For how many of the steps that were taken the guarantee is claimed: all, unless the run is void.

        Where a test fails that the model passed before, those before the last test that was passed.
        """
        return min(self._taken, self._tests.claimed) if self._void else self._taken

    @property
    def norm(self) -> float:
        """The clipping norm of the next step; made of noisy numbers where it follows a quantile."""
        return self.clipping.norm if self._follower is None else self._follower.limit

    @norm.setter
    def norm(self, limit: float) -> None:
        if self._follower is None and limit != self.clipping.norm:
            raise check.fail(
                "Step",
                "norm",
                "stay what was paid for",
                limit,
                "The noise is made for the clipping of this Step. Make another with clipping=Flat(norm=...).",
            )
        if self._follower is not None:
            self._follower.limit = limit
            self._intake.clip_by(self._follower.clipping)

    @classmethod
    def of(
        cls,
        model: nn.Module,
        plan: StepPlan,
        *,
        clipping: Clipping | None = None,
        physical_batch_size: int | None = None,
        processes: Processes | None = None,
        ledger: Ledger | Path | str | None = None,
        purpose: str = "train a model",
        bits: Bits = SYSTEM,
    ) -> "Step":
        """The steps of a plan: its noise, its batch, and as many as it has.

        A ledger, or the one in a file, is charged for all of them with the first, when the model has passed
        its test and before an example is looked at. The price is that of batches which the plan draws
        (`plan.draw`, or `loader`) and of no others.
        """
        step = cls(
            model,
            noise_multiplier=plan.noise_multiplier,
            batch_size=plan.batch_size,
            steps=plan.steps,
            clipping=clipping,
            physical_batch_size=physical_batch_size,
            correlation=None if plan.factor is None else stream_of(plan.factor, plan.every),
            processes=processes,
            exact=plan.exact,
            bits=bits,
        )
        step._plan, step._order = plan, BatchOrder(plan, (plan.batches, plan.steps))
        if ledger is not None:
            spend = plan.spend(step.clipping.norm)

            def pay() -> None:
                with opened(ledger) as payer:
                    assert payer is not None
                    payer.charge(spend, purpose=purpose, secure=bits.secure)

            step._pay = pay
        return step

    def check(self, losses: Callable[..., Tensor], *examples: object) -> None:
        """Test the gradients of the model on a few public examples, and not on made-up ones.

        `losses` and the parts of a batch are as in `add`. The error says what is wrong and names the layer.
        """
        self._follow_frozen()
        few = part_of(tree_of(examples), 0, REHEARSED)
        if count_of(few) < 2:
            raise InvalidParameter("A test needs two examples at least, to see whether one moves another.")
        self._public = few
        self._tests.forget()
        self._test(losses, few, 1)

    def add(self, losses: Callable[..., Tensor], *batch: object, examples_per_unit: int = 1) -> bool:
        """Take some examples in: `losses` runs the model on the parts of a batch and gives one loss for each.

        The parts are tensors whose first axis counts examples, or dicts and lists of them. All that belongs
        to examples must be among them: a tensor that `losses` takes from elsewhere is not seen. With
        `examples_per_unit` above 1, so many examples in a row belong to one person and are clipped together.
        An example that the model cannot run on adds exactly nothing.

        Returns:
            Whether this was the last part of a batch that the loader gives in parts: `.grad` is then written.
        """
        with self._one_use():
            return self._add_batch(losses, batch, examples_per_unit)

    def _add_batch(self, losses: Callable[..., Tensor], batch: Tree, examples_per_unit: int) -> bool:
        self._check_left()
        parts = tree_of(batch)
        rows = examples_per_unit
        part: BatchPart | None = None

        def look() -> None:
            nonlocal rows, part
            check_function(losses)
            rows = check.integer("Step.add", "examples_per_unit", examples_per_unit, 1, 1 << 20)
            count_of(parts)
            self._follow_frozen()
            self._test(losses, self._public or made_up(parts, REHEARSED), rows)
            part = self._order.check(parts, rows)

        self.begin(look)
        assert part is not None
        count = count_of(parts)
        with self.or_give_up(), self._all_or_nothing():
            # no batch is taken whole that is larger than those that were tested
            most = full_batch(self.batch_size, self.physical_batch_size) * rows
            each = count if self.exact else most
            for start in range(0, count, max(each, 1)):
                some = part_of(parts, start, start + each)
                with unforeseen(self._bits):
                    self.take(losses, some, examples_per_unit=rows)
            self._check_written()
            with self._void_if_unclaimed():
                self._tests.confirm(self._taken, last=self.left == 1)
            if not (last := self._order.note(part)):
                return False
        if last:
            self._close()
        return last

    def _test(self, losses: Callable[..., Tensor], few: Tree, rows: int) -> None:
        """Test the model on a few examples that are nobody's, where it changed or it is due."""

        def full() -> Tree:
            most = full_batch(self.batch_size, self.physical_batch_size) * rows
            return made_up(few, most) if self._public is None else tiled(few, most)

        with self._void_if_unclaimed():
            way, new = self._tests.way(losses, few, None if self.exact else full, self._taken)
        self.ready(way)
        if new:
            self.check_places(losses, few, examples_per_unit=rows)

    @property
    def _taken(self) -> int:
        return self.steps - self.left

    def _follow_frozen(self) -> None:
        """Train what wants a gradient now, if layers were frozen or unfrozen since the last step."""
        trained = trained_of(self.model)
        if [*map(id, trained.values())] == [*map(id, self._wanted.values())]:
            return
        if self._sums or self.correlation is not None or self.processes.several:
            raise InvalidParameter(
                "Other parameters want a gradient than when this step was begun. Freeze and unfreeze layers "
                "after a close() and before the next add(); with correlated noise or several processes, "
                "before the Step is made."
            )
        check_model(self.model)
        for value in self._wanted.values():
            value.grad = None
        self._wanted = trained
        self._intake.forget()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What is added counts if nothing fails: else whoever adds the batch again would count it twice."""
        before, self._sums = self._sums, {}
        try:
            yield
        except BaseException:
            self._sums = before
            raise
        if before:
            added, self._sums = self._sums, before
            self._add(added)

    def ready(self, way: GradientWay) -> None:
        """Be told how gradients are taken, by a test on made-up examples: no error then depends on one."""
        self._intake.ready(way)

    def take(self, losses: Callable[..., Tensor], batch: Tree, *, examples_per_unit: int = 1) -> None:
        """Take examples in for a caller that has tested the model and paid: no error tells of a unit."""
        self._watch.begin()
        state = self._state
        if state is None or state.losses is not losses or state.changed:
            state = self._state = StateSnapshot(self.model, losses)

        def run(*parts: object) -> Tensor:
            state.put_back()  # or what one example left behind would steer the gradient of another
            return losses(*parts)

        try:
            for sums in self._intake.sums(run, batch, examples_per_unit):
                self._add(sums)
        finally:
            state.put_back()
        with self._void_if_unclaimed():
            state.check()

    def _check_written(self) -> None:
        """End the run if the model wrote into its parameters or buffers."""
        with self._void_if_unclaimed():
            self._watch.check()

    @contextmanager
    def _void_if_unclaimed(self) -> Iterator[None]:
        """Go on no further after a fault by which nothing is claimed any more."""
        try:
            yield
        except VoidRun as problem:
            self._sums, self._void = {}, str(problem)
            raise

    def _add(self, sums: Sums) -> None:
        for name, total in sums.items():
            self._sums[name] = self._sums[name].add_(total) if name in self._sums else total

    def check_places(self, losses: Callable[..., Tensor], like: Tree, *, examples_per_unit: int = 1) -> None:
        """In exact steps, test that the examples of a batch do not change each other's last digits."""
        self._intake.check_places(losses, like, int(examples_per_unit))

    def close(self) -> None:
        """Draw the noise of the step and write the noisy mean to `.grad`."""
        with self._one_use():
            self._check_left()
            self._close(self._order.check_close)

    def drop(self) -> None:
        """Give the open batch up, so that `.grad` is None and its sum is forgotten.

        The step counts as taken: it stays paid, and its place in the plan and its noise are used up. With
        several processes all of them drop it.
        """
        with self._one_use():
            self._check_left()
            self._sums = {}
            self.begin(self._follow_frozen)
            with self.processes.all_or_none():
                self._left -= 1
                self._order.end()
                if self.correlation is not None and self.processes.first:
                    numbers = sum(value.numel() for value in self._wanted.values())
                    with self._void_unless_done():
                        self.correlation.following(lambda: self._noise(numbers))
            for value in self._wanted.values():
                value.grad = None

    def _close(self, check_order: Callable[[], None] = lambda: None) -> None:
        def look() -> None:
            self._follow_frozen()
            check_order()

        self.begin(look)
        with self.or_give_up():
            self._check_written()
            if self.left == 1:
                with self._void_if_unclaimed():
                    self._tests.confirm(self._taken, last=True)
        self._left -= 1
        self._order.end()
        sums, self._sums = self._sums, {}
        if self.processes.several:
            sums = self._exchange.sums(sums)
        if self.processes.first:
            with self._void_unless_done():
                self._write_noisy(sums)
        if self.processes.several:
            self._exchange.spread_gradients()

    def _write_noisy(self, sums: Sums) -> None:
        if self.exact:
            self._write_whole(sums)
            return
        sigma = float(self.mechanism.sigma)
        totals = {
            name: torch.zeros_like(value, dtype=torch.float32, memory_format=torch.contiguous_format)
            if (total := sums.pop(name, None)) is None
            # rounded to what the noise is made of: below its last bits nothing would hide a float64
            else total.float().contiguous()
            for name, value in self._wanted.items()
        }
        place = next(iter(totals.values())).device
        with torch.no_grad(), full_precision(place):
            usual = self.correlation is None and type(self)._noise is Step._noise  # a test may have another
            if usual and all(total.device.type == "cpu" for total in totals.values()):
                make_noisy_means(list(totals.values()), sigma, self.batch_size, self._bits)
            else:
                self._add_noise(totals, sigma)
            stretch = 1.0 if self._follower is None else self._follower.clipping.stretch
            for name, value in self._wanted.items():
                total = totals[name] if stretch == 1.0 else totals[name].mul_(stretch)
                value.grad = total.to(value.dtype)
        if self._follower is not None:
            self._follower.follow(float(sums.get(WITHIN, 0.0)), float(gaussian(torch.Size((1,)), self._bits)))
            self.norm = self._follower.limit

    def _write_whole(self, sums: Sums) -> None:
        """Add whole noise to whole numbers of steps, and only then turn them into floats."""
        step = self.clipping.norm / GRID_STEPS / self.batch_size
        noisy = add_whole_noise(sums, self.mechanism.sigma, self._wanted, self._bits)
        for name, value in self._wanted.items():
            value.grad = noisy[name].mul_(step).view_as(value).to(value.dtype)

    def _add_noise(self, totals: Sums, sigma: float) -> None:
        """Add noise that must exist as a whole: it depends on earlier noise, or goes to a device."""
        sizes = [total.numel() for total in totals.values()]
        count = sum(sizes)  # many small draws are slow
        if self.correlation is None:
            whole = self._noise(count)
        else:  # what is kept between steps lies in memory, whatever the device
            whole = self.correlation.following(lambda: self._noise(count))
        for total, noise in zip(totals.values(), torch.split(whole, sizes), strict=True):
            total.add_(noise.to(total.device).view_as(total), alpha=sigma).div_(self.batch_size)

    @contextmanager
    def or_give_up(self) -> Iterator[None]:
        """Where something fails meanwhile, other processes hear of it."""
        try:
            yield
        except ProcessGone:
            raise
        except Exception:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Tell the other processes, if there are some, that this one cannot take its share of a step."""
        if self.processes.several:
            self._left = 0
            self._exchange.give_up()

    def _noise(self, count: int) -> Tensor:
        """Standard normal numbers, one for each parameter: made on the device if it is a GPU."""
        place = next(iter(self._wanted.values())).device
        if place.type == "cuda" and self.correlation is None:
            return counter_gaussian(count, place, self._bits)
        return gaussian(torch.Size((count,)), self._bits)

    @contextmanager
    def _one_use(self) -> Iterator[None]:
        """Refuse a second use at the same time, another thread, and a copy of this process."""
        here = threading.get_ident()
        if os.getpid() != self._process:
            raise InvalidParameter(
                "A Step cannot be used in a forked process, where it would take the paid steps once more, "
                "with the same noise. Make it in the process that trains."
            )
        if self._busy or self._thread not in (None, here):
            raise InvalidParameter(
                "A Step cannot be used by several threads, nor within the losses of its own add, since sums "
                "of different batches would mix. Use it in one thread, for one batch at a time."
            )
        self._busy, self._thread = True, here
        try:
            yield
        finally:
            self._busy = False

    @contextmanager
    def _void_unless_done(self) -> Iterator[None]:
        """End the run if noise that later steps take back was drawn in part."""
        try:
            yield
        except BaseException:
            if self.correlation is not None:
                self._void = (
                    "Noise of a step was interrupted, of which later steps take some back. The charge "
                    "stands, and this Step goes on no further."
                )
            raise

    def __reduce_ex__(self, protocol: object) -> str:
        raise InvalidParameter(
            "A Step cannot be copied or pickled: the copy would take the paid steps once more, with the same "
            "noise. Make another Step for another model, and pay for it."
        )

    def _check_left(self) -> None:
        if self._void:
            raise VoidRun(self._void)
        if self.left < 1:
            raise BudgetExceeded(
                f"All {counted(self.steps, 'step', ',')} that were paid for have been taken. Plan a run with "
                "more of them, and pay for that.",
                amount=Fraction(1),
                left=Fraction(0),
            )

    def begin(self, look: Callable[[], None] = lambda: None) -> None:
        """Look whether all is right, and pay with the first use, when several processes agree on what."""
        if self._begun:
            with self.or_give_up():
                look()
            return
        with self.processes.all_or_none():
            look()
        self.processes.agree(self.facts)
        with self.processes.all_or_none():
            if self._pay is not None and self.processes.first:
                self._pay()
        self._begun = True
        if self.processes.several:
            self._exchange.start_alike(self.model)

    @property
    def facts(self) -> dict[str, str]:
        """What must be the same in all processes."""
        trained = [f"{name} {tuple(value.shape)} {value.dtype}" for name, value in self._wanted.items()]
        return {
            "model (its trained parameters)": " ".join(trained),
            "number of steps": str(self.left),
            "batch size": str(self.batch_size),
            "noise": str(self.mechanism.sigma),
            "clipping": repr(self.clipping),
        }
