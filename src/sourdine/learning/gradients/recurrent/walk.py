"""Recurrent layers run step by step, so that what their matrices were given and what came of it is known.

torch's fused forms hide the gates, and a copy of the parameters for each example makes every step a small
product of its own. Here all examples take a step together; the backward pass is asked for the gradients at
what the matrices gave, before the gates; and each matrix is then one that was used at every step, as that of
any other layer is used at every place (Bu, Wang, Zha, Karypis 2023).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional

from sourdine.learning.gradients.calls import Call, rows_of, wide
from sourdine.learning.gradients.per_example import GradientRows, PerExample, products
from sourdine.learning.gradients.recurrent.lstm import lstm_steps
from sourdine.learning.gradients.rules import State, starts_of

KINDS = (nn.RNN, nn.LSTM, nn.GRU)


@dataclass(frozen=True)
class LayerWalk:
    """One layer in one direction: what its two matrices were given, and where what they gave is."""

    suffix: str
    inputs: Tensor  # example, step, number
    states: Tensor  # before each step
    inner: GradientEdge  # what came of the inputs of all steps
    outer: tuple[GradientEdge, ...]  # what came of the states, step by step; none if it was only added
    shape: torch.Size  # of what came of the inputs: example, step, number
    dtype: torch.dtype

    @property
    def wanted(self) -> tuple[GradientEdge, ...]:
        return (self.inner, *self.outer)

    def parts(
        self, layer: nn.RNNBase, gradients: Sequence[Tensor | None]
    ) -> Iterator[tuple[str, PerExample]]:
        """The gradients of the matrices and what is added to them, by their names."""
        # steps stand first in memory, examples in products
        at_inner = at_outer = self._whole(gradients[0], self.shape).contiguous()
        shift = later = GradientRows(at_inner.sum(1))
        if self.outer:
            step = torch.Size((self.shape[0], self.shape[2]))
            at_outer = torch.stack([self._whole(each, step) for each in gradients[1:]], dim=1)
            later = GradientRows(at_outer.sum(1))
        for side, a, g, bias in (
            ("ih", self.inputs, at_inner, shift),
            ("hh", self.states, at_outer, later),
        ):
            shape = layer.get_parameter(f"weight_{side}{self.suffix}").shape
            yield f"weight_{side}{self.suffix}", products(wide(a).unsqueeze(1), g.unsqueeze(1), shape)
            yield f"bias_{side}{self.suffix}", bias

    def _whole(self, gradient: Tensor | None, shape: torch.Size) -> Tensor:
        if gradient is None:
            return wide(torch.zeros(shape, dtype=self.dtype, device=self.inputs.device))
        return wide(gradient)


@dataclass(frozen=True)
class Walked(Call):
    """A run of a recurrent layer step by step."""

    walks: tuple[LayerWalk, ...]

    @property
    def wanted(self) -> Sequence[GradientEdge]:
        return tuple(place for walk in self.walks for place in walk.wanted)

    def rows_each(self, examples: int) -> int:
        return rows_of(self.where, self.walks[0].shape[0], examples)

    def parts(self, gradients: Sequence[Tensor | None]) -> Mapping[str, PerExample]:
        assert isinstance(self.layer, nn.RNNBase)
        rest = list(gradients)
        parts: dict[str, PerExample] = {}
        for walk in self.walks:
            own, rest = rest[: len(walk.wanted)], rest[len(walk.wanted) :]
            parts.update((name, part) for name, part in walk.parts(self.layer, own) if name in self.names)
        return parts


def can_walk(layer: nn.Module, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Whether a layer can be run here on what it is given."""
    x = args[0] if args else kwargs.get("input")
    plain = type(layer) in KINDS and isinstance(layer, nn.RNNBase) and not layer.proj_size
    return plain and bool(layer.batch_first) and isinstance(x, Tensor) and x.ndim == 3 and len(x) > 0


def walked(
    layer: nn.RNNBase, x: Tensor, start: Tensor | State | None = None
) -> tuple[tuple[Tensor, Tensor | State], tuple[LayerWalk, ...]]:
    """What a layer gives, as itself, and how it came to it.

    >>> layer = nn.GRU(3, 2, batch_first=True)
    >>> x = torch.ones(1, 4, 3)
    >>> torch.allclose(walked(layer, x)[0][0], layer(x)[0])
    True
    """
    directions = 2 if layer.bidirectional else 1
    starts = starts_of(layer, x, start, directions)
    ends: list[State] = []
    walks: list[LayerWalk] = []
    for depth in range(layer.num_layers):
        sides = []
        for direction in range(directions):
            suffix = f"_l{depth}" + ("_reverse" if direction else "")
            outputs, end, walk = _walk(layer, suffix, x, starts[depth * directions + direction])
            sides.append(outputs)
            ends.append(end)
            walks.append(walk)
        x = torch.cat(sides, dim=2) if directions > 1 else sides[0]
        if layer.dropout and layer.training and depth + 1 < layer.num_layers:
            x = functional.dropout(x, layer.dropout)
    last = tuple(torch.stack(each) for each in zip(*ends, strict=True))
    return (x, last if len(last) > 1 else last[0]), tuple(walks)


def _walk(layer: nn.RNNBase, suffix: str, x: Tensor, state: State) -> tuple[Tensor, State, LayerWalk]:
    weight, across = (_value(layer, f"weight_{side}{suffix}") for side in ("ih", "hh"))
    shift, later = (_value(layer, f"bias_{side}{suffix}") for side in ("ih", "hh"))
    assert weight is not None
    assert across is not None
    if layer.mode != "GRU" and shift is not None and later is not None:
        shift, later = shift + later, None
    # what comes of the inputs must have a gradient, also where nothing before them has one
    inner = functional.linear(x if x.requires_grad else x.detach().requires_grad_(), weight, shift)
    backwards = suffix.endswith("_reverse")
    in_order = (inner.flip(1) if backwards else inner).transpose(0, 1)
    outers: list[Tensor] = []
    if layer.mode == "LSTM":
        h, c = (each.to(inner.dtype) for each in state)
        outputs, cell = lstm_steps(in_order, h, c, across.to(inner.dtype))
        end: State = (outputs[-1], cell)
    else:
        (h,) = state
        shown = []
        for step in in_order.unbind(0):
            outer = functional.linear(h, across, later)
            outers.append(outer if outer.requires_grad else outer.requires_grad_())
            h = _gated(step, outer, h) if layer.mode == "GRU" else _simple(layer, step + outer)
            shown.append(h)
        outputs, end = torch.stack(shown), (h,)
    before = torch.cat((state[0].detach().unsqueeze(0).to(outputs.dtype), outputs.detach()[:-1]))
    if backwards:
        outputs, before = outputs.flip(0), before.flip(0)
        outers.reverse()
    walk = LayerWalk(
        suffix,
        x.detach(),
        before.transpose(0, 1),
        get_gradient_edge(inner),
        tuple(get_gradient_edge(each) for each in outers) if layer.mode == "GRU" else (),
        inner.shape,
        inner.dtype,
    )
    return outputs.transpose(0, 1), end, walk


def _simple(layer: nn.RNNBase, total: Tensor) -> Tensor:
    return total.tanh() if layer.mode == "RNN_TANH" else total.relu()


def _gated(inner: Tensor, outer: Tensor, h: Tensor) -> Tensor:
    size = h.shape[1]
    reset, carry = (inner[:, : 2 * size] + outer[:, : 2 * size]).sigmoid().chunk(2, dim=1)
    candidate = (inner[:, 2 * size :] + reset * outer[:, 2 * size :]).tanh()
    return candidate + carry * (h - candidate)


def _value(layer: nn.RNNBase, name: str) -> Tensor | None:
    value = getattr(layer, name, None)
    return None if value is None else value.detach()
