"""Training with correlated noise: how noisy sums of gradients are, and accuracy on MNIST."""

import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from sourdine.learning import (
    BLT,
    Banded,
    BinaryTree,
    Execution,
    LeastNoise,
    TrainingPlan,
    fit,
    plan,
)
from sourdine.learning.correlation.declared import GradientCorrelation
from sourdine.learning.data.files import read_idx_folder
from sourdine.learning.features.pipeline import Features

DELTA, SIZE = 1e-5, 60_000
CASES = {(600, 600): (0.89, 0.74, 0.60, 0.48), (600, 1000): (0.96, 0.87, 0.72, 0.58)}
CASES |= {(1000, 300): (0.77, 0.60, 0.48, 0.39), (2000, 300): (0.85, 0.68, 0.52, 0.41)}
LEVELS = (1, 2, 4, 8)
_BATCH, _RATES, _REPEATS = 500, (0.25, 0.5, 1.0, 2.0), 3
_WAYS: dict[str, dict[str, Any]] = {
    "fixed order, independent noise": {"sampler": "cyclic"},
    "fixed order, tree": {"correlation": BinaryTree()},
    "fixed order, BLT": {"correlation": BLT()},
    "DP-SGD (Poisson batches)": {},
    "banded, sampling from parts": {"correlation": Banded()},
}


def noise(console: Console, *, quick: bool = False) -> Iterator[dict[str, Any]]:
    """The noise in sums of gradients beside DP-SGD's at the same epsilon, and what was published of it."""
    table = Table(title=f"noise in sums of gradients beside DP-SGD's, {SIZE:,} examples, delta {DELTA}")
    for column in ("steps, batch", *(f"epsilon {level}" for level in LEVELS)):
        table.add_column(column, justify="right")
    near = True
    for (steps, batch), known in list(CASES.items())[: 1 if quick else None]:
        cells = []
        for level, expected in zip(LEVELS, known, strict=True):
            ratio, bands, memory = _ratio(LeastNoise(), steps * batch // SIZE, batch, level)
            cells.append(f"{ratio:.3f} ({bands} bands)")
            near = near and ratio <= expected + 0.005
            yield {"steps": steps, "batch": batch, "epsilon": level, "ratio": ratio, "copies": memory}
        table.add_row(f"{steps}, {batch}", *cells)
    console.print(table)
    verdict(console, near, "the noise of each case is at most that of the literature's best bands")


def _ratio(
    correlation: GradientCorrelation, epochs: int, batch: int, level: float
) -> tuple[float, int | None, int]:
    wanted = TrainingPlan(
        epsilon=level, delta=DELTA, epochs=epochs, batch_size=batch, size=SIZE, correlation=correlation
    )
    priced = plan(wanted)
    alone = next(each.deviation for each in priced.compared if each.correlation == "DP-SGD")
    return priced.compared[0].deviation / alone, priced.parts, priced.compared[0].copies


def mnist(folder: Path, console: Console) -> Iterator[dict[str, Any]]:
    """Accuracy after one pass: a linear head on scattering features, each way at its best learning rate."""
    parts = read_idx_folder(folder)
    assert parts.test is not None
    extract = Features(height=28, width=28)
    train = (extract(parts.train.inputs), parts.train.targets)
    test = (extract(parts.test.inputs), parts.test.targets)
    table = Table(title=f"MNIST, one pass in batches of {_BATCH}: accuracy on the 10,000 of the test set")
    for column in ("noise", "epsilon", "accuracy", "deviation", "learning rate", "noise in sums"):
        table.add_column(column, justify="left" if column == "noise" else "right")
    for level in (1, 3):
        for name, way in _WAYS.items():
            wanted = TrainingPlan(epsilon=level, delta=DELTA, epochs=1, batch_size=_BATCH, **way)
            first = {rate: _accuracy(wanted, train, test, rate) for rate in _RATES}
            rate = max(first, key=lambda each: first[each])
            runs = [first[rate], *(_accuracy(wanted, train, test, rate) for _ in range(_REPEATS - 1))]
            mean, spread = 100 * statistics.mean(runs), 100 * statistics.stdev(runs)
            priced = plan(wanted, size=SIZE)
            every = priced.every
            error = (
                ((priced.steps + 1) / 2) ** 0.5 if priced.factor is None else priced.factor.error(every)
            ) * priced.noise_multiplier
            row = (f"{level}", f"{mean:.2f} %", f"{spread:.2f}", f"{rate:g}", f"{error:.2f}")
            table.add_row(name, *row)
            yield {"way": name, "epsilon": level, "accuracy": mean, "deviation": spread, "noise": error}
    console.print(table)


def _accuracy(
    wanted: TrainingPlan,
    train: tuple[torch.Tensor, torch.Tensor],
    test: tuple[torch.Tensor, torch.Tensor],
    rate: float,
) -> float:
    torch.manual_seed(1)
    trained = fit(
        torch.nn.Linear(train[0].shape[1], 10),
        train,
        wanted,
        optimizer=partial(torch.optim.SGD, lr=rate, momentum=0.9),
        execution=Execution(physical_batch_size=_BATCH),
        public=test,
    )
    assert trained.accuracy is not None
    return trained.accuracy
