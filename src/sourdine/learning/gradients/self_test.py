"""A rehearsal before anything is paid: the engine against one example at a time, on made-up examples."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.learning.data.examples import Batch, RepeatedExamples, examples_of
from sourdine.learning.data.trees import Tree, count_of, part_of
from sourdine.learning.gradients.clipping import Flat
from sourdine.learning.gradients.drawing import RANDOM_INSIDE, silence
from sourdine.learning.gradients.engine import check_losses
from sourdine.learning.gradients.entangled import Entangled
from sourdine.learning.gradients.owners import check_model
from sourdine.learning.gradients.uses import check_foreign
from sourdine.learning.gradients.way import ClippedSums, GradientWay, of_each_example, way_of
from sourdine.learning.model_state import ParameterWatch, StateSnapshot, digest
from sourdine.learning.task import Losses, Task, check_loss, cross_entropy

REHEARSED = 6
_TOLERANCE = {torch.float16: 2.0**-6, torch.bfloat16: 2.0**-4}  # of the precision in which a model computes
_FINE = 1e-3
_LEAST_NORM, _MOST_NORM = 2.0**-40, 2.0**40  # of a clipping norm
_LARGE = 50_000_000  # trained numbers: their test takes half a minute of one core
_AGAIN = 1e-2  # of trained weights, whose sums cancel more
_REMEDY = "Pass rehearsal=, a few public examples such as (inputs, targets), if made-up ones cannot be right."
_NO_FORM = (
    "This processor cannot run a layer of the model in the numbers that autocast has it compute in, as with "
    "an LSTM in bfloat16. Leave dtype='bfloat16' (or the autocast) out, or turn the model itself into "
    "model.bfloat16(), which runs in another way."
)


def check(model: nn.Module, loss: Losses | None, example: object, *, made_up: bool = True) -> None:
    """Raise unless a model and its loss can be trained privately, and say why; it costs nothing.

    `loss` and `example` are as in `fit`: a function of outputs and targets that gives one number for each
    example, and inputs and targets, of which only shapes and types are read. The clipped sum of a few made-up
    examples is compared with plain backward passes, one example at a time. Where made-up numbers cannot be
    right, pass a few public examples with `made_up=False`.

    >>> check(nn.Linear(3, 2), None, (torch.zeros(1, 3), torch.zeros(1, dtype=torch.int64)))
    """
    check_model(model)
    examples = examples_of(example)
    task = Task(model, cross_entropy if loss is None else check_loss(loss), names=examples.names)
    tried = examples if made_up else RepeatedExamples(examples)
    remedy = "Pass a few public examples with made_up=False if made-up ones cannot be right."
    self_test(task, tried.made_up(REHEARSED), remedy=remedy)


def self_test(task: Task, batch: Batch, *, remedy: str = _REMEDY) -> GradientWay:
    """Test the gradients of a model and its loss on a batch (`compare_gradients`); tell how they are taken.

    >>> batch = (torch.randn(4, 3), torch.tensor([0, 1, 1, 0]))
    >>> self_test(Task(nn.Linear(3, 2), cross_entropy), batch)
    GradientWay(shared=frozenset(), reason=None)
    """
    return compare_gradients(task.model, lambda *some: task.losses(some), batch, remedy=remedy)


def compare_gradients(
    model: nn.Module, losses: Callable[..., Tensor], batch: Tree, *, remedy: str = _REMEDY
) -> GradientWay:
    """Raise unless the clipped sum of a batch is what its examples give one by one, and all parameters count.

    `losses` runs the model on the parts of a batch. Meanwhile the model's parameters are moved a little, so
    that a layer that starts at zero hides nothing behind it; afterwards it is as it was. The error names the
    layer that is at fault. Where examples must be run one at a time, a warning says so, and why.
    """
    run = of_each_example(losses)
    state = StateSnapshot(model, losses)
    numbers = sum(value.numel() for value in _trained(model).values())
    if numbers >= _LARGE:
        warnings.warn(
            f"A model of {numbers:,} trained numbers is tested on made-up examples before anything is paid. "
            "That takes about as long as ten steps.",
            stacklevel=2,
        )
    try:
        with _moved(model), torch.enable_grad(), state.stand_ins(batch):
            _check_writes(model, run, batch)
            with _noted_precisions(model) as precisions:
                way = way_of(model, run, batch)  # it must run as it will
                _check_whole(model, run, batch)
            tolerance = max((_TOLERANCE.get(each, _FINE) for each in precisions), default=_FINE)
            silence(model, run, batch, tolerance)
            comparison = _Comparison(model, run, batch, tolerance, remedy)
            if way.reason is None:
                try:
                    comparison.check(way)
                except Entangled as problem:
                    way = GradientWay(reason=str(problem))
            if way.reason is not None:
                comparison.check_alone(way.reason)
                comparison.check(way)
    except (SourdineError, MemoryError):
        raise
    except Exception as problem:  # a model may say by any of them what it does not take
        if "primitive descriptor" in str(problem):  # of oneDNN, which wants what not every processor has
            raise InvalidParameter(_NO_FORM) from problem
        raise InvalidParameter(
            f"The model or its loss failed in a rehearsal: {str(problem).rstrip('. ')}. {remedy}"
        ) from problem
    finally:
        state.put_back()
    if way.reason is not None:
        warnings.warn(
            "Each example is run alone, which is right and slower than all at once. The reason: "
            f"{way.reason}",
            stacklevel=2,
        )
    return way


def repeat_comparison(
    model: nn.Module, losses: Callable[..., Tensor], batch: Tree, way: GradientWay, *, remedy: str = _REMEDY
) -> bool:
    """Raise unless clipped sums are still what examples give one by one, in the way that a test found.

    What a trained model may have and a new one may not is let pass: gradients of zero, and weights so large
    that gradients are not finite or lose digits.
    """
    run, state = of_each_example(losses), StateSnapshot(model, losses)
    try:
        with _moved(model), torch.enable_grad(), state.stand_ins(batch):
            with _noted_precisions(model) as precisions:
                run(*batch)
            tolerance = max((_TOLERANCE.get(each, _AGAIN) for each in precisions), default=_AGAIN)
            silence(model, run, batch, tolerance)
            comparison = _Comparison(model, run, batch, tolerance, remedy, again=True)
            if comparison.finite:
                comparison.check(way)
            return comparison.finite
    except (SourdineError, MemoryError):
        raise
    except Exception as problem:  # a model may say by any of them what it does not take
        raise InvalidParameter(
            f"The model or its loss failed in a rehearsal: {str(problem).rstrip('. ')}. {remedy}"
        ) from problem
    finally:
        state.put_back()


def _check_whole(model: nn.Module, losses: Callable[..., Tensor], batch: Tree) -> None:
    """Refuse losses that no way of taking gradients mends."""
    each = losses(*batch)
    check_losses(each)
    check_foreign(each, {id(value): name for name, value in model.named_parameters() if value.requires_grad})


class _Comparison:
    """Clipped sums of a batch held against what its examples give one by one."""

    def __init__(
        self,
        model: nn.Module,
        losses: Callable[..., Tensor],
        batch: Tree,
        tolerance: float,
        remedy: str,
        *,
        again: bool = False,
    ) -> None:
        self._model, self._losses, self._batch = model, losses, batch
        self._tolerance, self._remedy, self._again = tolerance, remedy, again
        self._alone = _Gradients(model, losses, batch)
        self.finite = all(math.isfinite(each) for each in (*self._alone.lengths, self._alone.largest))
        if not self.finite and not again:
            raise InvalidParameter(f"The gradients of a rehearsal are not finite. {remedy}")

    def check(self, way: GradientWay) -> None:
        """Refuse a way that gives other sums: with every example clipped, or with none."""
        for norm, expected in self._alone.clipped():
            ways = ClippedSums(self._model, Flat(norm=norm), way)
            sums = ways.add_up(self._losses, self._batch, strict=not self._again)
            self._compare(sums, expected)

    def check_alone(self, reason: str) -> None:
        """Refuse a model that is another one for a single example than for a batch, with the reason given."""
        whole = self._losses(*self._batch)
        wanted = _trained(self._model)
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            whole.sum(), list(wanted.values()), allow_unused=True
        )
        each_loss, sums = self._alone.losses, self._alone.plain
        off = float((whole.detach() - each_loss).abs().max())
        same = off <= self._tolerance * max(1.0, float(each_loss.abs().max()))
        close = self._tolerance * self._alone.largest
        for name, gradient in zip(wanted, gradients, strict=True):
            plain = torch.zeros_like(sums[name]) if gradient is None else gradient.to_dense().double()
            same = same and float((plain - sums[name]).abs().max()) <= close * len(each_loss)
        if not same:
            raise InvalidParameter(reason)

    def _compare(self, ours: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
        close = self._tolerance * max(float(each.abs().max()) for each in expected.values())
        for name, each in expected.items():
            mine = ours[name] if name in ours else torch.zeros_like(each)
            if float((mine - each).abs().max()) > close:
                raise Entangled(
                    f"The gradients of {_place(self._model, name)} in a batch are not those of its examples "
                    "one by one. Either the layer or the loss mixes examples, or the layer is not "
                    "understood here. Replace it, or freeze it."
                )
            if not self._again and not bool(each.any()):
                raise InvalidParameter(
                    f"The parameter '{name}' does not move the loss, so it would be trained on noise alone. "
                    f"Freeze it with requires_grad_(False). {self._remedy}"
                )


def _check_writes(model: nn.Module, losses: Callable[..., Tensor], batch: Tree) -> None:
    """Refuse a model that notes the data in a parameter or a buffer, which would be handed out with it."""
    buffers, watch = dict(model.named_buffers()), ParameterWatch(model)
    watch.begin()
    contents = {name: digest(value) for name, value in buffers.items()}
    for graph in (False, True):  # a model may write only while gradients are taken
        with torch.set_grad_enabled(graph):
            each = losses(*batch)
        if each.requires_grad:
            torch.autograd.grad(each.sum(), list(_trained(model).values()), allow_unused=True)
    after = dict(model.named_buffers())
    written = [name for name, then in contents.items() if name not in after or digest(after[name]) != then]
    for name in (*written, *watch.written()):
        raise InvalidParameter(
            f"The {'buffer' if name in buffers else 'parameter'} '{name}' of the model changes when the "
            "model runs, and no noise would hide what it notes of the data, or of how many there are. Take "
            "it out, or replace its layer."
        )


def _trained(model: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in model.named_parameters() if value.requires_grad}


def _one_by_one(
    model: nn.Module, losses: Callable[..., Tensor], batch: Tree
) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
    """The gradients of the examples by plain backward passes, and their losses.

    One at a time: those of all examples together may take more memory than training does.
    """
    wanted = _trained(model)
    for i in range(count_of(batch)):
        each = losses(*part_of(batch, i, i + 1))
        if each.ndim != 1:
            raise InvalidParameter(
                "The loss of a batch of one example must be a row of one number, as for any other batch: a "
                "run may draw one. A squeeze() without an axis takes too many away. Use squeeze(1)."
            )
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            each.sum(), list(wanted.values()), allow_unused=True
        )
        yield (
            {
                name: gradient.to_dense()
                for name, gradient in zip(wanted, gradients, strict=True)
                if gradient is not None
            },
            each.detach(),
        )


class _Gradients:
    """What plain backward passes give, one example at a time, in a single pass over the examples.

    It keeps two sums, of the gradients as they are (`plain`) and of each over its length: from these follow
    the clipped sums in which nobody is clipped and in which everybody is.
    """

    def __init__(self, model: nn.Module, losses: Callable[..., Tensor], batch: Tree) -> None:
        self.lengths: list[float] = []
        self.largest = 0.0
        self.plain, self._directions = (
            {
                name: torch.zeros_like(value, dtype=torch.promote_types(value.dtype, torch.float32))
                for name, value in _trained(model).items()
            }
            for _ in range(2)
        )
        each_loss = []
        for gradients, loss in _one_by_one(model, losses, batch):
            norms = [float(torch.linalg.vector_norm(one, dtype=torch.float64)) for one in gradients.values()]
            length = math.sqrt(sum(norm * norm for norm in norms))
            most = [float(torch.linalg.vector_norm(one, ord=math.inf)) for one in gradients.values()]
            self.largest = max([self.largest, *most])
            self.lengths.append(length)
            each_loss.append(loss)
            for name, one in gradients.items():
                self.plain[name].add_(one)
                if length < math.inf:
                    self._directions[name].add_(one, alpha=1 / max(length, _LEAST_NORM))
        self.losses = torch.cat(each_loss)

    def clipped(self) -> Iterator[tuple[float, dict[str, Tensor]]]:
        """A norm that every example is clipped to and one that none is, each with the sum there is then.

        Sums without clipping hide whose gradient is whose; with it, that others make one longer or shorter.
        """
        known = [length for length in self.lengths if 0 < length < math.inf] or [1.0]
        low, high = max(min(known) / 2, _LEAST_NORM), 2 * max(known)
        yield low, {name: each * low for name, each in self._directions.items()}
        if high <= _MOST_NORM:
            yield max(high, _LEAST_NORM), self.plain


@contextmanager
def _moved(model: nn.Module) -> Iterator[None]:
    """Move the parameters of a model a little while the block lasts, and leave all as it was."""
    source = torch.Generator().manual_seed(1)
    values = [(value, value.detach().clone()) for value in model.parameters()]
    buffers = [
        (layer._buffers, name, value, value.clone())
        for layer in model.modules()
        for name, value in layer._buffers.items()
        if value is not None
    ]
    modes = [(layer, layer.training) for layer in model.modules()]
    shares = [(layer, layer.dropout) for layer in model.modules() if isinstance(layer, RANDOM_INSIDE)]
    with torch.random.fork_rng():
        try:
            with torch.no_grad():
                for value in _trained(model).values():
                    value.add_(torch.randn(value.shape, generator=source).mul_(0.05).to(value))
            yield
        finally:
            with torch.no_grad():
                for value, before in values:
                    value.copy_(before)
                for home, name, buffer, content in buffers:
                    home[name] = buffer.copy_(content)
            for layer, training in modes:
                layer.training = training
            for layer, dropout in shares:
                layer.dropout = dropout


@contextmanager
def _noted_precisions(model: nn.Module) -> Iterator[set[torch.dtype]]:
    """The precisions in which the layers of a model compute while the block lasts."""
    types: set[torch.dtype] = set()

    def note(layer: nn.Module, args: object, out: Any) -> None:
        if isinstance(out, Tensor) and out.is_floating_point():
            types.add(out.dtype)

    handles = [layer.register_forward_hook(note) for layer in model.modules()]
    try:
        yield types
    finally:
        for handle in handles:
            handle.remove()


def _place(model: nn.Module, name: str) -> str:
    owner = name.rpartition(".")[0]
    kind = type(model.get_submodule(owner)).__name__
    return f"the layer '{owner}' ({kind})" if owner else f"the model itself ({kind})"
