"""A model and its loss: what a batch of examples is asked."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning.loader import Batch
from sourdine.learning.losses import Losses


@dataclass(frozen=True)
class Task:
    """Runs a model on examples where the model lives, in the numbers it computes in."""

    model: nn.Module
    loss: Losses

    def losses(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """One loss for each example, times its weight."""
        outputs, targets = self.outputs(batch)
        found = self.loss(outputs, targets)
        if found.ndim == 1 and len(found) != len(targets):
            raise InvalidParameter(
                f"The loss gave {len(found):,} numbers for {len(targets):,} examples. It must give one for "
                "each, or parts of an example are clipped on their own. Take the mean over its places."
            )
        return found if weights is None else found * weights.to(found)

    def outputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the model gives, and what it should give."""
        *inputs, targets = batch
        like = next(self.model.parameters())
        given = [each.to(like if each.is_floating_point() else like.device) for each in inputs]
        wanted = targets.to(like) if targets.is_floating_point() else targets.to(like.device, torch.int64)
        return self.model(*given), wanted
