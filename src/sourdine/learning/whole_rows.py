"""Rows of numbers as whole steps, each row by itself to the last bit.

Sums of floats round otherwise in another order, and a matrix product may take another order when there is
one row more. A row that moved its neighbours by a last bit would break the bound on what it moves. So only
operations that are exact in any order, or work number by number, stand between a row and its steps.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sourdine.learning.projection import Projection

_LEVELS = 14  # logarithm of how many levels the largest number of a row has, where there is room


@dataclass(frozen=True, kw_only=True)
class WholeRows:
    """Rows brought to a length of 1 at most, in steps of 1/unit, rounded towards zero.

    Without `norm` every row gets length 1; with it, rows longer than that are shortened to it, and all are
    divided by it. A row with a number that is not finite becomes zero.

    >>> rows = torch.tensor([[3.0, 4.0], [0.0, 0.0], [float("nan"), 1.0]])
    >>> WholeRows()(rows, 100).tolist()
    [[60.0, 80.0], [0.0, 0.0], [0.0, 0.0]]
    """

    projection: Projection | None = None
    norm: float | None = None

    def __call__(self, rows: Tensor, unit: float) -> Tensor:
        held = rows.flatten(1).to(torch.float64)
        largest = held.abs().amax(1, keepdim=True)
        fits = torch.isfinite(largest) & (largest > 0)
        levels = 2.0 ** self._levels(held.shape[1])
        whole = torch.where(fits, torch.round(held / torch.where(fits, largest, 1.0) * levels), 0.0)
        by = largest / levels
        if self.projection is not None:
            whole = whole @ self.projection.signs.to(whole)  # whole numbers below 2^53: exact
            by = by / self.projection.root
        length = whole.to(torch.int64).square().sum(1, keepdim=True).to(torch.float64).sqrt()
        if self.norm is not None:
            length = torch.maximum(length, self.norm / torch.where(fits, by, 1.0))
        some = torch.isfinite(length) & (length > 0)
        return torch.where(some, torch.trunc(whole / torch.where(some, length, 1.0) * unit), 0.0)

    def _levels(self, width: int) -> int:
        """As many that the squares of a projected row add up within 62 bits."""
        if self.projection is None:
            return min(_LEVELS, (62 - width.bit_length()) // 2)
        return min(_LEVELS, (62 - self.projection.to_width.bit_length()) // 2 - width.bit_length())
