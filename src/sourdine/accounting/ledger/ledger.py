"""A durable budget: one file per protected data set, paid before any noise is drawn, never refunded."""

import getpass
import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path

from sourdine.accounting.ledger.budget import Budget, budget_from_json
from sourdine.accounting.ledger.period import Period
from sourdine.accounting.ledger.receipt import Entry, Receipt, Status, readable
from sourdine.accounting.ledger.store import Line, Store
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, UnsupportedLoss

_MOST_TEXT = 1000
_REMEMBERED = 64


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a ledger was made for. None of it ever changes."""

    budget: Budget
    unit: str
    neighbours: Neighbours
    delta: float | None = None
    period: Period | None = None
    period_limit: Fraction | None = None
    identity: str = ""

    def __post_init__(self) -> None:
        check.member("Ledger", "neighbours", self.neighbours, Neighbours)
        _text("unit", self.unit)
        if self.delta is not None:
            check.inside("Ledger", "delta", self.delta, 0, 1)
        if self.budget.name != "pure" and self.delta is None:
            remedy = "Without one, rho and divergences say nothing about epsilon. A common choice is 1e-6."
            raise check.fail("Ledger", "delta", "be given for this budget", None, remedy)
        if (self.period is None) != (self.period_limit is None):
            raise check.fail("Ledger", "period", "come with its limit, and the other way round", self.period)
        if self.period is not None:
            check.member("Ledger", "period", self.period, Period)
            limit = check.positive("Ledger", "period_limit", self.period_limit, self.budget.limit)
            object.__setattr__(self, "period_limit", limit)
        if not self.identity:
            object.__setattr__(self, "identity", uuid.uuid4().hex)

    def to_json(self) -> str:
        """The terms as the file holds them."""
        return json.dumps(
            {
                "identity": self.identity,
                "budget": self.budget.to_json(),
                "unit": self.unit,
                "neighbours": self.neighbours.value,
                "delta": self.delta,
                "period": self.period.value if self.period else None,
                "period_limit": str(self.period_limit) if self.period_limit else None,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Terms":
        """The terms of a file."""
        terms = json.loads(text)
        return cls(
            budget=budget_from_json(terms["budget"]),
            unit=terms["unit"],
            neighbours=Neighbours(terms["neighbours"]),
            delta=terms["delta"],
            period=Period(terms["period"]) if terms["period"] else None,
            period_limit=Fraction(terms["period_limit"]) if terms["period_limit"] else None,
            identity=terms["identity"],
        )


class Ledger:
    """A budget in a file, safe for many processes and threads at once.

    A charge is a block fixed beforehand. Blocks add up by the budget's currency, which stays valid when the
    next block depends on earlier answers. A charge is on the disk before `charge` returns; there is no way
    to take it back.

    >>> import tempfile
    >>> from sourdine.accounting.ledger.budget import PureBudget
    >>> from sourdine.core.distance import Distance
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
        self._known: dict[tuple[Spend, ...], tuple[Fraction, str]] = {}
        self.terms = terms

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
        except (KeyError, ValueError) as problem:
            message = f"The terms of the ledger {path} cannot be read. Restore the file from a copy."
            raise LedgerError(message) from problem
        return cls(store, terms)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._store.path

    def price(self, *spends: Spend) -> Fraction:
        """What a block would cost; nothing is spent."""
        if not spends:
            raise InvalidParameter("A charge must hold at least one spend. Pass what the release will use.")
        alone, families = Fraction(0), dict[str, dict[str, Fraction]]()
        for spend in spends:
            cost = self._price_one(spend)
            if spend.part is None:
                alone += cost
            else:
                keys = families.setdefault(spend.part.family, {})
                keys[spend.part.key] = keys.get(spend.part.key, Fraction(0)) + cost
        return alone + sum((max(keys.values()) for keys in families.values()), Fraction(0))

    def _price_one(self, spend: Spend) -> Fraction:
        relation = spend.distance.neighbours
        if relation is not self.terms.neighbours:
            raise InvalidParameter(
                f"The ledger is for {self.terms.neighbours} neighbours and the spends for {relation} ones. "
                f"Their costs do not add up. State the distances for {self.terms.neighbours} neighbours."
            )
        if spend.part is not None and relation is Neighbours.REPLACE:
            raise UnsupportedLoss(
                "Parts cost as much as their worst only when a unit touches one of them, and a unit that is "
                "replaced may leave one part and enter another. Charge the parts as spends without a part."
            )
        return spend.count * self.terms.budget.price(spend.one_loss())

    def charge(self, *spends: Spend, purpose: str, author: str | None = None) -> Receipt:
        """Pay for a block, or refuse it whole; noise may be drawn once this has returned."""
        price, described = self._priced(spends)
        who = author if author is not None else _user()
        _text("purpose", purpose)
        _text("author", who)
        time, total = datetime.now(UTC), Fraction(0)

        def build(last: Line | None) -> tuple[str, str]:
            nonlocal time, total
            time = datetime.now(UTC)
            before = Fraction(last.total) if last else Fraction(0)
            self._refuse_beyond(price, self.terms.budget.limit - before, "the budget")
            entry: dict[str, object] = {"time": time.isoformat(), "purpose": purpose, "author": who}
            entry["price"] = str(price)
            if self.terms.period is not None:
                entry |= self._in_period(price, time, last)
            total = before + price
            return f'{json.dumps(entry)[:-1]}, "spends": {described}}}', str(total)

        line = self._store.append(build)
        return Receipt(
            ledger=self.terms.identity,
            number=line.number,
            time=time,
            price=price,
            spent=total,
            left=self.terms.budget.limit - total,
            currency=self.terms.budget.symbol,
            fingerprint=line.fingerprint,
        )

    def _priced(self, spends: tuple[Spend, ...]) -> tuple[Fraction, str]:
        """The price and the description of a block; the last few blocks are remembered."""
        if spends not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[spends] = (self.price(*spends), json.dumps([spend.to_json() for spend in spends]))
        return self._known[spends]

    def status(self) -> Status:
        """What is spent and left, and what that means as an epsilon."""
        last = self._store.last()
        budget, delta = self.terms.budget, self.terms.delta
        spent = Fraction(last.total) if last else Fraction(0)
        key = self.terms.period.key(datetime.now(UTC)) if self.terms.period else None
        held = json.loads(last.content) if last else {}
        in_period = Fraction(held["period_total"]) if key and held.get("period", "") >= key else Fraction(0)
        return Status(
            ledger=self.terms.identity,
            unit=self.terms.unit,
            neighbours=self.terms.neighbours.value,
            currency=budget.symbol,
            limit=budget.limit,
            spent=spent,
            left=budget.limit - spent,
            blocks=last.number if last else 0,
            delta=delta,
            epsilon=budget.epsilon(spent, delta or 0.0) if spent else 0.0,
            epsilon_limit=budget.epsilon(budget.limit, delta or 0.0),
            period=key,
            period_limit=self.terms.period_limit,
            period_spent=in_period if key else None,
        )

    def history(self) -> list[Entry]:
        """Every block, replayed: the chain, the prices and the totals are checked again."""
        entries, total = [], Fraction(0)
        for line in self._store.lines():
            held = json.loads(line.content)
            spends = tuple(Spend.from_json(spend) for spend in held["spends"])
            price = Fraction(held["price"])
            total += price
            if Fraction(line.total) != total or price < self.price(*spends):
                raise LedgerError(
                    f"Line {line.number} of the ledger {self.path} does not replay to its price or total. "
                    "It was written by other software, or by a version that priced it otherwise. "
                    "Keep the file, and do not spend from it."
                )
            entries.append(
                Entry(
                    number=line.number,
                    time=datetime.fromisoformat(held["time"]),
                    purpose=held["purpose"],
                    author=held["author"],
                    price=price,
                    total=total,
                    period=held.get("period"),
                    spends=spends,
                    fingerprint=line.fingerprint,
                )
            )
        return entries

    def forecast(self, *spends: Spend) -> int:
        """How many more such blocks fit into what is left (and into this period)."""
        price = self.price(*spends)
        status = self.status()
        left = status.left
        if status.period_limit is not None and status.period_spent is not None:
            left = min(left, status.period_limit - status.period_spent)
        if price == 0:
            raise InvalidParameter("The spend costs nothing, so any number of them fits. Check its distance.")
        return int(left // price)

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def _in_period(self, price: Fraction, time: datetime, last: Line | None) -> dict[str, object]:
        """The stretch the charge falls in and its total; a clock set back does not open an old one."""
        assert self.terms.period is not None
        assert self.terms.period_limit is not None
        held = json.loads(last.content) if last else {}
        key = max(self.terms.period.key(time), held.get("period", ""))
        before = Fraction(held["period_total"]) if held.get("period") == key else Fraction(0)
        self._refuse_beyond(
            price, self.terms.period_limit - before, f"the budget of this {self.terms.period}"
        )
        return {"period": key, "period_total": str(before + price)}

    def _refuse_beyond(self, price: Fraction, left: Fraction, what: str) -> None:
        if price > left:
            symbol = self.terms.budget.symbol
            raise BudgetExceeded(
                f"The charge needs {symbol} {readable(price)} and {what} has {readable(left)} left. "
                "Nothing was spent. Ask for less, or more coarsely.",
                asked=price,
                left=left,
            )


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > _MOST_TEXT:
        raise check.fail("Ledger", name, f"be a text of 1 to {_MOST_TEXT} characters", value)


@cache
def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
