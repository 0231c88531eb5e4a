"""A durable budget: one file per protected data set, paid before any noise is drawn, never refunded.

Functions that pay take a ledger that is open, or the path of its file.
"""

import json
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, NoReturn, overload

from sourdine.accounting.ledger import problems
from sourdine.accounting.ledger.address import Address, Place
from sourdine.accounting.ledger.allowance import (
    AllowanceRule,
    Allowances,
    Approve,
    Ask,
    Decline,
    LedgerAllowance,
)
from sourdine.accounting.ledger.balance import Balance
from sourdine.accounting.ledger.chain import START, LedgerLine, mark_of
from sourdine.accounting.ledger.charge import Block, Blocks, Statement, author_of, digest_of, say_who, state
from sourdine.accounting.ledger.file import database
from sourdine.accounting.ledger.making import (
    Composition,
    Number,
    advise_ledger,
    make_rule,
    make_terms,
    share_of,
)
from sourdine.accounting.ledger.moving import AnyStore, create_store, move, open_store
from sourdine.accounting.ledger.numbers import room
from sourdine.accounting.ledger.reader import UNREADABLE, Reader
from sourdine.accounting.ledger.receipt import Entry, Receipt, Status
from sourdine.accounting.ledger.server import tables
from sourdine.accounting.ledger.store import Store
from sourdine.accounting.ledger.terms import Period, Terms, check_text, declarations, declared_digest
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.display import Figure, Viewable, figure_of
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError
from sourdine.core.format import either
from sourdine.core.text import tame

Step = Callable[[Balance, datetime], tuple[Balance, str]]
"""From where a ledger stands to where it will, and what the line says of that; or a refusal."""
_NO_SPENDS = '"spends": []'
_START = datetime(1970, 1, 1, tzinfo=UTC)


class Ledger(Viewable):
    """A budget in a file, safe for many processes and threads at once.

    A charge is a block fixed beforehand. Blocks add up by the budget's currency, which stays valid when the
    next block depends on earlier answers. A charge is on the disk before `charge` returns; there is no way
    to take it back. Closing is optional: a ledger that is closed, or goes out of use, is one file again.

    >>> import tempfile
    >>> from sourdine.core.distance import Distance
    >>> from sourdine.mechanisms import Geometric
    >>> ledger = Ledger.create(Path(tempfile.mkdtemp()) / "survey.ledger", epsilon=1)
    >>> count = Spend(mechanism=Geometric(scale=4), distance=Distance.l1(1))
    >>> ledger.charge(count, purpose="how many said yes").left
    Fraction(3, 4)
    """

    def __init__(self, store: AnyStore, terms: Terms | None = None) -> None:
        argument: object = store
        if not isinstance(argument, Store) or terms is None:
            raise InvalidParameter(
                "A ledger is opened with Ledger.open(path), and made with Ledger.create(path, epsilon=3)."
            )
        self._store = store
        self._blocks = Blocks(terms)
        self._reader = Reader(store.path, terms, self._blocks)
        store.verify = self._reader.verify
        self._recent: tuple[Block, tuple[object, ...], Statement] | None = None
        self._newest = ("", Balance(terms=terms))  # after a line found in order, by its mark
        self.terms = terms
        weakref.finalize(self, store.close)

    @classmethod
    def create(
        cls,
        path: Place | str,
        terms: Terms | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        order: Number | None = None,
        divergence: Number | None = None,
        mu: Number | None = None,
        composition: Composition | str | None = None,
        unlimited: bool = False,
        selection_delta: Number | None = None,
        unit: str | None = None,
        neighbours: Neighbours | str | None = None,
        period: Period | str | None = None,
        period_limit: Number | None = None,
    ) -> "Ledger":
        """A new ledger, in a file or at an address; an existing one is never touched.

        The budget is an epsilon, a rho or a mu with a delta, or a `divergence` of an `order` with a delta;
        numbers are taken as they are written, so that 0.1 is a tenth. An epsilon with a delta is kept in rho,
        which suits many releases and pays for no training, or with `composition="basic"` as pairs of epsilon
        and delta: each charge is composed as a whole, so a training of (3, 1e-5) fits into (3, 1e-5). With
        `composition="renyi"` it is kept in Renyi divergences of several orders, for many trainings and
        releases.

        `selection_delta` is the part of delta for choosing keys privately. Protected is a "person" who is
        added or removed, unless `unit` and `neighbours` say otherwise. A `period` ("day", "week", "month" or
        "year") has a `period_limit` of its own. With `unlimited` and a delta there is no limit, and the
        epsilon of its status holds at all times at once. Or give `terms`
        alone.
        """
        if terms is not None and not isinstance(terms, Terms):
            raise check.fail("Ledger.create", "terms", "be Terms", terms, "Name the budget, as in epsilon=3.")
        others = (unit, neighbours, period, period_limit)
        if terms is None:
            terms = make_terms(
                epsilon=epsilon,
                delta=delta,
                rho=rho,
                order=order,
                divergence=divergence,
                mu=mu,
                composition=composition,
                unlimited=unlimited,
                selection_delta=selection_delta,
                unit="person" if unit is None else unit,
                neighbours=Neighbours.ADD_REMOVE if neighbours is None else neighbours,
                period=period,
                period_limit=period_limit,
            )
        elif unlimited or any(
            each is not None
            for each in (epsilon, delta, rho, order, divergence, mu, composition, selection_delta, *others)
        ):
            raise InvalidParameter("A ledger is made from terms, or from a budget. Give one of the two.")
        return cls(create_store(path, terms.to_json()), terms)

    @classmethod
    def open(cls, path: Place | str) -> "Ledger":
        """A ledger made before: a file, or an address such as postgresql://db.example/budgets#survey."""
        store = open_store(path)
        try:
            terms = Terms.from_json(store.terms())
        except BaseException as problem:
            store.close()
            if isinstance(problem, LedgerError) or not isinstance(problem, UNREADABLE):
                raise
            raise LedgerError(
                f"The terms of the ledger {store.path} cannot be read. "
                "Keep it, and see in a backup what was spent."
            ) from problem
        return cls(store, terms)

    def __repr__(self) -> str:
        terms = self.terms
        limit = f"{terms.budget.symbol} {room(terms.budget.limit)}"
        return tame(
            f"<Ledger {str(self.path)!r}: {limit} for each {terms.unit}, {terms.neighbours} neighbours>"
        )

    @property
    def path(self) -> Place:
        """Where it is: the path of its file, or its address, whose text holds no password."""
        return self._store.path

    @property
    def is_backup(self) -> bool:
        """Whether the file is a backup, which can be read and never charged."""
        return self._store.is_backup

    def backup(self, path: Path | str) -> "Ledger":
        """A copy to keep, each line checked on the way: it can be read, and pays for nothing."""
        database.create(Path(path), self._store.terms(), self._store.lines(), backup=True)
        return type(self).open(path)

    def move(self, path: Place | str) -> "Ledger":
        """The same ledger at a new place, a file or an address, with every line; what stays is a backup.

        A move that was cut off is finished by the same call again.
        """
        self.close()
        return type(self).open(move(self.path, path))

    def upgrade(self) -> None:
        """Bring a ledger on a server to the newest form, once, by its owner; every line is verified first.

        From then on the database derives every total itself, and earlier versions refuse the ledger. A file
        is brought up by its first charge.
        """
        if not isinstance(self.path, Address):
            raise InvalidParameter("A ledger in a file is brought up by its first charge. Charge it.")
        end = START
        for line in self._store.lines():
            end = mark_of(line)
        self.history()
        tables.upgrade(self.path, end)
        self.close()

    def grant(self, role: str, *, charge: bool = True) -> None:
        """Let a role of the server read this ledger and charge it, or only read it; never change a line."""
        if not isinstance(self.path, Address):
            raise InvalidParameter(
                "Roles are of a server, and this ledger is a file. Give people rights on the file instead."
            )
        check_text("role", role)
        tables.grant(self.path, role, charge=charge)

    def close(self) -> None:
        """Let go of the file, which then holds all of its log; the next use opens it again."""
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def price(self, *spends: Spend) -> Fraction:
        """What a block would cost; nothing is spent."""
        return self._blocks.keep(spends).cost.price

    def delta(self, *spends: Spend) -> Fraction:
        """What a block would take of the selection delta; nothing is spent."""
        return self._blocks.keep(spends).cost.delta

    def charge(
        self,
        *spends: Spend,
        purpose: str,
        author: str | None = None,
        allowance: str | None = None,
        secure: bool | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Pay for a block, or refuse it whole; noise may be drawn once this has returned.

        Where there are allowances it is taken from the one that is named, or from the only one that its
        author has. `secure` (whether the noise will come from secure bits) and the digest of `declared`
        (bounds and other declarations the release rests on) are recorded, so that a certificate can be held
        against them.
        """
        noted = None if declared is None else declared_digest(declarations(declared))
        request = (purpose, author, secure, noted, allowance)
        recent = self._recent  # read once: another thread may put its own there
        if recent is None or recent[1] != request or not recent[0].holds(spends):
            block = self._blocks.keep(spends)
            statement = state(
                block, purpose=purpose, author=author, secure=secure, digest=noted, allowance=allowance
            )
            self._recent = recent = (block, request, statement)
        cost, before, after, digest = recent[2]
        who = author_of(author)
        with self._advising(spends):
            line, time, balance = self._write(
                digest, lambda balance, time: balance.charge(cost, time, allowance, who), before, after
            )
        return Receipt.of(cost, line, time, balance)

    @contextmanager
    def _advising(self, spends: tuple[Spend, ...]) -> Iterator[None]:
        """Say which ledger could pay, where a block that is sampled is more than the whole budget."""
        try:
            yield
        except BudgetExceeded as problem:
            if problem.amount <= self.terms.budget.limit or all(spend.sampling is None for spend in spends):
                raise
            message = f"{problem} {advise_ledger(self.terms, spends)}".rstrip()
            raise BudgetExceeded(message, amount=problem.amount, left=problem.left) from problem

    def declare(self, *spends: Spend, purpose: str, author: str | None = None) -> "DeclaredBlock":
        """Pay for several plans as one block, before the first answer of any of them.

        What is returned takes the place of the ledger for each of these plans, once: their parameters are
        fixed together, so that a ledger of pairs of epsilon and delta composes all of them as one.
        """
        return DeclaredBlock(self, self.charge(*spends, purpose=purpose, author=author), spends)

    def _write(self, digest: str, step: Step, before: str, after: str) -> "_Line":
        """One more line, by a step from where the ledger stands; or the step's refusal."""
        time, balance, content = _START, Balance(terms=self.terms), ""

        def build(last: LedgerLine | None) -> tuple[str, str]:
            nonlocal time, balance, content
            time = datetime.now(UTC)
            balance, within = step(self._balance(last), time)
            content = f'{{"time": "{time.isoformat()}", {before}{within}, {after}}}'
            return content, str(balance.total)

        line = self._store.append(build, digest)
        if line.content != content:  # written by an earlier try that was lost before it was told
            return _Line(line, self._reader.entry(line).time, self._balance(line))
        self._newest = (line.fingerprint, balance)
        return _Line(line, time, balance)

    def check(self, *spends: Spend, author: str | None = None, allowance: str | None = None) -> None:
        """Refuse a block that `charge` would refuse as the ledger stands now; nothing is spent."""
        cost = self._blocks.keep(spends).cost
        last = self._store.last()
        if self.is_backup:
            raise problems.backup(self.path)
        with self._advising(spends):
            self._balance(last).charge(cost, datetime.now(UTC), allowance, author_of(author))

    def _balance(self, line: LedgerLine | None) -> Balance:
        """Where the ledger stands after a line; one that it did not write is looked at closely first."""
        if line is None:
            return Balance(terms=self.terms)
        mark, balance = self._newest
        if mark == line.fingerprint:
            return balance
        return self._reader.balance(line)

    # allowances

    def allow(
        self,
        name: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        divergence: Number | None = None,
        mu: Number | None = None,
        period: Period | str | None = None,
        period_limit: Number | None = None,
        authors: Sequence[str] = (),
        keepers: Sequence[str] = (),
        author: str | None = None,
    ) -> LedgerAllowance:
        """Make an allowance, or change it: a named share of the budget with a cap, perhaps with periods.

        The cap is in the ledger's currency; an epsilon is turned into a rho where that is it. Who makes the
        first allowance is the ledger's keeper; keepers alone allow and approve, and may name others.
        From then on every charge takes from an allowance.
        """
        cap = share_of(self.terms, epsilon=epsilon, rho=rho, divergence=divergence, mu=mu)
        rule = make_rule(name, cap, period, period_limit, authors=authors, keepers=keepers)
        return self._rule(rule, rule.words(), author).balance.allowances.by_name[name]

    def request(
        self,
        name: str,
        *,
        purpose: str,
        epsilon: Number | None = None,
        rho: Number | None = None,
        divergence: Number | None = None,
        mu: Number | None = None,
        author: str | None = None,
    ) -> int:
        """Ask for more for an allowance; the line of the request, by which a keeper decides on it."""
        more = share_of(self.terms, epsilon=epsilon, rho=rho, divergence=divergence, mu=mu)
        return self._rule(Ask(name=name, amount=more), purpose, author).line.number

    def approve(self, line: int, *, author: str | None = None) -> LedgerAllowance:
        """Grant the request of a line, by a keeper other than who made it: its allowance grows."""
        rule = Approve(line=_line_number(line))
        state = self._rule(rule, rule.words(), author).balance.allowances
        asked = self.entry(line)  # a line never changes, so it may be read after it was decided on
        if asked is None or not isinstance(asked.rule, Ask):  # which no approved request is
            raise problems.damaged(self.path)
        return state.by_name[asked.rule.name]

    def decline(self, line: int, *, author: str | None = None) -> None:
        """Do not grant the request of a line, or take it back."""
        rule = Decline(line=_line_number(line))
        self._rule(rule, rule.words(), author)

    @property
    def allowances(self) -> Allowances:
        """How the allowances stand, which requests wait, and who decides."""
        return self._balance(self._store.last()).allowances

    def _rule(self, rule: AllowanceRule, purpose: str, author: str | None) -> "_Line":
        who = author_of(author)
        words = say_who(purpose, who, Fraction(0))
        digest = digest_of(words, json.dumps(rule.to_json()))
        return self._write(digest, lambda balance, time: balance.rule(rule, time, who), words, _NO_SPENDS)

    def status(self) -> Status:
        """What is spent and left, and what that means as an epsilon."""
        balance = self._balance(self._store.last())
        return Status.of(balance, datetime.now(UTC), is_backup=self.is_backup)

    def history(self) -> list[Entry]:
        """Every block, replayed: the chain, the prices and the totals are checked again."""
        return list(self._reader.replay(self._store.lines()))

    def entry(self, number: int) -> Entry | None:
        """One block, if there is one of this number; `history` also checks all before it."""
        line = self._store.line(number)
        return None if line is None else self._reader.entry(line)

    def confirm(self, number: int) -> Entry | None:
        """One block as a certificate rests on it: its link in the chain, its price, and the ledger's end.

        Its fingerprint stands for all blocks before it, which `history` checks one by one.
        """
        end, line = self._store.last(), self._store.line(number)
        if end is None or line is None:
            return None
        self._reader.opened(end)
        return self._reader.priced(line)

    def forecast(self, *spends: Spend) -> int:
        """How many more such blocks fit into what is left (and into this period)."""
        return self.status().fits(self._blocks.keep(spends).cost)

    def chart(self) -> Figure:
        """What was spent, charge by charge, under the limit."""
        return figure_of(self)


class DeclaredBlock(Ledger):
    """A block that is paid, in place of its ledger for the plans that it was declared for.

    Each charge takes its spends out of what is left of the block and gives the receipt of the one line; a
    spend that is not left there is refused. What is left is known to this object in this process alone, so
    it cannot be copied.
    """

    def __init__(self, ledger: Ledger, receipt: Receipt, spends: Sequence[Spend]) -> None:
        store = open_store(ledger.path)
        super().__init__(store, ledger.terms)
        self._receipt = receipt
        self._left = _uses(spends)
        self._process, self._lock = os.getpid(), threading.Lock()

    @property
    def receipt(self) -> Receipt:
        """The receipt of the line by which the whole block was paid."""
        return self._receipt

    def charge(
        self,
        *spends: Spend,
        purpose: str,
        author: str | None = None,
        allowance: str | None = None,
        secure: bool | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Take spends out of the block; they were paid when it was declared."""
        with self._lock:
            self.check(*spends)
            self._left -= _uses(spends)
        return self._receipt

    def check(self, *spends: Spend, author: str | None = None, allowance: str | None = None) -> None:
        """Refuse spends that are not left in the block."""
        if os.getpid() != self._process:
            raise LedgerError(
                "A declared block belongs to the process that paid. Declare another, or charge."
            )
        if not spends or not _uses(spends) <= self._left:
            raise BudgetExceeded(
                "These spends are not left in the declared block: each of its plans is run once, as it was "
                "declared. Nothing was spent. Charge the ledger itself for more.",
                amount=self._receipt.price,
                left=Fraction(0),
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidParameter("A declared block cannot be copied: each of its plans would run twice.")


def _uses(spends: Sequence[Spend]) -> Counter[Spend]:
    """How often each mechanism is used."""
    uses: Counter[Spend] = Counter()
    for spend in spends:
        uses[replace(spend, count=1)] += spend.count
    return uses


class _Line(NamedTuple):
    """A line that was written, when, and where the ledger stands after it."""

    line: LedgerLine
    time: datetime
    balance: Balance


def _line_number(line: object) -> int:
    return int(check.integer("Ledger", "line", line, 1, 1 << 62))


@overload
def opened(ledger: Ledger | Path | str) -> AbstractContextManager[Ledger]: ...
@overload
def opened(ledger: Ledger | Path | str | None) -> AbstractContextManager[Ledger | None]: ...
def opened(ledger: Ledger | Path | str | None) -> AbstractContextManager[Ledger | None]:
    """The ledger, for a while: one that is opened here is closed after, and one that was open stays so."""
    if ledger is None or isinstance(ledger, Ledger):
        return nullcontext(ledger)
    if isinstance(ledger, str | Path | Address):
        return Ledger.open(ledger)
    raise InvalidParameter(
        "A ledger is given as such, or as the path of its file. "
        f"Make one with {either('Ledger.create', '`sourdine ledger create`')}."
    )
