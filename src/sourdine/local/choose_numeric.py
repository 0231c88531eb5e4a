"""Which numeric oracle to take: for a mean by its worst variance, for a distribution the square wave."""

from fractions import Fraction
from typing import NamedTuple

from sourdine.core import check
from sourdine.local.duchi import Duchi
from sourdine.local.hybrid import Hybrid
from sourdine.local.numeric import NumericOracle, UnbiasedOracle
from sourdine.local.piecewise import Piecewise
from sourdine.local.square_wave import SquareWave


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
