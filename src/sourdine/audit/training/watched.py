"""A run under audit: the model with its canaries, trained by the engine itself with every step watched."""

import copy
from dataclasses import replace
from enum import Enum
from fractions import Fraction

import numpy as np
import torch
from torch import nn

from sourdine.accounting.ledger import Ledger
from sourdine.audit.one_run import Flags
from sourdine.audit.training.advantage import GradientAudit, audit_gradients
from sourdine.audit.training.batch_checks import clipping_check, drawing_check, size_check, steps_check
from sourdine.audit.training.canaries import Canaries
from sourdine.audit.training.checks import ALARM, Check
from sourdine.audit.training.noise_checks import law_check, reuse_check, scale_check
from sourdine.audit.training.probe import Probed, ProbedExamples, probed_loss
from sourdine.audit.training.trace import Trace, TracedRun
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.learning.data.examples import Examples
from sourdine.learning.execution import Execution
from sourdine.learning.fitting import task_of
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.engine import Engine
from sourdine.learning.gradients.owners import check_model
from sourdine.learning.planning import TrainingPlan
from sourdine.learning.planning import plan as price
from sourdine.learning.pricing import PricedPlan
from sourdine.learning.running.moving import MakeOptimizer
from sourdine.learning.running.run import ReportProgress
from sourdine.learning.task import Losses, Task, check_loss

_CHECKS = 8  # that share the false alarm
_SINGLE = 16  # canaries that are clipped one by one
_PRECISE = (torch.float32, torch.float64)


class Secrecy(Enum):
    """What a run under audit has to hide, which decides what is told of its steps."""

    NONE = "canaries alone"  # everything is told
    DATA = "data"  # no more than whether the checks hold
    PAID = "data that a ledger protects"  # nothing beyond what was paid for


class Watched:
    """A model, examples and canaries in gradient space, each of these in or out by a coin.

    `data` is how many of the examples are no canaries. How many of those really came in is a secret of the
    coins, so that half of them count in the price.
    """

    def __init__(
        self,
        model: nn.Module,
        examples: Examples,
        *,
        canaries: Canaries,
        gradients: Flags,
        data: int,
        loss: Losses,
        clipping: Clipping | None,
        bits: Bits,
    ) -> None:
        check_model(model)
        if any(value.requires_grad and value.dtype not in _PRECISE for value in model.parameters()):
            raise InvalidParameter(
                "An audit compares the noise of a step with its law, for which a model in half precision "
                "rounds too much. Audit it in float32: model.float()."
            )
        self._loss, self._bits, self._data = check_loss(loss), bits, data
        self._clipping = Flat() if clipping is None else clipping
        self._model, self._canaries, self._included = model, canaries, gradients
        self._examples = ProbedExamples(examples, torch.from_numpy(np.flatnonzero(gradients) + 1))
        self._trace: Trace | None = None

    def priced(self, plan: TrainingPlan) -> PricedPlan:
        """The run that is claimed, on the units of the plan or of the data, and half of the canaries."""
        units = self._data if plan.size is None else plan.size
        return price(replace(plan, size=units + len(self._canaries) // 2 + len(self._included) // 2))

    def trained(
        self,
        priced: PricedPlan,
        *,
        optimizer: MakeOptimizer,
        execution: Execution,
        progress: ReportProgress | None,
        ledger: Ledger | None,
    ) -> nn.Module:
        """The model after the run, as `fit` would train it."""
        model = Probed(self._model, len(self._included))
        task = task_of(model, probed_loss(self._loss))  # type: ignore[arg-type]
        prepared = execution.prepare(task, self._examples, clipping=self._clipping)
        layers = {name: value.numel() for name, value in task.model.named_parameters() if value.requires_grad}
        self._trace = Trace(
            layers, steps=priced.steps, units=self._examples.size, canaries=len(self._included)
        )
        self._examples.requests = []
        run = TracedRun(
            task=task,
            original=model,
            plan=priced,
            clipping=self._clipping,
            examples=self._examples,
            units=None,
            optimizer=optimizer,
            schedule=None,
            averaging=None,
            physical_batch_size=prepared.physical_batch_size,
            way=prepared.way,
            tried=prepared.tried,
            public=None,
            progress=progress,
            bits=self._bits,
            trace=self._trace,
            watched=self._examples,
        )
        trained: nn.Module = run.done(None, ledger, "audit training").model.model  # type: ignore[assignment]
        return trained

    def examined(
        self, priced: PricedPlan, confidence: float, secrecy: Secrecy
    ) -> tuple[GradientAudit, tuple[Check, ...]]:
        """What the steps showed, as far as it may be told; the trace is given up afterwards."""
        trace, self._trace = self._trace, None
        assert trace is not None
        alarm, rate = ALARM / _CHECKS, Fraction(priced.batch_size, priced.size)
        gradients, verdict = audit_gradients(
            trace.evidence, self._included, priced, confidence=confidence, alarm=alarm
        )
        # of noisy sums and of canaries, which whoever pays for the run has paid for
        of_canaries = (
            verdict,
            clipping_check(trace, self._single(), alarm),
            steps_check(trace, priced.steps, alarm),
        )
        if secrecy is Secrecy.PAID:
            return gradients, of_canaries
        of_secrets = (
            scale_check(trace, alarm),
            law_check(trace, alarm),
            reuse_check(trace, alarm),
            size_check(trace, priced.size, rate, alarm, self._bits),
            drawing_check(trace, priced.size, rate, alarm, self._bits),
        )
        checks = of_canaries + of_secrets
        assert len(checks) == _CHECKS
        return gradients, checks if secrecy is Secrecy.NONE else tuple(each.sealed() for each in checks)

    def _single(self) -> float:
        """The most that one canary of the data's shape moves the sum by, in clipping norms."""
        task = Task(copy.deepcopy(self._model).train(), self._loss)
        engine, farthest = Engine(task.model, self._clipping), 0.0
        for place in range(min(_SINGLE, len(self._canaries))):
            one = self._canaries.at(slice(place, place + 1))
            like = self._examples.like()
            batch = (one.inputs.to(like[0].dtype), one.targets.to(like[-1].dtype))
            sums = engine.clipped_sum(lambda: task.losses(batch)).values()  # noqa: B023
            length = torch.stack([each.double().square().sum() for each in sums]).sum().sqrt()
            farthest = max(farthest, float(length) / float(self._clipping.norm))
        return farthest
