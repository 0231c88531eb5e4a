"""What each kind of layer makes of its inputs and the gradients at its outputs: one function a kind."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from sourdine.learning.per_example import Lookup, Outer, PerExample, Rows

Rule = Callable[[Any, Tensor, Tensor], Mapping[str, PerExample]]
RULES: dict[type[nn.Module], Rule] = {}


def rule(*kinds: type[nn.Module]) -> Callable[[Rule], Rule]:
    """Register the rule of a kind of layer; subclasses, which may do something else, are not covered."""

    def register(found: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, found))
        return found

    return register


@rule(nn.Linear)
def linear(layer: nn.Linear, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """One matrix, used at every place between the first axis and the last."""
    examples = a.shape[0]
    inputs, outputs = a.reshape(examples, 1, -1, a.shape[-1]), g.reshape(examples, 1, -1, g.shape[-1])
    return {
        "weight": Outer(inputs, outputs, layer.weight.shape),
        "bias": Rows(outputs.sum((1, 2))),
    }


@rule(nn.Conv1d, nn.Conv2d, nn.Conv3d)
def convolution(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """One matrix a group, used at every place that the window visits."""
    examples, groups = a.shape[0], layer.groups
    windows = _windows(layer, a)  # example, channel, places..., window...
    axes = len(layer.kernel_size)
    split = windows.reshape(examples, groups, -1, *windows.shape[2:])
    order = (0, 1, *range(3, 3 + axes), 2, *range(3 + axes, 3 + 2 * axes))
    size = layer.weight[0].numel()
    inputs = split.permute(order).reshape(examples, groups, -1, size)
    outputs = g.reshape(examples, groups, g.shape[1] // groups, -1).transpose(2, 3)
    return {
        "weight": Outer(inputs, outputs, layer.weight.shape),
        "bias": Rows(g.flatten(2).sum(2)),
    }


def _windows(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, a: Tensor) -> Tensor:
    """A view of every window of an image, after padding."""
    if layer.padding_mode != "zeros":
        a = functional.pad(a, layer._reversed_padding_repeated_twice, mode=layer.padding_mode)
    elif layer.padding == "same":
        a = functional.pad(a, layer._reversed_padding_repeated_twice)
    elif layer.padding != "valid":
        a = functional.pad(a, [each for size in reversed(layer.padding) for each in (size, size)])
    for axis, (size, stride, gap) in enumerate(
        zip(layer.kernel_size, layer.stride, layer.dilation, strict=True), start=2
    ):
        a = a.unfold(axis, gap * (size - 1) + 1, stride)[..., ::gap]
    return a


@rule(nn.Embedding)
def embedding(layer: nn.Embedding, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """Rows of a table."""
    return {"weight": Lookup(a, g, layer.num_embeddings, layer.padding_idx)}


@rule(nn.LayerNorm)
def layer_norm(layer: nn.LayerNorm, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """Centred and scaled over the last axes."""
    shape = layer.normalized_shape
    plain = functional.layer_norm(a, shape, eps=layer.eps)
    kept = (a.shape[0], -1, *shape)
    return {
        "weight": Rows((g * plain).reshape(kept).sum(1)),
        "bias": Rows(g.reshape(kept).sum(1)),
    }


@rule(nn.GroupNorm)
def group_norm(layer: nn.GroupNorm, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """Centred and scaled over groups of channels."""
    plain = functional.group_norm(a, layer.num_groups, eps=layer.eps)
    return _by_channel(plain, g)


@rule(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
def instance_norm(layer: nn.InstanceNorm2d, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """Centred and scaled over each channel."""
    return _by_channel(functional.instance_norm(a, eps=layer.eps), g)


def _by_channel(plain: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    return {
        "weight": Rows((g * plain).reshape(*g.shape[:2], -1).sum(2)),
        "bias": Rows(g.reshape(*g.shape[:2], -1).sum(2)),
    }


def fallback(
    layer: nn.Module, inputs: tuple[object, ...], gradients: Sequence[Tensor], names: Sequence[str]
) -> Mapping[str, PerExample]:
    """Any other layer, by its own derivative for one example at a time, all at once (vmap)."""
    held = {name: value.detach() for name, value in layer.named_parameters()}
    moving = {name: held[name] for name in names}
    tensors = tuple(each for each in inputs if isinstance(each, Tensor))

    def pulled(moving: dict[str, Tensor], one: tuple[Tensor, ...], at: tuple[Tensor, ...]) -> Tensor:
        given = iter(one)
        whole = tuple(next(given).unsqueeze(0) if isinstance(each, Tensor) else each for each in inputs)
        found = outputs(torch.func.functional_call(layer, {**held, **moving}, whole))
        return sum((out.squeeze(0) * g).sum() for out, g in zip(found, at, strict=True))

    each = torch.func.vmap(torch.func.grad(pulled), in_dims=(None, 0, 0))(moving, tensors, tuple(gradients))
    return {name: Rows(value) for name, value in each.items()}


def outputs(given: object) -> list[Tensor]:
    """The tensors of real numbers that a layer gives."""
    found = tree_leaves(given)
    return [each for each in found if isinstance(each, Tensor) and each.is_floating_point()]
