"""Categories and flags: k-ary randomized response, where missing is a key of its own."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.bits import Bits
from sourdine.core.digits import shorten_down
from sourdine.core.distance import Distance
from sourdine.frames.expression import grouping, literal
from sourdine.frames.schema import Category, Flag
from sourdine.frames.source import Source
from sourdine.local.cleaner.cells import ABSENT, Cells, Cleaned
from sourdine.local.estimate import Estimate, shares
from sourdine.mechanisms.response import MOST_EPSILON, KaryResponse


@dataclass(frozen=True, kw_only=True)
class KeyCells(Cells):
    """Cells of known keys; unless something takes its place, a missing cell is the last of the categories."""

    column: Category | Flag

    def __post_init__(self) -> None:
        owner = f"the column '{self.name}'"
        epsilon = check.positive(owner, "epsilon", self.epsilon, MOST_EPSILON)
        object.__setattr__(self, "epsilon", epsilon)
        if self._categories < 2:
            raise check.fail(
                owner, "keys", "be at least two, or say nothing", len(self.labels), "Leave it out."
            )
        _ = self.spends  # the mechanism refuses what it cannot do now, and not once the table was read

    @property
    def method(self) -> str:
        return "randomized response"

    @property
    def keeps_missing(self) -> bool:
        return self.column.missing == "drop"

    @property
    def labels(self) -> tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]:
        return (False, True) if isinstance(self.column, Flag) else self.column.keys

    @property
    def _categories(self) -> int:
        return len(self.labels) + self.keeps_missing

    @cached_property
    def mechanism(self) -> KaryResponse:
        """What a cell goes through."""
        return KaryResponse(epsilon=self.epsilon, categories=self._categories)

    @property
    def spends(self) -> tuple[Spend, ...]:
        return (Spend(mechanism=self.mechanism, distance=Distance.hamming()),)

    def read(self, source: Source) -> str:
        absent = ABSENT if self.keeps_missing else list(self.labels).index(self.column.missing)
        return self._place(source, absent)

    def _place(self, source: Source, absent: int) -> str:
        """The place of a key among the labels; an enumeration finds it by its hash, however many they are."""
        raw = grouping(self.name, self.column, source.types[self.name]).raw
        if isinstance(self.column, Flag):
            return f"CASE WHEN {raw} THEN 1 WHEN NOT {raw} THEN 0 ELSE {absent} END"
        keys = ", ".join(literal(str(key)) for key in self.column.keys)
        code = f"enum_code(TRY_CAST(CAST({raw} AS VARCHAR) AS ENUM({keys})))"
        return f"coalesce(CAST({code} AS INTEGER), {absent})"

    def sample(self, cells: NDArray[np.int64], bits: Bits) -> Cleaned:
        last = len(self.labels)
        drawn = self.mechanism.sample(np.where(cells < 0, last, cells), bits)
        missing = drawn == last
        return np.ma.MaskedArray(np.where(missing, 0, drawn), mask=missing)

    def reread(self, source: Source) -> str:
        return self._place(source, ABSENT)

    def restored(self, cells: Cleaned) -> Cleaned:
        places = cells.filled(ABSENT).astype(np.int64)
        return np.ma.MaskedArray(np.maximum(places, 0), mask=places < 0)

    def estimate(self, cells: Cleaned, confidence: float) -> Estimate:
        """The share of each key, and of missing last if that is kept."""
        missing = np.ma.getmaskarray(cells)
        places = np.where(missing, len(self.labels), cells.filled(0))
        counts = np.bincount(places, minlength=self._categories)[: self._categories]
        return shares(self.mechanism.channel, counts, max(1, len(places)), confidence)

    def words(self) -> str:
        likely, unlikely = self.mechanism.channel
        return f"true {_percent(likely)}, each other {_percent(unlikely)}"

    def remedy(self) -> str:
        likely, unlikely = self.mechanism.channel
        return (
            f"A share s of cleaned cells stands for (s - {unlikely:.6g})/({likely:.6g} - {unlikely:.6g}) of "
            "the true ones."
        )


def _percent(share: float) -> str:
    return f"{shorten_down(100 * share, 3)} %" if math.isfinite(share) else "–"
