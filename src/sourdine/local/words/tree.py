"""The oracle of words that nobody listed: a prefix of the word, of a random length, by local hashing."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.shuffling.blanket import Favours
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Norm
from sourdine.core.distributions import AtomLaw
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.tables import WeightTerms, table
from sourdine.local.estimate import Counts, Estimate
from sourdine.local.frequency.field import Vectors, vectors
from sourdine.local.oracle import Bytes, Oracle, byte_rows, refuse
from sourdine.local.words.spelling import ALPHABET, PART, PARTS, Ints, check_alphabet, spell
from sourdine.mechanisms.randomized_response import (
    LEAST_EPSILON,
    MOST_EPSILON,
    Channel,
    response_loss,
)

GROUPS = (2, 4, 8, 16, 32)
"""How many groups there may be: powers of 2, so that counts are found without any rounding."""
_LENGTHS = (PART, 2 * PART, 4 * PART)
_SEED = 2  # bytes of the seed of a part
_CHUNK = 1 << 15  # words handled at once, so that the arrays stay in the cache


@dataclass(frozen=True, kw_only=True)
class WordTree(Oracle):
    """Reports the group of a prefix of a word, under a random hash function, by k-ary response.

    A changed word costs epsilon. Words have at most `letters` letters of an alphabet; longer ones are cut.
    A prefix has one, two, ... parts of three letters: its level does not depend on the word. A device that
    may report again takes its level from its secret, as `WordMemo` does. Parts are vectors of m digits over
    the field of g = `groups` elements, and so are the seeds, one a part: <seed, prefix> is the group. Unless
    given (0), g is the one of least variance (docs/guarantees/words.md).

    >>> oracle = WordTree(epsilon=2)
    >>> oracle.groups, oracle.digits, oracle.depth, oracle.width
    (8, 5, 4, 9)
    """

    name: ClassVar[str] = "word-tree/1"
    norm: ClassVar[Norm] = Norm.HAMMING
    takes_words: ClassVar[bool] = True
    epsilon: Fraction
    letters: int = 12
    groups: int = 0
    alphabet: str = ALPHABET

    def __post_init__(self) -> None:
        owner = "WordTree"
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
        letters = check.integer(owner, "letters", self.letters, min(_LENGTHS), max(_LENGTHS))
        if letters not in _LENGTHS:
            raise check.fail(owner, "letters", f"be one of {', '.join(map(str, _LENGTHS))}", letters)
        groups = check.integer(owner, "groups", self.groups, 0, max(GROUPS))
        groups = groups or min(GROUPS, key=lambda order: float(_channel(epsilon, order).variance(0, 1)))
        if groups not in GROUPS:
            must = f"be one of {', '.join(map(str, GROUPS))}"
            raise check.fail(owner, "groups", must, groups, "Leave it out for the best.")
        check.keep(
            self,
            epsilon=epsilon,
            letters=letters,
            groups=groups,
            alphabet=check_alphabet(owner, self.alphabet),
        )

    @property
    def depth(self) -> int:
        """How many parts a word has, and how many lengths a prefix."""
        return self.letters // PART

    @property
    def digits(self) -> int:
        """How many digits a part has, and its seed."""
        return math.ceil((PARTS - 1).bit_length() / (self.groups - 1).bit_length())

    @property
    def seeds(self) -> int:
        """How many seeds of a part there are."""
        return int(self.groups**self.digits)

    @property
    def space(self) -> Vectors:
        """The parts as vectors."""
        return vectors(self.groups, self.digits)

    @property
    def channel(self) -> Channel:
        """How often a report speaks for the prefix of its word, and for another."""
        return _channel(self.epsilon, self.groups)

    @property
    def width(self) -> int:
        return 1 + _SEED * self.depth

    @property
    def spend(self) -> Spend:
        return Spend(mechanism=self, distance=Distance.hamming())

    @property
    def favours(self) -> tuple[Favours, ...]:
        """One kind of two words for each level from which on they differ.

        A word that begins otherwise than both is one in another group at every level where they differ.
        """
        share = 1 / self.groups
        kinds = []
        for same in range(self.depth):
            apart = (1 - same / self.depth) * (1 - share)
            third = share * (1 - same / self.depth) * (1 - share) ** 2
            kinds.append(Favours(each=share, alone=share * apart, both=share * (1 - apart), third=third))
        return tuple(kinds)

    def loss(self, distance: Distance) -> PrivacyLoss:
        """One changed word: +epsilon where the report favours it alone, -epsilon the other way, else 0."""
        self.require(distance)
        epsilon = float(self.epsilon)
        up = (1 - 1 / self.groups) * self.channel.p
        down = up * math.exp(-epsilon)
        same = max(0.0, 1 - up - down)  # floats may round it to less than nothing
        law = AtomLaw([epsilon, 0.0, -epsilon], [up, same, down], [down, same, up])
        changed = math.floor(distance.amount)
        return response_loss(distance, changed, changed * self.epsilon, law)

    def error(self, confidence: float = 0.95, reports: int = 1) -> float:
        """The half-width of an interval around the share of one word, among so many reports of one level."""
        owner = "WordTree.error"
        level = check.confidence(owner, confidence)
        return self.channel.half_width(level, check.integer(owner, "reports", reports, 1, 1 << 62))

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """A packed report of a new device for each word, at a level that is drawn."""
        array = np.asarray(values)
        if array.dtype.kind not in "USO" or not all(isinstance(each, str) for each in array.ravel().tolist()):
            raise InvalidParameter("The values given to WordTree must be words. Pass text.")
        parts = self.parts(array.ravel().tolist())
        rows = np.empty((len(parts), self.width), np.uint8)
        for start in range(0, len(parts), _CHUNK):
            some = parts[start : start + _CHUNK]
            rows[start : start + _CHUNK] = self.encode(some, exact.uniform(self.depth, len(some), bits), bits)
        return rows.reshape(*array.shape, self.width)

    def parts(self, words: list[str]) -> Ints:
        """The parts of words, a row each."""
        return spell(words, self.alphabet, self.letters)

    def encode(self, parts: Ints, depths: Ints, bits: Bits) -> Bytes:
        """Packed reports of words, given as rows of parts, each at its level, whose depth is from 0 on."""
        count = len(parts)
        # one part after the other, so that a single word takes a word of bits for each
        seeds = np.stack([exact.uniform(self.seeds, count, bits) for _ in range(self.depth)], axis=1)
        seeds[np.arange(self.depth) > depths[:, None]] = 0
        shifts = WeightTerms((1,) * self.groups, (self.epsilon, *(0,) * (self.groups - 1)))
        shift = table(shifts).sample(count, bits)  # the response less the true group
        response = reduce(
            np.bitwise_xor, self.space.dot(seeds.ravel(), parts.ravel()).reshape(-1, self.depth).T
        )
        first = (depths * self.groups + (response ^ shift)).astype(np.uint8)
        wide = seeds.astype(">u2").view(np.uint8).reshape(count, -1)
        return np.concatenate([first[:, None], wide], axis=1)

    def split(self, rows: Bytes) -> tuple[Ints, Ints, Ints]:
        """The levels, responses and seeds of packed reports."""
        levels, responses = np.divmod(rows[:, 0].astype(np.int64), self.groups)
        seeds = np.ascontiguousarray(rows[:, 1:]).view(">u2").astype(np.int64)
        return levels, responses, seeds

    def pack(self, reports: NDArray[Any]) -> Bytes:
        return np.asarray(reports, np.uint8).reshape(-1, self.width)

    def sound(self, rows: Bytes) -> NDArray[np.bool_]:
        """Rows of a level that there is, with seeds for the parts of its prefix alone."""
        levels, _, seeds = self.split(rows)
        beyond = np.arange(self.depth) > levels[:, None]
        wrong = np.where(beyond, seeds != 0, seeds >= self.seeds).any(axis=1)
        return np.asarray((levels < self.depth) & ~wrong)

    def unpack(self, rows: Bytes) -> NDArray[Any]:
        refuse(~self.sound(rows))
        return rows

    def tally(self, reports: NDArray[Any]) -> Counts:
        """How many reports there are of each level; what they say is read off the reports by `find_words`."""
        levels, _, _ = self.split(self.unpack(byte_rows(reports, self.width)))
        return Counts(self.fingerprint, len(levels), np.bincount(levels, minlength=self.depth))

    def possible(self, counts: Counts) -> bool:
        shaped = counts.sums.shape == (self.depth,)
        return shaped and super().possible(counts) and int(counts.sums.sum()) == counts.reports

    def estimate(self, counts: Counts, confidence: float = 0.95) -> Estimate:
        raise InvalidParameter(
            "Words that nobody listed are read off single reports, which counts do not hold. "
            "Search the reports with sourdine.local.words.find_words, or 'sourdine local words'."
        )

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for oracle, word, other in (
            (cls(epsilon=1), "tea", "coffee"),
            (cls(epsilon=2, letters=6), "xyz", "abcdef"),
            (cls(epsilon=Fraction(1, 2), letters=3, groups=2), "no", "yes"),
        ):
            yield Example(
                mechanism=oracle,
                value=word,
                neighbour=other,
                distance=Distance.hamming(),
                code=_SupportCode(oracle, word, other),
            )


@dataclass(frozen=True)
class _SupportCode:
    """Of a report its level, and which of two words it speaks for: all that tells the two apart."""

    oracle: WordTree
    word: str
    other: str

    def __call__(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        levels, responses, seeds = self.oracle.split(self.oracle.pack(reports))
        code = levels
        for word in (self.word, self.other):
            parts = np.broadcast_to(self.oracle.parts([word]), seeds.shape)
            dots = self.oracle.space.dot(seeds.ravel(), parts.ravel()).reshape(seeds.shape)
            code = 2 * code + (reduce(np.bitwise_xor, dots.T) == responses)
        return code


def _channel(epsilon: Fraction, groups: int) -> Channel:
    return Channel(1 / (1 + (groups - 1) * math.exp(-epsilon)), 1 / groups)
