"""Many coins at once, 64 to a word, each true with exactly the stated probability, and the ones counted.

Let U be uniform on [0, 1) with endless binary digits; a coin is true when U < p. Digit by digit, U agrees
with p by a fair chance or decides: where p has a 1 and U a 0 the coin is true, where p has a 0 and U a 1 it
is false. So a random word tells of 64 coins which are still open after one more digit, and an open coin is
held at what the next digit would make it.

Many words are made otherwise: eight coins together have 256 outcomes, whose law is a certified table, and 16
bits nearly always settle one of them. That is exact as well, and takes a sixth of the bits.

The digit that decides also gives the outcome away, so the work must not show how far a coin went: all words
go through the first digits, and then a fixed number of places, as many as are ever needed, goes on to 64
digits whether they hold open coins or not; in tables, a fixed number of bytes is searched. The places are too
few once in 2^63 calls, and a coin is open after 64 digits once in 2^64: then, and only then, are there more
steps.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sourdine.core.interval_arithmetic import exponential, floor_scaled, precision
from sourdine.core.random.bits import Bits, Branch, in_branches, room
from sourdine.core.random.tables import CELL_BITS, CdfTable, WeightTerms, table

Words = NDArray[np.uint64]
_PART = 1 << 14  # words that pass the first digits together, so that they stay in the cache
_BLOCK = 1 << 16  # words whose open coins go on together
_ALL = 12  # digits that every word passes
_STEP = 64  # digits that are read at once
_RARE = 44  # -ln of how often the places for open coins are too few
_MANY = 1 << 12  # words from which on bytes are drawn from a table
_BYTES = 1 << 17  # bytes drawn from it at once, so that they stay in the cache


class BinaryDigits(Hashable, Protocol):
    """The binary digits of a probability."""

    def first(self, count: int, /) -> int:
        """floor(2^count p)."""
        ...

    def weights(self) -> WeightTerms:
        """Of the 256 outcomes of eight coins."""
        ...


@dataclass(frozen=True)
class Share:
    """A rational probability."""

    p: Fraction

    def first(self, count: int) -> int:
        return math.floor(self.p * (1 << count))

    def weights(self) -> WeightTerms:
        shares = [self.p**ones * (1 - self.p) ** (8 - ones) for ones in range(9)]
        return WeightTerms(tuple(shares[byte.bit_count()] for byte in range(256)), (0,) * 256)


@dataclass(frozen=True)
class Odds:
    """A probability with odds e^log_odds to 1; the logarithm is rational and not 0, so it is irrational."""

    log_odds: Fraction

    def first(self, count: int) -> int:
        guard = 64
        while True:
            with precision(count + guard):
                low, high = floor_scaled(1 / (1 + exponential(-self.log_odds)), count)
            if low == high:
                return low
            guard *= 2

    def weights(self) -> WeightTerms:
        return WeightTerms((1,) * 256, tuple(byte.bit_count() * self.log_odds for byte in range(256)))


def bernoulli(p: Fraction, count: int, bits: Bits) -> Words:
    """64 coins in each of `count` words, true with probability p, a rational."""
    short = p.denominator.bit_length() - 1
    if p.denominator == 1 << short and short < _ALL:
        return dyadic(p.numerator, short, count, bits)
    return _coins(Share(p), count, bits)


def bernoulli_odds(log_odds: Fraction, count: int, bits: Bits) -> Words:
    """64 coins in each of `count` words, true with odds e^log_odds.

    >>> from sourdine.testing import SeededBits
    >>> heads = bernoulli_odds(Fraction(-1), 1000, SeededBits(1))
    >>> round(float(np.unpackbits(heads.view(np.uint8)).mean()), 2)  # 1/(e + 1)
    0.27
    """
    return _coins(Odds(log_odds), count, bits) if log_odds else dyadic(1, 1, count, bits)


def dyadic(numerator: int, digits: int, count: int, bits: Bits) -> Words:
    """64 coins in each of `count` words, true with probability numerator/2^digits, in that many passes.

    From the last digit to the first: a coin of probability r becomes one of (1 + r)/2 by an 'or' with a fair
    coin where the digit is 1, and of r/2 by an 'and' where it is 0.
    """
    if numerator >> digits:
        return np.full(count, ~np.uint64(0))
    out = np.zeros(count, np.uint64)
    passes = [np.bitwise_or if numerator >> j & 1 else np.bitwise_and for j in range(digits)]
    space = room(digits * min(_PART, count))
    for start in range(0, count, _PART):
        part = out[start : start + _PART]
        if isinstance(bits, Branch) and len(part) == _PART:
            drawn = bits.fill(space)
        else:
            drawn = bits.words(digits * len(part))
        words = drawn.reshape(digits, len(part))
        for act, word in zip(passes, words, strict=True):
            act(part, word, out=part)
    return out


class ShortTable:
    """Outcomes of 8 or 16 bits, such as eight coins, from 16 random bits.

    Cells are renamed so that those that settle nothing come first: then a comparison finds them. A cell is
    uniform under any name.
    """

    def __init__(self, law: CdfTable, outcomes: "Bytes | Shorts") -> None:
        self._law, self._named = law, outcomes
        order = np.argsort(law.guide >= 0, kind="stable")
        self._outcomes = outcomes[law.guide[order]]
        self._open = order[: np.count_nonzero(law.guide < 0)].astype(np.uint16)

    def fill(self, out: "Bytes | Shorts", branch: Branch) -> None:
        """Fill memory with independent outcomes.

        Numbers of cells are made wide in memory of their own: numpy would take new memory for it each time,
        which costs more than to look them up.
        """
        size = min(_BYTES, len(out))
        space, index, doubtful = room(-(-size // 4)), np.empty(size, np.intp), np.empty(size, np.bool_)
        places, doubts = [], []
        for start in range(0, len(out), _BYTES):
            part = out[start : start + _BYTES]
            words = branch.fill(space if len(part) == size else room(-(-len(part) // 4)))
            cells = words.view(np.uint16)[: len(part)]
            wide, open_ = index[: len(part)], doubtful[: len(part)]
            np.copyto(wide, cells)
            self._outcomes.take(wide, out=part, mode="wrap")
            at = np.flatnonzero(np.less(cells, len(self._open), out=open_))
            places.append(start + at)
            doubts.append(cells[at])
        at, doubt = np.concatenate(places), np.concatenate(doubts)
        more = _most(len(out) * len(self._open) / (1 << CELL_BITS), len(out)) - len(doubt)
        doubt = np.concatenate([doubt, np.zeros(max(0, more), np.uint16)])  # searched, and thrown away
        if len(self._open):
            out[at] = self._named[self._law.search(self._open[doubt], branch)[: len(at)]]


@lru_cache(maxsize=64)
def byte_table(weights: WeightTerms) -> ShortTable:
    """The table of a law with at most 256 outcomes, made on first use."""
    return ShortTable(table(weights), np.arange(weights.size).astype(np.uint8))


@lru_cache(maxsize=64)
def _bytes(p: BinaryDigits) -> ShortTable:
    return byte_table(p.weights())


def fill_odds(log_odds: Fraction, out: "Bytes", branch: Branch) -> None:
    """Fill bytes with coins that are true with odds e^log_odds, not 1 to 1, from one branch.

    What fills a block of its own has the branch to itself: it needs no further ones, and no other thread.
    """
    _bytes(Odds(log_odds)).fill(out, branch)


def _coins(p: BinaryDigits, count: int, bits: Bits) -> Words:
    out = np.empty(count, np.uint64)
    if count > _MANY:
        law, octets = _bytes(p), out.view(np.uint8)
        in_branches(lambda part, branch: law.fill(octets[part], branch), 8 * count, bits)
        return out
    for start in range(0, count, _BLOCK):
        part = out[start : start + _BLOCK]
        part[:] = _block(p, len(part), bits)
    return out


def _block(p: BinaryDigits, count: int, bits: Bits) -> Words:
    begin, *turns = _turns(p, 0)
    open_ = np.full(count + 1, ~np.uint64(0))
    heads = open_.copy() if begin else np.zeros_like(open_)
    open_[count] = 0  # one word more, with no coin in it, fills the places that nobody needs
    for start in range(0, count, _PART):
        part = slice(start, min(start + _PART, count))
        _pass(heads[part], open_[part], turns[:_ALL], bits)
    todo = np.flatnonzero(open_)
    places = np.full(max(_places(count), len(todo)), count)
    places[: len(todo)] = todo
    some_heads, some_open = heads[places], open_[places]
    _pass(some_heads, some_open, turns[_ALL:], bits)
    step = 1
    while some_open.any():
        _pass(some_heads, some_open, _turns(p, step)[1:], bits)
        step += 1
    heads[places] = some_heads
    return heads[:count]


def _pass(heads: Words, open_: Words, turns: Sequence[bool], bits: Bits) -> None:
    """Take coins through some digits. A random 1 says that U agrees with p; then the coin stays open, and
    turns over if the next digit of p is another."""
    words = bits.words(len(turns) * len(open_)).reshape(len(turns), len(open_))
    for word, turn in zip(words, turns, strict=True):
        np.bitwise_and(open_, word, out=open_)
        if turn:
            np.bitwise_xor(heads, open_, out=heads)


def _places(count: int) -> int:
    """How many of so many words hold an open coin after the first digits, at most.

    Each does with probability below 64/2^_ALL.
    """
    return _most(count * 64 / (1 << _ALL), count)


def _most(mean: float, count: int) -> int:
    """How often, at most, something happens in so many independent trials that happens so often on average.

    By Bernstein's inequality the number exceeds the mean m by t = r/3 + sqrt(r^2/9 + 2 m r) or more with
    probability at most e^-r.
    """
    return min(count, math.ceil(mean + _RARE / 3 + math.sqrt(_RARE**2 / 9 + 2 * mean * _RARE)))


@lru_cache(maxsize=512)
def _turns(p: BinaryDigits, step: int) -> tuple[bool, ...]:
    """Whether the first of the step's digits of p differs from the one before it, 0 at the start, and whether
    after each of them the next one does."""
    digits = p.first(_STEP * (step + 1) + 1)
    differ = digits ^ digits >> 1
    return tuple(bool(differ >> j & 1) for j in reversed(range(_STEP + 1)))


_LEVELS = 8  # halvings: so many rows become one row of numbers up to 2^_LEVELS
_COLUMNS = 32  # up to which rows are short
_CHUNK = 1 << 13  # rows summed at once, so that they stay in the cache; a multiple of 2^_LEVELS

Bytes = NDArray[np.uint8]
Shorts = NDArray[np.uint16]


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
    ones = np.bitwise_count(rows)
    if rows.shape[1] > _COLUMNS:
        return np.asarray(ones.sum(axis=1, dtype=np.int64))
    counts = np.zeros(len(rows), np.int64)
    for column in ones.T:  # numpy sums short rows one by one, which takes longer
        counts += column
    return counts
