"""Staircase noise for reals in a declared interval, with answers inside it."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp
from typing import ClassVar, Self

import numpy as np

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.tables import StepDecay, Truncated
from sourdine.mechanisms.bounded import IntervalNoise

MOST_CELLS = 1 << 20
LEAST_DROP = Fraction(1, 1 << 60)
MOST_DROP = Fraction(64)
_PARTS = 1 << 32  # a calibrated drop is so many of these parts of epsilon
_ROUNDING = 2.0**-40  # far above what floats can lose in a level


@dataclass(frozen=True, kw_only=True)
class BoundedStaircase(IntervalNoise):
    """Answers a point of a grid on [lower, upper], with weights that fall in steps with the distance.

    The grid has `cells` equal cells; inputs are clamped and rounded to it. A point less than `inner` cells
    away weighs 1, and each further `period` cells weigh e^{-drop} times what the period before does. The
    normaliser depends on the input, so a change of one period costs *more* than drop: the cost is the exact
    worst ratio over all pairs of inputs and all answers (proof in docs/guarantees/bounded_staircase.md).
    `calibrated` finds the drop for a given epsilon.

    >>> steps = BoundedStaircase(drop=1, lower=0, upper=1, cells=100, period=100, inner=38)
    >>> round(steps.loss(Distance.l1(1, coordinates=1)).epsilon, 4)
    1.3238
    """

    name: ClassVar[str] = "bounded-staircase/1"
    most_cells: ClassVar[int] = MOST_CELLS
    drop: Fraction
    lower: Fraction
    upper: Fraction
    cells: int
    period: int
    inner: int

    def __post_init__(self) -> None:
        owner = "BoundedStaircase"
        self._keep_interval()
        object.__setattr__(self, "drop", check.between(owner, "drop", self.drop, LEAST_DROP, MOST_DROP))
        object.__setattr__(self, "period", check.integer(owner, "period", self.period, 1, self.cells))
        object.__setattr__(self, "inner", check.integer(owner, "inner", self.inner, 1, self.period))

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Fraction | float,
        lower: Fraction | float,
        upper: Fraction | float,
        cells: int,
        sensitivity: Fraction | float | None = None,
        inner: int | None = None,
    ) -> Self:
        """The largest drop that costs at most epsilon for a change of `sensitivity`, or of the whole range.

        The period is that change. Without an `inner`, the share of Geng and Viswanath for the least
        absolute error is taken, 1/(1 + e^{epsilon/2}).
        """
        target = check.between(cls.__name__, "epsilon", epsilon, Fraction(1, 1 << 20), MOST_DROP)
        interval, period = cls._calibration(lower, upper, cells, sensitivity)
        if inner is None:
            inner = max(1, round(period / (1 + exp(float(target) / 2))))
        steep = cls(
            drop=target, lower=interval.lower, upper=interval.upper, cells=cells, period=period, inner=inner
        )

        def costs_more(parts: int) -> bool:
            return replace(steep, drop=target * parts / _PARTS)._level(period) > target

        # the drop found has itself been seen to cost no more than the target
        parts = bisect_left(range(1, _PARTS + 1), 1, key=costs_more)
        return replace(steep, drop=target * parts / _PARTS)

    @property
    def _law(self) -> Truncated:
        return Truncated(StepDecay(self.drop, self.period, self.inner), self.cells)

    def loss(self, distance: Distance) -> PrivacyLoss:
        """When several values may change, each is charged as if the whole distance were its own."""
        self.require(distance)
        count = distance.coordinates or 1
        one = self._interval.apart(distance) - (count - 1)  # the others' rounding is not its own
        epsilon = count * self._level(min(one, self.cells))
        return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours)

    def _level(self, units: int) -> float:
        """The worst log-ratio over all inputs at most `units` places apart and all answers, rounded up.

        The answer x, or one below it, is the worst for inputs x < x + d: it gains floor(d/period) steps, and
        one more if the rest of d reaches across the edge of a step, that is if x + rest >= inner. The
        normaliser Z is concave, so Z(x + d)/Z(x) falls with x: for each d only x = 0 and the first x of the
        further step can be worst. Among all d of one gain from x = 0 the best is nearest to the middle,
        where Z is largest; and x = inner - rest gives x + d = inner + period * steps whatever the rest, so
        that the smallest Z(x), at one of the ends, decides.
        """
        drop, period, inner = float(self.drop), self.period, self.inner
        gains = np.arange((units + period - inner) // period + 1)
        nearest = np.maximum((gains - 1) * period + inner, 0)
        farthest = np.minimum(gains * period + inner - 1, units)
        middle = np.clip(self.cells // 2, nearest, farthest)
        worst = [drop * gains + np.log(self._law.total(middle) / self._law.total(np.array([0])))]
        steps = np.arange(units // period + 1)
        rest = np.minimum(inner - 1, units - steps * period)
        possible = (rest >= 1) & (inner + steps * period <= self.cells)
        steps, rest = steps[possible], rest[possible]
        for start in (inner - rest, np.full_like(rest, inner - 1)):
            ratio = self._law.total(inner + steps * period) / self._law.total(start)
            worst.append(drop * (steps + 1) + np.log(ratio))
        return float(np.concatenate(worst).max()) * (1 + _ROUNDING) + _ROUNDING

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(
                drop=Fraction(3, 4), lower=Fraction(0), upper=Fraction(1), cells=30, period=30, inner=11
            ),
            value=0.0,
            neighbour=0.5,
            distance=Distance.l1(1, coordinates=1),
            code=lambda answers: np.rint(answers * 30).astype(np.int64),
        )
        yield Example(
            mechanism=cls.calibrated(epsilon=1, lower=-5, upper=5, cells=100, sensitivity=0.75),
            value=-5.0,
            neighbour=-4.25,
            distance=Distance.l1(0.75, coordinates=1),
            code=lambda answers: np.rint(answers * 10).astype(np.int64),
        )
