"""How much may be spent, in which currency, and what a block of spends costs in it.

Spending is adaptive: what is asked next may depend on earlier answers. Three sums stay valid then: of pure
epsilons, of rhos, and of Renyi divergences at one order fixed when the ledger is made (Feldman and Zrnic
2021, theorem 4.5; Whitehouse, Ramdas, Rogers, Wu 2023, theorem 1). Privacy loss distributions and optimal
composition are valid only inside a block that is fixed beforehand.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sourdine.core import check
from sourdine.core.loss import Loss


@dataclass(frozen=True, kw_only=True)
class Budget(ABC):
    """A limit in one currency."""

    name: ClassVar[str]
    symbol: ClassVar[str]
    limit: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", check.positive(type(self).__name__, "limit", self.limit, 1 << 40))

    @abstractmethod
    def price(self, loss: Loss) -> Fraction:
        """What one loss costs in this currency, exactly or rounded up."""

    @abstractmethod
    def epsilon(self, spent: Fraction, delta: float) -> float:
        """The epsilon that so much spent amounts to, at a delta."""

    def price_all(self, losses: Sequence[tuple[Loss, int]]) -> Fraction:
        """What a block costs: the sum, which is the tightest in each of these currencies."""
        return sum((self.price(loss) * count for loss, count in losses), Fraction(0))


@dataclass(frozen=True, kw_only=True)
class PureBudget(Budget):
    """A limit on the sum of pure epsilons."""

    name: ClassVar[str] = "pure"
    symbol: ClassVar[str] = "epsilon"

    def price(self, loss: Loss) -> Fraction:
        return _finite(loss.epsilon, self)

    def epsilon(self, spent: Fraction, delta: float) -> float:
        return _up(spent)


@dataclass(frozen=True, kw_only=True)
class ConcentratedBudget(Budget):
    """A limit on the sum of rhos (zero-concentrated differential privacy)."""

    name: ClassVar[str] = "zcdp"
    symbol: ClassVar[str] = "rho"

    def price(self, loss: Loss) -> Fraction:
        return _finite(loss.rho, self)

    def epsilon(self, spent: Fraction, delta: float) -> float:
        return epsilon_of_rho(_up(spent), delta)

    @classmethod
    def within(cls, epsilon: Fraction | float, delta: float) -> "ConcentratedBudget":
        """The largest rho that stays within (epsilon, delta), to one part in a million below."""
        target = float(check.positive("ConcentratedBudget", "epsilon", epsilon, 1 << 20))
        delta = float(check.inside("ConcentratedBudget", "delta", delta, 0, 1))
        low, high = 0.0, target
        while high - low > 1e-7 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if epsilon_of_rho(middle, delta) <= target else (low, middle)
        return cls(limit=Fraction(low).limit_denominator(10**12) if low > 1e-3 else Fraction(low))
