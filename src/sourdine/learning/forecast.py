"""Memory and time of a step, measured by a few dry ones on made-up examples."""

import math
import os
import time
from collections.abc import Callable

import torch

from sourdine.core import check
from sourdine.learning.data.examples import Examples, examples_of
from sourdine.learning.devices.placement import Placement
from sourdine.learning.devices.processes import ALONE
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.self_test import REHEARSED
from sourdine.learning.gradients.way import GradientWay, way_of
from sourdine.learning.memory.dry_run import MakeSteps, memory_of
from sourdine.learning.pricing import StepForecast
from sourdine.learning.step import MOST_STEPS, Step
from sourdine.learning.task import Losses, Task, check_loss, cross_entropy

_FEW, _MANY = 4, 32
_TURNS, _MOST_TURNS = 3, 12  # the more, the shorter they are
_LONG = 0.02  # seconds of a step that can be told from chance
_APART = 2  # times as long as on few examples: a smaller difference may be what else the machine does
_MOST_PHYSICAL = 1024  # beyond, a larger physical batch is no quicker
_SHARE = 0.5  # of what is free


def measure(
    model: torch.nn.Module,
    data: object,
    *,
    loss: Losses | None = None,
    clipping: Clipping | None = None,
    optimizer: MakeSteps | None = None,
    examples_per_unit: int = 1,
    memory: int | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | str | None = None,
    way: GradientWay | None = None,
    batch_size: int | None = None,
) -> StepForecast:
    """What a step on examples shaped like these takes; of `data` only shapes and types are read.

    `memory` is how many bytes the tensors of training may take: half of what is free on the device unless
    told. `device` and `dtype` are as in `Execution`; a model without numbers, on the device 'meta', gets some
    for the forecast. No more than `batch_size` units come at a time, if that is told: it is quicker then.
    Units of `examples_per_unit` examples count as one. What the optimizer keeps is counted if it is given;
    its time is not. `way` is how gradients are taken, if a test has told.

    >>> forecast = measure(torch.nn.Linear(20, 2), (torch.zeros(1, 20), torch.zeros(1, dtype=torch.int64)))
    >>> forecast.parameters, forecast.physical_batch_size
    (42, 1024)
    """
    if memory is not None:
        memory = check.integer("measure", "memory", memory, 1, 1 << 60)
    examples_per_unit = check.integer("measure", "examples_per_unit", examples_per_unit, 1, 1 << 20)
    where = Placement(device=device, dtype=dtype)
    losses = cross_entropy if loss is None else check_loss(loss)
    examples = examples_of(data)
    task = Task(where.copy_of(model).train(), losses, where.autocast, examples.names)
    room = int(_SHARE * free_memory(next(task.model.parameters()).device)) if memory is None else memory
    step = Step(
        task.model,
        noise_multiplier=1.0,
        batch_size=1,
        steps=MOST_STEPS,
        clipping=Flat() if clipping is None else clipping,
        processes=ALONE,
    )
    if way is None:
        way = way_of(task.model, task.losses, (examples.made_up(REHEARSED),))
    step.ready(way)
    taken = memory_of(
        task.model,
        examples,
        loss=task.loss,
        clipping=clipping,
        optimizer=optimizer,
        examples_per_unit=examples_per_unit,
        dtype=where.autocast,
        way=way,
        batch_size=batch_size,
        room=None if batch_size is None else room,
    )
    fitting = max(1, min(_MOST_PHYSICAL, taken.largest(room, parts=True)))
    physical = 1 << (fitting.bit_length() - 1)
    most = physical if batch_size is None else min(physical, batch_size)  # beyond, nothing is asked of it
    few, many, count = _few_and_many(
        lambda units: _seconds(task, step, examples, units, examples_per_unit), most
    )
    quick = (many - few) / (count - _FEW)
    return StepForecast(
        parameters=sum(value.numel() for value in task.model.parameters() if value.requires_grad),
        physical_batch_size=physical,
        memory=taken,
        seconds=max(few - _FEW * quick, 0.0),
        seconds_each=quick,
    )


def _few_and_many(seconds: Callable[[int], float], most: int) -> tuple[float, float, int]:
    """The times of a step on few units and on many, and how many those are: about `most` where they must be.

    The difference of two short times, or of two that are nearly the same, says more of the machine than of
    the model. What else the machine does only makes a step longer, so both are timed once more at the end.
    """
    few, count = seconds(_FEW), _MANY
    while ((many := seconds(count)) < _LONG or many < _APART * few) and count < most:
        longer = math.ceil(math.log2(_LONG / max(many, _LONG / _MANY)))
        count = min(count << max(longer, 1), max(most, 2 * count))
    many = min(many, seconds(count))
    return min(few, many, seconds(_FEW)), many, count


def _seconds(task: Task, step: Step, examples: Examples, count: int, examples_per_unit: int) -> float:
    """The time of a step on so many units, the best of a few after the first.

    What the clock says grows with what else the machine does; what processors worked for this process does
    not, and is at least the time of a step that has the machine to itself. The less of both counts.
    """
    batch = examples.made_up(count * examples_per_unit)
    times: list[float] = []
    while len(times) <= _TURNS or (sum(times) < _LONG and len(times) <= _MOST_TURNS):
        start, worked = time.perf_counter(), time.process_time()
        step.take(task.losses, (batch,), examples_per_unit=examples_per_unit)
        step.close()
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # it computes while this waits for nothing
        taken = time.perf_counter() - start
        alone = all(value.device.type == "cpu" for value in task.model.parameters())
        times.append(min(taken, time.process_time() - worked) if alone else taken)
    return min(times[1:])


def free_memory(device: torch.device) -> int:
    """Bytes of memory that nobody uses, on a device or in this machine; 4 GiB where nobody says."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 4 << 30
