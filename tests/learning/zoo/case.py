"""A model as people write it, a batch for it, and a loss for each example."""

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sourdine.learning import Flat
from sourdine.learning.data.trees import Tree, part_of
from sourdine.learning.gradients.self_test import compare_gradients
from sourdine.learning.gradients.way import ClippedSums, GradientWay

COUNT = 7
Forward = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """A model, the parts of a batch, and how the model is asked for numbers: by calling it, unless told."""

    model: nn.Module
    batch: Tree
    ask: Forward | None = None

    def losses(self, *batch: object) -> Tensor:
        """Neither linear nor symmetric in what the model gives."""
        out = (self.ask or self.model)(*batch).flatten(1).float()
        return (out * torch.linspace(0.5, 1.5, out.shape[1])).sin().sum(1) + out.square().mean(1)


Make = Callable[[], Case]


def images(channels: int = 3, side: int = 8) -> Tensor:
    return torch.randn(COUNT, channels, side, side)


def rows(*shape: int) -> Tensor:
    return torch.randn(COUNT, *shape)


def words(places: int = 9, many: int = 11) -> Tensor:
    return torch.randint(1, many, (COUNT, places))


def lengths(most: int) -> Tensor:
    """Made-up lengths must be above 0: a model may ask for that."""
    return torch.randint(1, most + 1, (COUNT,))


class Written(nn.Module):
    """A model from its layers and parameters and a function of them and of the inputs."""

    def __init__(self, run: Callable[..., Tensor], **parts: object) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part) if isinstance(part, Tensor) else part)

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.run(self, *inputs)


def held(case: Case) -> tuple[GradientWay, float]:
    """How the gradients of a case are taken, and how far they are from those of its examples one by one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        way = compare_gradients(case.model, case.losses, case.batch)
    case.model.eval()
    wanted = {name: value for name, value in case.model.named_parameters() if value.requires_grad}
    each = [_gradient(case, wanted, place) for place in range(COUNT)]
    norms = [math.sqrt(sum(float(one.square().sum()) for one in some.values())) for some in each]
    norm = sorted(norms)[COUNT // 2]
    found = ClippedSums(case.model, Flat(norm=norm), way).add_up(case.losses, case.batch)
    off, largest = 0.0, 0.0
    for name in wanted:
        expected = sum(
            (some[name] * min(1.0, norm / length) for some, length in zip(each, norms, strict=True)),
            torch.zeros(()),
        )
        off = max(off, float((found[name] - expected).abs().max()))
        largest = max(largest, float(expected.abs().max()))
    return way, off / largest


def _gradient(case: Case, wanted: dict[str, nn.Parameter], place: int) -> dict[str, Tensor]:
    loss = case.losses(*part_of(case.batch, place, place + 1)).sum()
    found: tuple[Tensor | None, ...] = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    return {
        name: (torch.zeros_like(value) if one is None else one.to_dense()).double()
        for (name, value), one in zip(wanted.items(), found, strict=True)
    }


def named(*modules: object) -> dict[str, Make]:
    """The cases that modules write down: all of their public functions that give one."""
    found: dict[str, Make] = {}
    for module in modules:
        for name, make in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("_") and inspect.signature(make).return_annotation is Case:
                found[name] = make
    return found
