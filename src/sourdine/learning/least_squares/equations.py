"""The normal equations of least squares in whole numbers: exact sums that one row moves by a known length.

Each row is brought to length 1, made shorter by sums with random signs (of a hash) where that is asked for,
and rounded to whole steps, by itself to the last bit. Sums of floats round otherwise in another order, and a
matrix product may take another order when there is one row more. A row that moved its neighbours by a last
bit would break the bound on what it moves. So only operations that are exact in any order, or work number by
number, stand between a row and its steps.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.learning.features.extractor import ShowProgress


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
        exact = rows.flatten(1).to(torch.float64)
        largest = exact.abs().amax(1, keepdim=True)
        fits = torch.isfinite(largest) & (largest > 0)
        levels = 2.0 ** self._levels(exact.shape[1])
        whole = torch.where(fits, torch.round(exact / torch.where(fits, largest, 1.0) * levels), 0.0)
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


FINEST, COARSEST = 12, 4  # logarithms of how many steps the length of a row has
MOST_ROWS = 1 << 28  # so many products of the finest steps add up exactly in float64
SHARE = 0.97  # of the length of a row for its features; the rest is for the constant
CONSTANT = math.sqrt(1 - SHARE**2)
_MOST_WIDTH = 1 << 13
_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class NormalEquations:
    """The normal equations of rows of `width` numbers and `classes` classes, before they are noised.

    A row is brought to length 1 at most and given one more number, a constant; then all of it is rounded
    towards zero to whole steps, 2^`fineness` to a length of 1. So a row x with the code y of its class adds
    whole numbers, exactly: the products x x^T, of which the upper triangle counts, and R x y^T, where
    R = 2^fineness. The length of x is at most R, so the triangle moves by at most R^2 in L2, the rest by at
    most R^2 as well, and all together by at most sqrt(2) R^2 when a row is added or removed.

    >>> NormalEquations(width=3, classes=2, fineness=4).distance
    Distance(norm=<Norm.L2: 'L2'>, amount=Fraction(131072, 1), coordinates=18, neighbours=...)
    """

    width: int
    classes: int
    fineness: int = FINEST

    def __post_init__(self) -> None:
        check.keep(self, width=check.integer("NormalEquations", "width", self.width, 1, _MOST_WIDTH))
        check.keep(self, classes=check.integer("NormalEquations", "classes", self.classes, 2, 1 << 14))
        check.keep(
            self, fineness=check.integer("NormalEquations", "fineness", self.fineness, COARSEST, FINEST)
        )

    @property
    def unit(self) -> int:
        """The steps in a length of 1, and the weight of a class."""
        return 1 << self.fineness

    @property
    def distance(self) -> Distance:
        """How far one row moves the sums."""
        inner = self.width + 1
        return Distance.l2(
            square=2 * self.unit**4, coordinates=inner * (inner + 1) // 2 + inner * self.classes
        )

    def sums(
        self, rows: Tensor, targets: Tensor, steps: WholeRows, progress: ShowProgress = iter
    ) -> NDArray[np.int64]:
        """The upper triangle and the columns of the classes, in one line. Exact, and total over any values.

        Whole numbers below 2^53 add up in float64 without rounding, in whatever order.
        """
        inner = self.width + 1
        products = torch.zeros(inner, inner, dtype=torch.float64)
        by_class = torch.zeros(inner, self.classes, dtype=torch.float64)
        for start in progress(range(0, len(rows), _AT_ONCE)):
            some, names = rows[start : start + _AT_ONCE], targets[start : start + _AT_ONCE]
            known = (names >= 0) & (names < self.classes)
            whole = self._steps(steps(some, SHARE * self.unit)) * known[:, None]
            codes = functional.one_hot(torch.where(known, names, 0).long(), self.classes)
            products.addmm_(whole.T, whole)
            by_class.addmm_(whole.T, codes.to(torch.float64), alpha=self.unit)
        triangle = products.numpy()[np.triu_indices(inner)]
        return np.concatenate([triangle, by_class.numpy().ravel()]).astype(np.int64)

    def _steps(self, rows: Tensor) -> Tensor:
        """Rows with the constant; the bound on their length is checked here once more, exactly."""
        constant = rows.new_full((len(rows), 1), math.floor(CONSTANT * self.unit))
        steps = torch.cat([rows, constant], 1)
        fits = steps.square().sum(1) <= self.unit**2
        return torch.where(fits[:, None], steps, 0.0)

    def read(self, sums: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """The matrix and the columns that noisy sums stand for, for rows of length 1."""
        inner = self.width + 1
        count = inner * (inner + 1) // 2
        half = np.zeros((inner, inner))
        half[np.triu_indices(inner)] = sums[:count] / self.unit**2
        matrix = torch.from_numpy(half + np.triu(half, 1).T)
        columns = torch.from_numpy(sums[count:].reshape(inner, self.classes) / self.unit**2)
        return matrix, columns


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
        exact = rows.to(torch.float64)
        lengths = exact.norm(dim=1, keepdim=True)
        by = lengths if self.norm is None else lengths.clamp(min=self.norm)
        fits = torch.isfinite(by) & (by > 0)
        return torch.where(fits, exact / torch.where(fits, by, 1.0), 0.0).to(rows)
