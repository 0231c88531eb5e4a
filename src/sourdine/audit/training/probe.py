"""Canaries in gradient space: units whose gradient is one known direction each, far beyond the clipping norm.

They pass through the engine like all others. A table of one number for each canary is trained beside the
model; a canary looks up its own number and nothing else, so that its gradient is that coordinate and no other
unit's gradient touches it. What a step says at that coordinate is the canary, if it was drawn, and noise.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sourdine.audit.training.canaries import HEIGHT
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.batches import Indices
from sourdine.learning.data.examples import Batch, Examples
from sourdine.learning.task import Losses

TABLE = "probe.weight"  # what the table of the canaries is called among the parameters
_NOBODY = 0  # the row of the table that all who are no canaries look up, which never gets a gradient


class Probed(nn.Module):
    """A model with a table of canaries beside it."""

    def __init__(self, model: nn.Module, canaries: int) -> None:
        super().__init__()
        self.model = model
        self.probe = nn.Embedding(canaries + 1, 1, padding_idx=_NOBODY)
        nn.init.zeros_(self.probe.weight)
        like = next(model.parameters())
        self.probe.to(device=like.device, dtype=like.dtype)

    def forward(self, inputs: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.model(inputs), self.probe(rows).squeeze(1), rows


def probed_loss(loss: Losses) -> Callable[[tuple[Tensor, Tensor, Tensor], Tensor], Tensor]:
    """The loss of the model for all others, and the canary's own number for canaries."""

    def losses(outputs: tuple[Tensor, Tensor, Tensor], targets: Tensor) -> Tensor:
        predictions, probes, rows = outputs
        each = loss(predictions, targets)
        if each.ndim != 1 or each.shape != probes.shape:
            return each  # which the engine refuses in its own words
        return each * (rows == _NOBODY).to(each) + HEIGHT * probes

    return losses


class ProbedExamples(Examples):
    """Examples with rows of the table, and canaries after them that look up a row each.

    It notes which places are asked for, until `requests` is emptied: an audit reads the batches there.
    """

    def __init__(self, examples: Examples, rows: Tensor) -> None:
        like = examples.like()
        if len(like) != 2:
            raise InvalidParameter("Canaries need examples of one input and one target each.")
        self._own, self._rows = examples, rows
        self._blank = tuple(torch.zeros_like(each) for each in like)
        self.size = examples.size + len(rows)
        self.requests: list[Indices] = []

    def batch(self, places: Indices) -> Batch:
        self.requests.append(places)
        own, other = places[places < self._own.size], places[places >= self._own.size]
        added = self._rows[torch.from_numpy(other - self._own.size)]
        inputs, targets = (each.expand(len(other), *each.shape[1:]) for each in self._blank)
        if len(own):
            batch = self._own.batch(own)
            inputs, targets = torch.cat((batch[0], inputs)), torch.cat((batch[1], targets))
        return inputs, torch.cat((torch.zeros(len(own), dtype=torch.int64), added)), targets

    def rows_at(self, places: Indices) -> Indices:
        """The rows of the canaries among some places."""
        rows: Indices = self._rows.numpy()[places[places >= self._own.size] - self._own.size]
        return rows

    def like(self) -> Batch:
        inputs, targets = self._own.like()
        return inputs, torch.zeros(1, dtype=torch.int64), targets
