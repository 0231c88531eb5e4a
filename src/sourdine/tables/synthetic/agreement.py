"""Noisy counts made to agree: means by their variances, nobody below zero, tables with the margins of all.

All of it is post-processing: it sees noisy numbers alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROUNDS, _POLISH = 300, 400
_CLOSE = 1e-7  # of all records, by which margins may still differ
_FLOOR = 1e-9  # of the product of margins, so that no row is left without a cell
_LEAST = 1e-12  # of a record, where nobody is expected and anybody who comes needs a cell


def weighted_mean(estimates: Sequence[Floats], variances: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The mean of estimates of the same numbers, each by the inverse of its variance, and its variance.

    >>> mean, variance = weighted_mean([np.array([4.0]), np.array([10.0])], [np.ones(1), np.full(1, 2.0)])
    >>> mean.tolist(), variance.round(3).tolist()
    ([6.0], [0.667])
    """
    weights = [1 / each for each in variances]
    total = np.sum(weights, axis=0)
    summed = np.sum([value * weight for value, weight in zip(estimates, weights, strict=True)], axis=0)
    return np.asarray(summed / total, np.float64), np.asarray(1 / total, np.float64)


def mean_total(sums: Sequence[tuple[float, float]]) -> float:
    """How many records there are by several noisy sums, each with its variance; never below 0."""
    weights = [1 / variance for _, variance in sums]
    mean = sum(value * weight for (value, _), weight in zip(sums, weights, strict=True)) / sum(weights)
    return max(mean, 0.0)


def on_simplex(values: Floats, variances: Floats, total: float) -> Floats:
    """The nearest numbers from 0 on that add up to a total, where what varies more gives way more.

    >>> on_simplex(np.array([5.0, 3.0, -1.0]), np.ones(3), 6.0).tolist()
    [4.0, 2.0, 0.0]
    """
    if total <= 0:
        return np.zeros(len(values))
    order = np.argsort(-(values / variances), kind="stable")
    sums = np.cumsum(values[order]) - total
    slopes = sums / np.cumsum(variances[order])
    inside = np.flatnonzero(values[order] / variances[order] > slopes)
    shift = slopes[inside[-1]]
    moved = np.maximum(values - shift * variances, 0.0)
    return np.asarray(moved * (total / moved.sum()), np.float64)


def with_margins(table: Floats, rows: Floats, columns: Floats, allowed: NDArray[np.bool_] | None) -> Floats:
    """The nearest table from 0 on with these sums, which add up to the same total.

    Dykstra's projections, between the tables with the sums and those without negative cells, come close;
    proportional fitting then ends it. `allowed` is false where a cell is declared to hold nobody. Where zeros
    leave no table with both sums, those of the rows hold.
    """
    total = float(rows.sum())
    if total <= 0:
        return _with_weight(np.zeros_like(table), rows, allowed)
    cells, debt = table, np.zeros_like(table)
    for _ in range(_ROUNDS):
        level = _to_sums(cells, rows, columns)
        goal = level + debt
        cells = np.maximum(goal, 0.0)
        if allowed is not None:
            cells[~allowed] = 0.0
        debt = goal - cells
        if max(_off(cells.sum(1), rows), _off(cells.sum(0), columns)) <= _CLOSE * total:
            break
    floor = np.outer(rows, columns) * (_FLOOR / total)
    if allowed is not None:
        floor[~allowed] = 0.0
    cells = cells + floor
    for _ in range(_POLISH):
        cells = cells * _ratio(columns, cells.sum(0))
        cells = cells * _ratio(rows, cells.sum(1))[:, None]
        if _off(cells.sum(0), columns) <= _CLOSE * total:
            break
    return _with_weight(cells, rows, allowed)


def _with_weight(cells: Floats, rows: Floats, allowed: NDArray[np.bool_] | None) -> Floats:
    """The same, where each row and column has some weight in cells that may be: who is drawn goes there.

    Only zeros need that. A row that they left without weight gets its sum, a column next to nothing.
    """
    if allowed is None:
        return cells
    of_rows = allowed * (np.maximum(rows, _LEAST) / np.maximum(allowed.sum(1), 1))[:, None]
    cells = np.where((cells.sum(1) <= 0)[:, None], of_rows, cells)
    return np.where((cells.sum(0) <= 0)[None, :] & allowed, _LEAST, cells)


def _to_sums(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The nearest table with these sums, by adding to rows and to columns alike."""
    high, wide = table.shape
    of_rows, of_columns = rows - table.sum(1), columns - table.sum(0)
    mean = of_rows.sum() / (high * wide)
    return np.asarray(table + (of_rows / wide)[:, None] + (of_columns / high)[None, :] - mean, np.float64)


def _ratio(goal: Floats, cells: Floats) -> Floats:
    """What to multiply by; 1 where nothing is cells, so that no 0/0 spreads."""
    return np.divide(goal, cells, out=np.ones_like(goal), where=cells > 0)


def _off(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).max(initial=0.0))
