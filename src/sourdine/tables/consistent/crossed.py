"""Crossed margins: a table of cells, and its sums over some columns, each measured with the same noise.

A table is a sum of effects, one for each set of columns: what remains of the sums by those columns once the
effects of fewer are taken out. Effects of unlike sets are orthogonal, in every margin. So least squares falls
apart into one weighted mean for each set, over the margins that hold its columns, and needs no matrix.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product

import numpy as np
from numpy.typing import NDArray

from sourdine.tables.answer import ALL, Cell
from sourdine.tables.consistent.whole import diffused

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Axes = tuple[int, ...]
_ROUNDS = 60
_RAKES = 10
_RELAXED = 1.6
_PENALTY = 2.0
_CLOSE = 0.01  # of a record: rounding moves more


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

    def keys(self, names: Sequence[Sequence[Cell]]) -> list[tuple[Cell, ...]]:
        """The key of every number, given the keys of each axis; an axis that is summed over has 'all'."""
        found: list[tuple[Cell, ...]] = []
        for margin in self.margins:
            listed = [names[axis] if axis in margin else (ALL,) for axis in range(len(self.shape))]
            found += product(*listed)
        return found

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
        held = {}
        for axes in self._sets:
            free = math.prod((self.shape[axis] - 1) / self.shape[axis] for axis in axes)
            held[axes] = free / sum(self._precision(axes, margin) for margin in self._over(axes))
        each = [
            sum(held[axes] * (self._size(axes) / self._size(margin)) ** 2 for axes in _subsets(margin))
            for margin in self.margins
        ]
        return np.repeat(np.array(each), [self._size(margin) for margin in self.margins])

    def whole(self, noisy: Floats) -> Ints:
        """Whole numbers, none negative, that are sums of the same cells, near the best estimates.

        Margins come first, the smaller before the larger: each is the nearest to its best estimate that has
        no negative number and agrees with those before it. Fitted all at once, the many cells that noise
        would make negative would push up their sums.
        """
        effects = self._effects(noisy)
        fitted: dict[Axes, Floats] = {}
        for margin in self._shared:
            held = {axes: table for axes, table in fitted.items() if set(axes) < set(margin)}
            fitted[margin] = _fit(margin, self._from_effects(margin, effects), held)
        cells = np.stack([diffused(table, self.margins) for table in fitted[self._sets[-1]]])
        return self.exact(cells.reshape(len(noisy), -1))

    @property
    def _shared(self) -> list[Axes]:
        """The margins and what any of them share, the smaller ones first; the total is always among them."""
        found: set[Axes] = {(), *self.margins}
        for margin in self.margins:
            found |= {tuple(axis for axis in each if axis in margin) for each in found}
        return sorted(found, key=lambda axes: (len(axes), axes))

    @property
    def _sets(self) -> list[Axes]:
        return _subsets(tuple(range(len(self.shape))))

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
        found = np.zeros((len(tables[0]), *(self.shape[axis] for axis in axes)))
        for margin, table in zip(self.margins, tables, strict=True):
            if margin in over:
                gone = tuple(i + 1 for i, axis in enumerate(margin) if axis not in axes)
                found += table.sum(axis=gone) * (self._precision(axes, margin) / whole)
        for axis in range(1, len(axes) + 1):
            found -= found.mean(axis=axis, keepdims=True)
        return found

    def _from_effects(self, margin: Axes, effects: dict[Axes, Floats]) -> Floats:
        """A margin as the sum of the effects of its axes, each spread evenly."""
        rows = len(effects[()])
        total = np.zeros((rows, *(self.shape[axis] for axis in margin)))
        for axes in _subsets(margin):
            wide = tuple(self.shape[axis] if axis in axes else 1 for axis in margin)
            total += effects[axes].reshape(rows, *wide) * (self._size(axes) / self._size(margin))
        return total


def _fit(margin: Axes, best: Floats, fitted: dict[Axes, Floats]) -> Floats:
    """The margin without negative numbers that is nearest to the best, among those that agree with others.

    By the alternating direction method of multipliers: in turn the nearest that agrees, which is a sum of
    means, and the nearest without negative numbers. It ends without negative numbers, whenever one stops, and
    a few rounds of proportional fitting bring it to agree. A total is rounded.
    """
    if not margin:
        return np.rint(np.maximum(best, 0.0))
    sums = {tuple(margin.index(axis) for axis in axes): table for axes, table in fitted.items()}
    fixed = {axes for each in sums for axes in _subsets(each)}
    means = {axes: table * (table[0].size / best[0].size) for axes, table in sums.items()}
    aim = best
    for axes in sorted(means, key=len):  # the means of the larger are those of the smaller already
        aim = aim + _spread(means[axes], axes, best.ndim) - _mean(aim, axes)
    if (aim >= 0).all():
        return aim
    step = _by_effect(best.ndim - 1, lambda axes: 0.0 if axes in fixed else _PENALTY / (1 + _PENALTY))
    still = aim / (1 + _PENALTY) + _by_effect(best.ndim - 1, lambda axes: float(axes in fixed))(aim) * (
        _PENALTY / (1 + _PENALTY)
    )
    kept, gap = np.maximum(aim, 0.0), np.zeros_like(aim)
    for _ in range(_ROUNDS):
        free = still + step(kept - gap)
        mixed = _RELAXED * free + (1 - _RELAXED) * kept
        before, kept = kept, np.maximum(mixed + gap, 0.0)
        gap += mixed - kept
        if np.abs(free - kept).max() < _CLOSE and np.abs(kept - before).max() < _CLOSE:
            break
    return _raked(kept, sums)


def _raked(table: Floats, sums: dict[Axes, Floats]) -> Floats:
    """The table scaled in proportion until it has these sums, as nearly as its zeros allow."""
    for _ in range(_RAKES):
        for axes in sorted(sums, key=len, reverse=True):  # the total last: it is the surest
            gone = tuple(axis for axis in range(1, table.ndim) if axis - 1 not in axes)
            now, aim = table.sum(axis=gone, keepdims=True), _spread(sums[axes], axes, table.ndim)
            table = table * np.divide(aim, now, out=np.zeros_like(aim), where=now > 0)
    return table


def _spread(table: Floats, axes: Axes, many: int) -> Floats:
    """A margin with an axis of length 1 for each that it lacks."""
    return np.expand_dims(table, tuple(axis for axis in range(1, many) if axis - 1 not in axes))


def _mean(table: Floats, axes: Axes) -> Floats:
    gone = tuple(axis for axis in range(1, table.ndim) if axis - 1 not in axes)
    found: Floats = table.mean(axis=gone, keepdims=True)
    return found


def _by_effect(many: int, factor: Callable[[Axes], float]) -> Callable[[Floats], Floats]:
    """The map that multiplies the effects of each set of axes by a factor.

    The effects of a set are sums and differences of means, so the whole is a weighted sum of means.
    """
    sets = _subsets(tuple(range(many)))
    weights = {
        axes: sum((-1) ** (len(more) - len(axes)) * factor(more) for more in sets if set(axes) <= set(more))
        for axes in sets
    }
    full = sets[-1]

    def applied(table: Floats) -> Floats:
        means = {full: table}
        for axes in sets[-2::-1]:
            more, axis = _next(axes, many)
            means[axes] = means[more].mean(axis=axis + 1, keepdims=True)
        means = {axes: means[axes] * weights[axes] for axes in sets}
        for axes in sets[:-1]:  # the small ones are added into larger ones first
            more, _ = _next(axes, many)
            means[more] = means[more] + means[axes]
        return means[full]

    return applied


def _next(axes: Axes, many: int) -> tuple[Axes, int]:
    """The same axes and the first that is not among them."""
    axis = next(each for each in range(many) if each not in axes)
    return tuple(sorted((*axes, axis))), axis


def _subsets(axes: Axes) -> list[Axes]:
    """All sets of some axes, the smaller ones first."""
    return list(chain.from_iterable(combinations(axes, many) for many in range(len(axes) + 1)))
