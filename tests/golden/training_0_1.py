"""The runs of training whose checkpoints are kept: small, on made-up examples that need no random numbers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sourdine.accounting.ledger import Ledger
from sourdine.learning import Automatic, Checkpoint, Execution, Flat, PerLayer, TrainingPlan, UnitIds, fit
from sourdine.learning.sweep.run import run_sweep
from sourdine.learning.sweep.settings import Sweep, product

STEPS = 8
KILLED = 5
_PLACES = torch.arange(48, dtype=torch.float32)
X = torch.stack([torch.sin(_PLACES), torch.cos(3 * _PLACES), _PLACES / 48], dim=1)
Y = (X[:, 0] > 0).long()
RUNS: dict[str, dict[str, Any]] = {  # by the ledger that pays, and what differs
    "plain": {"ledger": "renyi"},
    "averaged": {
        "ledger": "renyi",
        "optimizer": partial(torch.optim.Adam, lr=0.05),
        "schedule": partial(torch.optim.lr_scheduler.StepLR, step_size=2),
        "averaging": 0.9,
        "clipping": Flat(norm=0.5),
    },
    "people": {
        "ledger": "renyi",
        "units": UnitIds([i // 3 for i in range(48)], max_examples=2),
        "plan": {"batch_size": 4},
        "clipping": Automatic(norm=1),
    },
    "fixed": {
        "ledger": "fixed",
        "plan": {"sampler": "fixed", "steps": None, "epochs": 2},
        "clipping": PerLayer(norm=2),
    },
    "shuffled": {"ledger": "zero_out", "plan": {"sampler": "shuffle", "steps": None, "epochs": 2}},
}


class Killed(Exception):
    """The end of a run before its end."""


def model() -> nn.Module:
    """The model that is trained."""
    torch.manual_seed(1)
    return nn.Linear(3, 2)


def train(name: str, checkpoint: Path, ledgers: Path, progress: Callable[[Any], None] | None = None) -> Any:
    """Begin a run, or go on with it."""
    stated = dict(RUNS[name])
    plan = {"noise_multiplier": 2.0, "delta": 1e-3, "steps": STEPS, "batch_size": 12} | stated.pop("plan", {})
    with Ledger.open(ledgers / f"{stated.pop('ledger')}.ledger") as ledger:
        return fit(
            model(), (X, Y), TrainingPlan(**plan), public=(X, Y), checkpoint=Checkpoint(checkpoint, every=1),
            execution=Execution(physical_batch_size=48), ledger=ledger, progress=progress,
            purpose=f"train, {name}", **stated,
        )  # fmt: skip


def kill(name: str, checkpoint: Path, ledgers: Path) -> None:
    """A run that ends too early."""

    def stop(now: Any) -> None:
        if now.step == KILLED:
            raise Killed

    try:
        train(name, checkpoint, ledgers, stop)
    except Killed:
        return
    raise AssertionError("the run was not killed")


def sweep(journal: Path, ledgers: Path) -> Any:
    """A small sweep, begun or gone on with."""
    settings = product(
        learning_rate=[0.1, 1.0], batch_size=[12], epochs=[1], clip=[1.0], noise_multiplier=[2.0]
    )
    made = Sweep(settings=settings, repeats=2, size=48, delta=1e-3)

    def one(setting: Any, planned: Any) -> Any:
        plan = TrainingPlan(
            delta=planned.delta, noise_multiplier=planned.noise_multiplier, epochs=setting.epochs,
            batch_size=setting.batch_size,
        )  # fmt: skip
        return fit(model(), (X, Y), plan, public=(X, Y), execution=Execution(physical_batch_size=48))

    with Ledger.open(ledgers / "renyi.ledger") as ledger:
        return run_sweep(made, one, journal, about={"data": "toys", "model": "linear"}, ledger=ledger)
