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
_OUTSIDE = 1e-9  # tilted mass that may lie outside the window on either side
_SPARE = math.log(200)
_FLOATS = 700.0  # e^-700 is a float
_DEEPEST = 600.0  # the logarithm by which weights may fall over a window
_MARKS = [i / 16 for i in range(17)] + [1 - 2.0**-i for i in range(5, 20)]  # more where a top atom may lie
_NOTHING = 80.0  # a frequency smaller than e^-80 is left out, and charged


@dataclass(frozen=True)
class Part:
    """One loss on the lattice, repeated: masses under P at places, and at infinity."""

    places: NDArray[np.int64]
    masses: Floats
    infinite: float
    count: int


@dataclass(frozen=True)
class Sum:
    """One end of the profile of a sum of losses, at the points of a window.

    `first` and `second` hold, from each point up, the sums of e^{-order (s - start)} and of
    e^{-(order + 1)(s - start)} times the tilted masses; `scale` is the logarithm of the factor both lack.
    """

    start: float
    step: float
    order: float
    scale: float
    first: Floats
    second: Floats
    beyond: float  # delta that lies above the window or at infinity; added
    below: float  # tilted mass that may lie below the window; added where epsilon lies there too
    folded: float  # tilted mass that may be folded into the window from outside; taken away

    def delta(self, epsilon: float) -> float:
        """delta(epsilon), or the bound on it that this end stands for."""
        j = max(0, math.ceil((epsilon - self.start) / self.step))
        inside = 0.0
        if j < len(self.first):
            inside = float(self.first[j] - self.second[j] * math.exp(min(700.0, epsilon - self.start)))
        value = max(0.0, inside) * math.exp(min(700.0, self.scale)) + self.beyond
        below = self._weight(self.below, epsilon) if epsilon < self.start else 0.0
        return min(1.0, max(0.0, value + below - self._weight(self.folded, epsilon)))

    def epsilon(self, delta: float) -> float:
        """Where the profile crosses delta: a search over the window, then the solution inside one step."""
        if delta <= self.beyond:
            return math.inf
        low, high = 0, len(self.first) - 1
        if self.folded == 0 and self.delta(self.start) <= delta:
            return self.start
        if self.folded > 0:  # what is taken away grows downwards: look for the crossing from above
            marks = sorted({round(high * share) for share in _MARKS})
            above = [i for i, j in enumerate(marks) if self.delta(self.start + j * self.step) > delta]
            if not above:
                return -math.inf
            low, high = marks[above[-1]], marks[min(above[-1] + 1, len(marks) - 1)]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self.delta(self.start + middle * self.step) <= delta else (middle, high)
            )
        target = delta - self.beyond + self._weight(self.folded, self.start + low * self.step)
        gap = float(self.first[high]) - target * math.exp(-self.scale)
        inside = self.start + math.log(gap / self.second[high]) if gap > 0 else -math.inf
        return min(max(inside, self.start + low * self.step), self.start + high * self.step)

    def _weight(self, mass: float, epsilon: float) -> float:
        """What tilted mass counts for in delta: at most its weight at the worst point above epsilon."""
        if mass == 0:
            return 0.0
        peak = self.order * math.log(self.order) - (1 + self.order) * math.log1p(self.order)
        return mass * math.exp(min(700.0, self.scale - self.order * (epsilon - self.start) + peak))


def convolve(parts: list[Part], step: float, order: float, *, pessimistic: bool) -> Sum:
    """The sum of all parts, tilted by the order; every error is charged to the side asked for."""
    tilted = [_tilt(part, step, order) for part in parts]
    mean = sum(part.count * mean for part, (_, _, mean) in zip(parts, tilted, strict=True))
    up, down = (_reach(parts, tilted, step, order, sign) for sign in (1, -1))
    length = _length(math.ceil((up + down) / step) + 4)
    if order * step * length > _DEEPEST:  # what the top of the window weighs would be lost to underflow
        return convolve(parts, step, 0.8 * _DEEPEST / (step * length), pessimistic=pessimistic)
    start = math.floor((mean - down) / step) - 1
    window, error = _transform(parts, tilted, step, length, start)
    cumulant = sum(part.count * cumulant for part, (cumulant, _, _) in zip(parts, tilted, strict=True))
    scale = cumulant - order * start * step
    first = np.maximum(window + error if pessimistic else window - error, 0) * _decay(order * step, length)
    second = first * _decay(step, length)
    if not pessimistic:  # where the second sums underflow, nothing is sure: leave that mass out
        first[math.floor(_FLOATS / ((order + 1) * step)) :] = 0.0
    grow = 1 + 4 * length * _ULP + sum(part.count * _mass_error(part, step, order) for part in parts)
    top = _OUTSIDE * math.exp(min(700.0, scale - order * step * length))
    surely = any(part.infinite >= 1 for part in parts)
    infinite = 1.0 if surely else -math.expm1(sum(part.count * math.log1p(-part.infinite) for part in parts))
    return Sum(
        start=start * step,
        step=step,
        order=order,
        scale=scale,
        first=_sums_from_top(first) * (grow if pessimistic else 1 / grow),
        second=_sums_from_top(second) / (grow if pessimistic else 1 / grow),
        beyond=top + infinite if pessimistic else 0.0,
        below=_OUTSIDE if pessimistic else 0.0,
        folded=0.0 if pessimistic else 2 * _OUTSIDE,
    )


def best_orders(laws: list[tuple[Floats, Floats, int]], delta: float) -> tuple[float, float]:
    """The order of the least Renyi bound on epsilon, and a good one to tilt by.

    A smaller order than the best has lighter tails, hence a shorter window, and leaves digits enough as
    long as its bound on delta is not above the best one by more than _SPARE. Each law is given by losses,
    masses and a count.
    """
    orders = np.geomspace(1e-2, 3e3, 81)
    total = np.zeros(len(orders))
    for losses, masses, count in laws:
        total += count * _log_sums(masses, np.outer(orders, losses))
    log_delta = orders * np.log(orders / (1 + orders)) - np.log1p(orders) + total
    bounds = (log_delta - math.log(delta)) / orders
    best = int(np.argmin(bounds))
    spare = log_delta - orders * bounds[best] - math.log(delta)
    return float(orders[best]), float(orders[int(np.argmax(spare <= _SPARE))])


def order_at(laws: list[tuple[Floats, Floats, int]], epsilon: float) -> float:
    """The order of the least Renyi bound on delta at an epsilon: around it the sum decides delta."""
    orders = np.geomspace(1e-2, 3e3, 81)
    total = np.zeros(len(orders))
    for losses, masses, count in laws:
        total += count * _log_sums(masses, np.outer(orders, losses))
    bounds = orders * np.log(orders / (1 + orders)) - np.log1p(orders) + total - orders * epsilon
    return float(orders[int(np.argmin(bounds))])


def _log_sums(masses: Floats, exponents: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        weighted = exponents + np.log(masses)
    top = weighted.max(axis=1, keepdims=True)
    sums: Floats = np.log(np.sum(np.exp(weighted - top), axis=1)) + top[:, 0]
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
    parts: list[Part], tilted: list[tuple[float, Floats, float]], step: float, order: float, sign: int
) -> float:
    """A distance from the mean that the tilted sum exceeds on one side with probability _OUTSIDE at most."""
    variance = sum(
        part.count * float(masses @ (part.places * step - mean) ** 2)
        for part, (_, masses, mean) in zip(parts, tilted, strict=True)
    )
    need = math.log(1 / _OUTSIDE)
    rates = math.sqrt(2 * need / max(variance, step**2)) * np.geomspace(0.02, 2.0, 20)
    span = max(int(part.places[-1] - part.places[0]) for part in parts) * step
    if rates[0] * span > 20:  # almost only one atom is left: smaller rates tell how rare the others are
        rates = np.concatenate([np.geomspace(1, 40, 8) / span, order * np.array([0.3, 0.6, 0.9]), rates])
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
        folded: Floats = np.bincount((part.places - centre) % length, masses, minlength=length).astype(float)
        spectra.append(fft.rfft(folded))
        norms.append(_norm(folded))
        offsets += part.count * centre
    sizes = [
        np.abs(spectrum) + factor * math.sqrt(length) * norm
        for spectrum, norm in zip(spectra, norms, strict=True)
    ]
    kept = np.ones(len(sizes[0]), dtype=np.bool_)
    for part, size in zip(parts, sizes, strict=True):
        kept &= size > math.exp(-_NOTHING / part.count)
    logs = [np.log(size[kept]) for size in sizes]
    log_size = sum((part.count * log for part, log in zip(parts, logs, strict=True)), np.zeros(len(logs[0])))
    angle_error = np.zeros(len(log_size))
    exponent = np.zeros(len(log_size), dtype=complex)
    for part, spectrum in zip(parts, spectra, strict=True):
        one = np.log(spectrum[kept] + 1e-300)
        exponent += part.count * one
        angle_error += 8 * _ULP * part.count * (1 + np.abs(one))
    product = np.zeros(len(kept), dtype=complex)
    product[kept] = np.exp(exponent)
    window = np.roll(fft.irfft(product, length), offsets - start)
    size = np.exp(log_size)
    error = 2 / length * float(np.sum(size * angle_error)) + math.exp(
        -80.0
    )  # half of the frequencies are kept
    for part, log, norm in zip(parts, logs, norms, strict=True):
        others = np.exp(log_size - log)
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
