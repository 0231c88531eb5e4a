"""Private quantiles of an array, in one call."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.release import Release
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import reals
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.levels import check_levels
from sourdine.tables.quantiles.method import MOST_PLACES, QuantileMethod
from sourdine.tables.quantiles.naive import NaiveLaplace
from sourdine.tables.quantiles.recursive import RecursiveQuantiles
from sourdine.tables.quantiles.threshold import MOST_CUTS, ThresholdHistogram
from sourdine.tables.quantiles.values import SortedPlaces

_DEFAULT_PLACES = 1 << 20
_FARTHEST = 1 << 1000
_LEAST_RANGE = 2.0**-500
_ALMOST = Fraction(1, 10**12)  # what a range may lack of a whole number of steps, as 0.3 does of three tenths
_CHUNK = 1 << 15
_MANY = 29  # levels up to which the joint mechanism is best


@dataclass(frozen=True)
class Grid:
    """Places between two bounds: the first is the lower one, the last at most a step from the upper one."""

    lower: float
    upper: float
    step: float
    places: int

    @classmethod
    def declared(cls, bounds: tuple[float, float], granularity: float | None) -> "Grid":
        """The grid of declared bounds; without a granularity the range is cut into 2^20."""
        owner = "quantiles"
        given: object = bounds
        if not (isinstance(given, tuple | list) and len(given) == 2):
            raise check.fail(
                owner, "bounds", "be two numbers", bounds, "Declare them, as in bounds=(0, 100)."
            )
        numbers = [check.rational(owner, "bounds", bound) for bound in bounds]
        if max(abs(number) for number in numbers) > _FARTHEST:
            raise check.fail(owner, "bounds", "lie within 2^1000 of 0", bounds)
        lower, upper = (float(number) for number in numbers)
        if not lower < upper:
            raise check.fail(owner, "bounds", "rise", bounds, "Give the lower one first.")
        if upper - lower < _LEAST_RANGE:
            raise check.fail(owner, "bounds", "be 2^-500 apart or more", bounds)
        if granularity is None:
            return cls(lower, upper, (upper - lower) / _DEFAULT_PLACES, _DEFAULT_PLACES + 1)
        exact = check.positive(owner, "granularity", granularity)
        steps = math.floor((numbers[1] - numbers[0]) / exact * (1 + _ALMOST))
        if not 1 <= steps < MOST_PLACES:
            must = "cut the bounds into 1 to 2^52 - 1 steps"
            raise check.fail(owner, "granularity", must, granularity)
        return cls(lower, upper, float(exact), steps + 1)

    def place(self, values: ArrayLike) -> NDArray[Any]:
        """The places nearest to values, clamped; what is not a number is left out."""
        array = reals(values)
        if array.ndim != 1 or array.dtype.kind not in "fiub":
            raise InvalidParameter(
                "The values given to quantiles must be one row of numbers. Pass an array of floats."
            )
        kind = np.int32 if self.places < 1 << 31 else np.int64  # half as wide sorts twice as quickly
        out = np.empty(array.size, kind)
        filled = 0
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, array.size, _CHUNK):  # pieces that stay in the cache
                steps = array[start : start + _CHUNK].astype(np.float64)
                steps -= self.lower
                steps /= self.step
                np.rint(steps, out=steps)
                np.clip(steps, 0, self.places - 1, out=steps)
                known = steps[~np.isnan(steps)]
                out[filled : filled + known.size] = known
                filled += known.size
        return out[:filled]

    def value(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Places as values again; rounding takes none beyond the upper bound."""
        return np.asarray(np.minimum(self.lower + places * self.step, self.upper), dtype=np.float64)


def quantiles(
    values: ArrayLike,
    *,
    at: Sequence[float],
    bounds: tuple[float, float],
    epsilon: Fraction | float,
    method: str = "auto",
    granularity: float | None = None,
    neighbours: Neighbours = Neighbours.REPLACE,
    size: int | None = None,
    ledger: Ledger | None = None,
    purpose: str = "quantiles",
    bits: Bits = SYSTEM,
) -> Release:
    """Quantiles of values between declared bounds, epsilon-DP for one value replaced, or added or removed.

    `method` is one of those in METHODS, or "auto", which goes by what is declared and never by the values.
    What is not a number is left out, what lies outside the bounds is clamped. `size` is about how many values
    there are, for methods that need to know. The ledger, if there is one, is charged before the values are
    looked at.

    >>> from sourdine.testing import SeededBits
    >>> ages = range(101)
    >>> quantiles(ages, at=[0.5], bounds=(0, 100), epsilon=20, granularity=1, bits=SeededBits(2)).values
    array([50.])
    """
    grid = Grid.declared(bounds, granularity)
    mechanism, _ = chosen(
        method, at=at, places=grid.places, epsilon=epsilon, neighbours=neighbours, size=size
    )
    spend = Spend(mechanism=mechanism, distance=Distance.hamming(neighbours=neighbours))
    secure = bool(getattr(bits, "secure", False))
    receipt: Receipt | None = None
    if ledger is not None:
        receipt = ledger.charge(spend, purpose=purpose, secure=secure)
    held = grid.place(values)
    held.sort()
    places = mechanism.sample(SortedPlaces(held), bits)
    return Release(values=grid.value(places), intervals=None, spends=(spend,), receipt=receipt, secure=secure)


Maker = Callable[..., QuantileMethod]


def _histogram(monotone: bool) -> Maker:
    def make(*, size: int | None, places: int, **common: object) -> QuantileMethod:
        """The source's number of cut points, 1.5 n / log n, for a declared size."""
        wanted = 1000 if size is None else max(2, math.ceil(1.5 * size / math.log(max(size, 3))))
        cuts = min(wanted, places, MOST_CUTS)
        return ThresholdHistogram(cuts=cuts, places=places, monotone=monotone, **common)  # type: ignore[arg-type]

    return make


METHODS: dict[str, Maker] = {
    "joint": lambda size, **common: JointExponential(**common),
    "recursive": lambda size, **common: RecursiveQuantiles(radius=1, **common),
    "inverse": lambda size, **common: InverseSensitivity(**common),
    "smooth": lambda size, **common: InverseSensitivity(radius=1, **common),
    "histogram": _histogram(False),
    "monotone histogram": _histogram(True),
    "naive": lambda size, **common: NaiveLaplace(**common),
}


def chosen(
    method: str,
    *,
    at: Sequence[float],
    places: int,
    epsilon: Fraction | float,
    neighbours: Neighbours = Neighbours.REPLACE,
    size: int | None = None,
) -> tuple[QuantileMethod, str]:
    """The mechanism of a method's name, and for "auto" why it was taken."""
    given: object = at
    if not isinstance(given, tuple | list | np.ndarray):
        raise check.fail("quantiles", "at", "be a list of numbers", given, "Write at=[0.5] for the median.")
    levels = check_levels("quantiles", tuple(given), "at")
    if size is not None:
        check.integer("quantiles", "size", size, 0, 1 << 62)
    why = f"'{method}' was asked for"
    if method == "auto":
        if len(levels) == 1:
            method, why = "smooth", "one quantile needs no split of the budget, and a radius saves it on ties"
        elif len(levels) <= _MANY and _jointly(levels, places, epsilon, neighbours):
            method, why = "joint", f"up to {_MANY} quantiles are found best all at once"
        else:
            method, why = "recursive", f"more than {_MANY} quantiles, or very fine ones, are found by halving"
    if method not in METHODS:
        listed = ", ".join(["auto", *METHODS])
        raise check.fail("quantiles", "method", f"be one of {listed}", method)
    made = METHODS[method](size=size, levels=levels, places=places, epsilon=epsilon, neighbours=neighbours)
    return made, why


def _jointly(
    levels: tuple[Fraction, ...], places: int, epsilon: Fraction | float, neighbours: Neighbours
) -> bool:
    """Whether floats are good enough to find all levels at once."""
    try:
        METHODS["joint"](size=None, levels=levels, places=places, epsilon=epsilon, neighbours=neighbours)
    except InvalidParameter:
        return False
    return True
