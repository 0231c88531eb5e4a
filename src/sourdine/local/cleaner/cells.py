"""The cells of one column: read as whole numbers, made private one by one, and read again from afar.

Categories and flags get k-ary randomized response, where missing is a key of its own.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.format import shorten_down
from sourdine.core.random.bits import Bits
from sourdine.core.random.samplers import uniform
from sourdine.frames.quality import ABSENT, cell_place, key_place
from sourdine.frames.schema import Category, Column, Flag
from sourdine.frames.source import Source
from sourdine.local.estimate import Estimate, shares
from sourdine.mechanisms.randomized_response import MOST_EPSILON, KaryResponse

Cleaned = np.ma.MaskedArray[Any, Any]  # noisy values or places of labels; missing where masked


class Gap(StrEnum):
    """What becomes of a cell that is shown as missing, whether it is or not; it costs nothing.

    It is shown so (keep), its record is left out (drop), or a key or a number of the range is drawn evenly to
    stand there (draw).
    """

    KEEP = "keep"
    DROP = "drop"
    DRAW = "draw"


@dataclass(frozen=True, kw_only=True)
class CleanedCells(ABC):
    """One column: what is declared of it, and the epsilon that one of its cells costs."""

    name: str
    column: Column
    epsilon: Fraction
    gap: Gap = Gap.KEEP

    @property
    @abstractmethod
    def method(self) -> str:
        """What is done to a cell, in a word or two."""

    @property
    @abstractmethod
    def spends(self) -> tuple[Spend, ...]:
        """What a cell goes through, one by one; together at most epsilon."""

    @property
    def price(self) -> Fraction:
        """What one cell costs the person it is about: epsilon, or less where less is proven."""
        return self.epsilon

    @property
    def charges(self) -> tuple[Spend, ...]:
        """What pays for one cell; together they cost the price."""
        return self.spends

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...] | tuple[int, ...] | tuple[bool, ...] | None:
        """The keys that cleaned cells are places of; None for numbers."""

    @property
    @abstractmethod
    def keeps_missing(self) -> bool:
        """Whether a cleaned cell may be missing."""

    @property
    def has_gaps(self) -> bool:
        """Whether a cell of the table that is handed out may be missing."""
        return self.keeps_missing and self.gap is Gap.KEEP

    @property
    @abstractmethod
    def places(self) -> int:
        """How many keys there are, or numbers on the grid."""

    @abstractmethod
    def at(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """The values at places of the grid; those of keys are the places themselves."""

    def drawn(self, cells: Cleaned, bits: Bits) -> Cleaned:
        """Cleaned cells, with a value drawn evenly wherever one is shown as missing."""
        missing = np.ma.getmaskarray(cells)
        values = np.ma.getdata(cells).copy()
        values[missing] = self.at(uniform(self.places, int(missing.sum()), bits))
        return np.ma.MaskedArray(values, mask=np.zeros(len(values), np.bool_))

    @abstractmethod
    def read(self, source: Source) -> str:
        """A private cell as SQL: a whole number, or `ABSENT`."""

    @abstractmethod
    def sample(self, cells: NDArray[np.int64], bits: Bits) -> Cleaned:
        """Cleaned cells. A missing one is a private value like any other; types depend on declarations."""

    @abstractmethod
    def reread(self, source: Source) -> str:
        """A cleaned cell as SQL, from a table that was handed out."""

    @abstractmethod
    def restored(self, cells: Cleaned) -> Cleaned:
        """Cleaned cells as `sample` gave them, from what `reread` found."""

    @abstractmethod
    def estimate(self, cells: Cleaned, confidence: float) -> Estimate:
        """What cleaned cells say of those behind them: the mean, or the share of each key and of missing."""

    @abstractmethod
    def words(self) -> str:
        """What one cleaned cell is worth, in a few words."""

    @abstractmethod
    def remedy(self) -> str:
        """How to read statistics off the cleaned column."""


@dataclass(frozen=True, kw_only=True)
class KeyCells(CleanedCells):
    """Cells of known keys; unless something takes its place, a missing cell is the last of the categories."""

    column: Category | Flag

    def __post_init__(self) -> None:
        owner = f"the column '{self.name}'"
        epsilon = check.positive(owner, "epsilon", self.epsilon, MOST_EPSILON)
        check.member(owner, "gap", self.gap, Gap)
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
    def places(self) -> int:
        return len(self.labels)

    def at(self, places: NDArray[np.int64]) -> NDArray[Any]:
        return places

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
        return cell_place(source, self.name)

    def sample(self, cells: NDArray[np.int64], bits: Bits) -> Cleaned:
        last = len(self.labels)
        drawn = self.mechanism.sample(np.where(cells < 0, last, cells), bits)
        missing = drawn == last
        return np.ma.MaskedArray(np.where(missing, 0, drawn), mask=missing)

    def reread(self, source: Source) -> str:
        return key_place(source, self.name)

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
