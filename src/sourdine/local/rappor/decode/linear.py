"""Shares of bits as a linear function of the shares of words: the equations that decoders solve.

The column of a word is 1 where it sets a bit. One column more stands for all words that are no candidates:
spread evenly, they set a bit with probability 1 - (1 - 1/k)^h. What they do beyond that shows in the
residuals, and widens the standard errors.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, hstack
from scipy.special import chdtri

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor.decode.candidates import Candidates
from sourdine.local.rappor.decode.evidence import Evidence

Floats = NDArray[np.float64]
_ALARM = 0.01  # how often residuals as large as chance makes them widen the errors


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations of some evidence and candidates, each with a weight."""

    evidence: Evidence
    candidates: Candidates
    weights: Floats

    def __post_init__(self) -> None:
        self.candidates.fits(self.evidence.oracle)

    @property
    def words(self) -> int:
        return len(self.candidates.words)

    @cached_property
    def design(self) -> Any:
        """Bits by words, and the column of the unlisted at the end."""
        oracle = self.evidence.oracle
        spread = 1 - (1 - 1 / oracle.bits) ** oracle.hashes
        rest = csr_array(np.full((oracle.bits * oracle.cohorts, 1), spread))
        return hstack([self.candidates.design, rest], format="csr")

    @cached_property
    def gram(self) -> Floats:
        """X'WX."""
        return np.asarray((self.design.T @ self._weighted).todense())

    @cached_property
    def moment(self) -> Floats:
        """X'Wy."""
        return np.asarray(self._weighted.T @ self.evidence.shares)

    @cached_property
    def _weighted(self) -> Any:
        return csr_array(self.design.multiply(self.weights[:, None]))

    def bit_shares(self, solution: Floats) -> Floats:
        """The shares of bits that a solution implies; what is below 0 counts as 0."""
        return np.asarray(self.design @ np.maximum(solution, 0.0))

    def inverse(self, columns: NDArray[np.intp] | None = None) -> Floats:
        """(X'WX)^-1, of all columns or some."""
        gram = self.gram if columns is None else self.gram[np.ix_(columns, columns)]
        scale = 1 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
        try:
            factor = cho_factor(gram * scale[:, None] * scale)
            if np.min(np.abs(np.diag(factor[0]))) < 1e-6:
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            raise InvalidParameter(
                f"{len(gram) - 1} candidates cannot be told apart by {np.count_nonzero(self.weights)} bits. "
                "Decode with LASSO, which selects among them, or list fewer."
            ) from None
        return np.asarray(cho_solve(factor, np.eye(len(gram))) * scale[:, None] * scale)

    def misfit(self, solution: Floats, parameters: int) -> float:
        """By how much the residuals exceed what chance makes of them: a factor of variances, at least 1.

        The weights must be precisions. Then the weighted sum of squares is about chi-square.
        """
        freedom = max(1, int(np.count_nonzero(self.weights)) - parameters)
        square = float(self.weights @ (self.evidence.shares - self.design @ solution) ** 2)
        return square / freedom if square > float(chdtri(freedom, _ALARM)) else 1.0


def sandwich(equations: Equations, solution: Floats, columns: NDArray[np.intp]) -> Floats:
    """The covariance of weighted least squares on some columns, with the true covariance of the bits.

    Bits of one report are not independent: those that one word sets come together. With shares pi of the
    words and tau = X pi of bits, a cohort of N reports has the covariance (X diag(pi) X' - tau tau')/N off
    the diagonal. On it stands the variance of a share, as it is.
    """
    evidence, words = equations.evidence, equations.words
    inverse = equations.inverse(columns)
    shares = np.maximum(solution[:words], 0.0)
    listed = np.clip(equations.candidates.design @ shares, 0.0, 1.0)
    counted = np.flatnonzero(evidence.sizes)
    alone = np.zeros_like(listed)
    alone[counted] = 1 / evidence.precisions(equations.bit_shares(solution))[counted]
    alone[counted] -= listed[counted] * (1 - listed[counted]) / evidence.sizes[counted]
    weighted = csr_array(equations.design[:, columns].multiply(equations.weights[:, None]))
    middle = weighted.T @ csr_array(weighted.multiply(np.maximum(alone, 0.0)[:, None]))
    bits = evidence.oracle.bits
    pulls = np.zeros((evidence.oracle.cohorts, len(columns)))
    for cohort in np.flatnonzero(evidence.reports).tolist():
        rows = slice(cohort * bits, (cohort + 1) * bits)
        follow = csr_array(weighted[rows].T @ equations.candidates.design[rows])
        middle = middle + csr_array(follow.multiply(shares / evidence.reports[cohort])) @ follow.T
        pulls[cohort] = follow @ shares / np.sqrt(evidence.reports[cohort])
    return np.asarray(inverse @ (np.asarray(middle.todense()) - pulls.T @ pulls) @ inverse)
