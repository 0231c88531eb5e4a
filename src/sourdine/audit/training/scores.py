"""How much a trained model looks like having seen an example."""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor, nn

from sourdine.audit.one_run import Floats
from sourdine.audit.training.canaries import Canaries
from sourdine.learning.clipping import Clipping
from sourdine.learning.engine import Engine
from sourdine.learning.losses import Losses
from sourdine.learning.task import Task

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
    found = torch.cat([score(before, after, loss, part) for part in parts])
    return np.asarray(found.to(torch.float64).numpy())


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
    found: Tensor = products / recorder.norms.to(products).clamp(min=_TINY)
    return found


class _Recorder(Clipping):
    """Clips nothing, and notes the norms of all gradients: only canaries ever pass here."""

    norms: Tensor

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        object.__setattr__(self, "norms", torch.stack(list(squares.values())).sum(0).sqrt())
        return {name: torch.zeros_like(each) for name, each in squares.items()}
