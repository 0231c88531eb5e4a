"""Exact tails of sums of many independent steps of a few kinds, each step being -1, 0 or 1.

How many reports speak for a category is such a sum, and so are votes for it less votes against it. Its law
is the inverse Fourier transform of a product of powers, and of a tail few terms of that transform matter,
however many steps there are (docs/guarantees/intervals.md).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-12  # of a tail, beside what many steps add to it
_DEVIATIONS, _BEYOND = 12, 61  # what lies further than 12 deviations and 61 has a probability below 1e-30
_WHOLE = 1 << 16  # points up to which all of a circle is looked at
_NOTHING = -50.0  # terms below e^-50 are left out
_LEAST = 1e-300  # for the logarithm of a term that is 0
_TERMS = 1 << 20  # at once


@dataclass(frozen=True)
class SumStep:
    """One that is 1 or -1 with these probabilities, and 0 otherwise."""

    up: float
    down: float = 0.0

    @property
    def mean(self) -> float:
        return self.up - self.down

    @property
    def variance(self) -> float:
        return self.up * (1 - self.up) + self.down * (1 - self.down) + 2 * self.up * self.down

    @property
    def third(self) -> float:
        """The third central moment."""
        m, square = self.mean, self.up + self.down
        return m - 3 * m * square + 2 * m**3

    def transform(self, angles: Floats) -> tuple[Floats, Floats]:
        """The logarithm of the modulus of E[e^{i angle X}], and its phase less angle times the mean."""
        half = np.sin(angles / 2) ** 2
        real, imaginary = 1 - 2 * (self.up + self.down) * half, self.mean * np.sin(angles)
        if self.down == 0:  # where it matters most, at small angles, without cancelling digits
            square = -4 * self.up * (1 - self.up) * half
            log = 0.5 * np.log1p(np.maximum(square, -1 + _LEAST))
        else:
            log = 0.5 * np.log(np.maximum(real**2 + imaginary**2, _LEAST))
        return np.maximum(log, math.log(_LEAST)), np.arctan2(imaginary, real) - self.mean * angles


@dataclass(frozen=True)
class Sums:
    """Sums of steps of some kinds; how many of each kind there are is told row by row."""

    steps: tuple[SumStep, ...]

    @cached_property
    def moments(self) -> Floats:
        """Of each kind a row: mean, variance and third moment."""
        return np.array([[step.mean, step.variance, step.third] for step in self.steps])

    def below(self, counts: Ints, most: Ints) -> Floats:
        """P[sum <= most] of each row, within `rounding`."""
        mean, variance, _ = (counts @ self.moments).T
        reach = _DEVIATIONS * np.sqrt(np.maximum(variance, 0)) + _BEYOND
        away = most - mean
        out = np.where(away > 0, 1.0, 0.0)
        sizes = 4 << np.ceil(np.log2(reach)).astype(np.int64)  # a quarter of the circle holds the reach
        near = np.flatnonzero(np.abs(away) <= reach)
        near = near[np.lexsort((*counts[near].T, sizes[near]))]
        for rows in _runs(near, sizes):
            out[rows] = self._near(counts[rows], away[rows], int(sizes[rows[0]]), float(variance[rows].min()))
        return np.clip(out, 0.0, 1.0)

    def rounding(self, people: int) -> float:
        """How far a tail may be off by the rounding of floats, with so many steps."""
        spread = math.sqrt(max(1.0, people * float(self.moments[:, 1].min())))
        return ROUNDING + 2.0**-48 * people / spread

    def _near(self, counts: Ints, away: Floats, size: int, variance: float) -> Floats:
        """1/2 less the mean over the odd points t of a circle of Im(phi(t) e^{-i t (most + 1/2)})/sin(t/2).

        That is P[most - size/2 < sum <= most], if the sum is taken round a circle of that size.
        """
        angles, logs, phases = _circle(self.steps, size, _points(size, variance))
        bound = counts.min(axis=0) @ logs
        matter = bound > _NOTHING
        angles, logs, phases = angles[matter], logs[:, matter], phases[:, matter]
        weights = np.exp(counts @ logs) / np.sin(angles / 2)
        waves = np.sin(counts @ phases - np.multiply.outer(away + 0.5, angles))
        return np.asarray(0.5 - 2 / size * np.einsum("ij,ij->i", weights, waves))


def _runs(rows: Ints, sizes: Ints) -> Iterator[Ints]:
    """Rows of one size, a few at a time."""
    for size in np.unique(sizes[rows]):
        same = rows[sizes[rows] == size]
        chunk = max(1, min(256, _TERMS // max(1, min(size // 4, 1024))))
        for start in range(0, len(same), chunk):
            yield same[start : start + chunk]


def _points(size: int, variance: float) -> int:
    """How many odd points of half a circle to look at: all of a small one, and else those near 0.

    For the sums that are asked for here, of coins and of votes in a block, the modulus is at most
    e^{-variance sin^2(t/2)/2}.
    """
    if size <= _WHOLE:
        return size // 4
    angle = 2 * math.asin(min(1.0, math.sqrt(-2 * _NOTHING / max(variance, -2 * _NOTHING))))
    return min(size // 4, 1 << math.ceil(angle * size / (4 * math.pi) + 1).bit_length())


@lru_cache(maxsize=64)
def _circle(steps: tuple[SumStep, ...], size: int, points: int) -> tuple[Floats, Floats, Floats]:
    """Odd points of a circle, with the transform of each kind of step there."""
    angles: Floats = 2 * math.pi / size * (2 * np.arange(points, dtype=np.float64) + 1)
    logs, phases = zip(*(step.transform(angles) for step in steps), strict=True)
    return angles, np.array(logs), np.array(phases)
