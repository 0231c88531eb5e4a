"""The methods by name, and which one is taken where none is asked for: by declarations, never by values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from sourdine.core import check
from sourdine.core.distance import Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.tables.quantiles.histogram import MOST_CUTS, ThresholdHistogram
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.method import MOST_PLACES, QuantileMethod, check_levels
from sourdine.tables.quantiles.naive import NaiveLaplace
from sourdine.tables.quantiles.recursive import RecursiveQuantiles
from sourdine.tables.quantiles.tree import BinTree

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
