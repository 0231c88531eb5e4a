"""Powers of the matrix of totals, in whole numbers: as they are, and with columns of like length.

The square root of the matrix of totals has the coefficients binom(2k, k) / 4^k along its diagonals
(Fichtenberger, Henzinger, Upadhyay 2023); a power a has those of (1 - x)^-a. They are computed in whole
numbers alone, so that a matrix is the same wherever it is made.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from sourdine.mechanisms.correlation.matrix import CorrelationMatrix, SquareMatrix
from sourdine.mechanisms.correlation.participation import Participation

_BITS = 64
_LONG = 4096  # periods from which a recursion is quicker than doubling
_SHORT, _FINE = 30, 20
_ONE_HALF = 1 << (_SHORT + _FINE - 1)


def power_coefficients(exponent: Fraction, periods: int, scale: int) -> list[int]:
    """The first coefficients of (1 - x)^-exponent times a scale, rounded to whole numbers, halves up.

    They never rise, since each is the one before times (k - 1 + exponent) / k.

    >>> power_coefficients(Fraction(1, 2), 4, 16)
    [16, 8, 6, 5]
    """
    above, below = exponent.numerator, exponent.denominator
    exact, rounding = 1 << _BITS, []
    for k in range(1, periods + 1):
        rounding.append((2 * scale * exact + (1 << _BITS)) >> (_BITS + 1))
        exact = exact * ((k - 1) * below + above) // (k * below)
    return rounding


def inverse_series(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first coefficients of 1 / Σ c_k x^k, as many as are given.

    >>> inverse_series(np.array([2.0, -2.0, 0.0])).tolist()
    [0.5, 0.5, 0.5]
    """
    size = len(column)
    if size > _LONG:
        from scipy.signal import lfilter  # takes long to load

        impulse = np.zeros(size)
        impulse[0] = 1.0
        inverse: NDArray[np.float64] = lfilter([1.0], column, impulse)
        return inverse
    inverse = np.array([1 / column[0]])
    while (count := len(inverse)) < size:  # as many again are right after each turn
        more = min(2 * count, size)
        left = -np.convolve(column[:more], inverse)[count:more]
        inverse = np.concatenate([inverse, np.convolve(left, inverse)[: more - count]])
    return inverse


@dataclass(frozen=True)
class PowerMatrix(CorrelationMatrix):
    """The same rounded coefficients along each diagonal; exponent 0 makes each period independent."""

    periods: int
    exponent: Fraction
    resolution: int

    @cached_property
    def column(self) -> NDArray[np.int64]:
        """The first column, which all others are the beginning of."""
        if self.exponent == 0:
            alone = np.zeros(self.periods, np.int64)
            alone[0] = 1
            return alone
        return np.array(power_coefficients(self.exponent, self.periods, self.resolution), np.int64)

    def rows_of(self, period: int) -> NDArray[np.int64]:
        return self.column[:period][::-1][None, :]

    def rows_until(self, period: int) -> int:
        return period

    @cached_property
    def _totals(self) -> NDArray[np.float64]:
        """The inverse power series, added up: the weights for a total, the last row first."""
        return np.cumsum(inverse_series(self.column.astype(float)))

    def coefficients(self, first: int, last: int) -> NDArray[np.float64]:
        weights = self._totals[:last][::-1].copy()
        if first > 1:
            weights[: first - 1] -= self._totals[: first - 1][::-1]
        return weights

    def squared_length(self, participation: Participation) -> int:
        """Exact: the worst periods are the first ones, as near as they may be (Kalinin, Lampert 2024).

        Their theorem needs coefficients that are not negative and never rise.
        """
        moved = self._moved(participation)
        return sum(int(each) ** 2 for each in moved)

    def length(self, participation: Participation) -> int:
        return int(self._moved(participation).sum())

    def row_reach(self, participation: Participation) -> int:
        return int(self._moved(participation).max())

    def _moved(self, participation: Participation) -> NDArray[np.int64]:
        """What one unit moves of each row at most, in its worst periods."""
        moved = np.zeros(self.periods, np.int64)
        for i in range(participation.times):
            start = i * participation.separation
            if start >= self.periods:
                break
            moved[start:] += self.column[: self.periods - start]
        return moved


@dataclass(frozen=True)
class LevelMatrix(SquareMatrix):
    """A power of the matrix of totals whose columns all have about the length `resolution`.

    Late columns of a power are short, since their rows end with the last period: there is room to weigh them
    more, which lowers the noise of all that is read off them (Henzinger, Kalinin, Upadhyay 2025).
    """

    periods: int
    exponent: Fraction
    resolution: int

    @cached_property
    def entries(self) -> NDArray[np.int64]:
        size = self.periods
        column = power_coefficients(self.exponent, size, 1 << _SHORT)
        squares, sums = 0, []
        for each in column:
            squares += each * each
            sums.append(squares)
        # what a column of so many entries is multiplied by, in steps of 2^-20: at most 2^32
        factors = [(self.resolution << (_SHORT + _FINE)) // isqrt(each) for each in sums]
        short = np.array(column, np.int64)
        entries = np.zeros((size, size), np.int64)
        for j in range(size):
            rows = size - j
            entries[j:, j] = (short[:rows] * factors[rows - 1] + _ONE_HALF) >> (_SHORT + _FINE)
        return entries
