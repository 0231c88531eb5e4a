"""From noisy numbers to values with intervals. All of it is post-processing: it sees no record.

Intervals are about the noise alone: they hold what the exact computation on the declared grid would give.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.mechanism import Mechanism
from sourdine.tables.noise import half_width

Floats = NDArray[np.float64]
_SHARES = np.linspace(0, 1, 201)


@dataclass(frozen=True)
class GroupEstimate:
    """A value for each group, between the ends of its interval."""

    value: Floats
    lower: Floats
    upper: Floats

    def scaled(self, step: float, offset: float = 0.0) -> "GroupEstimate":
        """The same in another unit, `step` above 0."""
        return GroupEstimate(*(offset + step * each for each in (self.value, self.lower, self.upper)))

    def within(self, least: float, most: float = np.inf) -> "GroupEstimate":
        """The same where nothing outside these bounds can be true."""
        return GroupEstimate(*(np.clip(each, least, most) for each in (self.value, self.lower, self.upper)))

    def root(self) -> "GroupEstimate":
        """The square roots of what is not negative."""
        return GroupEstimate(*(np.sqrt(each) for each in (self.value, self.lower, self.upper)))

    @property
    def half(self) -> float:
        """Half the width of the first interval."""
        return float((self.upper[0] - self.lower[0]) / 2)

    def rounded(self, whole: bool = False) -> "GroupEstimate":
        """The same to three digits of each interval's width, or to whole numbers; its ends go outwards.

        >>> GroupEstimate(*(np.array([x]) for x in (33730.214, 33586.9, 33874.6))).rounded().upper
        array([33875.])
        """
        if whole:
            wide = (self.upper > self.lower) & np.isfinite(self.upper - self.lower)
            ends = np.rint(self.value), np.floor(self.lower), np.ceil(self.upper)
            held = (self.value, self.lower, self.upper)
            return GroupEstimate(*(np.where(wide, a, b) + 0.0 for a, b in zip(ends, held, strict=True)))
        rows = zip(self.value.tolist(), self.lower.tolist(), self.upper.tolist(), strict=True)
        found = np.array([_rounded(*row) for row in rows]).reshape(-1, 3)
        return GroupEstimate(*found.T)


class Reading:
    """What was measured, with noise: all that statistics are read off."""


class Numbers(Reading):
    """Noisy numbers of each group that tell some of this; what they do not tell is never asked of them."""

    whole: ClassVar[bool] = False

    def count(self) -> GroupEstimate:
        """How many records."""
        raise NotImplementedError

    def total(self, low: float) -> GroupEstimate:
        """The sum of values that begin at `low` steps, in steps."""
        raise NotImplementedError

    def mean(self) -> GroupEstimate:
        """The mean, as a share of the width."""
        raise NotImplementedError

    def variance(self) -> GroupEstimate:
        """The variance, as a share of the squared width."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Noisy(Reading):
    """Noisy numbers, one row a group, the mechanism that drew them, and the confidence to read them with."""

    numbers: Floats
    mechanism: Mechanism
    confidence: float

    def linear(self, weights: ArrayLike) -> GroupEstimate:
        """A weighted sum of a group's numbers."""
        heavy = np.asarray(weights, dtype=float)
        value = self.numbers @ heavy
        reach = self.reach(heavy[heavy != 0] if heavy.any() else heavy[:1])
        return GroupEstimate(value, value - reach, value + reach)

    def reach(self, weights: ArrayLike) -> Floats:
        """How far the same sum of noises goes."""
        return half_width(self.mechanism, weights, self.confidence)

    def ratio(self, top: ArrayLike, bottom: ArrayLike) -> GroupEstimate:
        """A ratio between 0 and 1 of two weighted sums.

        At the true ratio r, top - r bottom is a sum of noises alone, so the ratios at which it lies within
        reach are an interval of the confidence wanted, however small the bottom is (Fieller 1954).
        """
        above, below = np.asarray(top, dtype=float), np.asarray(bottom, dtype=float)
        over, under = self.numbers @ above, self.numbers @ below
        reaches = self.reach(above[:, None] - _SHARES * below[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.clip(np.nan_to_num(np.where(under > 0, over / under, 0.5)), 0, 1)

        def outside(share: Floats) -> NDArray[np.bool_]:
            far: NDArray[np.bool_] = np.abs(over - share * under) > np.interp(share, _SHARES, reaches)
            return far

        ends = [edge(value, np.full_like(value, end), outside) for end in (0.0, 1.0)]
        unsure = outside(value)  # only where the bottom is lost in noise: then nothing is known
        return GroupEstimate(value, np.where(unsure, 0.0, ends[0]), np.where(unsure, 1.0, ends[1]))


@dataclass(frozen=True)
class Counted(Numbers):
    """A noisy count of each group."""

    noisy: Noisy
    whole: ClassVar[bool] = True

    def count(self) -> GroupEstimate:
        """A count with its noise, even below 0: to cut it or its interval off would shift sums."""
        return self.noisy.linear([1.0])


@dataclass(frozen=True)
class Summed(Numbers):
    """A noisy sum of each group."""

    noisy: Noisy

    def total(self, low: float) -> GroupEstimate:
        return self.noisy.linear([1.0])


def _rounded(value: float, low: float, high: float) -> tuple[float, float, float]:
    if not (high > low and math.isfinite(high - low)):
        return value, low, high
    digits = 2 - math.floor(math.log10(high - low))
    unit = 10.0**-digits
    below, above = round(low, digits), round(high, digits)
    return (
        round(value, digits) + 0.0,  # not -0.0
        # where a float has no more digits than these, a step may not be seen, and the end stays as it is
        (below if below <= low else min(low, round(below - unit, digits))) + 0.0,
        (above if above >= high else max(high, round(above + unit, digits))) + 0.0,
    )


def edge(inside: Floats, end: Floats, outside: object) -> Floats:
    """The place between a point inside and an end where a condition begins to hold, or the end."""
    assert callable(outside)
    near, far = inside.copy(), end.copy()
    whole = ~outside(end)
    for _ in range(50):
        middle = (near + far) / 2
        out = outside(middle)
        near, far = np.where(out, near, middle), np.where(out, middle, far)
    return np.where(whole, end, far)


@dataclass(frozen=True, kw_only=True)
class NoisyMoments(Numbers):
    """Noisy sums of the Bernstein polynomials of a value between 0 and `width` steps."""

    noisy: Noisy
    width: int
    degree: int

    @property
    def _ones(self) -> Floats:
        return np.ones(self.degree + 1) / float(self.width) ** self.degree

    @property
    def _first(self) -> Floats:
        """The weights of the sum of values, in widths: k/d for the k-th polynomial of degree d."""
        return self._ones * np.arange(self.degree + 1) / max(self.degree, 1)

    def count(self) -> GroupEstimate:
        return self.noisy.linear(self._ones)

    def total(self, low: float) -> GroupEstimate:
        return self.noisy.linear(low * self._ones + self.width * self._first)

    def mean(self) -> GroupEstimate:
        return self.noisy.ratio(self._first, self._ones)

    def variance(self) -> GroupEstimate:
        """The variance, as a share of the squared width.

        To first order an error of the k-th sum moves the variance by [s_k - m2 - 2 m1 (f_k - m1)] / n, where
        f and s are the weights of the sum and of the sum of squares. Where the count itself is lost in noise
        the interval is all that is possible.
        """
        ones, first = self._ones, self._first
        second = np.zeros_like(ones)
        second[-1] = ones[-1]
        sums = self.noisy.numbers
        count = np.maximum(sums @ ones, 1e-9)
        m1 = np.clip(sums @ first / count, 0, 1)
        m2 = np.clip(sums @ second / count, m1**2, m1)
        value = m2 - m1**2
        weights = second[:, None] - m2 * ones[:, None] - 2 * m1 * (first[:, None] - m1 * ones[:, None])
        reach = self.noisy.reach(weights / count)
        blind = sums @ ones < 2 * self.noisy.reach(ones)
        lower = np.where(blind, 0.0, np.clip(value - reach, 0, 0.25))
        upper = np.where(blind, 0.25, np.clip(value + reach, 0, 0.25))
        return GroupEstimate(np.clip(value, 0, 0.25), lower, upper)
