"""Floats that never understate a cost."""

import math
from fractions import Fraction

from sourdine.core.laws import float_above

__all__ = ["exactly", "float_above", "with_margin"]


def exactly(number: Fraction | float) -> Fraction | float:
    """A finite number as the fraction it is, so that sums and products of it are exact."""
    return number if number == math.inf else Fraction(number)


def with_margin(value: float, size: float = 1.0) -> float:
    """A value pushed up by more than a short computation with numbers of this size can err."""
    return value + 2.0**-44 * (abs(value) + size)
