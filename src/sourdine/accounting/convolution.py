"""The law of a sum of many independent privacy losses, by one tilted Fourier transform, with its error.

Each law is given by masses at places of a common lattice. Tilting by e^{order * loss} moves the bulk of the
sum to where delta is decided, so that a double has enough digits; a Chernoff bound says which window holds
all but a known mass; folding modulo that window makes the transform short. What is left out, what is folded
on top, and what floats may err are added to one end of the answer and taken from the other.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from sourdine.core.laws import Floats

_ULP = 2.0**-52
_OUTSIDE = 1e-11  # tilted mass that may lie outside the window on either side
_SPARE = math.log(30)


@dataclass(frozen=True)
class Part:
    """One loss on the lattice, repeated: masses under P at places, and at infinity."""

    places: NDArray[np.int64]
    masses: Floats
    infinite: float
    count: int


@dataclass(frozen=True)
class Sum:
    """The profile of a sum of losses, as a bracket of delta at the points of a window.

    `scale` is the logarithm of the factor that all tilted sums lack.
    """

    start: float
    step: float
    order: float
    scale: float
    infinite: float
    heavier: tuple[Floats, Floats]  # sums from each point up of e^{-order s} and e^{-(order+1) s} masses
    lighter: tuple[Floats, Floats]
    top: float
    folded: float

    def delta_above(self, epsilon: float) -> float:
        """At least delta(epsilon)."""
        return min(1.0, self.infinite + self.top + self._value(self.heavier, epsilon))

    def delta_below(self, epsilon: float) -> float:
        """At most delta(epsilon)."""
        return max(0.0, self._value(self.lighter, epsilon) - self._folded(epsilon))

    def epsilon_above(self, delta: float) -> float:
        """At least the smallest epsilon with delta(epsilon) <= delta."""
        target = delta - self.infinite - self.top
        if target <= 0:
            return math.inf
        return self._solve(self.heavier, target, fold=False)

    def epsilon_below(self, delta: float) -> float:
        """At most the smallest epsilon with delta(epsilon) <= delta."""
        return self._solve(self.lighter, delta, fold=True)

    def _folded(self, epsilon: float) -> float:
        """What mass from outside, folded anywhere into the window, may have added."""
        peak = self.order * math.log(self.order) - (1 + self.order) * math.log1p(self.order)
        return self.folded * math.exp(min(700.0, self.scale - self.order * (epsilon - self.start) + peak))

    def _value(self, sums: tuple[Floats, Floats], epsilon: float) -> float:
        j = max(0, math.ceil((epsilon - self.start) / self.step))
        if j >= len(sums[0]):
            return 0.0
        value = sums[0][j] - sums[1][j] * math.exp(min(700.0, epsilon - self.start))
        return max(0.0, float(value)) * math.exp(min(700.0, self.scale))

    def _solve(self, sums: tuple[Floats, Floats], delta: float, *, fold: bool) -> float:
        """Where the profile crosses delta: a search over the window, then the solution inside one step."""

        def at(j: int) -> float:
            value = self._value(sums, self.start + j * self.step)
            return value - self._folded(self.start + j * self.step) if fold else value

        low, high = 0, len(sums[0]) - 1
        if at(low) <= delta:
            return -math.inf if fold else self.start
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle) <= delta else (middle, high)
        if fold:
            delta += self._folded(self.start + low * self.step)
        first, second = float(sums[0][high]), float(sums[1][high])
        gap = first - delta * math.exp(-self.scale)
        inside = self.start + math.log(gap / second) if gap > 0 and second > 0 else -math.inf
        floor, ceiling = self.start + low * self.step, self.start + high * self.step
        return min(max(inside, floor), ceiling)


def convolve(parts: list[Part], step: float, order: float) -> Sum:
    """The sum of all parts, tilted by the order."""
    tilted = [_tilt(part, step, order) for part in parts]
    mean = sum(part.count * mean for part, (_, _, mean) in zip(parts, tilted, strict=True))
    up, down = (_reach(parts, tilted, step, sign) for sign in (1, -1))
    length = _length(math.ceil((up + down) / step) + 4)
    start = math.floor((mean - down) / step) - 1
    window, error = _transform(parts, tilted, step, length, start)
    cumulant = sum(part.count * cumulant for part, (cumulant, _, _) in zip(parts, tilted, strict=True))
    scale = cumulant - order * start * step
    heavier = np.maximum(window, 0) + error
    lighter = np.maximum(window - error, 0)
    grow = 1 + 4 * length * _ULP + sum(part.count * _mass_error(part, step, order) for part in parts)
    decay, more = _decay(order * step, length), _decay(step, length)
    sums = []
    for masses, factor in ((heavier, grow), (lighter, 1 / grow)):
        first = masses * decay
        both = (_sums_from_top(first), _sums_from_top(first * more))
        sums.append((both[0] * factor, both[1] * factor))
    # a second sum that is too large lowers the profile above: undo its growth there, and the other way round
    sums[0] = (sums[0][0], sums[0][1] / grow**2)
    sums[1] = (sums[1][0], sums[1][1] * grow**2)
    infinite = -math.expm1(sum(part.count * math.log1p(-min(part.infinite, 0.5)) for part in parts))
    return Sum(
        start=start * step,
        step=step,
        order=order,
        scale=scale,
        infinite=infinite,
        heavier=sums[0],
        lighter=sums[1],
        top=_OUTSIDE * math.exp(min(700.0, scale - order * step * length)),
        folded=2 * _OUTSIDE,
    )


def best_orders(laws: list[tuple[Floats, Floats, int]], delta: float) -> tuple[float, float]:
    """The order of the least Renyi bound on epsilon, and a good one to tilt by.

    A smaller order than the best has lighter tails, hence a shorter window, and leaves digits enough as
    long as its bound on delta is not above the best one by more than _SPARE. Each law is given by losses,
    masses and a count.
    """
    orders = np.geomspace(1e-2, 3e3, 121)
    total = np.zeros(len(orders))
    for losses, masses, count in laws:
        total += count * _log_sums(masses, np.outer(orders, losses))
    log_delta = orders * np.log(orders / (1 + orders)) - np.log1p(orders) + total
    bounds = (log_delta - math.log(delta)) / orders
    best = int(np.argmin(bounds))
    spare = log_delta - orders * bounds[best] - math.log(delta)
    return float(orders[best]), float(orders[int(np.argmax(spare <= _SPARE))])


def _log_sums(masses: Floats, exponents: Floats) -> Floats:
    top = exponents.max(axis=1, keepdims=True)
    sums: Floats = np.log(np.exp(exponents - top) @ masses) + top[:, 0]
    return sums


def _tilt(part: Part, step: float, order: float) -> tuple[float, Floats, float]:
    """The cumulant at the order, the tilted masses (of sum 1) and their mean loss."""
    losses = part.places * step
    top = order * float(losses[-1])
    masses = part.masses * np.exp(order * losses - top)
    total = float(masses.sum())
    masses /= total
    return math.log(total) + top, masses, float(masses @ losses)


def _mass_error(part: Part, step: float, order: float) -> float:
    """How far a tilted mass and the cumulant may err together, relative to it."""
    farthest = max(abs(int(part.places[0])), abs(int(part.places[-1]))) * step
    return 4 * _ULP * (8 + order * farthest)


def _reach(
    parts: list[Part], tilted: list[tuple[float, Floats, float]], step: float, sign: int
) -> float:
    """A distance from the mean that the tilted sum exceeds on one side with probability _OUTSIDE at most."""
    variance = sum(
        part.count * float(masses @ (part.places * step - mean) ** 2)
        for part, (_, masses, mean) in zip(parts, tilted, strict=True)
    )
    need = math.log(1 / _OUTSIDE)
    if variance <= 0:
        return step
    rates = math.sqrt(2 * need / variance) * np.geomspace(0.02, 2.0, 20)
    total = np.zeros(len(rates))
    for part, (_, masses, mean) in zip(parts, tilted, strict=True):
        total += part.count * _log_sums(masses, np.outer(sign * rates, part.places * step - mean))
    return float(np.min((total + need) / rates)) + step


def _transform(
    parts: list[Part], tilted: list[tuple[float, Floats, float]], step: float, length: int, start: int
) -> tuple[Floats, float]:
    """Masses of the tilted sum at places start, start + 1, ..., and how far any of them may err.

    A transform of size N errs by at most c ||x|| in the 2-norm, c = 16 u log2 N (Higham 2002, theorem 24.2,
    doubled for mixed radices). The error of a power is at most count times that of the base times the
    largest modulus to the count less one; Cauchy-Schwarz gives the effect on any place.
    """
    factor = 16 * (_ULP / 2) * math.log2(length)
    spectra, offsets, norms = [], 0, []
    for part, (_, masses, mean) in zip(parts, tilted, strict=True):
        centre = round(mean / step)
        folded = np.bincount((part.places - centre) % length, masses, minlength=length)
        spectra.append(fft.rfft(folded))
        norms.append(_norm(folded))
        offsets += part.count * centre
    logs = [np.log(np.abs(spectrum) + factor * math.sqrt(length) * norm)
            for spectrum, norm in zip(spectra, norms, strict=True)]
    log_size = sum((part.count * log for part, log in zip(parts, logs, strict=True)), np.zeros(len(logs[0])))
    kept = log_size > -80.0
    angle_error = np.zeros(int(kept.sum()))
    exponent = np.zeros(int(kept.sum()), dtype=complex)
    for part, spectrum in zip(parts, spectra, strict=True):
        one = np.log(spectrum[kept] + 1e-300)
        exponent += part.count * one
        angle_error += 8 * _ULP * part.count * (1 + np.abs(one))
    product = np.zeros(len(log_size), dtype=complex)
    product[kept] = np.exp(exponent)
    window = np.roll(fft.irfft(product, length), offsets - start)
    size = np.exp(log_size[kept])
    error = 2 / length * float(np.sum(size * angle_error)) + math.exp(-80.0)  # half of the frequencies are kept
    for part, log, norm in zip(parts, logs, norms, strict=True):
        others = np.exp(log_size[kept] - log[kept])
        error += part.count * factor * norm * 2 / math.sqrt(length) * _norm(others)
    error += factor * 2 / math.sqrt(length) * _norm(size)
    return window, error


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
