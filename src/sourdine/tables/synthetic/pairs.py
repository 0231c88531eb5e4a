"""Exact counts of records by the cells of two columns, for every pair of columns in few passes.

Columns are packed into blocks whose cells together are few. One count by the cells of two blocks holds the
tables of every pair of their columns, which are sums of it.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer]
Counts = NDArray[np.int64]
Pair = tuple[int, int]
_BLOCK = 1 << 8  # cells of a block of several columns: a count by two of them stays in the cache
_AT_ONCE = 1 << 18  # records that are counted at once, so that no array of theirs is large


def blocks(sizes: Sequence[int]) -> list[list[int]]:
    """Columns packed into blocks of few cells, each column in one.

    >>> blocks([2, 100, 3, 300, 40])
    [[3], [1, 0], [4, 2]]
    """
    order = sorted(range(len(sizes)), key=lambda column: -sizes[column])
    packed: list[list[int]] = []
    for column in order:
        for block in packed:
            if math.prod(sizes[each] for each in block) * sizes[column] <= _BLOCK:
                block.append(column)
                break
        else:
            packed.append([column])
    return packed


def pair_tables(codes: Sequence[Codes], sizes: Sequence[int]) -> Iterator[tuple[Pair, Counts]]:
    """The table of every pair of columns, the lower column first: whole numbers, exact in any order."""
    packed = blocks(sizes)
    coded = [_joint(codes, sizes, block) for block in packed]
    for one, other in combinations_with_replacement(range(len(packed)), 2):
        columns = packed[one] if one == other else [*packed[one], *packed[other]]
        widths = [sizes[column] for column in columns]
        if one == other:
            if len(columns) < 2:
                continue
            counts = count_cells([coded[one]], [math.prod(widths)])
        else:
            parts = [math.prod(sizes[column] for column in packed[place]) for place in (one, other)]
            counts = count_cells([coded[one], coded[other]], parts)
        table = counts.reshape(widths)
        first, second = set(packed[one]), set(packed[other])
        for i, a in enumerate(columns):
            for j, b in enumerate(columns[i + 1 :], start=i + 1):
                if one != other and not (a in first and b in second):
                    continue
                rest = tuple(axis for axis in range(len(columns)) if axis not in (i, j))
                summed: Counts = table.sum(axis=rest)
                yield ((a, b), summed) if a < b else ((b, a), summed.T)


def count_cells(codes: Sequence[Codes], sizes: Sequence[int]) -> Counts:
    """How many records have each combination of cells, the last changing quickest."""
    cells = math.prod(sizes)
    total = np.zeros(cells, np.int64)
    for start in range(0, len(codes[0]), _AT_ONCE):
        joint = np.zeros(min(_AT_ONCE, len(codes[0]) - start), np.int64)
        for code, size in zip(codes, sizes, strict=True):
            joint *= size
            joint += code[start : start + _AT_ONCE]
        total += np.bincount(joint, minlength=cells)
    return total


def pair_table(codes: Sequence[Codes], sizes: Sequence[int], pair: Pair) -> Counts:
    """The table of one pair of columns."""
    one, other = pair
    counts = count_cells([codes[one], codes[other]], [sizes[one], sizes[other]])
    return counts.reshape(sizes[one], sizes[other])


def _joint(codes: Sequence[Codes], sizes: Sequence[int], block: Sequence[int]) -> Codes:
    """The cell of each record in a block of columns."""
    if len(block) == 1:
        return codes[block[0]]
    joint = np.zeros(len(codes[0]), np.uint16)
    for column in block:
        joint *= np.uint16(sizes[column])
        joint += codes[column].astype(np.uint16)
    return joint
