"""Tilted masses of a sum at the places of a window, by transforms, with what each of them may err."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from sourdine.core.distributions import Floats

ULP = 2.0**-52
_FLOATS = 700.0  # e^-700 is a float
_NOTHING = 80.0  # a frequency smaller than e^-80 is left out, and charged
_FEW = 16  # how many places there must be for each frequency to work with frequencies alone
_LONE = 0.9  # the share of a law at one place from which that is set apart


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


class Masses(Protocol):
    """Tilted masses at the places of a window, each with what it may err added or taken away."""

    def weighed(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Sums of the masses from these places up, weighed by e^{-order step t} and e^{-(order+1) step t}."""


@dataclass(frozen=True)
class MassTable:
    """Masses place by place: both sums at each of them."""

    first: Floats
    second: Floats

    @classmethod
    def of(cls, masses: Floats, order: float, step: float, *, pessimistic: bool) -> "MassTable":
        first = np.maximum(masses, 0) * _decay(order * step, len(masses))
        second = first * _decay(step, len(masses))
        if not pessimistic:  # where the second sums underflow, nothing is sure: leave that mass out
            first[math.floor(_FLOATS / ((order + 1) * step)) :] = 0.0
        grow = math.exp((1 if pessimistic else -1) * 4 * len(masses) * ULP)
        return cls(_sums_from_top(first) * grow, _sums_from_top(second) / grow)

    def weighed(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return self.first[places], self.second[places]


@dataclass(frozen=True)
class _Weights:
    """Factors of two geometric series: with r = e^-rate and z = e^{2 pi i k/N}, factors over 1 - z r."""

    rates: Floats
    real: Floats
    imaginary: Floats
    rounding: Floats  # the rounding unit of sums of factors, with its sign
    ends: Floats  # r^N
    errors: Floats  # what the masses may err, summed without end, with the sign to charge it by

    @classmethod
    def of(cls, series: "_Series") -> "_Weights":
        rates = np.array([[series.rate], [series.rate + series.step]])
        factors = series.factors / -np.expm1(2j * math.pi / series.length * series.frequencies - rates)
        units = math.copysign(ULP, series.error) * np.array([[1.0], [-1.0]])
        rounding = units * np.abs(factors).sum(axis=1, keepdims=True)
        ends, errors = np.exp(-rates * series.length), series.error / -np.expm1(-rates)
        return cls(rates, factors.real.copy(), factors.imag.copy(), rounding, ends, errors)

    def sums(self, places: NDArray[np.int64], cosines: Floats, sines: Floats) -> Floats:
        """The sum over t from j to N - 1 of (z r)^t is ((z r)^j - r^N)/(1 - z r), in a row for each rate.

        Real parts are summed without the threads of a linear algebra library, which take longer to start.
        """
        falls = self.rates * places
        here = np.exp(-falls)
        units = 64 + self.real.shape[1] + falls  # of the terms, of their sum and of `here`
        turned = np.einsum("wk,kj->wj", self.real, cosines)
        turned -= np.einsum("wk,kj->wj", self.imaginary, sines)
        total = here * (turned + self.rounding * units)
        total -= self.ends * self.real.sum(axis=1, keepdims=True)
        sums: Floats = total + self.errors * (here - self.ends)
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
    def _weights(self) -> _Weights:
        return _Weights.of(self)

    def weighed(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        angles = 2 * math.pi / self.length * (self.frequencies[:, None] * places % self.length)
        sums = self._weights.sums(
            places, np.cos(angles), np.sin(angles)
        )  # no complex exponential: it is slower
        deep = (self.rate + self.step) * places > _FLOATS  # the second sum may have been lost to underflow
        if deep.any():
            sums[0 if self.error < 0 else 1 :, deep] = 0.0
        return sums[0], sums[1]


@dataclass(frozen=True)
class TiltedWindow:
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
        values = self.values[frequencies]
        if self.rest is None:
            return np.log(values + 1e-300), 1.0
        real, imaginary = values.real, values.imag
        size = 0.5 * np.log1p(np.maximum(2 * real + real**2 + imaginary**2, -1 + 1e-300))
        return size + 1j * np.arctan2(imaginary, 1 + real), self.rest + np.abs(values)


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
    values = scipy.fft.rfft(folded)
    if not lone:
        return _Spectrum(values, np.abs(values) + factor * math.sqrt(length) * norm, norm), centre
    rest = float(masses.sum())
    values -= rest
    size = np.abs(1 + values) + factor * math.sqrt(length) * norm + 4 * ULP * rest
    return _Spectrum(values, size, norm, rest), centre


def masses_of_sum(
    parts: list[Component], tilted: list[tuple[float, Floats, float]], window: TiltedWindow
) -> Masses:
    """Masses of the tilted sum at the places of a window, with what any of them may err.

    A transform of size N errs by at most c ||x|| in the 2-norm, c = 16 u log2 N (Higham 2002, theorem 24.2,
    doubled for mixed radices). The error of a power is at most count times that of the base times the
    largest modulus to the count less one; Cauchy-Schwarz gives the effect on any place.
    """
    length = window.length
    factor = 16 * (ULP / 2) * math.log2(length)
    offsets = 0
    spectra: list[_Spectrum] = []
    heavy = np.ones(length // 2 + 1, dtype=np.bool_)
    for part, (_, masses, mean) in zip(parts, tilted, strict=True):
        spectrum, centre = _spectrum(part.places, masses, round(mean / window.step), length, factor)
        heavy &= spectrum.size > math.exp(-_NOTHING / part.count)
        spectra.append(spectrum)
        offsets += part.count * centre
    frequencies = np.flatnonzero(heavy)
    logs = [np.log(spectrum.size[frequencies]) for spectrum in spectra]
    norms = [spectrum.norm for spectrum in spectra]
    log_size, angle_error = np.zeros((2, len(frequencies)))
    exponent = np.zeros(len(frequencies), dtype=complex)
    for part, spectrum, log in zip(parts, spectra, logs, strict=True):
        one, unit = spectrum.log(frequencies)
        exponent += part.count * one
        log_size += part.count * log
        angle_error += 8 * ULP * part.count * (unit + np.abs(one))
    size = np.exp(log_size)
    error = 2 / length * float(np.sum(size * angle_error)) + math.exp(-_NOTHING)  # half of them are kept
    for part, log, norm in zip(parts, logs, norms, strict=True):
        error += part.count * factor * norm * 2 / math.sqrt(length) * _norm(np.exp(log_size - log))
    error = (error + factor * 2 / math.sqrt(length) * _norm(size)) * (1 if window.pessimistic else -1)
    if len(frequencies) <= length // _FEW:
        return _series(frequencies, np.exp(exponent), window, offsets, error)
    product = np.zeros(len(heavy), dtype=complex)
    product[frequencies] = np.exp(exponent)
    masses = np.roll(scipy.fft.irfft(product, length), offsets - window.start)
    return MassTable.of(masses + error, window.order, window.step, pessimistic=window.pessimistic)


def _series(
    frequencies: NDArray[np.int64],
    spectrum: NDArray[np.complex128],
    window: TiltedWindow,
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


def _decay(rate: float, length: int) -> Floats:
    """e^{-rate * i} for i = 0 .. length - 1, as an outer product of two short ones."""
    side = 1 << (length.bit_length() // 2)
    rows = np.exp(-rate * side * np.arange(-(-length // side)))
    return np.outer(rows, np.exp(-rate * np.arange(side))).ravel()[:length]


def _sums_from_top(values: Floats) -> Floats:
    return np.cumsum(values[::-1])[::-1]
