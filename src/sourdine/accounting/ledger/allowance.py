"""Named shares of a budget: what each may spend, who may spend from it, and requests that wait for approval.

Allowances only restrict: a charge must fit into its allowance and into the whole, so the guarantee of the
ledger is what it is without them. What is allowed is written into the ledger like a charge of nothing, and
each line carries how all allowances stand after it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction

from sourdine.accounting.ledger.budget import add
from sourdine.accounting.ledger.numbers import readable, room
from sourdine.accounting.ledger.terms import Period, check_text
from sourdine.core import check
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError
from sourdine.core.serialization import Json, decoded, encoded

_MOST = 100  # allowances, and requests that wait: every line carries them
_CHOICE: ContextVar[str | None] = ContextVar("allowance", default=None)


@contextmanager
def spending_from(allowance: str | None) -> Iterator[None]:
    """Let charges within take from this allowance, where they name none themselves."""
    token = _CHOICE.set(allowance)
    try:
        yield
    finally:
        _CHOICE.reset(token)


@dataclass(frozen=True, kw_only=True)
class LedgerAllowance:
    """A named share of a budget, in the ledger's currency: its cap, what was spent of it, and by whom it may.

    With a `period`, at most `period_limit` in each stretch; `period_spent` is what was spent in the newest,
    `newest_period`. Without `authors` everybody may spend from it.
    """

    name: str
    cap: Fraction
    spent: Fraction = Fraction(0)
    authors: tuple[str, ...] = ()
    period: Period | None = None
    period_limit: Fraction | None = None
    newest_period: str | None = None
    period_spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_text("name", self.name)
        for author in self.authors:
            check_text("author", author)
        if (self.period is None) != (self.period_limit is None):
            raise check.fail(
                "LedgerAllowance", "period", "come with its limit, and the other way round", self.period
            )

    @property
    def left(self) -> Fraction:
        """What is left of the cap."""
        return max(Fraction(0), self.cap - self.spent)

    def left_at(self, time: datetime) -> Fraction:
        """What may be spent at a time: of the cap, and of the stretch that holds the time."""
        if self.period is None or self.period_limit is None:
            return self.left
        before = self.period_spent if self._stretch(time) == self.newest_period else Fraction(0)
        return min(self.left, max(Fraction(0), self.period_limit - before))

    def _stretch(self, time: datetime) -> str | None:
        """The stretch that holds a time; a clock set back does not open an old one."""
        return None if self.period is None else max(self.period.key(time), self.newest_period or "")

    def spend(self, price: Fraction, time: datetime) -> "LedgerAllowance":
        """The same after a charge; one that does not fit raises."""
        total, stretch = add(self.spent, price), self._stretch(time)
        before = self.period_spent if stretch == self.newest_period else Fraction(0)
        within = add(before, price)
        if total > self.cap:
            raise self._beyond(price, self.left, f"the allowance '{self.name}'")
        if self.period_limit is not None and within > self.period_limit:
            raise self._beyond(
                price, self.period_limit - before, f"this {self.period} of the allowance '{self.name}'"
            )
        if stretch is None:
            return replace(self, spent=total)
        return replace(self, spent=total, newest_period=stretch, period_spent=within)

    def _beyond(self, price: Fraction, left: Fraction, what: str) -> BudgetExceeded:
        return BudgetExceeded(
            f"The charge needs {readable(price)} and {what} has {room(max(Fraction(0), left))} left. "
            "Nothing was spent. Ask for less, or request more.",
            amount=price,
            left=left,
        )


@dataclass(frozen=True, kw_only=True)
class AllowanceRequest:
    """A wish for more, which waits for somebody else: so much for an allowance, asked for in a line."""

    line: int
    allowance: str
    amount: Fraction
    author: str


@dataclass(frozen=True, kw_only=True)
class Allowances:
    """How all allowances of a ledger stand, which requests wait, and who may decide.

    `rules` is how many lines of the ledger are no charges.
    """

    each: tuple[LedgerAllowance, ...] = ()
    requests: tuple[AllowanceRequest, ...] = ()
    keepers: tuple[str, ...] = ()
    rules: int = field(default=0)

    @property
    def by_name(self) -> Mapping[str, LedgerAllowance]:
        """Each by its name."""
        return {allowance.name: allowance for allowance in self.each}

    def choose(self, allowance: str | None, author: str) -> str | None:
        """The allowance that a charge takes from: the one it names, or the only one that its author has."""
        if not self.each:
            if allowance is None:
                return None
            raise InvalidParameter(
                f"The ledger has no allowance '{allowance}'. Nothing was spent. Leave it out, or make it."
            )
        name = allowance if allowance is not None else _CHOICE.get()
        if name is None:
            named = [each.name for each in self.each if author in each.authors]
            common = [each.name for each in self.each if not each.authors]
            names = named or common
            if len(names) == 1:
                return names[0]
            raise InvalidParameter(
                f"This ledger is spent by allowances, and '{author}' has "
                f"{'more than one' if names else 'none'}. Nothing was spent. "
                f"Name one of {self._names()}." + ("" if names else " Or ask a keeper for one.")
            )
        if name not in self.by_name:
            raise InvalidParameter(
                f"The ledger has no allowance '{name}'. Nothing was spent. Name one of {self._names()}."
            )
        authors = self.by_name[name].authors
        if authors and author not in authors:
            raise LedgerError(
                f"'{author}' may not spend from the allowance '{name}', which is for {', '.join(authors)}. "
                "Nothing was spent. Name another, or ask a keeper."
            )
        return name

    def _names(self) -> str:
        return ", ".join(f"'{each.name}'" for each in self.each)

    def spend(self, name: str | None, price: Fraction, time: datetime) -> "Allowances":
        """The same after a charge to one of them; one that does not fit raises."""
        return self if name is None else self._with(self.by_name[name].spend(price, time))

    def _with(self, allowance: LedgerAllowance) -> "Allowances":
        if allowance.name in self.by_name:
            each = tuple(allowance if other.name == allowance.name else other for other in self.each)
        else:
            each = (*self.each, allowance)
        return replace(self, each=each)

    def after(self, rule: "AllowanceRule", author: str, line: int) -> "Allowances":
        """The same after a rule that an author has written as a line; one that may not be raises."""
        state = replace(rule.change(self, author, line), rules=self.rules + 1)
        if len(state.each) > _MOST or len(state.requests) > _MOST:
            raise LedgerError(
                f"A ledger has at most {_MOST} allowances, and as many requests that wait. Nothing was "
                "written. Decide on some first."
            )
        return state

    def check_keeper(self, author: str, act: str) -> None:
        """Refuse an act of somebody who keeps nothing here; who makes the first allowance is a keeper."""
        if self.keepers and author not in self.keepers:
            raise LedgerError(
                f"'{author}' may not {act}: the keepers of this ledger are {', '.join(self.keepers)}. "
                "Nothing was written. Ask one of them."
            )

    def to_json(self) -> Json:
        """How they stand, as a line holds it."""
        return encoded(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> "Allowances":
        """How they stand, by what a line holds."""
        return decoded(cls, fields, strict=True)


NO_ALLOWANCES = Allowances()


class AllowanceRule:
    """What a line says that is no charge."""

    act: str

    def change(self, state: Allowances, author: str, line: int) -> Allowances:
        """How allowances stand after it."""
        raise NotImplementedError

    def words(self) -> str:
        """The rule as people read it in a history."""
        raise NotImplementedError

    def to_json(self) -> Json:
        """The rule as a line holds it."""
        return {"act": self.act, **encoded(self)}

    @staticmethod
    def from_json(fields: Mapping[str, object]) -> "AllowanceRule":
        """The rule that a line holds."""
        kinds: dict[object, type[AllowanceRule]] = {kind.act: kind for kind in (Allow, Ask, Approve, Decline)}
        return decoded(kinds[fields["act"]], {k: v for k, v in fields.items() if k != "act"}, strict=True)


@dataclass(frozen=True, kw_only=True)
class Allow(AllowanceRule):
    """An allowance is made, or changed: what was spent of it stays spent."""

    act = "allow"
    name: str
    cap: Fraction
    authors: tuple[str, ...] = ()
    period: Period | None = None
    period_limit: Fraction | None = None
    keepers: tuple[str, ...] = ()

    def change(self, state: Allowances, author: str, line: int) -> Allowances:
        state.check_keeper(author, "allow anything")
        before = state.by_name.get(self.name, LedgerAllowance(name=self.name, cap=self.cap))
        same = before.period is self.period
        changed = replace(
            before,
            cap=self.cap,
            authors=self.authors,
            period=self.period,
            period_limit=self.period_limit,
            newest_period=before.newest_period if same else None,
            period_spent=before.period_spent if same else Fraction(0),
        )
        keepers = dict.fromkeys((*(state.keepers or (author,)), *self.keepers))
        return replace(state._with(changed), keepers=tuple(keepers))

    def words(self) -> str:
        of = f" for {', '.join(self.authors)}" if self.authors else ""
        each = f", {room(self.period_limit)} each {self.period}" if self.period_limit is not None else ""
        return f"allow '{self.name}' {room(self.cap)}{each}{of}"


@dataclass(frozen=True, kw_only=True)
class Ask(AllowanceRule):
    """More is asked for."""

    act = "request"
    name: str
    amount: Fraction

    def change(self, state: Allowances, author: str, line: int) -> Allowances:
        state.choose(self.name, author)
        request = AllowanceRequest(line=line, allowance=self.name, amount=self.amount, author=author)
        return replace(state, requests=(*state.requests, request))

    def words(self) -> str:
        return f"request {readable(self.amount)} more for '{self.name}'"


@dataclass(frozen=True, kw_only=True)
class Approve(AllowanceRule):
    """A request is granted: the cap of its allowance grows."""

    act = "approve"
    line: int

    def change(self, state: Allowances, author: str, line: int) -> Allowances:
        state, request = _decide(state, self.line, author, "approve requests")
        if request.author == author:
            raise LedgerError(
                f"'{author}' made the request of line {self.line}, and another name must approve it. "
                "Nothing was written. Ask another keeper."
            )
        allowance = state.by_name[request.allowance]
        return state._with(replace(allowance, cap=add(allowance.cap, request.amount)))

    def words(self) -> str:
        return f"approve the request of line {self.line}"


@dataclass(frozen=True, kw_only=True)
class Decline(AllowanceRule):
    """A request is not granted, or taken back by who made it."""

    act = "decline"
    line: int

    def change(self, state: Allowances, author: str, line: int) -> Allowances:
        mine = any(each.line == self.line and each.author == author for each in state.requests)
        return _decide(state, self.line, author, "" if mine else "decline requests of others")[0]

    def words(self) -> str:
        return f"decline the request of line {self.line}"


def _decide(state: Allowances, line: int, author: str, act: str) -> tuple[Allowances, AllowanceRequest]:
    """Without the request of a line, and that request; by a keeper, unless there is no act to forbid."""
    request = next((each for each in state.requests if each.line == line), None)
    if request is None:
        lines = ", ".join(str(each.line) for each in state.requests)
        raise InvalidParameter(
            f"No request of line {line} waits. Nothing was written. "
            + (f"Those of these lines do: {lines}." if lines else "None does.")
        )
    if act:
        state.check_keeper(author, act)
    return replace(state, requests=tuple(each for each in state.requests if each is not request)), request
