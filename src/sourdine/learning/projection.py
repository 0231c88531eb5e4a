"""Fewer numbers in a row: sums with random signs, which come from a hash."""

import hashlib
import math

import numpy as np
import torch
from torch import Tensor, nn

from sourdine.core import check


class Projection(nn.Module):
    """Rows of `width` numbers as rows of `to`, each a sum of all with random signs, divided by sqrt(to).

    Lengths and angles stay what they were, nearly (Johnson, Lindenstrauss 1984; with signs: Achlioptas 2003,
    theorem 1.1). The signs are the same on every machine, so nothing has to be kept beside the settings.

    >>> Projection(1000, 200)(torch.ones(2, 1000)).shape
    torch.Size([2, 200])
    """

    signs: Tensor

    def __init__(self, width: int, to: int, seed: int = 1) -> None:
        super().__init__()
        count = check.integer("Projection", "width", width, 1, 1 << 24) * check.integer(
            "Projection", "to", to, 1, width
        )
        raw = hashlib.shake_256(f"projection {seed} {width} {to}".encode()).digest(-(-count // 8))
        signs = np.unpackbits(np.frombuffer(raw, np.uint8))[:count].astype(np.float32) * 2 - 1
        self.to_width, self.root = to, math.sqrt(to)
        self.register_buffer("signs", torch.from_numpy(signs).view(width, to), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """The shorter rows."""
        return rows @ self.signs.to(rows) / self.root
