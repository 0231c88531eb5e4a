"""Weights that never rise with the distance: how a mechanism on a bounded range favours what is near.

A decay states the sums of its first weights twice: as floats, for arrays, with a stated error; and as balls
at any precision, for the few cases that floats cannot settle.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from sourdine.core.certified import ball, exponential

Floats = NDArray[np.float64]


class Decay(ABC):
    """Weights w(0) >= w(1) >= ... > 0 of the distances 0, 1, ..., up to one common factor; frozen."""

    @abstractmethod
    def mass(self, count: NDArray[np.int64]) -> Floats:
        """w(0) + ... + w(count - 1), with a relative error below 2^-46; the empty sum is 0."""

    @abstractmethod
    def guess(self, mass: Floats) -> Floats:
        """About how many of the first weights make this mass; finite whatever comes in."""

    @abstractmethod
    def certified(self, count: int) -> arb:
        """The same sum as `mass`, as a ball at the ambient precision."""


@dataclass(frozen=True)
class GeometricDecay(Decay):
    """w(m) = e^{-m/scale}; masses carry the factor 1 - e^{-1/scale}.

    Two roundings perturb the argument t of the exponential by less than 2^-52 t, hence 1 - e^-t by a
    relative 2^-52 at most; the library's expm1 is good to a few units in the last place.
    """

    scale: Fraction

    def mass(self, count: NDArray[np.int64]) -> Floats:
        mass: Floats = -np.expm1(-(count * float(1 / self.scale)))
        return mass

    def guess(self, mass: Floats) -> Floats:
        return -np.log1p(-np.minimum(mass, 1 - 2.0**-53)) * float(self.scale)

    def certified(self, count: int) -> arb:
        return -ball(-count / self.scale).expm1()


@dataclass(frozen=True)
class StepDecay(Decay):
    """A staircase: the first `inner` distances weigh 1, the next `period` e^{-drop}, then e^{-2 drop}, ...

    All terms of a mass are positive. The exponent of a step is off by less than a relative 2^-52, and its
    weight by that times the exponent, of which period * e^{-exponent} reaches the mass: for periods up to
    2^28 and inner >= 1 that is below 21 * 2^-52, and below 2^-47 with the errors of the library.
    """

    drop: Fraction
    period: int
    inner: int

    def mass(self, count: NDArray[np.int64]) -> Floats:
        drop = float(self.drop)
        full, part = np.divmod(np.maximum(count - self.inner, 0), self.period)
        steps = self.period * np.exp(-drop) / np.expm1(-drop) * np.expm1(-drop * full)
        mass: Floats = np.minimum(count, self.inner) + steps + part * np.exp(-drop * (full + 1))
        return mass

    def guess(self, mass: Floats) -> Floats:
        drop = float(self.drop)
        beyond = np.maximum(mass - self.inner, 0.0)
        share = np.minimum(beyond * np.expm1(drop) / self.period, 1 - 2.0**-53)
        full = np.floor(-np.log1p(-share) / drop)
        steps = self.period * np.expm1(-drop * full) / -np.expm1(drop)
        part = np.clip((beyond - steps) * np.exp(drop * (full + 1)), 0.0, self.period)
        count: Floats = np.minimum(mass, self.inner) + self.period * full + part
        return count

    def certified(self, count: int) -> arb:
        full, part = divmod(max(count - self.inner, 0), self.period)
        first, last = exponential(-self.drop), exponential(-self.drop * full)
        return min(count, self.inner) + self.period * first * (1 - last) / (1 - first) + part * first * last
