"""The shares of values that quantiles stand for."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from sourdine.core import check

MOST_LEVELS = 999
FINEST = 1 << 20  # the largest denominator of a level, so that ranks in units of one over it stay small


def check_levels(owner: str, levels: Sequence[object], name: str = "levels") -> tuple[Fraction, ...]:
    """Rising levels strictly between 0 and 1, each as the nearest fraction of denominators up to 2^20.

    So 0.1 is a tenth and 1/3 a third, though no float is.
    """
    if not isinstance(levels, tuple | list) or not 1 <= len(levels) <= MOST_LEVELS:
        raise check.fail(owner, name, f"be 1 to {MOST_LEVELS} numbers", levels)
    exact = tuple(nearest(check.inside(owner, name, level, 0, 1)) for level in levels)
    if not all(a < b for a, b in pairwise([Fraction(0), *exact, Fraction(1)])):
        must = "rise from above 0 to below 1, by no less than 2^-20"
        raise check.fail(owner, name, must, [float(level) for level in exact])
    return exact


def nearest(level: Fraction) -> Fraction:
    """The nearest fraction with a denominator up to 2^20."""
    return level.limit_denominator(FINEST)


def shares(levels: Sequence[Fraction]) -> list[Fraction]:
    """What lies before the first level, between two, and after the last."""
    return [b - a for a, b in pairwise([Fraction(0), *levels, Fraction(1)])]
