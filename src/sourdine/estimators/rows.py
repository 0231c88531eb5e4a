"""Rows of features as whole numbers: each read by itself, to the last bit, and none longer than a known
length.

Sums of floats round otherwise in another order, and a product of matrices may take another order when there
is one row more. So a row becomes whole numbers first, by operations that work number by number or are exact
in any order; what is summed afterwards are whole numbers below 2^53, and no row changes how another is read.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.errors import InvalidParameter

Floats = NDArray[np.float64]
Pair = tuple[float, float]

MOST_COLUMNS = 1 << 13
MOST_ROWS = 1 << 28  # so many products of two rows add up exactly in float64
AT_ONCE = 1 << 13
_LEVELS = 1 << 16  # of a number, before its row is brought to its length
_FAR = 1e300
_MARGIN = 1 - 2.0**-40  # what the roundings on the way to a length can add, many times over


@dataclass(frozen=True, kw_only=True)
class RowRule:
    """What is declared of a row of `width` numbers: bounds of each, a length of all, or both.

    Numbers are clamped to their bounds and brought to [-1, 1], so that a row is at most sqrt(width) long;
    where a `norm` is declared, rows that are longer are shortened to it. Then all are divided by that length.
    What is not a number counts as the middle of its bounds, or as 0 without bounds.

    >>> RowRule.declared("Example", 2, bounds=(0, 10)).scaled([[10, 5], [0, float("nan")]]).tolist()
    [[0.7071..., 0.0], [-0.7071..., 0.0]]
    >>> RowRule.declared("Example", 2, norm=5).scaled([[3, 4], [30, 40]]).round(3).tolist()
    [[0.6, 0.8], [0.6, 0.8]]
    """

    width: int
    bounds: tuple[Pair, ...] | None = None
    norm: float | None = None

    @classmethod
    def declared(
        cls, owner: str, width: int, *, bounds: object = None, norm: float | None = None
    ) -> "RowRule":
        """The rule of a declaration: one pair of bounds for all columns, or a pair for each."""
        if bounds is None and norm is None:
            raise InvalidParameter(
                f"{owner} has no bounds. They are never read from the data, which would tell of them. "
                "Declare what values can be, as in bounds=(0, 100), or a pair for each column."
            )
        many = check.integer(owner, "columns", width, 1, MOST_COLUMNS)
        if norm is not None:
            norm = float(check.positive(owner, "norm", norm, 1 << 60))
        return cls(width=many, bounds=None if bounds is None else pairs(owner, bounds, many), norm=norm)

    @property
    def radius(self) -> float:
        """The length that all rows are divided by."""
        return math.sqrt(self.width) if self.norm is None else self.norm

    def spread(self, values: ArrayLike) -> Floats:
        """Every number between -1 and 1 by its bounds, or as it is; 0 for what is none."""
        numbers = real_rows(values, self.width)
        if self.bounds is not None:
            lower, upper = (np.array(ends) for ends in zip(*self.bounds, strict=True))
            middle, half = lower / 2 + upper / 2, upper / 2 - lower / 2
            with np.errstate(over="ignore", invalid="ignore"):
                numbers = (np.clip(numbers, lower, upper) - middle) / half
        return np.where(np.isnan(numbers), 0.0, numbers)

    def whole(self, values: ArrayLike, unit: float) -> Floats:
        """Whole numbers, `unit` of them to the radius, rounded towards zero: no row is longer than `unit`."""
        spread = np.clip(self.spread(values), -_FAR, _FAR)
        within = np.maximum(np.abs(spread).max(axis=1, keepdims=True), self.radius)  # of a row by itself
        levels = np.rint(spread / within * _LEVELS)
        squares = np.square(levels).sum(axis=1, keepdims=True)  # whole numbers below 2^53, in any order
        length = np.maximum(np.sqrt(squares), self.radius / within * _LEVELS)
        return np.asarray(np.trunc(levels / length * (unit * _MARGIN)), np.float64)

    def scaled(self, values: ArrayLike) -> Floats:
        """The same as fractions of the radius, for a model that is used."""
        return self.whole(values, float(1 << 30)) / (1 << 30)


def real_rows(values: ArrayLike, width: int) -> Floats:
    """A matrix of floats; an item that is no number becomes NaN, and is no error, which would tell of it."""
    array = grid.numbers(values)
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidParameter(
            f"Rows of {width} numbers are wanted, one below the other, and each has the shape "
            f"{array.shape[1:]}. Pass a matrix with a row a record."
        )
    if array.dtype == np.object_:
        return np.array([_float(item) for item in array.flat], np.float64).reshape(array.shape)
    if array.dtype.kind not in "fiub":
        raise InvalidParameter(
            f"The columns hold {array.dtype}, which are not numbers. Encode them first, as with Binner."
        )
    with np.errstate(over="ignore"):  # a warning would tell of a value
        return array.astype(np.float64)


def _float(item: object) -> float:
    """One item of a mixed array; NaN for what is no number.

    >>> [_float(item) for item in (3, "3", None, Fraction(10**400), -(10**400), Decimal("sNaN"))]
    [3.0, nan, nan, inf, -inf, nan]
    """
    if isinstance(item, np.timedelta64):  # derived from NumPy's integers
        return math.nan
    if not isinstance(item, int | float | Fraction | Decimal | np.number | np.bool_):
        return math.nan
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan


def pairs(owner: str, bounds: object, width: int) -> tuple[Pair, ...]:
    """Declared bounds, a pair a column.

    >>> pairs("Example", (0, 1), 2)
    ((0.0, 1.0), (0.0, 1.0))
    """
    listed = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise check.fail(owner, "bounds", "be a pair of numbers, or one for each column", bounds)
    if len(listed) == 2 and not any(isinstance(each, Sequence | np.ndarray) for each in listed):
        return (one_pair(owner, listed),) * width
    if len(listed) != width:
        raise InvalidParameter(
            f"There are bounds for {len(listed):,} columns, and {width:,} columns. Declare bounds for each "
            "column, in their order, or one pair for all."
        )
    return tuple(one_pair(owner, each) for each in listed)


def one_pair(owner: str, ends: object) -> Pair:
    """A lower bound and an upper one above it."""
    listed = ends.tolist() if isinstance(ends, np.ndarray) else ends
    if not isinstance(listed, Sequence) or isinstance(listed, str) or len(listed) != 2:
        raise check.fail(owner, "bounds", "be pairs of a lower and an upper bound", ends)
    numbers = [check.rational(owner, "bounds", end) for end in listed]
    if max(abs(number) for number in numbers) > 1 << 500:
        raise check.fail(owner, "bounds", "lie within 2^500 of 0", ends)
    lower, upper = (float(number) for number in numbers)
    if upper / 2 - lower / 2 <= float(Fraction(1, 1 << 500)):
        raise check.fail(owner, "bounds", "rise", ends, "Give the lower one first.")
    return lower, upper
