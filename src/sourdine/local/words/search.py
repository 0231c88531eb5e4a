"""The search for words that many have: prefixes of three letters, then of six, the best kept each time.

A word is tested once, at the part that it is over with, on all reports of that length and of longer ones:
those tell the same of it. Reports of each length are of other devices, so that what led to a prefix does not
bend the counts of the words behind it: a word that nobody has is supported by Bin(n, 1/g) of n reports.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.distributions import float_above
from sourdine.core.lazy import betainc, ndtr
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question
from sourdine.local.words.spelling import Ints, ends, read, written
from sourdine.local.words.supports import Floats, PartReports
from sourdine.local.words.tree import WordTree

KEEP = 64
"""How many prefixes are followed, unless told otherwise."""
FALSE_RATE = 0.02
"""The chance of telling a word that nobody has, at most, unless told otherwise."""
_LEAST_RATE = Fraction(1, 10**12)
_STEPS = 60  # of a bisection
_EVEN = 0.1  # the part of a rate that all prefixes share evenly


@dataclass(frozen=True)
class FoundWord:
    """A word, its share among the reports that tell it whole, and an interval given that it was found."""

    word: str
    value: float
    lower: float
    upper: float
    reports: int
    """How many reports tell a word of this length whole."""


@dataclass(frozen=True)
class WordFindings:
    """The words found, the most common first.

    `false_rate` bounds the chance that any of them is a word of no device whose report tells it whole.
    `threshold` is the estimated share from which on a word of any length is told, its prefixes being kept.
    """

    words: tuple[FoundWord, ...]
    reports: int
    whole: int
    """How many of the reports tell every word whole. Short words are told whole by more of them."""
    candidates: int
    threshold: float
    false_rate: float
    confidence: float


def find_words(
    oracle: WordTree,
    rows: Bytes,
    *,
    keep: int = KEEP,
    false_rate: float = FALSE_RATE,
    confidence: float = 0.95,
) -> WordFindings:
    """The words that stand out of packed reports.

    Of each length the `keep` best prefixes are followed. A word is told if as many reports support it as
    support any of the candidates by chance with probability `false_rate` at most. Intervals hold with their
    confidence for each word that is told, given that it is (docs/guarantees/words.md).
    """
    owner = "find_words"
    keep = check.integer(owner, "keep", keep, 1, 1 << 12)
    rate = float(check.between(owner, "false_rate", false_rate, _LEAST_RATE, Fraction(1, 2)))
    level_of_confidence = check.confidence(owner, confidence)
    levels, responses, seeds = oracle.split(oracle.unpack(rows))
    valid = np.flatnonzero(written(oracle.alphabet))
    over = ends(valid)
    prefixes, weights = np.zeros((1, 0), np.int64), np.ones(1)
    classes: list[_WordClass] = []
    candidates, greatest = 0, 0.0
    for level in range(oracle.depth):
        last = level + 1 == oracle.depth
        possible = valid if last else valid[over]
        whole = levels >= level
        telling = PartReports.of(oracle, responses[whole], seeds[whole], level)
        rates = rate * _class_share(oracle, level) * weights / len(possible)
        candidates += len(prefixes) * len(possible)
        least = [_threshold(len(telling), oracle.channel.q, each) for each in rates.tolist()]
        greatest = max(greatest, max(least) / max(len(telling), 1))
        classes.append(_tell(telling, prefixes, possible, np.array(least)))
        if not last:
            own = levels == level
            about = PartReports.of(oracle, responses[own], seeds[own], level)
            prefixes, weights = _best(about, prefixes, weights, valid[~over], keep)
    return WordFindings(
        words=_read(oracle, classes, level_of_confidence),
        reports=len(rows),
        whole=int((levels == oracle.depth - 1).sum()),
        candidates=candidates,
        threshold=float(oracle.channel.estimate(np.float64(greatest))),
        false_rate=rate,
        confidence=level_of_confidence,
    )


def words_document(question: Question, findings: WordFindings) -> dict[str, object]:
    """What was found, as plain data for machines."""
    return {
        "question": question.name,
        "specification": question.fingerprint,
        "reports": findings.reports,
        "whole_word_reports": findings.whole,
        "confidence": findings.confidence,
        "epsilon": float_above(question.oracle.spend.loss().epsilon),
        "false_rate": findings.false_rate,
        "least_share": findings.threshold,
        "words": [
            {
                "word": each.word,
                "value": each.value,
                "lower": each.lower,
                "upper": each.upper,
                "reports": each.reports,
            }
            for each in findings.words
        ],
    }


def least_share(oracle: WordTree, reports: int, *, keep: int = KEEP, false_rate: float = FALSE_RATE) -> float:
    """The share of devices from which on a long word is found more often than not, with so many reports.

    Words that are over some letters earlier are found from less on.

    >>> round(least_share(WordTree(epsilon=4), 1_000_000), 4)
    0.0033
    """
    owner = "least_share"
    count = check.integer(owner, "reports", reports, 1, 1 << 40)
    keep = check.integer(owner, "keep", keep, 1, 1 << 12)
    rate = float(check.between(owner, "false_rate", false_rate, _LEAST_RATE, Fraction(1, 2)))
    whole = max(1, count // oracle.depth)
    candidates = int(written(oracle.alphabet).sum()) * (keep if oracle.depth > 1 else 1)
    each = rate * _class_share(oracle, oracle.depth - 1) / candidates
    return float(oracle.channel.estimate(_threshold(whole, oracle.channel.q, each) / whole))


@dataclass(frozen=True, eq=False)
class _WordClass:
    """Words of one length that reached what was asked of them."""

    words: Ints
    supports: Ints
    least: Ints
    reports: int


def _class_share(oracle: WordTree, level: int) -> float:
    """The part of a rate that words have which are over at a level: half for the longest, the most of all."""
    if oracle.depth == 1:
        return 1.0
    return 0.5 if level + 1 == oracle.depth else 0.5 / (oracle.depth - 1)


def _tell(telling: PartReports, prefixes: Ints, parts: Ints, least: Ints) -> _WordClass:
    """The words behind prefixes that are over with one of the parts, and have as much support as is asked."""
    words, supports, thresholds = [], [], []
    for prefix, threshold in zip(prefixes, least.tolist(), strict=True):
        counts = telling.supports(prefix, parts)
        top = np.flatnonzero(counts >= threshold)
        words.append(np.concatenate([np.tile(prefix, (len(top), 1)), parts[top, None]], axis=1))
        supports.append(counts[top])
        thresholds.append(np.full(len(top), threshold))
    return _WordClass(
        np.concatenate(words), np.concatenate(supports), np.concatenate(thresholds), len(telling)
    )


def _best(about: PartReports, prefixes: Ints, weights: Floats, parts: Ints, keep: int) -> tuple[Ints, Floats]:
    """The longer prefixes that are the most likely ones, and what part of a rate each should have.

    A prefix counts by its deviation from chance, and by what was found of the shorter one before.
    """
    q, count = about.oracle.channel.q, len(about)
    spread = np.sqrt(max(count, 1) * q * (1 - q))
    every: list[tuple[Ints, Floats, Floats]] = []
    for i, (prefix, weight) in enumerate(zip(prefixes, weights, strict=True)):
        deviations = (about.supports(prefix, parts) - count * q) / spread
        scores = deviations * np.abs(deviations) / 2 + np.log(weight)
        top = np.argpartition(-scores, min(keep, len(parts)) - 1)[:keep]
        every.append((i * len(parts) + top, deviations[top], scores[top]))
    places, deviations, scores = (np.concatenate(each) for each in zip(*every, strict=True))
    order = np.argsort(-scores, kind="stable")[:keep]
    owner, part = np.divmod(places[order], len(parts))
    longer = np.concatenate([prefixes[owner], parts[part][:, None]], axis=1)
    return longer, _weights(deviations[order], len(parts) / weights[owner])


def _weights(deviations: Floats, rivals: Floats) -> Floats:
    """How a rate is shared out to prefixes that deviated so much, each among so many rivals; in all 1.

    In proportion to how likely somebody has them: one to as many of its rivals as deviate more by chance. A
    tenth is shared evenly.
    """
    likely = 1 / (1 + rivals * ndtr(-deviations))
    weights = _EVEN / len(likely) + (1 - _EVEN) * likely / likely.sum()
    # rounding may not make them more than 1 together
    return np.asarray(weights * (1 - 1e-12) / max(1.0, float(weights.sum())))


def _read(oracle: WordTree, classes: list[_WordClass], confidence: float) -> tuple[FoundWord, ...]:
    words: list[FoundWord] = []
    for each in classes:
        value = oracle.channel.estimate(each.supports / max(each.reports, 1))
        lower, upper = _intervals(oracle, each, confidence)
        words += [
            FoundWord(
                word=read(word, oracle.alphabet),
                value=float(value[i]),
                lower=float(lower[i]),
                upper=float(upper[i]),
                reports=each.reports,
            )
            for i, word in enumerate(each.words)
        ]
    return tuple(sorted(words, key=lambda each: -each.value))


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


def _intervals(oracle: WordTree, word_class: _WordClass, confidence: float) -> tuple[Floats, Floats]:
    """The shares under which a support as far out is not unlikely, given that it reaches the threshold."""
    tail = (1 - confidence) / 2
    p, q = oracle.channel
    supports = word_class.supports

    def above(share: Floats, counts: Ints) -> Floats:
        chance = q + share * (p - q)
        return _at_least(counts, word_class.reports, chance) / _at_least(
            word_class.least, word_class.reports, chance
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
