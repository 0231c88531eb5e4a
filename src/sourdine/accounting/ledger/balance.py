"""Where a ledger stands after a line, and after the next: every limit is checked here, and nowhere else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from sourdine.accounting.ledger.allowance import NO_ALLOWANCES, AllowanceRule, Allowances
from sourdine.accounting.ledger.budget import RenyiGridBudget, Shares, add, amount
from sourdine.accounting.ledger.charge import Cost
from sourdine.accounting.ledger.numbers import readable, room
from sourdine.accounting.ledger.terms import Terms, typed
from sourdine.core.errors import BudgetExceeded, LedgerError

_NOTHING = Cost(Fraction(0), Fraction(0))
SHARES, SHARE_TOTALS = "shares", "share_totals"


def read_shares(terms: Terms, fields: Mapping[str, object], name: str) -> Shares:
    """The shares or their totals that a line states, where its budget has several orders."""
    if not isinstance(terms.budget, RenyiGridBudget):
        return ()
    shares = tuple(map(amount, typed(list, fields[name])))
    if len(shares) != len(terms.budget.orders):
        raise ValueError("not a share of each order")
    return shares


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Totals after a line: of the budget, of the selection delta, of the newest period, of each allowance.

    `shares` are the totals at each order of a budget that has several.
    """

    terms: Terms
    number: int = 0
    total: Fraction = Fraction(0)
    shares: Shares = ()
    delta_total: Fraction = Fraction(0)
    period: str = ""
    period_total: Fraction = Fraction(0)
    allowances: Allowances = NO_ALLOWANCES

    @classmethod
    def read(
        cls, terms: Terms, number: int, total: Fraction, fields: dict[str, object], allowances: Allowances
    ) -> "Balance":
        """Where it stands after a line that holds these fields."""
        return cls(
            terms=terms,
            number=number,
            total=total,
            shares=read_shares(terms, fields, SHARE_TOTALS),
            delta_total=Fraction(0) if terms.selection_delta is None else amount(fields["delta_total"]),
            period="" if terms.period is None else str(fields["period"]),
            period_total=Fraction(0) if terms.period is None else amount(fields["period_total"]),
            allowances=allowances,
        )

    def charge(self, cost: Cost, time: datetime, allowance: str | None, author: str) -> tuple["Balance", str]:
        """Where it stands after a charge, and what its line says of that; one that does not fit raises."""
        name = self.allowances.choose(allowance, author)
        after = self.after_charge(cost, time, name, author)
        named = "" if name is None else f', "allowance": {json.dumps(name)}'
        return after, after._text(cost, named)

    def after_charge(self, cost: Cost, time: datetime, allowance: str | None, author: str) -> "Balance":
        """Where it stands after a charge to an allowance that is named if there are any."""
        name = None if allowance is None else self.allowances.choose(allowance, author)
        after = self._add(cost, time)
        return replace(after, allowances=self.allowances.spend(name, cost.price, time))

    def rule(self, rule: AllowanceRule, time: datetime, author: str) -> tuple["Balance", str]:
        """Where it stands after a rule, and what its line says; one that may not be raises."""
        after = self.after_rule(rule, time, author)
        return after, after._text(_NOTHING, f', "rule": {json.dumps(rule.to_json())}')

    def after_rule(self, rule: AllowanceRule, time: datetime, author: str) -> "Balance":
        """Where it stands after a rule."""
        after = self._add(_NOTHING, time)
        return replace(after, allowances=self.allowances.after(rule, author, after.number))

    def period_spent(self, time: datetime) -> Fraction:
        """What is spent in the stretch that holds a time, or in a later one that was opened before."""
        assert self.terms.period is not None
        return self.period_total if self.period >= self.terms.period.key(time) else Fraction(0)

    def _add(self, cost: Cost, time: datetime) -> "Balance":
        total = add(self.total, cost.price)
        if total < cost.price:  # cannot be, since no total is negative; it would be a refund
            raise LedgerError("The charge would lower the total of the ledger. Nothing was spent.")
        if total > self.terms.budget.limit:
            raise self._beyond(cost.price, self.terms.budget.limit - self.total, "the budget")
        after = replace(self, number=self.number + 1, total=total, shares=self._add_shares(cost.shares))
        if self.terms.period is not None:
            after = after._add_in_period(cost.price, time)
        return after if self.terms.selection_delta is None else after._add_delta(cost.delta)

    def _add_shares(self, shares: Shares) -> Shares:
        """The totals at each order; at least one of them stays within its limit."""
        if not shares:
            return self.shares
        before = self.shares or (Fraction(0),) * len(shares)
        totals = tuple(map(add, before, shares))
        if min(totals) > 1:
            raise self._beyond(min(totals) - min(before), 1 - min(before), "the budget")
        return totals

    @property
    def spent(self) -> Fraction:
        """What is spent of the limit: the total, or at the best of several orders."""
        return min(self.shares) if self.shares else self.total

    def _add_in_period(self, price: Fraction, time: datetime) -> "Balance":
        """In the stretch that the charge falls in; a clock set back does not open an old one."""
        assert self.terms.period is not None
        assert self.terms.period_limit is not None
        key = max(self.terms.period.key(time), self.period)
        before = self.period_total if self.period == key else Fraction(0)
        total = add(before, price)
        if total > self.terms.period_limit:
            left = self.terms.period_limit - before
            raise self._beyond(price, left, f"the budget of this {self.terms.period}")
        return replace(self, period=key, period_total=total)

    def _add_delta(self, delta: Fraction) -> "Balance":
        """What all spends with a delta have taken of the selection delta; it has no periods."""
        assert self.terms.selection_delta is not None
        total = add(self.delta_total, delta)
        if total > self.terms.selection_delta:
            left = self.terms.selection_delta - self.delta_total
            raise BudgetExceeded(
                f"The charge chooses keys at delta {readable(delta)} and the selection delta has "
                f"{room(left)} left. Nothing was spent. Choose them at a smaller delta, or declare the keys.",
                amount=delta,
                left=left,
            )
        return replace(self, delta_total=total)

    def _beyond(self, price: Fraction, left: Fraction, what: str) -> BudgetExceeded:
        symbol = self.terms.budget.symbol
        return BudgetExceeded(
            f"The charge needs {symbol} {readable(price)} and {what} has {room(left)} left. "
            "Nothing was spent. Ask for less, or more coarsely.",
            amount=price,
            left=left,
        )

    def _text(self, cost: Cost, named: str) -> str:
        text = ""
        if cost.shares:
            each, totals = (json.dumps(list(map(str, shares))) for shares in (cost.shares, self.shares))
            text += f', "{SHARES}": {each}, "{SHARE_TOTALS}": {totals}'
        if self.terms.period is not None:
            text += f', "period": {json.dumps(self.period)}, "period_total": "{self.period_total}"'
        if self.terms.selection_delta is not None:
            text += f', "delta": "{cost.delta}", "delta_total": "{self.delta_total}"'
        if self.allowances.rules:
            text += f'{named}, "allowances": {json.dumps(self.allowances.to_json())}'
        return text
