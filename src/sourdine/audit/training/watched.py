"""A run under audit: the model with its canaries, trained by the engine itself with every step watched."""

import copy
from fractions import Fraction

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from sourdine.accounting.ledger import Ledger
from sourdine.audit.one_run import Flags
from sourdine.audit.training.advantage import GradientAudit, audit_gradients
from sourdine.audit.training.batch_checks import clipping_check, drawing_check, size_check, steps_check
from sourdine.audit.training.canaries import Canaries
from sourdine.audit.training.checks import ALARM, Check
from sourdine.audit.training.noise_checks import law_check, reuse_check, scale_check
from sourdine.audit.training.probe import Probed, ProbedExamples, probed_loss
from sourdine.audit.training.trace import Trace, TracedRun, TrainingFault
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.randomness.bits import Bits
from sourdine.learning.data.examples import Examples
from sourdine.learning.forecast import measure
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.engine import Engine, check_model
from sourdine.learning.gradients.self_test import REHEARSED, self_test
from sourdine.learning.planning import TrainingPlan, plan
from sourdine.learning.run import MakeOptimizer, Watch
from sourdine.learning.task import Losses, Task, check_loss

_OWNER = "audit_training"
_CHECKS = 8  # that share the false alarm
_SINGLE = 16  # canaries that are clipped one by one
_PRECISE = (torch.float32, torch.float64)


class Watched:
    """A model, examples and canaries in gradient space, each of these in or out by a coin."""

    def __init__(
        self,
        model: nn.Module,
        examples: Examples,
        *,
        canaries: Canaries,
        gradients: Flags,
        size: int,
        sealed: bool,
        loss: Losses,
        clipping: Clipping | None,
        fault: TrainingFault,
        bits: Bits,
    ) -> None:
        check_model(model)
        if any(value.requires_grad and value.dtype not in _PRECISE for value in model.parameters()):
            raise InvalidParameter(
                "An audit compares the noise of a step with its law, for which a model in half precision "
                "rounds too much. Audit it in float32: model.float()."
            )
        self._loss, self._bits, self._fault, self._size = check_loss(loss), bits, fault, size
        self._clipping = Flat() if clipping is None else clipping
        self._model, self._canaries, self._included = model, canaries, gradients
        self._sealed = sealed
        self._examples = ProbedExamples(examples, torch.from_numpy(np.flatnonzero(gradients) + 1))
        self._trace: Trace | None = None

    def planned(
        self,
        *,
        delta: float,
        epsilon: float | None,
        noise: float | None,
        epochs: int | None,
        steps: int | None,
        batch: int | None,
    ) -> TrainingPlan:
        """The run that is claimed."""
        return plan(
            size=self._size,
            delta=delta,
            epsilon=epsilon,
            noise=noise,
            epochs=epochs,
            steps=steps,
            batch=batch,
        )

    def trained(
        self,
        planned: TrainingPlan,
        *,
        optimizer: MakeOptimizer,
        physical: int | None,
        watch: Watch | None,
        ledger: Ledger | None,
    ) -> nn.Module:
        """The model after the run, as `fit` would train it."""
        if isinstance(optimizer, Optimizer):
            raise InvalidParameter(
                "The 'optimizer' of audit_training must be a function that makes one from parameters. Pass "
                "for example lambda parameters: torch.optim.SGD(parameters, lr=0.1)."
            )
        given = Probed(self._model, len(self._included))
        loss: Losses = probed_loss(self._loss)  # type: ignore[assignment]
        task = Task(copy.deepcopy(given).train(), loss)
        self_test(task, self._examples.made_up(REHEARSED))
        if physical is None:
            physical = measure(given, self._examples, loss=loss, clipping=self._clipping).physical
        layers = {name: value.numel() for name, value in task.model.named_parameters() if value.requires_grad}
        self._trace = Trace(
            layers, steps=planned.steps, units=self._examples.size, canaries=len(self._included)
        )
        self._examples.asked = []
        run = TracedRun(
            task=task,
            given=given,
            plan=planned,
            clipping=self._clipping,
            examples=self._examples,
            people=None,
            optimizer=optimizer,
            schedule=None,
            averaging=None,
            physical=check.integer(_OWNER, "physical", physical, 1, 1 << 30),
            public=None,
            every=None,
            watch=watch,
            bits=self._bits,
            trace=self._trace,
            watched=self._examples,
            fault=self._fault,
        )
        trained: nn.Module = run.done(None, ledger, "audit training").model.model  # type: ignore[assignment]
        return trained

    def examined(self, planned: TrainingPlan, confidence: float) -> tuple[GradientAudit, tuple[Check, ...]]:
        """What the steps showed; the trace is given up afterwards.

        Beside somebody's data no more is told of the checks than whether they hold.
        """
        trace, self._trace = self._trace, None
        assert trace is not None
        alarm, rate = ALARM / _CHECKS, Fraction(planned.batch, planned.size)
        seen, told = audit_gradients(
            trace.evidence, self._included, planned, confidence=confidence, alarm=alarm
        )
        checks = (
            told,
            scale_check(trace, alarm),
            law_check(trace, alarm),
            reuse_check(trace, alarm),
            size_check(trace, planned.size, rate, alarm, self._bits),
            drawing_check(trace, planned.size, rate, alarm, self._bits),
            clipping_check(trace, self._single(), alarm),
            steps_check(trace, planned.steps, alarm),
        )
        assert len(checks) == _CHECKS
        return seen, tuple(each.sealed() for each in checks) if self._sealed else checks

    def _single(self) -> float:
        """The most that one canary of the data's shape moves the sum by, in clipping norms."""
        task = Task(copy.deepcopy(self._model).train(), self._loss)
        engine, found = Engine(task.model, self._clipping), 0.0
        for place in range(min(_SINGLE, len(self._canaries))):
            one = self._canaries.at(slice(place, place + 1))
            like = self._examples.like()
            batch = (one.inputs.to(like[0].dtype), one.targets.to(like[-1].dtype))
            sums = engine.clipped_sum(lambda: task.losses(batch)).values()  # noqa: B023
            length = torch.stack([each.double().square().sum() for each in sums]).sum().sqrt()
            found = max(found, float(length) / float(self._clipping.norm))
        return found
