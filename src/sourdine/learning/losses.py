"""One loss for each example: the default one, and what may stand in its place."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter

Losses = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Minus the logarithm of the chance given to the true class, for each example.

    With more axes than one class an example, their mean. A label that names no class counts nothing: an
    error would tell that it is there.

    >>> [round(float(each), 3) for each in cross_entropy(torch.zeros(2, 4), torch.tensor([1, 9]))]
    [1.386, 0.0]
    """
    known = (targets >= 0) & (targets < outputs.shape[1])
    found = functional.cross_entropy(outputs, torch.where(known, targets, 0), reduction="none")
    kept = torch.where(known, found, torch.zeros_like(found))
    return kept if kept.ndim == 1 else kept.flatten(1).mean(1)


def check_loss(loss: object) -> Losses:
    """Refuse what is no loss, or says itself that it is taken over a batch."""
    if isinstance(loss, nn.Module) and getattr(loss, "reduction", "none") != "none":
        raise InvalidParameter(
            f"The loss {type(loss).__name__} takes a {loss.reduction} over the batch, which mixes people. "
            "Make it with reduction='none'."
        )
    if not callable(loss):
        raise check.fail("fit", "loss", "be a function of outputs and targets", loss)
    return loss
