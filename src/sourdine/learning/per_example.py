"""The gradients of one parameter for each example of a batch, kept as products and never whole if it can be helped.

Clipping needs the norm of every example's gradient, and training needs a weighted sum of them. Both can be had
from the inputs of a layer and the gradients at its outputs (Goodfellow 2015; Bu, Wang, Zha, Karypis 2023), so
that the gradients themselves, one copy of the parameter for each example, need not exist.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor


class PerExample(ABC):
    """Gradients of one parameter, one for each example."""

    @abstractmethod
    def squares(self) -> Tensor:
        """The squared Euclidean norm of each, a row of numbers."""

    @abstractmethod
    def weighted(self, weights: Tensor) -> Tensor:
        """Their sum, each times its weight, shaped like the parameter."""

    @abstractmethod
    def whole(self) -> Tensor:
        """All of them, the first axis counting examples."""

    @abstractmethod
    def merged(self, size: int) -> "PerExample":
        """The sums over so many examples in a row, which belong to one person."""


class Rows(PerExample):
    """Gradients that are there: those of small parameters."""

    def __init__(self, gradients: Tensor) -> None:
        self._held = gradients

    def squares(self) -> Tensor:
        flat = self._held.flatten(1)
        return (flat * flat).sum(1)

    def weighted(self, weights: Tensor) -> Tensor:
        return torch.tensordot(weights, self._held, dims=1)

    def whole(self) -> Tensor:
        return self._held

    def merged(self, size: int) -> PerExample:
        return Rows(self._held.unflatten(0, (-1, size)).sum(1))


class Outer(PerExample):
    """Gradients that are sums over places t of g_t a_t^T: those of matrices, in groups that do not mix.

    `a` has the axes example, group, place, input and `g` example, group, place, output; the parameter has
    groups * outputs rows of inputs.
    """

    def __init__(self, a: Tensor, g: Tensor, shape: torch.Size) -> None:
        self.a, self.g, self.shape = a, g, shape

    @cached_property
    def _instance(self) -> Tensor:
        return torch.matmul(self.g.transpose(2, 3), self.a)

    @property
    def _few(self) -> bool:
        """Whether the gradients themselves are smaller than tables of places by places, and quicker to make."""
        places, inputs, outputs = self.a.shape[2], self.a.shape[3], self.g.shape[3]
        return inputs * outputs <= places * (inputs + outputs) and inputs * outputs < 2 * places**2

    def squares(self) -> Tensor:
        if self.a.shape[2] == 1:
            return ((self.a * self.a).sum((2, 3)) * (self.g * self.g).sum((2, 3))).sum(1)
        if self._few:
            flat = self._instance.flatten(1)
            return (flat * flat).sum(1)
        products = torch.matmul(self.a, self.a.transpose(2, 3)) * torch.matmul(self.g, self.g.transpose(2, 3))
        return products.sum((1, 2, 3))

    def weighted(self, weights: Tensor) -> Tensor:
        if self.a.shape[2] > 1 and self._few:
            return torch.tensordot(weights, self._instance, dims=1).reshape(self.shape)
        groups, inputs, outputs = self.a.shape[1], self.a.shape[3], self.g.shape[3]
        scaled = self.g * weights[:, None, None, None]
        left = scaled.permute(1, 3, 0, 2).reshape(groups, outputs, -1)
        right = self.a.transpose(0, 1).reshape(groups, -1, inputs)
        return torch.bmm(left, right).reshape(self.shape)

    def whole(self) -> Tensor:
        return self._instance.reshape(-1, *self.shape)

    def merged(self, size: int) -> PerExample:
        a, g = (each.unflatten(0, (-1, size)).transpose(1, 2).flatten(2, 3) for each in (self.a, self.g))
        return Outer(a, g, self.shape)


class Lookup(PerExample):
    """Gradients of a table that is looked up: g_t is added to row i_t, and some row gets none."""

    def __init__(self, indices: Tensor, g: Tensor, rows: int, without: int | None = None) -> None:
        self._i, self._rows = indices.reshape(len(indices), -1), rows
        g = g.reshape(*self._i.shape, g.shape[-1])
        self._g = g if without is None else g * (self._i != without).unsqueeze(-1)

    def squares(self) -> Tensor:
        same = self._i[:, :, None] == self._i[:, None, :]
        return (torch.bmm(self._g, self._g.transpose(1, 2)) * same).sum((1, 2))

    def weighted(self, weights: Tensor) -> Tensor:
        width = self._g.shape[-1]
        out = self._g.new_zeros(self._rows, width)
        return out.index_add_(0, self._i.flatten(), (self._g * weights[:, None, None]).reshape(-1, width))

    def whole(self) -> Tensor:
        examples, places = self._i.shape
        out = self._g.new_zeros(examples, self._rows, self._g.shape[-1])
        which = torch.arange(examples, device=self._i.device).repeat_interleave(places)
        return out.index_put_((which, self._i.flatten()), self._g.flatten(0, 1), accumulate=True)

    def merged(self, size: int) -> PerExample:
        return Lookup(self._i.reshape(-1, size * self._i.shape[1]), self._g.flatten(0, 1), self._rows)


def together(parts: Sequence[PerExample]) -> PerExample:
    """The gradients of a parameter that is used several times: their sum, cross terms and all."""
    if len(parts) == 1:
        return parts[0]
    products = [part for part in parts if isinstance(part, Outer)]
    if len(products) == len(parts) and len({part.shape for part in products}) == 1:
        a = torch.cat([part.a for part in products], dim=2)
        g = torch.cat([part.g for part in products], dim=2)
        return Outer(a, g, products[0].shape)
    return Rows(torch.stack([part.whole() for part in parts]).sum(0))
