"""The engine held against the definitions, under every clipping."""

import math
import re
from collections.abc import Callable

import torch
from torch import Tensor, nn

from sourdine.learning import Automatic, Clipping, Engine, Flat, PerLayer
from tests.learning import reference

CLOSE = 1e-5
CLIPPINGS: tuple[Callable[[float], Clipping], ...] = (
    lambda norm: Flat(norm=norm),
    lambda norm: PerLayer(norm=norm),
    lambda norm: Automatic(norm=norm, stability=0.1),
)


def losses_of(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """A loss that is neither linear nor symmetric in the outputs."""

    def losses(x: Tensor) -> Tensor:
        out = model(x).flatten(1)
        return (out * torch.linspace(0.5, 1.5, out.shape[1], dtype=out.dtype)).sin().sum(
            1
        ) + out.square().mean(1)

    return losses


def layer_of(name: str) -> str:
    """The layer of a parameter; weights made of others and parts of attention count with the whole."""
    return re.sub(r"(^|\.)(parametrizations\.\w+|out_proj)$", "", name.rpartition(".")[0])


def check(
    model: nn.Module,
    x: Tensor,
    clipping: Callable[[float], Clipping] | None = None,
    examples_per_unit: int = 1,
) -> None:
    """The engine's sum is that of the definitions, with a norm that clips about half of the examples."""
    losses = losses_of(model)
    each = reference.merged(reference.gradients(model, losses, x), examples_per_unit)
    norms = [math.sqrt(sum(float(value.square().sum()) for value in one.values())) for one in each]
    made = (clipping or CLIPPINGS[0])(sorted(norms)[len(norms) // 2] or 1.0)
    found = Engine(model, made).clipped_sum(lambda: losses(x), examples_per_unit=examples_per_unit)
    expected = reference.clipped(each, made, {name: layer_of(name) for name in each[0]})
    assert reference.distance(found, expected) < CLOSE
    assert all(value.grad is None for value in model.parameters())
