"""LASSO to select words, then least squares on those: the decoder of the source."""

import numpy as np
from numpy.typing import NDArray

from sourdine.local.rappor.decode.bounded import solve_bounded
from sourdine.local.rappor.decode.candidates import Candidates
from sourdine.local.rappor.decode.decoding import STANDARD, Decoding, Terms
from sourdine.local.rappor.decode.evidence import Evidence
from sourdine.local.rappor.decode.linear import Equations

_STEPS = 30
_LOWEST = 1e-3  # the last price, by the first at which no word is worth it
_MOST = 500


def decode_by_lasso(evidence: Evidence, candidates: Candidates, *, terms: Terms = STANDARD) -> Decoding:
    """Shares above 0 at a falling price on each; then plain least squares on the words that were taken.

    (Erlingsson, Pihur, Korolova 2014, section 4.) Words that were not taken have share 0, p-value 1 and no
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
    for price in np.geomspace(highest, _LOWEST * highest, _STEPS):
        b = solve_bounded(gram, moment, price * scale, lower, b)
        now = np.flatnonzero(b[:-1] > 0)
        if len(now) > most:
            break
        taken = now
    return taken
