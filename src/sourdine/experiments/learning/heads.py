"""The heads that are compared: the source's perceptron, a linear one, and least squares."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sourdine.experiments.learning.examples import CLASSES, Examples

if TYPE_CHECKING:
    from sourdine.learning.plain import Unprotected
    from sourdine.learning.solved import Solved
    from sourdine.learning.trained import Trained

HIDDEN = 512
LINEAR, PERCEPTRON, SQUARES = "linear head", "perceptron of 64 units", "least squares"
_MOMENTUM, _AVERAGING, _RATE, _EPOCHS = 0.9, 0.98, 0.5, 30


@contextmanager
def one_thread() -> Iterator[None]:
    """Small tensors on one core: threads that wait for each other take longer."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def source_head(
    examples: Examples, *, batch: int, noise: float, clip: float, rate: float, epochs: int, delta: float
) -> "Trained":
    """The source's: a perceptron with 512 units between, plain steps, small batches."""
    from torch.optim import SGD

    from sourdine.learning import Flat, fit
    from sourdine.learning.models import mlp

    return fit(
        mlp(examples.train.shape, CLASSES, (HIDDEN,)),
        examples.train.pair,
        noise=noise,
        delta=delta,
        epochs=epochs,
        batch=batch,
        clipping=Flat(norm=clip),
        optimizer=lambda values: SGD(values, lr=rate),
        public=examples.test.pair,
        physical=2 * batch,
    )


def open_head(examples: Examples, *, batch: int, rate: float, epochs: int) -> "Unprotected":
    """The same without privacy."""
    from torch.optim import SGD

    from sourdine.learning.models import mlp
    from sourdine.learning.plain import fit_without_privacy

    return fit_without_privacy(
        mlp(examples.train.shape, CLASSES, (HIDDEN,)),
        examples.train.pair,
        epochs=epochs,
        batch=batch,
        optimizer=lambda values: SGD(values, lr=rate),
        public=examples.test.pair,
    )


def our_head(examples: Examples, *, epsilon: float, delta: float, hidden: int | None = None) -> "Trained":
    """Large batches, momentum, an average over the steps; linear, or with some units between."""
    from torch.optim import SGD

    from sourdine.learning import Flat, fit
    from sourdine.learning.models import linear, mlp

    shape = examples.train.shape
    return fit(
        linear(shape, CLASSES) if hidden is None else mlp(shape, CLASSES, (hidden,)),
        examples.train.pair,
        epsilon=epsilon,
        delta=delta,
        epochs=_EPOCHS,
        batch=max(1, len(examples.train) // 15),
        clipping=Flat(norm=1.0),
        optimizer=lambda values: SGD(values, lr=_RATE, momentum=_MOMENTUM),
        averaging=_AVERAGING,
        public=examples.test.pair,
        physical=1024,
    )


def squares(examples: Examples, *, epsilon: float, delta: float) -> "Solved":
    """One release of noisy sums."""
    from sourdine.learning.least_squares import solve

    return solve(
        examples.train.pair, classes=CLASSES, epsilon=epsilon, delta=delta, public=examples.test.pair
    )
