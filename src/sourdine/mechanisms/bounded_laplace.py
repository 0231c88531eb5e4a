"""Laplace noise for reals in a declared interval, with answers inside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random.tables import GeometricDecay, Truncated
from sourdine.mechanisms.bounded import IntervalNoise
from sourdine.mechanisms.laplace import MOST_SCALE
from sourdine.mechanisms.truncated_geometric import LEAST_SCALE, least_scale, truncated_level

MOST_CELLS = 1 << 28


@dataclass(frozen=True, kw_only=True)
class BoundedLaplace(IntervalNoise):
    """Answers a point of a grid on [lower, upper] with probability proportional to e^{-|y - x|/scale}.

    The grid has `cells` equal cells, and inputs are clamped and rounded to it. A change of d moves an input
    by k = floor(d/step) + 1 points, or `cells` at most, and costs what k points cost a TruncatedGeometric:
    over the whole interval exactly epsilon = (upper - lower)/scale, otherwise more than d/scale (proof in
    docs/guarantees/bounded_laplace.md; for the continuous law, Holohan, Antonatos, Braghin, Mac Aonghusa
    2020).

    >>> answers = BoundedLaplace.calibrated(epsilon=2, lower=0, upper=10, cells=1000)
    >>> answers.scale, answers.loss(Distance.l1(10, coordinates=1)).epsilon
    (Fraction(5, 1), Fraction(2, 1))
    """

    name: ClassVar[str] = "bounded-laplace/1"
    most_cells: ClassVar[int] = MOST_CELLS
    scale: Fraction
    lower: Fraction
    upper: Fraction
    cells: int

    def __post_init__(self) -> None:
        owner = "BoundedLaplace"
        self._keep_interval()
        object.__setattr__(self, "scale", check.positive(owner, "scale", self.scale))
        if not LEAST_SCALE <= self._unit_scale <= MOST_SCALE:
            remedy = "Change the scale or the cells."
            raise check.fail(owner, "scale", "lie between 2^-10 and 2^40 cells", self.scale, remedy)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: Fraction | float,
        lower: Fraction | float,
        upper: Fraction | float,
        cells: int,
        sensitivity: Fraction | float | None = None,
    ) -> Self:
        """The least noise that costs at most epsilon for a change of `sensitivity`, or of the whole range."""
        interval, units = cls._calibration(lower, upper, cells, sensitivity)
        scale = least_scale(cls.__name__, epsilon, interval.cells, units) * interval.step
        return cls(scale=scale, lower=interval.lower, upper=interval.upper, cells=cells)

    @property
    def _unit_scale(self) -> Fraction:
        return self.scale / self._interval.step

    @property
    def _law(self) -> Truncated:
        return Truncated(GeometricDecay(self._unit_scale), self.cells)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        units = self._interval.apart(distance)
        epsilon = truncated_level(self._unit_scale, self.cells, units, distance.coordinates or 1)
        return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(scale=Fraction(2, 3), lower=Fraction(0), upper=Fraction(1), cells=30),
            value=0.0,
            neighbour=1.0,
            distance=Distance.l1(1, coordinates=1),
            code=lambda answers: np.rint(answers * 30).astype(np.int64),
        )
        yield Example(
            mechanism=cls.calibrated(epsilon=1, lower=-5, upper=5, cells=100, sensitivity=0.25),
            value=-5.0,
            neighbour=-4.75,
            distance=Distance.l1(0.25, coordinates=1),
            code=lambda answers: np.rint(answers * 10).astype(np.int64),
        )
