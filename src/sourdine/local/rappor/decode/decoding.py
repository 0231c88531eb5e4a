"""What every decoder shares: candidates and the bits they set, what counts say of the bits, and its result.

Of many small p-values, a correction for multiple tests says which count as found.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import log_ndtr, ndtri

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.local.estimate import Counts, deviations
from sourdine.local.rappor.bloom import as_word, position_table
from sourdine.local.rappor.rappor import BloomOracle
from sourdine.mechanisms.randomized_response import Channel


@dataclass(frozen=True, eq=False)
class Candidates:
    """Words with their positions, an array of words x cohorts x hashes of bits below `bits`.

    Only words on the list can be found. Those that nobody has do no harm, but for power.

    >>> from sourdine.local.rappor import Rappor
    >>> oracle = Rappor(bits=16, hashes=2, cohorts=1, f=0.5, p=0.5, q=0.75)
    >>> Candidates.of(oracle, ["abc"]).positions.tolist()
    [[[6, 13]]]
    """

    words: tuple[str, ...]
    positions: NDArray[np.int64]
    bits: int

    def __post_init__(self) -> None:
        if not self.words:
            raise InvalidParameter("There are no candidates. List the words to look for.")
        if len(set(self.words)) != len(self.words):
            earlier: set[str] = set()
            twice = next(word for word in self.words if word in earlier or earlier.add(word))  # type: ignore[func-returns-value]
            raise InvalidParameter(f"The candidate '{twice}' is listed twice. List every word once.")

    @classmethod
    def of(cls, oracle: BloomOracle, words: Sequence[str]) -> "Candidates":
        """Words hashed as the devices hash them."""
        table = position_table([as_word(word) for word in words], oracle.bits, oracle.hashes, oracle.cohorts)
        return cls(tuple(words), table, oracle.bits)

    def choose(self, words: Sequence[str]) -> "Candidates":
        """Some of them; a word that is not among them is refused."""
        numbers = {word: i for i, word in enumerate(self.words)}
        if missing := [word for word in words if word not in numbers]:
            raise InvalidParameter(
                f"The candidate '{missing[0]}' is not in the map. Its bits are unknown, so it cannot be "
                "looked for. Add it to the map."
            )
        return Candidates(tuple(words), self.positions[[numbers[word] for word in words]], self.bits)

    def fits(self, oracle: BloomOracle) -> None:
        """Refuse candidates that were hashed for other parameters."""
        shape = (len(self.words), oracle.cohorts, oracle.hashes)
        if self.positions.shape != shape or self.bits != oracle.bits:
            raise InvalidParameter(
                "The candidates were hashed for other parameters: another number of bits, hashes or cohorts. "
                "Hash them again for the parameters that the reports were made with."
            )

    def hashed_by(self, oracle: BloomOracle) -> bool:
        """Whether these are the positions that Google's Python client and this package give."""
        self.fits(oracle)
        return bool(np.array_equal(self.positions, Candidates.of(oracle, self.words).positions))

    @cached_property
    def design(self) -> Any:
        """The sparse matrix of cohort-bits by words: 1 where the word sets the bit."""
        count, cohorts, hashes = self.positions.shape
        rows = (np.arange(cohorts)[None, :, None] * self.bits + self.positions).ravel()
        columns = np.repeat(np.arange(count), cohorts * hashes)
        pairs = np.unique(rows * count + columns)  # two hashes may set the same bit
        ones = (np.ones(len(pairs)), (pairs // count, pairs % count))
        return csr_array(ones, shape=(cohorts * self.bits, count))


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Reports by cohort and sums by cohort and bit."""

    oracle: BloomOracle
    reports: NDArray[np.int64]
    sums: NDArray[np.int64]

    @classmethod
    def of(cls, oracle: BloomOracle, counts: Counts) -> "Evidence":
        """The evidence in counts, which must be this oracle's."""
        table = oracle.table(counts)
        return cls(oracle, table[:, 0], table[:, 1:])

    def __post_init__(self) -> None:
        if self.total < 1:
            raise InvalidParameter("There are no reports to decode. Collect some first.")

    @property
    def total(self) -> int:
        """How many reports there are."""
        return int(self.reports.sum())

    @property
    def channel(self) -> Channel:
        return self.oracle.channel

    @property
    def debiased(self) -> Floats:
        """t_ij = (c_ij - p* N_i)/(q* - p*): the estimated number of filters with bit j in cohort i."""
        one, zero = self.channel
        return np.asarray((self.sums - zero * self.reports[:, None]) / (one - zero))

    @cached_property
    def shares(self) -> Floats:
        """The same by report, flat; 0 in a cohort without reports."""
        shares: Floats = (self.debiased / np.maximum(self.reports, 1)[:, None]).ravel()
        return shares

    @cached_property
    def sizes(self) -> Floats:
        """The number of reports behind each share."""
        return np.repeat(self.reports, self.oracle.bits).astype(float)

    def precisions(self, bit_shares: Floats) -> Floats:
        """1/variance of each share, if so many of the filters have the bit; 0 in a cohort without reports."""
        one, zero = self.channel
        mean = zero + (one - zero) * np.clip(bit_shares, 0.0, 1.0)
        return self.sizes * (one - zero) ** 2 / (mean * (1 - mean))


class Correction(StrEnum):
    """How a level is kept over many candidates."""

    BENJAMINI_HOCHBERG = "Benjamini-Hochberg"
    BONFERRONI = "Bonferroni"

    def detect(self, p_values: Floats, level: float) -> NDArray[np.bool_]:
        """Benjamini-Hochberg (1995) keeps the expected share of false ones among the found at the level;
        Bonferroni the chance of any false one.

        >>> Correction.BENJAMINI_HOCHBERG.detect(np.array([0.01, 0.04, 0.03, 0.9]), 0.05).tolist()
        [True, False, False, False]
        """
        count = len(p_values)
        if self is Correction.BONFERRONI:
            return np.asarray(p_values <= level / count)
        order = np.argsort(p_values, kind="stable")
        under = p_values[order] <= level * np.arange(1, count + 1) / count
        out = np.zeros(count, np.bool_)
        out[order[: int(np.max(np.flatnonzero(under) + 1, initial=0))]] = True
        return out


@dataclass(frozen=True, kw_only=True)
class DecodingTerms:
    """How sure a word must be to be called found, and how wide the intervals are."""

    level: float = 0.05
    correction: Correction = Correction.BENJAMINI_HOCHBERG
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check.keep(self, level=float(check.inside("decode", "level", self.level, 0, 1)))
        check.member("decode", "correction", self.correction, Correction)
        check.keep(self, confidence=check.confidence("decode", self.confidence))


STANDARD = DecodingTerms()


@dataclass(frozen=True, eq=False, kw_only=True)
class Decoding:
    """Candidates with their estimated shares of the reports, and which of them were found.

    p-values are for the word being absent, against its being there. The standard errors are for the people
    that the reports are a sample of. `unlisted` is the estimated share of words that are no candidates.
    The interval of a found word holds given that it was found, and that of another word without a condition.
    """

    method: str
    words: tuple[str, ...]
    shares: Floats
    errors: Floats
    p_values: Floats
    lower: Floats
    upper: Floats
    detected: NDArray[np.bool_]
    unlisted: float
    reports: int
    terms: DecodingTerms

    @classmethod
    def normal(
        cls,
        method: str,
        words: tuple[str, ...],
        shares: Floats,
        errors: Floats,
        *,
        unlisted: float,
        reports: int,
        terms: DecodingTerms,
        tests: Floats | None = None,
    ) -> "Decoding":
        """With normal intervals, and p-values from shares in units of an error (of `tests`, where it is not
        the standard error)."""
        reach = deviations(terms.confidence) * errors
        lower, upper = shares - reach, shares + reach
        scores = shares / np.where(errors > 0, errors, np.inf) if tests is None else tests
        p_values = np.exp(log_ndtr(-scores))
        detected = terms.correction.detect(p_values, terms.level) & (shares > 0)
        if detected.any():
            # A p-value below this cutoff was found. Given the other words the number of those found does not
            # depend on how far below it one lies (Benjamini, Yekutieli 2005), so the cutoff is a constant.
            cutoff = terms.level / len(words)
            if terms.correction is Correction.BENJAMINI_HOCHBERG:
                cutoff *= int(detected.sum())
            found = shares[detected]
            least = -float(ndtri(cutoff)) * found / scores[detected]
            ends = intervals_if_found(found, errors[detected], least, terms.confidence)
            lower[detected], upper[detected] = ends
        return cls(
            method=method,
            words=words,
            shares=shares,
            errors=errors,
            p_values=p_values,
            lower=lower,
            upper=upper,
            detected=detected,
            unlisted=unlisted,
            reports=reports,
            terms=terms,
        )

    @property
    def counts(self) -> Floats:
        """Estimated numbers of reports."""
        return self.shares * self.reports

    @property
    def mass(self) -> float:
        """The estimated share of all reports that the found words make up."""
        return float(self.shares[self.detected].sum())

    @property
    def discoveries(self) -> tuple[str, ...]:
        """The found words, the most frequent first."""
        order = np.argsort(-self.shares, kind="stable")
        return tuple(self.words[i] for i in order if self.detected[i])


_STEPS = 60  # halvings of an interval of at most 1: below the last digit of a float


def intervals_if_found(
    shares: Floats, errors: Floats, least: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Intervals of shares that were reported because they reached a threshold.

    With X normal about the true share t, P_t[X >= x | X >= least] rises with t: the ends are where it is half
    the error, and 1 less that. Without the condition small shares are found when they look larger than they
    are. A share is at least 0, so no end is below that, and a barely found word has an interval from 0.
    """
    tail = (1 - confidence) / 2

    def chance(share: Floats) -> Floats:
        seen, condition = (share - shares) / errors, (share - least) / errors
        return np.asarray(np.exp(log_ndtr(seen) - log_ndtr(condition)))

    return _crossing(chance, tail, len(shares)), _crossing(chance, 1 - tail, len(shares))


def _crossing(chance: Callable[[Floats], Floats], level: float, count: int) -> Floats:
    """The share at which a rising chance reaches a level, within 0 and 1."""
    low, high = np.zeros(count), np.ones(count)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        below = chance(middle) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low
