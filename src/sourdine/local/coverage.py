"""How surely a share of yes lies near its mean: exact binomial probabilities, and how many people are enough.

S people of n say yes, each with the same probability, the rate, on their own. Nothing here is approximate but
for the rounding of floats, which `_SLACK` is far above.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from sourdine.local.estimate import deviations

Floats = NDArray[np.float64]
MOST = 1 << 20  # people up to which every rate is looked at
_SLACK = 1e-12
_STEPS = 10  # a search goes on by 2^-10 of what it has reached
_NEAR = 64  # rates looked at first, where it usually fails


def coverage(rates: ArrayLike, reach: float, people: int) -> Floats:
    """P[|S/n - rate| <= reach] for each rate.

    >>> float(coverage(0.5, 0.25, 2))
    0.5
    """
    rate = np.asarray(rates, float)
    low = np.ceil(people * (rate - reach) - _SLACK * people)
    high = np.floor(people * (rate + reach) + _SLACK * people)
    return _within(low, high, rate, people)


def least_coverage(low: float, high: float, reach: float, people: int) -> float:
    """The least of P[|S/n - rate| <= reach] over all rates from low to high.

    While the rate moves and the counts that are near enough stay the same, g to h, their probability rises
    and then falls: its derivative has the sign of P[S' = g - 1] - P[S' = h] for n - 1 people, whose ratio
    falls in the rate. So it is least where these counts change, just beyond k/n + reach or just before
    k/n - reach, or at an end of the range (Chen 2007).
    """
    ends = coverage(np.array([low, high]), reach, people)
    return float(min([ends.min(), *(each.min() for each in _changes(low, high, reach, people) if each.size)]))


def enough_people(low: float, high: float, reach: float, confidence: float) -> int | None:
    """People with whom the share of yes lies within reach of its rate that surely, whatever the rate.

    Going up from the normal approximation, the first number found at which `least_coverage` reaches the
    confidence; the search leaves out at most one number in a thousand. None if it takes more than 2^20.
    """
    middle = min(max(0.5, low), high)
    people = max(1, math.floor(middle * (1 - middle) * (deviations(confidence) / reach) ** 2))
    near = _NEAR / 2
    while people <= MOST:
        nearest = max(low, middle - near / people), min(high, middle + near / people)
        wanted = confidence + _SLACK
        if least_coverage(*nearest, reach, people) >= wanted <= least_coverage(low, high, reach, people):
            return people
        people += 1 + (people >> _STEPS)
    return None


def surely_enough(reach: float, confidence: float) -> int:
    """The same by Hoeffding 1963, theorem 2, and for more people too: ln(2/(1 - confidence))/(2 reach^2)."""
    return math.ceil(math.log(2 / (1 - confidence)) / (2 * reach**2))


def sure_reach(people: int, confidence: float) -> float:
    """What the share of yes surely lies within of its rate, by the same theorem."""
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * people))


def _changes(low: float, high: float, reach: float, people: int) -> tuple[Floats, Floats]:
    """The probabilities where counts leave (from below) or are yet to join (from above)."""
    wide = math.floor(2 * reach * people * (1 - _SLACK))
    left = _between(low - reach, high - reach, people)
    right = _between(low + reach, high + reach, people)
    return (
        _within(left + 1, left + wide, left / people + reach, people),
        _within(right - wide, right - 1, right / people - reach, people),
    )


def _between(low: float, high: float, people: int) -> Floats:
    """The counts whose shares lie between two."""
    return np.arange(max(0, math.ceil(low * people)), min(people, math.floor(high * people)) + 1, dtype=float)


def _within(low: Floats, high: Floats, rate: Floats, people: int) -> Floats:
    """P[low <= S <= high], as what both tails leave."""
    rate = np.clip(rate, 0.0, 1.0)
    below = betainc(people - np.maximum(low, 1) + 1, np.maximum(low, 1), 1 - rate)
    above = betainc(np.minimum(high, people - 1) + 1, people - np.minimum(high, people - 1), rate)
    tails = np.where(low > 0, below, 0.0) + np.where(high < people, above, 0.0)
    return np.where(low > high, 0.0, np.maximum(0.0, 1 - tails))
