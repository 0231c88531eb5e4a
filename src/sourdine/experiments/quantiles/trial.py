"""A theorem put to the test: what it allows, as published and as corrected, beside what happens."""

import math
from dataclasses import dataclass

from scipy.special import betainc

from sourdine.experiments.quantiles.measure import Floats
from sourdine.report.table import Cell
from sourdine.tables.quantiles.theorems import Stated, Tail

_CHANCE = 1e-6  # of calling a theorem refuted that is not


@dataclass(frozen=True)
class Trial:
    """The distances of answers from what they aim at, where a theorem says how far they are."""

    theorem: str
    place: str
    stated: Stated[Tail] | Stated[float]
    distances: Floats

    @property
    def refuted(self) -> bool:
        """Whether what was published is surely too little."""
        return self._beyond(self.stated.published)

    @property
    def holds(self) -> bool:
        """Whether what was corrected is not."""
        return not self._beyond(self.stated.corrected)

    def seen(self, side: Tail | float) -> float:
        """The share of answers beyond a tail's distance, or the mean distance."""
        if isinstance(side, Tail):
            return float((self.distances > side.distance).mean())
        return float(self.distances.mean())

    def _beyond(self, side: Tail | float) -> bool:
        n = len(self.distances)
        if isinstance(side, Tail):
            count = int((self.distances > side.distance).sum())
            return count > 0 and float(betainc(count, n - count + 1, side.probability)) < _CHANCE
        error = float(self.distances.std(ddof=1)) / math.sqrt(n)
        return self.seen(side) - 5 * error > side

    def row(self) -> tuple[Cell, ...]:
        """For a table: what it is about, then twice what is allowed and what is seen."""
        cells: list[Cell] = [self.theorem, self.place]
        for side in (self.stated.published, self.stated.corrected):
            if isinstance(side, Tail):
                cells += [f"P(> {side.distance:.3g}) ≤ {side.probability:.2g}", f"{self.seen(side):.2g}"]
            else:
                cells += [f"mean ≤ {side:.3g}", f"{self.seen(side):.2g}"]
        return (*cells, "refuted" if self.refuted else "stands here", "holds" if self.holds else "refuted")
