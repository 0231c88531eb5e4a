"""The lines of a ledger read back: what they hold, and whether it adds up."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from sourdine.accounting.ledger.address import Place
from sourdine.accounting.ledger.allowance import AllowanceRule, Allowances
from sourdine.accounting.ledger.balance import SHARE_TOTALS, SHARES, Balance, read_shares
from sourdine.accounting.ledger.budget import add, amount
from sourdine.accounting.ledger.chain import LedgerLine
from sourdine.accounting.ledger.charge import Block, Blocks, Cost
from sourdine.accounting.ledger.receipt import Entry
from sourdine.accounting.ledger.terms import Terms, declared_digest, typed
from sourdine.core.errors import LedgerError, SourdineError, UnknownName

UNREADABLE = (
    SourdineError,
    AttributeError,
    ArithmeticError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading a malformed text may raise."""
_ALLOWANCES = "allowances"
_SPENDS = ', "spends": '  # the last thing that a line states


class Opened(NamedTuple):
    """What a line holds, its price, the total after it, and the text of its spends."""

    fields: dict[str, object]
    price: Fraction
    total: Fraction
    spends: str


class Reader:
    """Reads the lines of one ledger."""

    def __init__(self, path: Place, terms: Terms, blocks: Blocks) -> None:
        self._path = path
        self._terms = terms
        self._blocks = blocks

    def opened(self, line: LedgerLine, before: Fraction | None = None) -> Opened:
        """A line, if it does not contradict itself; where the total before it is known, it is added to."""
        try:
            fields, spends = self._parted(line.content)
            price = amount(fields["price"])
            total = None if before is None else add(before, price)
            if total is None or str(total) != line.total:
                total = amount(line.total)
            in_order = price <= total
            if _ALLOWANCES in fields:
                Allowances.from_json(typed(dict, fields[_ALLOWANCES]))
            for share, of in zip(
                read_shares(self._terms, fields, SHARES),
                read_shares(self._terms, fields, SHARE_TOTALS),
                strict=True,
            ):
                in_order &= price <= share <= of
            if self._terms.period is not None:
                in_order &= (
                    isinstance(fields["period"], str) and price <= amount(fields["period_total"]) <= total
                )
            if self._terms.selection_delta is not None:
                in_order &= (
                    amount(fields["delta"]) <= amount(fields["delta_total"]) <= self._terms.selection_delta
                )
        except UNREADABLE as problem:
            raise self._out_of_order(line) from problem
        if not in_order:
            raise self._out_of_order(line)
        return Opened(fields, price, total, spends)

    def allowances(self, fields: dict[str, object]) -> Allowances:
        """How allowances stand after a line that holds these fields."""
        state = fields.get(_ALLOWANCES)
        return Allowances() if state is None else Allowances.from_json(typed(dict, state))

    def entry(self, line: LedgerLine) -> Entry:
        """A line as people use it."""
        return self._entry(line, self.opened(line))[0]

    def priced(self, line: LedgerLine) -> Entry:
        """A line whose price is checked again."""
        return self._priced(line, self.opened(line))

    def _priced(self, line: LedgerLine, opened: Opened) -> Entry:
        entry, block = self._entry(line, opened)
        if not self._covers(entry, block):
            raise self._does_not_replay(line)
        return entry

    def replay(self, lines: Iterable[LedgerLine]) -> Iterator[Entry]:
        """All lines from the first on, with every price and total checked again."""
        balance = Balance(terms=self._terms)
        for line in lines:
            opened = self.opened(line, balance.total)
            entry = self._priced(line, opened)
            balance = self._derived(balance, line, opened)
            yield entry

    def verify(self, before: LedgerLine | None, lines: Sequence[LedgerLine]) -> None:
        """Check prices and totals of lines that follow one which was verified.

        A price whose mechanism has a name that is unknown here cannot be checked, and its total can.
        """
        balance = self.balance(before)
        for line in lines:
            opened = self.opened(line, balance.total)
            try:
                self._priced(line, opened)
            except LedgerError as problem:
                if not isinstance(problem.__cause__, UnknownName):
                    raise
            balance = self._derived(balance, line, opened)

    def balance(self, line: LedgerLine | None) -> Balance:
        """Where the ledger stands after a line, by what the line states."""
        if line is None:
            return Balance(terms=self._terms)
        opened = self.opened(line)
        return self._stated(line, opened.total, opened.fields)

    def _stated(self, line: LedgerLine, total: Fraction, fields: dict[str, object]) -> Balance:
        return Balance.read(self._terms, line.number, total, fields, self.allowances(fields))

    def _derived(self, before: Balance, line: LedgerLine, opened: Opened) -> Balance:
        """Where the ledger stands after a line, from where it stood before; the line must state the same."""
        try:
            after = self._step(before, opened.fields, opened.price)
        except UNREADABLE as problem:
            raise self._does_not_replay(line) from problem
        if after is None or after != self._stated(line, opened.total, opened.fields):
            raise self._does_not_replay(line)
        return after

    def _step(self, before: Balance, fields: dict[str, object], price: Fraction) -> Balance | None:
        """Where a charge or a rule leads from where a ledger stands, if it may follow."""
        time, author = datetime.fromisoformat(typed(str, fields["time"])), typed(str, fields["author"])
        delta = Fraction(0) if self._terms.selection_delta is None else amount(fields["delta"])
        name = typed(str, fields["allowance"]) if "allowance" in fields else None
        if "rule" in fields:
            rule = AllowanceRule.from_json(typed(dict, fields["rule"]))
            return None if price or delta or name is not None else before.after_rule(rule, time, author)
        if (name is None) != (not before.allowances.each):
            return None
        shares = read_shares(self._terms, fields, SHARES)
        return before.after_charge(Cost(price, delta, shares), time, name, author)

    def _entry(self, line: LedgerLine, opened: Opened) -> tuple[Entry, Block]:
        fields, price, total, spends = opened
        try:
            block = self._blocks.read(spends)
            old = typed(dict, fields["declared"]) if "declared" in fields else None
            digest = declared_digest(old) if old is not None else None
            if "declared_digest" in fields:
                digest = typed(str, fields["declared_digest"])
            entry = Entry(
                number=line.number,
                time=datetime.fromisoformat(typed(str, fields["time"])),
                purpose=typed(str, fields["purpose"]),
                author=typed(str, fields["author"]),
                price=price,
                total=min(read_shares(self._terms, fields, SHARE_TOTALS), default=total),
                shares=read_shares(self._terms, fields, SHARES),
                period=None if self._terms.period is None else typed(str, fields["period"]),
                spends=block.spends,
                fingerprint=line.fingerprint,
                software=typed(str, fields["software"]) if "software" in fields else None,
                secure=typed(bool, fields["secure"]) if "secure" in fields else None,
                allowance=typed(str, fields["allowance"]) if "allowance" in fields else None,
                rule=AllowanceRule.from_json(typed(dict, fields["rule"])) if "rule" in fields else None,
                declared=old,
                declared_digest=digest,
                delta=amount(fields["delta"]) if self._terms.selection_delta is not None else Fraction(0),
                delta_total=amount(fields["delta_total"])
                if self._terms.selection_delta is not None
                else Fraction(0),
            )
        except UnknownName as problem:  # which is no damage: its price and total are known
            raise LedgerError(
                f"Line {line.number} of the ledger {self._path} cannot be read. {problem}"
            ) from problem
        except UNREADABLE as problem:
            raise self._out_of_order(line) from problem
        return entry, block

    def _covers(self, paid: Entry, block: Block) -> bool:
        """Whether what was paid once is what the spends cost; floats may differ between machines."""
        if paid.rule is not None:
            return not (paid.price or paid.delta or block.spends)
        try:
            return block.covered(paid.price, paid.delta, paid.shares)
        except SourdineError:
            return False

    def _parted(self, content: str) -> tuple[dict[str, object], str]:
        """What a line states, and the text of its spends apart: most lines share it with others.

        No quotation mark stands alone within a text of JSON, so the last such key is the line's own.
        """
        before, mark, after = content.rpartition(_SPENDS)
        if mark and after.endswith("}"):
            try:
                if not self._blocks.knows(after[:-1]):
                    json.loads(after[:-1])
                return typed(dict, json.loads(f"{before}}}")), after[:-1]
            except ValueError:
                pass  # a line of another make, in which something comes after
        fields = typed(dict, json.loads(content))
        return fields, json.dumps(fields.get("spends"))

    def _out_of_order(self, line: LedgerLine) -> LedgerError:
        return LedgerError(
            f"Line {line.number} of the ledger {self._path} cannot be read, or contradicts itself. "
            "Nothing was spent. Keep the file, and do not spend from it."
        )

    def _does_not_replay(self, line: LedgerLine) -> LedgerError:
        return LedgerError(
            f"Line {line.number} of the ledger {self._path} does not replay to its price or total. "
            "It was written by other software, or by a version that priced it otherwise. "
            "Keep the file, and do not spend from it."
        )
