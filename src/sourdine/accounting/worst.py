"""The worst of several laws, when nobody knows which one applies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sourdine.core.distance import Neighbours
from sourdine.core.laws import Floats, Law, Pair
from sourdine.core.loss import Loss


@dataclass(frozen=True)
class Worst(Law):
    """The law whose profile is the largest of several, at each epsilon.

    A maximum of profiles is convex in e^epsilon, hence a profile. Its survival functions at a loss are those
    of the law that is largest there, and of the one with the least slope where several are.
    """

    laws: tuple[Law, ...]

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


def worst(laws: Sequence[Law]) -> Law:
    """The worst of several laws: the law itself where they are one."""
    different = unlike(laws)
    return different[0] if len(different) == 1 else Worst(tuple(different))


def unlike(laws: Sequence[Law]) -> list[Law]:
    """The laws without repetition, in order."""
    found: list[Law] = []
    for law in laws:
        if law not in found:
            found.append(law)
    return found


def either_order(loss: Loss) -> Loss:
    """A loss whose directions may be composed with those of others.

    When a unit is replaced, nobody knows which of the two records comes first: one mechanism may see the pair
    in one order and the next in the other. So both directions get the worst of both.
    """
    if loss.neighbours is not Neighbours.REPLACE or loss.remove is loss.add:
        return loss
    law = worst([loss.remove, loss.add])
    return replace(loss, remove=law, add=law)
