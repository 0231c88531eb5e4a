"""Decoders that take shares of bits for a linear function of the shares of words.

The column of a word is 1 where it sets a bit. One column more stands for all words that are no candidates:
spread evenly, they set a bit with probability 1 - (1 - 1/k)^h. What they do beyond that shows in the
residuals, and widens the standard errors.

Weighted least squares, in which every bit counts by how sure it is, is the decoder to begin with. Others
allow no share below 0, with errors by resampling, or select words by LASSO and fit those, as the source
does.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, hstack
from scipy.special import chdtri, ndtri

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.rappor.decode.decoding import STANDARD, Candidates, Decoding, DecodingTerms, Evidence

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


_ROUNDS = 3


def decode_by_least_squares(
    evidence: Evidence, candidates: Candidates, *, terms: DecodingTerms = STANDARD
) -> Decoding:
    """Unbiased shares of all candidates at once, by the variance that each bit has under what was found.

    Candidates must be fewer than cohorts x bits. Estimates may fall below 0.
    """
    equations, solution = solve_weighted(evidence, candidates)
    columns = np.arange(len(solution))
    variances = np.diag(sandwich(equations, solution, columns))[: equations.words]
    errors = np.sqrt(np.maximum(variances, 0.0) * equations.misfit(solution, len(solution)))
    return Decoding.normal(
        "weighted least squares",
        candidates.words,
        solution[:-1],
        errors,
        unlisted=float(solution[-1]),
        reports=evidence.total,
        terms=terms,
    )


def solve_weighted(evidence: Evidence, candidates: Candidates) -> tuple[Equations, Floats]:
    """The equations at their final weights, and their solution, the share of the unlisted at its end."""
    equations = Equations(evidence, candidates, evidence.precisions(np.zeros(len(evidence.shares))))
    for last in range(_ROUNDS):
        solution = equations.inverse() @ equations.moment
        if last < _ROUNDS - 1:
            weights = evidence.precisions(equations.bit_shares(solution))
            equations = Equations(evidence, candidates, weights)
    return equations, solution


_STEPS = 300
_TOLERANCE = 1e-9  # of the largest share, by which no share alone would still move
_RIDGE = 1e-10  # relative; it keeps a step finite where columns depend on each other
_ENOUGH = 1e-4  # of the gain that the slope promises


def solve_bounded(gram: Floats, moment: Floats, prices: Floats, lower: Floats, start: Floats) -> Floats:
    """The b >= lower that minimises b'Gb/2 - (c - prices)'b, from a start, by projected Newton steps.

    Shares at their bound that would fall below it stay; all others take the step that solves for them, cut
    at the bounds, and half of it until that is a gain (Bertsekas 1982).
    """
    b = np.maximum(start, lower)
    diagonal = np.maximum(np.diag(gram), 1e-300)
    slope = moment - prices - gram @ b
    for _ in range(_STEPS):
        free = np.flatnonzero((b > lower) | (slope > 0))
        wanted = np.maximum(b[free] + slope[free] / diagonal[free], lower[free]) - b[free]
        if np.max(np.abs(wanted), initial=0.0) <= _TOLERANCE * max(np.max(np.abs(b)), 1e-12):
            break
        part = gram[np.ix_(free, free)]
        part[np.diag_indices(len(free))] *= 1 + _RIDGE
        step = cho_solve(
            cho_factor(part, overwrite_a=True, check_finite=False), slope[free], check_finite=False
        )
        for _ in range(50):
            move = np.maximum(b[free] + step, lower[free]) - b[free]
            pull = gram[:, free] @ move
            promise = float(slope[free] @ move)
            if promise - float(move @ pull[free]) / 2 >= _ENOUGH * promise:
                break
            step /= 2
        b[free] += move
        slope -= pull
    return b


def decode_nonnegative(
    evidence: Evidence,
    candidates: Candidates,
    *,
    terms: DecodingTerms = STANDARD,
    rounds: int = 50,
    bits: Bits = SYSTEM,
) -> Decoding:
    """Shares that are never below 0: biased upwards where a word is rare, and closer to the truth in all.

    Errors and intervals come from `rounds` sets of bits drawn anew around what was found. p-values are those
    of least squares on the words above 0, whose solution this is.
    """
    rounds = check.integer("decode_nonnegative", "rounds", rounds, 2, 10_000)
    equations, free = solve_weighted(evidence, candidates)
    lower = np.append(np.zeros(equations.words), -np.inf)
    none = np.zeros(len(free))
    solution = solve_bounded(equations.gram, equations.moment, none, lower, free)
    widened = np.sqrt(equations.misfit(solution, int(np.count_nonzero(solution))))
    spread = np.zeros_like(evidence.shares)
    counted = equations.weights > 0
    spread[counted] = widened / np.sqrt(equations.weights[counted])
    fitted = equations.design @ solution
    drawn = np.empty((rounds, len(free)))
    for row in drawn:
        again = fitted + spread * _normals(len(fitted), bits)
        moment = equations.design.T @ (equations.weights * again)
        row[:] = solve_bounded(equations.gram, moment, none, lower, solution)
    positive = np.flatnonzero(solution[:-1] > 0)
    columns = np.append(positive, equations.words)
    errors = widened * np.sqrt(np.diag(equations.inverse(columns)))[:-1]
    scores = np.full(equations.words, -np.inf)
    scores[positive] = solution[positive] / errors
    tail = (1 - terms.confidence) / 2
    decoding = Decoding.normal(
        "non-negative least squares",
        candidates.words,
        solution[:-1],
        drawn[:, :-1].std(axis=0, ddof=1),
        unlisted=max(0.0, float(solution[-1])),
        reports=evidence.total,
        terms=terms,
        tests=scores,
    )
    ends = np.quantile(drawn[:, :-1], [tail, 1 - tail], axis=0)
    lower, upper = np.where(decoding.detected, (decoding.lower, decoding.upper), ends)
    return replace(decoding, lower=lower, upper=upper)


def _normals(count: int, bits: Bits) -> Floats:
    """Normal numbers for resampling; nothing private depends on their last digits."""
    words: NDArray[np.uint64] = bits.words(count)
    return np.asarray(ndtri(((words >> np.uint64(12)) + 0.5) * 2.0**-52))


_STEPS_LASSO = 30
_LOWEST = 1e-3  # the last price, by the first at which no word is worth it
_MOST = 500


def decode_by_lasso(
    evidence: Evidence, candidates: Candidates, *, terms: DecodingTerms = STANDARD
) -> Decoding:
    """Shares above 0 at a falling price on each; then plain least squares on the words that were taken.

    (Erlingsson, Pihur, Korolova 2014.) Words that were not taken have share 0, p-value 1 and no
    error, and count among the candidates when the level is shared out. There may be more candidates than
    bits. The errors are those of the second step, as if the words had been chosen beforehand.
    """
    equations = Equations(evidence, candidates, evidence.sizes)
    taken = np.append(select(equations), equations.words)
    inverse = equations.inverse(taken)
    some = inverse @ equations.moment[taken]
    solution = np.zeros(equations.words + 1)
    solution[taken] = some
    freedom = max(1, int(np.count_nonzero(evidence.sizes)) - len(taken))
    residuals = evidence.shares - equations.design @ solution
    variance = float(evidence.sizes @ residuals**2) / freedom
    errors = np.full(equations.words + 1, np.nan)
    errors[taken] = np.sqrt(variance * np.diag(inverse))
    scores = np.full(equations.words + 1, -np.inf)
    scores[taken] = some / errors[taken]
    return Decoding.normal(
        "LASSO and least squares",
        candidates.words,
        solution[:-1],
        errors[:-1],
        unlisted=max(0.0, float(solution[-1])),
        reports=evidence.total,
        terms=terms,
        tests=scores[:-1],
    )


def select(equations: Equations) -> NDArray[np.intp]:
    """The words with a share above 0 at the last price, or at the last before too many have one."""
    gram, moment = equations.gram, equations.moment
    scale = np.append(np.ones(equations.words), 0.0)  # the unlisted are free, and may fall below 0
    lower = np.append(np.zeros(equations.words), -np.inf)
    b = np.zeros(len(scale))
    b[-1] = moment[-1] / gram[-1, -1]
    highest = max(float(np.max((moment - gram @ b)[:-1], initial=0.0)), 1e-300)
    most = min(_MOST, int(np.count_nonzero(equations.weights)) // 2)
    taken = np.zeros(0, np.intp)
    for price in np.geomspace(highest, _LOWEST * highest, _STEPS_LASSO):
        b = solve_bounded(gram, moment, price * scale, lower, b)
        now = np.flatnonzero(b[:-1] > 0)
        if len(now) > most:
            break
        taken = now
    return taken
