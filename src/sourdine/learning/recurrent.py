"""Recurrent layers written out step by step, since torch takes their fused forms apart by no example."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

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
    starts = _starts(layer, x, start, directions)
    ends: list[State] = []
    for depth in range(layer.num_layers):
        sides = []
        for direction in range(directions):
            suffix = f"_l{depth}" + ("_reverse" if direction else "")
            cell = _cell(layer, {name.removesuffix(suffix): each for name, each in values.items()}, suffix)
            told, end = _walk(cell, x, starts[depth * directions + direction], backwards=bool(direction))
            sides.append(told)
            ends.append(end)
        x = torch.cat(sides, dim=2)
        if layer.dropout and layer.training and depth + 1 < layer.num_layers:
            x = functional.dropout(x, layer.dropout)
    last = tuple(torch.stack(each) for each in zip(*ends, strict=True))
    return x, last if len(last) > 1 else last[0]


def _starts(layer: nn.RNNBase, x: Tensor, given: Tensor | State | None, directions: int) -> list[State]:
    """The state before the first step, for each layer and direction: zeros unless given."""
    count = layer.num_layers * directions
    if given is not None:
        parts = (given,) if isinstance(given, Tensor) else given
        return [tuple(part[i] for part in parts) for i in range(count)]
    hidden = x.new_zeros(x.shape[0], layer.proj_size or layer.hidden_size)
    if layer.mode != "LSTM":
        return [(hidden,)] * count
    return [(hidden, x.new_zeros(x.shape[0], layer.hidden_size))] * count


def _walk(cell: Cell, x: Tensor, state: State, *, backwards: bool) -> tuple[Tensor, State]:
    """The first part of every state, in the order of time, and the last state."""
    steps = list(x.unbind(1))
    told = []
    for step in reversed(steps) if backwards else steps:
        state = cell(step, state)
        told.append(state[0])
    return torch.stack(told[::-1] if backwards else told, dim=1), state


def _cell(layer: nn.RNNBase, values: Mapping[str, Tensor], suffix: str) -> Cell:
    def value(name: str) -> Tensor | None:
        return values[name] if name in values else getattr(layer, name + suffix, None)

    def inner(x: Tensor) -> Tensor:
        return functional.linear(x, _there(value("weight_ih")), value("bias_ih"))

    def outer(h: Tensor) -> Tensor:
        return functional.linear(h, _there(value("weight_hh")), value("bias_hh"))

    def simple(x: Tensor, state: State) -> State:
        found = inner(x) + outer(state[0])
        return (found.tanh() if layer.mode == "RNN_TANH" else found.relu(),)

    def gated(x: Tensor, state: State) -> State:
        (h,) = state
        reset, update, new = inner(x).chunk(3, dim=1)
        reset_h, update_h, new_h = outer(h).chunk(3, dim=1)
        kept = (update + update_h).sigmoid()
        made = (new + (reset + reset_h).sigmoid() * new_h).tanh()
        return (made + kept * (h - made),)

    def long(x: Tensor, state: State) -> State:
        h, c = state
        taken, kept, made, shown = (inner(x) + outer(h)).chunk(4, dim=1)
        c = kept.sigmoid() * c + taken.sigmoid() * made.tanh()
        h = shown.sigmoid() * c.tanh()
        projection = value("weight_hr")
        return (h if projection is None else functional.linear(h, projection), c)

    return {"LSTM": long, "GRU": gated}.get(layer.mode, simple)


def _there(value: Tensor | None) -> Tensor:
    assert value is not None
    return value
