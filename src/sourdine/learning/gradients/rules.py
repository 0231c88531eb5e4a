"""What each kind of layer makes of its inputs and the gradients at its outputs: one function a kind.

Recurrent layers are written out step by step, since torch takes their fused forms apart by no example.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sourdine.learning.gradients import cost
from sourdine.learning.gradients.per_example import (
    GradientRows,
    Lookup,
    Outer,
    PerExample,
    products,
)

Rule = Callable[[Any, Tensor, Tensor], Mapping[str, PerExample]]
RULES: dict[type[nn.Module], Rule] = {}
_CHUNK = 1 << 21  # numbers of windows that are cut out at a time


def rule(*kinds: type[nn.Module]) -> Callable[[Rule], Rule]:
    """Register the rule of a kind of layer; subclasses, which may do something else, are not covered."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


@rule(nn.Linear)
def linear(layer: nn.Linear, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """One matrix, used at every place between the first axis and the last."""
    examples, places = a.shape[0], prod(a.shape[1:-1])
    inputs, outputs = a.reshape(examples, 1, places, a.shape[-1]), g.reshape(examples, 1, places, g.shape[-1])
    return {
        "weight": products(inputs, outputs, layer.weight.shape),
        "bias": GradientRows(outputs.sum((1, 2))),
    }


@rule(nn.Conv1d, nn.Conv2d, nn.Conv3d)
def convolution(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """One matrix a group, used at every place that the window visits."""
    examples, groups, shape = a.shape[0], layer.groups, layer.weight.shape
    outputs = g.reshape(examples, groups, shape[0] // groups, -1)
    bias = GradientRows(outputs.sum(3).flatten(1))
    inputs, places = prod(shape[1:]), outputs.shape[3]
    use = cost.MatrixUse(examples, groups, places, inputs, outputs.shape[2], prod(layer.kernel_size))
    plain = a.dtype == torch.float32 and a.device.type == "cpu"  # for which examples as groups are quick
    route = cost.quickest(use, tuple(cost.Route) if plain else (cost.Route.COPIES, cost.Route.GHOST))
    if route is cost.Route.GROUPS:
        return {"weight": GradientRows(_by_examples_as_groups(layer, a, g)), "bias": bias}
    a = _padded(layer, a)
    if route is cost.Route.GHOST:
        windows = _windows(layer, a).transpose(2, 3)
        return {"weight": Outer(windows, outputs.transpose(2, 3), shape), "bias": bias}
    gradients = a.new_empty(examples, groups, outputs.shape[2], inputs)
    size = max(1, _CHUNK // (groups * places * inputs))
    for start in range(0, examples, size):
        some = slice(start, start + size)
        torch.matmul(outputs[some], _windows(layer, a[some]).transpose(2, 3), out=gradients[some])
    return {"weight": GradientRows(gradients.reshape(examples, *shape)), "bias": bias}


def _by_examples_as_groups(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, a: Tensor, g: Tensor) -> Tensor:
    """The gradients of a batch as those of one example with so many more groups of channels.

    oneDNN takes about as long for them as for their sum, unless there are many weights: then it takes long to
    put them in order.
    """
    a, shape = _padded(layer, a), layer.weight.shape
    rows = len(a) * shape[0]
    gradients: Tensor
    _, gradients, _ = torch.ops.aten.convolution_backward(
        g.reshape(1, rows, *g.shape[2:]),
        a.reshape(1, -1, *a.shape[2:]),
        a.new_empty(1).expand(rows, *shape[1:]),  # of the weights it needs the shape alone
        None,
        layer.stride,
        (0,) * len(layer.kernel_size),
        layer.dilation,
        False,
        (0,) * len(layer.kernel_size),
        len(a) * layer.groups,
        (False, True, False),
    )
    return gradients.reshape(len(a), *shape)


def _padded(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, a: Tensor) -> Tensor:
    around = layer._reversed_padding_repeated_twice
    if layer.padding_mode != "zeros":
        return functional.pad(a, around, mode=layer.padding_mode)
    return functional.pad(a, around) if any(around) else a


def _windows(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d, a: Tensor) -> Tensor:
    """The windows of padded images: example, group, number, place.

    Places come last, so that whole rows of an image are copied: half of the time that `functional.unfold`
    takes, and a tenth of that with numbers last.
    """
    for axis, (size, stride, gap) in enumerate(
        zip(layer.kernel_size, layer.stride, layer.dilation, strict=True), start=2
    ):
        a = a.unfold(axis, gap * (size - 1) + 1, stride)[..., ::gap]  # channels, places..., window...
    axes = len(layer.kernel_size)
    split = a.view(len(a), layer.groups, -1, *a.shape[2:])
    order = (0, 1, 2, *range(3 + axes, 3 + 2 * axes), *range(3, 3 + axes))
    return split.permute(order).reshape(len(a), layer.groups, prod(layer.weight.shape[1:]), -1)


@rule(nn.Embedding)
def embedding(layer: nn.Embedding, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """Rows of a table."""
    return {"weight": Lookup(a, g, layer.num_embeddings, layer.padding_idx)}


@rule(nn.LayerNorm)
def layer_norm(layer: nn.LayerNorm, a: Tensor, g: Tensor) -> Mapping[str, PerExample]:
    """Centred and scaled over the last axes."""
    shape = layer.normalized_shape
    plain = functional.layer_norm(a, shape, eps=layer.eps)
    rows = (a.shape[0], -1, *shape)
    return {
        "weight": GradientRows((g * plain).reshape(rows).sum(1)),
        "bias": GradientRows(g.reshape(rows).sum(1)),
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
        "weight": GradientRows((g * plain).reshape(*g.shape[:2], -1).sum(2)),
        "bias": GradientRows(g.reshape(*g.shape[:2], -1).sum(2)),
    }


State = tuple[Tensor, ...]
Cell = Callable[[Tensor, State], State]


def unrolled(
    layer: nn.RNNBase, values: Mapping[str, Tensor], x: Tensor, start: Tensor | State | None = None
) -> tuple[Tensor, Tensor | State]:
    """What a layer with batch_first=True gives, with the parameters in `values` for its own.

    >>> layer = nn.GRU(3, 2, batch_first=True)
    >>> x = torch.ones(1, 4, 3)
    >>> torch.allclose(unrolled(layer, dict(layer.named_parameters()), x)[0], layer(x)[0])
    True
    """
    directions = 2 if layer.bidirectional else 1
    starts = starts_of(layer, x, start, directions)
    ends: list[State] = []
    for depth in range(layer.num_layers):
        sides = []
        for direction in range(directions):
            suffix = f"_l{depth}" + ("_reverse" if direction else "")
            cell = _cell(layer, {name.removesuffix(suffix): each for name, each in values.items()}, suffix)
            outputs, end = _walk(cell, x, starts[depth * directions + direction], backwards=bool(direction))
            sides.append(outputs)
            ends.append(end)
        x = torch.cat(sides, dim=2)
        if layer.dropout and layer.training and depth + 1 < layer.num_layers:
            x = functional.dropout(x, layer.dropout)
    last = tuple(torch.stack(each) for each in zip(*ends, strict=True))
    return x, last if len(last) > 1 else last[0]


def cell_step(
    layer: nn.LSTMCell, values: Mapping[str, Tensor], x: Tensor, start: State | None = None
) -> State:
    """What an LSTMCell gives, with the parameters in `values` for its own.

    >>> layer, x = nn.LSTMCell(3, 2), torch.ones(1, 3)
    >>> torch.allclose(cell_step(layer, dict(layer.named_parameters()), x)[1], layer(x)[1])
    True
    """
    zero = x.new_zeros(x.shape[0], layer.hidden_size)
    h, c = (zero, zero) if start is None else start
    weights = {**dict(layer.named_parameters()), **values}
    gates = functional.linear(x, weights["weight_ih"], weights.get("bias_ih"))
    gates = gates + functional.linear(h, weights["weight_hh"], weights.get("bias_hh"))
    taken, forget, candidate, shown = gates.chunk(4, dim=1)
    c = forget.sigmoid() * c + taken.sigmoid() * candidate.tanh()
    return shown.sigmoid() * c.tanh(), c


def starts_of(layer: nn.RNNBase, x: Tensor, initial: Tensor | State | None, directions: int) -> list[State]:
    """The state before the first step, for each layer and direction: zeros unless given."""
    count = layer.num_layers * directions
    if initial is not None:
        parts = (initial,) if isinstance(initial, Tensor) else initial
        return [tuple(part[i] for part in parts) for i in range(count)]
    hidden = x.new_zeros(x.shape[0], layer.proj_size or layer.hidden_size)
    if layer.mode != "LSTM":
        return [(hidden,)] * count
    return [(hidden, x.new_zeros(x.shape[0], layer.hidden_size))] * count


def _walk(cell: Cell, x: Tensor, state: State, *, backwards: bool) -> tuple[Tensor, State]:
    """The first part of every state, in the order of time, and the last state."""
    steps = list(x.unbind(1))
    outputs = []
    for step in reversed(steps) if backwards else steps:
        state = cell(step, state)
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if backwards else outputs, dim=1), state


def _cell(layer: nn.RNNBase, values: Mapping[str, Tensor], suffix: str) -> Cell:
    def value(name: str) -> Tensor | None:
        return values[name] if name in values else getattr(layer, name + suffix, None)

    def inner(x: Tensor) -> Tensor:
        return functional.linear(x, _there(value("weight_ih")), value("bias_ih"))

    def outer(h: Tensor) -> Tensor:
        return functional.linear(h, _there(value("weight_hh")), value("bias_hh"))

    def simple(x: Tensor, state: State) -> State:
        total = inner(x) + outer(state[0])
        return (total.tanh() if layer.mode == "RNN_TANH" else total.relu(),)

    def gated(x: Tensor, state: State) -> State:
        (h,) = state
        reset, update, new = inner(x).chunk(3, dim=1)
        reset_h, update_h, new_h = outer(h).chunk(3, dim=1)
        carry = (update + update_h).sigmoid()
        candidate = (new + (reset + reset_h).sigmoid() * new_h).tanh()
        return (candidate + carry * (h - candidate),)

    def long(x: Tensor, state: State) -> State:
        h, c = state
        taken, forget, candidate, shown = (inner(x) + outer(h)).chunk(4, dim=1)
        c = forget.sigmoid() * c + taken.sigmoid() * candidate.tanh()
        h = shown.sigmoid() * c.tanh()
        projection = value("weight_hr")
        return (h if projection is None else functional.linear(h, projection), c)

    return {"LSTM": long, "GRU": gated}.get(layer.mode, simple)


def _there(value: Tensor | None) -> Tensor:
    assert value is not None
    return value
