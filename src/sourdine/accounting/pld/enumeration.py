"""Losses with two or three values each, composed outcome by outcome: no lattice is sharper or quicker.

Such are randomized responses, noise on counts, and every mechanism known by its epsilon alone. How often each
value occurs says everything, so n uses of a loss with two values have n + 1 outcomes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.pld.scout import Repeated
from sourdine.core.distributions import AtomLaw, Floats, GeometricLaw, LossDistribution, pure_law
from sourdine.core.late import gammaln
from sourdine.core.loss import LeakyLaw

_MOST_OUTCOMES = 1 << 18
_FARTHEST = 600.0  # beyond, e^-loss is no longer a float
_ULP = 2.0**-52


@dataclass(frozen=True)
class Outcomes:
    """Losses in falling order, and sums of their masses under P and Q from the top, all off by `error`."""

    losses: Floats
    p: Floats
    q: Floats
    infinite: float
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
        profile: Floats = np.maximum(excess, 0.0) + self.infinite * (1 + error)
        return profile

    def _solve(self, delta: float, error: float) -> float:
        if delta < self.infinite * (1 + error):
            return math.inf
        past = int(np.argmax(np.append(self._profile(self.losses, error) > delta, True)))  # 1 at least
        gap = self.p[past - 1] * (1 + error) + self.infinite * (1 + error) - delta
        inside = math.log(gap / (self.q[past - 1] * (1 - error))) if gap > 0 else -math.inf
        low = float(self.losses[past]) if past < len(self.losses) else -math.inf
        return min(max(inside, low), float(self.losses[past - 1]))


def outcomes(laws: Sequence[Repeated]) -> Outcomes | None:
    """All outcomes of these losses together, or None where they have too many."""
    parts = []
    for item in laws:
        values = _values(item.law)
        if values is None:
            return None
        parts.append((*values, item.count, item.law.infinite))
    if math.prod(math.comb(count + len(p) - 1, count) for _, p, count, _ in parts) > _MOST_OUTCOMES:
        return None
    losses, logs, size, finite = np.zeros(1), np.zeros(1), 0.0, 0.0
    for each, masses, count, infinite in parts:
        times = _times(count, len(masses))
        ways = gammaln(count + 1) - gammaln(times + 1).sum(axis=1)
        losses = np.add.outer(losses, times @ each).ravel()
        logs = np.add.outer(logs, ways + times @ np.log(masses)).ravel()
        size += float(gammaln(count + 1)) + count * float(np.abs(np.log(masses)).max()) + 64
        finite += count * math.log1p(-infinite)
    if np.abs(losses).max() > _FARTHEST:
        return None
    order = np.argsort(-losses, kind="stable")
    losses, logs = losses[order], logs[order]
    error = 8 * _ULP * (size + len(losses) + float(np.abs(losses).max()))
    p, q = np.cumsum(np.exp(logs)), np.cumsum(np.exp(logs - losses))
    return Outcomes(losses, p, q, -math.expm1(finite), error)


def _values(law: LossDistribution) -> tuple[Floats, Floats] | None:
    """The values of a loss and their masses under P, if they are three at most."""
    if isinstance(law, GeometricLaw) and law.units == 1:
        law = pure_law(1 / law.scale)
    if isinstance(law, LeakyLaw):
        inner = _values(law.base)
        return None if inner is None else (inner[0], (1 - law.delta) * inner[1])
    if not isinstance(law, AtomLaw):
        return None
    losses, masses = law.atoms
    losses, p = losses[masses.p > 0], masses.p[masses.p > 0]
    return (losses, p) if 0 < len(losses) <= 3 else None


def _times(count: int, values: int) -> Floats:
    """Every way to share a count among one, two or three values."""
    if values == 1:
        return np.array([[float(count)]])
    first = np.arange(count + 1.0)
    if values == 2:
        return np.column_stack([first, count - first])
    one, two = (grid.ravel() for grid in np.meshgrid(first, first))
    fits = one + two <= count
    return np.column_stack([one[fits], two[fits], count - one[fits] - two[fits]])
