"""Nested levels: a total, its parts, their parts, each level measured with the same noise.

Least squares on a tree takes two passes (Hay, Rastogi, Miklau, Suciu 2010, section 4.1, there for trees whose
nodes all have like many children): up, every node is joined with the sum of its children, each weighted by
one over its variance; down, what a parent was found to differ from that sum is shared out among the children
by their variances.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sourdine.frames.keys import Cell, Keys
from sourdine.tables.answers.answer import ALL
from sourdine.tables.consistent.whole import shared_out

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class Nested:
    """Levels from the total down to the cells; `paths` has a row for each cell, coarse to fine.

    >>> tree = Nested((("north", "Lille"), ("south", "Nice"), ("south", "Toulon")))
    >>> tree.exact(np.array([[5, 2, 1]])).tolist(), tree.keys()[1]
    ([[8, 5, 3, 5, 2, 1]], ('north', 'all'))
    """

    paths: tuple[tuple[Cell, ...], ...]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.paths)

    @property
    def merged(self) -> tuple[int, ...]:
        """How many cells are summed in one number at most, level by level."""
        return tuple(int(np.bincount(node).max()) for node in self._nodes)

    def keys(self) -> Keys:
        """The key of every number: its path, and 'all' below it."""
        deep = len(self.paths[0])
        paths = ((*path, *[ALL] * (deep - len(path))) for level in self._levels for path in level)
        return Keys.of(paths, deep)

    def exact(self, cells: Ints) -> Ints:
        """The numbers of all levels, one row for each row of cells."""
        return np.concatenate([_summed(cells, node) for node in self._nodes], axis=1)

    def best(self, noisy: Floats) -> Floats:
        """The best linear unbiased estimate of the same numbers: they add up, and some are negative."""
        levels = self._split(noisy)
        up = [levels[-1]]
        for level, parent, own in zip(levels[-2::-1], self._parents[::-1], self._joined[::-1], strict=True):
            below = _summed(up[0], parent)
            up.insert(0, below + own[0] * (level - below))
        down = [up[0]]
        for level, parent, (_, before) in zip(up[1:], self._parents, self._joined, strict=True):
            lack = down[-1] - _summed(level, parent)
            share = before / np.bincount(parent, before)[parent]
            down.append(level + share * lack[:, parent])
        return np.concatenate(down, axis=1)

    @cached_property
    def variances(self) -> Floats:
        """The variance of each best estimate, in variances of one noise."""
        own = self._joined[0][0] if self._joined else np.ones(1)
        levels = [own]
        for parent, (_, before) in zip(self._parents, self._joined, strict=True):
            whole = np.bincount(parent, before)
            levels.append(before - (before / whole[parent]) ** 2 * (whole - levels[-1])[parent])
        return np.concatenate(levels)

    def whole(self, noisy: Floats) -> Ints:
        """Whole numbers, none negative, that add up: the total first, then parts as near as they can be."""
        best, weights = self._split(self.best(noisy)), self._split(self.variances[None])
        rows = len(noisy)
        tables = [np.rint(np.maximum(best[0], 0.0)).astype(np.int64)]
        for level, weight, parent in zip(best[1:], weights[1:], self._parents, strict=True):
            order = np.argsort(parent, kind="stable")
            many = tables[-1].shape[1]
            owner = (np.arange(rows)[:, None] * many + parent[order]).ravel()
            wide = np.broadcast_to(weight[0][order], (rows, len(parent))).ravel()
            parts = shared_out(level[:, order].ravel(), wide, owner, tables[-1].ravel())
            children = np.empty((rows, len(parent)), np.int64)
            children[:, order] = parts.reshape(rows, -1)
            tables.append(children)
        return np.concatenate(tables, axis=1)

    @cached_property
    def _levels(self) -> list[list[tuple[Cell, ...]]]:
        """The different nodes of each level, as paths."""
        deep = len(self.paths[0])
        return [list(dict.fromkeys(path[:depth] for path in self.paths)) for depth in range(deep + 1)]

    @cached_property
    def _nodes(self) -> list[Ints]:
        """The node of each cell, level by level."""
        nodes = []
        for depth, level in enumerate(self._levels):
            place = {path: i for i, path in enumerate(level)}
            nodes.append(np.array([place[path[:depth]] for path in self.paths], np.int64))
        return nodes

    @cached_property
    def _parents(self) -> list[Ints]:
        """The parent of each node, for every level but the first."""
        parents = []
        for above, level in zip(self._levels, self._levels[1:], strict=False):
            place = {path: i for i, path in enumerate(above)}
            parents.append(np.array([place[path[:-1]] for path in level], np.int64))
        return parents

    @cached_property
    def _joined(self) -> list[tuple[Floats, Floats]]:
        """For each pair of levels: the weight of a parent's own number, and its children's variances so far.

        A variance of 1 joined with one of s gets the weight s / (1 + s), and that is what remains of it too.
        """
        levels: list[tuple[Floats, Floats]] = []
        before = np.ones(len(self._levels[-1]))
        for parent in self._parents[::-1]:
            below = np.bincount(parent, before)
            own = below / (1 + below)
            levels.insert(0, (own, before))
            before = own
        return levels

    def _split(self, numbers: Floats) -> list[Floats]:
        ends = np.cumsum([len(level) for level in self._levels])[:-1]
        return np.split(numbers, ends, axis=1)


def _summed(values: NDArray[Number], owner: Ints) -> NDArray[Number]:
    """Sums by owner along the last axis."""
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(int(owner.max()) + 1))
    sums: NDArray[Number] = np.add.reduceat(values[:, order], starts, axis=1)
    return sums
