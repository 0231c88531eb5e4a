"""Outcomes of an example, counted cell by cell: what every empirical check reads."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.bits import Bits
from sourdine.core.mechanism import Example

Integers = NDArray[np.int64]

_CHUNK = 1 << 16  # outcomes drawn at once, so that examples with long inputs need little memory


class Tally(NamedTuple):
    """How often each code occurred; the codes ascend."""

    codes: Integers
    counts: Integers


def tally(example: Example, value: ArrayLike, count: int, bits: Bits) -> Tally:
    """The counts of `count` independent outcomes for one input."""
    count = check.integer("tally", "count", count, 1, 1 << 40)
    parts = []
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        parts.append(count_codes(example.outcomes(value, size, bits)))
    return merge(*parts)


def count_codes(codes: Integers) -> Tally:
    """The counts of these outcomes."""
    return Tally(*np.unique(codes, return_counts=True))


def merge(*tallies: Tally) -> Tally:
    """The counts of several tallies together."""
    codes, places = np.unique(np.concatenate([one.codes for one in tallies]), return_inverse=True)
    weights = np.concatenate([one.counts for one in tallies])
    # a float64 counts exactly up to 2^53
    return Tally(codes, np.bincount(places.ravel(), weights=weights).astype(np.int64))


def align(*tallies: Tally) -> Integers:
    """One row of counts for each tally, over all the codes that occur in any, in ascending order.

    >>> align(Tally(np.array([1, 4]), np.array([7, 3])), Tally(np.array([4]), np.array([9])))
    array([[7, 3],
           [0, 9]])
    """
    codes = np.unique(np.concatenate([one.codes for one in tallies]))
    rows = np.zeros((len(tallies), len(codes)), dtype=np.int64)
    for row, one in zip(rows, tallies, strict=True):
        row[np.searchsorted(codes, one.codes)] = one.counts
    return rows
