"""Weighted least squares with no share below 0, and errors by resampling."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.local.rappor.decode.bounded import solve_bounded
from sourdine.local.rappor.decode.candidates import Candidates
from sourdine.local.rappor.decode.decoding import STANDARD, Decoding, Terms
from sourdine.local.rappor.decode.evidence import Evidence
from sourdine.local.rappor.decode.least_squares import solve_weighted
from sourdine.local.rappor.decode.linear import Floats


def decode_nonnegative(
    evidence: Evidence,
    candidates: Candidates,
    *,
    terms: Terms = STANDARD,
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
    found = Decoding.normal(
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
    return replace(found, lower=ends[0], upper=ends[1])


def _normals(count: int, bits: Bits) -> Floats:
    """Normal numbers for resampling; nothing private hangs on their last digits."""
    words: NDArray[np.uint64] = bits.words(count)
    return np.asarray(ndtri(((words >> np.uint64(12)) + 0.5) * 2.0**-52))
