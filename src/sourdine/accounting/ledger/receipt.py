"""What a ledger gives for a charge, and what it knows of itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from sourdine.accounting.ledger.allowance import NO_ALLOWANCES, AllowanceRule, Allowances
from sourdine.accounting.ledger.balance import Balance
from sourdine.accounting.ledger.budget import Shares
from sourdine.accounting.ledger.chain import LedgerLine
from sourdine.accounting.ledger.charge import Cost
from sourdine.accounting.ledger.numbers import readable, room
from sourdine.accounting.spend import Spend, foreign_names, foreign_words
from sourdine.core.display import Viewable
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.core.serialization import added


@dataclass(frozen=True, kw_only=True)
class Receipt(Viewable):
    """Proof that a block was paid, before any noise was drawn.

    `fingerprint` is the mark of the line in the ledger's chain; `spent` is the total with this charge.
    `shares` are what it took of each order of a budget that has several.
    `delta` is what the charge took of the ledger's selection delta, and `selection_delta_left` what it left
    of it, if any.
    """

    ledger: str
    number: int
    time: datetime
    price: Fraction
    spent: Fraction
    limit: Fraction
    currency: str
    fingerprint: str
    delta: Fraction = Fraction(0)
    selection_delta_left: Fraction | None = None
    shares: Shares = added(())

    @classmethod
    def of(cls, cost: Cost, line: LedgerLine, time: datetime, balance: Balance) -> "Receipt":
        """The receipt for a line that was written at a time, after which the ledger stands so."""
        terms = balance.terms
        selection_delta = terms.selection_delta
        return cls(
            ledger=terms.identity,
            number=line.number,
            time=time,
            price=cost.price,
            spent=balance.spent,
            limit=terms.budget.limit,
            currency=terms.budget.symbol,
            fingerprint=line.fingerprint,
            delta=cost.delta,
            shares=cost.shares,
            selection_delta_left=None if selection_delta is None else selection_delta - balance.delta_total,
        )

    @property
    def left(self) -> Fraction:
        """What the charge left of the budget."""
        return self.limit - self.spent

    def __repr__(self) -> str:
        paid = f"{self.currency} {readable(self.price)}"
        return f"<Receipt for {paid}, line {self.number} of ledger {self.ledger[:8]}, {room(self.left)} left>"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of a ledger, read back.

    `software`, `secure` and `declared_digest` are what was recorded when the block was paid; None if nothing
    was. Lines of version 0.1 hold the declarations themselves, `declared`.
    `delta` is what the block took of the ledger's selection delta, and `delta_total` what all have taken
    with it. `foreign` names the mechanisms of the block that are not of this package. `allowance` is what it
    took from, if anything; a line with a `rule` is no charge, but says what is allowed.
    """

    number: int
    time: datetime
    purpose: str
    author: str
    price: Fraction
    total: Fraction
    period: str | None
    spends: tuple[Spend, ...]
    fingerprint: str
    software: str | None = None
    secure: bool | None = None
    declared: Mapping[str, str] | None = None
    declared_digest: str | None = None
    delta: Fraction = Fraction(0)
    delta_total: Fraction = Fraction(0)
    shares: Shares = ()
    allowance: str | None = None
    rule: AllowanceRule | None = None

    @property
    def foreign(self) -> tuple[str, ...]:
        """The names of what is not of this package, whose claims are those of its authors."""
        return foreign_names(self.spends)


@dataclass(frozen=True, kw_only=True)
class Status(Viewable):
    """Where a ledger stands.

    Everything paid is (`epsilon`, `delta`)-DP, and all that can be paid (`epsilon_limit`, `delta`)-DP. Of
    delta, `selection_delta` is kept for spends with a delta of their own, which took
    `selection_delta_spent` so far. `allowances` are shares of the budget, if any were made.
    """

    ledger: str
    unit: str
    neighbours: str
    currency: str
    limit: Fraction
    spent: Fraction
    left: Fraction
    blocks: int
    delta: float | None
    epsilon: float
    epsilon_limit: float
    period: str | None = None
    period_limit: Fraction | None = None
    period_spent: Fraction | None = None
    is_backup: bool = False
    selection_delta: Fraction | None = None
    selection_delta_spent: Fraction | None = None
    allowances: Allowances = NO_ALLOWANCES
    shares: Shares = ()

    @classmethod
    def of(cls, balance: Balance, time: datetime, *, is_backup: bool) -> "Status":
        """The status of a ledger after its newest line, at a time."""
        terms = balance.terms
        budget, spent = terms.budget, balance.spent
        return cls(
            ledger=terms.identity,
            unit=terms.unit,
            neighbours=terms.neighbours.value,
            currency=budget.symbol,
            limit=budget.limit,
            spent=spent,
            left=budget.limit - spent,
            blocks=balance.number - balance.allowances.rules,
            delta=terms.delta,
            epsilon=budget.epsilon(spent, terms.rest, balance.shares) if spent else 0.0,
            epsilon_limit=budget.epsilon(budget.limit, terms.rest),
            period=terms.period.key(time) if terms.period else None,
            period_limit=terms.period_limit,
            period_spent=balance.period_spent(time) if terms.period else None,
            is_backup=is_backup,
            selection_delta=terms.selection_delta,
            selection_delta_spent=None if terms.selection_delta is None else balance.delta_total,
            allowances=balance.allowances,
            shares=balance.shares,
        )

    def fits(self, cost: Cost) -> int:
        """How many more blocks of a cost fit into what is left, and into this period."""
        if cost.price == 0:
            raise InvalidParameter("The spend costs nothing, so any number of them fits. Check its distance.")
        left = self.left
        if self.period_limit is not None and self.period_spent is not None:
            left = min(left, self.period_limit - self.period_spent)
        count = int(left // cost.price)
        if cost.shares:
            before = self.shares or (Fraction(0),) * len(cost.shares)
            count = max(int((1 - each) // share) for each, share in zip(before, cost.shares, strict=True))
        if cost.delta and self.selection_delta is not None and self.selection_delta_spent is not None:
            count = min(count, int((self.selection_delta - self.selection_delta_spent) // cost.delta))
        return count

    def __repr__(self) -> str:
        spent = f"{self.currency} {readable(self.spent)} of {room(self.limit)} spent"
        return f"<Status of ledger {self.ledger[:8]}: {spent} by {counted(self.blocks, 'charge')}>"


def foreign_lines(entries: Iterable[Entry]) -> str:
    """What people are told of mechanisms in a ledger that are not of this package, if there are any."""
    lines: dict[str, list[int]] = {}
    for entry in entries:
        for name in entry.foreign:
            lines.setdefault(name, []).append(entry.number)
    placed = [f"{name} ({_lines(numbers)})" for name, numbers in sorted(lines.items())]
    return foreign_words(placed) if placed else ""


def _lines(numbers: list[int]) -> str:
    one = f"line {numbers[0]}"
    return one if len(numbers) == 1 else f"{len(numbers):,} lines, the first {one}"
