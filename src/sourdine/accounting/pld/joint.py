"""The law of several independent losses together, as one law that can be compared or grouped further.

For the epsilon of a whole plan the accountant PLD is sharper: it looks at one delta. Here the sum must be
right at every delta at once, so it is kept untilted, on a lattice whose step is a power of two, by
convolutions of positive numbers: each mass has all its digits, however small. `worst` is the law that
dominates several, for when nobody knows which one applies.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.accountant import exactly, same_relation
from sourdine.accounting.pld.discretisation import above
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import AtomLaw, Floats, LossDistribution, Pair
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


_PLACES = 1 << 12
_TOP = 1e-30  # mass that may be moved to infinity
_BOTTOM = 1e-20  # mass that may be moved up
_ULP = 2.0**-52


@dataclass(frozen=True)
class Together(LossDistribution):
    """Independent losses, each paid so many times; its profile is nowhere below the true one.

    >>> from sourdine.core.distributions import GaussianLaw
    >>> four = Together(((GaussianLaw(0.5), 4),))
    >>> bool(0 <= four.profile(1.0) - GaussianLaw(1.0).profile(1.0) < 1e-5)
    True
    """

    parts: tuple[tuple[LossDistribution, int], ...]

    @cached_property
    def _sum(self) -> AtomLaw:
        lattices = [_power(_on_lattice(law), count) for law, count in self.parts]
        total = lattices[0]
        for other in lattices[1:]:
            total = _join(total, other)
        losses = (total.start + np.arange(len(total.masses))) * 2.0**total.scale
        logs = np.log(np.maximum(total.masses, 1e-300)) - losses  # e^-loss alone may be no float
        q = np.exp(np.minimum(logs, 0.0)) * (1 - 8 * _ULP * (700 + np.abs(losses)))
        q = np.where(total.masses > 1e-300, np.maximum(q, 0.0), 0.0)
        return AtomLaw(losses, total.masses, q, total.infinite)

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return self._sum.lowest

    @property
    def highest(self) -> float:  # type: ignore[override]
        return self._sum.highest

    @property
    def infinite(self) -> float:  # type: ignore[override]
        return self._sum.infinite

    def survival(self, loss: ArrayLike) -> Pair:
        return self._sum.survival(loss)

    def cumulative(self, loss: ArrayLike) -> Pair:
        return self._sum.cumulative(loss)


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
    remove = Together(tuple((loss.remove, count) for loss, count in parts))
    symmetric = all(loss.remove is loss.add for loss, _ in parts)
    return PrivacyLoss(
        remove=remove,
        add=remove if symmetric else Together(tuple((loss.add, count) for loss, count in parts)),
        neighbours=relation,
        epsilon=sum(exactly(loss.epsilon) * count for loss, count in parts),
        rho=sum(exactly(loss.rho) * count for loss, count in parts),
        delta=min(1, sum(exactly(loss.delta) * count for loss, count in parts)),
    )


@dataclass(frozen=True)
class _Lattice:
    """Masses under P at the losses (start + i) 2^scale, and at infinity."""

    scale: int
    start: int
    masses: Floats
    infinite: float


def _on_lattice(law: LossDistribution) -> _Lattice:
    low, high = law.lowest, law.highest
    if not math.isfinite(high):
        high = _first(lambda loss: law.survival(loss).p - law.infinite <= _TOP)
    if not math.isfinite(low):
        low = -_first(lambda loss: law.cumulative(-loss).p <= _BOTTOM)
    scale = math.ceil(math.log2(max((high - low) / _PLACES, 2.0**-60)))
    start, end = math.floor(low / 2.0**scale) - 1, math.ceil(high / 2.0**scale) + 1
    masses, infinite = above(law, np.arange(start, end + 1).astype(float) * 2.0**scale)
    return _trim(_Lattice(scale, start, masses, infinite))


def _first(enough: Callable[[Floats], NDArray[np.bool_]]) -> float:
    """The least loss of a dense grid that is enough."""
    losses = np.geomspace(1e-9, 1e9, 2000)
    return float(losses[int(np.argmax(enough(losses)))])


def _power(lattice: _Lattice, count: int) -> _Lattice:
    """The sum of `count` losses, by doubling."""
    if count == 1:
        return lattice
    half = _power(lattice, count // 2)
    twice = _join(half, half)
    return _join(twice, lattice) if count % 2 else twice


def _join(first: _Lattice, second: _Lattice) -> _Lattice:
    while first.scale < second.scale:
        first = _coarser(first)
    while second.scale < first.scale:
        second = _coarser(second)
    masses = np.convolve(first.masses, second.masses)
    masses *= 1 + 2 * _ULP * min(len(first.masses), len(second.masses))
    infinite = first.infinite + second.infinite
    joined = _trim(_Lattice(first.scale, first.start + second.start, masses, infinite))
    while len(joined.masses) > 2 * _PLACES:
        joined = _coarser(joined)
    return joined


def _coarser(lattice: _Lattice) -> _Lattice:
    """A step twice as wide: a mass between two kept places goes to both, so that P and Q keep theirs."""
    start, masses = lattice.start, lattice.masses
    if start % 2:
        start, masses = start - 1, np.append(0.0, masses)
    masses = np.append(masses, np.zeros(len(masses) % 2))
    up = 1 / (1 + math.exp(-(2.0**lattice.scale)))
    coarse = np.append(masses[::2], 0.0)
    coarse[1:] += masses[1::2] * (up + _ULP)
    coarse[:-1] += masses[1::2] * (1 - up)
    return _Lattice(lattice.scale + 1, start // 2, coarse, lattice.infinite)


def _trim(lattice: _Lattice) -> _Lattice:
    """The outermost masses moved up: at the top to infinity, at the bottom into the lowest place kept."""
    masses = lattice.masses
    end = int(np.searchsorted(np.cumsum(masses[::-1]), _TOP))
    infinite = lattice.infinite + float(masses[len(masses) - end :].sum())
    masses = masses[: len(masses) - end]
    begin = int(np.searchsorted(np.cumsum(masses), _BOTTOM))
    rest = masses[begin:].copy()
    rest[0] += masses[:begin].sum()
    return _Lattice(lattice.scale, lattice.start + begin, rest, infinite)


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
