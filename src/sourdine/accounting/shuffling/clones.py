"""The shuffle model: local reports whose senders are forgotten protect more than they do alone."""

import math

import numpy as np

from sourdine.accounting.accountant import check_delta, with_margin
from sourdine.core import check
from sourdine.core.distributions import Floats, float_above
from sourdine.core.lazy import betainc, gammaln

MARGIN = 1e-9  # of the special functions, relative; they are good to 1e-12
MOST_EPSILON = 50  # beyond, no number of reports has a clone among them
_MOST_REPORTS = 1 << 34
_RANGES = 4000


def shuffle_model(epsilon: float, reports: int, delta: float) -> float:
    """The epsilon of shuffled reports, each epsilon-DP on its own, for one replaced report.

    Each other report is, with probability e^-epsilon, a clone of either version of the changed one. With C
    binomial(n - 1, e^-epsilon), A binomial(C, 1/2) and D a coin of e^epsilon/(1 + e^epsilon), it is enough to
    tell (A + D, C - A + 1 - D) from (A + 1 - D, C - A + D) (Feldman, McMillan, Talwar 2021).
    That pair's profile is summed and rounded up. The answer is never above `shuffle_model_bound`.

    >>> round(shuffle_model(4, 1_000_000, 1e-6), 4)
    0.0493
    """
    local, count, delta = declared("shuffle_model", epsilon, reports, delta)
    if local > MOST_EPSILON or delta == 0:
        return local
    clones, weights, left_out = _clones(count - 1, math.exp(-local), delta)
    low, high = 0.0, shuffle_model_bound(epsilon, reports, delta)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if _profile(middle, local, clones, weights) + left_out <= delta:
            high = middle
        else:
            low = middle
    return high


def shuffle_model_bound(epsilon: float, reports: int, delta: float) -> float:
    """The same in closed form: log(1 + (w-1)/(w+1) (8 sqrt(w log(4/delta)/n) + 8 w/n)) with w = e^epsilon.

    It holds for epsilon <= log(n/(16 log(4/delta))) (Feldman, McMillan, Talwar 2021); above, and
    where it says more than the reports alone, the answer is their own epsilon.

    >>> round(shuffle_model_bound(4, 1_000_000, 1e-6), 4)
    0.201
    """
    local, count, delta = declared("shuffle_model_bound", epsilon, reports, delta)
    if delta == 0 or local > math.log(count / (16 * math.log(4 / delta))):
        return local
    odds = math.exp(local)
    inner = 8 * math.sqrt(odds * math.log(4 / delta) / count) + 8 * odds / count
    return min(local, with_margin(math.log1p(math.tanh(local / 2) * inner)))


def declared(owner: str, epsilon: float, reports: int, delta: float) -> tuple[float, int, float]:
    """The epsilon of a report, how many there are, and delta, as each is used; an epsilon is rounded up."""
    local = float_above(check.positive(owner, "epsilon", epsilon))
    return local, check.integer(owner, "reports", reports, 1, _MOST_REPORTS), check_delta(owner, delta)


def _clones(others: int, share: float, delta: float) -> tuple[Floats, Floats, float]:
    """Numbers of clones that matter, their probabilities, and at most how much is left out.

    Further clones are post-processing: they only ever hide more. So a range of numbers counts as its least.
    """
    mean = others * share
    need = math.log(4e4 / delta)
    reach = math.sqrt(2 * mean * need) + need  # by Chernoff's bounds less than e^-need lies beyond, each side
    low, high = max(0, math.floor(mean - reach)), min(others, math.ceil(mean + reach))
    clones = np.arange(low, high + 1, dtype=float)
    weights = np.exp(log_binomial(clones, others, share)) * (1 + MARGIN)
    first = np.arange(0, len(clones), max(1, len(clones) // _RANGES))
    return clones[first], np.add.reduceat(weights, first), 2 * math.exp(-need)


def _profile(epsilon: float, local: float, clones: Floats, weights: Floats) -> float:
    """At least the delta of the pair above, but for what was left out.

    Given c clones, the first count x has the mass p b(x-1) + (1-p) b(x) or (1-p) b(x-1) + p b(x), where b is
    binomial(c, 1/2), and b(x-1)/b(x) = x/(c + 1 - x). So their ratio exceeds e^epsilon from one x on, and the
    sum from there is b(x-1) (p - e^epsilon (1-p)) - (e^epsilon - 1) P[binomial >= x].
    """
    p, less = 1 / (1 + math.exp(-local)), 1 / (1 + math.exp(local))
    odds = math.exp(epsilon)
    if odds * less >= p:
        return 0.0
    x = np.floor((clones + 1) * (odds * p - less) / ((p - less) * (1 + odds))) + 1
    x = np.minimum(x, clones + 1)
    before = np.exp(log_binomial(x - 1, clones, 0.5)) * (1 + MARGIN)
    tail = np.where(x <= clones, betainc(x, np.maximum(clones - x + 1, 1.0), 0.5), 0.0) * (1 - MARGIN)
    each = before * (p - odds * less) - math.expm1(epsilon) * tail
    return float((weights * np.maximum(each, 0.0)).sum()) * (1 + MARGIN)


def log_binomial(k: Floats, n: Floats | int, share: float) -> Floats:
    """log of C(n, k) share^k (1-share)^(n-k), by the saddle point (Loader 2000), which cancels no digits."""
    n = np.asarray(n, float)
    rest = n - k
    tails = _stirling(n) - _stirling(k) - _stirling(rest)
    deviance = _deviance(k, n * share) + _deviance(rest, n * (1 - share))
    inside = (k > 0) & (rest > 0)
    scale = 0.5 * np.log(np.maximum(n, 1) / (2 * np.pi * np.where(inside, k * rest, 1)))
    ends = np.where(k == 0, n * np.log1p(-share), n * np.log(share))
    return np.where(inside, scale + tails - deviance, ends)


def _deviance(k: Floats, mean: Floats) -> Floats:
    """k log(k/mean) + mean - k for k >= 1, without loss where k is near the mean."""
    k, mean = np.maximum(k, 1.0), np.maximum(mean, 1e-300)
    v = (k - mean) / (k + mean)
    near = (k - mean) * v + 2 * k * v**3 * (1 / 3 + v**2 / 5 + v**4 / 7 + v**6 / 9 + v**8 / 11)
    return np.where(np.abs(v) < 0.03, near, k * np.log(k / mean) + mean - k)


def _stirling(k: Floats) -> Floats:
    """log k! - log(sqrt(2 pi k) (k/e)^k)."""
    safe = np.maximum(k, 1.0)
    exact = gammaln(safe + 1) - (safe + 0.5) * np.log(safe) + safe - 0.5 * np.log(2 * np.pi)
    square = safe * safe
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / safe
    correction: Floats = np.where(safe < 16, exact, series)
    return correction
