"""Closed periods of a series: what one holds, how it is kept, and several of them side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClosedPeriod:
    """One line of a period: the keys it was measured by, its exact sums, and its noisy rows (by key)."""

    number: int
    line: int
    keys: tuple[tuple[Any, ...], ...]
    sums: NDArray[np.int64]
    rows: NDArray[Any]


def to_bytes(array: NDArray[Any]) -> bytes:
    """Numbers by key, as they are kept."""
    kind = b"f" if array.dtype.kind == "f" else b"i"
    plain = np.ascontiguousarray(array, np.float64 if kind == b"f" else np.int64)
    return kind + len(array).to_bytes(4, "little") + plain.tobytes()


def from_bytes(content: bytes) -> NDArray[Any]:
    """The same numbers again."""
    kind = np.float64 if content[:1] == b"f" else np.int64
    length = int.from_bytes(content[1:5], "little")
    flat = np.frombuffer(content[5:], kind)
    return flat.reshape(length, -1) if length else flat.reshape(0, 0)


def aligned(
    closed: list[ClosedPeriod],
    keys: tuple[tuple[Any, ...], ...],
    part: Callable[[ClosedPeriod], tuple[NDArray[Any], int]],
) -> NDArray[Any]:
    """What closed periods hold, side by side along the last axis, by the newest keys; 0 where none was.

    `part` tells what a period holds, and how many numbers that is for each key.
    """
    place = {key: i for i, key in enumerate(keys)}
    columns = []
    for period in closed:
        block, width = part(period)
        if period.keys == keys:
            columns.append(block.reshape(len(keys), width))
            continue
        spread = np.zeros((len(keys), width), block.dtype)
        if period.keys:
            spread[[place[key] for key in period.keys]] = block
        columns.append(spread)
    return np.concatenate(columns, axis=1) if columns else np.zeros((len(keys), 0), np.int64)


def key_rows(keys: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The keys of each group, as plain values."""
    return [tuple(map(_plain, key)) for key in keys]


def _plain(key: object) -> object:
    return (
        key.item() if isinstance(key, np.generic) else key if isinstance(key, str | int | bool) else str(key)
    )
