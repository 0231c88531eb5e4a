"""Private quantiles of an array, in one call."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.release import Release
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import reals
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.rank_counts import SeparateRanks, SortedPlaces
from sourdine.tables.answers.noise import noise
from sourdine.tables.payment import charge
from sourdine.tables.quantiles.choice import NO_INTERVAL, Allowance, MethodChoice, Tuning, chosen, levels_of
from sourdine.tables.quantiles.method import EPSILONS, MOST_PLACES, QuantileMethod
from sourdine.tables.quantiles.tree import BinTree, read_quantiles

_LEAST_STEPS = 10**6  # where nothing is declared
_ODD_STEPS = 1 << 20  # where no round step goes into the range
_FARTHEST = 1 << 1000
_LEAST_RANGE = 2.0**-500
_ALMOST = Fraction(1, 10**12)  # what a range may lack of a whole number of steps, as 0.3 does of three tenths
_CHUNK = 1 << 15
_PLAIN = 1 << 53


@dataclass(frozen=True)
class Grid:
    """Places between two bounds: the first is the lower one, the last at most a step from the upper one."""

    lower: float
    upper: float
    exact: Fraction
    places: int

    @classmethod
    def declared(
        cls, bounds: tuple[float, float], granularity: float | None, steps: int | None = None
    ) -> "Grid":
        """The grid of declared bounds, by the size of a step or by how many there are.

        Without either, a step is round, and there are a million of them or up to 2.5: so numbers with few
        digits are places of the grid, if the lower bound is one. Where no round step goes into the range, it
        is cut into 2^20.

        >>> Grid.declared((0, 120), None)
        Grid(lower=0.0, upper=120.0, exact=Fraction(1, 10000), places=1200001)
        """
        owner = "quantiles"
        ends: object = bounds
        if not (isinstance(ends, tuple | list) and len(ends) == 2):
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
        wide = numbers[1] - numbers[0]
        if steps is not None:
            if granularity is not None:
                raise check.fail(owner, "steps", "be left out where a granularity is given", steps)
            many = check.integer(owner, "steps", steps, 1, MOST_PLACES - 1)
            return cls(lower, upper, wide / many, many + 1)
        step = _round(wide) if granularity is None else check.positive(owner, "granularity", granularity)
        fitting = math.floor(wide / step * (1 + _ALMOST))
        if not 1 <= fitting < MOST_PLACES:
            must = "cut the bounds into 1 to 2^52 - 1 steps"
            raise check.fail(owner, "granularity", must, granularity)
        return cls(lower, upper, step, fitting + 1)

    @property
    def step(self) -> float:
        """The size of a step."""
        return float(self.exact)

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
        up, down = self.exact.as_integer_ratio()
        plain = max(up, down) <= _PLAIN  # then a decimal place is the float that is written so
        along = places * float(up) / float(down) if plain else places * self.step
        return np.asarray(np.minimum(self.lower + along, self.upper), dtype=np.float64)


def _round(wide: Fraction) -> Fraction:
    """A step of 1, 2 or 5 times a power of ten, or one 2^20th of the range where none goes into it."""
    power = Fraction(10) ** (math.floor(math.log10(float(wide))) - 6)  # near, and made sure of below
    for step in (5 * power, 2 * power, power, power / 2, power / 5, power / 10):
        many = wide / step
        if many >= _LEAST_STEPS * (1 - _ALMOST):
            whole = round(many)
            return step if abs(many - whole) <= many * _ALMOST else wide / _ODD_STEPS
    return wide / _ODD_STEPS


@dataclass(frozen=True, kw_only=True)
class QuantilesPlan:
    """A plan for the quantiles of an array, whose values are units of the ledger."""

    neighbours: Neighbours
    spends: tuple[Spend, ...]
    declared: Mapping[str, str]
    unit: None = None
    remedy: None = None


def quantiles(
    values: ArrayLike,
    *,
    levels: Sequence[float],
    bounds: tuple[float, float],
    epsilon: Fraction | float,
    method: str = "auto",
    granularity: float | None = None,
    steps: int | None = None,
    neighbours: Neighbours | str | None = None,
    size: int | None = None,
    ties: bool | None = None,
    radius: int | None = None,
    cuts: int | None = None,
    bins: int | None = None,
    confidence: float = 0.95,
    ledger: Ledger | Path | str | None = None,
    purpose: str = "quantiles",
    bits: Bits = SYSTEM,
) -> Release:
    """Quantiles of values between declared bounds, epsilon-DP for one value replaced, or added or removed.

    `neighbours` says which of the two: those of the ledger, if nothing is said, and "replace" without one.

    `method` is one of those in METHODS, or "tree", which alone gives intervals, or "auto", which goes by what
    is declared and never by the values; the release's notes tell what was taken. What is not a number or is
    missing is left out, what lies outside the bounds is clamped. Answers lie on a grid, by the `granularity`
    of the values or by how many `steps` there are between the bounds. `size` is about how many values there
    are: declare it, since for few of them other methods are best. `ties` tells "auto" that many are equal, so
    that an answer between two of them is of no use. `radius` (in steps) is for "smooth", "inverse" and
    "recursive", `cuts` for histograms, `bins` for "tree". The ledger, if there is one, is charged before the
    values are looked at.

    >>> from sourdine.testing import SeededBits
    >>> ages = range(101)
    >>> found = quantiles(ages, levels=[0.5], bounds=(0, 100), epsilon=20, granularity=1, bits=SeededBits(2))
    >>> found.values
    array([50.])
    >>> found.notes[0][:24]
    'Method: inverse, since o'
    """
    grid = Grid.declared(bounds, granularity, steps)
    sure = check.confidence("quantiles", confidence)
    related = _related(neighbours, ledger)
    tuning = Tuning(radius=radius, cuts=cuts, bins=bins, ties=ties)
    spend, tree, choice = _planned(
        method, grid, levels=levels, epsilon=epsilon, neighbours=related, size=size, tuning=tuning
    )
    secure = bool(getattr(bits, "secure", False))
    stated = {"bounds": json.dumps([grid.lower, grid.upper]), "step": repr(grid.step)}
    stated["method"] = choice.words
    receipt: Receipt | None = None
    with opened(ledger) as payer:
        if payer is not None:
            asked = QuantilesPlan(neighbours=related, spends=(spend,), declared=stated)
            receipt = charge(payer, asked, purpose=purpose, secure=secure)
    ordered = grid.place(values)
    ordered.sort()
    source, ends = SortedPlaces(ordered), None
    if tree is None:
        assert isinstance(spend.mechanism, QuantileMethod)
        places = spend.mechanism.sample(source, bits)
    else:
        exact = [float(level) for level in levels_of(levels)]
        read = read_quantiles(
            SeparateRanks.alone(source),
            tree,
            mechanism=spend.mechanism,
            levels=exact,
            confidence=sure,
            bits=bits,
        )
        places, ends = read.value, (grid.value(read.lower), grid.value(read.upper))
    return Release(
        values=grid.value(places),
        intervals=ends,
        spends=(spend,),
        receipt=receipt,
        confidence=sure,
        secure=secure,
        notes=(f"Method: {choice.words}.", *([] if tree else [NO_INTERVAL])),
        declarations=stated,
    )


def _related(neighbours: Neighbours | str | None, ledger: Ledger | Path | str | None) -> Neighbours:
    """The neighbours that are asked for, or those that the ledger pays for."""
    if neighbours is None:
        with opened(ledger) as payer:
            return Neighbours.REPLACE if payer is None else payer.terms.neighbours
    if neighbours in tuple(Neighbours):  # its name in a text will do
        neighbours = Neighbours(neighbours)
    return check.member("quantiles", "neighbours", neighbours, Neighbours)


def _planned(
    method: str,
    grid: Grid,
    *,
    levels: Sequence[float],
    epsilon: Fraction | float,
    neighbours: Neighbours,
    size: int | None,
    tuning: Tuning,
) -> tuple[Spend, BinTree | None, MethodChoice]:
    """What is spent on which mechanism, or on the counts of which tree, by declarations alone."""
    allowance = Allowance(budget=check.between("quantiles", "epsilon", epsilon, *EPSILONS))
    method_or_tree, choice = chosen(
        method,
        levels=levels,
        places=grid.places,
        allowance=allowance,
        neighbours=neighbours,
        size=size,
        tuning=tuning,
    )
    if isinstance(method_or_tree, QuantileMethod):
        return Spend(mechanism=method_or_tree, distance=Distance.hamming(neighbours=neighbours)), None, choice
    # a value lies in one bin of each level of the tree; one that is replaced leaves a bin and enters another
    moved = method_or_tree.height * (2 if neighbours is Neighbours.REPLACE else 1)
    distance = Distance.l1(moved, coordinates=moved, neighbours=neighbours)
    mechanism = noise(distance, allowance.budget, squared=False)
    return Spend(mechanism=mechanism, distance=distance), method_or_tree, choice
