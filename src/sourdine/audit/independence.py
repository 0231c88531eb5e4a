"""Whether the answers of one call are independent of each other, and of those of the next call.

Noise that is used twice keeps the law of every single answer, and the difference of two answers then tells
their values. Answers to one value are compared in pairs: those a power of two apart in a call, up to
half of it, the first with the last, and the same place in two calls; at the lags that one call suggests,
in the other; and equal answers, which an honest mechanism gives as often in one call as in two.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit.outcomes import Integers
from sourdine.core.lazy import bdtrc, gammaln
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import Bits

_CALL = 1 << 14  # answers of a call: far more than samplers draw at once
_GROUPS = 8  # at most, of about equally many answers
_EXPECTED = 20  # pairs in each cell of a table, at least
_FARTHEST = 4  # cells of a table that are looked at
_FEWEST_PAIRS = 128  # at a lag that is suggested: fewer could hardly show a tie among so many lags
_SUGGESTIONS = 2

Floats = NDArray[np.float64]


def independent(example: Example, value: ArrayLike, bits: Bits) -> float:
    """The p-value of the hypothesis that no pair of answers is tied, whatever ties them."""
    calls = [example.outcomes(value, _CALL, bits) for _ in range(2)]
    first, second = np.split(_grouped(np.concatenate(calls)), 2)
    pairs = [*_pairs(first, second), *_suggested(first, second)]
    p_values = [_untied(one, other) for one, other in pairs]
    p_values.append(_equal_as_often(*calls))
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


def _suggested(first: Integers, second: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Pairs at the lags that look most tied: within a call by the other call, across them by half of one.

    What suggests a lag is independent of what is looked at there, so each is one more table and no more.
    """
    size, numbers = len(first), np.arange(len(first))
    even = numbers % 2 == 0
    for moved in (_deviations, _distances):
        one, other = moved(first), moved(second)
        for lag in _lags(one, one, np.ones(size)):
            if lag > 0:
                starts = numbers[: size - lag]
                starts = starts[starts // lag % 2 == 0]  # no answer is in two pairs of one table
                yield second[starts], second[starts + lag]
        for lag in _lags(np.where(even, one, 0.0), other, even.astype(float))[:1]:
            starts = numbers[~even & (numbers + lag >= 0) & (numbers + lag < size)]
            yield first[starts], second[starts + lag]


def _lags(one: Floats, other: Floats, counted: Floats) -> list[int]:
    """Return the lags, forwards or backwards, at which two series are correlated most for their pairs."""
    size = len(one)
    spectrum = np.conj(np.fft.rfft(one, 2 * size))
    sums = np.fft.irfft(spectrum * np.fft.rfft(other, 2 * size))
    pairs = np.fft.irfft(np.conj(np.fft.rfft(counted, 2 * size)) * np.fft.rfft(np.ones(size), 2 * size))
    lags = np.arange(2 * size)
    lags[size:] -= 2 * size
    same = one is other
    enough = (pairs > _FEWEST_PAIRS) & ((lags > 0) if same else (np.abs(lags) < size))
    scores = np.where(enough, np.abs(sums) / np.sqrt(np.maximum(pairs, 1.0)), -1.0)
    best = np.argsort(-scores, kind="stable")[:_SUGGESTIONS]
    return [int(lags[place]) for place in best if scores[place] > 0]


def _deviations(groups: Integers) -> Floats:
    return np.asarray(groups - groups.mean(), np.float64)


def _distances(groups: Integers) -> Floats:
    return _deviations(np.abs(2 * groups - groups.max()))


def _equal_as_often(one: Integers, other: Integers) -> float:
    """The p-value of so many equal answers within calls among those within and across them.

    Answers at the same place of two calls may be exchanged, each by a fair coin of its own. So two equal
    answers at different places are in one call with a chance of a half. Pairs that share no place are
    independent, hence binomial. Where answers hardly ever meet by chance, this sees noise that is used
    again at any distance.
    """
    size = len(one)
    codes, places = np.concatenate((one, other)), np.tile(np.arange(size), 2)
    calls = np.repeat((0, 1), size)
    order = np.lexsort((places, codes))
    codes, places, calls = codes[order], places[order], calls[order]
    # equal answers at one place are in no pair: an exchange would not move them
    alike = (codes[1:] == codes[:-1]) & (places[1:] == places[:-1])
    kept = ~(np.append(alike, False) | np.append(False, alike))
    codes, places, calls = codes[kept], places[kept], calls[kept]
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    within = np.arange(len(codes)) - np.repeat(starts, np.diff(np.append(starts, len(codes))))
    firsts = np.flatnonzero((within[:-1] % 2 == 0) & (codes[1:] == codes[:-1]))
    earliest = np.full(size, len(firsts))
    numbers = np.arange(len(firsts))
    for ends in (places[firsts], places[firsts + 1]):
        np.minimum.at(earliest, ends, numbers)
    free = (earliest[places[firsts]] == numbers) & (earliest[places[firsts + 1]] == numbers)
    pairs = firsts[free]
    together = int(np.count_nonzero(calls[pairs] == calls[pairs + 1]))
    return float(bdtrc(together - 1, len(pairs), 0.5)) if together else 1.0


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
