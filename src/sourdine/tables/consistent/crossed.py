"""Crossed margins: a table of cells, and its sums over some columns, each measured with the same noise.

A table is a sum of effects, one for each set of columns: what remains of the sums by those columns once the
effects of fewer are taken out. Effects of unlike sets are orthogonal, in every margin. So least squares falls
apart into one weighted mean for each set, over the margins that hold its columns, and needs no matrix.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sourdine.frames.keys import Cell, Keys, values_of
from sourdine.tables.answers.answer import ALL
from sourdine.tables.consistent.fit import Axes, Floats, Ints, disjoint, fit, subsets
from sourdine.tables.consistent.whole import diffused, kept_to


@dataclass(frozen=True)
class Crossed:
    """A table of this shape and the margins measured of it, each by the axes that it keeps.

    Among them must be the table itself, which keeps all axes.

    >>> table = Crossed((2, 3), ((0, 1), (0,), ()))
    >>> table.exact(np.arange(6).reshape(1, 6)).tolist()
    [[0, 1, 2, 3, 4, 5, 3, 12, 15]]
    """

    shape: tuple[int, ...]
    margins: tuple[Axes, ...]

    @property
    def cells(self) -> int:
        """How many cells the table has."""
        return math.prod(self.shape)

    @property
    def merged(self) -> tuple[int, ...]:
        """How many cells are summed in one number, margin by margin."""
        return tuple(self.cells // self._size(margin) for margin in self.margins)

    def keys(self, names: Sequence[Sequence[Cell]]) -> Keys:
        """The key of every number, given the keys of each axis; an axis that is summed over has 'all'."""
        values, every = [values_of(each) for each in names], values_of([ALL])
        axes = range(len(self.shape))
        return Keys.joined(
            [
                Keys.product([values[axis] if axis in margin else every for axis in axes])
                for margin in self.margins
            ]
        )

    def exact(self, cells: Ints) -> Ints:
        """The numbers of all margins, one row for each row of cells."""
        table = cells.reshape(-1, *self.shape)
        parts = [table.sum(axis=self._gone(margin)) for margin in self.margins]
        return np.concatenate([part.reshape(len(table), -1) for part in parts], axis=1)

    def best(self, noisy: Floats) -> Floats:
        """The best linear unbiased estimate of the same numbers: they add up, and some are negative."""
        effects = self._effects(noisy)
        parts = [self._from_effects(margin, effects) for margin in self.margins]
        return np.concatenate([part.reshape(len(noisy), -1) for part in parts], axis=1)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each best estimate, in variances of one noise: alike within a margin."""
        variance = {}
        for axes in self._sets:
            free = math.prod((self.shape[axis] - 1) / self.shape[axis] for axis in axes)
            variance[axes] = free / sum(self._precision(axes, margin) for margin in self._over(axes))
        each = [
            sum(variance[axes] * (self._size(axes) / self._size(margin)) ** 2 for axes in subsets(margin))
            for margin in self.margins
        ]
        return np.repeat(np.array(each), [self._size(margin) for margin in self.margins])

    def whole(self, noisy: Floats) -> Ints:
        """Whole numbers, none negative, that are sums of the same cells, near the best estimates.

        Margins come first, the smaller before the larger: each is the nearest to its best estimate that has
        no negative number and agrees with those before it. Fitted all at once, the many cells that noise
        would make negative would push up their sums. The smallest margins that share no column are whole
        numbers from the beginning, and the cells are made to add up to them to the last record.
        """
        effects = self._effects(noisy)
        fitted: dict[Axes, Floats] = {}
        for margin in self._shared:
            parts = {axes: table for axes, table in fitted.items() if set(axes) < set(margin)}
            fitted[margin] = fit(margin, self._from_effects(margin, effects), parts)
        *smaller, full = self._shared
        exact = [axes for axes in disjoint(smaller) if (fitted[axes] % 1 == 0).all()]
        cells = [
            kept_to(diffused(table, self.margins), table, {axes: fitted[axes][row] for axes in exact})
            for row, table in enumerate(fitted[full])
        ]
        return self.exact(np.stack(cells).reshape(len(noisy), -1))

    @property
    def _shared(self) -> list[Axes]:
        """The margins and what any of them share, the smaller ones first; the total is always among them."""
        closure: set[Axes] = {(), *self.margins}
        for margin in self.margins:
            closure |= {tuple(axis for axis in each if axis in margin) for each in closure}
        return sorted(closure, key=lambda axes: (len(axes), axes))

    @property
    def _sets(self) -> list[Axes]:
        return subsets(tuple(range(len(self.shape))))

    def _size(self, axes: Axes) -> int:
        return math.prod(self.shape[axis] for axis in axes)

    def _gone(self, margin: Axes) -> Axes:
        return tuple(axis + 1 for axis in range(len(self.shape)) if axis not in margin)

    def _over(self, axes: Axes) -> list[Axes]:
        return [margin for margin in self.margins if set(axes) <= set(margin)]

    def _precision(self, axes: Axes, margin: Axes) -> float:
        """Of the sums by these axes taken from a margin, which add up so many noises."""
        return self._size(axes) / self._size(margin)

    def _split(self, numbers: Floats) -> list[Floats]:
        ends = np.cumsum([self._size(margin) for margin in self.margins])[:-1]
        return [
            part.reshape(len(numbers), *(self.shape[axis] for axis in margin))
            for part, margin in zip(np.split(numbers, ends, axis=1), self.margins, strict=True)
        ]

    def _effects(self, noisy: Floats) -> dict[Axes, Floats]:
        tables = self._split(noisy)
        return {axes: self._effect(axes, tables) for axes in self._sets}

    def _effect(self, axes: Axes, tables: Sequence[Floats]) -> Floats:
        """The effect of some axes, by all margins that hold them."""
        over = self._over(axes)
        whole = sum(self._precision(axes, margin) for margin in over)
        effect = np.zeros((len(tables[0]), *(self.shape[axis] for axis in axes)))
        for margin, table in zip(self.margins, tables, strict=True):
            if margin in over:
                gone = tuple(i + 1 for i, axis in enumerate(margin) if axis not in axes)
                effect += table.sum(axis=gone) * (self._precision(axes, margin) / whole)
        for axis in range(1, len(axes) + 1):
            effect -= effect.mean(axis=axis, keepdims=True)
        return effect

    def _from_effects(self, margin: Axes, effects: dict[Axes, Floats]) -> Floats:
        """A margin as the sum of the effects of its axes, each spread evenly."""
        rows = len(effects[()])
        total = np.zeros((rows, *(self.shape[axis] for axis in margin)))
        for axes in subsets(margin):
            wide = tuple(self.shape[axis] if axis in axes else 1 for axis in margin)
            total += effects[axes].reshape(rows, *wide) * (self._size(axes) / self._size(margin))
        return total
