"""Lower bounds on epsilon from a single run: who of many was in, by a fair coin each, is guessed afterwards.

docs/guarantees/audit_one_run.md has the proofs.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit import binomial
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import ndtr, ndtri
from sourdine.core.loss import PrivacyLoss

# One of so many candidates is guessed, fixed before anything is seen. The best number of guesses falls as
# epsilon falls: 1 in 2 for mu = 4, 1 in 32 for mu = 1 (docs/guarantees/audit_one_run.md, the choice). Each
# number costs its share of the alarm, so that few are tried.
SHARES = (2, 5, 12, 32)
_OWNER = "a one-run audit"
_LARGEST = 64.0  # a level of privacy loss above which nothing is looked for, in mu or epsilon
_CLOSE = 1e-6  # of a level: what a search leaves open, relative above 1

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


class TradeOff(Protocol):
    """A bound on all tests between neighbours: 1 - f, for a trade-off function f in both directions."""

    def false_positives(self, true_positives: float, /) -> float:
        """Return the least rate of false positives at a rate of true positives, or less."""


@dataclass(frozen=True)
class GaussianTradeOff:
    """The trade-off of N(0, 1) and N(mu, 1).

    >>> round(GaussianTradeOff(1.0).false_positives(0.5), 4)  # Phi(-1)
    0.1587
    """

    mu: float

    def false_positives(self, true_positives: float, /) -> float:
        return float(ndtr(ndtri(min(true_positives, 1.0)) - self.mu))


@dataclass(frozen=True)
class ApproximateTradeOff:
    """The trade-off that (epsilon, delta)-differential privacy allows.

    >>> round(ApproximateTradeOff(math.log(3), 0.0).false_positives(0.75), 4)  # randomized response
    0.25
    """

    epsilon: float
    delta: float

    def false_positives(self, true_positives: float, /) -> float:
        # P <= e^epsilon Q + delta, and 1 - Q <= e^epsilon (1 - P) + delta
        below = (true_positives - self.delta) * math.exp(-self.epsilon)
        above = 1 - self.delta - math.exp(self.epsilon) * (1 - true_positives)
        return max(0.0, below, above)


class ProfileTradeOff:
    """The trade-off that points of a privacy profile allow: the larger delta of both directions at epsilons.

    Every point bounds false positives from below by two lines, as `ApproximateTradeOff` does, and the
    highest line counts. Few points, or deltas from above, allow more than the profile itself.

    >>> curve = ProfileTradeOff([0.0, math.log(3)], [0.5, 0.0])
    >>> round(curve.false_positives(0.75), 4), curve.false_positives(0.0)
    (0.25, 0.0)
    """

    def __init__(self, epsilons: Sequence[float], deltas: Sequence[float]) -> None:
        lines = [(0.0, 0.0)]
        for epsilon, delta in zip(epsilons, deltas, strict=True):
            lines.append((math.exp(-epsilon), -delta * math.exp(-epsilon)))
            lines.append((math.exp(epsilon), 1 - delta - math.exp(epsilon)))
        # the highest of lines, from left to right: their slopes rise, and each is the highest from a start on
        self._lines: list[tuple[float, float]] = []
        self._starts: list[float] = []
        for slope, level in sorted(lines):
            start = 0.0
            while self._lines:
                before_slope, before_level = self._lines[-1]
                if slope > before_slope:
                    start = (before_level - level) / (slope - before_slope)
                    if start > self._starts[-1]:
                        break
                elif level <= before_level:
                    start = math.inf
                    break
                self._lines.pop()
                self._starts.pop()
                start = 0.0
            if start < math.inf:
                self._lines.append((slope, level))
                self._starts.append(start)

    def false_positives(self, true_positives: float, /) -> float:
        slope, level = self._lines[max(0, bisect_right(self._starts, true_positives) - 1)]
        return max(0.0, slope * true_positives + level)


def refutes(curve: TradeOff, right: int, guesses: int, *, candidates: int, alarm: float) -> bool:
    """Decide if at least `right` of `guesses` are right with a chance below the alarm under a trade-off.

    This is the bound of Mahloujifar, Melis, Chaudhuri (2025), in terms of the chances n_i of at
    least i right guesses. With c_i the sum of n_j over j > i, a trade-off asks for
    n_(i-1) >= (m Q((i - 1) n_i + c_(i-1))/m) + c_(i-1))/(k - i + 1), where Q turns true into false positives.
    The least chances that obey, from n_right = alarm down, would have to end with n_0 <= 1.
    """
    tail, beyond = alarm, 0.0  # n_i, and the sum of n_j over j > i
    for fewer in range(right - 1, -1, -1):
        beyond += tail
        wrong = candidates * curve.false_positives((fewer * tail + beyond) / candidates)
        needed = (wrong + beyond) / (guesses - fewer)
        if needed <= tail:  # and so it stays: the next question asks for the same true positives
            return False
        tail = needed
        if tail > 1:
            return True
    return False


def tail_bound(curve: TradeOff, right: int, guesses: int, *, candidates: int) -> float:
    """Return the largest chance, to a ten-thousandth of itself, that `refutes` leaves for so many right."""
    low, high = math.log(1e-300), 0.0
    if not refutes(curve, right, guesses, candidates=candidates, alarm=1.0):
        return 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        if refutes(curve, right, guesses, candidates=candidates, alarm=math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def largest_refuted(
    curve_at: Callable[[float], TradeOff], right: int, guesses: int, *, candidates: int, alarm: float
) -> float:
    """Return the highest level of privacy loss that is refuted, of trade-offs that allow more as it rises."""
    if 2 * right <= guesses:  # as by coins
        return 0.0

    def refuted(level: float) -> bool:
        return refutes(curve_at(level), right, guesses, candidates=candidates, alarm=alarm)

    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            return low
    while high - low > _CLOSE * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def epsilon_from_guesses(
    right: int, guesses: int, *, candidates: int, delta: float, confidence: float
) -> float:
    """Bound epsilon of (epsilon, delta)-differential privacy from below by right guesses about candidates.

    Each candidate was in by a fair coin of its own. Two bounds on the chance of so many right guesses are
    proven, and the smaller counts: P[Binomial(guesses, q) >= right] + candidates * delta / 2 for
    q = e^epsilon/(1 + e^epsilon) (Steinke, Nasr, Jagielski 2023, theorem 5.2, with a plainer last term), and
    that of `refutes`, which does not go blind with many candidates.

    >>> round(epsilon_from_guesses(1000, 1000, candidates=1000, delta=0, confidence=0.95), 2)
    5.81
    >>> epsilon_from_guesses(500, 1000, candidates=1000, delta=0, confidence=0.95)
    0.0
    >>> round(epsilon_from_guesses(1742, 2000, candidates=4000, delta=1e-5, confidence=0.95), 2)
    1.79
    """
    candidates, guesses, right = _counts(candidates, guesses, right)
    if delta != 0:
        delta = float(check.inside(_OWNER, "delta", delta, 0, 1))
    alarm = 1 - check.confidence(_OWNER, confidence)
    by_tail = largest_refuted(
        lambda epsilon: ApproximateTradeOff(epsilon, delta),
        right,
        guesses,
        candidates=candidates,
        alarm=float(alarm),
    )
    beta = float(alarm) - candidates * delta / 2
    if beta <= 0:
        return by_tail  # delta alone may make all guesses right
    share = binomial.least(right, guesses, beta)
    if share >= 1.0:  # a float cannot be nearer to certainty
        share = float(np.nextafter(1.0, 0.0))
    return max(by_tail, math.log(share) - math.log1p(-share)) if share > 0.5 else by_tail


def mu_from_guesses(right: int, guesses: int, *, candidates: int, confidence: float) -> float:
    """Bound mu of Gaussian differential privacy from below by right guesses about candidates.

    >>> round(mu_from_guesses(1742, 2000, candidates=4000, confidence=0.95), 2)
    0.71
    """
    candidates, guesses, right = _counts(candidates, guesses, right)
    alarm = float(1 - check.confidence(_OWNER, confidence))
    return largest_refuted(GaussianTradeOff, right, guesses, candidates=candidates, alarm=alarm)


class Hypothesis(StrEnum):
    """Guarantees that right guesses can refute: mu-GDP, or (epsilon, delta)-differential privacy."""

    GAUSSIAN = "gaussian"
    APPROXIMATE = "approximate"


class Guesses(NamedTuple):
    """Right guesses about the candidates with the highest and the lowest scores."""

    right: int
    guesses: int


class OneRunBound(NamedTuple):
    """A lower bound on epsilon from one run, and the guesses that show it."""

    epsilon: float
    right: int
    guesses: int


def bound_from_scores(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    hypothesis: Hypothesis | str = Hypothesis.GAUSSIAN,
) -> OneRunBound:
    """Bound epsilon of a run by scores of candidates that were each in by a fair coin of its own.

    The highest scores are guessed in and as many of the lowest out, for four numbers of guesses that are
    fixed beforehand and share the alarm evenly.

    Args:
        scores: One for each candidate, the higher the likelier that it was in. Computed from what the run
            released, without the coins; what is not a number counts as the lowest.
        included: The coins.
        delta: At which epsilon is stated; above 0 for `gaussian`.
        confidence: The chance that the bound holds, at least.
        hypothesis: With "gaussian", every mu-GDP guarantee of a lower epsilon at this delta is refuted; with
            "approximate" every (epsilon, delta), which shows less.

    Privacy:
        The result depends on the coins of the candidates and on the scores. Where candidates are made up for
        the audit, it is post-processing of the run (docs/guarantees/audit_one_run.md).

    >>> included = np.arange(2000) % 2 == 0
    >>> found = bound_from_scores(np.where(included, 1.0, -1.0), included, delta=1e-5)
    >>> round(found.epsilon, 2), found.right, found.guesses
    (9.22, 1000, 1000)
    """
    kind = _hypothesis(hypothesis)
    alarm = float(1 - check.confidence(_OWNER, confidence))
    values, flags = np.asarray(scores, float), np.asarray(included, bool)
    if values.ndim != 1 or values.shape != flags.shape or len(values) < 2:
        raise InvalidParameter(
            "A one-run audit needs a list of scores and as many coins, two at least. Give one score and one "
            "coin for each candidate."
        )
    delta = _read_delta(kind, delta)
    return _best(kind, guess(values, flags), candidates=len(flags), delta=delta, alarm=alarm)


def largest_bound(
    candidates: int,
    *,
    delta: float,
    confidence: float = 0.95,
    hypothesis: Hypothesis | str = Hypothesis.GAUSSIAN,
) -> float:
    """Return the bound that `bound_from_scores` shows if every guess is right: no audit shows more.

    >>> round(largest_bound(2000, delta=1e-5), 2), round(largest_bound(20_000, delta=1e-5), 2)
    (9.22, 12.5)
    """
    candidates = check.integer(_OWNER, "candidates", candidates, 2, 1 << 40)
    kind = _hypothesis(hypothesis)
    delta = _read_delta(kind, delta)
    alarm = float(1 - check.confidence(_OWNER, confidence))
    found = [Guesses(count, count) for count in numbers_of_guesses(candidates)]
    return _best(kind, found, candidates=candidates, delta=delta, alarm=alarm).epsilon


def guess(scores: Floats, included: Flags) -> list[Guesses]:
    """Guess that the highest scores were in and the lowest out, for each of the numbers of guesses."""
    order = np.argsort(-np.nan_to_num(scores, nan=-math.inf), kind="stable")
    guesses = []
    for count in numbers_of_guesses(len(order)):
        half = count // 2
        right = int(included[order[:half]].sum() + (~included[order[-half:]]).sum())
        guesses.append(Guesses(right, count))
    return guesses


def numbers_of_guesses(candidates: int) -> list[int]:
    """Return how many guesses are made about so many candidates: even numbers, fixed by nothing else."""
    return [2 * max(1, candidates // share // 2) for share in SHARES]


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return epsilon of mu-GDP at a delta, from below.

    >>> round(epsilon_of_mu(1.0, 1e-5), 3)
    4.377
    """
    from sourdine.accounting.pld.accountant import PLD

    if mu <= 0:
        return 0.0
    loss = PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=Neighbours.ADD_REMOVE)
    return PLD().epsilon(PLD().lift(loss), delta).lower


def _best(
    kind: Hypothesis, found: Sequence[Guesses], *, candidates: int, delta: float, alarm: float
) -> OneRunBound:
    """Return the highest of the bounds of several numbers of guesses, which share the alarm."""
    each_sure = 1 - alarm / len(SHARES)
    if kind is Hypothesis.APPROXIMATE:
        level, best = max(
            (epsilon_from_guesses(*one, candidates=candidates, delta=delta, confidence=each_sure), one)
            for one in found
        )
        return OneRunBound(level, *best)
    level, best = max(
        (mu_from_guesses(*one, candidates=candidates, confidence=each_sure), one) for one in found
    )
    return OneRunBound(epsilon_of_mu(level, delta), *best)


def _counts(candidates: int, guesses: int, right: int) -> tuple[int, int, int]:
    candidates = check.integer(_OWNER, "candidates", candidates, 1, 1 << 40)
    guesses = check.integer(_OWNER, "guesses", guesses, 1, candidates)
    return candidates, guesses, check.integer(_OWNER, "right", right, 0, guesses)


def _hypothesis(hypothesis: Hypothesis | str) -> Hypothesis:
    try:
        return Hypothesis(hypothesis)
    except ValueError:
        raise check.fail(_OWNER, "hypothesis", f"be one of {', '.join(Hypothesis)}", hypothesis) from None


def _read_delta(kind: Hypothesis, delta: float) -> float:
    if delta == 0 and kind is not Hypothesis.GAUSSIAN:  # Gaussian noise has no epsilon at 0
        return 0.0
    return float(check.inside(_OWNER, "delta", delta, 0, 1))
