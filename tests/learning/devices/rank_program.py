"""One of several processes that train together over gloo: `python -m` this, with a case as JSON.

It writes what came of it beside the case, and ends with 3 where another process was gone or failed.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from sourdine.core.errors import SourdineError
from sourdine.core.random.bits import Bits
from sourdine.learning import (
    Banded,
    EarlyStopping,
    Execution,
    Processes,
    ProcessGone,
    Step,
    TrainingPlan,
    fit,
    loader,
    plan,
)
from sourdine.learning.devices.processes import SharedBits
from sourdine.learning.task import cross_entropy
from sourdine.testing import SeededBits

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


class Small(nn.Module):
    """With a buffer, which DistributedDataParallel would send around in every call."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))
        self.body = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        self.to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x) * self.scale
        return out


def data(size: int = 200, *, odd: bool = False) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(7)
    x = torch.randn(size, 6, generator=source)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
    if odd:  # gradients that are not finite, now in one share of a batch and now in the other
        x[::7] = torch.nan
        x[3::11] = 3e38
    return x, y


def model_of(case: dict[str, Any], rank: int) -> nn.Module:
    torch.manual_seed(case.get("seed", 1) + (rank if case.get("apart") else 0))
    model = Small(DTYPES[case.get("dtype", "float32")])
    if rank == case.get("frozen"):
        model.body[0].weight.requires_grad_(False)
    return model


def plan_of(case: dict[str, Any], rank: int) -> TrainingPlan:
    correlation = Banded(bands=4) if case.get("correlated") else None
    epochs = case.get("epochs", 2) + (rank == case.get("longer"))
    size = case.get("batch_size", 20)
    return TrainingPlan(
        noise_multiplier=1.5, delta=1e-3, epochs=epochs, batch_size=size, correlation=correlation
    )


def trained(case: dict[str, Any], rank: int, processes: Processes) -> dict[str, Any]:
    """A run of fit."""
    watch, loss = watches(case, rank)
    model = model_of(case, rank)
    result = fit(
        DistributedDataParallel(model) if case.get("wrapped") else model,
        data(200 - (rank == case.get("smaller")), odd=case.get("odd", False)),
        plan_of(case, rank),
        loss=loss,
        optimizer=partial(torch.optim.Adam, lr=0.05) if case.get("adam") else None,
        averaging=0.9 if case.get("adam") else None,
        public=data(50),
        stopping=EarlyStopping(patience=case["patience"]) if "patience" in case else None,
        ledger=case.get("ledger"),
        checkpoint=case.get("checkpoint"),
        progress=watch,
        execution=Execution(
            physical_batch_size=4 + rank, processes=None if case.get("wrapped") else processes
        ),
        bits=SeededBits(5),
    )
    return {
        "values": values_of(result.model),
        "epsilon": [result.epsilon.lower, result.epsilon.upper],
        "resumed": result.resumed,
        "receipt": None if result.receipt is None else result.receipt.number,
        "accuracies": [each.accuracy for each in result.history],
        "epochs": [each.epoch for each in result.history],
    }


def stepped(case: dict[str, Any], rank: int, processes: Processes) -> dict[str, Any]:
    """A loop of one's own, over a loader."""
    x, y = data(odd=case.get("odd", False))
    x = x.to(DTYPES[case.get("dtype", "float32")])  # as a plain loop must
    model = model_of(case, rank)
    outer: nn.Module = model
    if case.get("wrapped"):
        outer = DistributedDataParallel(
            model,
            find_unused_parameters=case["wrapped"] == "unused",
            static_graph=case["wrapped"] == "static",
        )
    priced = plan(plan_of(case, rank), size=200)
    step = Step(  # hardly any noise: for masks, its bits are asked as often as there are physical batches
        outer,
        noise_multiplier=2.0**-30,
        batch_size=priced.batch_size,
        steps=priced.steps,
        processes=None if case.get("wrapped") else processes,
        physical_batch_size=3,
        bits=SeededBits(5),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def losses(x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(outer(x), y)

    words: Bits = SeededBits(9)
    if not processes.several:  # draw what several draw from the secret of the first
        words = SharedBits(words.words(4).tobytes(), secure=False)
    sizes = []
    for xs, ys in loader((x, y), priced, processes=processes, bits=words):
        sizes.append(len(xs))
        if len(xs) or not case.get("skip"):
            step.add(losses, xs, ys)
        step.close()
        optimizer.step()
    return {"values": values_of(model), "sizes": sizes, "left": step.left}


def values_of(model: nn.Module) -> list[float]:
    return [float(each) for value in model.parameters() for each in value.detach().flatten()]


def watches(
    case: dict[str, Any], rank: int
) -> tuple[Callable[[Any], None], Callable[[Tensor, Tensor], Tensor]]:
    """What kills or fails this process at a step, or at a use of the loss."""
    uses = 0

    def watch(now: Any) -> None:
        if case.get("killed") == rank == 0 and now.step == case["at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        nonlocal uses
        uses += 1
        if case.get("killed") == rank > 0 and uses == case["at"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if case.get("failing") == rank and uses >= case["at"]:
            raise MemoryError("no room left here")
        return cross_entropy(outputs, targets)

    return watch, loss


CASES = {"fit": trained, "step": stepped}


def main() -> int:
    case = json.loads(sys.argv[1])
    rank, count, folder = case["rank"], case["count"], Path(case["folder"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=count)
    try:
        told = CASES[case["kind"]](case, rank, Processes())
    except (SourdineError, MemoryError) as problem:
        told = {"error": type(problem).__name__, "text": str(problem)}
        code = 3 if isinstance(problem, ProcessGone) else 2
    else:
        code = 0
    (folder / f"{rank}.json").write_text(json.dumps(told))
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
