"""Weighted least squares: every bit counts by how sure it is. The decoder to begin with."""

import numpy as np

from sourdine.local.rappor.decode.candidates import Candidates
from sourdine.local.rappor.decode.decoding import STANDARD, Decoding, Terms
from sourdine.local.rappor.decode.evidence import Evidence
from sourdine.local.rappor.decode.linear import Equations, Floats, sandwich

_ROUNDS = 3


def decode_by_least_squares(
    evidence: Evidence, candidates: Candidates, *, terms: Terms = STANDARD
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
