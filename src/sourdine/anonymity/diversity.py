"""How varied the sensitive values of each class are: (alpha, k) and three kinds of l.

Every function gives one figure a class, in which a class without any known value counts as perfect: nothing
can be learnt from it. The figure of a table is that of its worst class.
"""

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.classes import Cells
from sourdine.core import check

Figures = NDArray[np.float64]


def alpha_of(cells: Cells) -> Figures:
    """The share of the most frequent value: alpha of (alpha, k)-anonymity, for every value alike.

    alpha = max_s P(s | class) (Wong, Li, Fu, Wang 2006).

    >>> import numpy as np
    >>> from sourdine.anonymity.classes import cells_from
    >>> cells = cells_from(np.array([0, 1, 3]), np.array([3, 1, 2]), classes=2, values=2)
    >>> alpha_of(cells)
    array([0.75, 1.  ])
    """
    worst = np.zeros(len(cells.known))
    np.maximum.at(worst, cells.place, cells.share)
    return worst


def distinct_of(cells: Cells) -> Figures:
    """The number of distinct values: l of distinct l-diversity.

    l = #{s: P(s | class) > 0} (Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam 2007).
    """
    return _or_infinite(cells, np.bincount(cells.place, minlength=len(cells.known)).astype(np.float64))


def entropy_of(cells: Cells) -> Figures:
    """The exponential of the entropy of the values: l of entropy l-diversity, which need not be whole.

    log l = -sum_s P(s | class) log P(s | class) (Machanavajjhala et al. 2007).
    """
    share = cells.share
    return _or_infinite(cells, np.exp(-cells.sums(share * np.log(share))))


def recursive_of(cells: Cells, l: int) -> Figures:  # noqa: E741 - its name in the definition
    """The c that recursive (c, l)-diversity must exceed: (c, l) holds if c is above it in every class.

    With the counts in falling order, r_1 < c (r_l + ... + r_m) (Machanavajjhala et al. 2007).
    It is infinite in a class of fewer than l values, and 0 in one of which nothing is known.

    >>> import numpy as np
    >>> from sourdine.anonymity.classes import cells_from
    >>> recursive_of(cells_from(np.arange(3), np.array([4, 2, 1]), classes=1, values=3), 2)
    array([1.33333333])
    """
    l = check.integer("recursive_of", "l", l, 1, 1 << 31)  # noqa: E741
    order = np.lexsort((-cells.count, cells.place))
    place, count = cells.place[order], cells.count[order]
    many = np.bincount(place, minlength=len(cells.known))
    starts = np.cumsum(many) - many
    rank = np.arange(len(place)) - starts[place]
    tail = np.bincount(place, np.where(rank >= l - 1, count, 0), len(cells.known))
    first = np.zeros(len(cells.known))
    first[place[rank == 0]] = count[rank == 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(many > 0, first / tail, 0.0)


def _or_infinite(cells: Cells, figures: Figures) -> Figures:
    return np.where(cells.known > 0, figures, np.inf)
