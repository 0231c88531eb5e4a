"""Floats that never understate a cost."""

import math
from fractions import Fraction

_FLOATS = Fraction(2) ** 1023


def float_above(number: Fraction | float) -> float:
    """The least float that is not below a number.

    >>> float_above(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    if isinstance(number, float):
        return number
    if number >= _FLOATS:
        return math.inf
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def exactly(number: Fraction | float) -> Fraction | float:
    """A finite number as the fraction it is, so that sums and products of it are exact."""
    return number if number == math.inf else Fraction(number)


def with_margin(value: float, size: float = 1.0) -> float:
    """A value pushed up by more than a short computation with numbers of this size can err."""
    return value + 2.0**-44 * (abs(value) + size)
