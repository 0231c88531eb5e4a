"""The search for words that many have: prefixes of three letters, then of six, the best kept each time.

Reports of each level are those of other devices, so that what one level led to does not bend the counts of
the next: a word that nobody has is supported by Bin(n, 1/g) of the n reports of whole words, exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.late import betainc
from sourdine.local.frequency.field import walsh_hadamard
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question
from sourdine.local.words.spelling import PARTS, Ints, ends, read, written
from sourdine.local.words.tree import WordTree

Floats = NDArray[np.float64]
_LEAST_RATE = Fraction(1, 10**12)
_STEPS = 60  # of a bisection
_RADIX = 64  # of a transform


@dataclass(frozen=True)
class FoundWord:
    """A word, its share among the reports of whole words, and an interval given that it was found."""

    word: str
    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class WordFindings:
    """The words found, the most common first.

    `false_rate` bounds the chance that any of them is a word of nobody whose report is about whole words.
    `threshold` is the estimated share from which on a word is told.
    """

    words: tuple[FoundWord, ...]
    reports: int
    whole: int
    """How many of the reports are about whole words."""
    candidates: int
    threshold: float
    false_rate: float
    confidence: float


def find_words(
    oracle: WordTree,
    rows: Bytes,
    *,
    keep: int = 64,
    false_rate: float = 0.05,
    confidence: float = 0.95,
) -> WordFindings:
    """The words that stand out of packed reports.

    Of each level the `keep` best prefixes are followed. A word is told if as many reports support it as
    support any of the candidates by chance with probability `false_rate` at most. Intervals hold with their
    confidence for each word that is told, given that it is (docs/guarantees/words.md).
    """
    owner = "find_words"
    keep = check.integer(owner, "keep", keep, 1, 1 << 12)
    rate = float(check.between(owner, "false_rate", false_rate, _LEAST_RATE, Fraction(1, 2)))
    level_of_confidence = check.confidence(owner, confidence)
    levels, responses, seeds = oracle.split(oracle.unpack(rows))
    valid = np.flatnonzero(written(oracle.alphabet))
    prefixes = np.zeros((1, 0), np.int64)
    supports = np.zeros(0, np.int64)
    candidates = threshold = 0
    for level in range(oracle.depth):
        chosen = levels == level
        sheet = LevelReports.of(oracle, responses[chosen], seeds[chosen])
        over = ends(prefixes[:, -1]) if level else np.zeros(1, np.bool_)
        parts = [valid[:1] if each else valid for each in over]  # after an end, the part of ends alone
        candidates = sum(map(len, parts))
        last = level + 1 == oracle.depth
        threshold = _threshold(int(chosen.sum()), oracle.channel.q, rate / candidates) if last else 0
        prefixes, supports = _best(sheet, prefixes, parts, most=None if last else keep, least=threshold)
    whole = int((levels == oracle.depth - 1).sum())
    value = oracle.channel.estimate(supports / max(whole, 1))
    lower, upper = _intervals(oracle, supports, threshold, whole, level_of_confidence)
    words = tuple(
        FoundWord(read(word, oracle.alphabet), *map(float, numbers))
        for word, *numbers in zip(prefixes, value, lower, upper, strict=True)
    )
    least = float(oracle.channel.estimate(threshold / max(whole, 1)))
    return WordFindings(words, len(rows), whole, candidates, least, rate, level_of_confidence)


def words_document(question: Question, findings: WordFindings) -> dict[str, object]:
    """What was found, as plain data for machines."""
    return {
        "question": question.name,
        "specification": question.fingerprint,
        "reports": findings.reports,
        "whole_word_reports": findings.whole,
        "confidence": findings.confidence,
        "epsilon": float(question.oracle.spend.loss().epsilon),
        "false_rate": findings.false_rate,
        "least_share": findings.threshold,
        "words": [
            {"word": each.word, "value": each.value, "lower": each.lower, "upper": each.upper}
            for each in findings.words
        ],
    }


def least_share(oracle: WordTree, reports: int, *, keep: int = 64, false_rate: float = 0.05) -> float:
    """The share of devices from which on a word is found more often than not, with so many reports in all.

    >>> round(least_share(WordTree(epsilon=4), 1_000_000), 4)
    0.0032
    """
    owner = "least_share"
    count = check.integer(owner, "reports", reports, 1, 1 << 40)
    keep = check.integer(owner, "keep", keep, 1, 1 << 12)
    rate = float(check.between(owner, "false_rate", false_rate, _LEAST_RATE, Fraction(1, 2)))
    whole = max(1, count // oracle.depth)
    candidates = int(written(oracle.alphabet).sum()) * (keep if oracle.depth > 1 else 1)
    return float(oracle.channel.estimate(_threshold(whole, oracle.channel.q, rate / candidates) / whole))


@dataclass(frozen=True, eq=False)
class LevelReports:
    """The reports of one level, made ready to be asked for every last part of a prefix at once."""

    oracle: WordTree
    responses: Ints
    seeds: Ints
    """Of the parts before the last."""
    last: Ints
    places: NDArray[np.int32]
    """For each factor other than 0, where the multiple of a seed stands in the transform."""
    signs: Floats

    @classmethod
    def of(cls, oracle: WordTree, responses: Ints, seeds: Ints) -> "LevelReports":
        """Reports by their responses and all their seeds, of which the last ones are 0."""
        level = int(np.flatnonzero(seeds.any(axis=0))[-1]) if seeds.any() else 0
        space, order = oracle.space, oracle.groups
        every = np.arange(oracle.seeds)
        # where V[a] has to go to stand at the dual of c a: read at the inverse multiple
        places = np.empty((order - 1, oracle.seeds), np.int32)
        for factor in range(1, order):
            places[factor - 1, space.duals(space.scaled(factor, every))] = every
        elements = np.arange(order)
        traces = space.field.dual[space.field.times] & 1  # the first bit of the dual of x is the trace of x
        signs = (1 - 2 * traces[elements]).astype(np.float64)
        return cls(oracle, responses, seeds[:, :level], seeds[:, level], places, signs)

    def supports(self, prefix: Ints) -> Ints:
        """How many reports speak for the prefix with each possible part after it.

        The mean over all factors c of sums of characters of c(<seed, part> - rest): multiples of seeds are
        brought together first, so that one transform over the seeds gives all parts.
        """
        order = self.oracle.groups
        rest = self.responses
        for i, part in enumerate(prefix):
            rest = rest ^ self.oracle.space.dot(self.seeds[:, i], np.full(len(rest), part))
        counts = np.bincount(rest * self.oracle.seeds + self.last, minlength=self.oracle.seeds * order)
        by_factor = self.signs @ counts.reshape(order, -1).astype(np.float64)
        sums = np.zeros(self.oracle.seeds)
        for factor in range(1, order):
            sums += by_factor[factor][self.places[factor - 1]]
        return np.rint((len(rest) + _walsh_hadamard(sums)[:PARTS]) / order).astype(np.int64)


def _walsh_hadamard(sums: Floats) -> Floats:
    """The transform of up to 2^53 in all, which floats hold exactly, by products with small matrices."""
    out, done = sums, 1
    while done < len(sums):
        step = min(_RADIX, len(sums) // done)
        out = _signs(step) @ out.reshape(-1, step, done)
        done *= step
    return out.reshape(-1)


@lru_cache(maxsize=8)
def _signs(size: int) -> Floats:
    return walsh_hadamard(np.eye(size, dtype=np.int64)).astype(np.float64)


def _best(
    sheet: LevelReports, prefixes: Ints, parts: list[Ints], *, most: int | None, least: int
) -> tuple[Ints, Ints]:
    """The longer prefixes with the most support, if it is at least so much, and how much each has."""
    longer: list[tuple[Ints, Ints, Ints]] = []
    for i, (prefix, possible) in enumerate(zip(prefixes, parts, strict=True)):
        supports = sheet.supports(prefix)[possible]
        top = np.flatnonzero(supports >= least)
        if most is not None and len(top) > most:
            top = top[np.argpartition(-supports[top], most - 1)[:most]]
        longer.append((np.full(len(top), i), possible[top], supports[top]))
    owner, part, supports = (np.concatenate(each) for each in zip(*longer, strict=True))
    order = np.argsort(-supports, kind="stable")[:most]
    return np.concatenate([prefixes[owner[order]], part[order, None]], axis=1), supports[order]


def _at_least(count: Floats | Ints, of: int, chance: Floats | float) -> Floats:
    """The probability that a binomial variable has at least this value."""
    counts = np.asarray(count, float)
    inside = betainc(np.clip(counts, 1, None), np.clip(of - counts + 1, 1, None), chance)
    return np.where(counts <= 0, 1.0, np.where(counts > of, 0.0, inside))


def _threshold(reports: int, chance: float, rate: float) -> int:
    """The least support that chance alone gives one candidate with this probability at most."""
    low, high = 0, reports + 1
    while low < high:
        middle = (low + high) // 2
        if float(_at_least(np.array([middle]), reports, chance)[0]) <= rate:
            high = middle
        else:
            low = middle + 1
    return low


def _intervals(
    oracle: WordTree, supports: Ints, threshold: int, reports: int, confidence: float
) -> tuple[Floats, Floats]:
    """The shares under which a support as far out is not unlikely, given that it reaches the threshold."""
    tail = (1 - confidence) / 2
    p, q = oracle.channel

    def above(share: Floats, counts: Ints) -> Floats:
        return _at_least(counts, reports, q + share * (p - q)) / _at_least(
            np.full_like(counts, threshold), reports, q + share * (p - q)
        )

    # the chance of as much support or more rises with the share, that of as little falls
    lower = _cross(lambda share: above(share, supports) > tail, len(supports))
    upper = 1 - _cross(lambda share: 1 - above(1 - share, supports + 1) > tail, len(supports))
    return lower, upper


def _cross(reached: Callable[[Floats], NDArray[np.bool_]], count: int) -> Floats:
    """The least share, from below, from which on something is reached; 1 where it never is."""
    low, high = np.zeros(count), np.ones(count)
    at_zero = reached(low)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        there = reached(middle)
        high, low = np.where(there, middle, high), np.where(there, low, middle)
    return np.where(at_zero, 0.0, low)
