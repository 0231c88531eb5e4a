"""Memory and time of a step, measured by a few dry ones on made-up examples."""

import copy
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sourdine.core import check
from sourdine.learning.clipping import Clipping, Flat
from sourdine.learning.loader import Examples, examples_of
from sourdine.learning.losses import Losses, check_loss, cross_entropy
from sourdine.learning.planning import Forecast
from sourdine.learning.step import Step
from sourdine.learning.task import Task

_FEW, _MANY = 4, 32
_TURNS = 3
_MOST_PHYSICAL = 1024  # beyond, a larger physical batch is no quicker
_SHARE = 0.5  # of what is free


def measure(
    model: torch.nn.Module,
    data: object,
    *,
    loss: Losses | None = None,
    clipping: Clipping | None = None,
    per_unit: int = 1,
    memory: int | None = None,
) -> Forecast:
    """What a step on examples shaped like these takes; of `data` only shapes and types are read.

    `memory` is how many bytes the tensors of a step may take: half of what is free unless told. Units of
    `per_unit` examples count as one.

    >>> forecast = measure(torch.nn.Linear(20, 2), (torch.zeros(1, 20), torch.zeros(1, dtype=torch.int64)))
    >>> forecast.parameters, forecast.physical
    (42, 1024)
    """
    room = int(_SHARE * _free()) if memory is None else check.integer("measure", "memory", memory, 1, 1 << 60)
    task = Task(copy.deepcopy(model).train(), cross_entropy if loss is None else check_loss(loss))
    step = Step(task.model, noise=1.0, batch=1, clipping=Flat() if clipping is None else clipping)
    examples = examples_of(data)
    few, many = (_dry(task, step, examples, count, per_unit) for count in (_FEW, _MANY))
    each = max((many.add - few.add) // (_MANY - _FEW), 1)
    fixed = max(few.add - _FEW * each, few.close) + _held(task)
    quick = max((many.seconds - few.seconds) / (_MANY - _FEW), 0.0)
    fitting = max(1, min(_MOST_PHYSICAL, (room - fixed) // each))
    return Forecast(
        parameters=sum(value.numel() for value in task.model.parameters() if value.requires_grad),
        physical=1 << (fitting.bit_length() - 1),
        memory=fixed,
        memory_each=each,
        seconds=max(few.seconds - _FEW * quick, 0.0),
        seconds_each=quick,
    )


class _Dry(NamedTuple):
    """The most bytes there were at once, in both parts of a step, and the time of all of it."""

    add: int
    close: int
    seconds: float


def _dry(task: Task, step: Step, examples: Examples, count: int, per_unit: int) -> _Dry:
    batch = examples.made_up(count * per_unit)

    def add() -> None:
        step.add(lambda: task.losses(batch), per_unit=per_unit)

    with Peak() as adding:
        add()
    with Peak() as closing:
        step.close()
    times = []
    for _ in range(_TURNS):
        start = time.perf_counter()
        add()
        step.close()
        times.append(time.perf_counter() - start)
    held = sum(each.numel() * each.element_size() for each in batch)
    return _Dry(adding.most + held, closing.most, min(times))


def _held(task: Task) -> int:
    """Bytes of the model and its gradients."""
    return 2 * sum(value.numel() * value.element_size() for value in task.model.parameters())


class Peak(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors made while it lasts, and the most there were at once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most = self._now = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and loading the compiler takes seconds."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Any:
        given = {each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs)) if _real(each)}
        out = func(*args, **(kwargs or {}))
        for each in tree_leaves(out):
            if _real(each):
                storage = each.untyped_storage()
                if storage.data_ptr() not in given and storage not in self._known:
                    self._add(storage)
        return out

    def _add(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self._known.add(storage)
        self._now += size
        self.most = max(self.most, self._now)
        weakref.finalize(storage, self._less, size)

    def _less(self, size: int) -> None:
        self._now -= size


def _real(value: object) -> bool:
    return isinstance(value, Tensor) and type(value) in (Tensor, torch.nn.Parameter)


def _free() -> int:
    """Bytes of memory that nobody uses; 4 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 4 << 30
