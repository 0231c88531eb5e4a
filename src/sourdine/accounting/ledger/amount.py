"""Amounts of a budget: exact sums that stay short, and their text."""

import math
import re
from fractions import Fraction
from functools import lru_cache

UNLIMITED = Fraction(1 << 40)  # the limit of a ledger that has none
_LONGEST = 512  # bits of a denominator; longer sums leave the exact ones for a fine grid
_GRID = 1 << 256
_TEXT = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")


def add(first: Fraction, second: Fraction) -> Fraction:
    """The sum, exact while its denominator is short, else rounded up to a multiple of 2^-256.

    Noise scales given as floats have denominators with no common factor: a few hundred of them would make a
    total of thousands of digits.

    >>> add(Fraction(1, 20), Fraction(1, 30))
    Fraction(1, 12)
    """
    total = first + second
    if total.denominator.bit_length() <= _LONGEST:
        return total
    return Fraction(math.ceil(total * _GRID), _GRID)


def amount(text: object) -> Fraction:
    """The number that a text such as '3/4' holds; a ValueError for anything else.

    Fraction itself reads '1e999999999' too, and computes for hours.
    """
    if not isinstance(text, str):
        raise ValueError("not an amount")
    return _amount(text)


@lru_cache(maxsize=1024)
def _amount(text: str) -> Fraction:
    """The same; most charges of a ledger cost what others did."""
    if not _TEXT.fullmatch(text):
        raise ValueError("not an amount")
    above, _, below = text.partition("/")
    if below and not int(below):
        raise ValueError("not an amount")
    return Fraction(int(above), int(below or 1))
