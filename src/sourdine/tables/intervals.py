"""From noisy numbers to values with intervals. All of it is post-processing: it sees no record.

Intervals are about the noise alone: they hold what the exact computation on the declared grid would give.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.distance import Distance, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import distance_units
from sourdine.core.lazy import log_ndtr
from sourdine.core.mechanism import Mechanism
from sourdine.core.threads import in_blocks
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.mechanisms.gaussian import LEAST_SIGMA
from sourdine.mechanisms.laplace import LEAST_SCALE

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_SHARES = np.linspace(0, 1, 201)


# Confidence intervals of numbers that are shown only where their noisy value passes a threshold.
#
# An interval of the usual kind misses too often there: what noise has lifted over a threshold is shown, and
# what noise has pushed below it is not (docs/guarantees/row_selection.md).

LogSurvival = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class LinearNoise:
    """The noise of a weighted sum: the mechanism that drew each part, and the parts' weights, none of them 0.

    `factor` turns the sum into the measure of the answer.
    """

    mechanism: Mechanism
    weights: Floats
    factor: float = 1.0

    def scaled(self, step: float) -> "LinearNoise":
        """Return the noise in another measure."""
        return LinearNoise(self.mechanism, self.weights, self.factor * step)

    @property
    def alike(self) -> bool:
        """Whether all weights have the same size."""
        sizes = np.abs(self.weights)
        return bool((sizes == sizes.max()).all())

    @property
    def grid(self) -> float:
        """The step of the grid that the sum lies on; 0 where the weights have no common one."""
        granularity = getattr(self.mechanism, "granularity", None) or 1
        return float(np.abs(self.weights).max()) * float(granularity) * self.factor if self.alike else 0.0

    @property
    def size(self) -> float:
        """The scale of Laplace noise, or the standard deviation of Gaussian noise, of the sum."""
        if isinstance(self.mechanism, Gaussian):
            return float(self.mechanism.sigma) * float(np.linalg.norm(self.weights)) * self.factor
        assert isinstance(self.mechanism, Laplace)
        return float(self.mechanism.scale) * float(np.abs(self.weights).max()) * self.factor

    @property
    def normal(self) -> bool:
        """Whether the noise is Gaussian."""
        return isinstance(self.mechanism, Gaussian)

    @property
    def known(self) -> bool:
        """Whether its survival function is known closely enough to condition on a selection."""
        if not isinstance(self.mechanism, Gaussian | Laplace):
            return False
        granularity = float(getattr(self.mechanism, "granularity", None) or 1)
        if isinstance(self.mechanism, Gaussian):
            return float(self.mechanism.sigma) >= _LEAST_STEPS * granularity
        if self.weights.size == 1:
            return True
        return (
            self.alike
            and self.weights.size <= len(_TAILS)
            and float(self.mechanism.scale) >= _LEAST_STEPS * granularity
        )

    def log_survival(self) -> LogSurvival:
        """Return the logarithm of P[noise >= z], z a multiple of the grid, as a function of z."""
        if self.normal:
            sigma, half = self.size, self.grid / 2
            # the mass of a grid point is that of the step around it
            return lambda z: np.asarray(log_ndtr(-(z - half) / sigma))
        if self.weights.size == 1:
            # P[Z >= n] = p^n / (1 + p) for n >= 0 with p = e^(-1/s), and by symmetry 1 - p^(1 - n) / (1 + p)
            step, scale = self.grid, self.size
            log_all = math.log1p(math.exp(-step / scale))

            def of_one(z: Floats) -> Floats:
                above = -np.maximum(z, 0.0) / scale - log_all
                below = np.log1p(-np.exp((np.minimum(z, 0.0) - step) / scale - log_all))
                return np.where(z >= 0, above, below)

            return of_one
        half, scale, tail = self.grid / 2, self.size, _TAILS[self.weights.size - 1]

        def of_several(z: Floats) -> Floats:
            far = np.abs(z - half) / scale
            log_tail = np.log(np.polynomial.polynomial.polyval(far, tail)) - far
            return np.where(z >= half, log_tail, np.log1p(-np.exp(log_tail)))

        return of_several


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


# The least noise for a distance and a part of the budget, and how far a weighted sum of noises goes.
#
# Such a sum is matched by the distribution of a sum of k like Laplace noises (variance-gamma), with k
# chosen to have the same kurtosis: exact for one noise, for like weights and for many, and close between.
# Gaussian noises need none of this.


_FINEST = 1 << 20  # noise of more steps is drawn on a coarser grid, so that sums keep 42 bits above it
_COARSEST = 1 << 30  # noise of more steps is not drawn
_TRIES = 40


def noise(distance: Distance, budget: Fraction, squared: bool) -> Mechanism:
    """The least noise that costs at most so much epsilon, or rho."""
    step: Fraction | None = None
    for _ in range(_TRIES):
        size = _noise_size(distance, budget, squared, step)
        if size <= (_FINEST if step is None else _COARSEST * step):
            return (
                Gaussian(sigma=max(size, LEAST_SIGMA), granularity=step)
                if squared
                else Laplace(scale=max(size, LEAST_SCALE), granularity=step)
            )
        step = _coarser(size) if step is None else 4 * step
    raise InvalidParameter(
        "The budget is so small that the noise would drown everything. "
        "Ask for a larger epsilon, for fewer queries, or for more equal weights."
    )


def _noise_size(distance: Distance, budget: Fraction, squared: bool, step: Fraction | None) -> Fraction:
    """The scale, or sigma, for a distance that grows by a coarse step for each number that changes.

    It is computed from the very number that the loss will be, so that no rounding makes it cost more.
    """
    if not squared:
        return (distance.amount + (step or 0) * (distance.coordinates or 0)) / budget
    return root_above(distance_units(distance, step) * (step or 1) ** 2 / (2 * budget))


def _coarser(size: Fraction) -> Fraction:
    """A power of two that leaves a noise of this size about 2^20 steps."""
    return Fraction(1 << (math.ceil(size / _FINEST) - 1).bit_length())


_FEW, _MANY = np.linspace(1, 3, 11), np.geomspace(3.5, 200, 12)  # numbers of terms
_LONG, _SHORT = 1 << 12, 1 << 10  # steps of the integral for few terms; that of many has ended long before
# The match above is too narrow by less than 0.3 % of the width up to here, and by up to 6 % at 1 - 3e-9: its
# tail falls faster than that of the largest noise. Beyond it a bound is taken.
_MATCHED = 0.99
# Any tilt gives a valid bound. The best one for a sum of k like noises is about 1 - k / log(1/alpha), so that
# tilts close to 1 serve sums with one large weight, and smaller ones sums of many.
_TILTS = (*(1 - 0.75**place for place in range(3, 24)), 1.0)
_STEPS, _NEAR = 60, 1e-8  # of Newton's method: how many at most, and the last


def deviation(mechanism: Mechanism) -> float:
    """The standard deviation of one noise, in the numbers' own unit."""
    if isinstance(mechanism, Gaussian):
        return float(mechanism.sigma)
    assert isinstance(mechanism, Laplace)
    return math.sqrt(2) * float(mechanism.scale)


def half_width(mechanism: Mechanism, weights: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """What |sum of weights times noises| stays within, with this confidence; weights along the first axis.

    One noise alone is a whole number, and its exact quantile is taken. Sums with like weights are whole
    multiples of them, and what they stay within is rounded up to one.
    """
    heavy = np.abs(np.asarray(weights, dtype=float))
    if heavy.shape[0] == 1:
        alone: NDArray[np.float64] = heavy[0] * mechanism.error(confidence)
        return alone
    power = (heavy**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        many = np.where(power > 0, power**2 / (heavy**4).sum(axis=0), 1.0)
    reach: NDArray[np.float64] = like_noises(mechanism, many, confidence) * np.sqrt(power)
    most = heavy.max(axis=0)
    reach = np.maximum(reach, most * mechanism.error(confidence))  # others never make one noise narrower
    alike = ((heavy == most) | (heavy == 0)).all(axis=0) & (most > 0)
    if confidence > _MATCHED and isinstance(mechanism, Laplace):
        reach = np.where(alike, reach, np.maximum(reach, _bounded_reach(mechanism, heavy, confidence)))
    rounded: NDArray[np.float64] = np.ceil(reach / np.where(alike, most, 1.0)) * most
    return np.where(alike, rounded, reach)


def _bounded_reach(mechanism: Laplace, heavy: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """What a weighted sum of Laplace noises stays within, by a bound that holds at every confidence.

    With a the largest weight, r_j the others over it and scale 1, P[S >= x] <= C(t) e^(-t x/a) / prod(1 - t^2
    r_j^2) for 0 < t <= 1, C(t) = (2t/(1+t))^t / (1+t): the tail of one Laplace noise is at most C(t) e^(-t z)
    at every z, and the others have these moment generating functions (docs/guarantees/row_selection.md). On a
    grid the tail is larger by at most 2/(1 + e^(-1/scale)), and the others' functions are smaller.
    """
    first = heavy.argmax(axis=0)[None]
    largest = np.take_along_axis(heavy, first, axis=0)[0]
    shares = heavy / np.where(largest > 0, largest, 1.0)
    np.put_along_axis(shares, first, 0.0, axis=0)
    on_grid = math.log(2 / (1 + math.exp(-1 / float(mechanism.scale / (mechanism.granularity or 1)))))
    alone = math.log(2 / (1 - confidence)) + on_grid
    best = np.full(largest.shape, np.inf)
    for t in _TILTS:
        with np.errstate(divide="ignore"):
            others = -np.log1p(-((t * shares) ** 2)).sum(axis=0)
        best = np.minimum(best, (alone + t * math.log(2 * t / (1 + t)) - math.log1p(t) + others) / t)
    reach: NDArray[np.float64] = best * largest * float(mechanism.scale)
    return reach


def like_noises(mechanism: Mechanism, many: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """What a sum of so many like noises stays within, for each unit of the square root of their number."""
    wide = np.asarray(many, dtype=float)
    if isinstance(mechanism, Gaussian):
        return np.full(wide.shape, _normal(confidence) * deviation(mechanism))
    reach: NDArray[np.float64] = like_terms(wide, confidence) * deviation(mechanism)
    return reach


def like_terms(terms: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """The quantile, in standard deviations, of a sum of so many like Laplace noises.

    >>> like_terms([1, 1e9], 0.95).round(3).tolist()
    [2.118, 1.96]
    """
    quantiles: NDArray[np.float64] = np.interp(
        1 / np.maximum(np.asarray(terms, dtype=float), 1.0), *_table(confidence)
    )
    return quantiles


def worst_noises(confidence: float) -> float:
    """The same for any weighted sum of Laplace noises, whatever its weights, in its own standard deviations.

    It is the widest of all laws of like noises, from one noise to the normal law, and a hundredth more: by
    less than that do sums with unlike weights differ from their match.
    """
    return 1.01 * float(_table(confidence)[1].max())


def _normal(confidence: float) -> float:
    return -NormalDist().inv_cdf((1 - confidence) / 2)


@cache
def _table(confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Quantiles against one over the number of terms, rising; 0 is the normal law."""
    many, few = _quantiles(_MANY, confidence, _SHORT)[::-1], _quantiles(_FEW, confidence, _LONG)[::-1]
    one_over = 1 / np.concatenate([_MANY[::-1], _FEW[::-1]])
    return np.concatenate([[0.0], one_over]), np.concatenate([[_normal(confidence)], many, few])


def _quantiles(terms: NDArray[np.float64], confidence: float, steps: int) -> NDArray[np.float64]:
    """Where P[|X| <= x] is the confidence, for each number of terms; one term is Laplace's law.

    Newton's steps, from the law of one term. A step that leaves what is known of the place halves it instead.
    """
    alone = -math.log1p(-confidence) / math.sqrt(2)
    x = np.full(len(terms), alone)
    below, above = np.zeros(len(terms)), np.full(len(terms), 60.0)
    for _ in range(_STEPS):
        inside, density = _inside(x, terms, steps)
        below, above = np.where(inside < confidence, x, below), np.where(inside < confidence, above, x)
        with np.errstate(all="ignore"):
            near = x + (confidence - inside) / density
        last, x = x, np.where((near > below) & (near < above), near, (below + above) / 2)
        if np.abs(x - last).max() < _NEAR:
            break
    return np.where(terms == 1, alone, x)


def _inside(
    x: NDArray[np.float64], terms: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P[|X| <= x] for variance 1 (Gil-Pelaez 1951), and its slope: sums of the characteristic function,
    which is (1 + t^2 / 2k)^-k.

    A sum over the half-odd multiples of a step is exact but for the tails beyond pi / step, so it needs no
    finer grid than that.
    """
    step = np.pi / (x[:, None] + 40)
    t = (np.arange(steps) + 0.5) * step
    weights = 2 / np.pi * step * (1 + t**2 / (2 * terms[:, None])) ** -terms[:, None]
    angle = t * x[:, None]
    return (weights * np.sin(angle) / t).sum(axis=1), (weights * np.cos(angle)).sum(axis=1)


# Values and intervals to as many digits as the interval's width is worth, its ends outwards.
#
# Decimal rounding is Python's, which is exact: most numbers are rounded in arrays, where that gives the
# same, and the few for which floats may decide otherwise are rounded one by one.


_DIGITS = 2  # digits beside the first of a width
_POWERS, _LARGEST = 15, 2.0**40  # in steps of an exact power of ten, floats are off by less than 2^-12 here
_UNSURE = 2.0**-10  # of a step: whatever lies so near a tie is rounded by itself


def rounded_rows(value: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Each value and interval, to three digits of the interval's width."""
    ends = value.astype(float), low.astype(float), high.astype(float)
    in_blocks(lambda block: _round_block(*(each[block] for each in ends)), value.size)
    return ends


def _round_block(value: Floats, low: Floats, high: Floats) -> None:
    """The same in their place, for as many as a processor keeps at hand."""
    with np.errstate(invalid="ignore", over="ignore"):
        wide = high - low
        bounded = (wide > 0) & np.isfinite(wide)
        logs = np.log10(np.where(bounded, wide, 1.0))
        digits = _DIGITS - np.floor(logs)
        # near a power of ten its logarithm may fall on either side; of one that is exact it is exact
        near = np.rint(logs)
        clear = (np.abs(logs - near) > _UNSURE) | ((near >= 0) & (wide == 10.0**near) & (logs == near))
        sure = bounded & clear & (np.abs(digits) <= _POWERS)
        up, power = digits >= 0, 10.0 ** np.abs(np.where(sure, digits, 0.0))
        nearest = []
        for each in (value, low, high):
            steps = np.where(up, each * power, each / power)
            nearest.append(np.rint(steps))
            sure &= (np.abs(steps) < _LARGEST) & (np.abs(np.abs(steps - nearest[-1]) - 0.5) > _UNSURE)

        def back(steps: Floats) -> Floats:
            return np.where(up, steps / power, steps * power) + 0.0  # not -0.0

        below, above = back(nearest[1]), back(nearest[2])
        quick = (
            back(nearest[0]),
            np.where(below <= low, below, np.minimum(low, back(nearest[1] - 1))),
            np.where(above >= high, above, np.maximum(high, back(nearest[2] + 1))),
        )
    ends = value, low, high
    for place in np.flatnonzero(bounded & ~sure).tolist():
        row = rounded_row(float(value[place]), float(low[place]), float(high[place]))
        for each, number in zip(ends, row, strict=True):
            each[place] = number
    for each, fast in zip(ends, quick, strict=True):
        each[sure] = fast[sure]


def rounded_row(value: float, low: float, high: float) -> tuple[float, float, float]:
    """One value and its interval, by Python's own rounding."""
    if not (high > low and math.isfinite(high - low)):
        return value, low, high
    digits = _DIGITS - math.floor(math.log10(high - low))
    unit = 10.0**-digits
    below, above = round(low, digits), round(high, digits)
    return (
        round(value, digits) + 0.0,  # not -0.0
        # where a float has no more digits than these, a step may not be seen, and the end stays as it is
        (below if below <= low else min(low, round(below - unit, digits))) + 0.0,
        (above if above >= high else max(high, round(above + unit, digits))) + 0.0,
    )


# A sum of Laplace noises on a grid is taken for one on a line, and Gaussian noise on a grid for a normal
# number, from so many grid steps of noise on: the survival functions differ by a relative 1/(24 s^2), which
# is 1/1,536 at 8 (Euler and Maclaurin, docs/guarantees/row_selection.md).
_LEAST_STEPS = 8
# P[Z >= z] of the sum of k like Laplace noises of scale 1 is e^-z times this polynomial for z >= 0: partial
# fractions of (1 - t^2)^-k, or k - 1 convolutions. Lowest power first, k = 1, 2, 3.
_TAILS = ((1 / 2,), (1 / 2, 1 / 4), (1 / 2, 5 / 16, 1 / 16))
# Each halving makes an interval of at most 2^52 steps half as long: after 100 no float lies between its ends.
_HALVINGS = 100


def interval_above(
    values: Floats, threshold: float, noise: LinearNoise, confidence: float, floor: float | None
) -> tuple[Floats, Floats]:
    """Return the ends of intervals of what was shown because its noisy value is at least the threshold.

    Of all true numbers m, those are kept at which neither a value as large nor one as small, among the values
    that are shown, has a probability of (1 - confidence) / 2 or less. The distribution of the noise is
    log-concave, so both tails are monotone in m, cut off or not, and the ends are found by halving. An
    interval is widened to its own value.

    Args:
        values: noisy values, of which those below the threshold are not shown: theirs are intervals of the
            value at the threshold.
        threshold: the least value that is shown.
        noise: the noise of each value.
        confidence: of the interval, given that the value is shown.
        floor: what no true number is below, if that is known. Without it an end may be minus infinity.

    Returns:
        Lower and upper ends.
    """
    step, size, alpha = noise.grid, noise.size, (1 - confidence) / 2
    log_survival, log_alpha = noise.log_survival(), math.log(alpha)
    # The least of the values that can be shown: values lie on the grid, and so does a threshold between two.
    least = math.ceil(threshold / step - 1e-9) * step if step else threshold
    shown = np.maximum(values, least)
    # Above m = x the survival of Laplace noise at the value tends to 1 within 40 scales, and below
    # m = threshold it is a constant share of that at the threshold: no end lies further off. The one of
    # normal noise falls like exp(-(x - t)(t - m) / sigma^2), so that it has an end at every x > t.
    reach = 40 * size + 2 * step
    # It is not looked for beyond 10^5 sigma, where floats tell no two survival functions apart.
    near = np.maximum(shown - least, 1e-5 * size)
    far = reach + (np.minimum(2 * size**2 * math.log(2 / alpha) / near, 1e5 * size) if noise.normal else 0.0)

    def too_large(m: Floats) -> NDArray[np.bool_]:
        """Whether a value as large is too unlikely at m."""
        tail: NDArray[np.bool_] = log_survival(shown - m) - log_survival(least - m) <= log_alpha
        return tail

    def too_small(m: Floats) -> NDArray[np.bool_]:
        """Whether a value as small is too unlikely at m."""
        beyond = log_survival(shown + step - m) - log_survival(least - m)
        tail: NDArray[np.bool_] = -np.expm1(np.minimum(beyond, 0.0)) <= alpha
        return tail

    lowest: Floats = np.asarray(least - far) if floor is None else np.full(shown.shape, floor)
    lowest = np.broadcast_to(lowest, shown.shape)
    lower = _selection_edge(shown, np.minimum(lowest, shown), too_large)
    if floor is None:
        lower = np.where(too_large(lowest), lower, -np.inf)
    upper = _selection_edge(shown, shown + reach, too_small)
    # reals are rounded to a coarse grid before noise is added, which moves them by half a step
    coarse = step / 2 if getattr(noise.mechanism, "granularity", None) is not None else 0.0
    lower, upper = lower - coarse, upper + coarse
    if floor is not None:
        lower = np.maximum(lower, floor)
    return np.minimum(lower, values), np.maximum(upper, values)


def _selection_edge(
    inside: Floats, outside: Floats, refused: Callable[[Floats], NDArray[np.bool_]]
) -> Floats:
    """Return where a monotone condition begins to hold on the way from one point to another.

    The far point where it does not hold there, and the near one where it holds everywhere.
    """
    near, far = inside.copy(), outside.copy()
    whole = ~refused(far)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        out = refused(middle)
        near, far = np.where(out, near, middle), np.where(out, middle, far)
    return np.where(whole, outside, far)
