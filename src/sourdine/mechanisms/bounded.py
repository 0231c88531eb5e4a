"""Noise for reals in a declared interval, with answers inside it: what its laws have in common."""

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Norm
from sourdine.core.grid import Interval
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.tables import Truncated


class IntervalNoise(Mechanism):
    """Answers a point of a grid on [lower, upper]. A value outside is clamped first."""

    norm: ClassVar[Norm] = Norm.L1
    most_cells: ClassVar[int]
    lower: Fraction
    upper: Fraction
    cells: int

    @property
    @abstractmethod
    def _law(self) -> Truncated:
        """The law of the answer's place on the grid."""

    @property
    def _interval(self) -> Interval:
        return Interval(self.lower, self.upper, self.cells)

    def _keep_interval(self) -> None:
        interval = Interval.declared(type(self).__name__, self.lower, self.upper, self.cells, self.most_cells)
        check.keep(self, lower=interval.lower, upper=interval.upper, cells=interval.cells)

    @classmethod
    def _calibration(
        cls,
        lower: Fraction | float,
        upper: Fraction | float,
        cells: int,
        sensitivity: Fraction | float | None,
    ) -> tuple[Interval, int]:
        """The interval, and how many places a change of `sensitivity`, or of the whole range, takes."""
        interval = Interval.declared(cls.__name__, lower, upper, cells, cls.most_cells)
        if sensitivity is None:
            return interval, interval.cells
        change = check.positive(cls.__name__, "sensitivity", sensitivity)
        return interval, interval.apart(Distance.l1(change, coordinates=1))

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        places = self._interval.places(type(self).__name__, values)
        return self._interval.values(self._law.sample(places.ravel(), bits).reshape(places.shape))

    def error(self, confidence: float = 0.95) -> float:
        """For a value inside the interval; one outside is clamped first."""
        level = check.confidence(f"{type(self).__name__}.error", confidence)
        return self._interval.width(self._law.reach(level))
