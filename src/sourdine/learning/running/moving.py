"""What changes from step to step of a run: the model, its optimizer, the schedule and an average."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from torch import nn
from torch.optim import LBFGS, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from sourdine.core.errors import InvalidParameter
from sourdine.learning.running.averaging import Average
from sourdine.learning.step import Step

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]
MakeSchedule = Callable[[Optimizer], LRScheduler]


class Moving:
    """What changes from step to step."""

    def __init__(
        self,
        model: nn.Module,
        step: Step,
        *,
        optimizer: MakeOptimizer,
        schedule: MakeSchedule | None,
        averaging: float | None,
    ) -> None:
        self._model, self.step = model, step
        wanted = [value for value in self._model.parameters() if value.requires_grad]
        self._optimizer = optimizer(wanted)
        if isinstance(self._optimizer, LBFGS):
            raise InvalidParameter(
                "LBFGS looks at the data again and again within one step, and each look would cost. "
                "Take an optimizer that needs one gradient a step, such as SGD or Adam."
            )
        if {id(each) for group in self._optimizer.param_groups for each in group["params"]} - {
            id(each) for each in wanted
        }:
            raise InvalidParameter(
                "The 'optimizer' must step the parameters that it is given, since a copy of the model is "
                "trained: it steps others. Write lambda parameters: torch.optim.SGD(parameters, lr=0.1)."
            )
        self._schedule = None if schedule is None else schedule(self._optimizer)
        self._average = None if averaging is None else Average(self._model, averaging)

    def close(self) -> None:
        self.step.close()
        self._optimizer.step()
        if self._schedule is not None:
            self._schedule.step()
        if self._average is not None:
            self._average.take()

    def follow_schedule(self, steps: int) -> None:
        """Let the schedule alone go so many steps, to see that it can."""
        if self._schedule is not None:
            for _ in range(steps):
                self._schedule.step()

    def averaged(self) -> Any:
        return nullcontext() if self._average is None else self._average.applied()

    def finish(self) -> None:
        if self._average is not None:
            self._average.keep()
        for value in self._model.parameters():
            value.grad = None

    def parts(self) -> dict[str, Any]:
        return {
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "schedule": None if self._schedule is None else self._schedule.state_dict(),
            "average": None if self._average is None else self._average.state(),
            **({"norm": self.step.norm} if self.step.norm != self.step.clipping.norm else {}),
        }

    def load(self, parts: dict[str, Any]) -> None:
        self._model.load_state_dict(parts["model"])
        self._optimizer.load_state_dict(parts["optimizer"])
        if self._schedule is not None and parts["schedule"] is not None:
            self._schedule.load_state_dict(parts["schedule"])
        self.step.norm = float(parts.get("norm", self.step.clipping.norm))
        if self._average is not None and parts["average"] is not None:
            average = parts["average"]
            self._average.load(average["count"], average["held"])
