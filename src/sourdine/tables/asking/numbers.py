"""Numbers that a question in Python names: arithmetic on them, and what can be asked of them."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sourdine.frames.expressions import (
    Absolute,
    Add,
    Among,
    BinOf,
    Ceiling,
    Clamp,
    Coalesce,
    Constant,
    Divide,
    Expression,
    Floor,
    Greatest,
    Least,
    Logarithm,
    Multiply,
    Negate,
    NullIf,
    Power,
    Root,
    Subtract,
)
from sourdine.tables.asking.asked import AskedOf
from sourdine.tables.asking.values import AskedKeys, AskedOrdered, AskedTruth


class AskedNumber(AskedOrdered):
    """Numbers between declared bounds."""

    def _number(self, tree: Expression) -> "AskedNumber":
        return AskedNumber(tree, self.kinds)

    def __add__(self, other: object) -> "AskedNumber":
        return self._number(Add(self.tree, self._of(other)))

    def __radd__(self, other: object) -> "AskedNumber":
        return self._number(Add(self._of(other), self.tree))

    def __sub__(self, other: object) -> "AskedNumber":
        return self._number(Subtract(self.tree, self._of(other)))

    def __rsub__(self, other: object) -> "AskedNumber":
        return self._number(Subtract(self._of(other), self.tree))

    def __mul__(self, other: object) -> "AskedNumber":
        return self._number(Multiply(self.tree, self._of(other)))

    def __rmul__(self, other: object) -> "AskedNumber":
        return self._number(Multiply(self._of(other), self.tree))

    def __truediv__(self, other: object) -> "AskedNumber":
        return self._number(Divide(self.tree, self._of(other)))

    def __rtruediv__(self, other: object) -> "AskedNumber":
        return self._number(Divide(self._of(other), self.tree))

    def __neg__(self) -> "AskedNumber":
        return self._number(Negate(self.tree))

    def __abs__(self) -> "AskedNumber":
        return self._number(Absolute(self.tree))

    def __pow__(self, exponent: int) -> "AskedNumber":
        return self._number(Power(self.tree, exponent))

    def floor(self) -> "AskedNumber":
        """The whole number at it or below."""
        return self._number(Floor(self.tree))

    def ceil(self) -> "AskedNumber":
        """The whole number at it or above."""
        return self._number(Ceiling(self.tree))

    def ln(self) -> "AskedNumber":
        """The natural logarithm."""
        return self._number(Logarithm(self.tree))

    def sqrt(self) -> "AskedNumber":
        """The square root."""
        return self._number(Root(self.tree))

    def clamp(self, lower: float, upper: float) -> "AskedNumber":
        """The same within closer bounds."""
        return self._number(Clamp(self.tree, lower, upper))

    def nullif(self, value: float) -> "AskedNumber":
        """The same, missing where it is a value."""
        return self._number(NullIf(self.tree, Constant(value)))

    def fill(self, value: float) -> "AskedNumber":
        """The same, a value where it is missing."""
        return self._number(Coalesce((self.tree, Constant(value))))

    def least(self, *others: object) -> "AskedNumber":
        """The least of it and others."""
        return self._number(Least((self.tree, *map(self._of, others))))

    def greatest(self, *others: object) -> "AskedNumber":
        """The greatest of it and others."""
        return self._number(Greatest((self.tree, *map(self._of, others))))

    def is_in(self, *numbers: int | float | Fraction) -> AskedTruth:
        """Whether it is one of some numbers."""
        return self._truth(Among(self.tree, numbers))  # type: ignore[arg-type]

    def bins(self, edges: Sequence[float], labels: Sequence[str] = ()) -> "AskedKeys":
        """The bin that it lies in, to group by."""
        return AskedKeys(BinOf(self.tree, tuple(edges), tuple(labels)), self.kinds)

    def sum(self) -> AskedOf:
        """The sum."""
        return AskedOf("sum", {"column": self.tree})

    def mean(self) -> AskedOf:
        """The mean."""
        return AskedOf("mean", {"column": self.tree})

    def variance(self) -> AskedOf:
        """The variance."""
        return AskedOf("variance", {"column": self.tree})

    def std_dev(self) -> AskedOf:
        """The standard deviation."""
        return AskedOf("deviation", {"column": self.tree})

    def quantiles(self, *levels: float | Sequence[float], method: str = "auto") -> AskedOf:
        """Quantiles at some levels, such as 0.25, 0.5, 0.75, or a list of them."""
        if len(levels) == 1 and isinstance(levels[0], Sequence | np.ndarray):
            levels = tuple(map(float, levels[0]))
        return AskedOf("quantiles", {"column": self.tree}, {"levels": levels, "method": method})

    def median(self) -> AskedOf:
        """The median."""
        return self.quantiles(0.5)

    def histogram(self, edges: Sequence[float]) -> AskedOf:
        """How many records lie in each bin."""
        return AskedOf("histogram", {"column": self.tree}, {"edges": tuple(edges)})

    def covariance(self, other: "AskedNumber") -> AskedOf:
        """The covariance with another column."""
        return AskedOf("covariance", {"column": self.tree, "other": self._of(other)})

    def correlation(self, other: "AskedNumber") -> AskedOf:
        """The correlation with another column."""
        return AskedOf("correlation", {"column": self.tree, "other": self._of(other)})

    def regression(self, on: "AskedNumber") -> AskedOf:
        """The line of least squares on another column."""
        return AskedOf("regression", {"column": self.tree, "other": self._of(on)})

    def weighted_mean(self, weight: "AskedNumber") -> AskedOf:
        """The mean by weights."""
        return AskedOf("weighted_mean", {"column": self.tree, "weight": self._of(weight)})

    def weighted_sum(self, weight: "AskedNumber") -> AskedOf:
        """The sum by weights."""
        return AskedOf("weighted_sum", {"column": self.tree, "weight": self._of(weight)})
