"""What processes that train together send each other in a step: clipped sums one way, noisy means back.

Each of the two is one row of numbers, whose last tells whether a process failed: then none goes on, and none
waits for it.
"""

from collections.abc import Mapping
from contextlib import suppress

import torch
from torch import Tensor, nn

from sourdine.learning.devices.processes import Processes, ProcessGone


class GradientExchange:
    """The sums and gradients of the trained parameters of one model, between processes."""

    def __init__(self, processes: Processes, trained: Mapping[str, Tensor]) -> None:
        self._processes, self._trained = processes, trained
        self._sizes = [*(value.numel() for value in trained.values()), 1]
        precise = any(value.dtype == torch.float64 for value in trained.values())
        self._wide = torch.float64 if precise else torch.float32

    def start_alike(self, model: nn.Module) -> None:
        """Give all processes the parameters and buffers of the first."""
        with torch.no_grad():
            for value in (*model.parameters(), *model.buffers()):
                value.copy_(self._processes.spread(value.detach()))

    def sums(self, sums: Mapping[str, Tensor], *, failed: bool = False) -> dict[str, Tensor]:
        """The sums of all processes, in the first; those of the others are empty."""
        mine = [
            sums[name] if name in sums else torch.zeros_like(each) for name, each in self._trained.items()
        ]
        whole = self._processes.add_up(self._row(mine, self._wide, failed=failed))
        if not self._processes.first:
            return {}
        *parts, failures = torch.split(whole, self._sizes)
        if float(failures):
            self.spread_gradients(failed=True)
        return {
            name: part.view_as(value).to(value.device)
            for (name, value), part in zip(self._trained.items(), parts, strict=True)
        }

    def spread_gradients(self, *, failed: bool = False) -> None:
        """Write the noisy gradient of the first process to `.grad` in all of them, unless one failed."""
        values = list(self._trained.values())
        mine = [torch.zeros_like(value) if value.grad is None else value.grad for value in values]
        whole = self._processes.spread(self._row(mine, torch.float32, failed=failed))
        *parts, failures = torch.split(whole, self._sizes)
        if float(failures):
            raise ProcessGone(
                "A process of this training failed in this step, and says itself why. What was paid stays "
                "paid. Start all of them again with the same checkpoint, and the run goes on."
            )
        for value, part in zip(values, parts, strict=True):
            value.grad = part.view_as(value).to(value.device, value.dtype)

    def give_up(self) -> None:
        """Tell the others that this process cannot take its share of a step."""
        with suppress(ProcessGone):
            self.sums({}, failed=True)
            self.spread_gradients()

    @staticmethod
    def _row(values: list[Tensor], dtype: torch.dtype, *, failed: bool) -> Tensor:
        place = values[0].device
        row = [value.detach().reshape(-1).to(place, dtype) for value in values]
        return torch.cat([*row, torch.full((1,), float(failed), dtype=dtype, device=place)])
