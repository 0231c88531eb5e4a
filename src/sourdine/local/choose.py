"""Which oracle to take for a question: the least variance, at a small rebate for short reports."""

import dataclasses
import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from sourdine.core import check
from sourdine.core.digits import counted
from sourdine.local.oracle import FrequencyOracle
from sourdine.mechanisms.response import LEAST_EPSILON, MOST_CATEGORIES, MOST_EPSILON

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
    oracles = [kind(epsilon=level, categories=count) for kind in kinds()]
    offers = [_Offer(each, float(each.variance(float(share), 1))) for each in oracles]
    best, *rest = sorted(offers, key=lambda offer: offer.cost)
    least = min(offers, key=lambda offer: offer.variance)
    at = f"at a frequency of {share if share.numerator < 2 else format(float(share), '.3g')}"
    said = f"{type(best.oracle).__name__}: a variance of {best.variance:.3g}/n {at}, reports of {best.size}."
    if least.variance < best.variance * (1 - 1e-9):
        less = 1 - least.variance / best.variance
        return Choice(
            best.oracle, f"{said} {least} has {100 * less:.1f} % less variance, not worth its longer reports."
        )
    return Choice(best.oracle, f"{said} Of {len(offers)} oracles none has less; next best is {rest[0]}.")


def kinds() -> list[Callable[..., FrequencyOracle]]:
    """Every oracle of this room that epsilon and the number of categories describe."""
    from sourdine import local

    found = [getattr(local, name) for name in local.__all__]
    oracles = [kind for kind in found if isinstance(kind, type) and issubclass(kind, FrequencyOracle)]
    return [kind for kind in oracles if not inspect.isabstract(kind) and _needs(kind) == _DECLARED]


def _needs(kind: type[FrequencyOracle]) -> set[str]:
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return {field.name for field in fields if field.default is dataclasses.MISSING}
