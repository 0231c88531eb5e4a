"""Clipped sums of per-example gradients by one forward and one backward pass.

The forward pass notes the inputs of every layer that has trainable parameters, and where its outputs stand in
the graph; layers without a rule run on a copy of their parameters for each example instead. The backward pass
asks for the gradients there and nowhere else, so that autograd makes no weight gradients of its own. Norms,
weights and weighted sums follow from what was noted. Nothing stays on the model.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.utils._pytree import tree_map_only

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.gradients.calls import Call, Copied, Noted, tensors, wide
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.entangled import Entangled
from sourdine.learning.gradients.fallback import expanded, gradients_at, mixes, on_others, outputs
from sourdine.learning.gradients.owners import Owner, check_model, check_owner, layer_names, owners_of
from sourdine.learning.gradients.per_example import PerExample, together
from sourdine.learning.gradients.precision import full_precision
from sourdine.learning.gradients.recurrent.walk import Walked, can_walk, walked
from sourdine.learning.gradients.uses import check_uses, next_number
from sourdine.learning.gradients.whole import whole_sum

Sums = dict[str, Tensor]


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

    def __init__(self, model: nn.Module, clipping: Clipping, *, shared: Collection[str] = ()) -> None:
        """`shared` names layers that are given the same for all examples (`shared_layers`)."""
        self.model, self.clipping = model, clipping
        check_model(model)
        self._owners = list(owners_of(model))
        self._shared = frozenset(shared)
        self._known = {id(each): name for name, each in model.named_parameters() if each.requires_grad}
        self._layers = layer_names(self._owners)

    def clipped_sum(
        self,
        losses: Callable[[], Tensor],
        *,
        examples: int | None = None,
        examples_per_unit: int = 1,
        strict: bool = True,
    ) -> Sums:
        """The clipped gradients of some examples, added up, by the names of the parameters.

        `losses` runs the model and gives one loss for each example. With `examples_per_unit` above 1, so many
        examples in a row belong to one person and are clipped together. An example whose gradient is not
        finite adds exactly nothing. How many `examples` there are must be told where layers are shared. If
        not `strict`, nothing is looked for that a test on made-up examples has shown: no example moves
        another, and a parameter that no example uses gets no gradient.
        """
        parts, each = self._unit_parts(losses, examples, examples_per_unit, strict)
        with torch.no_grad(), full_precision(each.device):
            # a layer that this batch leaves out stays one of those among which a norm is shared
            nothing = torch.zeros(len(each) // examples_per_unit, dtype=wide(each).dtype, device=each.device)
            squares = dict.fromkeys(self._layers.values(), nothing)
            for name, part in parts.items():
                squares[self._layers[name]] = squares[self._layers[name]] + part.squares()
            weights = self.clipping.weights(squares)
            finite = torch.isfinite(torch.stack(list(squares.values())).sum(0))
            if not bool(finite.all()):  # zero times infinity is not zero
                parts = {name: part.without(~finite) for name, part in parts.items()}
            sums = {name: part.weighted(weights[self._layers[name]]) for name, part in parts.items()}
            return {**sums, **self.clipping.counts(squares)}

    def whole_sum(
        self,
        losses: Callable[[], Tensor],
        *,
        examples: int,
        examples_per_unit: int = 1,
        strict: bool = True,
        counted: Tensor | None = None,
    ) -> Sums:
        """The same as whole numbers of steps of a grid, of which each unit's length is checked exactly.

        `counted` says which units count at all.
        """
        parts, each = self._unit_parts(losses, examples, examples_per_unit, strict)
        with torch.no_grad(), full_precision(each.device):
            return whole_sum(parts, self._layers, self.clipping, counted)

    def gradients_of(
        self, losses: Callable[[], Tensor], unit: int, *, examples: int, examples_per_unit: int = 1
    ) -> Sums:
        """The gradients of one of some units, before anything is clipped."""
        unit = check.integer("gradients_of", "unit", unit, 0, 1 << 40)
        parts, each = self._unit_parts(losses, examples, examples_per_unit, True)
        with torch.no_grad(), full_precision(each.device):
            return {name: part.whole()[unit] for name, part in parts.items()}

    def _unit_parts(
        self, losses: Callable[[], Tensor], examples: int | None, examples_per_unit: int, strict: bool
    ) -> tuple[Mapping[str, PerExample], Tensor]:
        """The gradients of every parameter for each unit, and the losses."""
        examples_per_unit = check.integer("clipped_sum", "examples_per_unit", examples_per_unit, 1, 1 << 20)
        if examples is not None:
            examples = check.integer("clipped_sum", "examples", examples, 0, 1 << 40)
        calls: list[Call] = []
        for owner in self._owners:
            check_owner(owner)
        torch.clear_autocast_cache()  # or a weight is used where an earlier run has cast it, in no layer
        with self._noting(calls, examples or 0, strict), torch.enable_grad():
            each = losses()
        check_losses(each, examples_per_unit)
        check_uses(each, calls, self._known)
        with full_precision(each.device):
            parts = self._parts(calls, each, strict)
        if examples_per_unit == 1:
            return parts, each
        with torch.no_grad():
            return {name: part.merged(examples_per_unit) for name, part in parts.items()}, each

    @property
    def owners(self) -> dict[str, nn.Module]:
        """The layers that have trainable parameters of their own, by their places in the model."""
        return {owner.where: owner.layer for owner in self._owners}

    @contextmanager
    def _noting(self, calls: list[Call], examples: int, strict: bool) -> Iterator[None]:
        """Note every use of a layer with trainable parameters, while the block lasts."""
        with ExitStack() as stack:
            for owner in self._owners:
                if owner.where in self._shared and examples > 1:
                    stack.enter_context(_repeated(owner.layer, examples))
                if owner.copied:
                    stack.enter_context(_replaced(owner, calls, check=strict))
                else:
                    stack.enter_context(_noted(owner, calls))
            yield

    def _parts(self, calls: list[Call], losses: Tensor, strict: bool) -> Mapping[str, PerExample]:
        """The gradients of every parameter, from one backward pass."""
        rows_each = [call.rows_each(len(losses)) for call in calls]
        wanted = [place for call in calls for place in call.wanted]
        if strict and len(losses) > 1:
            _check_apart(calls, rows_each, losses[0])
        answers = iter(gradients_at(losses.sum(), wanted) if wanted else ())
        parts: defaultdict[str, list[PerExample]] = defaultdict(list)
        with torch.no_grad():
            for call, rows in zip(calls, rows_each, strict=True):
                gradients = [next(answers) for _ in call.wanted]
                if all(each is None for each in gradients):
                    continue
                by_name = call.parts(gradients)
                for name, known in call.names.items():
                    parts[known].append(by_name[name] if rows == 1 else by_name[name].merged(rows))
            missing = sorted(set(self._layers) - set(parts))
            if strict and missing:
                raise InvalidParameter(
                    f"The parameter '{missing[0]}' took no part in the loss: its layer was not called as a "
                    "module, or its output was not used. Use its output (that of an expert which few inputs "
                    "reach on all of them, with a weight of 0), or freeze it if no input ever reaches it."
                )
            return {name: together(parts[name]) for name in self._layers if name in parts}


@contextmanager
def _noted(owner: Owner, calls: list[Call]) -> Iterator[None]:
    """Note the inputs and outputs of a layer."""
    begun: list[int] = []

    def begin(layer: nn.Module, args: object) -> None:
        begun.append(next_number())

    def note(layer: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], out: object) -> object:
        out = _rooted(out) if isinstance(out, Tensor) else tree_map_only(Tensor, _rooted, out)
        span = range(begun.pop(), next_number())
        results = outputs(out)
        if not any(each.requires_grad for each in results):
            return out  # it was run without gradients on purpose
        arguments = tensors(args, kwargs)
        versions = tuple(each._version for each in arguments)
        if not kwargs and all(isinstance(each, Tensor) for each in args):
            positional, named = tuple(each.detach() for each in arguments), kwargs
        else:
            positional, named = tree_map_only(Tensor, torch.Tensor.detach, (args, kwargs))
        sources = [each for each in results if each.requires_grad]
        calls.append(
            Noted(
                layer,
                owner.where,
                owner.names,
                positional,
                named,
                versions,
                tuple(get_gradient_edge(each) for each in sources),
                tuple(each.shape for each in sources),
                tuple(each.dtype for each in sources),
                span,
            )
        )
        return out

    # prepended, so that hooks of other people change neither what is noted nor where
    handles = (
        owner.layer.register_forward_pre_hook(begin),
        owner.layer.register_forward_hook(note, with_kwargs=True, prepend=True),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _repeated(layer: nn.Module, examples: int) -> Iterator[None]:
    """Give a layer once for each example what it is given for all, so that each has its own gradient."""

    def repeat(each: Tensor) -> Tensor:
        if not each.ndim:
            return each
        shape = each.shape[1:] if len(each) == 1 else each.shape
        return each.expand(examples, *shape)

    def before(layer: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        return tree_map_only(Tensor, repeat, (args, kwargs))

    handle = layer.register_forward_pre_hook(before, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def _rooted(tensor: Tensor) -> Tensor:
    """A tensor whose place in the graph stays when it is changed in place, which that of a view does not."""
    return tensor.clone() if tensor._is_view() and tensor.requires_grad else tensor


@contextmanager
def _replaced(owner: Owner, calls: list[Call], *, check: bool) -> Iterator[None]:
    """Let a layer run on a copy of its parameters for each example, if it does not mix them itself."""
    layer, forward = owner.layer, owner.layer.forward
    before = layer.__dict__.get("forward")

    def run(*args: object, **kwargs: object) -> object:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        if check and mixes(forward, args, kwargs):
            raise Entangled(
                f"The layer '{owner.where}' ({type(layer).__name__}) mixes examples: what it makes of one "
                "depends on the others, so that no gradient belongs to one person alone. Replace it."
            )
        if can_walk(layer, args, kwargs):
            assert isinstance(layer, nn.RNNBase)
            bound = inspect.signature(forward).bind(*args, **kwargs).arguments
            result, walks = walked(layer, bound["input"], bound.get("hx"))
            calls.append(Walked(layer, owner.where, owner.names, walks))
            return result
        try:
            output, copies = expanded(layer, forward, owner.names, args, kwargs)
        except RuntimeError as problem:
            raise Entangled(
                f"The layer '{owner.where}' ({type(layer).__name__}) has no rule here and torch cannot take "
                "its gradients one example at a time. Replace it, or freeze it."
            ) from problem
        axes = tensors(args, kwargs)[0].ndim
        calls.append(Copied(layer, owner.where, owner.names, copies, axes))
        return output

    layer.forward = run
    try:
        yield
    finally:
        if before is None:
            del layer.forward
        else:
            layer.forward = before


def _check_apart(calls: Sequence[Call], rows_each: Sequence[int], loss: Tensor) -> None:
    """Refuse a model in which the loss of the first example depends on what another one made of a layer."""
    places = [
        (call, rows, place) for call, rows in zip(calls, rows_each, strict=True) for place in call.wanted
    ]
    answers = gradients_at(loss, [place for _, _, place in places], again=True)
    for (call, rows, _), answer in zip(reversed(places), reversed(answers), strict=True):
        if on_others(answer, rows):
            raise Entangled(
                f"What the layer '{call.where}' makes of one example moves the loss of another, so that no "
                "gradient belongs to one person alone. Keep examples on the first axis, and take no means "
                "over it."
            )


def check_losses(losses: Tensor, examples_per_unit: int = 1) -> None:
    """Refuse what is not one loss for each example."""
    if losses.ndim != 1 or len(losses) == 0:
        raise InvalidParameter(
            "The loss must be one number for each example. A mean or a sum over the batch mixes people. "
            "Use reduction='none'."
        )
    if len(losses) % examples_per_unit:
        raise InvalidParameter(
            f"The batch must hold {examples_per_unit} examples for each person. Fill it up."
        )
    if not losses.requires_grad:
        raise InvalidParameter("The loss does not depend on any trainable parameter. Check the model.")
