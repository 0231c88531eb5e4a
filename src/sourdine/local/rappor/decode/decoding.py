"""What a decoder returns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sourdine.core import check
from sourdine.local.estimate import deviations
from sourdine.local.rappor.decode.correction import Correction

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How sure a word must be to be called found, and how wide the intervals are."""

    level: float = 0.05
    correction: Correction = Correction.BENJAMINI_HOCHBERG
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check.keep(self, level=float(check.inside("decode", "level", self.level, 0, 1)))
        check.member("decode", "correction", self.correction, Correction)
        check.keep(self, confidence=check.confidence("decode", self.confidence))


STANDARD = Terms()


@dataclass(frozen=True, eq=False, kw_only=True)
class Decoding:
    """Candidates with their estimated shares of the reports, and which of them were found.

    p-values are for the word being absent, against its being there. The standard errors are for the people
    that the reports are a sample of. `unlisted` is the estimated share of words that are no candidates.
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
    terms: Terms

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
        terms: Terms,
        tests: Floats | None = None,
    ) -> "Decoding":
        """With normal intervals, and p-values from shares in units of an error (of `tests`, where it is not
        the standard error)."""
        reach = deviations(terms.confidence) * errors
        scores = shares / np.where(errors > 0, errors, np.inf) if tests is None else tests
        p_values = np.exp(log_ndtr(-scores))
        return cls(
            method=method,
            words=words,
            shares=shares,
            errors=errors,
            p_values=p_values,
            lower=shares - reach,
            upper=shares + reach,
            detected=terms.correction.detect(p_values, terms.level) & (shares > 0),
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
    def found(self) -> tuple[str, ...]:
        """The found words, the most frequent first."""
        order = np.argsort(-self.shares, kind="stable")
        return tuple(self.words[i] for i in order if self.detected[i])
