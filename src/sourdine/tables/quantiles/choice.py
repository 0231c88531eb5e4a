"""The methods by name, and which one is taken where none is asked for: by declarations, never by values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sourdine.core import check
from sourdine.core.distance import Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.levels import check_levels
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.naive import NaiveLaplace
from sourdine.tables.quantiles.recursive import RecursiveQuantiles
from sourdine.tables.quantiles.threshold import MOST_CUTS, ThresholdHistogram

AUTO, TREE = "auto", "tree"
MANY = {  # levels up to which the joint mechanism is best, by neighbours and by whether rho is spent
    (Neighbours.REPLACE, False): 29,
    (Neighbours.ADD_REMOVE, False): 14,
    (Neighbours.REPLACE, True): 5,
    (Neighbours.ADD_REMOVE, True): 2,
}
_FEW_CUTS = 1000  # of a histogram, where no size is declared
_PARTS = 1 << 40  # epsilons from a rho are rounded down to multiples of one over this

Settings = Mapping[str, int | bool]


@dataclass(frozen=True)
class Method:
    """A kind of mechanism, and what its name settles of it for so many places and a declared size."""

    kind: type[QuantileMethod]
    settings: Callable[[int, int | None], Settings] = lambda places, size: {}


def _histogram(monotone: bool) -> Method:
    def settings(places: int, size: int | None) -> Settings:
        """The source's number of cut points, 1.5 n / log n, for a declared size."""
        wanted = _FEW_CUTS if size is None else max(2, math.ceil(1.5 * size / math.log(max(size, 3))))
        return {"cuts": min(wanted, places, MOST_CUTS), "monotone": monotone}

    return Method(ThresholdHistogram, settings)


METHODS = {
    "joint": Method(JointExponential),
    "recursive": Method(RecursiveQuantiles, lambda places, size: {"radius": 1}),
    "inverse": Method(InverseSensitivity),
    "smooth": Method(InverseSensitivity, lambda places, size: {"radius": 1}),
    "histogram": _histogram(False),
    "monotone histogram": _histogram(True),
    "naive": Method(NaiveLaplace),
}


@dataclass(frozen=True)
class Choice:
    """The method that was taken, and why.

    >>> Choice("joint", "it was asked for").words
    'joint, since it was asked for'
    """

    name: str
    why: str

    @property
    def words(self) -> str:
        """Both in one line."""
        return f"{self.name}, since {self.why}"


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


def chosen(
    method: str,
    *,
    at: Sequence[float],
    places: int,
    allowance: Allowance,
    neighbours: Neighbours = Neighbours.REPLACE,
    size: int | None = None,
) -> tuple[QuantileMethod, Choice]:
    """The mechanism of a method's name, as exact as the allowance lets it be, and why it was taken."""
    levels = levels_of(at)
    if size is not None:
        size = check.integer("quantiles", "size", size, 0, 1 << 62)

    def made(name: str) -> QuantileMethod:
        held = METHODS[name]
        return held.kind(
            epsilon=allowance.epsilon(held.kind, len(levels)),
            levels=levels,
            places=places,
            neighbours=neighbours,
            **held.settings(places, size),
        )

    if method in METHODS:
        return made(method), Choice(method, "it was asked for")
    if method != AUTO:
        raise check.fail("quantiles", "method", f"be one of {', '.join([AUTO, TREE, *METHODS])}", method)
    if len(levels) == 1:
        why = "one quantile needs no split of the budget, and a radius saves it on equal values"
        return made("smooth"), Choice("smooth", why)
    most = MANY.get((neighbours, allowance.squared), 0)
    under = f"under {neighbours} neighbours{' and a delta' if allowance.squared else ''}"
    if len(levels) > most:
        return made("recursive"), Choice("recursive", f"{under}, more than {most} are found best by halving")
    try:
        return made("joint"), Choice("joint", f"{under}, up to {most} are found best all at once")
    except InvalidParameter:
        why = "the joint method would need more than floats for this grid and epsilon"
        return made("recursive"), Choice("recursive", why)


def levels_of(at: object) -> tuple[Fraction, ...]:
    """The levels that were asked for, as fractions."""
    if not isinstance(at, tuple | list | np.ndarray):
        raise check.fail("quantiles", "at", "be a list of numbers", at, "Write at=[0.5] for the median.")
    return check_levels("quantiles", tuple(at), "at")
