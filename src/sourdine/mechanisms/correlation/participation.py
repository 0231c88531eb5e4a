"""How often one unit may count in a series, and the most that its periods weigh together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check

MOST_PERIODS = 1 << 16


@dataclass(frozen=True)
class Participation:
    """A unit counts in at most `times` periods, any two of them at least `separation` apart.

    With `shared` it may count in any periods, and what it moves in all of them together is bounded by what it
    might move in one (`times` and `separation` are 1 then).

    >>> Participation(times=4, separation=13).heaviest(np.arange(52))  # 51 + 38 + 25 + 12
    126
    """

    times: int = 1
    separation: int = 1
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("times", "separation"):
            count = check.integer("Participation", name, getattr(self, name), 1, MOST_PERIODS)
            check.keep(self, **{name: count})
        if not isinstance(self.shared, bool):
            raise check.fail("Participation", "shared", "be True or False", self.shared)
        if self.shared and (self.times, self.separation) != (1, 1):
            remedy = "A total that is shared by all periods bounds it already."
            raise check.fail(
                "Participation", "times", "be 1 with 'shared', as 'separation' is", self.times, remedy
            )

    @property
    def once(self) -> bool:
        """Whether a unit is worst where all it moves lies in one period."""
        return self.shared or self.times == 1

    def heaviest(self, weights: NDArray[np.int64]) -> int:
        """The greatest sum of non-negative weights of periods that one unit may count in together."""
        return int(self.heaviest_of_each(np.asarray(weights, np.int64)[None, :])[0])

    def heaviest_of_each(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for each row of weights, by a recursion over the periods.

        The best choice among the first n periods either leaves the last of them out, or takes it and at most
        one period less among the first n - separation.
        """
        if self.once:
            most: NDArray[np.int64] = weights.max(axis=1)
            return most
        rows, periods = weights.shape
        fit = -(-periods // self.separation)  # more than so many never fit
        best = np.zeros((periods + 1, rows), np.int64)
        for _ in range(min(self.times, fit)):
            less, best = best, np.zeros_like(best)
            for n in range(1, periods + 1):
                taken = weights[:, n - 1] + less[max(n - self.separation, 0)]
                np.maximum(best[n - 1], taken, out=best[n])
        return best[periods]

    @property
    def words(self) -> str:
        """What is declared, as people read it."""
        if self.shared:
            return "in any periods, with a bounded total"
        if self.times == 1:
            return "in one period"
        apart = f", at least {self.separation} apart" if self.separation > 1 else ""
        return f"in at most {self.times} periods{apart}"
