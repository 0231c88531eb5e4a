"""The cells of one column: read as whole numbers, made private one by one, and read again from afar."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core.bits import Bits
from sourdine.frames.schema import Column
from sourdine.frames.source import Source
from sourdine.local.estimate import Estimate

ABSENT = -1  # what a missing cell is read as
Cleaned = np.ma.MaskedArray[Any, Any]  # noisy values or places of labels; missing where masked


@dataclass(frozen=True, kw_only=True)
class Cells(ABC):
    """One column: what is declared of it, and the epsilon that one of its cells costs."""

    name: str
    column: Column
    epsilon: Fraction

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
