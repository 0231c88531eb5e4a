"""The choice of a spanning tree of pairs: by scores that are whole numbers, edge after edge, privately."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.mechanisms import Exponential
from sourdine.tables.synthetic.pairs import Counts, Pair

Floats = NDArray[np.float64]
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
