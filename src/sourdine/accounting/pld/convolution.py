"""The law of a sum of many independent privacy losses, by one tilted Fourier transform, with its error.

Each law is given by masses at places of a common lattice. Tilting by e^{order * loss} moves the bulk of the
sum to where delta is decided, so that a double has enough digits; Chernoff bounds say what lies outside a
window; folding modulo that window makes the transform short. What is left out, what is folded on top, and
what floats may err are added to one end of the answer and taken from the other.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.pld.masses import ULP, Component, Masses, MassTable, TiltedWindow, masses_of_sum
from sourdine.core.distributions import Floats

_OUTSIDE = 1e-8  # what may lie outside the window, or be folded into it, beside what decides delta
_DEEPEST = 600.0  # the logarithm by which weights may fall over a window
_PIECES = np.linspace(0.0, 1.0, 17)
_CUTS = 16  # parts of a window in which a crossing is first looked for
_NEAR = (0, *(sign * 4**k for k in range(12) for sign in (1, -1)))  # places around a guess
_RATES = np.geomspace(0.02, 2.0, 20)
_FEW_ATOMS = np.geomspace(1, 40, 8)
_TRIES = 6
_LONGEST = 1 << 24
_LITTLE = 1e-4  # the share of delta that may be folded into a window worth keeping


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
        total = self._inside(epsilon) + self.beyond
        total += self._below(epsilon) if self.pessimistic else -self._folded(epsilon)
        return min(1.0, max(0.0, total))

    def epsilon(self, delta: float, near: float | None = None) -> float:
        """Where the profile crosses delta, or a bound on it; `near` is a guess of it, for speed alone."""
        if self.pessimistic:
            return self._crossing(delta, near)
        if delta < self.beyond:
            return math.inf
        epsilon = self._crossing(delta, near)
        for _ in range(_TRIES):  # what is folded grows downwards: give way until it is paid for
            if epsilon <= self.start:
                return -math.inf
            folded = self._folded(epsilon)
            short = delta - self._inside(epsilon) - self.beyond + folded
            if short <= 0:
                return epsilon
            epsilon -= (2 * short + 4 * ULP * delta) / self._slope(epsilon)
        return -math.inf

    def holds(self, epsilon: float) -> bool:
        """Whether the window is long enough to tell what happens at an epsilon."""
        if not self.start < epsilon < math.inf:
            return False
        return self._folded(epsilon) <= _LITTLE * self._inside(epsilon)

    def _crossing(self, delta: float, near: float | None = None) -> float:
        """Where what lies inside and at infinity falls to delta; the start if it does so before.

        An upper end that is above delta at the last place still is infinite. Of the places that are asked,
        the last above delta and the one after it stay. The next are close to where the logarithm of the
        profile would cross if it were straight between those two.
        """
        end = self.length - 1
        if near is not None and self.start < near < self.start + end * self.step:
            places = _around(0, round((near - self.start) / self.step), end)
        else:
            places = np.append(np.arange(0, end, -(-end // _CUTS) or 1), end)
        while True:
            first, second = self._weighed(places)
            profile = self._excess(first, second, places.astype(np.float64) * self.step)
            open_ = self.pessimistic and places[-1] == end and profile[-1] + self.beyond > delta
            if open_ and self.delta(self.start + end * self.step) > delta:
                return math.inf
            if places[0] == 0 and profile[0] + self.beyond <= delta:
                return self.start
            over = np.flatnonzero(profile[:-1] + self.beyond > delta)
            left = int(over[-1]) if len(over) else 0
            right = min(left + 1, len(places) - 1)
            low, high = int(places[left]), int(places[right])
            if high - low <= 1:
                break
            places = _closer(low, high, (profile[left], profile[right]), delta - self.beyond)
        gap = float(first[right]) - (delta - self.beyond) * math.exp(min(700.0, -self.scale))
        slope = float(second[right])
        if not (gap > 0 and slope > 0):  # too small for floats to say where in this step
            return self.start + (high if self.pessimistic else low) * self.step
        return self.start + min(max(math.log(gap / slope), low * self.step), high * self.step)

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
        return self._excess(*self._weighed(places), heights)

    def _excess(self, first: Floats, second: Floats, heights: Floats) -> Floats:
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


def _closer(low: int, high: int, profile: tuple[float, float], delta: float) -> NDArray[np.int64]:
    """Places between two, dense where the profile should cross delta."""
    above, beneath = profile
    guess = (low + high) // 2
    if above > delta > beneath > 0:
        guess = low + round((high - low) * math.log(above / delta) / math.log(above / beneath))
    return _around(low, guess, high)


def _around(low: int, guess: int, high: int) -> NDArray[np.int64]:
    """Places between two, more and more of them towards a guess, with the middle and both ends."""
    near = {guess + by for by in _NEAR if low < guess + by < high}
    return np.array(sorted({low, (low + high) // 2, high} | near))


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
    masses = masses_of_sum(parts, tilted, TiltedWindow(start, length, step, order, pessimistic))
    cumulant = sum(part.count * cumulant for part, (cumulant, _, _) in zip(parts, tilted, strict=True))
    scale = cumulant - order * start * step
    growth += 4 * ULP * (1 + order * abs(start) * step)  # what the scale may err
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
    nothing = MassTable(np.zeros(1), np.zeros(1))
    return LossSum(0.0, step, 1, order, 0.0, nothing, 1.0, beyond, tails, pessimistic)


def ever(chances: list[tuple[float, int]]) -> float:
    """The chance that something happens at least once, from its chance each time and the number of times."""
    if any(chance >= 1 for chance, _ in chances):
        return 1.0
    return max(0.0, -math.expm1(sum(count * math.log1p(-chance) for chance, count in chances)))


def _log_sums(logs: Floats, exponents: Floats) -> Floats:
    """Logarithms of sums of masses times e^exponents, from the logarithms of the masses."""
    weighted = exponents + logs
    top = weighted.max(axis=1)
    sums: Floats = np.log(np.exp(weighted - top[:, None]).sum(axis=1)) + top
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
    """How far a tilted mass and the cumulant may err together, relative to it.

    Losses were rounded when the origin was added to them, and so is the sum of all origins.
    """
    farthest = max(abs(int(part.places[0])), abs(int(part.places[-1]))) * step + abs(part.origin)
    return 4 * ULP * (8 + order * farthest)


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
        exponents = rates[:, None] * (part.places * step - mean)
        with np.errstate(divide="ignore"):
            logs = np.log(masses)
        rounding = part.count * (8 * ULP * (8 + rates * span) + _mass_error(part, step, order))
        up += part.count * _log_sums(logs, exponents) + rounding
        down += part.count * _log_sums(logs, -exponents) + rounding
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
    high = ((up + need) / (rates + order)).min(axis=-1)
    weighed = np.minimum(rates, order) * high[..., None]
    low = ((down + need - weighed) / rates).min(axis=-1)
    lap = ((up + need) / rates).min(axis=-1) - high  # from above the top back to the mean
    near = ((down + 2) / rates).min(axis=-1)
    return high, np.maximum(low, np.where(order[..., 0] > 0, np.maximum(lap, near), low))


def _length(least: int) -> int:
    """A quick length for the transform: 8, 9, 10 or 12 times a power of two."""
    power = 1 << max(0, (least - 1).bit_length() - 4)
    return next(power * m for m in (8, 9, 10, 12, 16) if power * m >= least)
