"""Records drawn from a tree of tables: whole numbers of each cell, and chance alone says who has which.

Within the records of a parent's cell, children are given out in an order drawn anew for each column. Without
that, two children of one parent would rise together, record by record.
"""

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.tables.synthetic.fit import PartModel
from sourdine.tables.synthetic.tree import from_root

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_NARROW = 1 << 16


def draw_records(model: PartModel, rows: int, bits: Bits) -> list[Places]:
    """The cells of so many records, column by column.

    Each cell of a pair in the tree holds its expected number of records, rounded up or down.
    """
    joined: dict[int, Places] = {}
    for column, parent in from_root(model.edges, len(model.margins)):
        if parent is None:
            weights, whose = model.joined(column)[None, :], np.zeros(rows, np.int64)
        else:
            place = next(i for i, edge in enumerate(model.edges) if {column, parent} == set(edge))
            table = model.tables[place]
            weights = table if model.edges[place][0] == parent else table.T
            whose = joined[parent]
        joined[column] = _children(weights, whose, bits)
    columns = []
    for column, margin in enumerate(model.margins):
        places = model.cells[column]
        weights = np.zeros((int(places.max()) + 1, len(margin)))
        weights[places, np.arange(len(margin))] = margin
        alone = bool((np.bincount(places) == 1).all())
        columns.append(joined[column] if alone else _children(weights, joined[column], bits))
    return columns


def _children(weights: Floats, parents: Places, bits: Bits) -> Places:
    """A child for each record by the weights of its parent's row: as many of each as its share comes to."""
    counts = shares_of(weights, np.bincount(parents, minlength=len(weights)), bits)
    order = shuffle_within(parents, bits)
    children = np.empty(len(parents), np.int64)
    children[order] = np.repeat(np.tile(np.arange(weights.shape[1]), len(weights)), counts.ravel())
    return children


def shares_of(weights: Floats, totals: Places, bits: Bits) -> Places:
    """Totals divided by weights into whole numbers, each its share rounded up or down, and so on average.

    A row without weight is divided evenly. One uniform number shifts all of a row. A cell without weight gets
    nobody, whatever floats round to.
    """
    sums = weights.sum(1, keepdims=True)
    even = np.full_like(weights, 1 / weights.shape[1])
    shares = np.divide(weights, sums, out=even, where=sums > 0)
    shifts = (bits.words(len(totals)) >> np.uint64(11)) * 2.0**-53
    ends = np.floor(np.cumsum(shares, axis=1) * totals[:, None] + shifts[:, None]).astype(np.int64)
    last = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)  # with weight
    after = np.arange(shares.shape[1]) >= last[:, None]
    ends = np.where(after, totals[:, None], np.minimum(ends, totals[:, None]))
    return np.diff(ends, axis=1, prepend=0)


def shuffle_within(groups: Places, bits: Bits) -> Places:
    """The places of records, group after group, in random order within each."""
    order = np.argsort(bits.words(len(groups)))  # ties of 64 bits do not matter here
    within = groups[order]
    if within.max(initial=0) < _NARROW:
        within = within.astype(np.uint16)  # which is sorted by its digits, several times as quick
    return order[np.argsort(within, kind="stable")]
