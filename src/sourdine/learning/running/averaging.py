"""The average of the parameters over the steps, which is less noisy than the last of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from sourdine.core import check


class Average:
    """Parameters averaged with weights that fade by `decay` a step; early on they fade faster.

    It reads only what was noised already, so it costs nothing.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = model.weight.data.fill_(0.0)
    >>> average = Average(model, 0.5)
    >>> _ = model.weight.data.fill_(11.0)
    >>> average.take()
    >>> with average.applied():
    ...     round(model.weight.item(), 4)
    10.0
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = float(check.inside("fit", "averaging", decay, 0, 1))
        self._live = [value for value in model.parameters() if value.requires_grad]
        self.values = [value.detach().clone() for value in self._live]
        self.count = 0

    def take(self) -> None:
        """Let the parameters of a step count."""
        self.count += 1
        weight = min(self.decay, self.count / (10 + self.count))
        with torch.no_grad():
            torch._foreach_lerp_(self.values, [value.detach() for value in self._live], 1 - weight)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model has its average for parameters while the block lasts."""
        last = [value.detach().clone() for value in self._live]
        self._put(self.values)
        try:
            yield
        finally:
            self._put(last)

    def keep(self) -> None:
        """The average becomes the model's parameters."""
        self._put(self.values)

    def state(self) -> dict[str, object]:
        """What a checkpoint holds of it."""
        return {"count": self.count, "held": self.values}

    def load(self, count: int, values: list[Tensor]) -> None:
        """Go on from a state."""
        self.count = count
        for mine, value in zip(self.values, values, strict=True):
            mine.copy_(value)

    def _put(self, values: list[Tensor]) -> None:
        with torch.no_grad():
            for live, value in zip(self._live, values, strict=True):
                live.copy_(value)
