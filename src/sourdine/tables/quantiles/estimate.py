"""Private quantiles of an array, in one call."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.ledger.opened import opened
from sourdine.accounting.release import Release
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import reals
from sourdine.frames.ranks import SortedPlaces
from sourdine.tables.noise import noise
from sourdine.tables.quantiles.choice import TREE, Allowance, Choice, chosen, levels_of
from sourdine.tables.quantiles.method import MOST_PLACES, QuantileMethod
from sourdine.tables.tree import Tree, read_quantiles

_DEFAULT_PLACES = 1 << 20
_FARTHEST = 1 << 1000
_LEAST_RANGE = 2.0**-500
_ALMOST = Fraction(1, 10**12)  # what a range may lack of a whole number of steps, as 0.3 does of three tenths
_CHUNK = 1 << 15
_LEAST_TREE, _MOST_TREE = Fraction(1, 1 << 20), Fraction(1 << 20)  # epsilon by a tree


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
        filled, room = 0, np.empty(min(_CHUNK, array.size))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, array.size, _CHUNK):  # pieces that stay in the cache
                piece = array[start : start + _CHUNK]
                steps = room[: piece.size]
                steps[:] = piece
                steps -= self.lower
                steps /= self.step
                np.rint(steps, out=steps)
                np.clip(steps, 0, self.places - 1, out=steps)
                if np.isnan(steps).any():
                    steps = steps[~np.isnan(steps)]
                out[filled : filled + steps.size] = steps
                filled += steps.size
        return out[:filled]

    def value(self, places: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
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
    confidence: float = 0.95,
    ledger: Ledger | Path | str | None = None,
    purpose: str = "quantiles",
    bits: Bits = SYSTEM,
) -> Release:
    """Quantiles of values between declared bounds, epsilon-DP for one value replaced, or added or removed.

    `method` is one of those in METHODS, or "tree", which alone gives intervals, or "auto", which goes by what
    is declared and never by the values; the release's notes tell what was taken. What is not a number is left
    out, what lies outside the bounds is clamped. `size` is about how many values there are, for methods that
    need to know. The ledger, if there is one, is charged before the values are looked at.

    >>> from sourdine.testing import SeededBits
    >>> ages = range(101)
    >>> found = quantiles(ages, at=[0.5], bounds=(0, 100), epsilon=20, granularity=1, bits=SeededBits(2))
    >>> found.values
    array([50.])
    >>> found.notes[0][:24]
    'Method: smooth, since on'
    """
    grid = Grid.declared(bounds, granularity)
    sure = check.confidence("quantiles", confidence)
    spend, choice = _planned(method, grid, at=at, epsilon=epsilon, neighbours=neighbours, size=size)
    secure = bool(getattr(bits, "secure", False))
    stated = {"bounds": json.dumps([grid.lower, grid.upper]), "step": repr(grid.step)}
    stated["method"] = choice.words
    receipt: Receipt | None = None
    with opened(ledger) as payer:
        if payer is not None:
            receipt = payer.charge(spend, purpose=purpose, secure=secure, declared=stated)
    held = grid.place(values)
    held.sort()
    found, ends = SortedPlaces(held), None
    if isinstance(spend.mechanism, QuantileMethod):
        places = spend.mechanism.sample(found, bits)
    else:
        levels = [float(level) for level in levels_of(at)]
        tree = Tree.over(grid.places)
        read = read_quantiles(found, tree, mechanism=spend.mechanism, at=levels, confidence=sure, bits=bits)
        places, ends = read.value, (grid.value(read.lower), grid.value(read.upper))
    return Release(
        values=grid.value(places),
        intervals=ends,
        spends=(spend,),
        receipt=receipt,
        confidence=sure,
        secure=secure,
        notes=(f"Method: {choice.words}.", *(["No interval is known for it."] if ends is None else [])),
        declarations=stated,
    )


def _planned(
    method: str,
    grid: Grid,
    *,
    at: Sequence[float],
    epsilon: Fraction | float,
    neighbours: Neighbours,
    size: int | None,
) -> tuple[Spend, Choice]:
    """What is spent on which mechanism, by declarations alone."""
    if method != TREE:
        allowance = Allowance(budget=check.positive("quantiles", "epsilon", epsilon))
        mechanism, choice = chosen(
            method, at=at, places=grid.places, allowance=allowance, neighbours=neighbours, size=size
        )
        return Spend(mechanism=mechanism, distance=Distance.hamming(neighbours=neighbours)), choice
    levels_of(at)
    budget = check.between("quantiles", "epsilon", epsilon, _LEAST_TREE, _MOST_TREE)
    check.member("quantiles", "neighbours", neighbours, Neighbours)
    if neighbours is Neighbours.ZERO_OUT:
        must = "be replace or add-remove"
        raise check.fail("quantiles", "neighbours", must, str(neighbours), "Quantiles have no other.")
    # a value lies in one bin of each level of the tree; one that is replaced leaves a bin and enters another
    moved = Tree.over(grid.places).height * (2 if neighbours is Neighbours.REPLACE else 1)
    distance = Distance.l1(moved, coordinates=moved, neighbours=neighbours)
    return Spend(mechanism=noise(distance, budget, squared=False), distance=distance), Choice(
        TREE, "it was asked for"
    )
