"""Losses with two or three values each, composed outcome by outcome: no lattice is sharper or quicker.

Such are randomized responses, noise on counts, and every mechanism known by its epsilon alone. How often each
value occurs says everything, so n uses of a loss with two values have n + 1 outcomes. Those that hardly ever
come out are left out: Chernoff's bound on their mass is added to the upper end of delta
(docs/guarantees/pld.md).
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.scout import Repeated
from sourdine.core.distributions import AtomLaw, Floats, GeometricLaw, LossDistribution, pure_law
from sourdine.core.lazy import gammaln
from sourdine.core.loss import LeakyLaw

_MOST_OUTCOMES = 1 << 18
_FARTHEST = 600.0  # beyond, e^-loss is no longer a float
_LEAST = 700.0  # masses below e^-700 are left out: e^-745 is the smallest float
_ULP = 2.0**-52


@dataclass(frozen=True)
class Outcomes:
    """Losses in falling order, and sums of their masses under P and Q from the top, all off by `error`.

    `missing` bounds the mass under P of the outcomes that are left out. They count for it in the upper end of
    delta and for nothing in the lower one.
    """

    losses: Floats
    p: Floats
    q: Floats
    infinite: float
    missing: float
    error: float

    def epsilon(self, delta: float) -> Bracket:
        """The least epsilon at this delta."""
        ends = [self._solve(delta, sign * self.error) for sign in (-1, 1)]
        slack = 4 * _ULP * float(np.abs(self.losses).max()) + 1e-15
        return Bracket(max(0.0, ends[0] - slack), max(0.0, ends[1] + slack))

    def delta(self, epsilon: float) -> Bracket:
        """delta at this epsilon."""
        ends = [float(self._profile(np.array([epsilon]), sign * self.error)[0]) for sign in (-1, 1)]
        slack = 4 * _ULP * (1 + abs(epsilon))
        return Bracket(max(0.0, ends[0] * (1 - slack)), min(1.0, ends[1] * (1 + slack)))

    def _profile(self, epsilons: Floats, error: float) -> Floats:
        above = np.searchsorted(-self.losses, -epsilons, side="left")  # how many losses exceed it
        p, q = (np.concatenate([[0.0], sums])[above] for sums in (self.p, self.q))
        excess = p * (1 + error) - np.exp(np.minimum(epsilons, 700.0)) * q * (1 - error)
        profile: Floats = np.maximum(excess, 0.0) + self._always(error)
        return profile

    def _always(self, error: float) -> float:
        """What counts at every epsilon."""
        return self.infinite * (1 + error) + (self.missing if error > 0 else 0.0)

    def _solve(self, delta: float, error: float) -> float:
        always = self._always(error)
        if delta < always:
            return math.inf
        past = int(np.argmax(np.append(self._profile(self.losses, error) > delta, True)))  # 1 at least
        gap = self.p[past - 1] * (1 + error) + always - delta
        inside = math.log(gap / (self.q[past - 1] * (1 - error))) if gap > 0 else -math.inf
        low = float(self.losses[past]) if past < len(self.losses) else -math.inf
        return min(max(inside, low), float(self.losses[past - 1]))


def outcomes(laws: Sequence[Repeated], room: float) -> Outcomes | None:
    """The outcomes of these losses together, but for some of a mass under P of at most `room`.

    None where there are too many of them, or where the far ones weigh more than that.
    """
    parts = []
    for item in laws:
        values = _values(item.law)
        if values is None:
            return None
        parts.append((*values, item.count, item.law.infinite))
    share = room / (4 * sum(len(p) for _, p, _, _ in parts))
    windows = [_windows(p[1:] / p.sum(), count, share) for _, p, count, _ in parts]
    if math.prod(high - low + 1 for each in windows for low, high in each) > _MOST_OUTCOMES:
        return None
    losses, logs, size, finite = np.zeros(1), np.zeros(1), 0.0, 0.0
    for (each, masses, count, infinite), window in zip(parts, windows, strict=True):
        times = _times(count, window)
        ways = gammaln(count + 1) - gammaln(times + 1).sum(axis=1)
        losses = np.add.outer(losses, times @ each).ravel()
        logs = np.add.outer(logs, ways + times @ np.log(masses)).ravel()
        farthest = float(np.abs(np.log(masses)).max() + np.abs(each).max())
        size += float(gammaln(count + 1)) + count * farthest + 64
        finite += count * math.log1p(-infinite)
    far = (losses > _FARTHEST) | (logs < -_LEAST) | (logs - losses < -_LEAST)
    error = 8 * _ULP * (size + len(losses))
    beyond = float(np.exp(logs[far]).sum()) * (1 + error) + len(losses) * math.exp(-_LEAST)
    if 2 * beyond > room or far.all():
        return None
    losses, logs = losses[~far], logs[~far]
    order = np.argsort(-losses, kind="stable")
    losses, logs = losses[order], logs[order]
    p, q = np.cumsum(np.exp(logs)), np.cumsum(np.exp(logs - losses))
    return Outcomes(losses, p, q, -math.expm1(finite), room, error)


def _values(law: LossDistribution) -> tuple[Floats, Floats] | None:
    """The values of a loss and their masses under P, the likeliest first, if they are three at most."""
    if isinstance(law, GeometricLaw) and law.units == 1:
        law = pure_law(1 / law.scale)
    if isinstance(law, LeakyLaw):
        inner = _values(law.base)
        return None if inner is None else (inner[0], (1 - law.delta) * inner[1])
    if not isinstance(law, AtomLaw):
        return None
    losses, masses = law.atoms
    losses, p = losses[masses.p > 0], masses.p[masses.p > 0]
    likeliest = np.argsort(-p, kind="stable")
    return (losses[likeliest], p[likeliest]) if 0 < len(losses) <= 3 else None


def _windows(chances: Floats, count: int, share: float) -> list[tuple[int, int]]:
    """For each value but the likeliest how often it occurs, but with a chance of twice `share` at most.

    The number of times is binomial: P[K >= k] and P[K <= k] are at most e^{-n D(k/n || p)} on their side of
    the mean (Hoeffding 1963, theorem 1), D the divergence of two coins, which grows on either side.
    """
    windows = []
    for chance in map(float, chances):
        usual = count * chance
        low = _last(partial(_rare, count, chance, share), math.floor(usual), 0)
        windows.append((low, _last(partial(_rare, count, chance, share), math.ceil(usual), count)))
    return windows


def _rare(count: int, chance: float, share: float, times: int) -> bool:
    """Whether a value surely occurs as far from its mean with no more than a chance.

    What floats may err in the exponent is taken off. No chance here is above a half: neither logarithm loses
    more than some last digits.
    """
    if times in (0, count):
        return False
    part = times / count
    terms = (part * math.log(part / chance), (1 - part) * (math.log1p(-part) - math.log1p(-chance)))
    exponent = sum(terms) - 16 * _ULP * (1 + sum(map(abs, terms)))
    return -count * exponent <= math.log(share)


def _last(rare: Callable[[int], bool], start: int, end: int) -> int:
    """The number of times nearest to the end that is not known to be rare, from a usual one."""
    step = 1 if end > start else -1
    beyond = bisect_left(range(abs(end - start) + 1), 1, key=lambda by: rare(start + step * by))
    return start + step * min(beyond, abs(end - start))


def _times(count: int, windows: list[tuple[int, int]]) -> Floats:
    """Every way to share a count among one, two or three values; all but the first have a window."""
    spans = [np.arange(low, high + 1.0) for low, high in windows]
    others = np.array(np.meshgrid(*spans)).reshape(len(spans), -1).T if spans else np.zeros((1, 0))
    first = count - others.sum(axis=1)
    times: Floats = np.column_stack([first, others])[first >= 0]
    return times
