"""Batches in whatever form: tensors in tuples, lists and dicts, whose first axis counts examples."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from sourdine.core.errors import InvalidParameter

Tree = tuple[object, ...]


def tree_of(batch: Tree) -> Tree:
    """A batch with plain dicts for all mappings, such as those that tokenizers give."""
    return tuple(_plain(each) for each in batch)


def count_of(batch: Tree) -> int:
    """How many examples a batch holds; a tensor without axes belongs to all of them.

    >>> count_of((torch.zeros(5, 3), {"labels": torch.zeros(5)}))
    5
    """
    counts = {len(each) for each in tree_leaves(batch) if isinstance(each, Tensor) and each.ndim}
    if len(counts) != 1:
        raise InvalidParameter(
            "The batch must hold tensors whose first axis counts examples, and all equally many. Pass what "
            "the losses are made from as arguments, step.add(losses, inputs, targets), and give every tensor "
            "one entry for each example: expand what all of them share."
        )
    return counts.pop()


def part_of(batch: Tree, start: int, stop: int) -> Tree:
    """Some examples of a batch."""
    return _mapped(lambda each: each[start:stop] if each.ndim else each, batch)


def tiled(batch: Tree, count: int) -> Tree:
    """So many examples, which are those of a batch over and over."""
    at = torch.arange(count) % count_of(batch)
    return _mapped(lambda each: each[at.to(each.device)] if each.ndim else each, batch)


def made_up(batch: Tree, count: int) -> Tree:
    """Random examples of the same shapes and types, made from no data: whole numbers are 0 or 1."""
    source = torch.Generator().manual_seed(count)

    def random(each: Tensor) -> Tensor:
        shape = (count, *each.shape[1:]) if each.ndim else each.shape
        if each.dtype.is_floating_point:
            return torch.randn(shape, generator=source).to(each.device, each.dtype)
        return torch.randint(0, 2, shape, generator=source).to(each.device, each.dtype)

    return _mapped(random, batch)


def _mapped(function: Callable[[Tensor], Tensor], batch: Tree) -> Tree:
    mapped: Tree = tree_map_only(Tensor, function, batch)
    return mapped


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if type(value) is list:
        return [_plain(each) for each in value]
    return tuple(_plain(each) for each in value) if type(value) is tuple else value
