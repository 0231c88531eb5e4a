"""How a run is carried out on this machine: how much at once, and what is tried before anything is paid."""

from dataclasses import dataclass

import torch

from sourdine.core import check
from sourdine.learning.data.examples import Examples, RepeatedExamples, examples_of
from sourdine.learning.devices.placement import Placement
from sourdine.learning.devices.processes import Processes
from sourdine.learning.devices.wrapping import plain_calls
from sourdine.learning.forecast import measure
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.self_test import REHEARSED, self_test
from sourdine.learning.gradients.way import GradientWay
from sourdine.learning.pricing import StepForecast
from sourdine.learning.task import Task


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What changes memory and time of a run, and neither its model nor its price.

    - `physical_batch_size`: how many units are computed at once. Unless given, it is measured.
    - `rehearsal`: a few public examples, by which the gradients of the model are tested and a step is
      measured before anything is paid; made-up ones of the data's shape unless given.
    - `device`: where it is trained, such as "cuda:0"; where the model is, unless told. What is handed over is
      where the model was.
    - `dtype`: what it computes in: "float32", "float64", or "bfloat16", by autocast. Clipped sums and noise
      are float32.
    - `processes`: those that train the model together, each of which calls `fit` alike. A model in
      DistributedDataParallel tells them by itself.

    >>> Execution(physical_batch_size=64).physical_batch_size
    64
    """

    physical_batch_size: int | None = None
    rehearsal: object = None
    device: torch.device | str | None = None
    dtype: torch.dtype | str | None = None
    processes: Processes | None = None

    def __post_init__(self) -> None:
        if self.physical_batch_size is not None:
            size = check.integer("Execution", "physical_batch_size", self.physical_batch_size, 1, 1 << 30)
            check.keep(self, physical_batch_size=size)
        if self.placement.without_numbers:
            remedy = "measure(model, data, device='meta') forecasts the memory of a step there."
            raise check.fail("Execution", "device", "have numbers", self.device, remedy)

    @property
    def placement(self) -> Placement:
        """Where the model is trained, and in which numbers."""
        return Placement(device=self.device, dtype=self.dtype)

    def prepare(
        self,
        task: Task,
        examples: Examples,
        *,
        clipping: Clipping,
        examples_per_unit: int = 1,
        batch_size: int | None = None,
    ) -> "Prepared":
        """Test the gradients of a task on examples that are nobody's, and measure a step unless told."""
        tried = examples if self.rehearsal is None else RepeatedExamples(examples_of(self.rehearsal))
        with plain_calls(task.model):
            way = self_test(task, tried.made_up(REHEARSED))
        public = None if self.rehearsal is None else tried
        if self.physical_batch_size is not None:
            return Prepared(self.physical_batch_size, None, way, public)
        forecast = measure(
            task.model,
            tried,
            loss=task.loss,
            clipping=clipping,
            examples_per_unit=examples_per_unit,
            dtype=task.autocast,
            way=way,
            batch_size=batch_size,
        )
        return Prepared(forecast.physical_batch_size, forecast, way, public)


@dataclass(frozen=True)
class Prepared:
    """What is known of a run before it is paid for.

    How many units are computed at once, a forecast if it was measured, how gradients are taken, and public
    examples to try things on, if there are any.
    """

    physical_batch_size: int
    forecast: StepForecast | None
    way: GradientWay
    tried: Examples | None


def check_execution(owner: str, execution: object) -> Execution:
    """How a run is carried out, as usual unless told."""
    if execution is None:
        return Execution()
    if not isinstance(execution, Execution):
        remedy = "Write Execution(physical_batch_size=64), for example."
        raise check.fail(owner, "execution", "be an Execution", execution, remedy)
    return execution
