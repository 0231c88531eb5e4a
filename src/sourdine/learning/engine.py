"""Clipped sums of per-example gradients by one forward and one backward pass.

The forward pass notes the inputs of every layer that has trainable parameters, and where its outputs stand in
the graph. The backward pass asks for the gradients there and nowhere else, so that autograd makes no weight
gradients of its own. Norms, weights and weighted sums follow from what was noted. Nothing stays on the model.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.utils.hooks import RemovableHandle

from sourdine.core.errors import InvalidParameter
from sourdine.learning.clipping import Clipping
from sourdine.learning.per_example import PerExample, together
from sourdine.learning.rules import RULES, fallback, outputs

_MIXING = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.LazyBatchNorm1d)
_WHOLE = (nn.MultiheadAttention,)  # they use the parameters of their parts without calling them
Sums = dict[str, Tensor]


@dataclass(frozen=True)
class _Call:
    """One use of a layer: what went in, and where in the graph what came out is."""

    layer: nn.Module
    inputs: tuple[object, ...]
    versions: tuple[int, ...]
    edges: tuple[GradientEdge | None, ...]
    shapes: tuple[torch.Size, ...]


class Engine:
    """Clipped sums of the gradients of one model.

    >>> from sourdine.learning import Flat
    >>> model = nn.Linear(3, 1, bias=False)
    >>> x = torch.tensor([[3.0, 0, 0], [0, 0.5, 0]])
    >>> engine = Engine(model, Flat(norm=1.0))
    >>> sums = engine.clipped_sum(lambda: model(x).squeeze(1))
    >>> [round(float(each), 3) for each in sums["weight"][0]]
    [1.0, 0.5, 0.0]
    """

    def __init__(self, model: nn.Module, clipping: Clipping) -> None:
        self.model, self.clipping = model, clipping
        check_model(model)
        self._owners = dict(_owners(model))
        self._names = {id(value): name for name, value in model.named_parameters() if value.requires_grad}

    def clipped_sum(self, losses: Callable[[], Tensor], *, per_unit: int = 1) -> Sums:
        """The clipped gradients of some examples, added up, by the names of the parameters.

        `losses` runs the model and gives one loss for each example. With `per_unit` above 1, so many examples
        in a row belong to one person and are clipped together.
        """
        calls: list[_Call] = []
        with self._noting(calls), torch.enable_grad():
            each = losses()
        _check_losses(each, per_unit)
        found = self._parts(calls, each)
        if per_unit > 1:
            found = {name: part.merged(per_unit) for name, part in found.items()}
        squares: dict[str, Tensor] = {}
        for name, part in found.items():
            layer = name.rpartition(".")[0]
            squares[layer] = squares[layer] + part.squares() if layer in squares else part.squares()
        weights = self.clipping.weights(squares)
        return {name: part.weighted(weights[name.rpartition(".")[0]]) for name, part in found.items()}

    @contextmanager
    def _noting(self, calls: list[_Call]) -> Iterator[None]:
        """Note every use of a layer with trainable parameters, while the block lasts."""

        def note(layer: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], out: object) -> None:
            if any(isinstance(value, Tensor) for value in kwargs.values()):
                raise InvalidParameter(
                    f"The layer '{self._owners[layer]}' is given tensors by name. Its gradients cannot be "
                    "told apart by example then. Pass them by position."
                )
            found = outputs(out)
            held = tuple(value.detach() if isinstance(value, Tensor) else value for value in args)
            edges = tuple(get_gradient_edge(value) if value.requires_grad else None for value in found)
            versions = tuple(value._version for value in args if isinstance(value, Tensor))
            calls.append(_Call(layer, held, versions, edges, tuple(value.shape for value in found)))

        handles: list[RemovableHandle] = [
            layer.register_forward_hook(note, with_kwargs=True) for layer in self._owners
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _parts(self, calls: list[_Call], losses: Tensor) -> Mapping[str, PerExample]:
        """The gradients of every parameter, from one backward pass."""
        wanted = [edge for call in calls for edge in call.edges if edge is not None]
        found = iter(torch.autograd.grad(losses.sum(), wanted, allow_unused=True)) if wanted else iter(())
        parts: defaultdict[str, list[PerExample]] = defaultdict(list)
        for call in calls:
            gradients = [
                _or_zeros(None if edge is None else next(found), shape, losses)
                for edge, shape in zip(call.edges, call.shapes, strict=True)
            ]
            for name, part in self._rules(call, gradients, len(losses)).items():
                parts[name].append(part)
        if missing := sorted(set(self._names.values()) - set(parts)):
            raise InvalidParameter(
                f"The parameter '{missing[0]}' took no part in the loss, so it would not be trained. Its layer "
                "was not called as a module. Call it, or freeze it with requires_grad_(False)."
            )
        return {name: together(parts[name]) for name in self._names.values()}

    def _rules(self, call: _Call, gradients: list[Tensor], examples: int) -> Mapping[str, PerExample]:
        """What one use of a layer adds to the gradients of its parameters, by their names in the model."""
        layer, where = call.layer, self._owners[call.layer]
        self._check_call(call, examples)
        whole = isinstance(layer, _WHOLE)
        local = {
            name: self._names[id(value)]
            for name, value in layer.named_parameters(recurse=whole, remove_duplicate=False)
            if id(value) in self._names
        }
        tensors = [value for value in call.inputs if isinstance(value, Tensor)]
        with torch.no_grad():
            if type(layer) in RULES and len(tensors) == len(gradients) == 1:
                made = RULES[type(layer)](layer, tensors[0], gradients[0])
            else:
                try:
                    made = fallback(layer, call.inputs, gradients, list(local))
                except RuntimeError as problem:
                    raise InvalidParameter(
                        f"The layer '{where}' ({type(layer).__name__}) has no rule here and torch cannot take "
                        "its gradients one example at a time. Replace it, or freeze it."
                    ) from problem
        return {local[name]: part for name, part in made.items() if name in local}

    def _check_call(self, call: _Call, examples: int) -> None:
        where = self._owners[call.layer]
        tensors = [value for value in call.inputs if isinstance(value, Tensor)]
        if any(value._version != then for value, then in zip(tensors, call.versions, strict=True)):
            raise InvalidParameter(
                f"The input of the layer '{where}' was changed in place after it was used, so its gradients "
                "are lost. Use the form of the operation that makes a new tensor."
            )
        shapes = [value.shape for value in tensors] + list(call.shapes)
        if any(len(shape) < 1 or shape[0] != examples for shape in shapes):
            raise InvalidParameter(
                f"The layer '{where}' has inputs or outputs whose first axis does not count the "
                f"{examples} examples of the batch. Put examples first everywhere (batch_first=True)."
            )


def check_model(model: nn.Module) -> None:
    """Refuse a model that cannot be trained privately as it is, and say which part of it is why."""
    for name, layer in model.named_modules():
        if isinstance(layer, _MIXING):
            raise InvalidParameter(
                f"The layer '{name}' is a {type(layer).__name__}, which mixes the examples of a batch, so that "
                "no gradient belongs to one person alone. Use a GroupNorm: "
                "sourdine.learning.with_group_norm(model) makes a copy that does."
            )
        if getattr(layer, "track_running_stats", False):
            raise InvalidParameter(
                f"The layer '{name}' keeps running statistics of the data, which no noise would hide. "
                "Make it with track_running_stats=False."
            )
    if not any(value.requires_grad for value in model.parameters()):
        raise InvalidParameter("The model has no parameter to train. Unfreeze some with requires_grad_(True).")


def _owners(model: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """The layers that have trainable parameters of their own, and their names."""
    inside: set[nn.Module] = set()
    for name, layer in model.named_modules():
        if layer in inside:
            continue
        whole = isinstance(layer, _WHOLE)
        if whole:
            inside.update(layer.modules())
        if any(value.requires_grad for value in layer.parameters(recurse=whole)):
            yield layer, name or "the model itself"


def _or_zeros(gradient: Tensor | None, shape: torch.Size, like: Tensor) -> Tensor:
    """The gradient at an output, which is 0 where the loss does not depend on it."""
    return torch.zeros(shape, dtype=like.dtype, device=like.device) if gradient is None else gradient


def _check_losses(losses: Tensor, per_unit: int) -> None:
    if losses.ndim != 1 or len(losses) == 0:
        raise InvalidParameter(
            "The loss must be one number for each example. A mean or a sum over the batch mixes people. "
            "Use reduction='none'."
        )
    if len(losses) % per_unit:
        raise InvalidParameter(f"The batch must hold {per_unit} examples for each person. Fill it up.")
    if not losses.requires_grad:
        raise InvalidParameter("The loss does not depend on any trainable parameter. Check the model.")
