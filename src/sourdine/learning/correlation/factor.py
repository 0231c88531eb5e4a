"""Matrices by which the noise of training steps is correlated.

The gradients of the steps are the rows of *g*, and what is released is *Cg* with independent Gaussian noise
*z* in each row, or, which is the same, *g* with the noise *C⁻¹z*. *C* is causal and has no negative entry. A
step's noise then takes back part of the noise before it, so that sums over the steps, which are what a model
is made of, are less noisy (docs/guarantees/learning.md).
"""

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.format import counted

MOST_STEPS = 1 << 20
MOST_BANDS = 1 << 12
MOST_BUFFERS = 16
_MARGIN = 1e-9  # beyond what rounding takes away from a sum of 2^20 squares

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Factor(ABC):
    """A causal matrix without negative entries over so many steps."""

    steps: int

    def __post_init__(self) -> None:
        check.keep(self, steps=check.integer(type(self).__name__, "steps", self.steps, 1, MOST_STEPS))

    @property
    @abstractmethod
    def copies(self) -> int:
        """How many numbers for each parameter are kept from one step to the next."""

    @abstractmethod
    def squared_length(self, every: int) -> float:
        """The most that a unit moves all rows of Cg, squared: it comes every so many steps, and moves 1 each
        time.

        As no entry is negative, gradients that all point the same way move them most. Never below the true
        one.
        """

    @property
    @abstractmethod
    def variances(self) -> Floats:
        """The variance of the noise in the sum of the first steps, for each step, if that of z is 1."""

    @property
    @abstractmethod
    def words(self) -> str:
        """It as people read it."""

    @property
    def identity(self) -> str:
        """What tells it from all others, in a ledger and in a checkpoint."""
        return f"{self.words} ({hashlib.sha256(repr(self).encode()).hexdigest()[:16]})"

    def error(self, every: int) -> float:
        """The root mean square over the steps of the noise in the sum so far, beside what a unit moves in one
        use.

        It is that of independent noise of deviation 1, if this noise costs as much as one such step for each
        of the unit's uses.
        """
        return self.stretch(every) * math.sqrt(float(self.variances.mean()))

    def stretch(self, every: int) -> float:
        """The deviation of a row's noise that costs as much as a step with a deviation of 1 for each use."""
        uses = -(-self.steps // every)
        return math.sqrt(self.squared_length(every) / uses) * (1 + _MARGIN)


@dataclass(frozen=True, kw_only=True)
class DiagonalFactor(Factor):
    """The same numbers along each diagonal, first a 1 on the main one."""

    @property
    @abstractmethod
    def column(self) -> Floats:
        """The first column, which all others are the beginning of, as far as it is not zero."""

    def squared_length(self, every: int) -> float:
        """Uses from the first step on are the worst: of a later start some of the same rows are cut off."""
        column = self.column
        if len(column) <= every:  # no row is reached by two uses
            return -(-self.steps // every) * float(column @ column) * (1 + _MARGIN)
        moved = np.zeros(self.steps)
        for start in range(0, self.steps, every):
            end = min(start + len(column), self.steps)
            moved[start:end] += column[: end - start]
        return float(moved @ moved) * (1 + _MARGIN)


@dataclass(frozen=True, kw_only=True)
class BandedFactor(DiagonalFactor):
    """Numbers along the first few diagonals, and none below: noise is taken back for so many steps.

    >>> BandedFactor(steps=4, coefficients=(1.0,)).error(4) == math.sqrt(2.5) * (1 + 1e-9) ** 1.5
    True
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        if not 1 <= len(self.coefficients) <= min(self.steps, MOST_BANDS) or self.coefficients[0] != 1:
            must = f"hold 1 to {min(self.steps, MOST_BANDS)} numbers, the first of them 1"
            raise check.fail(name, "coefficients", must, len(self.coefficients))
        if not all(0 <= each <= 1 for each in self.coefficients):
            raise check.fail(name, "coefficients", "lie between 0 and 1", self.coefficients)

    @property
    def copies(self) -> int:
        return len(self.coefficients) - 1

    @property
    def column(self) -> Floats:
        return np.array(self.coefficients)

    @cached_property
    def variances(self) -> Floats:
        return np.cumsum(totals_of(self.column, self.steps) ** 2)

    @property
    def words(self) -> str:
        if not self.copies:
            return "independent in each step"
        return f"correlated over {len(self.coefficients)} steps (banded)"


@dataclass(frozen=True, kw_only=True)
class BufferedFactor(DiagonalFactor):
    """Diagonals *1*, and then *Σ wᵢdᵢ^(k−1)*: a few sums that fade (McMahan, Xu, Zhang 2024)."""

    weights: tuple[float, ...]
    decays: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        if not 1 <= len(self.weights) == len(self.decays) <= MOST_BUFFERS:
            must = f"hold 1 to {MOST_BUFFERS} numbers, as many as there are decays"
            raise check.fail(name, "weights", must, len(self.weights))
        if min(self.weights) < 0 or sum(self.weights) > 1:
            raise check.fail(name, "weights", "not be negative, nor above 1 together", self.weights)
        if not all(0 <= each < 1 for each in self.decays):
            raise check.fail(name, "decays", "lie between 0 and 1", self.decays)

    @property
    def copies(self) -> int:
        return len(self.weights)

    @cached_property
    def column(self) -> Floats:
        powers = np.power.outer(np.array(self.decays), np.arange(self.steps - 1))
        return np.concatenate(([1.0], np.array(self.weights) @ powers))

    @cached_property
    def variances(self) -> Floats:
        """By the inverse, whose diagonals are such sums too: a diagonal matrix minus one of rank one is their
        recursion."""
        roots = np.sqrt(np.array(self.weights))
        fading, turned = np.linalg.eigh(np.diag(self.decays) - np.outer(roots, roots))
        powers = np.power.outer(fading, np.arange(self.steps - 1))
        inverse = np.concatenate(([1.0], -((roots @ turned) ** 2) @ powers))
        return np.cumsum(np.cumsum(inverse) ** 2)

    @property
    def words(self) -> str:
        return f"correlated over all steps ({counted(self.copies, 'buffer', 'd')})"


@dataclass(frozen=True, kw_only=True)
class TreeFactor(Factor):
    """Sums over 1, 2, 4, ... steps, each of which is read off itself and its halves (Honaker 2015)."""

    @property
    def widths(self) -> tuple[int, ...]:
        """How many steps a node of each height is over."""
        return tuple(1 << height for height in range(self.steps.bit_length()))

    @property
    def copies(self) -> int:
        return len(self.widths) + 1

    def squared_length(self, every: int) -> float:
        uses = np.arange(self.steps)
        starts = uses % every
        squares = np.zeros(min(every, self.steps), np.int64)
        for width in self.widths:
            nodes = self.steps // width
            closed = uses < nodes * width
            if width <= every:  # a node has one use of a start at most
                squares += np.bincount(starts[closed], minlength=len(squares))
                continue
            counts = np.bincount(
                starts[closed] * nodes + uses[closed] // width, minlength=len(squares) * nodes
            )
            squares += (counts.reshape(len(squares), nodes) ** 2).sum(axis=1)
        return float(squares.max())

    @cached_property
    def variances(self) -> Floats:
        """A node of height h has 2^h / (2^(h+1) - 1); a sum is made up of one for each bit of the step."""
        steps = np.arange(1, self.steps + 1)
        total = np.zeros(self.steps)
        for height, width in enumerate(self.widths):
            total += ((steps >> height) & 1) * width / (2 * width - 1)
        return total

    @property
    def words(self) -> str:
        return f"correlated over all steps (tree of {len(self.widths)} levels)"


def totals_of(column: Floats, steps: int) -> Floats:
    """The first column of AC⁻¹: what each row weighs in a sum over the steps, from the last row back."""
    from scipy.signal import lfilter

    impulse = np.zeros(steps)
    impulse[0] = 1.0
    totals: Floats = np.cumsum(lfilter([1.0], column, impulse))
    return totals
