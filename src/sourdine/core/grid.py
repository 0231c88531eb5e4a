"""Values as whole numbers of grid steps, in 64 bits, or as cells of a declared interval, whatever comes in.

A mechanism adds noise to integers. Reals are first rounded to a declared power-of-two step, which a float
divides without error. What is not a number counts as 0 and what is too large is clipped: code that has
seen data never raises, since an error would tell about them. None, pandas' NA and what an array masks are
missing: they are not numbers, whatever lies under the mask.

Where an interval of reals is declared and cut into equal cells, any value is clamped to it and rounded to
the nearest of cells + 1 points. The step between them need not be a power of two, so the rounding is done in
floats, and what that can add is counted.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.distance import Distance, Norm, root_above
from sourdine.core.errors import InvalidParameter, UnsupportedLoss

LIMIT = (1 << 62) - 1  # two numbers within the limit add up without overflow
_FAR = 1 << 1000  # beyond every limit, and still a float
_CHUNK = 1 << 16
_WHOLE = int | np.integer | np.bool_
_REAL = float | np.floating


def step(owner: str, value: object) -> Fraction | None:
    """A declared granularity: None for integers, else a power of two between 2^-100 and 2^100."""
    if value is None:
        return None
    exact = check.positive(owner, "granularity", value)
    if exact.numerator.bit_count() != 1 or exact.denominator.bit_count() != 1:
        raise check.fail(owner, "granularity", "be a power of two", value, "Try 2**-20 or 1/1024.")
    return check.between(owner, "granularity", exact, Fraction(1, 1 << 100), Fraction(1 << 100))


def numbers(values: ArrayLike) -> NDArray[Any]:
    """The values as an array whose type does not depend on how large they are.

    numpy makes floats or objects of a list as soon as one integer in it needs more than 64 bits, or one item
    is a float; an error about those, or the rounding of the other items, would tell. Here a list of integers
    stays one of integers, as objects if it must, and a mixed list keeps each item as it is. What is masked
    becomes NaN, or 0 among integers.
    """
    if isinstance(values, np.ma.MaskedArray):
        return _unmasked(values)
    array = np.asarray(values)
    if array.dtype == np.bool_ or (array.size == 0 and not isinstance(values, np.ndarray)):
        return array.astype(np.int64)
    if array.dtype != np.object_ and (isinstance(values, np.ndarray) or array.dtype.kind != "f"):
        return array
    items = np.asarray(values, dtype=np.object_)
    if array.dtype != np.object_ and all(isinstance(item, _REAL) for item in items.flat):
        return array
    return items


def reals(values: ArrayLike) -> NDArray[Any]:
    """The same with mixed items as floats, each rounded by itself, and NaN for what is missing."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "iub":
        values = values.astype(np.float64)
    array = numbers(values)
    return _floats(array) if mixed(array) else array


def mixed(array: NDArray[Any]) -> bool:
    """Whether these are objects, and all of them numbers or missing."""
    return array.dtype == np.object_ and all(
        _is_whole(item) or isinstance(item, _REAL) or missing(item) for item in array.flat
    )


def _is_whole(item: object) -> bool:
    """Whether an item is a whole number; a duration of NumPy is one by its base class alone."""
    return isinstance(item, _WHOLE) and not isinstance(item, np.timedelta64)


def missing(item: object) -> bool:
    """Whether an item of a list is none at all: None, or pandas' NA, which is known by its type's name."""
    return item is None or type(item).__name__ == "NAType"


def _unmasked(values: "np.ma.MaskedArray[Any, Any]") -> NDArray[Any]:
    """An array in which nothing is left of what lay under the mask."""
    if values.dtype == np.object_:
        items = np.asarray(values.data).copy()
        items[np.ma.getmaskarray(values)] = None
        return numbers(items)
    return numbers(values.filled(np.nan if values.dtype.kind == "f" else 0))


def _floats(items: NDArray[Any]) -> NDArray[np.float64]:
    plain = [
        max(-_FAR, min(_FAR, int(item))) if isinstance(item, _WHOLE) else np.nan if missing(item) else item
        for item in items.flat
    ]
    with np.errstate(over="ignore"):
        return np.array(plain, dtype=np.float64).reshape(items.shape)


def to_units(owner: str, values: ArrayLike, granularity: Fraction | None) -> NDArray[np.int64]:
    """Values in steps of the grid, clipped to the limit; NaN becomes 0."""
    array = numbers(values)
    if granularity is None:
        return _integers(owner, array)
    if array.dtype.kind in "iu":
        return _steps(array, granularity)
    if mixed(array):
        return np.array([_step(item, granularity) for item in array.flat], np.int64).reshape(array.shape)
    if array.dtype not in (np.float64, np.float32, np.float16):
        raise InvalidParameter(f"The values given to {owner} must be numbers. Pass an array of float64.")
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint(array.astype(np.float64) / float(granularity))
    scaled = np.nan_to_num(scaled, nan=0.0, posinf=2.0**62, neginf=-(2.0**62))
    return np.clip(np.clip(scaled, -(2.0**62), 2.0**62).astype(np.int64), -LIMIT, LIMIT)


def unit(value: object, step: float | None) -> int | None:
    """Return one plain number in steps, as `to_units` reads it; None for whatever else is given.

    Which of both ways is taken depends on types alone.
    """
    if step is None:
        return within(value) if type(value) is int else None
    if type(value) is not float:
        return None
    scaled = value / step
    if math.isfinite(scaled):
        return within(round(scaled))
    return 0 if math.isnan(scaled) else LIMIT if scaled > 0 else -LIMIT


def within(whole: int) -> int:
    """Return a whole number clipped to the limit."""
    return max(-LIMIT, min(LIMIT, whole))


def _step(item: Any, granularity: Fraction) -> int:
    """One number in steps, exactly; 0 for what is missing."""
    if missing(item):
        return 0
    if isinstance(item, _REAL) and not np.isfinite(item):
        return 0 if np.isnan(item) else LIMIT if item > 0 else -LIMIT
    exact = Fraction(int(item)) if isinstance(item, _WHOLE) else Fraction(float(item))
    return max(-LIMIT, min(LIMIT, round(exact / granularity)))


def _steps(whole: NDArray[Any], granularity: Fraction) -> NDArray[np.int64]:
    """Integers in steps of a power of two, exactly: a float would round them from 2^53 on."""
    shift = granularity.denominator.bit_length() - granularity.numerator.bit_length()
    if shift < 0:
        if -shift > 64:
            return np.zeros(whole.shape, np.int64)
        wide = whole.astype(np.uint64 if whole.dtype.kind == "u" else np.int64)
        below, rest = min(-shift, 63), min(-shift - 1, 63)
        rounded = (wide >> below if -shift < 64 else wide >> 63 >> 1) + ((wide >> rest) & 1)
        return _integers("", rounded)
    integers = _integers("", whole)
    most = LIMIT >> min(shift, 62)
    steps = np.clip(integers, -most, most) << min(shift, 61)
    return np.where(np.abs(integers) > most, np.sign(integers) * LIMIT, steps)


def _integers(owner: str, array: NDArray[Any]) -> NDArray[np.int64]:
    """Integers of any kind in 64 bits, clipped to the limit; 0 for what is missing."""
    if array.dtype == np.object_ and all(_is_whole(item) or missing(item) for item in array.flat):
        clipped = [0 if missing(item) else max(-LIMIT, min(LIMIT, int(item))) for item in array.flat]
        array = np.array(clipped, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise InvalidParameter(
            f"The values given to {owner} must be integers. Pass an array of integers. "
            "Reals need a mechanism with a granularity, such as Laplace(scale=1, granularity=2**-20)."
        )
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(LIMIT))
    whole: NDArray[np.int64] = array.astype(np.int64, order="C")  # a copy, which may be overwritten
    flat = whole.reshape(-1)
    for part in _chunks(flat.size):
        np.clip(flat[part], -LIMIT, LIMIT, out=flat[part])
    return whole


def places(owner: str, values: ArrayLike, last: int) -> NDArray[np.int64]:
    """Whole numbers clipped to 0 .. last."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and type(values) is np.ndarray:
        return np.clip(values, 0, last)
    units = to_units(owner, values, None)
    return np.clip(units, 0, last, out=units)


def from_units(units: NDArray[np.int64], granularity: Fraction | None) -> NDArray[np.generic]:
    """Steps of the grid as values again: integers stay integers, reals become floats."""
    return units if granularity is None else units * float(granularity)


def error_from_units(units: int, granularity: Fraction | None) -> float:
    """An error of so many steps as values; rounding reals to the grid added half a step."""
    return float(units) if granularity is None else (units + 0.5) * float(granularity)


def plus(units: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Their sum, clipped to the limit (post-processing)."""
    total = np.empty(units.shape, np.int64)
    flat, many, much = total.reshape(-1), units.reshape(-1), noise.reshape(-1)
    for part in _chunks(flat.size):
        out = flat[part]
        np.clip(much[part], -LIMIT, LIMIT, out=out)
        out += many[part]
        np.clip(out, -LIMIT, LIMIT, out=out)
    return total


def _chunks(size: int) -> Iterator[slice]:
    """Parts that stay in a processor's memory between two passes over them."""
    return (slice(start, start + _CHUNK) for start in range(0, size, _CHUNK))


def distance_units(distance: Distance, granularity: Fraction | None) -> Fraction:
    """The distance in steps of the grid (squared in L2), with what rounding reals can add.

    Two reals at distance t round to units at most t/g + 1 apart. So L1 grows by one step a coordinate,
    L2 by the square root of their number, Linf by one step. Integers do not move.
    """
    if granularity is None:
        return distance.amount
    if distance.norm is Norm.LINF:
        return distance.amount / granularity + 1
    if distance.coordinates is None:
        raise UnsupportedLoss(
            "The distance does not say how many numbers change, and rounding moves each of them. "
            "State it, as in Distance.l1(1, coordinates=1)."
        )
    if distance.norm is Norm.L2:
        amount = distance.amount / granularity**2
        return amount + distance.coordinates + 2 * root_above(amount * distance.coordinates)
    return distance.amount / granularity + distance.coordinates


def cells_moved(distance: Distance, units: Fraction, granularity: Fraction | None) -> tuple[int, int]:
    """Return how many numbers change at most, and by how many steps each of them; (0, 0) if nobody knows.

    `units` is the distance in steps, squared in L2. Rounding moves a real by one step more.
    """
    most = math.floor(units)
    count = most if distance.coordinates is None else min(distance.coordinates, most)
    if count == 1:
        return 1, math.isqrt(most) if distance.norm is Norm.L2 else most
    if distance.largest is None:
        return 0, 0
    return count, math.floor(distance.largest / granularity + 1 if granularity else distance.largest)


def one_moves(distance: Distance, units: Fraction) -> bool:
    """Whether a single coordinate can change: by declaration, or since two would need two units."""
    return distance.coordinates == 1 or units < 2


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
        ends = {"lower": lower, "upper": upper}
        bounds = {name: check.rational(owner, name, value) for name, value in ends.items()}
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
        array = reals(values)
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
        units = distance_units(distance, self.step)  # t/step + 1 for each value that changes
        count = distance.coordinates or 1
        return min(math.floor(units + count * _BLUR), count * self.cells)

    def width(self, places: int) -> float:
        """A distance of so many places in values, with the rounding of a value to its place."""
        wide = min((places + Fraction(1, 2) + 2 * _BLUR) * self.step, self.upper - self.lower)
        return math.nextafter(float(wide), math.inf)
