"""Whole-number matrices over periods, of which each row is released once its last period is over.

A release is y = Cx + z, row by row, with x the whole numbers of the periods and z independent exact noise.
Whatever is read off y is post-processing. Entries are never negative, which the bounds here rest on
(docs/guarantees/series.md).
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.mechanisms.correlation.participation import Participation

_HALF = 31  # bits of the lower half of a whole number
LIMIT = (1 << 62) - 1


class CorrelationMatrix(ABC):
    """A matrix with a column for each period; its rows come in the order of the period that ends them."""

    periods: int

    @abstractmethod
    def rows_of(self, period: int) -> NDArray[np.int64]:
        """The rows that end with a period (from 1 on), as far as it: all later entries are 0."""

    @abstractmethod
    def coefficients(self, first: int, last: int) -> NDArray[np.float64]:
        """Weights of the rows up to the period `last` that add up to the sum over `first` to `last`.

        They do so without error but for the noise: coefficients times C is 1 for those periods, 0 elsewhere.
        """

    @abstractmethod
    def squared_length(self, participation: Participation) -> int:
        """At least |Cu|^2 in L2, for whatever a unit moves by at most 1 in each of its periods."""

    @abstractmethod
    def length(self, participation: Participation) -> int:
        """The same for |Cu| in L1."""

    @abstractmethod
    def row_reach(self, participation: Participation) -> int:
        """At least |(Cu)_t| for each row by itself: what a row that is drawn again moves."""

    @abstractmethod
    def rows_until(self, period: int) -> int:
        """How many rows the periods up to one have."""

    def correlate(self, history: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of the last period of a history, without noise: periods along the last axis.

        The sums are exact: both halves of a number are summed by themselves, and what 62 bits do not hold is
        clipped, which brings neighbours no further apart.
        """
        rows = self.rows_of(history.shape[-1])
        high, low = history >> _HALF, history & ((1 << _HALF) - 1)
        tops, rests = high @ rows.T, low @ rows.T
        tops += rests >> _HALF
        rests &= (1 << _HALF) - 1
        most = LIMIT >> _HALF
        exact = (np.clip(tops, -most - 1, most) << _HALF) + rests
        sums: NDArray[np.int64] = np.where(tops > most, LIMIT, np.where(tops < -most - 1, -LIMIT, exact))
        return np.clip(sums, -LIMIT, LIMIT)


class SquareMatrix(CorrelationMatrix):
    """A lower triangular matrix with one row a period and no zero on its diagonal, held whole."""

    @property
    @abstractmethod
    def entries(self) -> NDArray[np.int64]:
        """All of it, zeros above the diagonal too."""

    def rows_of(self, period: int) -> NDArray[np.int64]:
        return self.entries[period - 1 : period, :period]

    def rows_until(self, period: int) -> int:
        return period

    @cached_property
    def _totals(self) -> NDArray[np.float64]:
        """Which weights of the rows give the total of all periods up to each."""
        from scipy.linalg import solve_triangular

        ones = np.tril(np.ones((self.periods, self.periods)))
        totals: NDArray[np.float64] = solve_triangular(
            self.entries.T.astype(float), ones.T, lower=False, check_finite=False
        ).T
        return totals

    def coefficients(self, first: int, last: int) -> NDArray[np.float64]:
        until = self._totals[last - 1, :last]
        if first == 1:
            return until
        before = self._totals[first - 2, :last]
        return until - before

    def squared_length(self, participation: Participation) -> int:
        if participation.once:
            return int((self.entries**2).sum(axis=0).max())
        return bound_by_rows(self.entries, participation)

    def length(self, participation: Participation) -> int:
        return participation.heaviest(self.entries.sum(axis=0))

    def row_reach(self, participation: Participation) -> int:
        return int(participation.heaviest_of_each(self.entries).max())


def bound_by_rows(entries: NDArray[np.int64], participation: Participation) -> int:
    """A bound on |Cu|^2, the sum of (C'C)_ij over the periods i, j of one unit.

    Each row of C'C is added up over the periods that make it heaviest, and these sums over the periods that
    make them heaviest (Choquette-Choo et al. 2023, algorithm 4).
    """
    gram = np.rint(entries.T.astype(float) @ entries.astype(float)).astype(np.int64)  # below 2^53, so exact
    return participation.heaviest(participation.heaviest_of_each(gram))
