"""Canaries: made-up examples, nobody's data, and how much a trained model looks like having seen each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor, nn

from sourdine.audit.one_run import Floats
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.batches import Indices
from sourdine.learning.data.examples import Batch, Examples, Tensors
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.engine import Engine
from sourdine.learning.task import Losses, Task

HEIGHT = 1000.0  # of the one number that is not 0: any gradient it makes is far above usual clipping norms


@dataclass(frozen=True, eq=False)
class Canaries:
    """Inputs and targets of canaries, as a model takes them."""

    inputs: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.targets):
            raise InvalidParameter("Canaries must hold as many targets as inputs.")

    def __len__(self) -> int:
        return len(self.targets)

    def at(self, places: Tensor | slice) -> "Canaries":
        """Some of them."""
        return Canaries(self.inputs[places], self.targets[places])


def pixel_canaries(shape: Sequence[int], classes: int, count: int, *, height: float = HEIGHT) -> Canaries:
    """Blank examples with one number of `height` each, no two with the same place and label.

    In a linear model such an example moves the weights of its place and hardly any other, so that each
    leaves a trace of its own.

    >>> made = pixel_canaries((1, 2, 2), 3, 5, height=9.0)
    >>> made.inputs.flatten(1).argmax(1).tolist(), made.targets.tolist()
    ([0, 1, 2, 3, 0], [0, 1, 2, 0, 1])
    """
    places = math.prod(shape)
    classes = check.integer("pixel_canaries", "classes", classes, 2, 1 << 20)
    count = check.integer("pixel_canaries", "count", count, 2, places * classes)
    height = float(check.positive("pixel_canaries", "height", height))
    at = torch.arange(count)
    inputs = torch.zeros(count, places)
    inputs[at, at % places] = height
    targets = (at % places + at // places) % classes  # a place that comes again has another label
    return Canaries(inputs.view(count, *shape), targets)


class WithCanaries(Examples):
    """Examples, with canaries after them."""

    def __init__(self, examples: Examples, added: Canaries) -> None:
        like = examples.like()
        if len(like) != 2:
            raise InvalidParameter("Canaries need examples of one input and one target each.")
        self._own = examples
        self._added = Tensors(added.inputs.to(like[0].dtype), added.targets.to(like[1].dtype))
        self.size = examples.size + self._added.size

    def batch(self, places: Indices) -> Batch:
        own, other = places[places < self._own.size], places[places >= self._own.size]
        parts = [self._own.batch(own)] if len(own) else []
        if len(other) or not parts:
            parts.append(self._added.batch(other - self._own.size))
        return tuple(torch.cat(each) for each in zip(*parts, strict=True))

    def like(self) -> Batch:
        return self._own.like()


_AT_ONCE = 512
_TINY = 1e-30  # a gradient of 0 has no direction


class Score(StrEnum):
    """What is looked at: how far the model went along an example's gradient, or how far its loss fell."""

    GRADIENT = "gradient"
    LOSS = "loss"


def scores(kind: Score, before: nn.Module, after: nn.Module, loss: Losses, canaries: Canaries) -> Floats:
    """One number for each canary, the higher the likelier that it was in."""
    score = _along if kind is Score.GRADIENT else _fallen
    parts = [canaries.at(slice(start, start + _AT_ONCE)) for start in range(0, len(canaries), _AT_ONCE)]
    numbers = torch.cat([score(before, after, loss, part) for part in parts])
    return np.asarray(numbers.to(torch.float64).numpy())


def _fallen(before: nn.Module, after: nn.Module, loss: Losses, some: Canaries) -> Tensor:
    batch = (some.inputs, some.targets)
    with torch.no_grad():
        return Task(before, loss).losses(batch) - Task(after, loss).losses(batch)


def _along(before: nn.Module, after: nn.Module, loss: Losses, some: Canaries) -> Tensor:
    """How far the model went against the gradient of each canary at the start, in the units of the weights.

    The gradient of a weighted sum of losses is linear in the weights: its product with the way, derived by
    the weights, gives all products at once, and no single gradient is ever written down.
    """
    last = dict(after.named_parameters())
    first = {name: value for name, value in before.named_parameters() if value.requires_grad}
    batch, task = (some.inputs, some.targets), Task(before, loss)
    weights = torch.ones(len(some), requires_grad=True)
    total = task.losses(batch, weights).sum()
    gradients = torch.autograd.grad(total, list(first.values()), create_graph=True)
    ways = [(value - last[name]).detach() for name, value in first.items()]
    product = torch.stack([(one * way).sum() for one, way in zip(gradients, ways, strict=True)]).sum()
    (products,) = torch.autograd.grad(product, weights)
    recorder = _Recorder()
    Engine(before, recorder).clipped_sum(lambda: task.losses(batch))
    distances: Tensor = products / recorder.norms.to(products).clamp(min=_TINY)
    return distances


class _Recorder(Clipping):
    """Clips nothing, and notes the norms of all gradients: only canaries ever pass here."""

    norms: Tensor

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        object.__setattr__(self, "norms", torch.stack(list(squares.values())).sum(0).sqrt())
        return {name: torch.zeros_like(each) for name, each in squares.items()}
