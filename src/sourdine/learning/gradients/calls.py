"""One use of a layer in a forward pass: where autograd must be asked, and what its answers make."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge
from torch.utils._pytree import tree_leaves

from sourdine.learning.gradients.entangled import Entangled
from sourdine.learning.gradients.fallback import one_by_one
from sourdine.learning.gradients.per_example import GradientRows, PerExample
from sourdine.learning.gradients.rules import RULES


@dataclass(frozen=True)
class Call(ABC):
    """What one use of a layer leaves behind until the backward pass."""

    layer: nn.Module
    where: str
    names: Mapping[str, str]  # of the trainable parameters: in the layer, and in the model

    @property
    @abstractmethod
    def wanted(self) -> Sequence[GradientEdge | Tensor]:
        """Where the gradients must be known."""

    @abstractmethod
    def rows_each(self, examples: int) -> int:
        """How many rows of the first axis belong to an example, or why they cannot be told apart."""

    @abstractmethod
    def parts(self, gradients: Sequence[Tensor | None]) -> Mapping[str, PerExample]:
        """The gradients of the layer's parameters, by their names in the layer."""


@dataclass(frozen=True)
class Noted(Call):
    """A run of the layer itself: what went in, and where in the graph what came out is."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    versions: tuple[int, ...]
    edges: tuple[GradientEdge, ...]
    shapes: tuple[torch.Size, ...]
    dtypes: tuple[torch.dtype, ...]
    span: range  # numbers of the nodes that the run made

    @property
    def wanted(self) -> Sequence[GradientEdge]:
        return self.edges

    @cached_property
    def _inputs(self) -> list[Tensor]:
        return tensors(self.args, self.kwargs)

    def rows_each(self, examples: int) -> int:
        inputs = self._inputs
        if any(value._version != then for value, then in zip(inputs, self.versions, strict=True)):
            raise Entangled(
                f"The input of the layer '{self.where}' was changed in place after it was used, so its "
                "gradients are lost. Use the form of the operation that makes a new tensor."
            )
        if not inputs or inputs[0].ndim < _axes(self.layer):
            raise _not_first(self.where, examples)
        shapes = [*(each.shape for each in inputs), *self.shapes]
        if any(not shape or shape[0] != shapes[0][0] for shape in shapes):
            raise _not_first(self.where, examples)
        return rows_of(self.where, shapes[0][0], examples)

    def parts(self, gradients: Sequence[Tensor | None]) -> Mapping[str, PerExample]:
        inputs = self._inputs
        cotangents = [
            torch.zeros(shape, dtype=dtype, device=inputs[0].device) if each is None else each
            for each, shape, dtype in zip(gradients, self.shapes, self.dtypes, strict=True)
        ]
        if type(self.layer) in RULES:
            return RULES[type(self.layer)](self.layer, *_alike(inputs[0], cotangents[0]))
        try:
            rows = one_by_one(self.layer, self.args, self.kwargs, cotangents, list(self.names))
        except RuntimeError as problem:
            raise Entangled(
                f"The layer '{self.where}' ({type(self.layer).__name__}) has parameters of its own beside "
                "those of the layers in it, and must be run again for them, one example at a time. It "
                "cannot: it draws at random (dropout), or does what torch cannot take apart. Put its own "
                "parameters into a small module that uses them, or freeze them."
            ) from problem
        return {name: GradientRows(wide(each)) for name, each in rows.items()}


@dataclass(frozen=True)
class Copied(Call):
    """A run of the layer on a copy of its parameters for each example."""

    copies: Mapping[str, Tensor]
    least: int  # axes of the first input

    @property
    def wanted(self) -> Sequence[Tensor]:
        return tuple(self.copies.values())

    def rows_each(self, examples: int) -> int:
        if self.least < _axes(self.layer):
            raise _not_first(self.where, examples)
        return rows_of(self.where, len(next(iter(self.copies.values()))), examples)

    def parts(self, gradients: Sequence[Tensor | None]) -> Mapping[str, PerExample]:
        return {
            name: GradientRows(wide(torch.zeros_like(copy) if each is None else each))
            for (name, copy), each in zip(self.copies.items(), gradients, strict=True)
        }


def tensors(args: tuple[object, ...], kwargs: Mapping[str, object]) -> list[Tensor]:
    """All tensors in what a layer is given."""
    if not kwargs and all(isinstance(each, Tensor) for each in args):  # as a rule; trees take long to walk
        return [each for each in args if isinstance(each, Tensor)]
    return [each for each in tree_leaves((args, dict(kwargs))) if isinstance(each, Tensor)]


def wide(tensor: Tensor) -> Tensor:
    """Norms and sums are taken in float32 at least."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _alike(a: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    if not a.is_floating_point():
        return a, wide(g)
    kind = torch.promote_types(wide(a).dtype, wide(g).dtype)
    return a.to(kind), g.to(kind)


def _axes(layer: nn.Module) -> int:
    """How many axes an input has at least, if its first counts examples."""
    if isinstance(layer, nn.modules.conv._ConvNd):
        return len(layer.kernel_size) + 2
    if isinstance(layer, nn.LayerNorm):
        return len(layer.normalized_shape) + 1
    return _LEAST.get(type(layer), 1)


_LEAST: dict[type[nn.Module], int] = {
    nn.Linear: 2,
    nn.GroupNorm: 2,
    nn.InstanceNorm1d: 3,
    nn.InstanceNorm2d: 4,
    nn.InstanceNorm3d: 5,
    nn.RNN: 3,
    nn.LSTM: 3,
    nn.GRU: 3,
    nn.RNNCell: 2,
    nn.LSTMCell: 2,
    nn.GRUCell: 2,
    nn.MultiheadAttention: 3,
}


def rows_of(where: str, rows: int, examples: int) -> int:
    each, rest = divmod(rows, examples)
    if rest or not each:
        raise _not_first(where, examples)
    return each


def _not_first(where: str, examples: int) -> Entangled:
    return Entangled(
        f"The layer '{where}' has inputs or outputs whose first axis does not count the {examples} examples "
        "of the batch. Put examples first everywhere."
    )
