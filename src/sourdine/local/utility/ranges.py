"""Ranges of epsilon on a logarithmic scale, in round numbers."""

import math
from fractions import Fraction

from sourdine.core import check

MOST_POINTS = 100
_FEWEST, _NARROW = 4, 5
_ROUND = (1, 2, 5)
_OWNER = "a range of epsilon"


def epsilon_range(
    lower: Fraction | float | str, upper: Fraction | float | str, points: int | None = None
) -> tuple[Fraction, ...]:
    """Epsilons from lower to upper: 1, 2 and 5 of every power of ten, or so many points, evenly by ratio.

    A range too narrow for that has five points. Both ends are in it as they are; what is between has three
    digits.

    >>> [str(each) for each in epsilon_range("0.1", 10)]
    ['1/10', '1/5', '1/2', '1', '2', '5', '10']
    >>> [float(each) for each in epsilon_range(1, 2)], [float(each) for each in epsilon_range(1, 100, 3)]
    ([1.0, 1.19, 1.41, 1.68, 2.0], [1.0, 10.0, 100.0])
    """
    low, high = check.positive(_OWNER, "lower", _exact(lower)), check.positive(_OWNER, "upper", _exact(upper))
    if not low < high:
        raise check.fail(_OWNER, "upper", "be above its lower end", float(high))
    if points is None:
        powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
        between = [k * Fraction(10) ** power for power in powers for k in _ROUND]
        inner = [each for each in between if low < each < high]
        if len(inner) + 2 >= _FEWEST:
            return (low, *inner, high)
        points = _NARROW
    count = check.integer(_OWNER, "points", points, 2, MOST_POINTS)
    ratio = float(high / low)
    inner = [Fraction(f"{float(low) * ratio ** (k / (count - 1)):.3g}") for k in range(1, count - 1)]
    return (low, *dict.fromkeys(each for each in inner if low < each < high), high)


def _exact(value: Fraction | float | str) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
