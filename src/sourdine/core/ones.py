"""Counting the ones in rows of packed bits: by column and by row."""

import numpy as np
from numpy.typing import NDArray

_LEVELS = 8  # halvings: so many rows become one row of numbers up to 2^_LEVELS
_CHUNK = 1 << 13  # rows summed at once, so that they stay in the cache; a multiple of 2^_LEVELS

Bytes = NDArray[np.uint8]


def by_column(rows: Bytes, bits: int) -> NDArray[np.int64]:
    """How many rows have a one in each of the first `bits` columns.

    Numbers are kept as planes: bit j of all of them in plane j. The upper half of the rows is added to the
    lower half, with carries, as adders of a computer do, eight columns a byte; so most rows are never
    unpacked.

    >>> by_column(np.array([[0b10100000], [0b10000000]], np.uint8), 3).tolist()
    [2, 0, 1]
    """
    sums = np.zeros(bits, np.int64)
    for start in range(0, len(rows), _CHUNK):
        for j, plane in enumerate(_planes(_whole(rows[start : start + _CHUNK]))):
            sums += np.unpackbits(plane, axis=1, count=bits).sum(axis=0, dtype=np.int64) << j
    return sums


def _whole(rows: Bytes) -> Bytes:
    """The rows, with empty ones after the last so that they can be halved to the end."""
    missing = -len(rows) % (1 << _LEVELS)
    return np.concatenate([rows, np.zeros((missing, rows.shape[1]), np.uint8)]) if missing else rows


def _planes(rows: Bytes) -> list[Bytes]:
    planes = [rows]
    for _ in range(_LEVELS):
        half = len(planes[0]) // 2
        carry = np.zeros_like(planes[0][:half])
        added = []
        for plane in planes:
            low, high = plane[:half], plane[half:]
            either = low ^ high
            added.append(either ^ carry)
            carry = (low & high) | (either & carry)
        planes = [*added, carry]
    return planes


def by_row(rows: Bytes | NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many ones each row has.

    >>> by_row(np.array([[0b10100000, 1], [0b10000000, 0]], np.uint8)).tolist()
    [3, 1]
    """
    counts: NDArray[np.int64] = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    return counts
