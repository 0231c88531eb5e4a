"""The command line: `python -m benchmarks.features [--images N] [--side N] [--epochs N]`.

The convolutions of VGG16 are frozen either way. Both runs have the same seeded bits, so they draw the same
batches and the same noise, and must end with the same accuracy. Seconds are those of the processor, so that
other programs do not count.
"""

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD

from sourdine.learning import Flat, PoissonBatches, Step
from sourdine.learning.features.vgg import VggFeatures, coloured
from sourdine.learning.least_squares.solve import accuracy_of
from sourdine.learning.models import linear
from sourdine.testing import SeededBits

TARGET = 20.0  # times faster an epoch
_CLASSES, _BATCH = 10, 32


class Recomputed(nn.Module):
    """Frozen convolutions, computed for every batch, and a head behind them."""

    def __init__(self, features: VggFeatures, head: nn.Module) -> None:
        super().__init__()
        self.convolutions, self.head = features.network, head

    def forward(self, images: Tensor) -> Tensor:
        """The scores of the classes."""
        found: Tensor = self.head(self.convolutions(coloured(images)).flatten(1))
        return found


def trained(model: nn.Module, inputs: Tensor, targets: Tensor, epochs: int) -> tuple[float, list[float]]:
    """The accuracy of a seeded run, and the seconds of the processor for each of its epochs."""
    bits = SeededBits(7)
    batches = PoissonBatches(size=len(inputs), batch_size=_BATCH, epochs=epochs)
    step = Step(
        model,
        noise_multiplier=0.1,
        batch_size=_BATCH,
        steps=batches.steps,
        clipping=Flat(norm=1.0),
        bits=bits,
    )
    optimizer = SGD([value for value in model.parameters() if value.requires_grad], lr=0.5)
    losses = lambda x, y: functional.cross_entropy(model(x), y, reduction="none")
    drawn, taken = batches.draw(bits), []
    for _ in range(epochs):
        start = time.process_time()
        for places in itertools.islice(drawn, batches.steps // epochs):
            some, names = inputs[places], targets[places]
            step.add(losses, some, names)
            step.close()
            optimizer.step()
        taken.append(time.process_time() - start)
    return accuracy_of(model.eval(), inputs, targets), taken


def head(width: int) -> nn.Sequential:
    """A linear head on rows of mean 0 and variance 1."""
    return nn.Sequential(nn.LayerNorm(width, elementwise_affine=False), linear((width,), _CLASSES))


def main() -> None:
    """One table, and whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=6)
    stated = parser.parse_args()
    numbers = torch.Generator().manual_seed(1)
    torch.set_num_threads(1)  # threads that wait for each other count as busy
    shape = 3, stated.side, stated.side
    targets = torch.arange(stated.images) % _CLASSES
    blocks = (torch.rand(_CLASSES, 3, 4, 4, generator=numbers) > 0.5).to(torch.float32)  # tell the class
    images = 0.8 * functional.interpolate(blocks, shape[1:])[targets]
    images += 0.2 * torch.rand(stated.images, *shape, generator=numbers)
    features = VggFeatures(depth=16)
    width = features.numbers(images.shape[1:])
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        kept = features.cached_rows(images, Path(folder), dtype=torch.float32)
        once = time.process_time() - start
        cached, quick = trained(head(width), kept, targets, stated.epochs)
    again, slow = trained(Recomputed(features, head(width)), images, targets, stated.epochs)
    table = Table(title=f"{stated.images} images of {stated.side} x {stated.side}, VGG16, a linear head")
    for column in ("features", "seconds an epoch", "accuracy", "before the first epoch, s"):
        table.add_column(column)
    table.add_row("kept", f"{min(quick):.4f}", f"{100 * cached:.2f} %", f"{once:.1f}")
    table.add_row("computed again", f"{min(slow):.4f}", f"{100 * again:.2f} %", "0")
    console = Console()
    console.print(table)
    ratio, same = min(slow) / min(quick), cached == again
    told = "met" if ratio >= TARGET and same else "MISSED"
    accuracy = "the same" if same else "ANOTHER"
    console.print(f"{ratio:.0f} times faster, {accuracy} accuracy. Target {TARGET:g}: {told}.")


if __name__ == "__main__":
    main()
