"""A run of private training, step by step: draw, clip, add noise, let the optimizer step."""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.spend import Spend
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import counted
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.data.augmentation import AugmentedExamples
from sourdine.learning.data.batches import Batches, IndependentBatches, Indices
from sourdine.learning.data.examples import Batch, Examples
from sourdine.learning.data.trees import Tree
from sourdine.learning.data.units import UnitIds
from sourdine.learning.devices.processes import ALONE, Processes
from sourdine.learning.evaluation.judging import Judge, Metric
from sourdine.learning.evaluation.stopping import EarlyStopping
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.drawing import check_full_batch, full_batch
from sourdine.learning.gradients.self_test import REHEARSED
from sourdine.learning.gradients.way import GradientWay
from sourdine.learning.masks import unforeseen
from sourdine.learning.noise.noisy_gradient import GRID_STEPS
from sourdine.learning.pricing import PricedPlan
from sourdine.learning.result import Progress, Trained
from sourdine.learning.running.checkpoint import Checkpoint, State, check_same
from sourdine.learning.running.moving import MakeOptimizer, MakeSchedule, Moving
from sourdine.learning.step import Step
from sourdine.learning.task import Task
from sourdine.learning.tested import SelfTests, trained_of

ReportProgress = Callable[[Progress], None]
_MARKS = 20  # how often on the way epsilon is computed anew
_PORTION = 64  # units for each place of an exact step that are read at a time
_HOPELESS = 1000.0
_CHANGED = {
    Neighbours.ADD_REMOVE: "added or removed (add-remove)",
    Neighbours.REPLACE: "replaced by another (replace)",
    Neighbours.ZERO_OUT: "left out of their batches (zero-out)",
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """All that a run needs, checked; `done` pays for it and carries it out on the task's own model."""

    task: Task
    original: nn.Module  # the model of which the task trains a copy
    plan: PricedPlan
    clipping: Clipping
    examples: Examples
    units: UnitIds | None
    optimizer: MakeOptimizer
    schedule: MakeSchedule | None
    averaging: float | None
    physical_batch_size: int
    public: Examples | None
    progress: ReportProgress | None
    bits: Bits
    way: GradientWay = field(default_factory=GradientWay)  # how gradients are taken
    tried: Examples | None = None  # public examples to rehearse with, if made-up ones cannot be right
    copies: int = 1  # of each example in a batch, which count as one
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    stopping: EarlyStopping | None = None  # a rule that ends it early, by public examples
    processes: Processes = ALONE  # which call `done` alike; the first has the ledger and the checkpoint

    def done(self, file: Checkpoint | None, ledger: Ledger | None, purpose: str) -> Trained:
        """Pay, or find in the checkpoint that it was paid; train; hand over."""
        with self.processes.all_or_none():
            moving = self._moving(self.task.model, self.made_step())
            if file is None or not file.path.exists():
                self._rehearse()  # before paying: a mistake costs nothing
            spend = self.plan.spend(self.clipping.norm)
        if self.processes.several:
            bits = {"kind of bits": "secure" if self.bits.secure else "seeded"}
            self.processes.agree(self.settings | bits | moving.step.facts)
        state, resumed = None, False
        with self.processes.all_or_none():
            if self.processes.first:
                state, resumed = self._begun(moving, file, ledger, spend, purpose)
        if self.processes.several:
            state, resumed = self.processes.from_first((state and state.on_cpu(), resumed))
        assert state is not None
        if not self.processes.first:
            moving.load(state.parts)
        moving.step.begin()
        moving.step.ready(self.way)
        self._tests.begin(self._losses, self.way)
        with unforeseen(self.bits) if self.bits.secure else nullcontext():
            history = self.processes.from_first(self._trained(moving, state, file))
        moving.finish()
        return Trained(
            values=self._handed_out,
            intervals=None,
            spends=(spend,),
            receipt=state.receipt,
            secure=state.secure,
            notes=self._assumptions,
            declarations=self.settings,
            plan=self.plan,
            clipping=repr(self.clipping),
            history=history,
            unit="example" if self.units is None else "person",
            max_examples_per_unit=self._per_unit,
            resumed=resumed,
        )

    def _begun(
        self, moving: Moving, file: Checkpoint | None, ledger: Ledger | None, spend: Spend, purpose: str
    ) -> tuple[State, bool]:
        """Pay for a new run, or take up the one in the checkpoint, and say which."""
        state = None if file is None else file.load()
        if state is None:
            receipt = None
            if ledger is not None:
                receipt = ledger.charge(
                    spend, purpose=purpose, secure=self.bits.secure, declared=self.settings
                )
            state = State(
                settings=self.settings, receipt=receipt, secure=self.bits.secure, step=0, parts=moving.parts()
            )
            if file is not None:
                file.save(state)
            return state, False
        assert file is not None
        check_same(file.path, state, self.settings, ledger)
        state = replace(state, secure=state.secure and self.bits.secure)
        unfinished = 0 < state.step < self.plan.steps and not self._stops(_history(state))
        if (noise := moving.step.correlation) is not None and unfinished:
            noise.resume(state.step, file.secrets(state))
        try:
            moving.load(state.parts)
        except (KeyError, RuntimeError, TypeError, ValueError) as problem:
            raise InvalidParameter(
                f"The run in the checkpoint {file.path} has another model or optimizer. "
                "Repeat them, or take another path."
            ) from problem
        return state, True

    def _rehearse(self) -> None:
        """Take a step with made-up examples on a copy of the model, and all steps of the schedule."""
        task = replace(self.task, model=copy.deepcopy(self.task.model))
        step = self._step_on(task.model, ALONE, SYSTEM)
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")
            moving = self._moving(task.model, step)
            step.ready(self.way)
            tried = self.examples if self.tried is None else self.tried
            each = self._per_unit * self.copies
            step.take(task.losses, (tried.made_up(2 * each), torch.ones(2 * each)))
            if self.way.reason is None and not self.plan.exact:
                check_full_batch(task.model, lambda *some: task.losses(some), self._full_batch())
            step.check_places(task.losses, (tried.made_up(1), torch.ones(1)), examples_per_unit=each)
            try:
                moving.close()
                moving.follow_schedule(self.plan.steps - 1)
                if self.public is not None:
                    Judge(task, self.public, self.metrics).rehearse()  # all of them: one may be odd
            except SourdineError:
                raise
            except Exception as problem:
                raise InvalidParameter(
                    "The optimizer, its schedule or the public examples cannot go through the "
                    f"{counted(self.plan.steps, 'step')} of the run: {str(problem).rstrip('. ')}. Nothing "
                    "was paid for. Mend what is named there."
                ) from problem

    def _full_batch(self) -> Tree:
        """Made-up examples, as many as may be computed at once."""
        tried = self.examples if self.tried is None else self.tried
        units = full_batch(self.plan.batch_size, self.physical_batch_size)
        return tried.made_up(units * self._per_unit * self.copies)

    @cached_property
    def _tests(self) -> SelfTests:
        """The tests of the model while it is trained."""
        return SelfTests(self.task.model, self.task.model, "The run ends here.")

    def _test(self, moving: Moving, step: int) -> None:
        """Test the model before a step, where it changed or that is due."""
        tried = self.examples if self.tried is None else self.tried
        full = None if self.plan.exact else self._full_batch
        way, new = self._tests.way(self._losses, tried.made_up(REHEARSED), full, step)
        if new:
            moving.step.ready(way)

    @cached_property
    def _losses(self) -> Callable[..., Tensor]:
        task = self.task
        return lambda *some: task.losses(some)

    def _moving(self, model: nn.Module, step: Step) -> Moving:
        return Moving(model, step, optimizer=self.optimizer, schedule=self.schedule, averaging=self.averaging)

    def made_step(self) -> Step:
        """What clips and adds the noise; an audit has a kind of run of its own, which watches it."""
        return self._step_on(self.task.model, self.processes, self.bits)

    def _step_on(self, model: nn.Module, processes: Processes, bits: Bits) -> Step:
        return Step.of(
            model,
            self.plan,
            clipping=self.clipping,
            physical_batch_size=self.physical_batch_size if self.plan.exact else None,
            processes=processes,
            bits=bits,
        )

    @property
    def _handed_out(self) -> nn.Module:
        """The model as it was given, with the parameters that were trained and with nothing else that was.

        The copy that ran may have kept what it saw: a layer's last input as an attribute, say.
        """
        model = copy.deepcopy(self.original).eval()
        model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for name, value in trained_of(self.task.model).items():
                model.get_parameter(name).copy_(value)
        return model

    @property
    def settings(self) -> dict[str, str]:
        """What the epsilon rests on, by the names that ledgers and checkpoints have held since the first."""
        more = {} if self.plan.max_batch_size is None else {"most": str(self.plan.max_batch_size)}
        if self.plan.neighbours is not self.plan.sampler.relations[0]:
            more["neighbours"] = str(self.plan.neighbours)
        if self.plan.group > 1:
            more["group"] = str(self.plan.group)
        if self.plan.parts is not None:
            more["parts"] = str(self.plan.parts)
        if self.plan.factor is not None:
            more["correlation"] = self.plan.factor.identity
        if self.plan.exact:
            more["exact"] = f"grid of {GRID_STEPS} steps"
        if self.stopping is not None:
            more["stopping"] = self.stopping.words
        return {
            "size": str(self.plan.size),
            "batch": str(self.plan.batch_size),
            "steps": str(self.plan.steps),
            "noise": repr(self.plan.noise_multiplier),
            "delta": repr(self.plan.delta),
            "sampler": str(self.plan.sampler),
            "clipping": repr(self.clipping),
            "unit": "example" if self.units is None else f"id with at most {self._per_unit} examples",
            **more,
        }

    @property
    def _assumptions(self) -> tuple[str, ...]:
        """What the epsilon rests on, in words; a person with an id is more than an example."""
        assumptions = self.plan.cost.assumptions
        if self.units is None:
            return assumptions
        group = self.plan.group
        who = "one person" if group == 1 else f"any {group:,} persons together"
        unit = (
            f"The unit is {who}, with all examples of one id: neighbours are data sets where "
            f"{'one person is' if group == 1 else 'so many are'} {_CHANGED[self.plan.neighbours]}. At most "
            f"{counted(self._per_unit, 'example', 'd')} of each may count at a time."
        )
        return tuple(unit if each.startswith("The unit is") else each for each in assumptions)

    @property
    def _per_unit(self) -> int:
        return 1 if self.units is None else self.units.max_examples

    @cached_property
    def _batches(self) -> Batches:
        drawn = self.plan.batches
        if isinstance(drawn, IndependentBatches):
            present = self.examples.size if self.units is None else len(self.units)
            return replace(drawn, present=present)
        return drawn

    def _trained(self, moving: Moving, state: State, file: Checkpoint | None) -> tuple[Progress, ...]:
        steps, epoch = self.plan.steps, self._epoch
        every = None if file is None else file.every
        history = _history(state)

        def save(step: int, *, over: bool = False) -> None:
            if file is not None:
                entries = tuple(asdict(each) for each in history)
                now = replace(state, step=step, parts=moving.parts(), history=entries)
                noise = moving.step.correlation
                file.save(now, None if noise is None or over else noise.secrets(), self.bits)

        done = state.step
        if (
            self.processes.first
            and done
            and (done % epoch == 0 or done == steps)
            and not (history and history[-1].step == done)
        ):
            # killed after it was saved, before it was told
            history.append(self._judged(self._at(done), moving))
        drawn = self._batches.draw(self.bits, after=done)
        for step in range(done + 1, steps + 1):
            if self._ends(step - 1, history):
                self._tests.confirm(step - 1, last=True)
                save(step - 1, over=True)
                return tuple(history)
            units = self.processes.places(next(drawn) if self.processes.first else None)
            self._take(self.processes.share(units), moving, step - 1)
            if not self.processes.first:
                continue
            now = self._at(step)
            if step % epoch == 0 or step == steps:
                save(step, over=step == steps)  # before it is told: what was told must not be drawn again
                now = self._judged(now, moving)
                history.append(now)
            elif every and step % every == 0 and not self.plan.sampler.by_epoch:
                save(step)
            if self.progress is not None:
                self.progress(now)
        save(steps, over=True)
        return tuple(history)

    def _ends(self, done: int, history: Sequence[Progress]) -> bool:
        """Whether the rule ends the run after an epoch; the first process judges, and all end together."""
        if self.stopping is None or done == 0 or done % self._epoch:
            return False
        return self.processes.from_first(self._stops(history) if self.processes.first else None)

    def _stops(self, history: Sequence[Progress]) -> bool:
        return self.stopping is not None and self.stopping.ends(history)

    def _take(self, units: Indices, moving: Moving, taken: int) -> None:
        """One logical batch, or this process's share of it, in physical ones."""
        with moving.step.or_give_up():
            self._test(moving, taken)
            self._take_in(units, moving)
            self._tests.confirm(taken, last=taken == self.plan.steps - 1)
        moving.close()

    def _take_in(self, units: Indices, moving: Moving) -> None:
        # no batch is taken whole that is larger than those that were tested
        size = full_batch(self.plan.batch_size, self.physical_batch_size)
        size *= _PORTION if self.plan.exact else 1
        for start in range(0, len(units), size):
            some = units[start : start + size]
            weights: Tensor | None
            if self.units is None:
                batch, fits = self._read(some)
                weights = self._shares(len(some))
            else:
                chosen = self.units.draw(some, self.bits)
                batch, fits = self._read(chosen.places)
                weights = torch.from_numpy(np.repeat(chosen.weights, self.copies) / np.float32(self.copies))
            if fits is not None:  # what does not fit adds exactly nothing
                weights = fits.float() if weights is None else weights * fits
            moving.step.take(
                self.task.losses,
                (batch, weights),
                examples_per_unit=self._per_unit * self.copies,
            )

    def _read(self, places: Indices) -> tuple[Batch, Tensor | None]:
        """Examples, and which of them fit.

        For an exact step changed images are made one by one, since their last digits too could depend on
        who is changed with them.
        """
        if not self.plan.exact or not isinstance(self.examples, AugmentedExamples):
            return self.examples.fitting(places)
        each = [self.examples.fitting(places[i : i + 1]) for i in range(len(places))]
        batch = tuple(torch.cat(parts) for parts in zip(*(one for one, _ in each), strict=True))
        whole = torch.ones(self.copies, dtype=torch.bool)
        return batch, torch.cat([whole if fits is None else fits for _, fits in each])

    def _shares(self, people: int) -> Tensor | None:
        """What each copy of an example counts of it."""
        if self.copies == 1 and not self.plan.exact:
            return None
        return torch.full((people * self.copies,), 1 / self.copies)

    @property
    def _epoch(self) -> int:
        """How many steps an epoch has."""
        return -(-self.plan.size // self.plan.batch_size)

    def _at(self, step: int) -> Progress:
        """How far the run is after a step, with what it cost so far at most.

        Epsilon is computed at some marks; between two, that of the next is told.
        """
        epsilon = self.plan.epsilon.upper
        if self.progress is not None or step % self._epoch == 0:
            mark = -(-step * _MARKS // self.plan.steps)
            if mark not in self._marks:
                self._marks[mark] = self._cost_until(-(-mark * self.plan.steps // _MARKS))
            epsilon = self._marks[mark]
        return Progress(step=step, steps=self.plan.steps, epoch=step // self._epoch, epsilon=epsilon)

    @cached_property
    def _marks(self) -> dict[int, float]:
        return {_MARKS: self.plan.epsilon.upper}

    def _cost_until(self, step: int) -> float:
        most = self.plan.epsilon.upper
        if most == 0 or most > _HOPELESS:  # so much noise that nothing is left to tell, or far too little
            return most
        accountant = PLD(width=0.01 * most)
        cost = accountant.lift(self.plan.spend().one_loss())
        count = self.plan.batches.training(1.0).uses_until(step)
        return min(most, accountant.epsilon(accountant.repeat(cost, count), self.plan.delta).upper)

    def _judged(self, now: Progress, moving: Moving) -> Progress:
        """Loss, accuracy and metrics on public data."""
        if self.public is None:
            return now
        with moving.averaged():
            return Judge(self.task, self.public, self.metrics).judged(now)


def _history(state: State) -> list[Progress]:
    """What a run has told so far."""
    return [Progress(**each) for each in state.history]
