"""A lower bound on epsilon from a single run: who of many was in, by a fair coin each, is guessed afterwards.

docs/guarantees/audit.md has the proof.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourdine.audit import binomial
from sourdine.core import check

_SHARES = (2, 4, 8, 16)  # a half of all are guessed, a quarter, ...: fixed before anything is seen
_OWNER = "a one-run audit"

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Guessed(NamedTuple):
    """The best of a few ways to guess: what epsilon is at least, and how many guesses were right."""

    epsilon: float
    right: int
    guesses: int


def epsilon_from_guesses(
    right: int, guesses: int, *, candidates: int, delta: float, confidence: float
) -> float:
    """What epsilon is at least, with the stated confidence, if so many guesses about candidates are right.

    Each candidate was in by a fair coin of its own. An (epsilon, delta)-private run lets at least `right` of
    `guesses` be right with a chance of at most P[Binomial(guesses, q) >= right] + candidates * delta / 2 for
    q = e^epsilon/(1 + e^epsilon) (Steinke, Nasr, Jagielski 2023, theorem 5.2, with a plainer last term).

    >>> round(epsilon_from_guesses(1000, 1000, candidates=1000, delta=0, confidence=0.95), 2)
    5.81
    >>> epsilon_from_guesses(500, 1000, candidates=1000, delta=0, confidence=0.95)
    0.0
    """
    candidates = check.integer(_OWNER, "candidates", candidates, 1, 1 << 40)
    guesses = check.integer(_OWNER, "guesses", guesses, 1, candidates)
    right = check.integer(_OWNER, "right", right, 0, guesses)
    if delta != 0:
        delta = float(check.inside(_OWNER, "delta", delta, 0, 1))
    beta = 1 - check.confidence(_OWNER, confidence) - candidates * delta / 2
    if beta <= 0:
        return 0.0  # delta alone may make all guesses right
    share = binomial.least(right, guesses, beta)
    if share >= 1.0:  # a float cannot be nearer to certainty
        share = float(np.nextafter(1.0, 0.0))
    return max(0.0, math.log(share) - math.log1p(-share)) if share > 0.5 else 0.0


def guess(scores: Floats, included: Flags, *, delta: float, confidence: float) -> Guessed:
    """Guess that the highest scores were in and the lowest out, for several numbers of guesses at once.

    Half of the candidates are guessed, a quarter, an eighth and a sixteenth. The confidence is shared among
    the four, so the best of them may be told. Scores that are not numbers count as the lowest.
    """
    order = np.argsort(-np.nan_to_num(scores, nan=-math.inf), kind="stable")
    each = 1 - (1 - check.confidence(_OWNER, confidence)) / len(_SHARES)
    guesses = []
    for share in _SHARES:
        half = max(1, len(order) // share // 2)
        right = int(included[order[:half]].sum() + (~included[order[-half:]]).sum())
        bound = epsilon_from_guesses(right, 2 * half, candidates=len(order), delta=delta, confidence=each)
        guesses.append(Guessed(bound, right, 2 * half))
    return max(guesses)


def farthest(candidates: int, *, delta: float, confidence: float) -> float:
    """What `guess` says if every guess is right: no audit with so many candidates goes beyond."""
    included = np.arange(candidates) < candidates // 2
    return guess(included.astype(float), included, delta=delta, confidence=confidence).epsilon
