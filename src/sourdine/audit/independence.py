"""Whether the answers of one call are independent of each other, and of those of the next call.

Noise that is used twice keeps the law of every single answer, and the difference of two answers then tells
their values. Answers to one value are compared in pairs: those a power of two apart in a call, up to
half of it, the first with the last, and the same place in two calls.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit.outcomes import Integers
from sourdine.core.late import gammaln
from sourdine.core.mechanism import Example
from sourdine.core.randomness.bits import Bits

_CALL = 1 << 14  # answers of a call: far more than samplers draw at once
_GROUPS = 8  # at most, of about equally many answers
_EXPECTED = 20  # pairs in each cell of a table, at least
_FARTHEST = 4  # cells of a table that are looked at


def independent(example: Example, value: ArrayLike, bits: Bits) -> float:
    """The p-value of the hypothesis that no pair of answers is tied, whatever ties them."""
    calls = [example.outcomes(value, _CALL, bits) for _ in range(2)]
    first, second = np.split(_grouped(np.concatenate(calls)), 2)
    p_values = [_untied(one, other) for one, other in _pairs(first, second)]
    return min(1.0, len(p_values) * min(p_values))


def _pairs(first: Integers, second: Integers) -> Iterator[tuple[Integers, Integers]]:
    size = len(first)
    yield first, second
    yield first[: size // 2], first[::-1][: size // 2]
    lag = 1
    while lag <= size // 2:
        stretches = first.reshape(-1, lag)  # no answer is in two pairs of one table
        yield stretches[::2].ravel(), stretches[1::2].ravel()
        if len(stretches) > 2:
            yield stretches[1:-1:2].ravel(), stretches[2::2].ravel()
        lag *= 2


def _grouped(codes: Integers) -> Integers:
    """Which of a few groups of about equal size each code is in; too small a rest joins the last one."""
    values, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    least, group, count_so_far = len(codes) // _GROUPS, 0, 0
    groups = np.empty(len(values), np.int64)
    for i, count in enumerate(counts.tolist()):
        groups[i] = group
        count_so_far += count
        if count_so_far >= least:
            group, count_so_far = group + 1, 0
    if count_so_far < 2 * (_EXPECTED * _CALL) ** 0.5 and group:
        groups[groups == group] = group - 1
    return groups[places.ravel()]


def _untied(one: Integers, other: Integers) -> float:
    """The p-value of the cell of a table of pairs that is farthest off, among so many.

    Given how often each group comes first and second, independent answers are matched evenly, so a cell is
    hypergeometric. Chi-square is not near enough this far out: where a group holds a thirtieth of the answers
    it calls 1 in 10^10 what happens a hundred times as often, and more.
    """
    width = 1 + int(max(one.max(), other.max()))
    table = np.bincount(one * width + other, minlength=width**2).reshape(width, width)
    rows, columns = np.broadcast_arrays(table.sum(axis=1)[:, None], table.sum(axis=0))
    filled = ((rows > 0) & (columns > 0)).ravel()
    first, second, counts = (each.ravel()[filled, None] for each in (rows, columns, table))
    cells = len(counts)
    if cells == 1:
        return 1.0
    # a p-value may only be too large for leaving out the others, since it counts for all of them
    off = np.abs(counts - first * second / len(one)) / np.sqrt(first * second)
    far = np.argsort(-off.ravel(), kind="stable")[:_FARTHEST]
    first, second, counts = first[far], second[far], counts[far]
    numbers = np.arange(int(np.minimum(first, second).max()) + 1)
    law = np.exp(
        _log_choose(first, numbers)
        + _log_choose(len(one) - first, second - numbers)
        - _log_choose(np.array(len(one)), second)
    )
    below, above = ((law * side).sum(axis=1) for side in (numbers <= counts, numbers >= counts))
    return min(1.0, 2 * cells * float(np.minimum(below, above).min()))


def _log_choose(n: Integers, k: Integers) -> NDArray[np.float64]:
    """The logarithm of the number of ways to choose k of n; minus infinity where there is none."""
    logs, inside = _log_factorials(_CALL), np.clip(k, 0, n)
    return np.where(k == inside, logs[n] - logs[inside] - logs[n - inside], -np.inf)


@lru_cache(maxsize=1)
def _log_factorials(most: int) -> NDArray[np.float64]:
    """log 0! to log most!."""
    return np.asarray(gammaln(np.arange(most + 1.0) + 1))
