"""Choosing among scored candidates by weights e^{-gap * rate}, the gap being the distance to the best score.

Scores are integers, or floats taken as the binary fractions they are. Floats decide what they provably
decide; the rest goes to balls of any precision, so the laws are exactly the ones stated.

Where weights are given by their logarithms, an index has its own relative accuracy, however small its
weight: a cumulative sum would swallow small ones. There the weights are the leaves of a tree of sums, and a
way down it is tossed: at each node the lighter side is taken with its share of the two, by a coin that is
exact for the logarithm of that share. All is kept as logarithms, so nothing underflows. Each level of the
tree adds two roundings; an index has its weight's probability within a factor e^(+-4 depth u), u being a
unit in the last place of the largest logarithm in question.

Where weights are constant along segments of whole numbers, floats decide which segment when they
provably can, and balls the rest; a number is then drawn from it evenly.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpz
from numpy.typing import ArrayLike, NDArray

from sourdine.core import grid
from sourdine.core.errors import InvalidParameter
from sourdine.core.interval_arithmetic import exponential, precision
from sourdine.core.lazy import ndtr
from sourdine.core.random import packed
from sourdine.core.random.bits import Bits
from sourdine.core.random.samplers import exp_coin

Scores = NDArray[np.int64] | NDArray[np.float64]
Floats = NDArray[np.float64]

MOST_CANDIDATES = 1 << 20
_HIGHEST = 2.0**62  # scores of floats are clipped here, so that their gaps stay finite
_MARGIN = 2.0**-40  # far above the error of a float64 exponential, as in ceiling.bernoulli_exp
_GUARD = 128  # bits of precision beyond those drawn
_CHUNK = 1 << 16  # scores handled at once, so that the arrays stay in the cache


def last_axis(owner: str, array: NDArray[np.generic], size: int, things: str) -> None:
    """Refuse values whose last axis is not as long as declared."""
    if array.ndim == 0 or array.shape[-1] != size:
        raise InvalidParameter(
            f"The values given to {owner} must have {size} {things} along their last axis. "
            f"Got an array of shape {array.shape}."
        )


def scores(owner: str, values: ArrayLike, candidates: int) -> Scores:
    """Scores as 64-bit integers or floats, clipped to 2^62, or to 2^53 when they come as a list.

    What is not a number counts as minus infinity, which is never chosen; where nothing else is left, all
    candidates are equal.
    """
    array = grid.numbers(values)
    if not isinstance(values, np.ndarray) or grid.mixed(array):
        array = _listed(array)
    last_axis(owner, array, candidates, "scores")
    if array.dtype not in (np.float64, np.float32, np.float16):
        return grid.to_units(owner, array, None)
    real = array.astype(np.float64)
    real[np.isnan(real)] = -np.inf
    np.clip(real, -_HIGHEST, _HIGHEST, out=real, where=real != -np.inf)
    real[np.isneginf(real).all(axis=-1)] = 0.0
    return real


def _listed(array: NDArray[Any]) -> NDArray[Any]:
    """Items of a list within 2^53, but for minus infinity: a float holds them all, so none rounds another."""
    if grid.mixed(array):
        array = grid.reals(array)
    if array.dtype.kind in "iu":
        clipped: NDArray[Any] = np.clip(array, -(2**53), 2**53)
        return clipped
    if array.dtype == np.float64:
        return np.where(np.isneginf(array), array, np.clip(array, -(2.0**53), 2.0**53))
    return array


def choose(scored: Scores, rate: Fraction, bits: Bits) -> NDArray[np.int64]:
    """One index a row, i with probability proportional to e^{-gap_i * rate}.

    With U uniform on [0, 1), the answer is how many cumulative weights, but the last, are at most U times
    the total. In units of 2^-53, m candidates and total weight T >= 1: three roundings perturb a weight by
    at most 1.2 and its exponential by at most 16 times the weight; adding m of them, one after the other,
    by at most 1.01 m T. So a cumulative weight is off by less than (2.3 m + 17) T, the total as well, and
    cutting U to 53 bits and multiplying by at most 3 T: the margin of (8 m + 128) T is wider than both
    together. A U inside it is settled by balls, on the whole row.
    """
    size = scored.shape[-1]
    margin = (size + 16) * 2.0**-50
    out = np.empty(scored.shape[:-1], dtype=np.int64)
    for rows, answers in _chunks(scored, out):
        sums = np.cumsum(_weights(rows, rate), axis=0)
        words = bits.words(len(answers))
        ahead = sums[:-1] - (words >> np.uint64(11)) * 2.0**-53 * sums[-1]
        answers[:] = np.count_nonzero(ahead <= 0, axis=0)
        close = (np.abs(ahead) <= margin * sums[-1]).any(axis=0)
        for i in np.flatnonzero(close):
            answers[i] = _settle(int(words[i]), partial(_sums, rows[i], rate), _GUARD, bits)
    return out


def flip(scored: Scores, rate: Fraction, bits: Bits) -> NDArray[np.int64]:
    """One index a row: each candidate tosses a coin of probability e^{-gap * rate}, and any head may win.

    The best score always falls on heads; the winner is uniform among the heads.
    """
    out = np.empty(scored.shape[:-1], dtype=np.int64)
    for rows, answers in _chunks(scored, out):
        weights = _weights(rows, rate)
        words = bits.words(weights.size).reshape(weights.shape)
        beyond = (words >> np.uint64(11)) * 2.0**-53 - weights
        heads = beyond < 0
        for i, row in zip(*np.nonzero(np.abs(beyond) <= _MARGIN), strict=True):
            heads[i, row] = _coin(int(words[i, row]), rows[row], int(i), rate, bits)
        counts = np.cumsum(heads, axis=0, dtype=np.int64)
        answers[:] = np.argmax(counts > _below(counts[-1], bits), axis=0)
    return out


def _chunks(scored: Scores, out: NDArray[np.int64]) -> Iterator[tuple[Scores, NDArray[np.int64]]]:
    """Rows of scores, some at a time, and the place of their answers."""
    size = scored.shape[-1]
    rows, answers = scored.reshape(-1, size), out.reshape(-1)
    step = max(1, _CHUNK // size)
    for start in range(0, len(rows), step):
        yield rows[start : start + step], answers[start : start + step]


def _weights(rows: Scores, rate: Fraction) -> Floats:
    """e^{-gap * rate}, candidates along the first axis."""
    across = np.ascontiguousarray(rows.T)
    with np.errstate(over="ignore"):
        weights: Floats = np.exp(-((across.max(axis=0) - across) * float(rate)))
    return weights


def _gap(row: Scores, index: int) -> Fraction | None:
    """The exact distance of one score to the best of its row; None when it is infinite."""
    score = row[index].item()
    return None if score == -np.inf else Fraction(row.max().item()) - Fraction(score)


def _coin(word: int, row: Scores, index: int, rate: Fraction, bits: Bits) -> bool:
    gap = _gap(row, index)
    return gap is not None and exp_coin(word, gap * rate, bits)


def _settle(word: int, sums_of: Callable[[], list[arb]], guard: int, bits: Bits) -> int:
    """The choice of a U that begins with this word, by cumulative weights at the ambient precision."""
    size = 64
    while True:
        with precision(size + guard):
            *sums, total = sums_of()
            low, high = (arb(fmpz(word + end)) / arb(fmpz(1) << size) * total for end in (0, 1))
            choice = next((k for k, at in enumerate(sums) if not low >= at), len(sums))
            if choice == len(sums) or high <= sums[choice]:
                return choice
        word = word << 64 | int(bits.words(1)[0])
        size += 64


def _sums(row: Scores, rate: Fraction) -> list[arb]:
    """Cumulative weights as balls at the ambient precision; equal scores share one exponential."""
    items = row.tolist()
    best = Fraction(max(items))
    weights = {-np.inf: arb(0)}
    for item in set(items) - {-np.inf}:
        weights[item] = exponential((Fraction(item) - best) * rate)
    return list(accumulate(weights[item] for item in items))


def _below(sizes: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """For each size up to 2^20, a uniform whole number below it.

    The high half of a 32-bit word times the size is uniform once the 2^32 mod size smallest low halves are
    refused (Lemire 2019). A refused word says nothing about the number that comes out.
    """
    spread = sizes.astype(np.uint64)
    products = (bits.words(len(sizes)) >> np.uint64(32)) * spread
    limits = np.uint64(1 << 32) % spread
    again = np.flatnonzero(products & np.uint64(0xFFFFFFFF) < limits)
    while len(again):
        products[again] = (bits.words(len(again)) >> np.uint64(32)) * spread[again]
        again = again[products[again] & np.uint64(0xFFFFFFFF) < limits[again]]
    return (products >> np.uint64(32)).astype(np.int64)


def pick(logs: Floats, which: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """An index for each row that is named: i with probability proportional to e^row[i].

    At least one number of a row is not minus infinity.
    """
    levels = _levels(logs)
    place = np.zeros(len(which), np.int64)
    for sums in levels[-2::-1]:
        left, right = sums[which, 2 * place], sums[which, 2 * place + 1]
        small = _coins(np.minimum(left, right) - np.logaddexp(left, right), bits)
        place = 2 * place + np.where(left <= right, ~small, small)
    return place


def pick_weights(weights: Floats, which: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """An index for each row that is named: i with probability proportional to row[i], which is not negative.

    As `pick`, for weights that are floats: a coin is exact for the share of the lighter side, a float within
    two units of it, so that each level of the tree adds two roundings to the weight of an index.
    """
    levels = [weights]
    while levels[-1].shape[1] > 1:
        last = levels[-1]
        pairs = last[:, 0:-1:2] + last[:, 1::2]
        levels.append(np.concatenate([pairs, last[:, -1:]], axis=1) if last.shape[1] % 2 else pairs)
    place = np.zeros(len(which), np.int64)
    words = bits.words((len(levels) - 1) * len(which)).reshape(len(levels) - 1, len(which))
    for sums, drawn in zip(levels[-2::-1], words, strict=True):
        alone = 2 * place + 1 >= sums.shape[1]
        left = sums[which, 2 * place]
        right = np.where(alone, 0.0, sums[which, np.minimum(2 * place + 1, sums.shape[1] - 1)])
        small = _share_coins(np.minimum(left, right) / (left + right), drawn, bits)
        place = 2 * place + np.where(left <= right, ~small, small)
    return place


def _share_coins(shares: Floats, words: NDArray[np.uint64], bits: Bits) -> NDArray[np.bool_]:
    """True with exactly the probability of each float; what lies close to its word needs more bits."""
    ahead = words.astype(np.float64) - np.ldexp(shares, 64)
    heads: NDArray[np.bool_] = ahead < 0
    for i in np.flatnonzero((np.abs(ahead) <= 2.0**14) & (shares > 0)):
        heads[i] = _share_coin(int(words[i]), Fraction(float(shares[i])), bits)
    return heads


def _share_coin(word: int, share: Fraction, bits: Bits) -> bool:
    """Whether a U that begins with this word is below the share."""
    size = 64
    while True:
        at = share * (1 << size)
        if word + 1 <= at or word >= at:
            return word < at
        word = word << 64 | int(bits.words(1)[0])
        size += 64


def _levels(logs: Floats) -> list[Floats]:
    """In each row sums of pairs, and of pairs of pairs, up to the whole."""
    rows, items = logs.shape
    size = 1 << max(items - 1, 0).bit_length()
    levels = [np.concatenate([logs, np.full((rows, size - items), -np.inf)], axis=1)]
    while levels[-1].shape[1] > 1:
        levels.append(np.logaddexp(levels[-1][:, 0::2], levels[-1][:, 1::2]))
    return levels


def _coins(log_shares: Floats, bits: Bits) -> NDArray[np.bool_]:
    """True with exactly the probability e^x of each float x; what lies close to the draw needs more bits.

    A lighter side has at most half, or a little more by rounding. Both sides of the comparison are off by
    less than 2^13 of 2^64.
    """
    words = bits.words(len(log_shares))
    ahead = words.astype(np.float64) - np.ldexp(np.exp(log_shares), 64)
    heads: NDArray[np.bool_] = ahead < 0
    for i in np.flatnonzero((np.abs(ahead) <= 2.0**14) & (log_shares > -np.inf)):
        heads[i] = exp_coin(int(words[i]), -Fraction(float(log_shares[i])), bits)
    return heads


_FAR = 700.0  # an exponent beyond which a float has no weight left; see `weights`


@dataclass(frozen=True)
class Segments:
    """Runs of whole numbers, a row of them for each group: where each begins, how many it holds, its gap.

    Rows are padded with runs that hold nothing, whose gaps do not count.
    """

    first: NDArray[np.int64]
    size: NDArray[np.int64]
    gap: NDArray[np.int64]


def choose_segments(
    segments: Segments, rate: Fraction, which: NDArray[np.int64], bits: Bits
) -> NDArray[np.int64]:
    """In each row that is named a segment, i with probability proportional to size_i e^{-gap_i * rate}.

    As in `select.choose`, in units of 2^-53 of the total T >= 1: an exponent x is off by at most 3 x, its
    weight by 3 x + 5 times itself. Sizes add up to at most 2^62, so what has x >= 48 weighs at most e^-5, and
    is off by less than T; the rest by at most 149 T. Adding m weights adds 1.01 m T. So a sum is off by less
    than (150 + 1.01 m) T, the total as well, and cutting U to 53 bits by 3 T: the margin of (8 m + 512) T is
    wider than all together. Exponents are cut at 700, which moves no sum by as much as a unit.
    """
    full = segments.size > 0
    least = np.min(segments.gap, axis=1, keepdims=True, where=full, initial=np.iinfo(np.int64).max)
    gaps = np.where(full, segments.gap - least, 0) * float(rate)
    sums: Floats = np.cumsum(segments.size.astype(np.float64) * np.exp(-np.minimum(gaps, _FAR)), axis=1)
    many = sums.shape[1]
    words = bits.words(len(which))
    total = sums[which, -1]
    points = (words >> np.uint64(11)) * 2.0**-53 * total
    ranks = _ranks_among(sums[:, :-1], which, points)
    below = np.where(ranks > 0, sums[which, np.maximum(ranks - 1, 0)], -np.inf)
    above = np.where(ranks < many - 1, sums[which, np.minimum(ranks, many - 1)], np.inf)
    margin = (8 * many + 512) * 2.0**-53 * total
    empty = segments.size[which, ranks] == 0  # a point on the edge of what holds nothing
    for i in np.flatnonzero((np.minimum(points - below, above - points) <= margin) | empty):
        row = np.flatnonzero(full[which[i]])
        gap, size = segments.gap[which[i], row].tolist(), segments.size[which[i], row].tolist()
        guard = _GUARD + len(row).bit_length()
        ranks[i] = row[_settle(int(words[i]), partial(_sums_segments, gap, size, rate), guard, bits)]
    return ranks


def _ranks_among(sums: Floats, which: NDArray[np.int64], points: Floats) -> NDArray[np.int64]:
    """How many sums of each named row lie up to the point beside it."""
    if len(sums) == 1:
        return np.searchsorted(sums[0], points, side="right").astype(np.int64)
    low, high = np.zeros(len(which), np.int64), np.full(len(which), sums.shape[1])
    while np.any(low < high):
        middle = (low + high) // 2
        up = (low < high) & (sums[which, np.minimum(middle, sums.shape[1] - 1)] <= points)
        low, high = np.where(up, middle + 1, low), np.where(up, high, np.minimum(middle, high))
    return low


def _sums_segments(gaps: list[int], sizes: list[int], rate: Fraction) -> list[arb]:
    weight = {gap: exponential((min(gaps) - gap) * rate) for gap in set(gaps)}
    return list(accumulate(weight[gap] * size for gap, size in zip(gaps, sizes, strict=True)))


def places_in(
    segments: Segments, which: NDArray[np.int64], chosen: NDArray[np.int64], bits: Bits
) -> NDArray[np.int64]:
    """A uniform whole number in each segment that was chosen in a named row."""
    return segments.first[which, chosen] + uniform_below(segments.size[which, chosen], bits)


def uniform_below(sizes: NDArray[np.int64], bits: Bits) -> NDArray[np.int64]:
    """A uniform whole number below each size.

    Words are cut to the length of the size, and those too large drawn again. How often that happens says
    nothing about the number that comes out.
    """
    spare = (64 - _bit_lengths(sizes - 1)).astype(np.uint64)
    out = np.zeros(len(sizes), np.int64)
    todo = np.flatnonzero(sizes > 1)
    while len(todo):
        drawn = bits.words(len(todo)) >> spare[todo]
        fits = drawn < sizes[todo].astype(np.uint64)
        out[todo[fits]] = drawn[fits].astype(np.int64)
        todo = todo[~fits]
    return out


def _bit_lengths(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many bits each number has, or one more beyond 2^53 where a float rounds it up."""
    return np.where(numbers > 0, np.frexp(numbers.astype(np.float64))[1], 0).astype(np.int64)


# Uniformly random sets of a given size, as rows of packed bits.
#
# A row begins with independent coins, tossed again if their heads are far too few or too many. Then
# elements drawn at random are put in, or taken out, until there are as many as asked for; one that is in or
# out already is drawn again. Nothing in this prefers one element to another: renaming the elements turns
# one course of the draws into another just as likely, with the same counts and the same refusals. So a row
# is a uniformly random set, also for somebody who knows how many coins fell heads, how many draws were
# refused and how long it took.


_BURST = 4  # draws for every row between two looks at which rows are done
_FEW = 1 << 12  # elements among which a 16-bit word is seldom refused
_TOP = np.uint8(128)

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


class Sets(NamedTuple):
    """Rows of 8 * ceil(of/64) bytes, the first element in the highest bit, and the two that came in last."""

    rows: Bytes
    last: Places
    before: Places


def sets(size: int, of: int, count: int, bits: Bits) -> Sets:
    """Sets of `size` out of `of` elements, between 2 and their number, in an order whose end is known.

    >>> from sourdine.testing import SeededBits
    >>> packed.by_row(sets(3, 10, 4, SeededBits(1)).rows).tolist()
    [3, 3, 3, 3]
    """
    beginning = plan(size - 2, of) if count == 1 else _plan_of_many(size - 2, of)
    among = Elements(of, beginning.length)
    rows, missing = _subsets_coins(beginning, size - 2, of, count, bits)
    flat, first = rows.reshape(-1), np.arange(count) * rows.shape[1]
    _mend(flat, first, missing, among, bits)
    before = _put_in(flat, first, among, bits)
    return Sets(rows, _put_in(flat, first, among, bits), before)


def spots(first: Places, elements: Places) -> tuple[Places, Bytes]:
    """The byte that holds an element of the row that begins at `first`, and its bit there."""
    at = elements >> 3
    at += first
    return at, np.right_shift(_TOP, elements.astype(np.uint8) & np.uint8(7))


def _subsets_coins(
    beginning: "Beginning", size: int, of: int, count: int, bits: Bits
) -> tuple[Bytes, Places]:
    """Rows of coins with about so many heads, and how many are missing from each.

    A row too far off, one in six or so, is tossed again: that is less work than to mend it.
    """
    rows = _tossed(beginning, of, count, bits)
    missing = size - packed.by_row(rows)
    while len(far := np.flatnonzero((missing > beginning.most) | (missing < beginning.least))):
        rows[far] = again = _tossed(beginning, of, len(far), bits)
        missing[far] = size - packed.by_row(again)
    return rows.view(np.uint8), missing


def _tossed(beginning: "Beginning", of: int, count: int, bits: Bits) -> NDArray[np.uint64]:
    wide = -(-of // 64)
    words = packed.dyadic(beginning.numerator, beginning.digits, count * wide, bits).reshape(count, wide)
    words[:, -1] &= beginning.inside
    return words


class Beginning(NamedTuple):
    """How rows begin: the share of heads as numerator and digits, the bits of their last word that stand for
    elements, how many elements may be missing at least (too many, where negative) and at most, and how many
    bits draw an element."""

    numerator: int
    digits: int
    inside: np.uint64
    least: int
    most: int
    length: int


class Elements(NamedTuple):
    """How elements are drawn: out of how many, by words of how many bits."""

    of: int
    length: int


@lru_cache(maxsize=512)
def plan(size: int, of: int) -> Beginning:
    """The plan of a single row, which never changes: the reports that devices repeat for ever depend on it.

    It is sent to clients beside a question. Any plan gives the same law; this one asks for little work.
    """
    shares, put, take = _shares(size, of), of / (of - size), of / max(size, 1)
    best = int(
        np.argmin(shares.put_in * put + shares.taken_out * take + shares.digits * of / (512 + of / 32))
    )
    far = math.ceil(max(shares.mean[best], shares.spread[best]) + shares.spread[best])
    return shares.beginning(best, of, -math.ceil(far * put / take), far, 32)


@lru_cache(maxsize=512)
def _plan_of_many(size: int, of: int) -> Beginning:
    """The plan of least work for many rows at once, or nearly; any would do.

    Work is counted in draws: an element is put in after of/(of - size) draws on average and taken out after
    of/size, and a digit of the share costs as much as a draw for every eight words, but no more than 32: long
    rows are few at a time, and then it is the rounds that cost. The number of heads is taken as normal.
    """
    shares, put, take = _shares(size, of), of / (of - size), of / max(size, 1)
    toss = (shares.digits + 1) * of / (512 + of / 32) + 1
    best = int(np.argmin(shares.put_in * put + shares.taken_out * take + toss))
    least, most = _stop(float(shares.mean[best]), float(shares.spread[best]), put, take, float(toss[best]))
    return shares.beginning(best, of, least, most, 16 if of < _FEW else 32)


class _Shares(NamedTuple):
    """The shares of heads that rows could begin with, 0 to the largest in steps of 2^-finest.

    Of each, how many elements are missing from a row on average and their standard deviation, how many of
    them are put in and taken out on average, and how many digits it has.
    """

    finest: int
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    put_in: NDArray[np.float64]
    taken_out: NDArray[np.float64]
    digits: NDArray[np.int64]

    def beginning(self, best: int, of: int, least: int, most: int, length: int) -> Beginning:
        inside = np.packbits(np.arange(64) < (of - 1) % 64 + 1).view(np.uint64)[0]
        digits = int(self.digits[best])
        return Beginning(best >> self.finest - digits, digits, inside, least, most, length)


def _shares(size: int, of: int) -> _Shares:
    finest = (of.bit_length() + 1) // 2 + 3
    shares = np.arange((size << finest) // of + 1)
    mean, spread = size - of * shares / 2**finest, np.sqrt(of * shares / 2**finest * (1 - shares / 2**finest))
    at = mean / np.maximum(spread, 0.5)
    short = mean * ndtr(at) + spread * np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    digits = np.where(shares > 0, finest - np.log2(np.maximum(shares & -shares, 1)), 0).astype(np.int64)
    return _Shares(finest, mean, spread, short, short - mean, digits)


def _stop(mean: float, spread: float, put: float, take: float, toss: float) -> tuple[int, int]:
    """How many elements may be missing, at least and at most, in a row that is not worth another toss.

    A row is mended if that costs no more than c, the mean cost of a row from its first toss on. By the rule
    of optimal stopping c is what makes the mean of max(c - cost, 0) the price of a toss.
    """
    reach = max(1, math.ceil(6 * spread))
    missing = np.arange(round(mean) - reach, round(mean) + reach + 1)
    shares = np.exp(-(((missing - mean) / max(spread, 0.01)) ** 2) / 2)
    cost = np.where(missing > 0, missing * put, -missing * take)
    low, high = 0.0, toss + float(cost.max())
    for _ in range(50):
        c = (low + high) / 2
        worth = np.sum(shares * np.maximum(c - cost, 0)) > toss * np.sum(shares)
        low, high = (low, c) if worth else (c, high)
    return -math.floor(high / take), math.floor(high / put)


def _draw(
    elements: Elements, rounds: int, count: int, bits: Bits
) -> Iterator[tuple[Places, NDArray[np.bool_]]]:
    """So many rounds of elements at random, and which of them to take.

    The high half of the product of a word and `of` is uniform where the low half is not below the rest of
    2^length by `of` (Lemire 2019). Words of 16 bits do for few elements.
    """
    of, length = elements
    short, wide = (np.uint16, np.uint32) if length == 16 else (np.uint32, np.uint64)
    words = bits.words(-(-rounds * count * length // 64)).view(short)[: rounds * count]
    for word in words.reshape(rounds, count):
        product = np.multiply(word, of, dtype=wide)
        fair = product.astype(short) >= short((1 << length) % of)
        product >>= wide(length)
        yield product.astype(np.int64), fair


def _mend(flat: Bytes, first: Places, missing: Places, among: Elements, bits: Bits) -> None:
    """Put in, or take out, as many elements as are missing from a row, or too many."""
    out, left = missing < 0, np.abs(missing).astype(np.int32)
    while len(left):
        for elements, fair in _draw(among, _BURST, len(left), bits):
            at, bit = spots(first, elements)
            octets = flat[at]
            take = (((octets & bit) > 0) == out) & (left > 0) & fair
            bit *= take
            flat[at] = octets ^ bit
            left -= take
        go = np.flatnonzero(left)
        first, out, left = first[go], out[go], left[go]


def _put_in(flat: Bytes, first: Places, among: Elements, bits: Bits) -> Places:
    """Put one more element into each row, and tell which."""
    came = np.empty(len(first), np.int64)
    todo = np.arange(len(first))
    while len(todo):
        for elements, fair in _draw(among, 1, len(todo), bits):
            at, bit = spots(first[todo], elements)
            octets = flat[at]
            take = fair & ((octets & bit) == 0)
            flat[at] = octets | bit * take
            came[todo] = elements
            todo = todo[~take]
    return came
