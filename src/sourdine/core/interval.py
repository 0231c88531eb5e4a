"""A declared interval of reals cut into equal cells: values in, places 0 .. cells out.

Any value is clamped to the interval and rounded to the nearest of cells + 1 points. The step between them
need not be a power of two, so the rounding is done in floats, and what that can add is counted.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter

_MOST = 1 << 80  # size of a bound
_LEAST = Fraction(1, 1 << 100)  # length of an interval
_BLUR = Fraction(1, 1 << 19)  # see `apart`


@dataclass(frozen=True)
class Interval:
    """The points lower, lower + step, ..., upper."""

    lower: Fraction
    upper: Fraction
    cells: int

    @classmethod
    def declared(cls, owner: str, lower: object, upper: object, cells: object, most: int) -> Self:
        """An interval of at most `most` cells, from the parameters of a mechanism."""
        given = {"lower": lower, "upper": upper}
        bounds = {name: check.rational(owner, name, value) for name, value in given.items()}
        for name, bound in bounds.items():
            if abs(bound) > _MOST:
                raise check.fail(owner, name, f"be at most {check.power(_MOST)} in size", bound)
        if bounds["upper"] - bounds["lower"] < _LEAST:
            raise check.fail(owner, "upper", f"be above the lower bound {bounds['lower']}", upper)
        count = check.integer(owner, "cells", cells, 1, most)
        size = max(map(abs, bounds.values()))
        if (bounds["upper"] - bounds["lower"]) / count < size / 2**32:
            remedy = "Use fewer cells, or shift the values so that their bounds are smaller."
            raise check.fail(owner, "cells", "be wider than 2^-32 of the larger bound", cells, remedy)
        return cls(**bounds, cells=count)

    @property
    def step(self) -> Fraction:
        return (self.upper - self.lower) / self.cells

    def places(self, owner: str, values: ArrayLike) -> NDArray[np.int64]:
        """The point nearest to each value; NaN counts as 0."""
        array = grid.reals(values)
        if array.dtype.kind not in "biuf":
            raise InvalidParameter(f"The values given to {owner} must be numbers. Pass an array of floats.")
        with np.errstate(over="ignore"):
            real = array.astype(np.float64)
        real = np.clip(np.where(np.isnan(real), 0.0, real), float(self.lower), float(self.upper))
        nearest = np.floor((real - float(self.lower)) * float(1 / self.step) + 0.5)
        return np.clip(nearest.astype(np.int64), 0, self.cells)

    def values(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The points themselves, as floats inside the interval."""
        points = float(self.lower) + places * float(self.step)
        return np.clip(points, float(self.lower), float(self.upper))

    def apart(self, distance: Distance) -> int:
        """How many places the changed values move together at most, for a distance in L1.

        The float that is floored lies within 2^-20 of (value - lower)/step + 1/2, up to a shift common to all
        values: the bounds on the cells keep the rounding of the value below 2^-21, and that of the
        subtraction, the product and the sum below 2^-22 together. So values t apart land at most
        floor(t/step + 2^-19) + 1 places apart, and never more than `cells`.
        """
        units = grid.distance_units(distance, self.step)  # t/step + 1 for each value that changes
        count = distance.coordinates or 1
        return min(math.floor(units + count * _BLUR), count * self.cells)

    def width(self, places: int) -> float:
        """A distance of so many places in values, with the rounding of a value to its place."""
        wide = min((places + Fraction(1, 2) + 2 * _BLUR) * self.step, self.upper - self.lower)
        return math.nextafter(float(wide), math.inf)
