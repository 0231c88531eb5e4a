"""Margins without negative numbers, near their best estimates, that agree with smaller ones.

All of it is post-processing of noisy numbers: it sees no record.
"""

import math
from collections.abc import Callable, Iterable
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from sourdine.tables.consistent.whole import shared_out

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
