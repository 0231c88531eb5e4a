"""A durable budget: one file per protected data set, paid before any noise is drawn, never refunded."""

import json
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from sourdine.accounting.ledger.amount import add, amount
from sourdine.accounting.ledger.chain import Line
from sourdine.accounting.ledger.cost import Cost, cost_of
from sourdine.accounting.ledger.receipt import Entry, Receipt, Status, readable, room
from sourdine.accounting.ledger.statement import Statement, state
from sourdine.accounting.ledger.store import Store
from sourdine.accounting.ledger.terms import Terms
from sourdine.accounting.ledger.text import declarations, declared_digest
from sourdine.accounting.ledger.typed import typed
from sourdine.accounting.spend import Spend
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, SourdineError, UnknownName

_REMEMBERED = 64
_START = datetime(1970, 1, 1, tzinfo=UTC)
_SLACK = Fraction(1, 10**9)  # how far a price in floats may differ between machines
_UNREADABLE = (
    SourdineError,
    AttributeError,
    ArithmeticError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


class Ledger:
    """A budget in a file, safe for many processes and threads at once.

    A charge is a block fixed beforehand. Blocks add up by the budget's currency, which stays valid when the
    next block depends on earlier answers. A charge is on the disk before `charge` returns; there is no way
    to take it back. Closing is optional: a ledger that is closed, or goes out of use, is one file again.

    >>> import tempfile
    >>> from sourdine.accounting.ledger.budget import PureBudget
    >>> from sourdine.core.distance import Distance, Neighbours
    >>> from sourdine.mechanisms import Geometric
    >>> path = Path(tempfile.mkdtemp()) / "survey.ledger"
    >>> ledger = Ledger.create(path, Terms(
    ...     budget=PureBudget(limit=1), unit="person", neighbours=Neighbours.ADD_REMOVE))
    >>> count = Spend(mechanism=Geometric(scale=4), distance=Distance.l1(1))
    >>> ledger.charge(count, purpose="how many said yes").left
    Fraction(3, 4)
    """

    def __init__(self, store: Store, terms: Terms) -> None:
        self._store = store
        self._known: dict[tuple[Spend, ...], tuple[Cost, str]] = {}
        self._recent: tuple[tuple[object, ...], Statement] | None = None
        self._newest = ("", Fraction(0))  # a line found in order, by its mark, and the total after it
        self.terms = terms
        weakref.finalize(self, store.close)

    @classmethod
    def create(cls, path: Path | str, terms: Terms) -> "Ledger":
        """A new ledger; an existing file is never touched."""
        return cls(Store.create(Path(path), terms.to_json()), terms)

    @classmethod
    def open(cls, path: Path | str) -> "Ledger":
        """A ledger made before."""
        store = Store(Path(path))
        try:
            terms = Terms.from_json(store.terms())
        except LedgerError:
            raise
        except _UNREADABLE as problem:
            message = (
                f"The terms of the ledger {path} cannot be read. Keep it, and see in a backup what was spent."
            )
            raise LedgerError(message) from problem
        return cls(store, terms)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._store.path

    @property
    def is_backup(self) -> bool:
        """Whether the file is a backup, which can be read and never charged."""
        return self._store.is_backup

    def backup(self, path: Path | str) -> "Ledger":
        """A copy to keep, each line checked on the way: it can be read, and pays for nothing."""
        self._store.backup(Path(path))
        return type(self).open(path)

    def close(self) -> None:
        """Let go of the file, which then holds all of its log; the next use opens it again."""
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def price(self, *spends: Spend) -> Fraction:
        """What a block would cost; nothing is spent."""
        return cost_of(self.terms, spends).price

    def delta(self, *spends: Spend) -> Fraction:
        """What a block would take of the reserve; nothing is spent."""
        return cost_of(self.terms, spends).delta

    def charge(
        self,
        *spends: Spend,
        purpose: str,
        author: str | None = None,
        secure: bool | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Pay for a block, or refuse it whole; noise may be drawn once this has returned.

        `secure` (whether the noise will come from secure bits) and the digest of `declared` (bounds and other
        declarations the release rests on) are recorded, so that a certificate can be held against them.
        """
        noted = None if declared is None else declared_digest(declarations(declared))
        asked = (spends, purpose, author, secure, noted)
        recent = self._recent  # read once: another thread may put its own there
        if recent is None or recent[0] != asked:
            stating = state(self._priced(spends), purpose, author, secure, noted)
            self._recent = recent = (asked, stating)
        (price, delta), stated, described = recent[1]
        time, total, delta_total = _START, price, delta

        def build(last: Line | None) -> tuple[str, str]:
            nonlocal time, total, delta_total
            time = datetime.now(UTC)
            before = self._total(last)
            total = add(before, price)
            if total < price:  # cannot be, since no total is negative; it would be a refund
                raise LedgerError("The charge would lower the total of the ledger. Nothing was spent.")
            if total > self.terms.budget.limit:
                raise self._beyond(price, self.terms.budget.limit - before, "the budget")
            within = self._in_period(price, time, last) if self.terms.period is not None else ""
            if self.terms.reserve is not None:
                delta_total = self._from_reserve(delta, last)
                within += f', "delta": "{delta}", "delta_total": "{delta_total}"'
            return f'{{"time": "{time.isoformat()}", {stated}{within}, {described}}}', str(total)

        line = self._store.append(build)
        self._newest = (line.fingerprint, total)
        return Receipt(
            ledger=self.terms.identity,
            number=line.number,
            time=time,
            price=price,
            spent=total,
            limit=self.terms.budget.limit,
            currency=self.terms.budget.symbol,
            fingerprint=line.fingerprint,
            delta=delta,
            reserve_left=None if self.terms.reserve is None else self.terms.reserve - delta_total,
        )

    def _priced(self, spends: tuple[Spend, ...]) -> tuple[Cost, str]:
        """The cost and the description of a block; the last few blocks are remembered."""
        known = self._known.get(spends)
        if known is None:
            known = cost_of(self.terms, spends), json.dumps([spend.to_json() for spend in spends])
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[spends] = known
        return known

    def _total(self, line: Line | None) -> Fraction:
        """The total after a line; one that this ledger did not write is looked at closely first."""
        if line is None:
            return Fraction(0)
        mark, total = self._newest
        return total if mark == line.fingerprint else self._opened(line)[2]

    def _opened(self, line: Line) -> tuple[dict[str, object], Fraction, Fraction]:
        """What a line holds, its price and the total after it."""
        try:
            held = json.loads(line.content)
            price, total = amount(held["price"]), amount(line.total)
            in_order = price <= total
            if self.terms.period is not None:
                in_order &= isinstance(held["period"], str) and price <= amount(held["period_total"]) <= total
            if self.terms.reserve is not None:
                in_order &= amount(held["delta"]) <= amount(held["delta_total"]) <= self.terms.reserve
        except _UNREADABLE as problem:
            raise self._out_of_order(line) from problem
        if not in_order:
            raise self._out_of_order(line)
        return held, price, total

    def _out_of_order(self, line: Line) -> LedgerError:
        return LedgerError(
            f"Line {line.number} of the ledger {self.path} cannot be read, or contradicts itself. "
            "Nothing was spent. Keep the file, and do not spend from it."
        )

    def status(self) -> Status:
        """What is spent and left, and what that means as an epsilon."""
        last = self._store.last()
        budget, rest = self.terms.budget, self.terms.rest
        held, _, spent = self._opened(last) if last else ({}, None, Fraction(0))
        key = self.terms.period.key(datetime.now(UTC)) if self.terms.period else None
        current = key is not None and str(held.get("period", "")) >= key
        in_period = amount(held["period_total"]) if current else Fraction(0)
        reserved = None if self.terms.reserve is None else amount(held.get("delta_total", "0"))
        return Status(
            ledger=self.terms.identity,
            unit=self.terms.unit,
            neighbours=self.terms.neighbours.value,
            currency=budget.symbol,
            limit=budget.limit,
            spent=spent,
            left=budget.limit - spent,
            blocks=last.number if last else 0,
            delta=self.terms.delta,
            epsilon=budget.epsilon(spent, rest) if spent else 0.0,
            epsilon_limit=budget.epsilon(budget.limit, rest),
            period=key,
            period_limit=self.terms.period_limit,
            period_spent=in_period if key else None,
            is_backup=self.is_backup,
            reserve=self.terms.reserve,
            reserve_spent=reserved,
        )

    def history(self) -> list[Entry]:
        """Every block, replayed: the chain, the prices and the totals are checked again."""
        entries, total, delta_total = [], Fraction(0), Fraction(0)
        for line in self._store.lines():
            entry = self._entry(line)
            total, delta_total = add(total, entry.price), add(delta_total, entry.delta)
            in_order = (entry.total, entry.delta_total) == (total, delta_total)
            if not in_order or not self._covers(Cost(entry.price, entry.delta), entry.spends):
                raise LedgerError(
                    f"Line {line.number} of the ledger {self.path} does not replay to its price or total. "
                    "It was written by other software, or by a version that priced it otherwise. "
                    "Keep the file, and do not spend from it."
                )
            entries.append(entry)
        return entries

    def entry(self, number: int) -> Entry | None:
        """One block, if there is one of this number; `history` also checks all before it."""
        line = self._store.line(number)
        return None if line is None else self._entry(line)

    def _entry(self, line: Line) -> Entry:
        held, price, total = self._opened(line)
        try:
            old = typed(dict, held["declared"]) if "declared" in held else None
            digest = declared_digest(old) if old is not None else None
            if "declared_digest" in held:
                digest = typed(str, held["declared_digest"])
            return Entry(
                number=line.number,
                time=datetime.fromisoformat(typed(str, held["time"])),
                purpose=typed(str, held["purpose"]),
                author=typed(str, held["author"]),
                price=price,
                total=total,
                period=None if self.terms.period is None else typed(str, held["period"]),
                spends=tuple(Spend.from_json(spend) for spend in typed(list, held["spends"])),
                fingerprint=line.fingerprint,
                software=typed(str, held["software"]) if "software" in held else None,
                secure=typed(bool, held["secure"]) if "secure" in held else None,
                declared=old,
                declared_digest=digest,
                delta=amount(held["delta"]) if self.terms.reserve is not None else Fraction(0),
                delta_total=amount(held["delta_total"]) if self.terms.reserve is not None else Fraction(0),
            )
        except UnknownName as problem:  # which is no damage: its price and total are known
            raise LedgerError(
                f"Line {line.number} of the ledger {self.path} cannot be read. {problem}"
            ) from problem
        except _UNREADABLE as problem:
            raise self._out_of_order(line) from problem

    def _covers(self, paid: Cost, spends: tuple[Spend, ...]) -> bool:
        """Whether what was paid once is what the spends cost; floats may differ between machines."""
        try:
            asked, _ = self._priced(spends)
            if paid.delta < asked.delta * (1 - _SLACK):
                return False
            if paid.price >= asked.price:
                return True
            exact = all(self.terms.budget.exact(spend.one_loss()) for spend in spends)
        except SourdineError:
            return False
        return not exact and paid.price >= asked.price * (1 - _SLACK)

    def forecast(self, *spends: Spend) -> int:
        """How many more such blocks fit into what is left (and into this period)."""
        price, delta = cost_of(self.terms, spends)
        status = self.status()
        left = status.left
        if status.period_limit is not None and status.period_spent is not None:
            left = min(left, status.period_limit - status.period_spent)
        if price == 0:
            raise InvalidParameter("The spend costs nothing, so any number of them fits. Check its distance.")
        fits = int(left // price)
        if delta and status.reserve is not None and status.reserve_spent is not None:
            fits = min(fits, int((status.reserve - status.reserve_spent) // delta))
        return fits

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def _in_period(self, price: Fraction, time: datetime, last: Line | None) -> str:
        """The stretch the charge falls in and its total; a clock set back does not open an old one."""
        assert self.terms.period is not None
        assert self.terms.period_limit is not None
        held = self._opened(last)[0] if last else {}
        key = max(self.terms.period.key(time), str(held.get("period", "")))
        before = amount(held["period_total"]) if held.get("period") == key else Fraction(0)
        total = add(before, price)
        if total > self.terms.period_limit:
            left = self.terms.period_limit - before
            raise self._beyond(price, left, f"the budget of this {self.terms.period}")
        return f', "period": {json.dumps(key)}, "period_total": "{total}"'

    def _from_reserve(self, delta: Fraction, last: Line | None) -> Fraction:
        """What all spends with a delta have taken of the reserve, with this one; it has no periods."""
        assert self.terms.reserve is not None
        before = amount(self._opened(last)[0]["delta_total"]) if last else Fraction(0)
        total = add(before, delta)
        if total > self.terms.reserve:
            left = self.terms.reserve - before
            raise BudgetExceeded(
                f"The charge chooses keys at delta {readable(delta)} and the reserve has {room(left)} "
                "left. Nothing was spent. Choose them at a smaller delta, or declare the keys.",
                asked=delta,
                left=left,
            )
        return total

    def _beyond(self, price: Fraction, left: Fraction, what: str) -> BudgetExceeded:
        symbol = self.terms.budget.symbol
        return BudgetExceeded(
            f"The charge needs {symbol} {readable(price)} and {what} has {room(left)} left. "
            "Nothing was spent. Ask for less, or more coarsely.",
            asked=price,
            left=left,
        )
