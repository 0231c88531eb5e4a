"""Several losses as one that can be compared or grouped further: all of them together, or the worst.

`worst` is the law that dominates several, for when nobody knows which one applies.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from sourdine.accounting.accountant import exactly, same_relation
from sourdine.core import check
from sourdine.core.composed import ComposedDistribution
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats, LossDistribution, Pair
from sourdine.core.loss import PrivacyLoss


@dataclass(frozen=True)
class Worst(LossDistribution):
    """The law whose profile is the largest of several, at each epsilon.

    A maximum of profiles is convex in e^epsilon, hence a profile. Its survival functions at a loss are those
    of the law that is largest there, and of the one with the least slope where several are.
    """

    laws: tuple[LossDistribution, ...]

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return min(law.lowest for law in self.laws)

    @property
    def highest(self) -> float:  # type: ignore[override]
        return max(law.highest for law in self.laws)

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return max(law.infinite for law in self.laws)

    def profile(self, epsilon: ArrayLike) -> Floats:
        largest: Floats = np.max([law.profile(epsilon) for law in self.laws], axis=0)
        return largest

    def survival(self, loss: ArrayLike) -> Pair:
        return self._chosen(loss, [law.survival(loss) for law in self.laws])

    def cumulative(self, loss: ArrayLike) -> Pair:
        """What survival leaves: the pieces differ in what Q has at minus infinity, and must fit together."""
        above, whole = self.survival(loss), self.survival(-np.inf)
        return Pair(np.maximum(whole.p - above.p, 0.0), np.maximum(whole.q - above.q, 0.0))

    def _chosen(self, loss: ArrayLike, pairs: list[Pair]) -> Pair:
        profiles = np.array([law.profile(loss) for law in self.laws])
        slopes = np.array([law.survival(loss).q for law in self.laws])
        best = np.argmin(np.where(profiles == profiles.max(axis=0), slopes, np.inf), axis=0)
        p, q = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
        return Pair(*(np.take_along_axis(all_, best[None], axis=0)[0] for all_ in (p, q)))


def worst(laws: Sequence[LossDistribution]) -> LossDistribution:
    """The worst of several laws: the law itself where they are one."""
    different = unlike(laws)
    return different[0] if len(different) == 1 else Worst(tuple(different))


def unlike(laws: Sequence[LossDistribution]) -> list[LossDistribution]:
    """The laws without repetition, in order."""
    distinct: list[LossDistribution] = []
    for law in laws:
        if law not in distinct:
            distinct.append(law)
    return distinct


def either_order(loss: PrivacyLoss) -> PrivacyLoss:
    """A loss whose directions may be composed with those of others.

    When a unit is replaced, nobody knows which of the two records comes first: one mechanism may see the pair
    in one order and the next in the other. So both directions get the worst of both.
    """
    if loss.neighbours is not Neighbours.REPLACE or loss.remove is loss.add:
        return loss
    law = worst([loss.remove, loss.add])
    return replace(loss, remove=law, add=law)


def together(parts: Sequence[tuple[PrivacyLoss, int]]) -> PrivacyLoss:
    """The loss of several mechanisms on the same data, each used so many times, as one loss.

    >>> from fractions import Fraction
    >>> together([(PrivacyLoss.pure(Fraction(1, 3)), 2), (PrivacyLoss.pure(Fraction(1, 4)), 1)]).epsilon
    Fraction(11, 12)
    """
    if not parts:
        raise check.fail("together", "parts", "hold at least one loss", list(parts))
    parts = [(loss, check.integer("together", "count", count, 1, 2**62)) for loss, count in parts]
    relation = reduce(same_relation, [loss.neighbours for loss, _ in parts])
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    parts = [(either_order(loss), count) for loss, count in parts]
    remove = ComposedDistribution(tuple((loss.remove, count) for loss, count in parts))
    symmetric = all(loss.remove is loss.add for loss, _ in parts)
    return PrivacyLoss(
        remove=remove,
        add=remove if symmetric else ComposedDistribution(tuple((loss.add, count) for loss, count in parts)),
        neighbours=relation,
        epsilon=sum(exactly(loss.epsilon) * count for loss, count in parts),
        rho=sum(exactly(loss.rho) * count for loss, count in parts),
        delta=min(1, sum(exactly(loss.delta) * count for loss, count in parts)),
    )


def points(law: LossDistribution, top: float, count: int) -> Floats:
    """Losses up to a top: dense where the mass lies, and near the top, where high orders look; 0 is one."""
    low = law.lowest
    if not math.isfinite(low):
        steps = np.geomspace(1e-9, 1e9, 400)
        low = -float(steps[int(np.argmax(law.cumulative(-steps).p <= 1e-18))])
    low = min(low, top - 1e-9)
    spread = _spread(law, low, top)
    ends = np.arcsinh(np.array([low, top]) / spread)
    middle = spread * np.sinh(np.linspace(ends[0], ends[1], count))
    near = top - np.geomspace(1e-9, 1.0, count) * (top - low)
    losses = np.unique(np.concatenate([[low, top], [0.0] * (low < 0 < top), middle, near]))
    losses = losses[(losses >= low) & (losses <= top)]
    gaps = np.diff(losses) > 1e-13 * (top - low)
    gaps[losses[:-1] == 0] = True
    gaps[-1] = True  # the top stays, however near the last point is: a law may have an atom there
    nodes: Floats = losses[np.concatenate([[True], gaps])]
    return nodes


def _spread(law: LossDistribution, low: float, top: float) -> float:
    """About how far from 0 half of the mass lies."""
    sizes = np.geomspace(1e-12, 1.0, 400) * max(abs(low), abs(top))
    outside = law.survival(sizes).p + law.cumulative(-sizes).p
    return float(sizes[int(np.argmax(outside <= 0.5))])
