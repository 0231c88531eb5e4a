"""Places on a grid, from an array: sorted when it must be, by selection where that is enough."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import numbers
from sourdine.frames.ranks import RankSource, SortedPlaces

Values = ArrayLike | RankSource


def ranked(
    values: Values, places: int, draw: Callable[[RankSource, int], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """One draw for a RankSource; for arrays one for each row of places along the last axis.

    Rows that are one and the same, as a broadcast makes them, share the work. What is masked is left out.
    """
    if not isinstance(values, np.ndarray | list | tuple):
        return draw(values, 1)[0]  # type: ignore[arg-type, no-any-return]
    if isinstance(values, np.ma.MaskedArray) and values.ndim:
        held, shown = np.asarray(values.data), ~np.ma.getmaskarray(values)
        each = zip(held.reshape(-1, held.shape[-1]), shown.reshape(-1, held.shape[-1]), strict=True)
        left = [ranked(row[seen], places, draw) for row, seen in each]
        return np.stack(left).reshape(*held.shape[:-1], -1) if left else ranked(held, places, draw)
    array = numbers(values)
    whole = array.dtype.kind in "iu" or all(isinstance(item, int) for item in array.flat)
    if array.ndim == 0 or not whole:
        raise InvalidParameter(
            "Quantiles are taken of places on a grid, whole numbers along the last axis. "
            "Use sourdine.quantiles for values with bounds."
        )
    outer = array.shape[:-1]
    if 0 in outer:
        answer = draw(SortedPlaces(np.zeros(0, np.int64)), 1)[0]
        return np.zeros((*outer, answer.size), np.int64)
    if all(stride == 0 for stride in array.strides[:-1]):
        row = array[(0,) * len(outer)]
        drawn = draw(SortedPlaces(np.sort(np.clip(row, 0, places - 1).astype(np.int64))), int(np.prod(outer)))
        return drawn.reshape(*outer, *drawn.shape[1:])
    rows = array.reshape(-1, array.shape[-1])
    sources = (SortedPlaces(np.sort(np.clip(row, 0, places - 1).astype(np.int64))) for row in rows)
    drawn = np.stack([draw(source, 1)[0] for source in sources])
    return drawn.reshape(*outer, *drawn.shape[1:])
