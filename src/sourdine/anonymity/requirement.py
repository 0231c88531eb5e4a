"""What a table must satisfy before it is given away: k, and l, t and alpha of every sensitive column."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.diversity import ValueDistance, alpha_of, distinct_of, entropy_of, recursive_of
from sourdine.anonymity.equivalence import Cells
from sourdine.anonymity.records import Codes
from sourdine.core import check

Mask = NDArray[np.bool_]
_ROUNDING = 1e-12  # by which a float may miss a figure that is met exactly
_MOST = 1 << 31


class Diversity(StrEnum):
    """What l counts."""

    DISTINCT = "distinct"
    ENTROPY = "entropy"
    RECURSIVE = "recursive"


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What every class must satisfy; what is not asked for is at its weakest value.

    >>> Demand(k=5, l=2, t=Fraction(3, 10)).words
    'k = 5, l = 2, t = 0.3'
    """

    k: int = 1
    l: Fraction = Fraction(1)  # noqa: E741 - its name everywhere
    diversity: Diversity = Diversity.DISTINCT
    c: Fraction | None = None
    t: Fraction = Fraction(1)
    alpha: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        check.keep(self, k=check.integer("Demand", "k", self.k, 1, _MOST))
        check.member("Demand", "diversity", self.diversity, Diversity)
        whole = self.diversity is not Diversity.ENTROPY
        least = check.decimal("Demand", "l", self.l)
        if not 1 <= least <= _MOST:
            raise check.fail("Demand", "l", f"lie between 1 and {check.power(_MOST)}", self.l)
        if whole and least.denominator != 1:
            raise check.fail("Demand", "l", f"be a whole number for {self.diversity} diversity", self.l)
        check.keep(self, l=least)
        if (self.c is not None) != (self.diversity is Diversity.RECURSIVE):
            raise check.fail("Demand", "c", "be given for recursive diversity, and only for it", self.c)
        if self.c is not None:
            bound = check.decimal("Demand", "c", self.c)
            if bound <= 0:
                raise check.fail("Demand", "c", "be above 0", self.c)
            check.keep(self, c=bound)
        for name in ("t", "alpha"):
            check.keep(self, **{name: check.share("Demand", name, getattr(self, name))})

    @property
    def of_sensitive(self) -> bool:
        """Whether anything is asked of sensitive columns."""
        return self.l > 1 or self.t < 1 or self.alpha < 1 or self.c is not None

    @property
    def keeps_growing(self) -> bool:
        """Whether a class that satisfies it does so whatever it is merged with: k and distinct l alone."""
        return self.t == 1 and self.alpha == 1 and self.diversity is Diversity.DISTINCT

    @property
    def words(self) -> str:
        """The demand in a few letters."""
        kind = "" if self.diversity is Diversity.DISTINCT else f" ({self.diversity})"
        parts = [f"k = {self.k}"]
        parts += [f"l = {float(self.l):g}{kind}"] if self.l > 1 else []
        parts += [f"c = {float(self.c):g}"] if self.c is not None else []
        parts += [f"t = {float(self.t):g}"] if self.t < 1 else []
        parts += [f"alpha = {float(self.alpha):g}"] if self.alpha < 1 else []
        return ", ".join(parts)

    def beyond_help(self, sizes: Codes, columns: Sequence[Cells]) -> Codes:
        """Of each class, how many of its records fail at least, however it is divided.

        All of a class that is too small. Of one with too few distinct values those whose value is known: a
        part of it in which nobody's is counts as perfect.
        """
        lost = np.where(sizes < self.k, sizes, 0)
        for cells in columns:
            lost = np.maximum(lost, np.where(distinct_of(cells) < float(self.l), cells.known, 0))
        return lost

    def may_satisfy(self, sizes: Codes, columns: Sequence[Cells]) -> Mask:
        """Which classes have size k and l distinct values, or none that is known.

        Every kind of l-diversity needs l distinct values, so whoever fails here fails altogether.
        """
        good = sizes >= self.k
        for cells in columns:
            good &= distinct_of(cells) >= float(self.l)
        return good

    def satisfies(self, sizes: Codes, columns: Sequence[Cells], distances: Sequence[ValueDistance]) -> Mask:
        """Which classes satisfy all of it; floats are given a last digit or two."""
        good = self.may_satisfy(sizes, columns)
        for cells, distance in zip(columns, distances, strict=True):
            if self.t < 1:
                good &= distance.of(cells) <= float(self.t) + _ROUNDING
            if self.alpha < 1:
                good &= alpha_of(cells) <= float(self.alpha) + _ROUNDING
            if self.diversity is Diversity.ENTROPY:
                good &= entropy_of(cells) >= float(self.l) * (1 - _ROUNDING)
            if self.c is not None:
                good &= recursive_of(cells, int(self.l)) < float(self.c)
        return good
