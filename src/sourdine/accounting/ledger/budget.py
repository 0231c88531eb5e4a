"""How much may be spent, in which currency, and what a block costs in it.

Spending is adaptive: what is asked next may depend on earlier answers. Five sums stay valid then: of pure
epsilons, of rhos, of Renyi divergences at one order fixed when the ledger is made (Feldman and Zrnic 2021,
theorem 3.1; Whitehouse, Ramdas, Rogers, Wu 2023), of squared mus (Smith and Thakurta 2022), and of pairs
(epsilon, delta). Privacy loss distributions and optimal composition are valid only for a plan fixed
beforehand: within one block, never between blocks. Amounts are exact fractions that stay short.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import TYPE_CHECKING, ClassVar

from sourdine.accounting.accountant import Bracket, exactly, left_of
from sourdine.accounting.gaussian_dp import dominating_square, gdp_epsilon
from sourdine.accounting.odometer import odometer_epsilon
from sourdine.accounting.spend import Spend, plan_cost
from sourdine.accounting.zcdp import RhoCost, ZeroConcentrated, tight_epsilon
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import float_above
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.format import plain, shorten_up
from sourdine.core.loss import PrivacyLoss

if TYPE_CHECKING:
    from sourdine.accounting.pld.accountant import PldCost

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
Shares = tuple[Fraction, ...]
"""What is taken of the limits at several orders, each as a share of its own limit."""
WHY_NOT_PLD = (
    "A ledger cannot add up by privacy loss distributions. Their sum holds only for a plan that is fixed "
    "before the first answer, and a ledger is spent adaptively. Use 'basic', which prices each charge by its "
    "privacy loss distribution, or 'pure', 'zcdp', 'renyi' or 'gdp'."
)
_SLACK = Fraction(1, 10**9)  # how far a price in floats may differ between machines
_DIGITS = 6  # of a price that is searched for
_NEAR = 1e-4  # how close to the least price, as a share of it, a search ends
_TURNS = 40
_FINEST = 1e-8  # of epsilon: finer lattices take seconds, and no price is that small
_LEAST_ORDER, _MOST_ORDER = Fraction(1001, 1000), Fraction(10_000)
_PARTS = (0.5, 0.7, 1.0)  # least noise within 7 % of all orders at once
_MOST_ORDERS = 16
_SHARE_DIGITS = 9
_SHARE_SLACK = Fraction(1, 10**7)  # how far a share of nine digits may differ between machines
_FALL = 40.0  # e^-40 of a budget is never too much for a search to begin with


@dataclass(frozen=True, kw_only=True)
class Budget(ABC):
    """A limit in one currency."""

    name: ClassVar[str]
    symbol: ClassVar[str]
    limit: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", check.positive(type(self).__name__, "limit", self.limit, MOST))

    @abstractmethod
    def block_price(self, spends: Sequence[Spend], own: Fraction, rest: float) -> Fraction:
        """Return what a block fixed beforehand costs.

        `own` is what it takes of the selection delta, and `rest` what that leaves of the ledger's delta.
        """

    @abstractmethod
    def covers(
        self, price: Fraction, spends: Sequence[Spend], own: Fraction, rest: float, shares: Shares = ()
    ) -> bool:
        """Check that a price which was paid once, perhaps on another machine, is enough for a block."""

    @abstractmethod
    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
        """The epsilon that so much spent amounts to, at a delta; `shares` are those of each order, if any."""

    def block_shares(self, spends: Sequence[Spend], rest: float) -> Shares:
        """Return what a block takes of each order; nothing for a budget of one sum."""
        return ()

    def to_json(self) -> dict[str, str | list[str]]:
        """The budget as the ledger's terms hold it."""
        return {"name": self.name, "limit": str(self.limit)}

    @staticmethod
    def from_json(terms: Mapping[str, object]) -> "Budget":
        """The budget that terms describe."""
        kinds: dict[str, type[Budget]] = {
            kind.name: kind
            for kind in (
                PureBudget,
                ConcentratedBudget,
                RenyiBudget,
                GaussianBudget,
                OdometerBudget,
                BasicBudget,
                RenyiGridBudget,
            )
        }
        name = str(terms["name"])
        if name == "pld":
            raise InvalidParameter(WHY_NOT_PLD)
        if name not in kinds:
            raise check.fail("Ledger", "budget", f"be one of {', '.join(kinds)}", name)
        numbers = {
            key: tuple(map(amount, value)) if isinstance(value, list) else amount(value)
            for key, value in terms.items()
            if key != "name"
        }
        return kinds[name](**numbers)  # type: ignore[arg-type]  # checked by the classes


class AdditiveBudget(Budget):
    """A limit on a sum over all mechanisms, whichever block they are in."""

    @abstractmethod
    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        """What a loss costs in this currency: a fraction if exact, else a float, perhaps infinite."""

    def price(self, loss: PrivacyLoss) -> Fraction:
        """The cost as a fraction; an infinite one raises."""
        cost = self.cost(loss)
        if not math.isfinite(cost):
            raise UnsupportedLoss(
                f"A spend has no finite {self.symbol}, so this ledger cannot pay for it. Nothing was spent."
            )
        return Fraction(cost)

    def exact(self, loss: PrivacyLoss) -> bool:
        """Whether every machine finds the same price; the last digits of a float may differ."""
        return isinstance(self.cost(loss), Rational)

    def block_price(self, spends: Sequence[Spend], own: Fraction, rest: float) -> Fraction:
        return sum_of_block(spends, [spend.count * self.price(spend.one_loss()) for spend in spends])

    def covers(
        self, price: Fraction, spends: Sequence[Spend], own: Fraction, rest: float, shares: Shares = ()
    ) -> bool:
        cost = self.block_price(spends, own, rest)
        if price >= cost:
            return True
        exact = all(self.exact(spend.one_loss()) for spend in spends)
        return not exact and price >= cost * (1 - _SLACK)


def sum_of_block(spends: Sequence[Spend], costs: Sequence[Fraction]) -> Fraction:
    """The sum over a block, of a family of parts only the largest."""
    alone, families = Fraction(0), dict[str, dict[str, Fraction]]()
    for spend, cost in zip(spends, costs, strict=True):
        if spend.part is None:
            alone = add(alone, cost)
        else:
            keys = families.setdefault(spend.part.family, {})
            keys[spend.part.key] = add(keys.get(spend.part.key, Fraction(0)), cost)
    for keys in families.values():
        alone = add(alone, max(keys.values()))
    return alone


@dataclass(frozen=True, kw_only=True)
class PureBudget(AdditiveBudget):
    """A limit on the sum of pure epsilons.

    >>> PureBudget(limit=1).price(PrivacyLoss.pure(Fraction(1, 20)))
    Fraction(1, 20)
    """

    name: ClassVar[str] = "pure"
    symbol: ClassVar[str] = "epsilon"

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return loss.epsilon

    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
        return float_above(spent)


@dataclass(frozen=True, kw_only=True)
class ConcentratedBudget(AdditiveBudget):
    """A limit on the sum of rhos (zero-concentrated differential privacy)."""

    name: ClassVar[str] = "zcdp"
    symbol: ClassVar[str] = "rho"

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return _rho(loss)

    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
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
class RenyiBudget(AdditiveBudget):
    """A limit on the sum of Renyi divergences at one order, fixed when the ledger is made."""

    name: ClassVar[str] = "renyi"
    symbol: ClassVar[str] = "divergence"
    order: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        order = check.between("RenyiBudget", "order", self.order, _LEAST_ORDER, _MOST_ORDER)
        object.__setattr__(self, "order", order)

    def cost(self, loss: PrivacyLoss) -> float:
        from sourdine.accounting.rdp.accountant import Renyi  # few ledgers are kept in divergences

        moments = Renyi(orders=(float(self.order),)).lift(loss)
        moment = max(float(moments.remove[0]), float(moments.add[0]))
        return moment * (1 + 1e-12) / (float(self.order) - 1)

    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
        import numpy as np

        orders = np.array([float(self.order)])
        return max(0.0, float(tight_epsilon(orders, np.array([float_above(spent)]), delta)[0]) + 1e-12)

    def to_json(self) -> dict[str, str | list[str]]:
        return super().to_json() | {"order": str(self.order)}


@dataclass(frozen=True, kw_only=True)
class OdometerBudget(AdditiveBudget):
    """No limit: the rhos are added up, and their epsilon is a bound that holds at all times at once."""

    name: ClassVar[str] = "odometer"
    symbol: ClassVar[str] = "rho"
    limit: Fraction = UNLIMITED

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit != UNLIMITED:
            raise check.fail("OdometerBudget", "limit", "be left out", float(self.limit))

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return _rho(loss)

    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
        return math.inf if spent >= self.limit else odometer_epsilon(spent, delta)


def _rho(loss: PrivacyLoss) -> Fraction | float:
    return min(loss.rho, exactly(loss.epsilon) ** 2 / 2 if math.isfinite(loss.epsilon) else math.inf)


@dataclass(frozen=True, kw_only=True)
class GaussianBudget(AdditiveBudget):
    """A limit on the sum of squared mus (Gaussian differential privacy); the limit is the square of a mu.

    A spend costs the square of a mu that is proven to dominate it at every epsilon, and is refused if there
    is none: discrete Gaussian noise of sigma 1 costs more than 1.
    """

    name: ClassVar[str] = "gdp"
    symbol: ClassVar[str] = "mu^2"

    def cost(self, loss: PrivacyLoss) -> Fraction | float:
        return dominating_square(loss)

    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
        return gdp_epsilon(spent, delta)


@dataclass(frozen=True, kw_only=True)
class BasicBudget(Budget):
    """A limit on sums of pairs (epsilon, delta); each block is composed as one privacy loss distribution.

    A block costs the least p for which it is (p, d p/limit)-DP, d being the ledger's delta: the same share of
    both. Blocks whose prices add up to at most the limit are (limit, d)-DP together, however they depend on
    earlier answers (docs/guarantees/ledger.md).
    """

    name: ClassVar[str] = "basic"
    symbol: ClassVar[str] = "epsilon"

    def block_price(self, spends: Sequence[Spend], own: Fraction, rest: float) -> Fraction:
        pure = _pure(spends)
        cost = _block_cost(spends)

        def excess(log_price: float) -> float:
            """The logarithm of epsilon at the share of delta that goes with a price, over that price."""
            price = math.exp(log_price)
            epsilon = self._epsilon(cost, price, own, rest, 1e-4).upper
            return math.log(epsilon / price) if epsilon > 0 else -math.inf

        if not self._fits(cost, self.limit, own, rest):
            epsilon = self._epsilon(cost, float(self.limit), own, rest, 1e-4).upper
            if epsilon == math.inf:
                raise UnsupportedLoss(
                    f"The charge has no finite epsilon at the ledger's delta, {plain(rest)}, so it cannot be "
                    "paid. Nothing was spent. Use more noise, or choose keys at a smaller delta."
                )
            return max(Fraction(shorten_up(epsilon, _DIGITS)), self.limit * (1 + _SLACK))
        # Epsilon falls as the price, and with it the share of delta, grows. So log(epsilon/price) has a slope
        # of at most -1: a price that fits with -t there is above the least one by at most e^t.
        high = math.log(self.limit)
        low, above, below = high - _FALL, math.inf, excess(high)
        for turn in range(_TURNS):
            if below > -_NEAR:
                break
            at = (low + high) / 2
            if math.isinf(above) and high + below > low:
                at = high + below  # as low as the least may be
            elif math.isfinite(above - below) and turn % 4 < 3:
                at = low + (high - low) * above / (above - below) + _NEAR / 2
            at = min(at, high)
            value = excess(at)
            if value <= 0:
                high, below = at, value
            else:
                low, above = at, value
        price = Fraction(shorten_up(math.exp(high) * (1 + 1e-9), _DIGITS))
        return min(price, self.limit) if pure is None else min(price, self.limit, pure)

    def covers(
        self, price: Fraction, spends: Sequence[Spend], own: Fraction, rest: float, shares: Shares = ()
    ) -> bool:
        # What a search finds depends on the last digits of floats, so the price is checked and not compared.
        pure = _pure(spends)
        if pure is not None and price >= pure:
            return True
        return self._fits(_block_cost(spends), price * (1 + Fraction(1, 10**6)), own, rest)

    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
        return float_above(spent)

    def _fits(self, cost: "PldCost", price: Fraction, own: Fraction, rest: float) -> bool:
        """Whether a block is (p, own + rest p/limit)-DP; what is close is looked at more finely."""
        for width in (1e-3, 1e-5, 1e-6):
            bracket = self._epsilon(cost, float(price), own, rest, width)
            if bracket.upper <= price:
                return True
            if bracket.lower > price:
                return False
        return False

    def _epsilon(self, cost: "PldCost", price: float, own: Fraction, rest: float, width: float) -> Bracket:
        """Epsilon at the share of delta that goes with a price."""
        from sourdine.accounting.pld.accountant import PLD  # few ledgers compose distributions

        share = left_of(1.0, 1 - own - Fraction(rest) * Fraction(price) / self.limit)
        return PLD(width=max(width * min(1.0, price), _FINEST)).epsilon(cost, share)


@dataclass(frozen=True, kw_only=True)
class RenyiGridBudget(Budget):
    """A limit on Renyi divergences at several orders; a block fits if it does at one of them.

    With n orders each has a limit that gives (target, delta/n), since which of them holds in the end may
    depend on the answers (docs/guarantees/ledger.md). A block takes a share of each limit; its price is the
    least share, and what is spent is the least sum of shares.
    """

    name: ClassVar[str] = "renyi-grid"
    symbol: ClassVar[str] = "share"
    limit: Fraction = Fraction(1)
    target: Fraction
    orders: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit != 1:
            raise check.fail("RenyiGridBudget", "limit", "be 1, the whole of each order", float(self.limit))
        check.keep(self, target=check.positive("RenyiGridBudget", "target", self.target, MOST))
        orders = tuple(
            check.between("RenyiGridBudget", "orders", order, _LEAST_ORDER, _MOST_ORDER)
            for order in self.orders
        )
        if not 1 <= len(orders) <= _MOST_ORDERS or list(orders) != sorted(set(orders)):
            must = f"be 1 to {_MOST_ORDERS} numbers that grow"
            raise check.fail("RenyiGridBudget", "orders", must, list(map(float, orders)))
        check.keep(self, orders=orders)

    @classmethod
    def within(cls, epsilon: Fraction, delta: float) -> "RenyiGridBudget":
        """Three orders up to that which is best for Gaussian noise: sampled noise is best at lower ones.

        With rho = (sqrt(L + epsilon) - sqrt(L))^2, L = log(1/delta), the tail bound rho + 2 sqrt(rho L) is
        epsilon at the order 1 + sqrt(L/rho). Half of what it is above 1 suits long runs on small samples.
        """
        target = check.positive("RenyiGridBudget", "epsilon", epsilon, 1 << 20)
        log_delta = -math.log(float(check.inside("RenyiGridBudget", "delta", delta, 0, 1)))
        root = math.sqrt(log_delta)
        above = root / (math.sqrt(log_delta + float(target)) - root)
        orders = {min(max(Fraction(f"{1 + part * above:.4g}"), _LEAST_ORDER), _MOST_ORDER) for part in _PARTS}
        return cls(target=target, orders=tuple(sorted(orders)))

    def block_price(self, spends: Sequence[Spend], own: Fraction, rest: float) -> Fraction:
        price = min(self.block_shares(spends, rest))
        if price >= UNLIMITED:
            raise UnsupportedLoss(
                "A spend has no finite divergence at the orders of this ledger, so it cannot pay for it. "
                "Nothing was spent. Take more noise, or a ledger that composes each charge as a whole."
            )
        return price

    def block_shares(self, spends: Sequence[Spend], rest: float) -> Shares:
        losses = [(spend.count, spend.one_loss()) for spend in spends]
        shares = []
        for order, limit in zip(self.orders, self.limits(rest), strict=True):
            at = RenyiBudget(limit=1, order=order)
            costs = [count * Fraction(min(at.cost(loss), float(UNLIMITED))) for count, loss in losses]
            share = sum_of_block(spends, costs) / limit if limit > 0 else UNLIMITED
            shares.append(min(Fraction(shorten_up(float(share), _SHARE_DIGITS)), UNLIMITED))
        return tuple(shares)

    def covers(
        self, price: Fraction, spends: Sequence[Spend], own: Fraction, rest: float, shares: Shares = ()
    ) -> bool:
        due = self.block_shares(spends, rest)
        return (
            len(shares) == len(due)
            and price == min(shares)
            and all(paid >= each * (1 - _SHARE_SLACK) for paid, each in zip(shares, due, strict=True))
        )

    def epsilon(self, spent: Fraction, delta: float, shares: Shares = ()) -> float:
        # Share f of a limit B = target - c leaves f B + c = target - (1 - f) B at delta/n.
        totals = shares or (spent,) * len(self.orders)
        least = (
            float_above(self.target) - (1 - float_above(total)) * float(limit)
            for total, limit in zip(totals, self.limits(delta), strict=True)
            if limit > 0
        )
        either_end = max if not shares else min
        return max(0.0, either_end(least) * (1 + 1e-12))

    def to_json(self) -> dict[str, str | list[str]]:
        return super().to_json() | {
            "target": str(self.target),
            "orders": [str(order) for order in self.orders],
        }

    def limits(self, delta: float) -> list[Fraction]:
        """The divergence at each order that is (target, delta/n)-DP, rounded down; not above 0 if none is."""
        import numpy as np

        orders = np.array([float(order) for order in self.orders])
        taken = tight_epsilon(orders, np.zeros(len(orders)), delta / len(orders))
        return [self.target - Fraction(float(each) + 1e-12 * (1 + abs(float(each)))) for each in taken]


def _block_cost(spends: Sequence[Spend]) -> "PldCost":
    from sourdine.accounting.pld.accountant import PLD

    return plan_cost(spends, PLD())


def _pure(spends: Sequence[Spend]) -> Fraction | None:
    """The sum of pure epsilons, if there is one at delta 0."""
    losses = [spend.one_loss() for spend in spends]
    if any(loss.delta or loss.epsilon == math.inf for loss in losses):
        return None
    costs = [spend.count * Fraction(loss.epsilon) for spend, loss in zip(spends, losses, strict=True)]
    return sum_of_block(spends, costs)
