"""Where examples stand in what the layers of a model are given: found by running batches of two sizes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from sourdine.learning.data.trees import Tree, count_of, part_of
from sourdine.learning.gradients.calls import tensors
from sourdine.learning.gradients.entangled import Entangled

Lengths = tuple[int, ...]


def shared_layers(
    layers: Mapping[str, nn.Module], losses: Callable[..., Tensor], batch: Tree
) -> frozenset[str]:
    """The layers that are given the same for all examples, such as positions, by their places in the model.

    The batch is run whole and without its last example. What grows with it counts examples, and what does not
    is shared, whatever the number of examples happens to be. A layer that is given both is not: what it makes
    of them is its own affair.
    """
    whole = count_of(batch)
    fewer, more = (_noted(layers, losses, part_of(batch, 0, count)) for count in (whole - 1, whole))
    if [where for where, _ in fewer] != [where for where, _ in more]:
        raise Entangled(
            "Which layers of the model are used depends on how many examples there are. Let it treat a batch "
            "as it treats one example."
        )
    shared: dict[str, bool] = {}
    for (where, lengths), (_, longer) in zip(fewer, more, strict=True):
        if not lengths:
            continue
        if len(lengths) != len(longer) or not all(
            less == more or less * whole == more * (whole - 1)
            for less, more in zip(lengths, longer, strict=True)
        ):
            raise _unclear(where)
        alike = lengths == longer
        if shared.setdefault(where, alike) != alike:
            raise _unclear(where)
    return frozenset(where for where, alike in shared.items() if alike)


def _unclear(where: str) -> Entangled:
    return Entangled(
        f"The layer '{where}' is given tensors whose first axis does not count the examples of the batch. "
        "Put examples first everywhere, and pad each to one length."
    )


def _noted(
    layers: Mapping[str, nn.Module], losses: Callable[..., Tensor], batch: Tree
) -> list[tuple[str, Lengths]]:
    """The first axes of all that each layer is given, in the order of the calls."""
    calls: list[tuple[str, Lengths]] = []
    with _watched(layers, calls), torch.enable_grad():
        losses(*batch)
    return calls


@contextmanager
def _watched(layers: Mapping[str, nn.Module], calls: list[tuple[str, Lengths]]) -> Iterator[None]:
    def watch(where: str, layer: nn.Module) -> torch.utils.hooks.RemovableHandle:
        def note(layer: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
            calls.append((where, tuple(len(each) for each in tensors(args, kwargs) if each.ndim)))

        return layer.register_forward_pre_hook(note, with_kwargs=True)

    handles = [watch(where, layer) for where, layer in layers.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
