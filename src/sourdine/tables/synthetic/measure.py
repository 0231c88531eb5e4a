"""What is measured of one part of the records: counts of columns, a choice of pairs, counts of those.

First come the counts of each column by itself. Cells that they tell nothing about, below five deviations of
their noise, are then one cell together, so that the tables of pairs have few empty ones.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Exponential, Gaussian
from sourdine.tables.synthetic.agreement import mean_total, on_simplex

# Exact counts of records by the cells of two columns, for every pair of columns in few passes.
#
# Columns are packed into blocks whose cells together are few. One count by the cells of two blocks holds
# the tables of every pair of their columns, which are sums of it.

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


Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_MOST = 2.0**40
_TELLING = 5  # deviations of noise from which on a cell is kept by itself


@dataclass(frozen=True, kw_only=True)
class SynthesisNoise:
    """The mechanisms of a synthesis: for each column, for the choice of an edge, and for pairs."""

    columns: tuple[Gaussian, ...]
    edges: Exponential
    pairs: Gaussian


@dataclass(frozen=True, kw_only=True)
class PartMeasurement:
    """Noisy counts of a part: of each column, and of the pairs that were chosen, in cells that were joined.

    `cells` gives for each column the place of each of its cells among those of the tables.
    """

    columns: tuple[Counts, ...]
    cells: tuple[Places, ...]
    edges: tuple[Pair, ...]
    tables: tuple[Counts, ...]


def measure_part(
    codes: Sequence[Codes],
    sizes: Sequence[int],
    noise: SynthesisNoise,
    bits: Bits,
    *,
    fixed: Sequence[Pair] = (),
    whole: Collection[int] = (),
) -> PartMeasurement:
    """Noisy counts of a part of the records, given by the cells they lie in; what is chosen is private too.

    A record counts once in each column and once in each table. Edges that are `fixed` need no choice, and no
    cells of columns that are `whole` are joined. Whatever the codes are, nothing is raised.
    """
    singles = tuple(
        of_column.sample(count_cells([code], [size]), bits)
        for of_column, code, size in zip(noise.columns, codes, sizes, strict=True)
    )
    cells = tuple(
        np.arange(sizes[column]) if column in whole else join_cells(single, float(of_column.sigma))
        for column, (of_column, single) in enumerate(zip(noise.columns, singles, strict=True))
    )
    widths = [int(places.max()) + 1 for places in cells]
    records = [narrow(places)[code] for places, code in zip(cells, codes, strict=True)]
    edges = tuple(fixed)
    if len(codes) - 1 > len(fixed):
        scores = _scores(records, widths, _independent(singles, cells, noise))
        edges = choose_tree(scores, len(codes), fixed, noise.edges, bits)
    tables = tuple(noise.pairs.sample(pair_table(records, widths, edge), bits) for edge in edges)
    return PartMeasurement(columns=singles, cells=cells, edges=edges, tables=tables)


def narrow(places: Places) -> Codes:
    """Places in few bytes, for the records that have them."""
    return places.astype(
        np.uint8 if places.max() < 1 << 8 else np.uint16 if places.max() < 1 << 16 else np.int32
    )


def join_cells(noisy: Counts, sigma: float) -> Places:
    """The place of each cell once those that noise hides are one, the last, if they are several.

    >>> join_cells(np.array([90, 2, 70, -4]), 10.0).tolist()
    [0, 2, 1, 2]
    """
    hidden = noisy < _TELLING * sigma
    if hidden.sum() < 2:
        return np.arange(len(noisy))
    return np.where(hidden, (~hidden).sum(), np.cumsum(~hidden) - 1)


def _independent(singles: Sequence[Counts], cells: Sequence[Places], noise: SynthesisNoise) -> list[Floats]:
    """The margins that scores are compared with: of noisy counts alone."""
    variances = [float(of_column.sigma) ** 2 for of_column in noise.columns]
    sums = [
        (float(each.sum()), variance * len(each)) for each, variance in zip(singles, variances, strict=True)
    ]
    total = min(mean_total(sums), _MOST)  # so that scores are whole numbers that floats hold
    margins = []
    for single, variance, places in zip(singles, variances, cells, strict=True):
        alone = on_simplex(single.astype(np.float64), np.full(len(single), variance), total)
        margins.append(np.bincount(places, alone).astype(np.float64))
    return margins


def _scores(records: Sequence[Codes], widths: Sequence[int], margins: Sequence[Floats]) -> list[int]:
    """A score for each pair of columns."""
    total = max(float(margins[0].sum()), 1.0)
    scores = {
        (one, other): score(table, np.outer(margins[one], margins[other]) / total)
        for (one, other), table in pair_tables(records, widths)
    }
    return [scores[pair] for pair in all_pairs(len(records))]


# The choice of a spanning tree of pairs: by scores that are whole numbers, edge after edge, privately.


FINENESS = 16
"""Steps of the scores' grid to one record."""


def all_pairs(columns: int) -> list[Pair]:
    """Every pair, in the order of the scores."""
    return list(combinations(range(columns), 2))


def score(table: Counts, expected: Floats) -> int:
    """How far a table of counts lies from what its margins say, in steps of a grid.

    `expected` is public, and rounded to the grid before anything private is compared with it: the score is a
    whole number, which one record that is added or removed changes by FINENESS at most, since it changes one
    count by 1, and one that is replaced by twice that.

    >>> score(np.array([[3, 0], [0, 3]]), np.full((2, 2), 1.5)) / FINENESS
    6.0
    """
    steps = np.rint(expected * FINENESS).astype(np.int64)
    return int(np.abs(table * FINENESS - steps).sum())


def choose_tree(
    scores: Sequence[int], columns: int, fixed: Sequence[Pair], mechanism: Exponential, bits: Bits
) -> tuple[Pair, ...]:
    """Edges that join all columns: those that are fixed, then others, each among those between two pieces."""
    pairs = all_pairs(columns)
    piece = np.arange(columns)
    for one, other in fixed:
        piece[piece == piece[other]] = piece[one]
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    worth = np.array(scores, np.float64)  # whole numbers below 2^53
    chosen = list(fixed)
    for _ in range(columns - 1 - len(fixed)):
        apart = piece[ends[:, 0]] != piece[ends[:, 1]]
        place = int(mechanism.sample(np.where(apart, worth, -np.inf), bits))
        one, other = pairs[place]
        chosen.append((one, other))
        piece[piece == piece[other]] = piece[one]
    return tuple(chosen)


def from_root(edges: Iterable[Pair], columns: int) -> list[tuple[int, int | None]]:
    """Every column after its parent, the one with most neighbours first; a column apart has no parent.

    >>> from_root([(0, 1), (1, 2)], 4)
    [(1, None), (0, 1), (2, 1), (3, None)]
    """
    near: list[list[int]] = [[] for _ in range(columns)]
    for one, other in edges:
        near[one].append(other)
        near[other].append(one)
    order: list[tuple[int, int | None]] = []
    done: set[int] = set()
    for root in sorted(range(columns), key=lambda column: -len(near[column])):
        waiting: list[tuple[int, int | None]] = [(root, None)] if root not in done else []
        done.add(root)
        while waiting:
            column, parent = waiting.pop(0)
            order.append((column, parent))
            new = [each for each in near[column] if each not in done]
            done.update(new)
            waiting += [(each, column) for each in new]
    return order
