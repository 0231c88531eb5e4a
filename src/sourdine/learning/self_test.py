"""A rehearsal before anything is paid: the engine against one example at a time, on made-up examples."""

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.learning.clipping import Flat
from sourdine.learning.engine import Engine
from sourdine.learning.loader import Batch
from sourdine.learning.task import Task

REHEARSED = 6
_TOLERANCE = 1e-3
_REMEDY = "Pass rehearsal=, a few public examples such as (inputs, targets), if made-up ones cannot be right."


def self_test(task: Task, batch: Batch) -> None:
    """Raise unless the clipped sum of a batch is what its examples give one by one, and all parameters count.

    It works on a copy of the model, whose parameters are moved a little, so that a layer that starts at zero
    hides nothing behind it. The error names the layer that is at fault.

    >>> from sourdine.learning.losses import cross_entropy
    >>> batch = (torch.randn(4, 3), torch.tensor([0, 1, 1, 0]))
    >>> self_test(Task(nn.Linear(3, 2), cross_entropy), batch)
    """
    moved = Task(_moved(task.model), task.loss)
    try:
        _check_buffers(moved, batch)
        if _is_random(moved, batch):
            moved.model.eval()  # dropout draws otherwise for a batch than for its examples
        found = Engine(moved.model, Flat(norm=1.0)).clipped_sum(lambda: moved.losses(batch))
        expected = _one_by_one(moved, batch)
    except SourdineError:
        raise
    except (IndexError, RuntimeError, TypeError, ValueError) as problem:
        raise InvalidParameter(
            f"The model or its loss failed in a rehearsal: {problem} {_REMEDY}"
        ) from problem
    _compare(moved.model, found, expected)


def _compare(model: nn.Module, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    if not all(bool(torch.isfinite(each).all()) for each in expected.values()):
        raise InvalidParameter(f"The gradients of a rehearsal are not finite. {_REMEDY}")
    close = _TOLERANCE * max(float(each.abs().max()) for each in expected.values())
    for name, each in expected.items():
        if float((found[name] - each).abs().max()) > close:
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
    first, last = (Task(copy.deepcopy(task.model), task.loss) for _ in range(2))
    with torch.no_grad():
        first.outputs(tuple(each[:-1] for each in batch))
        last.outputs(tuple(each[1:] for each in batch))
    after = dict(last.model.named_buffers())
    for name, held in first.model.named_buffers():
        if not torch.equal(held, after[name]):
            raise InvalidParameter(
                f"The buffer '{name}' of the model changes with the data, and no noise would hide what it "
                "notes. Take it out, or replace its layer."
            )


def _one_by_one(task: Task, batch: Batch) -> dict[str, Tensor]:
    """The sum of gradients clipped to a norm of 1, by plain backward passes."""
    wanted = {name: value for name, value in task.model.named_parameters() if value.requires_grad}
    total = {name: torch.zeros_like(value) for name, value in wanted.items()}
    for i in range(len(batch[-1])):
        loss = task.losses(tuple(each[i : i + 1] for each in batch)).sum()
        gradients: Sequence[Tensor | None] = torch.autograd.grad(
            loss, list(wanted.values()), allow_unused=True
        )
        present = [
            value.new_zeros(()) if each is None else each
            for each, value in zip(gradients, wanted.values(), strict=True)
        ]
        length = torch.stack([each.square().sum() for each in present]).sum().sqrt()
        for name, each in zip(wanted, present, strict=True):
            total[name] += each / length.clamp(min=1.0)
    return total


def _moved(model: nn.Module) -> nn.Module:
    made = copy.deepcopy(model).train()
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in made.parameters():
            if value.requires_grad:
                step = torch.randn(value.shape, generator=source).mul_(0.05)
                value.add_(step.to(value))
    return made


def _is_random(task: Task, batch: Batch) -> bool:
    with torch.no_grad():
        return not torch.equal(task.losses(batch), task.losses(batch))


def _place(model: nn.Module, name: str) -> str:
    owner = name.rpartition(".")[0]
    kind = type(model.get_submodule(owner)).__name__
    return f"the layer '{owner}' ({kind})" if owner else f"the model itself ({kind})"
