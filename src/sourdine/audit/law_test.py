"""Whether two samplers have the same law: Pearson's chi-square over their outcomes.

An audit cannot see a fault that adds noise, or that biases answers without telling neighbours apart. The
comparison with another sampler of the same law can.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr, bdtrc, chdtrc

from sourdine.audit.outcomes import Integers, Tally, align

_LEAST_CELL = 20  # outcomes of both samples in a cell: about 10 expected of each
_CELLS = (1000, 12)  # at most: many of them see a fault somewhere, and few see a slight one everywhere


def same_law(one: Tally, other: Tally) -> float:
    """The p-value of the hypothesis that two tallies have one law.

    >>> codes = np.arange(2)
    >>> round(same_law(Tally(codes, np.array([520, 480])), Tally(codes, np.array([480, 520]))), 3)
    0.221
    """
    return same_laws([(one, other)])


def same_laws(pairs: Sequence[tuple[Tally, Tally]]) -> float:
    """The p-value of the hypothesis that each of several pairs has one law: what all of them say together.

    Neighbouring codes are merged until a cell holds enough of both samples together, which says nothing
    about their difference. Then the sum of (a sqrt(m/n) - b sqrt(n/m))^2/(a + b), for samples of n and m, is
    chi-square with one degree less than cells (Press et al. 2007, section 14.3), and the sum over pairs with
    the sum of the degrees. Cells are made twice, many and few. And the code that is farthest off is tested by
    itself: what is rare would be lost in a cell. The least of the three p-values counts three times.
    """
    found = [_tested(pairs, most) for most in _CELLS]
    alone = min(_farthest(*align(one, other)) for one, other in pairs)
    return min(1.0, (1 + len(_CELLS)) * min(*found, len(pairs) * alone))


def _farthest(a: Integers, b: Integers) -> float:
    """The p-value of the code that is farthest off, among so many: given a + b, a is binomial."""
    share = a.sum() / (a.sum() + b.sum())
    below, above = bdtr(a, a + b, share), bdtrc(a - 1, a + b, share)
    return 2 * len(a) * float(np.minimum(below, np.where(a > 0, above, 1.0)).min())


def _tested(pairs: Sequence[tuple[Tally, Tally]], most: int) -> float:
    total, degrees = 0.0, 0
    for one, other in pairs:
        a, b = align(one, other)
        starts = _cells(a + b, most)
        a, b = np.add.reduceat(a, starts), np.add.reduceat(b, starts)
        ratio = float(np.sqrt(b.sum() / a.sum()))
        total += float(np.sum((a * ratio - b / ratio) ** 2 / (a + b)))
        degrees += len(starts) - 1
    return float(chdtrc(degrees, total)) if degrees else 1.0


def _cells(together: Integers, most: int) -> Integers:
    """Where each merged cell starts."""
    sums = np.cumsum(together)
    least = max(_LEAST_CELL, int(sums[-1]) // most)
    starts = [0]
    while True:
        before = int(sums[starts[-1] - 1]) if starts[-1] else 0
        following = int(np.searchsorted(sums, before + least)) + 1
        if following >= len(sums) or sums[-1] - sums[following - 1] < least:
            return np.array(starts)
        starts.append(following)
