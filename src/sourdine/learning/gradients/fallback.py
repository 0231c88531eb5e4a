"""Layers without a rule of their own, one example at a time and all at once (vmap)."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from sourdine.learning.gradients.entangled import Entangled
from sourdine.learning.gradients.rules import cell_step, unrolled

_SHARED = -1  # the axis of what all examples have in common
_RECURRENT = {"input": "x", "hx": "start"}


class Expanded(NamedTuple):
    """What a layer gave to a batch, and the copies of its parameters, one for each example, that it used."""

    output: object
    copies: dict[str, Tensor]


def expanded(
    layer: nn.Module,
    forward: Callable[..., object],
    names: Iterable[str],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> Expanded:
    """Run a layer on each example with a copy of its parameters, so that autograd keeps examples apart.

    It takes the place of the layer's own run: what is drawn at random, as in dropout, is drawn once.
    """
    kinds = inspect.signature(forward).bind(*args, **kwargs).arguments
    axes = _axes(layer, kinds)
    leaves, form = tree_flatten((args, dict(kwargs)))
    where = [axes(leaf) for leaf in leaves]
    tensors = [leaf for leaf, axis in zip(leaves, where, strict=True) if axis != _SHARED]
    examples = {leaf.shape[axis] for leaf, axis in zip(leaves, where, strict=True) if axis != _SHARED}
    if len(examples) != 1:
        raise Entangled(
            f"A {type(layer).__name__} was given no tensors, or some of unlike lengths, so its examples "
            "cannot be told apart. Give it tensors whose first axis counts examples."
        )
    size = examples.pop()
    parameters = dict(layer.named_parameters(remove_duplicate=False))
    copies = {name: parameters[name].detach().expand(size, *parameters[name].shape) for name in names}
    for copy in copies.values():
        copy.requires_grad_()
    results = _Results()

    def one(values: dict[str, Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        rest = iter(inputs)
        filled = [
            leaf if axis == _SHARED else next(rest).unsqueeze(axis)
            for leaf, axis in zip(leaves, where, strict=True)
        ]
        args, kwargs = tree_unflatten(filled, form)
        return results.note(layer, _run(layer, forward, values, args, kwargs))

    dims = tuple(axis for axis in where if axis != _SHARED)
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
        warnings.filterwarnings("ignore", "There is a performance drop")  # nobody can do anything about it
        mapped = torch.func.vmap(one, in_dims=(0, *dims), out_dims=0, randomness="different")(
            copies, *tensors
        )
    return Expanded(results.filled(mapped), copies)


def mixes(forward: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Whether what a layer makes of the first example depends on another."""
    with torch.random.fork_rng(), torch.enable_grad():
        positional, named = tree_map_only(Tensor, _alone, (args, dict(kwargs)))
        wanted = [each for each in tree_leaves((positional, named)) if isinstance(each, Tensor)]
        wanted = [each for each in wanted if each.requires_grad and each.ndim]
        results = outputs(forward(*positional, **named))
        if not wanted or not results or not results[0].requires_grad:
            return False
        (gradient,) = gradients_at(results[0][0].sum(), wanted[:1])
    return on_others(gradient)


def gradients_at(
    loss: Tensor, places: Sequence[GradientEdge | Tensor], *, again: bool = False
) -> tuple[Tensor | None, ...]:
    """The gradients of a loss in some places, None where it does not depend on them."""
    return torch.autograd.grad(loss, places, retain_graph=again, allow_unused=True)  # type: ignore[arg-type]


def on_others(gradient: Tensor | None, rows_each: int = 1) -> bool:
    """Whether the gradient of the first example's doing says that others move it; NaN says nothing."""
    if gradient is None:
        return False
    others = gradient[rows_each:]
    return bool(((others != 0) & ~others.isnan()).any())


def _alone(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_() if tensor.is_floating_point() else tensor


class _Bare(nn.Module):
    """A layer without its hooks, which run around it already."""

    def __init__(self, layer: nn.Module, forward: Callable[..., object]) -> None:
        super().__init__()
        self.layer = layer
        self._run = forward

    def forward(self, *args: object, **kwargs: object) -> object:
        return self._run(*args, **kwargs)


def _run(
    layer: nn.Module,
    forward: Callable[..., object],
    values: Mapping[str, Tensor],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> object:
    if isinstance(layer, nn.RNNBase):
        return unrolled(layer, values, *args, **{_RECURRENT[name]: each for name, each in kwargs.items()})
    if type(layer) is nn.LSTMCell:
        return cell_step(layer, values, *args, **{_RECURRENT[name]: each for name, each in kwargs.items()})
    parameters = {f"layer.{name}": value for name, value in values.items()}
    return torch.func.functional_call(_Bare(layer, forward), parameters, args, kwargs, tie_weights=False)


class _Results:
    """The outputs of one example, taken apart into tensors and put together again for a batch."""

    def __init__(self) -> None:
        self._leaves: list[object] = []
        self._axes: list[int] = []
        self._form: TreeSpec | None = None

    def note(self, layer: nn.Module, output: object) -> tuple[Tensor, ...]:
        self._leaves, self._form = tree_flatten(output)
        later = 1 if isinstance(layer, nn.RNNBase) else 0  # the last states have their layers first
        self._axes = [later if i else 0 for i in range(len(self._leaves))]
        return tuple(
            leaf.squeeze(axis)
            for leaf, axis in zip(self._leaves, self._axes, strict=True)
            if isinstance(leaf, Tensor)
        )

    def filled(self, mapped: tuple[Tensor, ...]) -> object:
        assert self._form is not None
        rest = iter(mapped)
        whole = [
            next(rest).movedim(0, axis) if isinstance(leaf, Tensor) else leaf
            for leaf, axis in zip(self._leaves, self._axes, strict=True)
        ]
        return tree_unflatten(whole, self._form)


def _axes(layer: nn.Module, arguments: Mapping[str, object]) -> Callable[[object], int]:
    """Which axis of each tensor that a layer is given counts examples."""
    states = (
        {id(each) for each in tree_leaves(arguments.get("hx"))} if isinstance(layer, nn.RNNBase) else set()
    )
    mask = arguments.get("attn_mask") if isinstance(layer, nn.MultiheadAttention) else None

    if isinstance(mask, Tensor) and mask.ndim > 2:
        raise Entangled(
            "A MultiheadAttention was given an 'attn_mask' for each example. Give one mask for all, or a "
            "key_padding_mask."
        )

    def axis(leaf: object) -> int:
        if not isinstance(leaf, Tensor) or leaf is mask or leaf.ndim == 0:
            return _SHARED
        return 1 if id(leaf) in states else 0

    return axis


def one_by_one(
    layer: nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    gradients: Sequence[Tensor],
    names: Sequence[str],
) -> Mapping[str, Tensor]:
    """Gradients of a layer's own parameters by running it, and the layers in it, once more: a row an example.

    Nothing in it may be random: it would be drawn again.
    """
    parameters = dict(layer.named_parameters(remove_duplicate=False))
    moving = {name: parameters[name].detach() for name in names}
    leaves, form = tree_flatten((args, dict(kwargs)))
    tensors = tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))

    def pulled(moving: dict[str, Tensor], one: tuple[Tensor, ...], at: tuple[Tensor, ...]) -> Tensor:
        rest = iter(one)
        filled = [next(rest).unsqueeze(0) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        args, kwargs = tree_unflatten(filled, form)
        results = outputs(torch.func.functional_call(layer, moving, args, kwargs, tie_weights=False))
        terms = [(out.squeeze(0) * g).sum() for out, g in zip(results, at, strict=True)]
        return torch.stack(terms).sum()

    each: dict[str, Tensor] = torch.func.vmap(torch.func.grad(pulled), in_dims=(None, 0, 0))(
        moving, tensors, tuple(gradients)
    )
    return each


def outputs(result: object) -> list[Tensor]:
    """The tensors of real numbers that a layer gives."""
    if isinstance(result, Tensor):
        return [result] if result.is_floating_point() else []
    return [each for each in tree_leaves(result) if isinstance(each, Tensor) and each.is_floating_point()]
