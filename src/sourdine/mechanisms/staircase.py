"""Staircase noise on integers, or on reals rounded to a declared grid: the least error for one number."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance, Norm
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.core.random.tables import WeightTerms, table
from sourdine.mechanisms.additive import AdditiveNoise
from sourdine.mechanisms.laplace import MOST_SCALE

LEAST_EPSILON = Fraction(1, 1 << 40)
MOST_EPSILON = Fraction(64)


@dataclass(frozen=True, kw_only=True)
class Staircase(AdditiveNoise):
    """Adds noise whose probabilities are constant over steps, each e^epsilon below the one before.

    In grid steps, the noise k has a weight of 1 for |k| < inner, and e^{-j epsilon} on the j-th period of
    D = `sensitivity` beyond. A change of at most `sensitivity` in one number costs epsilon (Geng, Viswanath
    2016, proof in docs/guarantees/staircase.md), and with the best `inner` no epsilon-DP noise has a lesser
    error. A change of d in L1 over c numbers costs epsilon (c + floor((d - c)/D)), not epsilon d/D: even
    a small change may cross a step. With a granularity g the values are reals, rounded to multiples of g
    first; then D = floor(sensitivity/g) + 1 steps, and each change grows by one step.

    >>> Staircase.for_absolute_error(epsilon=1, sensitivity=10).inner
    4
    """

    name: ClassVar[str] = "staircase/1"
    norm: ClassVar[Norm] = Norm.L1
    epsilon: Fraction
    inner: int
    sensitivity: Fraction = Fraction(1)
    granularity: Fraction | None = None

    def __post_init__(self) -> None:
        owner = "Staircase"
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, MOST_EPSILON)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "granularity", grid.step(owner, self.granularity))
        object.__setattr__(self, "sensitivity", check.positive(owner, "sensitivity", self.sensitivity))
        if self._period < 1:
            remedy = "Integers change by 1 or not at all; declare a granularity for reals."
            raise check.fail(owner, "sensitivity", "be at least 1", self.sensitivity, remedy)
        if self._period > MOST_SCALE * self.epsilon:
            remedy = "Use a coarser granularity."
            must = "be at most 2^40 epsilon grid steps"
            raise check.fail(owner, "sensitivity", must, self.sensitivity, remedy)
        object.__setattr__(self, "inner", check.integer(owner, "inner", self.inner, 1, self._period))

    @classmethod
    def for_absolute_error(
        cls,
        *,
        epsilon: Fraction | float,
        sensitivity: Fraction | float = 1,
        granularity: Fraction | float | None = None,
    ) -> Self:
        """The staircase of least expected |noise|; inner is about D/(1 + e^{epsilon/2})."""
        return cls._least(1, epsilon, sensitivity, granularity)

    @classmethod
    def for_squared_error(
        cls,
        *,
        epsilon: Fraction | float,
        sensitivity: Fraction | float = 1,
        granularity: Fraction | float | None = None,
    ) -> Self:
        """The staircase of least variance."""
        return cls._least(2, epsilon, sensitivity, granularity)

    @classmethod
    def _least(cls, power: int, epsilon: object, sensitivity: object, granularity: object) -> Self:
        fields = {"epsilon": epsilon, "sensitivity": sensitivity, "granularity": granularity}
        steep = cls(inner=1, **fields)  # type: ignore[arg-type]
        return cls(inner=best_inner(float(steep.epsilon), steep._period, power), **fields)  # type: ignore[arg-type]

    @property
    def _period(self) -> int:
        """What one number changes by at most, in grid steps."""
        if self.granularity is None:
            return math.floor(self.sensitivity)
        return math.floor(self.sensitivity / self.granularity) + 1

    def _make_noise(self) -> exact.Noise:
        return _StairNoise(self.epsilon, self.inner, self._period)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        units = math.floor(grid.distance_units(distance, self.granularity))
        moved = units if distance.coordinates is None else min(units, distance.coordinates)
        steps = moved + (units - moved) // self._period
        return PrivacyLoss.pure(steps * self.epsilon, neighbours=distance.neighbours)

    def error(self, confidence: float = 0.95) -> float:
        """The least k with P[|noise| <= k] >= confidence; half a grid step more for the rounding of reals."""
        confidence = check.confidence("Staircase.error", confidence)
        epsilon = float(self.epsilon)
        steps = self._period / math.expm1(epsilon)  # the weights of one side beyond the centre

        def covers(k: int) -> bool:
            full, part = divmod(max(k + 1 - self.inner, 0), self._period)
            rest = math.exp(-epsilon * full) * (steps - part * math.exp(-epsilon))
            beyond = max(self.inner - k - 1, 0) + rest
            return 2 * beyond <= (1 - confidence) * (1 - 2.0**-40) * (2 * (self.inner + steps) - 1)

        k = bisect_left(range(grid.LIMIT), 1, key=covers)
        return float(k) if self.granularity is None else float((k + Fraction(1, 2)) * self.granularity)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(3, 4), inner=2, sensitivity=Fraction(5)),
            value=0,
            neighbour=5,
            distance=Distance.l1(5, coordinates=1),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(1, 2), inner=1, sensitivity=Fraction(1)),
            value=3,
            neighbour=4,
            distance=Distance.l1(1),
        )
        yield Example(
            mechanism=cls.for_squared_error(epsilon=1, sensitivity=0.25, granularity=Fraction(1, 64)),
            value=0.0,
            neighbour=0.25,
            distance=Distance.l1(0.25, coordinates=1),
            code=lambda answers: np.rint(answers * 64).astype(np.int64),
        )


class _StairNoise:
    """The step first, then a place on it, in the same time for every step.

    The centre has 2 inner - 1 places, and each later step 2 D. So the step is a geometric variable, plus 1
    with odds e^{-epsilon} (2 D - 2 inner + 1)/(2 inner - 1).
    """

    def __init__(self, epsilon: Fraction, inner: int, period: int) -> None:
        self._inner, self._period = inner, period
        self._centre, self._later = 2 * inner - 1, 2 * period
        self._steps = exact.geometric_noise(1 / epsilon)
        odds = Fraction(self._later - self._centre, self._centre)
        self._another = table(WeightTerms((1, odds), (0, -epsilon)))

    def sample(self, count: int, bits: Bits) -> NDArray[np.int64]:
        step = self._steps.sample(count, bits)
        step += self._another.coins(count, bits)
        near = exact.uniform(self._centre, count, bits) - (self._inner - 1)
        place = exact.uniform(self._later, count, bits)
        size = self._inner + (step - 1) * self._period + (place >> 1)
        return np.where(step == 0, near, np.where(place & 1, -size, size))

    def draw(self, bits: Bits) -> int:
        step = self._steps.draw(bits) + self._another.draw(bits)
        near = exact.one_uniform(self._centre, bits) - (self._inner - 1)
        place = exact.one_uniform(self._later, bits)
        size = self._inner + (step - 1) * self._period + (place >> 1)
        return near if step == 0 else -size if place & 1 else size


def best_inner(epsilon: float, period: int, power: int) -> int:
    """The `inner` in 1 .. period of least E|noise|^power, the power being 1 or 2.

    The moment is a convex function of `inner` over a linear one, hence it falls and then rises: thirds of
    an interval that cannot hold its minimum are cut away. Where floats cannot tell two moments apart,
    either is as good.
    """
    low, high = 1, period
    while high - low > 2:
        third = (high - low) // 3
        left, right = low + third, high - third
        if _moment(epsilon, period, left, power) <= _moment(epsilon, period, right, power):
            high = right
        else:
            low = left
    return min(range(low, high + 1), key=lambda inner: _moment(epsilon, period, inner, power))


def _moment(epsilon: float, period: int, inner: int, power: int) -> float:
    """E|noise|^power, up to a factor that does not depend on `inner`."""
    b = math.exp(-epsilon)
    low = (inner, inner * (inner - 1) / 2, inner * (inner - 1) * (2 * inner - 1) / 6)
    whole = (period, period * (period - 1) / 2, period * (period - 1) * (2 * period - 1) / 6)
    sums = [near + b * (full - near) for near, full in zip(low, whole, strict=True)]  # over the first period
    mean = 1 / math.expm1(epsilon)  # of the number of further periods, whose law is geometric
    if power == 1:
        moment = period * mean * sums[0] + sums[1]
    else:
        moment = period**2 * mean * (1 + 2 * mean) * sums[0] + 2 * period * mean * sums[1] + sums[2]
    return moment / (2 * sums[0] + math.expm1(-epsilon))
