"""Whether the answers of one call are independent of each other, and of those of the next call.

Noise that is used twice keeps the law of every single answer, and the difference of two answers then tells
their values. Answers to one value are compared in pairs: those a power of two apart in a call, up to
half of it, the first with the last, and the same place in two calls.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from sourdine.audit.outcomes import Integers
from sourdine.core.bits import Bits
from sourdine.core.mechanism import Example

_CALL = 1 << 14  # answers of a call: far more than samplers draw at once
_GROUPS = 8  # at most, of about equally many answers
_EXPECTED = 20  # pairs in each cell of a table, at least


def independent(example: Example, value: ArrayLike, bits: Bits) -> float:
    """The p-value of the hypothesis that no pair of answers is tied, whatever ties them."""
    calls = [example.outcomes(value, _CALL, bits) for _ in range(2)]
    first, second = np.split(_grouped(np.concatenate(calls)), 2)
    found = [_untied(one, other) for one, other in _pairs(first, second)]
    return min(1.0, len(found) * min(found))


def _pairs(first: Integers, second: Integers) -> Iterator[tuple[Integers, Integers]]:
    size = len(first)
    yield first, second
    yield first[: size // 2], first[::-1][: size // 2]
    lag = 1
    while lag <= size // 2:
        yield first[:-lag], first[lag:]
        lag *= 2


def _grouped(codes: Integers) -> Integers:
    """Which of a few groups of about equal size each code is in; too small a rest joins the last one."""
    values, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    least, group, held = len(codes) // _GROUPS, 0, 0
    groups = np.empty(len(values), np.int64)
    for i, count in enumerate(counts.tolist()):
        groups[i] = group
        held += count
        if held >= least:
            group, held = group + 1, 0
    if held < 2 * (_EXPECTED * _CALL) ** 0.5 and group:
        groups[groups == group] = group - 1
    return groups[places.ravel()]


def _untied(one: Integers, other: Integers) -> float:
    """Pearson's chi-square of a table of pairs against the product of its margins.

    Pairs that overlap, as (1, 2) and (2, 3) do, change nothing: it is the test that a chain has no memory
    (Anderson and Goodman 1957, section 4).
    """
    width = 1 + int(max(one.max(), other.max()))
    table = np.bincount(one * width + other, minlength=width**2).reshape(width, width).astype(float)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    table, rows, columns = table[rows > 0][:, columns > 0], rows[rows > 0], columns[columns > 0]
    degrees = (len(rows) - 1) * (len(columns) - 1)
    if not degrees:
        return 1.0
    expected = rows[:, None] * columns / table.sum()
    return float(chdtrc(degrees, float(np.sum((table - expected) ** 2 / expected))))
