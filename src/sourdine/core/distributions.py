"""Privacy loss distributions, one direction at a time.

For outputs P on one data set and Q on its neighbour, the loss of an outcome is log(P/Q). A `LossDistribution`
gives the survival functions of that loss under P and under Q; the privacy profile follows:
delta(epsilon) = P[L > epsilon] - e^epsilon Q[L > epsilon].
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.lazy import ndtr

Floats = NDArray[np.float64]
_FLOATS = Fraction(2) ** 1023
_WIDE = 1024  # a sigma above which a discrete Gaussian is summed by a formula


class Pair(NamedTuple):
    """One number a loss, under P and under Q."""

    p: Floats
    q: Floats


class LossDistribution(ABC):
    """The law of a privacy loss under P and Q; frozen, vectorised, atoms allowed.

    Each method errs, if at all, towards more under P and less under Q, so that the profile is never
    understated by more than the rounding of floats.
    """

    lowest: float
    highest: float
    infinite: float = 0.0  # the mass under P where Q has none
    spacing: float | None = None  # every loss is a multiple of it; None for a continuous law

    @abstractmethod
    def survival(self, loss: ArrayLike) -> Pair:
        """P[L > loss] and Q[L > loss], accurate where they are small."""

    @abstractmethod
    def cumulative(self, loss: ArrayLike) -> Pair:
        """P[L <= loss] and Q[L <= loss], accurate where they are small."""

    def both(self, loss: ArrayLike) -> tuple[Pair, Pair]:
        """`survival` and `cumulative` at the same losses, for laws that share work between them."""
        return self.survival(loss), self.cumulative(loss)

    @property
    def least(self) -> "LossDistribution":
        """A law that the true one is nowhere below: itself, unless it is known as an upper bound only."""
        return self

    @property
    def unsampled(self) -> "LossDistribution":
        """A law that is nowhere below, without the chance that hides a unit where there is one."""
        return self

    def profile(self, epsilon: ArrayLike) -> Floats:
        """delta(epsilon), the hockey-stick divergence of this direction."""
        above = self.survival(epsilon)
        weight = np.where(above.q > 0, np.exp(np.minimum(np.asarray(epsilon, float), 700.0)), 0.0)
        return np.clip(above.p - weight * above.q, 0.0, 1.0)


class AtomLaw(LossDistribution):
    """A loss with finitely many values.

    >>> AtomLaw.between([0.75, 0.25], [0.25, 0.75]).profile(0.0)
    np.float64(0.5)
    """

    def __init__(self, losses: ArrayLike, p: ArrayLike, q: ArrayLike, infinite: float = 0.0) -> None:
        order = np.argsort(np.asarray(losses, float), kind="stable")
        self._losses = np.asarray(losses, float)[order]
        self._p, self._q = np.asarray(p, float)[order], np.asarray(q, float)[order]
        self.infinite = infinite
        self.lowest, self.highest = float(self._losses[0]), float(self._losses[-1])
        self.spacing = _common_step(self._losses)

    @classmethod
    def between(cls, p: ArrayLike, q: ArrayLike) -> "AtomLaw":
        """The loss between two laws on the same finite set of outcomes."""
        p, q = np.asarray(p, float), np.asarray(q, float)
        both = (p > 0) & (q > 0)
        if not both.any():  # whatever comes out tells everything
            return cls([0.0], [0.0], [0.0], float(p.sum()))
        return cls(np.log(p[both] / q[both]), p[both], q[both], float(p[q == 0].sum()))

    @property
    def atoms(self) -> tuple[Floats, Pair]:
        """The finite losses in order, and their masses."""
        return self._losses, Pair(self._p, self._q)

    @cached_property
    def _sums(self) -> tuple[Pair, Pair]:
        zero = np.zeros(1)
        up = [np.concatenate([np.cumsum(mass[::-1])[::-1], zero]) for mass in (self._p, self._q)]
        down = [np.concatenate([zero, np.cumsum(mass)]) for mass in (self._p, self._q)]
        return Pair(up[0] + self.infinite, up[1]), Pair(*down)

    def survival(self, loss: ArrayLike) -> Pair:
        at = np.searchsorted(self._losses, np.asarray(loss, float), side="right")
        above, _ = self._sums
        return Pair(above.p[at], above.q[at])

    def cumulative(self, loss: ArrayLike) -> Pair:
        at = np.searchsorted(self._losses, np.asarray(loss, float), side="right")
        _, below = self._sums
        return Pair(below.p[at], below.q[at])


def _common_step(losses: Floats) -> float | None:
    """The least loss that is not 0, if all are multiples of it."""
    least = float(np.min(np.abs(losses), initial=np.inf, where=losses != 0))
    whole = losses / least
    return least if math.isfinite(least) and np.all(np.abs(whole - np.rint(whole)) < 1e-12) else None


def float_above(number: Fraction | float) -> float:
    """The least float that is not below a number.

    >>> float_above(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    if isinstance(number, float):
        return number
    if number >= _FLOATS:
        return math.inf
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def float_below(number: Fraction | float) -> float:
    """Return the greatest float that is not above a number.

    >>> float_below(Fraction(1, 10)) <= Fraction(1, 10)
    True
    """
    return -float_above(-number)


def response_odds(epsilon: float) -> tuple[float, float]:
    """The probabilities of binary randomized response at epsilon: of the truth, and of the other answer.

    >>> response_odds(math.log(3))
    (0.75, 0.25)
    """
    odds = math.exp(-epsilon)
    return 1 / (1 + odds), odds / (1 + odds)


def pure_law(epsilon: float) -> AtomLaw:
    """The law of binary randomized response at epsilon, which dominates every epsilon-DP mechanism.

    Kairouz, Oh, Viswanath 2015; proven in docs/guarantees/laplace.md.
    """
    likely, unlikely = response_odds(epsilon)
    return AtomLaw([-epsilon, epsilon], [unlikely, likely], [likely, unlikely])


@dataclass(frozen=True)
class GeometricLaw(LossDistribution):
    """Two-sided geometric noise of a scale, moved by a whole number of units.

    With a = e^{-1/scale}, the loss is (units - 2j)/scale, with mass 1/(1+a) at j = 0, (1-a)a^j/(1+a) for
    0 < j < units and a^units/(1+a) at j = units. Under Q the same masses stand in the opposite order.
    """

    units: int
    scale: float

    @property
    def spacing(self) -> float:  # type: ignore[override]
        return 1 / self.scale

    @property
    def lowest(self) -> float:  # type: ignore[override]
        return -self.units / self.scale

    @property
    def highest(self) -> float:  # type: ignore[override]
        return math.nextafter(self.units / self.scale, math.inf)

    def survival(self, loss: ArrayLike) -> Pair:
        last = self._last(loss)  # the loss exceeds for j = 0 .. last
        a = math.exp(-1 / self.scale)
        inner = np.clip(last, 0, self.units)
        p = 1 - np.exp(-(inner + 1) / self.scale) / (1 + a)
        q = np.exp(-(self.units - inner) / self.scale) / (1 + a)
        return Pair(_ends(last, self.units, p), _ends(last, self.units, q))

    def cumulative(self, loss: ArrayLike) -> Pair:
        last = self._last(loss)
        a = math.exp(-1 / self.scale)
        inner = np.clip(last, 0, self.units)
        p = np.exp(-(inner + 1) / self.scale) / (1 + a)
        q = 1 - np.exp(-(self.units - inner) / self.scale) / (1 + a)
        return Pair(_ends(last, self.units, p, 1.0), _ends(last, self.units, q, 1.0))

    def _last(self, loss: ArrayLike) -> Floats:
        return np.ceil((self.units - np.asarray(loss, float) * self.scale) / 2) - 1


def _ends(last: Floats, units: int, inner: Floats, before: float = 0.0) -> Floats:
    """`before` in front of the first atom, the rest from the last on."""
    return np.where(last < 0, before, np.where(last >= units, 1.0 - before, inner))


@dataclass(frozen=True)
class GaussianLaw(LossDistribution):
    """Continuous Gaussian noise of deviation 1 moved by mu: the loss is normal, N(+-mu^2/2, mu^2)."""

    mu: float
    lowest = -math.inf
    highest = math.inf

    def survival(self, loss: ArrayLike) -> Pair:
        at = np.asarray(loss, float) / self.mu
        return Pair(ndtr(self.mu / 2 - at), ndtr(-self.mu / 2 - at))

    def cumulative(self, loss: ArrayLike) -> Pair:
        at = np.asarray(loss, float) / self.mu
        return Pair(ndtr(at - self.mu / 2), ndtr(at + self.mu / 2))


@dataclass(frozen=True)
class DiscreteGaussianLaw(LossDistribution):
    """Discrete Gaussian noise moved by a whole number of units; the loss at y is (units^2 - 2 units y)/(2 v).

    Up to a sigma of 1024 the tails are summed one mass at a time. Above, by the formula of Euler and
    Maclaurin for middles: the normal tail from half a unit below, and three terms more; what is left is less
    than a float can tell (docs/guarantees/gaussian.md).
    """

    units: int
    variance: float

    lowest = -math.inf
    highest = math.inf

    @property
    def spacing(self) -> float:  # type: ignore[override]
        return self.units / (2 * self.variance)

    @property
    def _sigma(self) -> float:
        return math.sqrt(self.variance)

    def survival(self, loss: ArrayLike) -> Pair:
        last = self._last(loss)  # the loss exceeds for y <= last; by symmetry a tail from -last up
        return Pair(self._tail(-last), self._tail(self.units - last))

    def cumulative(self, loss: ArrayLike) -> Pair:
        last = self._last(loss)
        return Pair(self._tail(last + 1), self._tail(last + 1 - self.units))

    def _last(self, loss: ArrayLike) -> Floats:
        middle = self.units / 2 - np.asarray(loss, float) * (self.variance / self.units)
        return np.ceil(middle) - 1

    def _tail(self, start: Floats) -> Floats:
        """P[Y >= start] for the noise Y."""
        if self._sigma > _WIDE:
            return _wide_tail(np.asarray(start, float), self._sigma)
        reach = (len(self._tails) - 2) // 2
        at = np.clip(start, -reach, reach + 1).astype(np.int64)
        return self._tails[at + reach]

    @cached_property
    def _tails(self) -> Floats:
        reach = int(39 * self._sigma) + 39  # beyond it the masses are below the smallest float
        y = np.arange(-reach, reach + 1)
        mass = np.exp(-(y * y) / (2 * self.variance))
        return np.concatenate([np.cumsum((mass / mass.sum())[::-1])[::-1], np.zeros(1)])


def _wide_tail(start: Floats, sigma: float) -> Floats:
    """P[Y >= start] for discrete Gaussian noise of a large sigma.

    A sum from k on is the integral f from k - 1/2, plus f'/24 - 7 f'''/5760 + 31 f^(5)/967680 there. The n-th
    derivative of a normal density is (-1/sigma)^n times it times the n-th Hermite polynomial.
    """
    x = np.clip((start - 0.5) / sigma, -40.0, 40.0)  # beyond, nothing is left that a float holds
    square = x * x
    first, third, fifth = x, x * (square - 3), x * (square * (square - 10) + 15)
    terms = first / (24 * sigma) - 7 * third / (5760 * sigma**3) + 31 * fifth / (967680 * sigma**5)
    density = np.exp(-square / 2) / math.sqrt(2 * math.pi)
    tail: Floats = np.clip(ndtr(-x) - density / sigma * terms, 0.0, 1.0)
    return tail


@dataclass(frozen=True)
class RhoLaw(LossDistribution):
    """The worst law that rho-zCDP allows.

    delta(epsilon) is the least over orders a > 1 of e^{(a-1)(a rho - epsilon)} (a-1)^{a-1} / a^a
    (Canonne, Kamath, Steinke 2020, proposition 12). With x = a - 1 at the best order, where
    (2x+1) rho + log(x/(1+x)) = epsilon, its derivative by e^epsilon gives Q[L > epsilon] =
    e^{-rho (1+x)^2} and P[L > epsilon] = e^{-rho x^2}. Both fall as x and epsilon grow: so this is a law.
    """

    rho: float
    lowest = -math.inf
    highest = math.inf

    def survival(self, loss: ArrayLike) -> Pair:
        x = self._order_less_one(loss)
        return Pair(np.exp(-self.rho * x**2), np.exp(-self.rho * (1 + x) ** 2))

    def cumulative(self, loss: ArrayLike) -> Pair:
        """What lies below; under Q there is less than 1 in all, e^{-rho}."""
        x = self._order_less_one(loss)
        return Pair(-np.expm1(-self.rho * x**2), -math.exp(-self.rho) * np.expm1(-self.rho * x * (2 + x)))

    def _order_less_one(self, loss: ArrayLike) -> Floats:
        """The root x of (2x+1) rho + log(x/(1+x)) = epsilon, by damped Newton steps on log x.

        The start is the root of the part that rules: log(x) below rho, the linear one above.
        """
        epsilon = np.clip(np.asarray(loss, float), -1e9, 1e9)
        t: Floats = np.where(
            epsilon < self.rho,
            epsilon - self.rho,
            np.log(np.maximum(epsilon / self.rho - 1, 0) / 2 + 1),
        )
        for _ in range(60):
            x = np.exp(t)
            value = (2 * x + 1) * self.rho + t - np.log1p(x) - epsilon
            t = t - np.clip(value / (2 * x * self.rho + 1 / (1 + x)), -2.0, 2.0)
        return np.exp(t)
