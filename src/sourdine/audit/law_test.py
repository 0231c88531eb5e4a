"""Whether two samplers have the same law: Pearson's chi-square over their outcomes.

An audit cannot see a fault that adds noise, or that biases answers without telling neighbours apart. The
comparison with an honest sampler can.
"""

import numpy as np
from scipy.special import chdtrc

from sourdine.audit.outcomes import Integers, Tally, align

_LEAST_CELL = 20  # outcomes of both samples in a cell: about 10 expected of each
_MOST_CELLS = 1000  # more would only spread the evidence


def same_law(one: Tally, other: Tally) -> float:
    """The p-value of the hypothesis that two tallies of equally many outcomes have one law.

    Neighbouring codes are merged until a cell holds enough of both samples together, which says nothing
    about their difference. Then sum (a - b)^2/(a + b) is chi-square with one degree less than cells.

    >>> codes = np.arange(2)
    >>> round(same_law(Tally(codes, np.array([520, 480])), Tally(codes, np.array([480, 520]))), 3)
    0.074
    """
    a, b = align(one, other)
    starts = _cells(a + b)
    if len(starts) == 1:
        return 1.0
    a, b = np.add.reduceat(a, starts), np.add.reduceat(b, starts)
    return float(chdtrc(len(starts) - 1, float(np.sum((a - b) ** 2 / (a + b)))))


def _cells(together: Integers) -> Integers:
    """Where each merged cell starts."""
    sums = np.cumsum(together)
    least = max(_LEAST_CELL, int(sums[-1]) // _MOST_CELLS)
    starts = [0]
    while True:
        before = int(sums[starts[-1] - 1]) if starts[-1] else 0
        following = int(np.searchsorted(sums, before + least)) + 1
        if following >= len(sums) or sums[-1] - sums[following - 1] < least:
            return np.array(starts)
        starts.append(following)
