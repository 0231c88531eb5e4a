"""From noisy numbers to values with intervals. All of it is post-processing: it sees no record.

Intervals are about the noise alone: they hold what the exact computation on the declared grid would give.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.mechanism import Mechanism
from sourdine.core.threads import in_blocks
from sourdine.tables.answers.noise import half_width
from sourdine.tables.answers.rounding import rounded_rows
from sourdine.tables.answers.selection import LinearNoise

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_SHARES = np.linspace(0, 1, 201)


@dataclass(frozen=True)
class GroupEstimate:
    """A value for each group, between the ends of its interval.

    `noise` is that of the values, where each is a weighted sum of noisy numbers and nothing else.
    """

    value: Floats
    lower: Floats
    upper: Floats
    noise: LinearNoise | None = field(default=None, kw_only=True, repr=False, compare=False)

    def scaled(self, step: float, offset: float = 0.0) -> "GroupEstimate":
        """The same in another unit, `step` above 0."""
        noise = None if self.noise is None or offset else self.noise.scaled(step)
        ends = (offset + step * each for each in (self.value, self.lower, self.upper))
        return GroupEstimate(*ends, noise=noise)

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
            numbers = (self.value, self.lower, self.upper)
            return GroupEstimate(*(np.where(wide, a, b) + 0.0 for a, b in zip(ends, numbers, strict=True)))
        return GroupEstimate(*rounded_rows(self.value, self.lower, self.upper))


class Reading:
    """What was measured, with noise: all that statistics are read off."""

    def at(self, confidence: float) -> Self:
        """Return the same noisy numbers, read with intervals of another confidence where they have any."""
        noisy: object = getattr(self, "noisy", None)
        if not isinstance(noisy, Noisy):
            return self
        return replace(self, noisy=noisy.at(confidence))  # type: ignore[type-var]


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

    def at(self, confidence: float) -> Self:
        return replace(self, confidence=confidence)

    def linear(self, weights: ArrayLike) -> GroupEstimate:
        """A weighted sum of a group's numbers."""
        heavy = np.asarray(weights, dtype=float)
        value = self.numbers @ heavy
        parts = heavy[heavy != 0] if heavy.any() else heavy[:1]
        reach, noise = self.reach(parts), LinearNoise(self.mechanism, parts) if heavy.any() else None
        return GroupEstimate(value, value - reach, value + reach, noise=noise)

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

        ends = np.empty((2, value.size))

        def find(block: slice) -> None:
            parts = value[block], over[block], under[block], reaches
            ends[:, block] = _edge(0, *parts), _edge(1, *parts)

        in_blocks(find, value.size)
        # only where the bottom is lost in noise: then nothing is known
        unsure = np.abs(over - value * under) > _between(value, reaches)
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


def _edge(end: int, value: Floats, over: Floats, under: Floats, reaches: Floats) -> Floats:
    """The share between a ratio and an end where |over - share under| begins to be out of reach, or the end.

    What is in reach is known at some shares and lies on lines between them. If the end is out of reach there
    is one pair of neighbouring shares between which it begins. Mostly they are where a straight guess says;
    for the others the last share within reach is found by halving. Then what lies beyond it on its line.
    """
    last, step = _SHARES.size - 1, 1 if end else -1
    first = (np.floor(value * last) if end else np.ceil(value * last)).astype(np.int64)
    out = np.abs(over - end * under) > reaches[last * end]
    near = _guess(first, end, value, under, reaches)
    clear = _beyond(np.clip(near + step, 0, last), over, under, reaches)
    clear &= (near == first) | ~_beyond(near, over, under, reaches)
    hard = np.flatnonzero(out & ~clear)
    near[hard] = _halve(first[hard], end, over[hard], under[hard], reaches)
    near = np.clip(near, 1 - end, last - end)
    far = near + step
    inner = np.where((_SHARES[near] - value) * step > 0, _SHARES[near], value)
    outer = _SHARES[far]
    sign = np.sign(over - outer * under)
    here = _between(inner, reaches) - sign * (over - inner * under)
    there = reaches[far] - sign * (over - outer * under)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.clip(np.nan_to_num(here / (here - there)), 0.0, 1.0)
    return np.where(out, inner + part * (outer - inner), float(end))


def _beyond(place: Places, over: Floats, under: Floats, reaches: Floats) -> NDArray[np.bool_]:
    """Whether the share at a place is out of reach."""
    return np.abs(over - _SHARES[place] * under) > reaches[place]


def _guess(first: Places, end: int, value: Floats, under: Floats, reaches: Floats) -> Places:
    """The last place within reach from the first on, if reach hardly changes on the way."""
    last = _SHARES.size - 1
    turn = (1.0 if end else -1.0) / np.where(under > 0, under, np.inf)
    place = first
    for _ in range(2):  # by the reach of where it begins, then of where it may end
        share = (value + turn * reaches[place]) * last
        place = np.clip((np.floor if end else np.ceil)(share), 1 - end, last - end).astype(np.int64)
    return np.maximum(place, first) if end else np.minimum(place, first)


def _halve(near: Places, end: int, over: Floats, under: Floats, reaches: Floats) -> Places:
    """The last place within reach, from one that is taken to be within to an end that is out of it."""
    last = _SHARES.size - 1
    far = np.full_like(near, last * end)
    for _ in range(last.bit_length()):
        middle = (near + far) // 2 if end else (near + far + 1) // 2
        beyond = _beyond(middle, over, under, reaches)
        moves = middle != near
        near, far = np.where(moves & ~beyond, middle, near), np.where(moves & beyond, middle, far)
    return near


def _between(share: Floats, reaches: Floats) -> Floats:
    """What is in reach at a share, on the line between the two that are known."""
    place = np.minimum((share * (_SHARES.size - 1)).astype(np.int64), _SHARES.size - 2)
    slopes = np.diff(reaches) / np.diff(_SHARES)
    return slopes[place] * (share - _SHARES[place]) + reaches[place]


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
