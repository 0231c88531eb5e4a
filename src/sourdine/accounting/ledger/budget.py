"""How much may be spent, in which currency, and what a loss costs in it.

Spending is adaptive: what is asked next may depend on earlier answers. Four sums stay valid then: of pure
epsilons, of rhos, of Renyi divergences at one order fixed when the ledger is made (Feldman and Zrnic 2021,
theorem 3.1; Whitehouse, Ramdas, Rogers, Wu 2023), and of squared mus (Smith and Thakurta 2022).
Privacy loss distributions and optimal composition are valid only for a plan fixed beforehand. Amounts are
exact fractions that stay short.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import ClassVar

from sourdine.accounting.accountant import exactly
from sourdine.accounting.gaussian_dp import dominating_square, gdp_epsilon
from sourdine.accounting.odometer import odometer_epsilon
from sourdine.accounting.zcdp import RhoCost, ZeroConcentrated, tight_epsilon
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import float_above
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss

UNLIMITED = Fraction(1 << 40)  # the limit of a ledger that has none
_LONGEST = 512  # bits of a denominator; longer sums leave the exact ones for a fine grid
_GRID = 1 << 256
_TEXT = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")


def add(first: Fraction, second: Fraction) -> Fraction:
    """The sum, exact while its denominator is short, else rounded up to a multiple of 2^-256.

    Noise scales given as floats have denominators with no common factor: a few hundred of them would make a
    total of thousands of digits.

    >>> add(Fraction(1, 20), Fraction(1, 30))
    Fraction(1, 12)
    """
    total = first + second
    if total.denominator.bit_length() <= _LONGEST:
        return total
    return Fraction(math.ceil(total * _GRID), _GRID)


def amount(text: object) -> Fraction:
    """The number that a text such as '3/4' holds; a ValueError for anything else.

    Fraction itself reads '1e999999999' too, and computes for hours.
    """
    if not isinstance(text, str):
        raise ValueError("not an amount")
    return _amount(text)


@lru_cache(maxsize=1024)
def _amount(text: str) -> Fraction:
    """The same; most charges of a ledger cost what others did."""
    if not _TEXT.fullmatch(text):
        raise ValueError("not an amount")
    above, _, below = text.partition("/")
    if below and not int(below):
        raise ValueError("not an amount")
    return Fraction(int(above), int(below or 1))


MOST = UNLIMITED
WHY_NOT_PLD = (
    "A ledger cannot add up by privacy loss distributions. Their sum holds only for a plan that is fixed "
    "before the first answer, and a ledger is spent adaptively. Use 'pure', 'zcdp', 'renyi' or 'gdp'."
)


@dataclass(frozen=True, kw_only=True)
class Budget(ABC):
    """A limit in one currency."""

    name: ClassVar[str]
    symbol: ClassVar[str]
    remedy: ClassVar[str]
    limit: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", check.positive(type(self).__name__, "limit", self.limit, MOST))

    @abstractmethod
    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        """What a loss costs in this currency: a fraction if exact, else a float, perhaps infinite."""

    def price(self, loss: PrivacyLoss) -> Fraction:
        """The cost as a fraction; an infinite one raises."""
        cost = self.cost(loss)
        if not math.isfinite(cost):
            raise UnsupportedLoss(
                f"A spend has no finite {self.symbol}, so this ledger cannot pay for it. "
                f"Nothing was spent. {self.remedy}"
            )
        return Fraction(cost)

    def exact(self, loss: PrivacyLoss) -> bool:
        """Whether every machine finds the same price; the last digits of a float may differ."""
        return isinstance(self.cost(loss), Rational)

    @abstractmethod
    def epsilon(self, spent: Fraction, delta: float) -> float:
        """The epsilon that so much spent amounts to, at a delta."""

    def to_json(self) -> dict[str, str]:
        """The budget as the ledger's terms hold it."""
        return {"name": self.name, "limit": str(self.limit)}

    @staticmethod
    def from_json(terms: Mapping[str, str]) -> "Budget":
        """The budget that terms describe."""
        kinds: dict[str, type[Budget]] = {
            kind.name: kind
            for kind in (PureBudget, ConcentratedBudget, RenyiBudget, GaussianBudget, OdometerBudget)
        }
        name = terms["name"]
        if name == "pld":
            raise InvalidParameter(WHY_NOT_PLD)
        if name not in kinds:
            raise check.fail("Ledger", "budget", f"be one of {', '.join(kinds)}", name)
        return kinds[name](**{key: amount(value) for key, value in terms.items() if key != "name"})


@dataclass(frozen=True, kw_only=True)
class PureBudget(Budget):
    """A limit on the sum of pure epsilons.

    >>> PureBudget(limit=1).price(PrivacyLoss.pure(Fraction(1, 20)))
    Fraction(1, 20)
    """

    name: ClassVar[str] = "pure"
    symbol: ClassVar[str] = "epsilon"
    remedy: ClassVar[str] = "Pay it from a zcdp or renyi ledger."

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return loss.epsilon

    def epsilon(self, spent: Fraction, delta: float) -> float:
        return float_above(spent)


@dataclass(frozen=True, kw_only=True)
class ConcentratedBudget(Budget):
    """A limit on the sum of rhos (zero-concentrated differential privacy)."""

    name: ClassVar[str] = "zcdp"
    symbol: ClassVar[str] = "rho"
    remedy: ClassVar[str] = "Pay it from a renyi ledger."

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return _rho(loss)

    def epsilon(self, spent: Fraction, delta: float) -> float:
        return ZeroConcentrated().epsilon(RhoCost(Neighbours.ADD_REMOVE, spent), delta).upper

    @classmethod
    def within(cls, epsilon: Fraction | float, delta: float) -> "ConcentratedBudget":
        """The largest rho, rounded down to nine digits, that stays within (epsilon, delta)."""
        target = check.positive("ConcentratedBudget", "epsilon", epsilon, 1 << 20)
        delta = float(check.inside("ConcentratedBudget", "delta", delta, 0, 1))
        low, high, unit = Fraction(0), target, Fraction(0)
        for _ in range(60):
            if unit and low // unit == high // unit:
                break  # more halvings would not change these digits
            middle = Fraction(float((low + high) / 2))
            cost = RhoCost(Neighbours.ADD_REMOVE, middle)
            fits = ZeroConcentrated().epsilon(cost, delta).upper <= target
            low, high = (middle, high) if fits else (low, middle)
            unit = Fraction(1, 10 ** (9 - math.floor(math.log10(low)))) if low else unit
        return cls(limit=math.floor(low / unit) * unit)


@dataclass(frozen=True, kw_only=True)
class RenyiBudget(Budget):
    """A limit on the sum of Renyi divergences at one order, fixed when the ledger is made."""

    name: ClassVar[str] = "renyi"
    symbol: ClassVar[str] = "divergence"
    remedy: ClassVar[str] = "Choose a lower order for the ledger."
    order: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        order = check.between("RenyiBudget", "order", self.order, Fraction(1001, 1000), Fraction(10_000))
        object.__setattr__(self, "order", order)

    def cost(self, loss: PrivacyLoss) -> float:
        from sourdine.accounting.rdp.accountant import Renyi  # few ledgers are kept in divergences

        moments = Renyi(orders=(float(self.order),)).lift(loss)
        moment = max(float(moments.remove[0]), float(moments.add[0]))
        return moment * (1 + 1e-12) / (float(self.order) - 1)

    def epsilon(self, spent: Fraction, delta: float) -> float:
        import numpy as np

        orders = np.array([float(self.order)])
        return max(0.0, float(tight_epsilon(orders, np.array([float_above(spent)]), delta)[0]) + 1e-12)

    def to_json(self) -> dict[str, str]:
        return super().to_json() | {"order": str(self.order)}


@dataclass(frozen=True, kw_only=True)
class OdometerBudget(Budget):
    """No limit: the rhos are added up, and their epsilon is a bound that holds at all times at once."""

    name: ClassVar[str] = "odometer"
    symbol: ClassVar[str] = "rho"
    remedy: ClassVar[str] = "Pay it from a renyi ledger."
    limit: Fraction = UNLIMITED

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit != UNLIMITED:
            raise check.fail("OdometerBudget", "limit", "be left out", float(self.limit))

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return _rho(loss)

    def epsilon(self, spent: Fraction, delta: float) -> float:
        return math.inf if spent >= self.limit else odometer_epsilon(spent, delta)


def _rho(loss: PrivacyLoss) -> Fraction | float:
    return min(loss.rho, exactly(loss.epsilon) ** 2 / 2 if math.isfinite(loss.epsilon) else math.inf)


@dataclass(frozen=True, kw_only=True)
class GaussianBudget(Budget):
    """A limit on the sum of squared mus (Gaussian differential privacy); the limit is the square of a mu.

    A spend costs the square of a mu that is proven to dominate it at every epsilon, and is refused if there
    is none: discrete Gaussian noise of sigma 1 costs more than 1.
    """

    name: ClassVar[str] = "gdp"
    symbol: ClassVar[str] = "mu^2"
    remedy: ClassVar[str] = "No mu is proven to dominate it. Pay it from a zcdp or renyi ledger."

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return dominating_square(loss)

    def epsilon(self, spent: Fraction, delta: float) -> float:
        return gdp_epsilon(spent, delta)
