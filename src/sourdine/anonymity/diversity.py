"""How varied the sensitive values of each class are, and how far from those of the table.

The first is (alpha, k) and three kinds of l; the second t-closeness and delta-disclosure. Every function
gives one figure a class, in which a class without any known value counts as perfect: nothing can be learnt
from it. The figure of a table is that of its worst class.

t is the earth mover's distance between the distribution q of the values in a class and their distribution p
in the table (Li, Li, Venkatasubramanian 2007). Three ground distances between values are known:

- equal: all are 1 apart, and t is the total variation distance sum_s max(0, q_s - p_s);
- ordered: the i-th and the j-th of m values are |i - j| / (m - 1) apart;
- hierarchical: values that first meet at height h of a tree of height H are h / H apart. Every edge of the
  tree is then 1 / 2H long, so t is the mean over the levels below the root of the total variation distance
  between the distributions of the labels at that level.

Sums run over values that occur in a class, in whole numbers where 64 bits hold them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.equivalence import Cells, cells_from
from sourdine.anonymity.hierarchy import GeneralisationHierarchy, Ladder
from sourdine.anonymity.records import Coded
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

Figures = NDArray[np.float64]


class Ground(StrEnum):
    """How far apart two sensitive values are."""

    EQUAL = "equal"
    ORDERED = "ordered"
    HIERARCHICAL = "hierarchical"


@dataclass(frozen=True, eq=False)
class ValueDistance:
    """A ground distance between the values of one column."""

    ground: Ground = Ground.EQUAL
    ladder: Ladder | None = None

    @classmethod
    def between(
        cls, column: Coded, ground: Ground | GeneralisationHierarchy = Ground.EQUAL
    ) -> "ValueDistance":
        """The distance between the values of a column that is asked for: equal, ordered, or by a tree."""
        if isinstance(ground, GeneralisationHierarchy):
            return cls(Ground.HIERARCHICAL, ground.ladder(column))
        if check.member("ValueDistance", "ground", ground, Ground) is Ground.HIERARCHICAL:
            raise check.fail(
                "ValueDistance", "ground", "come with a tree", ground, "Pass the hierarchy itself."
            )
        return cls(ground)

    def of(self, cells: Cells) -> Figures:
        """t of each class."""
        if self.ladder is not None:
            return hierarchical_of(cells, self.ladder)
        return ordered_of(cells) if self.ground is Ground.ORDERED else equal_of(cells)


def distances_of(
    columns: Sequence[Coded], grounds: Mapping[str, Ground | GeneralisationHierarchy]
) -> list[ValueDistance]:
    """The distance for each sensitive column; equal where nothing else is asked for.

    Equal distances are never below the others, so that nobody claims a smaller t by leaving something out.
    """
    unknown = set(grounds) - {each.name for each in columns}
    if unknown:
        raise InvalidParameter(
            f"A distance is given for '{min(unknown)}', which is no sensitive column. Name it as one."
        )
    return [ValueDistance.between(each, grounds.get(each.name, Ground.EQUAL)) for each in columns]


def equal_of(cells: Cells) -> Figures:
    """t with all values equally far apart: the total variation distance of each class.

    t = sum_s max(0, q_s - p_s) (Li, Li, Venkatasubramanian 2007).

    >>> import numpy as np
    >>> cells = cells_from(np.array([0, 1, 3]), np.array([3, 1, 2]), classes=2, values=2)
    >>> equal_of(cells)
    array([0.25, 0.5 ])
    """
    size = cells.size
    above = cells.count * size - cells.totals[cells.value] * cells.known[cells.place]
    return _over(_summed(cells, np.maximum(above, 0)), cells, size)


def ordered_of(cells: Cells) -> Figures:
    """t with values in order: the area between the two cumulative laws.

    t = sum_i |sum_{j <= i} (q_j - p_j)| / (m - 1) (Li, Li, Venkatasubramanian 2007).

    Between two values that occur in a class its cumulative law Q is constant while that of the table, P,
    rises; where it passes Q is found by halving, and prefix sums of P give both areas.
    """
    occurs = cells.totals > 0
    many, size = int(occurs.sum()), cells.size
    if many < 2:
        return np.zeros(len(cells.known))
    value = (np.cumsum(occurs) - 1)[cells.value]
    exact = many * size * int(cells.known.max(initial=0)) < 1 << 62
    number = np.int64 if exact else np.float64
    P = np.cumsum(cells.totals[occurs]).astype(number)
    S = np.concatenate([np.zeros(1, number), np.cumsum(P)])
    # a stretch for each cell, from its value up to the next of its class, and one before the first
    first = np.concatenate([[True], cells.place[1:] != cells.place[:-1]])
    last = np.concatenate([first[1:], [True]])
    run = np.cumsum(cells.count)
    Q = run - (run - cells.count)[first][np.cumsum(first) - 1]
    start, end = value, np.where(last, many, np.concatenate([value[1:], [many]]))
    n = cells.known[cells.place].astype(number)
    level = Q.astype(number) * size
    # P * n rises with i, so comparing P with Q * size / n in floats is safe but for ties, which add 0 anyway
    cross = np.clip(np.searchsorted(P, level / n), start, end)
    below = (cross - start) * level - (S[cross] - S[start]) * n
    above = (S[end] - S[cross]) * n - (end - cross) * level
    before = np.where(first, S[start] * n, 0)
    return _over(_summed(cells, below + above + before), cells, size) / (many - 1)


def hierarchical_of(cells: Cells, ladder: Ladder) -> Figures:
    """t with values in a tree: the mean over its levels of the distance between the laws of labels.

    t = (1 / H) sum_{h < H} TV(q at level h, p at level h), which is the sum of cost(N) over the nodes N of
    Li, Li, Venkatasubramanian 2007.
    """
    total = np.zeros(len(cells.known))
    if not len(cells.place):
        return total
    for codes in ladder.codes[: ladder.height]:
        many = int(codes.max()) + 1
        key = cells.place * many + codes[cells.value]
        total += equal_of(cells_from(key, cells.count, len(cells.known), many))
    return total / ladder.height


def delta_of(cells: Cells) -> Figures:
    """delta of delta-disclosure, in natural logarithms: the largest |log(q_s / p_s)| of a class.

    delta = max_s |log(P(s | class) / P(s))| (Brickell, Shmatikov 2008). A value that occurs in
    the table and not in a class makes it infinite: the class tells for certain that nobody there has it.

    >>> import numpy as np
    >>> delta_of(cells_from(np.array([0, 1, 3]), np.array([3, 1, 2]), classes=2, values=2))
    array([0.69314718,        inf])
    """
    ratio = np.abs(np.log(cells.share * cells.size / cells.totals[cells.value]))
    worst = np.zeros(len(cells.known))
    np.maximum.at(worst, cells.place, ratio)
    occurring = np.bincount(cells.place, minlength=len(cells.known))
    lacking = (occurring > 0) & (occurring < np.count_nonzero(cells.totals))
    return np.where(lacking, np.inf, worst)


def _summed(cells: Cells, amounts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums by class; of whole numbers they stay whole, since cells are in the order of classes."""
    total = np.zeros(len(cells.known), amounts.dtype)
    if not len(amounts):  # nobody's value is known
        return total.astype(np.float64)
    starts = np.flatnonzero(np.concatenate([[True], cells.place[1:] != cells.place[:-1]]))
    total[cells.place[starts]] = np.add.reduceat(amounts, starts)
    return total.astype(np.float64)


def _over(sums: Figures, cells: Cells, size: int) -> Figures:
    """Sums as shares of class size times table size; a class of which nothing is known is as the table."""
    return sums / np.maximum(cells.known * size, 1)


def alpha_of(cells: Cells) -> Figures:
    """The share of the most frequent value: alpha of (alpha, k)-anonymity, for every value alike.

    alpha = max_s P(s | class) (Wong, Li, Fu, Wang 2006).

    >>> import numpy as np
    >>> from sourdine.anonymity.equivalence import cells_from
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
    >>> from sourdine.anonymity.equivalence import cells_from
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
