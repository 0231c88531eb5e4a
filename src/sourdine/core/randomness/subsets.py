"""Uniformly random sets of a given size, as rows of packed bits.

A row begins with independent coins, tossed again if their heads are far too few or too many. Then elements
drawn at random are put in, or taken out, until there are as many as asked for; one that is in or out already
is drawn again. Nothing in this prefers one element to another: renaming the elements turns one course of the
draws into another just as likely, with the same counts and the same refusals. So a row is a uniformly random
set, also for somebody who knows how many coins fell heads, how many draws were refused and how long it took.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourdine.core.late import ndtr
from sourdine.core.randomness import packed
from sourdine.core.randomness.bits import Bits

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
    rows, missing = _coins(beginning, size - 2, of, count, bits)
    flat, first = rows.reshape(-1), np.arange(count) * rows.shape[1]
    _mend(flat, first, missing, among, bits)
    before = _put_in(flat, first, among, bits)
    return Sets(rows, _put_in(flat, first, among, bits), before)


def spots(first: Places, elements: Places) -> tuple[Places, Bytes]:
    """The byte that holds an element of the row that begins at `first`, and its bit there."""
    at = elements >> 3
    at += first
    return at, np.right_shift(_TOP, elements.astype(np.uint8) & np.uint8(7))


def _coins(beginning: "Beginning", size: int, of: int, count: int, bits: Bits) -> tuple[Bytes, Places]:
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
