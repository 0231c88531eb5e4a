"""From reals to whole numbers that keep sums: parts of known totals, and tables with many margins.

All of it is post-processing of noisy numbers: it sees no record.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
