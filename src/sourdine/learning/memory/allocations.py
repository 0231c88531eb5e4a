"""The bytes that torch's allocator has handed out, as its own profiler tells them."""

import gc
import os
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from torch.autograd.profiler import profile, record_function

Moment = tuple[str, str, int]  # an operation, how its piece of memory is told apart, and by which size
_MARK = "sourdine: end of "
_SILENT = "99"  # the profiler says on stderr that it starts and stops, unless it is told not to


@dataclass(kw_only=True)
class StageMemory:
    """Bytes that are held at the end of a stage, the most at once within it, and the most at each moment."""

    live: int
    most: int
    moments: dict[Moment, int] = field(default_factory=dict)


class Allocations:
    """Follows every piece of memory that tensors and operations take, and give back, while it lasts.

    It counts what was taken since it began, of which nothing is missed: also what operations take for
    themselves. With `units`, moments are told apart by the operation and the size of the piece, as such and
    over the number of units, so that runs of different lengths can be compared.

    >>> import torch
    >>> with Allocations() as taken:
    ...     first = torch.zeros(1000)
    ...     second = torch.neg(first)
    ...     del first
    ...     taken.mark("sum")
    >>> taken.stages["sum"].live, taken.stages["sum"].most
    (4000, 8000)
    """

    def __init__(self, *, units: int = 1, device: str = "cpu") -> None:
        self.stages: dict[str, StageMemory] = {}
        self._units, self._device = units, device
        self._collected = True
        self._profile = profile(use_cpu=True, profile_memory=True)

    def __enter__(self) -> "Allocations":
        os.environ.setdefault("KINETO_LOG_LEVEL", _SILENT)
        # Garbage of an earlier profile, given back at a moment of its own, would be taken off here.
        self._collected = gc.isenabled()
        gc.disable()
        self._profile.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self._profile.__exit__(kind, problem, where)  # type: ignore[no-untyped-call]
        if self._collected:
            gc.enable()
        if kind is None:
            self._replay()

    def mark(self, stage: str) -> None:
        """End a stage: what comes is counted to the next."""
        with record_function(_MARK + stage):
            pass

    def _replay(self) -> None:
        results: Any = self._profile.kineto_results
        now, stage, operation = 0, StageMemory(live=0, most=0), ""
        for event in sorted(results.events(), key=lambda each: each.start_ns()):
            name = event.name()
            if name.startswith(_MARK):
                stage.live = now
                self.stages[name.removeprefix(_MARK)] = stage
                stage = StageMemory(live=now, most=now)
            elif name != "[memory]":
                operation = name
            elif event.device_type().name.lower() == self._device:
                size = event.nbytes()
                now += size
                stage.most = max(stage.most, now)
                if size > 0:
                    self._note(stage.moments, operation, size, now)

    def _note(self, moments: dict[Moment, int], operation: str, size: int, now: int) -> None:
        keys: list[Moment] = [(operation, "whole", size)]
        if size % self._units == 0:
            keys.append((operation, "each", size // self._units))
        for key in keys:
            moments[key] = max(moments.get(key, 0), now)
