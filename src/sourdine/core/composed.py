"""The law of several independent losses, composed on a lattice for every delta at once.

For the epsilon of a whole plan the accountant PLD is sharper: it looks at one delta. Here the sum must be
right everywhere, so it is kept untilted, on a lattice whose step is a power of two, by convolutions of
positive numbers: each mass has all its digits, however small.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.distributions import AtomLaw, Floats, LossDistribution, Pair

_PLACES = 1 << 12
_TOP = 1e-30  # mass that may be moved to infinity
_BOTTOM = 1e-20  # mass that may be moved up
_ULP = 2.0**-52


@dataclass(frozen=True)
class ComposedDistribution(LossDistribution):
    """Independent losses, each paid so many times; its profile is nowhere below the true one.

    >>> from sourdine.core.distributions import GaussianLaw
    >>> four = ComposedDistribution(((GaussianLaw(0.5), 4),))
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


def above(law: LossDistribution, losses: Floats) -> tuple[Floats, float]:
    """Return masses at these losses and at infinity, of a law whose profile is nowhere below.

    A bin between two points with mass p under P and q under Q gives its upper end
    (p - q e^low)/(1 - e^-width) and the rest to its lower end: chords of the profile ("connect the dots",
    Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022). Every mass is pushed to the safe side by more than
    floats can err.
    """
    over, under = law.both(losses)
    (p, slack_p), (q, slack_q) = difference(over.p, under.p), difference(over.q, under.q)
    p = p + slack_p
    q = np.maximum(q - slack_q, 0)
    up = (p - np.exp(np.minimum(losses[:-1], 700.0)) * q) / -np.expm1(
        losses[:-1] - losses[1:]
    )  # less is safe
    up = np.clip(up, 0, p)
    masses = np.zeros(len(losses))
    masses[:-1] = p - up
    masses[1:] += up
    masses[0] += float(under.p[0]) * (1 + 4 * _ULP)  # what lies lower is moved up
    return masses, float(over.p[-1]) * (1 + 4 * _ULP)


def difference(over: Floats, under: Floats) -> tuple[Floats, Floats]:
    """What lies between edges, from whichever tail is smaller."""
    top = over[:-1] < 0.5
    mass = np.where(top, over[:-1] - over[1:], under[1:] - under[:-1])
    size = np.where(top, over[:-1], under[1:])
    return np.maximum(mass, 0), 8 * _ULP * size


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
