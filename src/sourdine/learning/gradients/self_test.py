"""A rehearsal before anything is paid: the engine against one example at a time, on made-up examples."""

import copy
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.learning.data.examples import Batch
from sourdine.learning.gradients.clipping import Flat
from sourdine.learning.gradients.engine import Engine
from sourdine.learning.task import Task

REHEARSED = 6
_TOLERANCE = 1e-3
_REMEDY = "Pass rehearsal=, a few public examples such as (inputs, targets), if made-up ones cannot be right."


def self_test(task: Task, batch: Batch) -> None:
    """Raise unless the clipped sum of a batch is what its examples give one by one, and all parameters count.

    It works on a copy of the model, whose parameters are moved a little, so that a layer that starts at zero
    hides nothing behind it. The error names the layer that is at fault.

    >>> from sourdine.learning.task import cross_entropy
    >>> batch = (torch.randn(4, 3), torch.tensor([0, 1, 1, 0]))
    >>> self_test(Task(nn.Linear(3, 2), cross_entropy), batch)
    """
    moved = Task(_moved(task.model), task.loss)
    try:
        _check_buffers(moved, batch)
        Engine(moved.model, Flat()).clipped_sum(lambda: moved.losses(batch))  # it must run as it will
        if _is_random(moved, batch):
            moved.model.eval()  # dropout draws otherwise for a batch than for its examples
        each = _one_by_one(moved, batch)
        pairs = [
            (
                Engine(moved.model, Flat(norm=norm)).clipped_sum(lambda: moved.losses(batch)),
                _clipped(each, norm),
            )
            for norm in _norms(each)
        ]
    except SourdineError:
        raise
    except (IndexError, RuntimeError, TypeError, ValueError) as problem:
        raise InvalidParameter(
            f"The model or its loss failed in a rehearsal: {str(problem).rstrip('. ')}. {_REMEDY}"
        ) from problem
    for ours, expected in pairs:
        _compare(moved.model, ours, expected)


def _compare(model: nn.Module, ours: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    if not all(bool(torch.isfinite(each).all()) for each in expected.values()):
        raise InvalidParameter(f"The gradients of a rehearsal are not finite. {_REMEDY}")
    close = _TOLERANCE * max(float(each.abs().max()) for each in expected.values())
    for name, each in expected.items():
        if float((ours[name] - each).abs().max()) > close:
            raise InvalidParameter(
                f"The gradients of {_place(model, name)} in a batch are not those of its examples "
                "one by one. Either the layer or the loss mixes examples, or the layer is not "
                "understood here. Replace it, or freeze it."
            )
        if not bool(each.any()):
            raise InvalidParameter(
                f"The parameter '{name}' does not move the loss, so it would be trained on noise alone. "
                "Freeze it with requires_grad_(False)."
            )


def _check_buffers(task: Task, batch: Batch) -> None:
    """Refuse a model that notes the data in a buffer, which would be handed out with it."""
    run = Task(copy.deepcopy(task.model), task.loss)
    with torch.no_grad():
        run.outputs(batch)
    after = dict(run.model.named_buffers())
    for name, before in task.model.named_buffers():
        if not torch.equal(before, after[name]):
            raise InvalidParameter(
                f"The buffer '{name}' of the model changes when the model runs, and no noise would hide what "
                "it notes of the data, or of how many there are. Take it out, or replace its layer."
            )


def _one_by_one(task: Task, batch: Batch) -> dict[str, Tensor]:
    """The gradients of the examples by plain backward passes, the first axis counting examples."""
    wanted = {name: value for name, value in task.model.named_parameters() if value.requires_grad}
    rows: dict[str, list[Tensor]] = {name: [] for name in wanted}
    for i in range(len(batch[-1])):
        losses = task.losses(tuple(each[i : i + 1] for each in batch))
        if losses.ndim != 1:
            raise InvalidParameter(
                "The loss of a batch of one example must be a row of one number, as for any other batch: a "
                "run may draw one. A squeeze() without an axis takes too many away. Use squeeze(1)."
            )
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            losses.sum(), list(wanted.values()), allow_unused=True
        )
        for (name, value), gradient in zip(wanted.items(), gradients, strict=True):
            rows[name].append(torch.zeros_like(value) if gradient is None else gradient)
    return {name: torch.stack(each) for name, each in rows.items()}


def _lengths(rows: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([each.flatten(1).double().square().sum(1) for each in rows.values()]).sum(0).sqrt()


def _norms(rows: Mapping[str, Tensor]) -> tuple[float, float]:
    """A norm that every example is clipped to, and one that none is.

    Sums without clipping hide whose gradient is whose; with it, that others make one longer or shorter.
    """
    lengths = [each for each in _lengths(rows).tolist() if 0 < each < math.inf] or [1.0]
    low, high = (min(max(each, 2.0**-40), 2.0**40) for each in (min(lengths) / 2, 2 * max(lengths)))
    return low, high


def _clipped(rows: Mapping[str, Tensor], norm: float) -> dict[str, Tensor]:
    """The sum of the gradients, each clipped to a norm."""
    weights = norm / _lengths(rows).clamp(min=norm)
    return {name: torch.tensordot(weights.to(each), each, dims=1) for name, each in rows.items()}


def _moved(model: nn.Module) -> nn.Module:
    twin = copy.deepcopy(model).train()
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in twin.parameters():
            if value.requires_grad:
                step = torch.randn(value.shape, generator=source).mul_(0.05)
                value.add_(step.to(value))
    return twin


def _is_random(task: Task, batch: Batch) -> bool:
    with torch.no_grad():
        return not torch.equal(task.losses(batch), task.losses(batch))


def _place(model: nn.Module, name: str) -> str:
    owner = name.rpartition(".")[0]
    kind = type(model.get_submodule(owner)).__name__
    return f"the layer '{owner}' ({kind})" if owner else f"the model itself ({kind})"
