"""Rows of numbers brought to length 1, each on its own."""

import torch
from torch import Tensor, nn

from sourdine.core import check


class UnitRows(nn.Module):
    """Every row scaled to length 1.

    With `norm`, only rows that are longer are shortened, to that length, and all are divided by it. It looks
    at one row at a time, so it costs nothing. A row with a number that is not finite becomes zero.

    >>> UnitRows()(torch.tensor([[3.0, 4.0], [0.0, 0.0], [float("nan"), 1.0]])).tolist()
    [[0.6..., 0.8...], [0.0, 0.0], [0.0, 0.0]]
    >>> UnitRows(norm=10)(torch.tensor([[3.0, 4.0], [30.0, 40.0]])).tolist()
    [[0.3..., 0.4...], [0.6..., 0.8...]]
    """

    def __init__(self, norm: float | None = None) -> None:
        super().__init__()
        self.norm = None if norm is None else float(check.positive("UnitRows", "norm", norm, 1 << 40))

    def forward(self, rows: Tensor) -> Tensor:
        """The rows in their length."""
        held = rows.to(torch.float64)
        lengths = held.norm(dim=1, keepdim=True)
        by = lengths if self.norm is None else lengths.clamp(min=self.norm)
        fits = torch.isfinite(by) & (by > 0)
        return torch.where(fits, held / torch.where(fits, by, 1.0), 0.0).to(rows)
