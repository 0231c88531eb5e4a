"""A model and its loss for each example: what a batch is asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.examples import Batch

Losses = Callable[[Tensor, Tensor], Tensor]
_PLACES_FIRST = (
    "The model gives scores of all classes at each place, as a language model does, and the default loss "
    "takes classes on the second axis and does not shift. If each place is to predict the next token, pass "
    "loss=lambda scores, tokens: functional.cross_entropy(scores[:, :-1].transpose(1, 2), tokens[:, 1:], "
    "reduction='none').mean(1); if it has a label of its own, the same without the two slices."
)


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Minus the logarithm of the chance given to the true class, for each example.

    With more axes than one class an example, their mean. A label that names no class counts nothing: an
    error would tell that it is there.

    >>> [round(float(each), 3) for each in cross_entropy(torch.zeros(2, 4), torch.tensor([1, 9]))]
    [1.386, 0.0]
    """
    if outputs.ndim == 3 and targets.shape == outputs.shape[:2] and outputs.shape[1] != outputs.shape[2]:
        raise InvalidParameter(_PLACES_FIRST)
    known = (targets >= 0) & (targets < outputs.shape[1])
    losses = functional.cross_entropy(outputs, torch.where(known, targets, 0), reduction="none")
    known_losses = torch.where(known, losses, torch.zeros_like(losses))
    return known_losses if known_losses.ndim == 1 else known_losses.flatten(1).mean(1)


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


@dataclass(frozen=True)
class Task:
    """Runs a model on examples where the model lives, in the numbers it computes in."""

    model: nn.Module
    loss: Losses
    autocast: torch.dtype | None = None  # what layers compute in, if not in what parameters are made of
    names: tuple[str, ...] | None = None  # of the model's arguments, if examples are dicts

    def losses(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """One loss for each example, times its weight."""
        outputs, targets = self.outputs(batch)
        if self.names is not None and self.loss is cross_entropy and outputs.ndim == targets.ndim + 1 == 3:
            raise InvalidParameter(_PLACES_FIRST)  # also where there are as many places as classes
        losses = self.loss(outputs, targets)
        if losses.ndim == 1 and len(losses) != len(targets):
            raise InvalidParameter(
                f"The loss gave {len(losses):,} numbers for {len(targets):,} examples. It must give one for "
                "each, or parts of an example are clipped on their own. Take the mean over its places."
            )
        return losses if weights is None else losses * weights.to(losses)

    def outputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the model gives, and what it should give."""
        *inputs, targets = batch
        like = next(self.model.parameters())
        tensors = [each.to(like if each.is_floating_point() else like.device) for each in inputs]
        wanted = targets.to(like) if targets.is_floating_point() else targets.to(like.device, torch.int64)
        with torch.autocast(like.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            if self.names is None:
                outputs = self.model(*tensors)
            else:
                outputs = _logits(self.model(**dict(zip(self.names, tensors, strict=True))))
        if self.autocast is not None and isinstance(outputs, Tensor):
            outputs = outputs.to(like.dtype)
        return outputs, wanted


def _logits(outputs: object) -> Tensor:
    """The scores among named outputs, as models that take dicts give them; else what was given."""
    named = isinstance(outputs, Mapping) and "logits" in outputs
    return outputs["logits"] if named else outputs  # type: ignore[index,return-value]
