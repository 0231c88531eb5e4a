"""Clipped sums the slow way: a backward pass for each example, and the definitions written out."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from sourdine.learning import Automatic, Clipping, PerLayer

Gradients = dict[str, Tensor]


def gradients(model: nn.Module, losses: Callable[[Tensor], Tensor], x: Tensor) -> list[Gradients]:
    """The gradient of each example, by itself."""
    wanted = {name: value for name, value in model.named_parameters() if value.requires_grad}
    found = []
    for i in range(len(x)):
        (loss,) = losses(x[i : i + 1])
        each: tuple[Tensor | None, ...] = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
        found.append(
            {
                name: torch.zeros_like(value) if one is None else one.to_dense()
                for (name, value), one in zip(wanted.items(), each, strict=True)
            }
        )
    return found


def clipped(each: Sequence[Gradients], clipping: Clipping, layers: Mapping[str, str]) -> Gradients:
    """Every gradient scaled as its clipping says, and all added up; `layers` names that of a parameter."""
    total = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in each[0].items()}
    for one in each:
        exact = {name: value.double() for name, value in one.items()}
        for name, value in exact.items():
            if isinstance(clipping, PerLayer):
                same = [exact[other] for other in exact if layers[other] == layers[name]]
                most = clipping.norm / len(set(layers.values())) ** 0.5
                factor = min(1.0, most / max(_norm(same), 1e-300))
            elif isinstance(clipping, Automatic):
                factor = clipping.norm / (_norm(list(exact.values())) + clipping.stability)
            else:
                factor = min(1.0, clipping.norm / max(_norm(list(exact.values())), 1e-300))
            total[name] += factor * value
    return total


def distance(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """The largest difference of two sums, over the largest entry of the second."""
    assert list(found) == list(expected)
    largest = max(float(value.abs().max()) for value in expected.values())
    return max(float((found[name] - expected[name]).abs().max()) for name in expected) / largest


def merged(each: Sequence[Gradients], size: int) -> list[Gradients]:
    """The sums over so many examples in a row."""
    return [
        {name: torch.stack([one[name] for one in each[i : i + size]]).sum(0) for name in each[0]}
        for i in range(0, len(each), size)
    ]


def _norm(values: Sequence[Tensor]) -> float:
    return float(torch.stack([value.square().sum() for value in values]).sum().sqrt())
