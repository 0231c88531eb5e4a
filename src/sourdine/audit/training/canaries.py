"""Canaries: made-up examples that a run is asked about afterwards. They are nobody's data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.loader import Batch, Examples, Tensors
from sourdine.learning.samplers import Indices

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


class Joined(Examples):
    """Examples, with canaries after them."""

    def __init__(self, held: Examples, added: Canaries) -> None:
        like = held.like()
        if len(like) != 2:
            raise InvalidParameter("Canaries need examples of one input and one target each.")
        self._held = held
        self._added = Tensors(added.inputs.to(like[0].dtype), added.targets.to(like[1].dtype))
        self.size = held.size + self._added.size

    def batch(self, places: Indices) -> Batch:
        own, other = places[places < self._held.size], places[places >= self._held.size]
        parts = [self._held.batch(own)] if len(own) else []
        if len(other) or not parts:
            parts.append(self._added.batch(other - self._held.size))
        return tuple(torch.cat(each) for each in zip(*parts, strict=True))

    def like(self) -> Batch:
        return self._held.like()
