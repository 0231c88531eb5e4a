"""Crossed margins: a table of cells, and its sums over some columns, each measured with the same noise.

A table is a sum of effects, one for each set of columns: what remains of the sums by those columns once the
effects of fewer are taken out. Effects of unlike sets are orthogonal, in every margin. So least squares falls
apart into one weighted mean for each set, over the margins that hold its columns, and needs no matrix.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.mechanism import Mechanism
from sourdine.frames import aggregate as sums
from sourdine.frames.keys import Cell, Keys, values_of
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.mechanisms import Gaussian
from sourdine.tables.answers import ALL
from sourdine.tables.intervals import GroupEstimate, Noisy, deviation, like_noises, worst_noises
from sourdine.tables.measurement import Context, Exact, GroupSums, KeyAxis, PlannedMeasurement

# Margins without negative numbers, near their best estimates, that agree with smaller ones.
#
# All of it is post-processing of noisy numbers: it sees no record.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Axes = tuple[int, ...]
_ROUNDS = 60
_RAKES = 10
_RELAXED = 1.6
_PENALTY = 2.0
_CLOSE = 0.01  # of a record: rounding moves more
_FAR = 0.1  # of a record: what sums may be off before it matters
_SPARE = 0.01  # what proportional fitting gets to start from where there is nothing


def fit(margin: Axes, best: Floats, fitted: dict[Axes, Floats]) -> Floats:
    """The margin without negative numbers that is nearest to the best, among those that agree with others.

    A total is rounded; what only has to agree with that is made of whole numbers. The rest goes by the
    alternating direction method of multipliers: in turn the nearest that agrees, which is a sum of means, and
    the nearest without negative numbers. It ends without negative numbers, whenever one stops; proportional
    fitting brings it to agree more nearly, and what is still amiss is moved.
    """
    if not margin:
        return np.rint(np.maximum(best, 0.0))
    rows = len(best)
    if set(fitted) == {()}:
        owner = np.repeat(np.arange(rows), best[0].size)
        parts = shared_out(best.ravel(), np.ones(best.size), owner, fitted[()].astype(np.int64))
        return parts.reshape(best.shape).astype(np.float64)
    sums = {tuple(margin.index(axis) for axis in axes): table for axes, table in fitted.items()}
    near = _nearest(best, sums)
    raked = _raked(near, sums)
    if max(np.abs(_margin(raked, axes) - aim).max() for axes, aim in sums.items()) > _FAR:
        raked = _raked(near + _SPARE * _even(best.shape, sums), sums)  # zeros kept it from these sums
    return moved_to(raked, sums)


def _nearest(best: Floats, sums: dict[Axes, Floats]) -> Floats:
    """The nearest to the best without negative numbers, which has about these sums."""
    fixed = {axes for each in sums for axes in subsets(each)}
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
    cells, gap = np.maximum(aim, 0.0), np.zeros_like(aim)
    for _ in range(_ROUNDS):
        free = still + step(cells - gap)
        mixed = _RELAXED * free + (1 - _RELAXED) * cells
        before, cells = cells, np.maximum(mixed + gap, 0.0)
        gap += mixed - cells
        if np.abs(free - cells).max() < _CLOSE and np.abs(cells - before).max() < _CLOSE:
            break
    return cells


def _raked(table: Floats, sums: dict[Axes, Floats]) -> Floats:
    """The table scaled in proportion until it has these sums, as nearly as its zeros allow."""
    table = table.copy()
    for _ in range(_RAKES):
        for axes in sorted(sums, key=len, reverse=True):  # the total last: it is the surest
            now, aim = _sum(table, axes), _spread(sums[axes], axes, table.ndim)
            table *= np.divide(aim, now, out=np.zeros_like(aim), where=now > 0)
    return table


def _spread(table: Floats, axes: Axes, many: int) -> Floats:
    """A margin with an axis of length 1 for each that it lacks."""
    return np.expand_dims(table, tuple(axis for axis in range(1, many) if axis - 1 not in axes))


def _sum(table: Floats, axes: Axes) -> Floats:
    sums: Floats = table.sum(axis=_gone(table, axes), keepdims=True)
    return sums


def _margin(table: Floats, axes: Axes) -> Floats:
    sums: Floats = table.sum(axis=_gone(table, axes))
    return sums


def _gone(table: Floats, axes: Axes) -> Axes:
    return tuple(axis for axis in range(1, table.ndim) if axis - 1 not in axes)


def _mean(table: Floats, axes: Axes) -> Floats:
    means: Floats = table.mean(axis=_gone(table, axes), keepdims=True)
    return means


def _by_effect(many: int, factor: Callable[[Axes], float]) -> Callable[[Floats], Floats]:
    """The map that multiplies the effects of each set of axes by a factor.

    The effects of a set are sums and differences of means, so the whole is a weighted sum of means.
    """
    sets = subsets(tuple(range(many)))
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


def moved_to(table: Floats, sums: dict[Axes, Floats]) -> Floats:
    """The table with the sums that share no axis, exactly: the nearest way that changes no sign.

    What is above a sum is scaled down to it. Then all of them lack as much, and that is spread by the product
    of what they lack (Altschuler, Weed, Rigollet 2017, algorithm 2, there for two axes).
    """
    for axes in disjoint(sums):
        now, aim = _sum(table, axes), _spread(sums[axes], axes, table.ndim)
        table = table * np.minimum(np.divide(aim, now, out=np.ones_like(aim), where=now > 0), 1.0)
    lacks = {axes: np.maximum(sums[axes] - _margin(table, axes), 0.0) for axes in disjoint(sums)}
    return table + _even(table.shape, lacks)


def _even(shape: tuple[int, ...], sums: dict[Axes, Floats]) -> Floats:
    """The product of sums that share no axis: a table of that total, spread evenly over other axes."""
    apart, many = disjoint(sums), math.prod(shape[1:])
    outer = np.ones((shape[0], *[1] * (len(shape) - 1)))
    for axes in apart:
        outer = outer * _spread(sums[axes], axes, len(shape))
        many //= math.prod(shape[axis + 1] for axis in axes)
    total = sums[apart[0]].reshape(shape[0], -1).sum(axis=1).reshape(outer.shape[0], *[1] * (len(shape) - 1))
    whole = total ** (len(apart) - 1) * many
    even: Floats = np.divide(np.broadcast_to(outer, shape), whole, out=np.zeros(shape), where=whole > 0)
    return even


def disjoint(sums: Iterable[Axes]) -> list[Axes]:
    """As many of the smallest as share no axis; the total if there is nothing else."""
    apart: list[Axes] = []
    for axes in sorted(sums, key=lambda each: (len(each), each)):
        if axes and not any(set(axes) & set(other) for other in apart):
            apart.append(axes)
    return apart or [()]


def subsets(axes: Axes) -> list[Axes]:
    """All sets of some axes, the smaller ones first."""
    return list(chain.from_iterable(combinations(axes, many) for many in range(len(axes) + 1)))


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


# Nested levels: a total, its parts, their parts, each level measured with the same noise.
#
# Least squares on a tree takes two passes (Hay, Rastogi, Miklau, Suciu 2010, section 4.1, there for trees
# whose nodes all have like many children): up, every node is joined with the sum of its children, each
# weighted by one over its variance; down, what a parent was found to differ from that sum is shared out
# among the children by their variances.


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


# Tables with some of their sums: how far a unit moves them, and whole numbers that add up.


Structure = Crossed | Nested
_OFF = 1e-6
ADDING_UP = "at most, for numbers that add up; mostly less"


class AddsUp(Protocol):
    """A statistic that asks for a table and its sums."""

    @property
    def label(self) -> str:
        """What is asked, in a few words."""

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """The columns of the table."""

    def structure(self, schema: Schema) -> Structure:
        """What adds up to what."""

    def inner(self, schema: Schema) -> Keys:
        """The key of every number: 'all' where it is a sum over a column."""


@dataclass(frozen=True, kw_only=True)
class Margins(GroupSums):
    """The cells of a table in each group, and some of their sums, each with its own noise."""

    table: AddsUp

    @property
    def label(self) -> str:
        return self.table.label

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        return self.table.axes

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return sums.BernsteinSums(value=value, max_rows=unit.max_rows)

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        structure = self.table.structure(schema)
        return distance_of(structure, self.groups(schema) // structure.cells, unit, neighbours, squared)

    def numbers(self, exact: Exact, schema: Schema, unit: PrivacyUnit) -> NDArray[Any]:
        structure = self.table.structure(schema)
        return structure.exact(super().numbers(exact, schema, unit).reshape(-1, structure.cells))

    def estimate(self, noisy: Noisy, schema: Schema) -> tuple[GroupEstimate, Keys]:
        """Whole numbers that add up, and their keys."""
        structure, inner = self.table.structure(schema), self.table.inner(schema)
        every = self.keys(schema)[:: structure.cells]
        outer = Keys(every.columns[: len(self.scope.by)], every.size)
        return agreed(structure, noisy), outer.each_with(inner)

    def error(self, line: PlannedMeasurement, context: Context) -> float:
        """What the noise of all estimates stays within."""
        structure = self.table.structure(context.schema)
        return float(reaches(structure, line.mechanism, context.confidence).max())


def distance_of(
    structure: Structure, tables: int, unit: PrivacyUnit, neighbours: Neighbours, squared: bool
) -> Distance:
    """How far a unit moves the numbers of so many tables, each with all its sums.

    Only the cells are bounded: a unit counts in at most g of them with at most m records each, and sums are
    taken afterwards, so that they add up. So it moves the sums of one kind by g m in L1, whatever they are.
    In L2 it moves them most where its cells fall into as few sums as they can: of c cells each, g // c whole
    ones and one that holds the rest. A unit replaced is one that leaves and one that enters.
    """
    twice = 2 if neighbours is Neighbours.REPLACE else 1
    groups = min(unit.max_groups, tables * structure.cells)
    coordinates = twice * groups * len(structure.merged)
    if squared:
        lengths = sum((groups // c) * c**2 + (groups % c) ** 2 for c in structure.merged)
        square = Fraction(twice * unit.max_rows**2 * lengths)
        return Distance.l2(square=square, coordinates=coordinates, neighbours=neighbours)
    amount = Fraction(twice * groups * unit.max_rows * len(structure.merged))
    return Distance.l1(amount, coordinates=coordinates, neighbours=neighbours)


def agreed(structure: Structure, noisy: Noisy) -> GroupEstimate:
    """Whole numbers that add up, each with an interval for its exact count.

    The interval is that of the best linear estimate, whose noise is known, cut off at 0, and widened where
    it does not hold the whole number.
    """
    best = structure.best(noisy.numbers)
    value = structure.whole(noisy.numbers).astype(float)
    reach = reaches(structure, noisy.mechanism, noisy.confidence)
    # exact counts are whole, and floats are off by far less than this
    lower = np.minimum(np.maximum(np.floor(best - reach + _OFF), 0.0), value)
    upper = np.maximum(np.ceil(best + reach - _OFF), value)
    return GroupEstimate(value.ravel(), lower.ravel(), upper.ravel())


def reaches(structure: Structure, mechanism: Mechanism, confidence: float) -> NDArray[np.float64]:
    """What the noise of each best estimate stays within.

    All noises are alike, so the estimates are a projection, and the weight of a number's own noise in its
    estimate is the estimate's variance; with that noise alone it would not be narrower. How the rest is
    spread over other noises is not looked at: the widest law with that variance is taken.
    """
    spread = structure.variances
    if isinstance(mechanism, Gaussian):
        wide = float(like_noises(mechanism, 1.0, confidence))
    else:
        wide = worst_noises(confidence) * deviation(mechanism)
    return np.maximum(wide * np.sqrt(spread), spread * mechanism.error(confidence))


# From reals to whole numbers that keep sums: parts of known totals, and tables with many margins.
#
# All of it is post-processing of noisy numbers: it sees no record.


_MOST_STEPS = 20_000
_TINY = 1e-7  # what is so near a whole number is one


def shared_out(values: Floats, weights: Floats, owner: Ints, totals: Ints) -> Ints:
    """Whole numbers, none negative, near the values, that add up to the total of each owner.

    They are the nearest point of the simplex by squares divided by weights, rounded by largest remainders.
    `owner` rises; every owner has a value.

    >>> shared_out(np.array([5.5, 2.5, -4.0]), np.ones(3), np.zeros(3, np.int64), np.array([7])).tolist()
    [5, 2, 0]
    """
    starts = np.searchsorted(owner, np.arange(len(totals)))
    order = np.lexsort((-values / weights, owner))
    high, heavy = values[order], weights[order]
    above = _upto(high, starts, owner) - totals[owner]
    level = above / _upto(heavy, starts, owner)  # what to take off, for each weight, if only these stay
    stay = np.maximum(np.bincount(owner, high > level * heavy, len(totals)).astype(np.int64), 1)
    real = np.empty_like(values)
    real[order] = np.maximum(high - level[starts + stay - 1][owner] * heavy, 0.0)
    down = _floor(real)
    lack = totals - np.bincount(owner, down, len(totals)).astype(np.int64)
    order = np.lexsort((down - real, owner))
    rank = np.arange(len(values)) - starts[owner]
    parts = down.copy()
    parts[order] += rank < lack[owner]
    return parts


def _upto(values: Floats, starts: Ints, owner: Ints) -> Floats:
    """Sums of the values of an owner up to each."""
    sums = np.cumsum(values)
    return sums - (sums[starts] - values[starts])[owner]


def _floor(real: Floats) -> Ints:
    return np.floor(real + _TINY).astype(np.int64)


def diffused(table: Floats, margins: Sequence[tuple[int, ...]]) -> Ints:
    """The table rounded up or down in each cell, such that its margins stay close to what they were.

    What rounding did to each margin so far is carried along, and decides which cells are rounded up next: so
    margins of thousands of cells are off by about one, where rounding each cell by itself would add up.
    `margins` are the axes that each keeps.
    """
    inner = _inner_axes(table.shape)
    outer = [axis for axis in range(table.ndim) if axis not in inner]
    moved = np.transpose(table, [*outer, *inner])
    sizes = moved.shape[len(outer) :]
    down = _floor(moved)
    part = np.maximum(moved - down, 0.0)
    part[part < 2 * _TINY] = 0.0
    up = np.zeros(moved.shape, dtype=np.bool_)
    carried = [
        _Carried.of(margin, outer, inner, table.shape) for margin in margins if len(margin) < table.ndim
    ]
    across = [each for each in carried if each.touches]
    along = [each for each in carried if not each.touches]
    for place in product(*(range(table.shape[axis]) for axis in outer)):
        fraction = part[place]
        open_cells = np.flatnonzero(fraction.ravel() > 0)
        if not open_cells.size:
            continue
        score = (len(across) + 1) * fraction
        for each in across:
            score = score + each.at(place)
        score = score.ravel()[open_cells]
        if along:
            lack = sum(float(each.at(place).item()) for each in along) / len(along)
            many = round(lack + float(fraction.sum()))
        else:
            many = int((score > (len(across) + 1) / 2).sum())
        chosen = open_cells[_largest(score, max(0, min(many, open_cells.size)))]
        mask = np.zeros(fraction.size, dtype=np.bool_)
        mask[chosen] = True
        up[place] = mask.reshape(sizes)
        off = fraction - up[place]
        for each in carried:
            each.add(place, off)
    back = np.argsort([*outer, *inner])
    return np.transpose(down + up, back)


def kept_to(cells: Ints, table: Floats, sums: Mapping[tuple[int, ...], Floats]) -> Ints:
    """The cells with whole sums that share no axis, by as few records moved as that takes.

    A record moves from where a sum has too many to where it has too few, beside the other axes, so that other
    sums stay as they are; or comes or goes, where all sums have too few or too many. It moves between the
    cells that rounding put farthest from the table.
    """
    moved = cells
    for axes, aim in sums.items():
        order = [*axes, *(axis for axis in range(cells.ndim) if axis not in axes)]
        here = np.transpose(moved, order).reshape(aim.size, -1)
        off = here - np.transpose(table, order).reshape(aim.size, -1)
        excess = here.sum(axis=1) - np.rint(aim).astype(np.int64).ravel()
        over, under = (np.repeat(np.arange(aim.size), np.maximum(each, 0)) for each in (excess, -excess))
        for place in range(max(over.size, under.size)):
            score = np.zeros(here.shape[1])
            if place < over.size:
                score += np.where(here[over[place]] > 0, off[over[place]], -np.inf)
            if place < under.size:
                score -= off[under[place]]
            cell = int(np.argmax(score))
            for rows, change in ((over, -1), (under, 1)):
                if place < rows.size:
                    here[rows[place], cell] += change
                    off[rows[place], cell] += change
        wide = [cells.shape[axis] for axis in order]
        moved = np.transpose(here.reshape(wide), np.argsort(order))
    return moved


def _largest(score: Floats, many: int) -> Ints:
    if many == score.size:
        return np.arange(many)
    return np.argpartition(-score, many)[:many] if many else np.zeros(0, np.int64)


def _inner_axes(shape: tuple[int, ...]) -> list[int]:
    """The axes that are rounded in one step: the longest, and more until there are few steps."""
    order = sorted(range(len(shape)), key=lambda axis: -shape[axis])
    many = next(
        many for many in range(1, len(shape) + 1) if math.prod(shape[a] for a in order[many:]) <= _MOST_STEPS
    )
    return sorted(order[:many])


class _Carried:
    """What rounding did to one margin so far."""

    def __init__(self, mask: Sequence[bool], gone: tuple[int, ...], errors: Floats) -> None:
        self._mask = mask
        self._gone = gone
        self._errors = errors

    @classmethod
    def of(
        cls, margin: tuple[int, ...], outer: Sequence[int], inner: Sequence[int], shape: tuple[int, ...]
    ) -> "_Carried":
        """Nothing was done yet."""
        mask = [axis in margin for axis in outer]
        gone = tuple(place for place, axis in enumerate(inner) if axis not in margin)
        sizes = [shape[axis] for axis in outer if axis in margin]
        wide = [shape[axis] if axis in margin else 1 for axis in inner]
        return cls(mask, gone, np.zeros((*sizes, *wide)))

    @property
    def touches(self) -> bool:
        """Whether it tells cells of one step apart."""
        return len(self._gone) < self._errors.ndim - sum(self._mask)

    def at(self, place: tuple[int, ...]) -> Floats:
        """What it lacks at a step."""
        errors: Floats = self._errors[self._index(place)]
        return errors

    def add(self, place: tuple[int, ...], off: Floats) -> None:
        """Take note of what a step did."""
        self._errors[self._index(place)] += off.sum(axis=self._gone, keepdims=True)

    def _index(self, place: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(index for index, stays in zip(place, self._mask, strict=True) if stays)
