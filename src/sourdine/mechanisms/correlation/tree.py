"""A tree over the periods, each node the sum of those below it, for noise that is paid in L1.

Each node is a row, released when its last period is over (Dwork et al. 2010; Chan, Shi, Song 2011). What is
read off a node weighs it against the sum of its children by their variances (Honaker 2015), and a span of
periods is read off the fewest nodes that make it up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.mechanisms.correlation.matrix import CorrelationMatrix, bound_by_rows
from sourdine.mechanisms.correlation.participation import Participation


@dataclass(frozen=True)
class TreeMatrix(CorrelationMatrix):
    """Nodes over 1, fan, fan^2, ... periods, as far as whole ones fit."""

    periods: int
    fan: int

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many periods a node of each height is over."""
        widths = [1]
        while widths[-1] * self.fan <= self.periods:
            widths.append(widths[-1] * self.fan)
        return tuple(widths)

    def _closed(self, period: int) -> list[int]:
        """The widths of the nodes that end with a period, the least first."""
        return [width for width in self.widths if period % width == 0]

    def rows_of(self, period: int) -> NDArray[np.int64]:
        closed = self._closed(period)
        rows = np.zeros((len(closed), period), np.int64)
        for i, width in enumerate(closed):
            rows[i, period - width :] = 1
        return rows

    def rows_until(self, period: int) -> int:
        return sum(period // width for width in self.widths)

    def _place(self, width: int, end: int) -> int:
        """Which row the node of a width is that ends with a period."""
        return self.rows_until(end - 1) + self._closed(end).index(width)

    @cached_property
    def _weights(self) -> tuple[float, ...]:
        """How much a node of each height weighs beside the sum of its children."""
        variance, weights = 1.0, [1.0]
        for _ in self.widths[1:]:
            below = self.fan * variance
            variance = below / (1 + below)
            weights.append(variance)
        return tuple(weights)

    def coefficients(self, first: int, last: int) -> NDArray[np.float64]:
        weights = np.zeros(self.rows_until(last))
        for width, end in self._cover(first, last):
            self._read(width, end, 1.0, weights)
        return weights

    def variance(self, first: int, last: int) -> float:
        """The square of the coefficients' length: of a node that is also its weight beside its children."""
        return sum(self._weights[self.widths.index(width)] for width, _ in self._cover(first, last))

    def _cover(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The fewest nodes that make up a span: how wide each is, and the period that ends it."""
        start = first
        while start <= last:
            fits = [width for width in self.widths if (start - 1) % width == 0 and start + width - 1 <= last]
            start += fits[-1]
            yield fits[-1], start - 1

    def _read(self, width: int, end: int, share: float, weights: NDArray[np.float64]) -> None:
        """Add the weights of a node and of all below it."""
        weight = self._weights[self.widths.index(width)]
        weights[self._place(width, end)] += share * weight
        if width > 1:
            below = width // self.fan
            for child in range(end - width + below, end + 1, below):
                self._read(below, child, share * (1 - weight), weights)

    def squared_length(self, participation: Participation) -> int:
        if participation.once:
            return self.length(participation)
        return bound_by_rows(self._entries, participation)

    def length(self, participation: Participation) -> int:
        return participation.heaviest(self._heights)

    def row_reach(self, participation: Participation) -> int:
        if participation.once:
            return 1
        return min(participation.times, -(-self.widths[-1] // participation.separation))  # its widest node

    @cached_property
    def _heights(self) -> NDArray[np.int64]:
        """How many nodes each period is below."""
        place = np.arange(self.periods)
        over: NDArray[np.int64] = sum(
            (place < self.periods // width * width).astype(np.int64) for width in self.widths
        )  # type: ignore[assignment]
        return over

    @property
    def _entries(self) -> NDArray[np.int64]:
        entries = np.zeros((self.rows_until(self.periods), self.periods), np.int64)
        row = 0
        for period in range(1, self.periods + 1):
            rows = self.rows_of(period)
            entries[row : row + len(rows), :period] = rows
            row += len(rows)
        return entries
