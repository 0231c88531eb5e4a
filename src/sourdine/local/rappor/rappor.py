"""RAPPOR and its variants (Erlingsson, Pihur, Korolova 2014): with or without hashing, once or again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.estimate import Counts, Estimate, normal
from sourdine.local.oracle import byte_rows, refuse, whole_number
from sourdine.local.rappor.bloom import (
    MOST_BITS,
    MOST_HASHES,
    as_word,
    packed_filters,
    position_table,
    positions,
)
from sourdine.local.rappor.oracle import RapporOracle, check_coins, check_flip
from sourdine.local.rappor.responses import Coins, Rows, solve_coins, solve_flip

MOST_COHORTS = 1 << 16
_CHUNK = 1 << 14  # rows of bits summed at once, so that they stay in the cache


class BloomOracle(RapporOracle):
    """Variants for words: each is hashed into a Bloom filter, by its device's cohort.

    A packed report is the cohort, in as few bytes as all cohorts need, and the bits of the filter.
    """

    takes_words: ClassVar[bool] = True
    bits: int
    hashes: int
    cohorts: int

    def _check_filter(self) -> None:
        owner = type(self).__name__
        for name, most in (("bits", MOST_BITS), ("hashes", MOST_HASHES), ("cohorts", MOST_COHORTS)):
            least = 2 if name == "bits" else 1
            object.__setattr__(self, name, check.integer(owner, name, getattr(self, name), least, most))

    @property
    def size(self) -> int:
        return self.bits

    @property
    def ones(self) -> int:
        return self.hashes

    @property
    def groups(self) -> int:
        return self.cohorts

    @property
    def head(self) -> int:
        """How many bytes of a packed report tell the cohort."""
        return ((self.cohorts - 1).bit_length() + 7) // 8

    @property
    def width(self) -> int:
        return self.head + (self.bits + 7) // 8

    def filter(self, value: object, cohort: int) -> Rows:
        places = np.array(positions(as_word(value), cohort, self.bits, self.hashes))
        return packed_filters(places, self.bits)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """A packed report of a new device for each word."""
        array = np.asarray(values)
        if array.dtype.kind not in "USO":
            raise InvalidParameter(
                f"The values given to {type(self).__name__} must be words. Pass text, or a basic variant."
            )
        numbers: dict[bytes, int] = {}
        codes = [numbers.setdefault(as_word(item), len(numbers)) for item in array.ravel().tolist()]
        rows = self.encode(list(numbers), np.array(codes, np.int64), bits=bits)
        return rows.reshape(*array.shape, self.width)

    def encode(
        self,
        words: Sequence[str | bytes],
        codes: ArrayLike,
        *,
        cohorts: ArrayLike | None = None,
        bits: Bits = SYSTEM,
    ) -> Rows:
        """A packed report of a new device for each code, a place in a list of words.

        Cohorts are drawn unless given. Each (word, cohort) is hashed once, so a million people cost little.
        """
        places = np.clip(np.asarray(codes, np.int64).reshape(-1), 0, max(0, len(words) - 1))
        if cohorts is None:
            drawn = exact.uniform(self.cohorts, places.size, bits)
        else:
            drawn = np.asarray(cohorts, np.int64).reshape(-1)
            if drawn.shape != places.shape or np.any((drawn < 0) | (drawn >= self.cohorts)):
                raise InvalidParameter(
                    f"The 'cohorts' of encode must be one a value, from 0 to {self.cohorts - 1}. "
                    "Leave them out to have them drawn."
                )
        if not words and places.size:
            raise InvalidParameter(
                "The 'words' of encode must not be empty. Pass the words that codes stand for."
            )
        if not places.size:
            return np.zeros((0, self.width), np.uint8)
        table = position_table([as_word(word) for word in words], self.bits, self.hashes, self.cohorts)
        filters = packed_filters(table, self.bits).reshape(-1, self.width - self.head)
        return self.with_cohorts(self.respond(filters[places * self.cohorts + drawn], bits), drawn)

    def with_cohorts(self, rows: Rows, cohorts: NDArray[np.int64]) -> Rows:
        wide = np.asarray(cohorts).astype(">u4").view(np.uint8).reshape(-1, 4)
        return np.concatenate([wide[:, 4 - self.head :], rows], axis=1)

    def split(self, rows: Rows) -> tuple[NDArray[np.int64], Rows]:
        """The cohorts and the packed bits of packed reports."""
        wide = np.zeros((len(rows), 4), np.uint8)
        wide[:, 4 - self.head :] = rows[:, : self.head]
        return wide.view(">u4").reshape(-1).astype(np.int64), rows[:, self.head :]

    def pack(self, reports: NDArray[Any]) -> Rows:
        return np.asarray(reports, np.uint8).reshape(-1, self.width)

    def sound(self, rows: Rows) -> NDArray[np.bool_]:
        """Rows of a cohort that there is, without bits beyond the last."""
        cohorts, filters = self.split(rows)
        spare = np.uint8((1 << -self.bits % 8) - 1)
        return np.asarray((cohorts < self.cohorts) & ((filters[:, -1] & spare) == 0))

    def unpack(self, rows: Rows) -> NDArray[Any]:
        refuse(~self.sound(rows))
        return rows

    def tally(self, reports: NDArray[Any]) -> Counts:
        """Row by row for each cohort, how many reports came and how many of them have each bit."""
        cohorts, filters = self.split(self.unpack(byte_rows(reports, self.width)))
        sizes = np.bincount(cohorts, minlength=self.cohorts)
        order = np.argsort(cohorts.astype(np.uint16), kind="stable")
        sums = np.zeros((self.cohorts, 1 + self.bits), np.int64)
        sums[:, 0] = sizes
        ends = np.cumsum(sizes)
        for cohort in np.flatnonzero(sizes):
            for start in range(ends[cohort] - sizes[cohort], ends[cohort], _CHUNK):
                some = filters[order[start : min(start + _CHUNK, ends[cohort])]]
                bits = np.unpackbits(some, axis=1, count=self.bits)
                sums[cohort, 1:] += bits.sum(axis=0, dtype=np.int32)
        return Counts(self.fingerprint, len(cohorts), sums.ravel())

    def table(self, counts: Counts) -> NDArray[np.int64]:
        """Counts as rows of cohorts: how many reports, then how many with each bit."""
        return self.known(counts).sums.reshape(self.cohorts, 1 + self.bits)

    def estimate(self, counts: Counts, confidence: float = 0.95) -> Estimate:
        """The share of filters with each bit set, by cohort and bit; words are read by `decode`.

        A cohort without reports has an infinite variance.
        """
        level = check.confidence(f"{type(self).__name__}.estimate", confidence)
        table = self.table(counts)
        reports = np.maximum(table[:, :1], 1)
        value = self.channel.estimate(table[:, 1:] / reports)
        variance = self.channel.variance(value, 1) / reports
        empty = table[:, :1] == 0
        value, variance = np.where(empty, 0.0, value), np.where(empty, np.inf, variance)
        return normal(value, variance, counts.reports, level)


@dataclass(frozen=True, kw_only=True)
class Rappor(BloomOracle):
    """A word's Bloom filter, whose bits are answered once for ever and then anew in every report.

    One report costs epsilon_1 = h ln(q*(1-p*)/(p*(1-q*))), all reports of a device on one word together
    epsilon_infinity = 2h ln((1-f/2)/(f/2)), where q* = f(p+q)/2 + (1-f)q and p* = f(p+q)/2 + (1-f)p
    (Erlingsson, Pihur, Korolova 2014). At f = 0 there is no limit to the latter.

    >>> chrome = Rappor(bits=128, hashes=2, cohorts=16, f=0.5, p=0.5, q=0.75)
    >>> round(chrome.epsilon_one, 3), round(chrome.epsilon_infinity, 3), round(chrome.epsilon_after(3), 3)
    (1.074, 4.394, 2.756)
    """

    name: ClassVar[str] = "rappor/1"
    bits: int
    hashes: int
    cohorts: int
    f: Fraction
    p: Fraction
    q: Fraction

    def __post_init__(self) -> None:
        self._check_filter()
        check_coins(self)

    @property
    def coins(self) -> Coins:
        return Coins(self.f, self.p, self.q)

    def once(self) -> "OneTimeRappor":
        return OneTimeRappor(bits=self.bits, hashes=self.hashes, cohorts=self.cohorts, f=self.f)

    @classmethod
    def within(
        cls,
        *,
        epsilon: Fraction | float,
        epsilon_infinity: Fraction | float,
        bits: int = 128,
        hashes: int = 2,
        cohorts: int = 16,
    ) -> Self:
        """The parameters of least variance with these epsilons; an infinite epsilon_infinity gives f = 0.

        >>> Rappor.within(epsilon=1, epsilon_infinity=4).epsilon_one <= 1
        True
        """
        coins = solve_coins("Rappor.within", epsilon, epsilon_infinity, hashes)
        return cls(bits=bits, hashes=hashes, cohorts=cohorts, f=coins.f, p=coins.p, q=coins.q)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        half, third = Fraction(1, 2), Fraction(1, 3)
        for one in (
            cls(bits=6, hashes=1, cohorts=1, f=Fraction(0), p=third, q=2 * third),
            cls(bits=8, hashes=2, cohorts=2, f=half, p=half, q=3 * half / 2),
        ):
            yield _words_apart(one)


@dataclass(frozen=True, kw_only=True)
class OneTimeRappor(BloomOracle):
    """A word's Bloom filter answered once: the permanent response is the report.

    It costs 2h ln((1-f/2)/(f/2)), however often it is sent (Erlingsson, Pihur, Korolova 2014).
    Elsewhere "one time" means the other response alone, which is `Rappor` with f = 0: as one report it has
    less variance at the same epsilon, and every further report costs as much again.

    >>> round(OneTimeRappor(bits=128, hashes=2, cohorts=16, f=0.5).epsilon_one, 3)
    4.394
    """

    name: ClassVar[str] = "one-time-rappor/1"
    bits: int
    hashes: int
    cohorts: int
    f: Fraction

    def __post_init__(self) -> None:
        self._check_filter()
        check_flip(self)

    @property
    def coins(self) -> Coins:
        return Coins(self.f)

    def once(self) -> Self:
        return self

    @classmethod
    def within(
        cls, *, epsilon: Fraction | float, bits: int = 128, hashes: int = 2, cohorts: int = 16
    ) -> Self:
        """The least noise with this epsilon."""
        f = solve_flip("OneTimeRappor.within", epsilon, hashes)
        return cls(bits=bits, hashes=hashes, cohorts=cohorts, f=f)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield _words_apart(cls(bits=8, hashes=2, cohorts=2, f=Fraction(1, 2)))
        yield _words_apart(cls(bits=5, hashes=1, cohorts=1, f=Fraction(5, 7)))


def _words_apart(oracle: BloomOracle) -> Example:
    """Two words that share no bit in any cohort, and each set as many as a word can: the worst there is."""
    candidates: list[tuple[str, set[tuple[int, int]]]] = []
    for i in range(10_000):
        word = f"word {i}"
        table = position_table([as_word(word)], oracle.bits, oracle.hashes, oracle.cohorts)[0]
        places = {(cohort, int(bit)) for cohort, row in enumerate(table) for bit in row}
        if len(places) == oracle.hashes * oracle.cohorts:
            candidates.append((word, places))
            other = next(known for known, taken in candidates if not taken & places or known == word)
            if other != word:
                return Example(
                    mechanism=oracle,
                    value=other,
                    neighbour=word,
                    distance=Distance.hamming(),
                    code=whole_number,
                )
    raise ArithmeticError("No two words are wholly apart.")


@dataclass(frozen=True, eq=False)
class Filters:
    """The packed filters of words, one a word and cohort.

    `BloomOracle.encode` hashes its words whenever it is called; this hashes them once for many calls.

    >>> from sourdine.local.rappor import Rappor
    >>> oracle = Rappor(bits=16, hashes=2, cohorts=4, f=0.5, p=0.5, q=0.75)
    >>> Filters.of(oracle, ["yes", "no"]).reports([0, 0, 1]).shape
    (3, 3)
    """

    oracle: BloomOracle
    packed: Rows

    @classmethod
    def of(cls, oracle: BloomOracle, words: Sequence[str | bytes]) -> Self:
        """The filters of some words."""
        if not words:
            raise InvalidParameter("The 'words' of Filters must not be empty. Pass those that people have.")
        table = position_table([as_word(word) for word in words], oracle.bits, oracle.hashes, oracle.cohorts)
        return cls(oracle, packed_filters(table, oracle.bits).reshape(-1, oracle.width - oracle.head))

    def reports(self, codes: ArrayLike, bits: Bits = SYSTEM) -> Rows:
        """A packed report of a new device, in a cohort that is drawn, for each place in the list of words."""
        cohorts = self.oracle.cohorts
        last = len(self.packed) // cohorts - 1
        places = np.clip(np.asarray(codes, np.int64).reshape(-1), 0, last)
        drawn = exact.uniform(cohorts, places.size, bits)
        filters = self.packed[places * cohorts + drawn]
        return self.oracle.with_cohorts(self.oracle.respond(filters, bits), drawn)
