"""What each way to the clipped gradients of a layer takes, and whether the chosen one is the quickest.

`python -m benchmarks.learning.ways` times every way that a layer has, on layers of many shapes: from inputs
and output gradients to norms and the weighted sum. The fallback for layers without a rule (`vmap` over copies
of the parameters) is timed beside them, less what a plain run of the layer takes. Processor time of one
thread counts, the least of several runs, which others on the machine move little. `--fit` fits the costs of
`sourdine.learning.gradients.cost` to what was measured.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import mean
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls
from torch import Tensor, nn

from benchmarks.finding import verdict
from sourdine.learning.gradients import cost
from sourdine.learning.gradients.cost import MatrixUse, Route
from sourdine.learning.gradients.fallback import expanded, outputs
from sourdine.learning.gradients.per_example import GradientRows, PerExample
from sourdine.learning.gradients.recurrent.walk import Walked, walked
from sourdine.learning.gradients.rules import RULES

FALLBACK, RULE = "fallback", "rule"
_LONG = 0.5  # seconds: what takes longer is not repeated


@dataclass(frozen=True)
class Trial:
    """A layer, what it is given, and how it is told."""

    name: str
    layer: nn.Module
    x: Tensor

    @cached_property
    def g(self) -> Tensor:
        """Gradients at its outputs."""
        with torch.no_grad():
            return torch.randn_like(outputs(self.layer(self.x))[0])


def trials() -> Iterable[Trial]:
    """Layers of many shapes."""
    torch.manual_seed(1)
    for batch, places, inputs, wide in (
        *((64, 1, d, p) for d, p in ((512, 32), (784, 256), (2048, 512))),
        *((32, 8, d, p) for d, p in ((64, 64), (256, 256), (512, 2048))),
        *((32, 32, d, p) for d, p in ((64, 64), (128, 512), (512, 512))),
        *((32, 64, d, p) for d, p in ((256, 8), (8, 256), (256, 256), (768, 768))),
        *((16, 128, d, p) for d, p in ((64, 64), (256, 256), (256, 1024), (256, 1000))),
        *((8, 256, d, p) for d, p in ((128, 128), (512, 512), (768, 3072))),
        *((4, 512, d, p) for d, p in ((256, 256), (768, 768))),
    ):
        layer = nn.Linear(inputs, wide, bias=False)
        yield Trial(
            f"linear {inputs}-{wide}, T {places}, B {batch}", layer, torch.randn(batch, places, inputs)
        )
    for batch, size, inputs, wide, kernel, stride, padding, groups in (
        (64, 28, 1, 16, 8, 2, 3, 1),
        (64, 13, 16, 32, 4, 2, 0, 1),
        (64, 32, 3, 32, 3, 1, 1, 1),
        (32, 16, 32, 64, 3, 1, 1, 1),
        (32, 16, 32, 64, 3, 2, 1, 1),
        (32, 8, 64, 64, 3, 1, 1, 1),
        (32, 8, 64, 128, 3, 1, 1, 1),
        (16, 8, 128, 256, 3, 2, 1, 1),
        (16, 4, 256, 256, 3, 1, 1, 1),
        (32, 16, 64, 64, 1, 1, 0, 1),
        (16, 8, 128, 256, 1, 1, 0, 1),
        (32, 16, 64, 64, 3, 1, 1, 64),
        (32, 16, 32, 32, 3, 2, 1, 32),
        (32, 16, 64, 64, 3, 1, 1, 8),
        (32, 16, 64, 128, 3, 1, 1, 2),
    ):
        told = f"conv {inputs}-{wide}, {size}x{size}, kernel {kernel}/{stride}, groups {groups}, B {batch}"
        window = nn.Conv2d(inputs, wide, kernel, stride, padding, groups=groups, bias=False)
        yield Trial(told, window, torch.randn(batch, inputs, size, size))
    for words, wide in ((1000, 64), (8000, 256)):
        yield Trial(f"embedding {words}-{wide}, T 64, B 16", nn.Embedding(words, wide), _words(words))
    yield Trial("layer norm 256, T 128, B 16", nn.LayerNorm(256), torch.randn(16, 128, 256))
    yield Trial("group norm 8 of 64, 16x16, B 32", nn.GroupNorm(8, 64), torch.randn(32, 64, 16, 16))
    lstm = nn.LSTM(64, 128, batch_first=True)
    yield Trial("LSTM 64-128, T 32, B 32", lstm, torch.randn(32, 32, 64))


def _words(count: int) -> Tensor:
    return torch.randint(0, count, (16, 64))


def ways_of(trial: Trial) -> Mapping[str, Callable[[], object]]:
    """Every way that a layer has, as something to run."""
    ways: dict[str, Callable[[], object]] = {FALLBACK: partial(_fallback, trial)}
    use = use_of(trial)
    if use is None:
        return {RULE: partial(_rule, trial), **ways}
    routes = [Route.COPIES, Route.GHOST] if isinstance(trial.layer, nn.Linear) else list(Route)
    return {each.value: partial(_forced, trial, each) for each in routes} | ways


def use_of(trial: Trial) -> MatrixUse | None:
    """How the matrix of a layer is used, if it has one."""
    layer, x = trial.layer, trial.x
    if isinstance(layer, nn.Linear):
        return MatrixUse(len(x), 1, x.shape[1], layer.in_features, layer.out_features)
    if isinstance(layer, nn.Conv2d):
        size = layer.kernel_size[0] * layer.kernel_size[1]
        places = layer(x[:1]).shape[2:].numel()
        wide, high = layer.in_channels // layer.groups * size, layer.out_channels // layer.groups
        return MatrixUse(len(x), layer.groups, places, wide, high, size)
    return None


def _rule(trial: Trial) -> None:
    layer, x = trial.layer, trial.x
    if isinstance(layer, nn.LSTM):
        names = {name: name for name, _ in layer.named_parameters()}
        (out, _), walks = walked(layer, x)
        call = Walked(layer, trial.name, names, walks)
        gradients = torch.autograd.grad((out * trial.g).sum(), call.wanted)
        with torch.no_grad():
            _finish(call.parts(gradients).values())
        return
    with torch.no_grad():
        _finish(RULES[type(layer)](layer, x, trial.g).values())


def _forced(trial: Trial, route: Route) -> None:
    with patch.object(cost, "quickest", lambda *_: route):
        _rule(trial)


def _fallback(trial: Trial) -> None:
    layer = trial.layer
    names = [name for name, _ in layer.named_parameters()]
    found = expanded(layer, layer.forward, names, (trial.x,), {})
    out = outputs(found.output)[0]
    rows = torch.autograd.grad((out * trial.g).sum(), list(found.copies.values()))
    with torch.no_grad():
        _finish(GradientRows(each) for each in rows)


def _finish(parts: Iterable[PerExample]) -> None:
    for part in parts:
        part.weighted(torch.ones_like(part.squares()))


def _plain(trial: Trial) -> None:
    with torch.no_grad():
        trial.layer(trial.x)


def seconds(run: Callable[[], object], times: int) -> float:
    """The least processor time of so many runs after one; of that one alone if it is long."""
    taken = []
    for _ in range(times + 1):
        start = time.thread_time()
        run()
        taken.append(time.thread_time() - start)
        if taken[0] > _LONG:
            return taken[0]
    return min(taken[1:])


Measured = dict[str, dict[str, float]]


def measure(found: list[Trial], times: int) -> Measured:
    """Seconds of each way; where a layer is run for it, less what a plain run takes."""
    measured: Measured = {}
    for trial in found:
        plain = seconds(partial(_plain, trial), times)
        runs = {name: seconds(run, times) for name, run in ways_of(trial).items()}
        whole = (FALLBACK, RULE) if isinstance(trial.layer, nn.LSTM) else (FALLBACK,)
        measured[trial.name] = {
            name: max(1e-6, taken - plain) if name in whole else taken for name, taken in runs.items()
        }
    return measured


def fitted(found: list[Trial], measured: Measured) -> dict[str, float]:
    """Picoseconds of each kind of work, so that shares of the measured times fit best."""
    kinds = list(cost.PICOSECONDS)
    rows, wanted = [], []
    for trial in found:
        use = use_of(trial)
        for route in Route:
            if use is None or (taken := measured[trial.name].get(route.value)) is None:
                continue
            amounts = use.amounts(route)
            rows.append([amounts.get(kind, 0) / (1e12 * taken) for kind in kinds])
            wanted.append(1.0)
    answer, _ = nnls(np.array(rows), np.array(wanted))
    return dict(zip(kinds, answer.tolist(), strict=True))


def show(found: list[Trial], measured: Measured, console: Console) -> None:
    """A table of all ways, and how far the chosen one is from the quickest."""
    names = [*(each.value for each in Route), RULE, FALLBACK]
    table = Table(title="milliseconds of each way; * is chosen, () takes too much memory to be")
    table.add_column("layer")
    for name in (*names, "chosen / best"):
        table.add_column(name, justify="right")
    lost = []
    for trial in found:
        use, taken = use_of(trial), measured[trial.name]
        open_ways = [name for name in taken if name == FALLBACK or use is None or use.fits or name == "ghost"]
        chosen = RULE if use is None else _chosen(trial, use).value
        lost.append(taken[chosen] / min(taken[name] for name in taken if name in open_ways))
        cells = []
        for name in names:
            told = f"{1000 * taken[name]:.2f}" if name in taken else ""
            told = f"({told})" if told and name not in open_ways else told
            cells.append(f"{told}*" if name == chosen else told)
        table.add_row(trial.name, *cells, f"{lost[-1]:.2f}")
    console.print(table)
    told = f"the chosen way takes {mean(lost):.3f} times the quickest on average, {max(lost):.2f} at most"
    verdict(console, max(lost) <= 1.25, f"{told} (at most 1.25)")


def _chosen(trial: Trial, use: MatrixUse) -> Route:
    routes = (Route.COPIES, Route.GHOST) if isinstance(trial.layer, nn.Linear) else tuple(Route)
    return cost.quickest(use, routes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.ways", description=__doc__)
    parser.add_argument("--fit", action="store_true", help="also fit the costs, and choose by them")
    parser.add_argument("--times", type=int, default=7, metavar="N", help="runs of each way")
    options = parser.parse_args()
    console = Console()
    torch.set_num_threads(1)
    found = list(trials())
    measured = measure(found, options.times)
    show(found, measured, console)
    if options.fit:
        cost.PICOSECONDS.update(fitted(found, measured))
        for kind, each in cost.PICOSECONDS.items():
            console.print(f'    "{kind}": {each:_.3g},')
        show(found, measured, console)


if __name__ == "__main__":
    main()
