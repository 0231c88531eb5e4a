"""The guarantee of one release, and what there is to divide among its measurements."""

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from sourdine.accounting.accountant import left_of
from sourdine.accounting.ledger.budget import ConcentratedBudget
from sourdine.accounting.ledger.making import exact
from sourdine.core import check
from sourdine.core.format import plain

MOST_EPSILON = 1 << 20


class NoiseChoice(StrEnum):
    """Which noise the measurements of a release get where a delta allows for several.

    Pure noise (Laplace noise, and exponential mechanisms by their epsilon), noise that is paid in rho
    (Gaussian noise, and exponential mechanisms by their rho), or for each what is nearest.
    """

    NEAREST = "nearest"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What is divided among some measurements: epsilon, or the rho of distances in L2 where `squared`."""

    total: Fraction
    squared: bool = False

    @property
    def currency(self) -> str:
        """What is divided, as mechanisms call it."""
        return "rho" if self.squared else "epsilon"


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The guarantee of one release: pure epsilon, or (epsilon, delta) by zero-concentrated noise.

    `selection_delta` is the part of delta that pays for keys that are chosen privately. Where it is all of
    delta, the noise is pure, and epsilon holds but for those keys. Without a word about it, a plan that
    chooses keys takes half.

    >>> Privacy(epsilon=1).total
    Fraction(1, 1)
    """

    epsilon: Fraction
    delta: float | None = None
    selection_delta: float | None = None

    def __post_init__(self) -> None:
        meant = exact("Privacy", "epsilon", self.epsilon)  # ten times 0.1 are 1, as in the ledger that pays
        check.keep(self, epsilon=check.positive("Privacy", "epsilon", meant, MOST_EPSILON))
        if self.delta is not None:
            check.keep(self, delta=float(check.inside("Privacy", "delta", self.delta, 0, 1)))
        if self.selection_delta is not None:
            remedy = "It is the part of delta that pays for keys that are chosen privately."
            if self.delta is None:
                raise check.fail(
                    "Privacy", "selection_delta", "come with a delta", self.selection_delta, remedy
                )
            selection_delta = float(check.rational("Privacy", "selection_delta", self.selection_delta))
            if not 0 <= selection_delta <= self.delta:
                raise check.fail(
                    "Privacy", "selection_delta", "be from 0 to delta", self.selection_delta, remedy
                )
            check.keep(self, selection_delta=selection_delta)

    @property
    def squared(self) -> bool:
        """Whether rho is spent, on distances in L2."""
        return self.delta is not None and self.selection_delta != self.delta

    @cached_property
    def total(self) -> Fraction:
        """What there is to divide: epsilon, or the rho that stays within it at what is left of delta."""
        if self.delta is None or not self.squared:
            return self.epsilon
        rest = left_of(self.delta, Fraction(self.selection_delta or 0))
        return ConcentratedBudget.within(self.epsilon, rest).limit

    def allot(self, part: Fraction = Fraction(1)) -> Allotment:
        """Return rho for measurements whose shares of epsilon add up to `part`.

        Each gets its share of it; together that is a rho within part * epsilon at what is left of delta.
        """
        part = check.positive("Privacy", "part", part)
        rest = left_of(self.delta or 0.0, Fraction(self.selection_delta or 0))
        return Allotment(
            total=ConcentratedBudget.within(part * self.epsilon, rest).limit / part, squared=True
        )

    def divided(self, chooses: bool, pure: bool) -> "Privacy":
        """Return the guarantee with its parts of delta, where keys are chosen privately or not.

        Pure noise takes nothing of delta, and leaves all of it to the choice of keys.
        """
        if self.delta is None:
            return self
        declared = self.selection_delta
        if not pure:
            half = (self.delta / 2 if chooses else 0.0) if declared is None else declared
            return replace(self, selection_delta=half)
        delta = (self.delta if declared is None else declared) if chooses else None
        return Privacy(epsilon=self.epsilon, delta=delta, selection_delta=delta)

    @property
    def words(self) -> str:
        """The guarantee as people write it."""
        small = "" if self.delta is None else f", delta {plain(self.delta)}"
        part = (
            f" of which {plain(self.selection_delta)} for keys chosen privately"
            if self.selection_delta
            else ""
        )
        return f"epsilon {float(self.epsilon):g}{small}{part}"
