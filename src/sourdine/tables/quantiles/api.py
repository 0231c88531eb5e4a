"""Private quantiles of an array, in one call."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
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
from sourdine.core.distance import Distance, Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import reals
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.rank_counts import SeparateRanks, SortedPlaces
from sourdine.tables.intervals import noise
from sourdine.tables.payment import charge
from sourdine.tables.quantiles.histogram import MOST_CUTS, NaiveLaplace, ThresholdHistogram
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.method import EPSILONS, MOST_PLACES, QuantileMethod, check_levels
from sourdine.tables.quantiles.recursive import RecursiveQuantiles
from sourdine.tables.quantiles.tree import BinTree, read_quantiles

# The methods by name, and which one is taken where none is asked for: by declarations, never by values.

AUTO, TREE = "auto", "tree"
NO_INTERVAL = 'No interval is known for it: the method "tree" gives one.'
MOST_BINS = 1 << 16
MANY = {  # levels up to which the joint mechanism is best, by neighbours and by whether rho is spent
    (Neighbours.REPLACE, False): 29,
    (Neighbours.ADD_REMOVE, False): 14,
    (Neighbours.REPLACE, True): 5,
    (Neighbours.ADD_REMOVE, True): 2,
}
_CUTS = 1000  # of a histogram, where no size is declared
_PARTS = 1 << 40  # epsilons from a rho are rounded down to multiples of one over this
_LEAST_BINS = 5

Settings = Mapping[str, int | bool]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What may be set of a method beside its name; None leaves it to the method.

    A `radius` is in steps of the grid, `cuts` are the cut points of a histogram, `bins` the finest bins of a
    tree. `ties` tells "auto" that many values are equal, so that an answer between two of them is of no use.
    """

    radius: int | None = None
    cuts: int | None = None
    bins: int | None = None
    ties: bool | None = None

    def __post_init__(self) -> None:
        for name, most in (("radius", MOST_PLACES), ("cuts", MOST_CUTS), ("bins", MOST_BINS)):
            value = getattr(self, name)
            if value is not None:
                check.keep(
                    self,
                    **{name: check.integer("quantiles", name, value, 0 if name == "radius" else 1, most)},
                )
        if self.ties is not None:
            check.boolean("quantiles", "ties", self.ties)

    def check(self, method: str) -> None:
        """Refuse what the method does not know."""
        known = {AUTO: ("ties",), TREE: ("bins",)} | {name: method.takes for name, method in METHODS.items()}
        for name in (each.name for each in fields(self)):
            value = getattr(self, name)
            if value is not None and name not in known[method]:
                which = " or ".join(f'"{each}"' for each, takes in known.items() if name in takes)
                must = f"be left out with the method '{method}'"
                raise check.fail("quantiles", name, must, value, f"It is for {which}.")


@dataclass(frozen=True)
class NamedMethod:
    """A kind of mechanism, and what its name settles of it for so many places and a declared size."""

    kind: type[QuantileMethod]
    settings: Callable[[int, int | None], Settings] = lambda places, size: {}
    takes: tuple[str, ...] = ()


def _histogram(monotone: bool) -> NamedMethod:
    def settings(places: int, size: int | None) -> Settings:
        """The source's number of cut points, 1.5 n / log n, for a declared size."""
        count = _CUTS if size is None else max(2, math.ceil(1.5 * size / math.log(max(size, 3))))
        return {"cuts": min(count, places, MOST_CUTS), "monotone": monotone}

    return NamedMethod(ThresholdHistogram, settings, ("cuts",))


METHODS = {
    "joint": NamedMethod(JointExponential),
    "recursive": NamedMethod(RecursiveQuantiles, takes=("radius",)),
    "inverse": NamedMethod(InverseSensitivity, takes=("radius",)),
    "smooth": NamedMethod(InverseSensitivity, lambda places, size: {"radius": 1}, ("radius",)),
    "histogram": _histogram(False),
    "monotone histogram": _histogram(True),
    "naive": NamedMethod(NaiveLaplace),
}


@dataclass(frozen=True)
class MethodChoice:
    """The method that was taken, and why.

    >>> MethodChoice("joint", "it was asked for").words
    'joint, since it was asked for'
    """

    name: str
    why: str

    @property
    def words(self) -> str:
        """Both in one line."""
        return f"{self.name}, since {self.why}"


_BY_NAME = "it was asked for"


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What there is to spend on quantiles: epsilon, or rho where that is squared.

    A unit changes so many `values` in each of so many `groups`, each group being asked on its own.

    >>> Allowance(budget=Fraction(1), values=3, groups=2).epsilon(JointExponential, 9)
    Fraction(1, 6)
    """

    budget: Fraction
    squared: bool = False
    values: int = 1
    groups: int = 1

    def epsilon(self, kind: type[QuantileMethod], levels: int) -> Fraction:
        """The largest epsilon of a mechanism for one value; from a rho, rounded down."""
        if not self.squared:
            return self.budget / (self.values * self.groups)
        cost = kind.rho_at_one(levels) * self.values**2 * self.groups
        return Fraction(math.floor(_PARTS / root_above(cost / self.budget)), _PARTS)

    def deviation(self, neighbours: Neighbours) -> float:
        """About the standard deviation of the noise on one count of each of some bins."""
        moved = 2 if neighbours is Neighbours.REPLACE else 1
        if self.squared:
            return math.sqrt(float(moved * self.groups * self.values**2 / (2 * self.budget)))
        return math.sqrt(2) * float(moved * self.groups * self.values / self.budget)


@dataclass(frozen=True, kw_only=True)
class QuantileQuestion:
    """Quantiles that are asked for, and all that is declared about the values."""

    levels: tuple[Fraction, ...]
    places: int
    allowance: Allowance
    neighbours: Neighbours
    size: int | None
    tuning: Tuning

    def mechanism(self, name: str) -> QuantileMethod:
        """The mechanism of a method's name, as exact as the allowance lets it be."""
        method = METHODS[name]
        settings = {"radius": self.tuning.radius, "cuts": self.tuning.cuts}
        own = {each: value for each, value in settings.items() if value is not None and each in method.takes}
        return method.kind(
            epsilon=self.allowance.epsilon(method.kind, len(self.levels)),
            levels=self.levels,
            places=self.places,
            neighbours=self.neighbours,
            **{**method.settings(self.places, self.size), **own},
        )

    @property
    def tree(self) -> BinTree:
        """The tree that was asked for."""
        bins = self.tuning.bins
        return BinTree.over(self.places) if bins is None else BinTree.flat(self.places, bins)

    @property
    def few_places(self) -> bool:
        """Whether a noisy count of each place is nearer than a choice among the places."""
        each = 4 if self.neighbours is Neighbours.REPLACE else 8
        return self.places <= each * (len(self.levels) + 1)

    @property
    def few_values(self) -> bool:
        """Whether counts in wide bins are nearer: the declared size is small for the epsilon of a level."""
        if self.size is None or self.tuning.ties:
            return False
        epsilon = float(self.allowance.epsilon(JointExponential, len(self.levels)))
        one = len(self.levels) == 1
        enough = 45 if self.neighbours is Neighbours.REPLACE else 23 if one else 50
        return self.size * epsilon < enough * len(self.levels)

    @property
    def bins(self) -> int:
        """As many bins as make the noise of the ranks about as large as half a bin."""
        ratio = 0.94 * (self.size or 0) / self.allowance.deviation(self.neighbours)
        return max(_LEAST_BINS, round(math.pow(ratio, 2 / 3)))


def chosen(
    method: str,
    *,
    levels: Sequence[float],
    places: int,
    allowance: Allowance,
    neighbours: Neighbours = Neighbours.REPLACE,
    size: int | None = None,
    tuning: Tuning | None = None,
    counted: bool = False,
) -> tuple[QuantileMethod | BinTree, MethodChoice]:
    """The mechanism of a method's name, or the tree whose counts get noise, and why it was taken.

    `counted` says that values can only be counted where they are, as on a cluster.
    """
    exact, more = levels_of(levels), tuning or Tuning()
    if size is not None:
        size = check.integer("quantiles", "size", size, 0, 1 << 62)
    if method not in (AUTO, TREE, *METHODS):
        raise check.fail("quantiles", "method", f"be one of {', '.join([AUTO, TREE, *METHODS])}", method)
    more.check(method)
    check.member("quantiles", "neighbours", neighbours, Neighbours)
    if neighbours is Neighbours.ZERO_OUT:
        must = "be replace or add-remove"
        raise check.fail("quantiles", "neighbours", must, str(neighbours), "Quantiles have no other.")
    question = QuantileQuestion(
        levels=exact, places=places, allowance=allowance, neighbours=neighbours, size=size, tuning=more
    )
    if method == TREE:
        return question.tree, MethodChoice(TREE, _BY_NAME)
    if method in METHODS:
        return question.mechanism(method), MethodChoice(method, _BY_NAME)
    return _best(question, counted)


def named(
    method: str,
    *,
    levels: Sequence[float],
    places: int,
    allowance: Allowance,
    neighbours: Neighbours = Neighbours.REPLACE,
    size: int | None = None,
) -> QuantileMethod:
    """The mechanism of one of METHODS."""
    question = QuantileQuestion(
        levels=levels_of(levels),
        places=places,
        allowance=allowance,
        neighbours=neighbours,
        size=size,
        tuning=Tuning(),
    )
    return question.mechanism(method)


def _best(question: QuantileQuestion, counted: bool) -> tuple[QuantileMethod | BinTree, MethodChoice]:
    """What comes nearest as far as declarations tell (docs/guarantees/quantiles.md, "What auto takes")."""
    many = len(question.levels)
    if question.few_places:
        return BinTree.flat(question.places, question.places), MethodChoice(
            TREE, "so few places are best counted one by one"
        )
    if question.few_values:
        tree = BinTree.flat(question.places, question.bins)
        why = f"about {question.size:,} values at this epsilon are best counted in {tree.fan:,} bins"
        return tree, MethodChoice(TREE, why)
    if counted:
        return BinTree.over(question.places), MethodChoice(
            TREE, "the values stay where they are and are only counted"
        )
    if many == 1:
        return question.mechanism("inverse"), MethodChoice(
            "inverse", "one quantile needs no split of the budget"
        )
    most = MANY.get((question.neighbours, question.allowance.squared), 0)
    under = f"under {question.neighbours} neighbours{' and a delta' if question.allowance.squared else ''}"
    if many > most:
        why = f"{under}, more than {most} are found best by halving"
        return question.mechanism("recursive"), MethodChoice("recursive", why)
    try:
        return question.mechanism("joint"), MethodChoice(
            "joint", f"{under}, up to {most} are found best all at once"
        )
    except InvalidParameter:
        why = "the joint method would need more than floats for this grid and epsilon"
        return question.mechanism("recursive"), MethodChoice("recursive", why)


def levels_of(levels: object) -> tuple[Fraction, ...]:
    """The levels that were asked for, as fractions."""
    if not isinstance(levels, tuple | list | np.ndarray):
        raise check.fail(
            "quantiles", "levels", "be a list of numbers", levels, "Write levels=[0.5] for the median."
        )
    return check_levels("quantiles", tuple(levels), "levels")


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
