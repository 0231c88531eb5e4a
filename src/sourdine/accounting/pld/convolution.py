"""The law of a sum of many independent privacy losses, by one tilted Fourier transform, with its error.

Each law is given by masses at places of a common lattice. Tilting by e^{order * loss} moves the bulk of the
sum to where delta is decided, so that a double has enough digits; Chernoff bounds say what lies outside a
window; folding modulo that window makes the transform short. What is left out, what is folded on top, and
what floats may err are added to one end of the answer and taken from the other.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from sourdine.core.distributions import Floats

_ULP = 2.0**-52
_OUTSIDE = 1e-8  # what may lie outside the window, or be folded into it, beside what decides delta
_FLOATS = 700.0  # e^-700 is a float
_DEEPEST = 600.0  # the logarithm by which weights may fall over a window
_NOTHING = 80.0  # a frequency smaller than e^-80 is left out, and charged
_PIECES = np.linspace(0.0, 1.0, 17)
_CUTS = np.arange(64) / 64
_RATES = np.geomspace(0.02, 2.0, 20)
_FEW_ATOMS = np.geomspace(1, 40, 8)
_TRIES = 6
_LONGEST = 1 << 24
_FEW = 16  # how many places there must be for each frequency to work with frequencies alone
_LONE = 0.9  # the share of a law at one place from which that is set apart
_LITTLE = 1e-4  # the share of delta that may be folded into a window worth keeping


@dataclass(frozen=True)
class Component:
    """One loss on the lattice, repeated: masses under P at places, and at infinity.

    The loss at a place is so many steps above `origin`, which each loss may have for itself.
    """

    places: NDArray[np.int64]
    masses: Floats
    infinite: float
    count: int
    origin: float = 0.0


@dataclass(frozen=True)
class Tails:
    """Chernoff bounds on how far the tilted sum lies from its mean: log E e^{rate (S - mean)}, both ways."""

    mean: float
    rates: Floats
    up: Floats
    down: Floats

    def above(self, place: float) -> float:
        """At least the tilted mass from a place on."""
        return math.exp(min(0.0, float(np.min(self.up - self.rates * (place - self.mean)))))

    def below(self, places: Floats) -> Floats:
        """At least the tilted mass up to each place."""
        exponents = self.down[:, None] - np.outer(self.rates, self.mean - places)
        masses: Floats = np.exp(np.minimum(exponents.min(axis=0), 0.0))
        return masses


class Masses(Protocol):
    """Tilted masses at the places of a window, each with what it may err added or taken away."""

    def weighed(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Sums of the masses from these places up, weighed by e^{-order step t} and e^{-(order+1) step t}."""


@dataclass(frozen=True)
class _Table:
    """Masses place by place: both sums at each of them."""

    first: Floats
    second: Floats

    @classmethod
    def of(cls, masses: Floats, order: float, step: float, *, pessimistic: bool) -> "_Table":
        first = np.maximum(masses, 0) * _decay(order * step, len(masses))
        second = first * _decay(step, len(masses))
        if not pessimistic:  # where the second sums underflow, nothing is sure: leave that mass out
            first[math.floor(_FLOATS / ((order + 1) * step)) :] = 0.0
        grow = math.exp((1 if pessimistic else -1) * 4 * len(masses) * _ULP)
        return cls(_sums_from_top(first) * grow, _sums_from_top(second) / grow)

    def weighed(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return self.first[places], self.second[places]


@dataclass(frozen=True)
class _Weight:
    """Factors of geometric series: with r = e^-rate and z = e^{2 pi i k/N}, factors over 1 - z r."""

    rate: float
    factors: NDArray[np.complex128]
    length: int
    error: float  # what each mass may err, with the sign to charge it by
    rounding: float  # the rounding unit of sums of factors, with its sign

    @classmethod
    def of(cls, series: "_Series", rate: float, side: int) -> "_Weight":
        turns = 2j * math.pi / series.length * series.frequencies
        factors = series.factors / -np.expm1(turns - rate)
        rounding = math.copysign(_ULP, side * series.error) * float(np.sum(np.abs(factors)))
        return cls(rate, factors, series.length, series.error, rounding)

    def sums(self, places: NDArray[np.int64], turned: NDArray[np.complex128]) -> Floats:
        """The sum over t from j to N - 1 of (z r)^t is ((z r)^j - r^N)/(1 - z r)."""
        here, end = np.exp(-self.rate * places), math.exp(-self.rate * self.length)
        units = 64 + len(self.factors) + self.rate * places  # of the terms, of their sum and of `here`
        found = here * ((self.factors @ turned).real + self.rounding * units)
        found -= end * float(self.factors.sum().real)
        sums: Floats = found + self.error * (here - end) / -math.expm1(-self.rate)
        return sums


@dataclass(frozen=True)
class _Series:
    """Masses by their few frequencies: sums of geometric series, without looking at any place."""

    frequencies: NDArray[np.int64]
    factors: NDArray[np.complex128]
    length: int
    rate: float  # order * step
    step: float
    error: float

    @cached_property
    def _weights(self) -> tuple[_Weight, _Weight]:
        return _Weight.of(self, self.rate, 1), _Weight.of(self, self.rate + self.step, -1)

    def weighed(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        turned = np.exp(2j * math.pi / self.length * (np.outer(self.frequencies, places) % self.length))
        first, second = (weight.sums(places, turned) for weight in self._weights)
        deep = (self.rate + self.step) * places > _FLOATS  # the second sum may have been lost to underflow
        return np.where(deep & (self.error < 0), 0.0, first), np.where(deep, 0.0, second)


@dataclass(frozen=True)
class LossSum:
    """One end of the profile of a sum of losses, at the points of a window.

    `masses` gives, from each point up, the sums of e^{-order (s - start)} and of e^{-(order + 1)(s - start)}
    times the tilted masses; `scale` is the logarithm of the factor both lack, and `grow` what they may err.
    """

    start: float
    step: float
    length: int
    order: float
    scale: float
    masses: Masses
    grow: float
    beyond: float  # delta that lies at infinity and, in the upper end, above the window
    tails: Tails
    pessimistic: bool

    def delta(self, epsilon: float) -> float:
        """delta(epsilon), or the bound on it that this end stands for."""
        found = self._inside(epsilon) + self.beyond
        found += self._below(epsilon) if self.pessimistic else -self._folded(epsilon)
        return min(1.0, max(0.0, found))

    def epsilon(self, delta: float) -> float:
        """Where the profile crosses delta, or a bound on it."""
        if self.pessimistic:
            last = self.start + (self.length - 1) * self.step
            return math.inf if self.delta(last) > delta else self._crossing(delta)
        if delta < self.beyond:
            return math.inf
        epsilon = self._crossing(delta)
        for _ in range(_TRIES):  # what is folded grows downwards: give way until it is paid for
            if epsilon <= self.start:
                return -math.inf
            folded = self._folded(epsilon)
            short = delta - self._inside(epsilon) - self.beyond + folded
            if short <= 0:
                return epsilon
            epsilon -= (2 * short + 4 * _ULP * delta) / self._slope(epsilon)
        return -math.inf

    def holds(self, epsilon: float) -> bool:
        """Whether the window is long enough to tell what happens at an epsilon."""
        if not self.start < epsilon < math.inf:
            return False
        return self._folded(epsilon) <= _LITTLE * self._inside(epsilon)

    def _crossing(self, delta: float) -> float:
        """Where what lies inside and at infinity falls to delta; the start if it does so before."""
        places = np.array([0, self.length - 1])
        if self._inside(self.start) + self.beyond <= delta:
            return self.start
        while places[1] - places[0] > 1:
            few = _CUTS[:: -(-64 // int(places[1] - places[0]))]
            places = np.append((places[0] + (places[1] - places[0]) * few).astype(np.int64), places[1])
            above = np.flatnonzero(
                self._profile(places[1:-1], places[1:-1] * self.step) + self.beyond > delta
            )
            last = int(above[-1]) + 1 if len(above) else 0
            places = places[last : last + 2]
        first, second = (float(sums[0]) for sums in self._weighed(places[1:]))
        gap = first - (delta - self.beyond) * math.exp(min(700.0, -self.scale))
        low, high = (float(place) * self.step for place in places)
        if not (gap > 0 and second > 0):  # too small for floats to say where in this step
            return self.start + (high if self.pessimistic else low)
        return self.start + min(max(math.log(gap / second), low), high)

    def _inside(self, epsilon: float) -> float:
        """What the masses of the window say."""
        j = max(0, math.ceil((epsilon - self.start) / self.step))
        if j >= self.length:
            return 0.0
        return float(self._profile(np.array([j]), np.array([epsilon - self.start]))[0])

    def _slope(self, epsilon: float) -> float:
        """How fast the profile falls, at least, where it is not flat."""
        place = np.array([min(math.ceil((epsilon - self.start) / self.step), self.length - 1)])
        second = float(self._weighed(place)[1][0])
        return max(second * math.exp(min(700.0, self.scale + epsilon - self.start)), 1e-300)

    def _profile(self, places: NDArray[np.int64], heights: Floats) -> Floats:
        """delta at heights above the start, from the masses at these places and above."""
        first, second = self._weighed(places)
        excess = np.maximum(first - second * np.exp(np.minimum(heights, 700.0)), 0.0)
        return excess * math.exp(min(700.0, self.scale))

    def _weighed(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        first, second = self.masses.weighed(places)
        grow = self.grow if self.pessimistic else 1 / self.grow
        return first * grow, second / grow

    def _below(self, epsilon: float) -> float:
        """What the masses below the window may add, at an epsilon below it too."""
        if epsilon >= self.start:
            return 0.0
        return float(self.tails.below(np.array([self.start]))[0] * self._weights(epsilon, np.zeros(1))[0])

    def _folded(self, epsilon: float) -> float:
        """What masses from outside may have added by being folded into the window above epsilon.

        What lies t above the top is found t above the start, so it counts only where that is above epsilon.
        What lies t below the start is found t below the top, where it weighs little if t is small, and is
        rare if t is large: piece by piece, the mass from a lower t times the weight at the higher one.
        """
        window = self.length * self.step
        top = self.start + window
        high = self.tails.above(top + max(epsilon - self.start, 0.0) - self.step)
        weight = self._weights(epsilon, np.array([max(self.start - epsilon, 0.0)]))[0]
        room = min(max(top - epsilon, 0.0), window)
        low = self.tails.below(self.start - room * _PIECES)
        weights = self._weights(epsilon, room * (1 - np.append(_PIECES[1:], 1.0)))
        return float(high * weight + low @ weights)

    def _weights(self, epsilon: float, distances: Floats) -> Floats:
        """What tilted mass counts for in delta, at most, from these distances above epsilon on."""
        peak = self.order * math.log(self.order) - (1 + self.order) * math.log1p(self.order)
        exponents = np.minimum(peak, -self.order * distances)
        weights: Floats = np.exp(
            np.minimum(self.scale - self.order * (epsilon - self.start) + exponents, 700.0)
        )
        return weights


def convolve(
    parts: list[Component], step: float, order: float, *, pessimistic: bool, spare: float | None = None
) -> LossSum:
    """The sum of all parts, tilted by the order; every error is charged to the side asked for.

    Without `spare` the window holds nearly all of the tilted sum. With it the window is about half as long
    and does for one epsilon, where the tilted mass is no less than e^-spare.
    """
    tilted = [_tilt(part, step, order) for part in parts]
    origin = sum(part.count * part.origin for part in parts)
    tails = _tails(parts, tilted, step, order)
    weighing = 0.0 if spare is None else order
    up, down = reach(tails.rates, tails.up, tails.down, weighing, spare or 0.0)
    growth = sum(part.count * _mass_error(part, step, order) for part in parts)
    ever_infinite = ever([(part.infinite, part.count) for part in parts])
    if growth > 1 or (up + down) / step > _LONGEST:
        return _unknown(tails, step, order, 1.0 if pessimistic else ever_infinite, pessimistic=pessimistic)
    length = _length(math.ceil(float(up + down) / step) + 6)
    if order * step * length > _DEEPEST:  # what the top of the window weighs would be lost to underflow
        return convolve(parts, step, 0.8 * _DEEPEST / (step * length), pessimistic=pessimistic, spare=spare)
    start = math.floor((tails.mean - float(down)) / step) - 2
    masses = _masses(parts, tilted, _Window(start, length, step, order, pessimistic))
    cumulant = sum(part.count * cumulant for part, (cumulant, _, _) in zip(parts, tilted, strict=True))
    scale = cumulant - order * start * step
    growth += 4 * _ULP * (1 + order * abs(start) * step)  # what the scale may err
    beyond = ever_infinite
    if pessimistic:
        weight = math.exp(min(700.0, scale - order * step * length))
        beyond += tails.above((start + length - 1) * step) * weight
    return LossSum(
        start=start * step + origin,
        step=step,
        length=length,
        order=order,
        scale=scale,
        masses=masses,
        grow=math.exp(growth),
        beyond=beyond,
        tails=replace(tails, mean=tails.mean + origin),
        pessimistic=pessimistic,
    )


def _unknown(tails: Tails, step: float, order: float, beyond: float, *, pessimistic: bool) -> LossSum:
    """What is left where floats tell nothing of a sum: only what lies at infinity, or everything does."""
    nothing = _Table(np.zeros(1), np.zeros(1))
    return LossSum(0.0, step, 1, order, 0.0, nothing, 1.0, beyond, tails, pessimistic)


def ever(chances: list[tuple[float, int]]) -> float:
    """The chance that something happens at least once, from its chance each time and the number of times."""
    if any(chance >= 1 for chance, _ in chances):
        return 1.0
    return max(0.0, -math.expm1(sum(count * math.log1p(-chance) for chance, count in chances)))


def _log_sums(masses: Floats, exponents: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        weighted = exponents + np.log(masses)
    top = weighted.max(axis=1, keepdims=True)
    sums: Floats = np.log(np.sum(np.exp(weighted - top), axis=1)) + top[:, 0]
    return sums


def _tilt(part: Component, step: float, order: float) -> tuple[float, Floats, float]:
    """The cumulant at the order, the tilted masses (of sum 1) and their mean loss."""
    losses = part.places * step
    top = order * float(losses[-1])
    masses = part.masses * np.exp(order * losses - top)
    total = float(masses.sum())
    masses /= total
    return math.log(total) + top, masses, float(masses @ losses)


def _mass_error(part: Component, step: float, order: float) -> float:
    """How far a tilted mass and the cumulant may err together, relative to it."""
    farthest = max(abs(int(part.places[0])), abs(int(part.places[-1]))) * step
    return 4 * _ULP * (8 + order * farthest)


def _tails(
    parts: list[Component], tilted: list[tuple[float, Floats, float]], step: float, order: float
) -> Tails:
    """Chernoff bounds at rates that fit the spread of the tilted sum."""
    variance = sum(
        part.count * float(masses @ (part.places * step - mean) ** 2)
        for part, (_, masses, mean) in zip(parts, tilted, strict=True)
    )
    rates = math.sqrt(2 * math.log(1 / _OUTSIDE) / max(variance, step**2)) * _RATES
    span = max(int(part.places[-1] - part.places[0]) for part in parts) * step
    if rates[0] * span > 20:  # almost only one atom is left: smaller rates tell how rare the others are
        rates = np.concatenate([_FEW_ATOMS / span, order * np.array([0.3, 0.6, 0.9]), rates])
    up, down = np.zeros(len(rates)), np.zeros(len(rates))
    for part, (_, masses, mean) in zip(parts, tilted, strict=True):
        exponents = np.outer(rates, part.places * step - mean)
        rounding = part.count * (8 * _ULP * (8 + rates * span) + _mass_error(part, step, order))
        up += part.count * _log_sums(masses, exponents) + rounding
        down += part.count * _log_sums(masses, -exponents) + rounding
    mean = sum(part.count * mean for part, (_, _, mean) in zip(parts, tilted, strict=True))
    return Tails(mean, rates, up, down)


def reach(
    rates: Floats, up: Floats, down: Floats, order: Floats | float, spare: Floats | float
) -> tuple[Floats, Floats]:
    """How far a window reaches above and below the mean, from Chernoff bounds along the last axis.

    At order 0, no more than _OUTSIDE of the tilted mass lies outside on either side. At any other, tilted
    mass at a distance r above the mean weighs e^{-order r}, and no more than 1 below; so weighed, what lies
    above the top and what is folded to where it is found come to about _OUTSIDE e^-spare at most.
    """
    need = np.asarray(math.log(1 / _OUTSIDE) + spare)[..., None]
    order = np.asarray(order)[..., None]
    high = np.min((up + need) / (rates + order), axis=-1)
    weighed = np.minimum(rates, order) * high[..., None]
    low = np.min((down + need - weighed) / rates, axis=-1)
    lap = np.min((up + need) / rates, axis=-1) - high  # from above the top back to the mean
    near = np.min((down + 2) / rates, axis=-1)
    return high, np.maximum(low, np.where(order[..., 0] > 0, np.maximum(lap, near), low))


@dataclass(frozen=True)
class _Window:
    """Where the masses of a tilted sum are wanted, and to which side they may err."""

    start: int
    length: int
    step: float
    order: float
    pessimistic: bool


@dataclass(frozen=True)
class _Spectrum:
    """The transform of the masses of one loss, and the norm of what was transformed.

    A loss that is nearly always the same has a spectrum near 1, of which its count makes a power: only what
    it differs from 1 by is kept, and errs; `rest` is then the mass elsewhere.
    """

    values: NDArray[np.complex128]
    size: Floats
    norm: float
    rest: float | None = None

    def log(self, frequencies: NDArray[np.int64]) -> tuple[NDArray[np.complex128], Floats | float]:
        """Its logarithm, and the size of the numbers that were rounded on the way."""
        held = self.values[frequencies]
        if self.rest is None:
            return np.log(held + 1e-300), 1.0
        real, imaginary = held.real, held.imag
        size = 0.5 * np.log1p(np.maximum(2 * real + real**2 + imaginary**2, -1 + 1e-300))
        return size + 1j * np.arctan2(imaginary, 1 + real), self.rest + np.abs(held)


def _spectrum(
    places: NDArray[np.int64], masses: Floats, centre: int, length: int, factor: float
) -> tuple[_Spectrum, int]:
    """The spectrum of masses of sum 1, and the place that it is counted from."""
    top = int(np.argmax(masses))
    lone = bool(masses[top] > _LONE)
    if lone:
        centre, masses = int(places[top]), masses.copy()
        masses[top] = 0.0
    at = (places - centre) % length
    folded = np.bincount(at, masses, minlength=length)
    norm = math.sqrt(float(np.sum(masses * folded[at])))
    values = fft.rfft(folded)
    if not lone:
        return _Spectrum(values, np.abs(values) + factor * math.sqrt(length) * norm, norm), centre
    rest = float(masses.sum())
    values -= rest
    size = np.abs(1 + values) + factor * math.sqrt(length) * norm + 4 * _ULP * rest
    return _Spectrum(values, size, norm, rest), centre


def _masses(parts: list[Component], tilted: list[tuple[float, Floats, float]], window: _Window) -> Masses:
    """Masses of the tilted sum at the places of a window, with what any of them may err.

    A transform of size N errs by at most c ||x|| in the 2-norm, c = 16 u log2 N (Higham 2002, theorem 24.2,
    doubled for mixed radices). The error of a power is at most count times that of the base times the
    largest modulus to the count less one; Cauchy-Schwarz gives the effect on any place.
    """
    length = window.length
    factor = 16 * (_ULP / 2) * math.log2(length)
    offsets = 0
    spectra: list[_Spectrum] = []
    kept = np.ones(length // 2 + 1, dtype=np.bool_)
    for part, (_, masses, mean) in zip(parts, tilted, strict=True):
        spectrum, centre = _spectrum(part.places, masses, round(mean / window.step), length, factor)
        kept &= spectrum.size > math.exp(-_NOTHING / part.count)
        spectra.append(spectrum)
        offsets += part.count * centre
    frequencies = np.flatnonzero(kept)
    logs = [np.log(spectrum.size[frequencies]) for spectrum in spectra]
    norms = [spectrum.norm for spectrum in spectra]
    log_size, angle_error = np.zeros((2, len(frequencies)))
    exponent = np.zeros(len(frequencies), dtype=complex)
    for part, spectrum, log in zip(parts, spectra, logs, strict=True):
        one, unit = spectrum.log(frequencies)
        exponent += part.count * one
        log_size += part.count * log
        angle_error += 8 * _ULP * part.count * (unit + np.abs(one))
    size = np.exp(log_size)
    error = 2 / length * float(np.sum(size * angle_error)) + math.exp(-_NOTHING)  # half of them are kept
    for part, log, norm in zip(parts, logs, norms, strict=True):
        error += part.count * factor * norm * 2 / math.sqrt(length) * _norm(np.exp(log_size - log))
    error = (error + factor * 2 / math.sqrt(length) * _norm(size)) * (1 if window.pessimistic else -1)
    if len(frequencies) <= length // _FEW:
        return _series(frequencies, np.exp(exponent), window, offsets, error)
    product = np.zeros(len(kept), dtype=complex)
    product[frequencies] = np.exp(exponent)
    masses = np.roll(fft.irfft(product, length), offsets - window.start)
    return _Table.of(masses + error, window.order, window.step, pessimistic=window.pessimistic)


def _series(
    frequencies: NDArray[np.int64],
    spectrum: NDArray[np.complex128],
    window: _Window,
    offset: int,
    error: float,
) -> _Series:
    """The masses counted from the start of the window; a frequency and its negative share one factor."""
    length = window.length
    alone = (frequencies == 0) | (2 * frequencies == length)
    turned = np.exp(2j * math.pi / length * (frequencies * ((window.start - offset) % length) % length))
    factors = spectrum * turned * np.where(alone, 1.0, 2.0) / length
    return _Series(frequencies, factors, length, window.order * window.step, window.step, error)


def _norm(values: Floats) -> float:
    """The Euclidean norm, without the threads of a linear algebra library."""
    return math.sqrt(float(np.sum(values * values)))


def _length(least: int) -> int:
    """A quick length for the transform: 8, 9, 10 or 12 times a power of two."""
    power = 1 << max(0, (least - 1).bit_length() - 4)
    return next(power * m for m in (8, 9, 10, 12, 16) if power * m >= least)


def _decay(rate: float, length: int) -> Floats:
    """e^{-rate * i} for i = 0 .. length - 1, as an outer product of two short ones."""
    side = 1 << (length.bit_length() // 2)
    rows = np.exp(-rate * side * np.arange(-(-length // side)))
    return np.outer(rows, np.exp(-rate * np.arange(side))).ravel()[:length]


def _sums_from_top(values: Floats) -> Floats:
    return np.cumsum(values[::-1])[::-1]
