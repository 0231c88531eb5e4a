"""One case of `sourdine train memory` in a process of its own: `python -m` this, with the case as JSON."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from sourdine.learning.data.examples import Batch
from sourdine.learning.features.vgg import BLOCKS, VGG
from sourdine.learning.memory.allocations import Allocations
from sourdine.learning.memory.dry_run import MakeSteps, cycle
from sourdine.learning.memory.table import MemoryCase
from sourdine.learning.task import cross_entropy

_STATUS = Path("/proc/self/status")
_OPTIMIZERS: dict[str, MakeSteps] = {
    "sgd": partial(torch.optim.SGD, lr=0.01),
    "momentum": partial(torch.optim.SGD, lr=0.01, momentum=0.9),
    "adam": partial(torch.optim.Adam, lr=0.001),
}


def measured(case: MemoryCase) -> dict[str, object]:
    """The bytes of tensors and of this process, over one step of training on random images."""
    optimizer = _OPTIMIZERS[case.optimizer]
    optimizer([nn.Parameter(torch.zeros(1))])  # what it imports is not the model's
    with Allocations() as taken:
        before = resident("VmRSS")
        cycle(
            _model_maker(case),
            _drawn(case),
            loss=cross_entropy,
            optimizer=optimizer,
            watch=taken.mark,
            private=case.private,
            later=False,
        )
        peak = resident("VmHWM")
    return {
        "live": {stage: memory.live for stage, memory in taken.stages.items()},
        "most": {stage: memory.most for stage, memory in taken.stages.items()},
        "before": before,
        "resident": peak,
    }


def _model_maker(case: MemoryCase) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        model = VGG(classes=case.classes, hidden=(case.hidden,), blocks=BLOCKS[case.depth])
        model.features.requires_grad_(False)
        return model

    return make


def _drawn(case: MemoryCase) -> Callable[[], Batch]:
    side = case.side // case.reduce

    def draw() -> Batch:
        return torch.rand(case.batch, 3, side, side), torch.zeros(case.batch, dtype=torch.int64)

    return draw


def resident(field: str) -> int | None:
    """Bytes of this process in memory, now (VmRSS) or at most so far (VmHWM), where Linux tells them.

    The usual `ru_maxrss` will not do: it begins with the largest size of the process that started this one.
    """
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None


if __name__ == "__main__":
    print(json.dumps(measured(MemoryCase(**json.loads(sys.argv[1])))))
