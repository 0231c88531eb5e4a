"""The guarantee of one release, and what there is to divide among its measurements."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sourdine.accounting.accountant import left_of
from sourdine.accounting.ledger.budget import ConcentratedBudget
from sourdine.accounting.ledger.making import exact
from sourdine.core import check
from sourdine.core.format import plain

MOST_EPSILON = 1 << 20


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
