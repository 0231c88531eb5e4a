"""The normal equations of least squares in whole numbers: exact sums that one row moves by a known length."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.learning.extractor import Watch
from sourdine.learning.whole_rows import WholeRows

FINEST, COARSEST = 12, 4  # logarithms of how many steps the length of a row has
MOST_ROWS = 1 << 28  # so many products of the finest steps add up exactly in float64
SHARE = 0.97  # of the length of a row for its features; the rest is for the constant
CONSTANT = math.sqrt(1 - SHARE**2)
_MOST_WIDTH = 1 << 13
_AT_ONCE = 4096


@dataclass(frozen=True, kw_only=True)
class Equations:
    """The normal equations of rows of `width` numbers and `classes` classes, before they are noised.

    A row is brought to length 1 at most and given one more number, a constant; then all of it is rounded
    towards zero to whole steps, 2^`fineness` to a length of 1. So a row x with the code y of its class adds
    whole numbers, exactly: the products x x^T, of which the upper triangle counts, and R x y^T, where
    R = 2^fineness. The length of x is at most R, so the triangle moves by at most R^2 in L2, the rest by at
    most R^2 as well, and all together by at most sqrt(2) R^2 when a row is added or removed.

    >>> Equations(width=3, classes=2, fineness=4).distance
    Distance(norm=<Norm.L2: 'L2'>, amount=Fraction(131072, 1), coordinates=18, neighbours=...)
    """

    width: int
    classes: int
    fineness: int = FINEST

    def __post_init__(self) -> None:
        check.keep(self, width=check.integer("Equations", "width", self.width, 1, _MOST_WIDTH))
        check.keep(self, classes=check.integer("Equations", "classes", self.classes, 2, 1 << 14))
        check.keep(self, fineness=check.integer("Equations", "fineness", self.fineness, COARSEST, FINEST))

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

    def sums(self, rows: Tensor, targets: Tensor, steps: WholeRows, watch: Watch = iter) -> NDArray[np.int64]:
        """The upper triangle and the columns of the classes, in one line. Exact, and total over any values.

        Whole numbers below 2^53 add up in float64 without rounding, in whatever order.
        """
        inner = self.width + 1
        products = torch.zeros(inner, inner, dtype=torch.float64)
        by_class = torch.zeros(inner, self.classes, dtype=torch.float64)
        for start in watch(range(0, len(rows), _AT_ONCE)):
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
