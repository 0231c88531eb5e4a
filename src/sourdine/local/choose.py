"""Which oracle to take for a question, by its variance, and oracles by the names that people type.

For categories it is the least variance, at a small rebate for short reports; for a mean the least variance
in the worst case; for a distribution of numbers the square wave.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeVar

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.local.frequency.hadamard import HadamardResponse
from sourdine.local.frequency.hashing import GRR, OLH
from sourdine.local.frequency.projective import ProjectiveGeometry
from sourdine.local.frequency.subset import SubsetSelection
from sourdine.local.frequency.unary import OUE, SUE
from sourdine.local.numeric.bounded import BoundedLaplaceOracle, BoundedStaircaseOracle
from sourdine.local.numeric.duchi import Duchi
from sourdine.local.numeric.oracle import NumericOracle, UnbiasedOracle
from sourdine.local.numeric.piecewise import Hybrid, Piecewise, SquareWave
from sourdine.local.oracle import FrequencyOracle, Oracle
from sourdine.mechanisms.randomized_response import LEAST_EPSILON, MOST_CATEGORIES, MOST_EPSILON

_DECLARED = {"epsilon", "categories"}
HALF = 1.01  # what a report of half the bytes may cost in variance


class Choice(NamedTuple):
    """An oracle, and why it was chosen."""

    oracle: FrequencyOracle
    why: str


class _Offer(NamedTuple):
    oracle: FrequencyOracle
    variance: float

    @property
    def cost(self) -> float:
        """The variance, one percent more for each doubling of the bytes; all but equal ones are equal."""
        return float(f"{self.variance * HALF ** math.log2(self.oracle.width):.9g}")

    @property
    def size(self) -> str:
        """How long a report is, in words."""
        return counted(self.oracle.width, "byte")

    def __str__(self) -> str:
        return f"{type(self.oracle).__name__} ({self.variance:.3g}/n, {self.size})"


def choose(
    epsilon: Fraction | float, categories: int, *, frequency: Fraction | float | None = None
) -> Choice:
    """The best oracle for so many categories, and a sentence or two that say why.

    The variance is compared at a frequency, 1/k unless stated: k times that is the expected sum of squared
    errors over all categories, whatever their frequencies. Half as many bytes a report are worth one percent.

    >>> oracle, why = choose(1, 1000)
    >>> oracle.spend.mechanism == oracle
    True
    """
    level = check.between("choose", "epsilon", epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
    count = check.integer("choose", "categories", categories, 2, MOST_CATEGORIES)
    share = Fraction(1, count) if frequency is None else frequency
    share = check.between("choose", "frequency", share, Fraction(0), Fraction(1))
    oracles = [new_oracle(kind, epsilon=level, categories=count) for kind in kinds()]
    offers = [_Offer(each, float(each.variance(float(share), 1))) for each in oracles]
    best, *rest = sorted(offers, key=lambda offer: offer.cost)
    least = min(offers, key=lambda offer: offer.variance)
    at = f"at a frequency of {share if share.numerator < 2 else format(float(share), '.3g')}"
    reason = (
        f"{type(best.oracle).__name__}: a variance of {best.variance:.3g}/n {at}, reports of {best.size}."
    )
    if least.variance < best.variance * (1 - 1e-9):
        less = 1 - least.variance / best.variance
        return Choice(
            best.oracle,
            f"{reason} {least} has {100 * less:.1f} % less variance, not worth its longer reports.",
        )
    return Choice(best.oracle, f"{reason} Of {len(offers)} oracles none has less; next best is {rest[0]}.")


def kinds() -> list[Callable[..., FrequencyOracle]]:
    """Every oracle of this room that epsilon and the number of categories describe."""
    from sourdine import local

    exports = [getattr(local, name) for name in local.__all__]
    oracles = [kind for kind in exports if isinstance(kind, type) and issubclass(kind, FrequencyOracle)]
    return [kind for kind in oracles if not inspect.isabstract(kind) and _needs(kind) == _DECLARED]


def new_oracle(
    kind: Callable[..., FrequencyOracle], *, epsilon: Fraction | float, categories: int
) -> FrequencyOracle:
    """An oracle for a new question: one that has no report that supports every category."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(epsilon=epsilon, categories=categories, **({"trivial": False} if "trivial" in names else {}))


def _needs(kind: type[FrequencyOracle]) -> set[str]:
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return {field.name for field in fields if field.default is dataclasses.MISSING}


class NumericChoice(NamedTuple):
    """An oracle for numbers, and why it was chosen."""

    oracle: NumericOracle
    why: str


def choose_numeric(
    epsilon: Fraction | float,
    *,
    lower: Fraction | float,
    upper: Fraction | float,
    distribution: bool = False,
) -> NumericChoice:
    """The best oracle for the mean of numbers in [lower, upper], or for their whole distribution.

    >>> oracle, why = choose_numeric(1, lower=0, upper=100)
    >>> why
    'Hybrid: a variance of at most 4.27/n in half ranges; Duchi has 4.68/n, Piecewise 5.07/n.'
    >>> choose_numeric(0.5, lower=0, upper=100).oracle.codes
    2
    """
    whole = check.boolean("choose_numeric", "distribution", distribution)
    declared = {"epsilon": epsilon, "lower": lower, "upper": upper}
    if whole:
        return NumericChoice(
            SquareWave(**declared),  # type: ignore[arg-type]
            "SquareWave: its window lets a report tell most about the value, and distributions found with it "
            "were the nearest at every epsilon tried. For the mean alone another has less variance.",
        )
    kinds: tuple[type[UnbiasedOracle], ...] = (Duchi, Piecewise, Hybrid)
    oracles = [kind(**declared) for kind in kinds]  # type: ignore[arg-type]
    best, *rest = sorted(oracles, key=_variance)  # Duchi is the first of equals, and the simplest
    others = ", ".join(
        f"{type(each).__name__} {'has ' * (i == 0)}{_variance(each):.3g}/n" for i, each in enumerate(rest)
    )
    why = f"{type(best).__name__}: a variance of at most {_variance(best):.3g}/n in half ranges; {others}."
    return NumericChoice(best, why)


def _variance(oracle: UnbiasedOracle) -> float:
    return oracle.worst_variance / oracle.reach**2


AUTO = "auto"
FREQUENCY: dict[str, type[FrequencyOracle]] = {
    "kary": GRR,
    "symmetric-unary": SUE,
    "optimal-unary": OUE,
    "local-hashing": OLH,
    "subset": SubsetSelection,
    "hadamard": HadamardResponse,
    "projective": ProjectiveGeometry,
}
NUMERIC: dict[str, type[NumericOracle]] = {
    "duchi": Duchi,
    "piecewise": Piecewise,
    "hybrid": Hybrid,
    "square-wave": SquareWave,
    "bounded-laplace": BoundedLaplaceOracle,
    "bounded-staircase": BoundedStaircaseOracle,
}
Number = Fraction | float
K = TypeVar("K", bound=Oracle)


def frequency_oracle(name: str, *, epsilon: Number, categories: int) -> tuple[FrequencyOracle, str]:
    """The oracle of a name for so many categories, and why it is taken."""
    if name == AUTO:
        return choose(epsilon, categories)
    oracle = new_oracle(_kind(name, FREQUENCY), epsilon=epsilon, categories=categories)
    return oracle, f"{type(oracle).__name__} was asked for"


def numeric_oracle(name: str, *, epsilon: Number, lower: Number, upper: Number) -> tuple[Oracle, str]:
    """The oracle of a name for numbers in a range, and why it is taken."""
    if lower >= upper:
        raise InvalidParameter("The lower bound must be below the upper one. Give the bounds in order.")
    if name == AUTO:
        return choose_numeric(epsilon, lower=lower, upper=upper)
    oracle = _kind(name, NUMERIC)(epsilon=epsilon, lower=lower, upper=upper)
    return oracle, f"{type(oracle).__name__} was asked for"


def _kind(name: str, names: Mapping[str, type[K]]) -> type[K]:
    """The oracle of a name: one of the keys, or a class's own name in any case, such as OUE."""
    known = dict(names) | {kind.__name__.casefold(): kind for kind in names.values()}
    if name.casefold() not in known:
        offered = ", ".join(f"{key} ({kind.__name__})" for key, kind in names.items())
        raise check.fail("a question", "oracle", f"be {AUTO} or one of {offered}", name)
    return known[name.casefold()]
