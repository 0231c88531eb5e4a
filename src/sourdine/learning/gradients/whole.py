"""Clipped gradients as whole numbers, of which each example's length is checked exactly.

A gradient that was clipped in floats is cut to a grid of 2^20 steps to the clipping norm, towards zero, and
counts if the squares of its steps add up to at most (2^20)^2; otherwise it counts as zeros. That comparison
and the sum over examples are exact, in whatever order a library adds up: of whole numbers that are not
negative, floats round no sum that stays below 2^53, and none that is above to less than 2^53. So the sum of
a batch moves by at most 2^20 steps when an example comes or goes, whatever floats did before.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.per_example import PerExample
from sourdine.learning.noise.noisy_gradient import GRID_STEPS

_AT_ONCE = 1 << 20  # numbers whose squares are made at a time


def whole_sum(
    parts: Mapping[str, PerExample],
    layers: Mapping[str, str],
    clipping: Clipping,
    counted: Tensor | None = None,
) -> dict[str, Tensor]:
    """The clipped gradients of some examples in steps of the grid, added up: 64-bit integers by parameter.

    `layers` says which layer a parameter belongs to, and `counted` which examples count at all.
    """
    rows = {name: part.whole().flatten(1).float() for name, part in parts.items()}
    first = next(iter(rows.values()))
    # a layer that this batch leaves out stays one of those among which a norm is shared
    squares = dict.fromkeys(
        layers.values(), torch.zeros(len(first), dtype=torch.float64, device=first.device)
    )
    for name, each in rows.items():
        square = torch.linalg.vector_norm(each, dim=1, dtype=torch.float64).square()
        squares[layers[name]] = squares[layers[name]] + square
    weights = clipping.weights(squares)
    steps = GRID_STEPS / clipping.norm
    for name, each in rows.items():  # not in place: two layers may have been given one gradient
        rows[name] = torch.mul(each, (weights[layers[name]] * steps).float().unsqueeze(1)).trunc_()
    short = torch.stack([_exact_squares(each) for each in rows.values()]).sum(0) <= GRID_STEPS**2
    if counted is not None:
        short &= counted
    dropped = ~short.unsqueeze(1)
    return {
        name: each.masked_fill_(dropped, 0).sum(0, dtype=torch.float64).to(torch.int64)
        for name, each in rows.items()
    }


def _exact_squares(rows: Tensor) -> Tensor:
    """The sum of the squares of whole numbers, row by row, wherever it is below 2^53; not less elsewhere."""
    size = max(1, _AT_ONCE // max(1, len(rows)))
    total = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    for start in range(0, rows.shape[1], size):
        total += rows[:, start : start + size].double().square_().sum(1)
    return total
