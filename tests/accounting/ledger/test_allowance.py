"""Allowances against a model that knows nothing of fractions, files or chains."""

import random
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers import Server
from sourdine.accounting import Spend
from sourdine.accounting.ledger import Allowances, ConcentratedBudget, Ledger, ledger, spending_from
from sourdine.accounting.ledger.chain import Build, LedgerLine
from sourdine.core.distance import Distance
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, SourdineError
from sourdine.mechanisms import Gaussian, Geometric
from tests.accounting.ledger.files import accept_any_time, rewrite

PARTS = 8  # of epsilon 1
LIMIT = 3 * PARTS
PEOPLE = ("ana", "ben", "cat")


def spend(parts: int) -> Spend:
    return Spend(mechanism=Geometric(scale=Fraction(PARTS, parts)), distance=Distance.l1(1))


class Clock(datetime):
    moment = datetime(2026, 1, 30, tzinfo=UTC)

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return cls.moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    monkeypatch.setattr(ledger, "datetime", Clock)
    Clock.moment = datetime(2026, 1, 30, tzinfo=UTC)
    return Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.ledger"


# the model


@dataclass
class Share:
    cap: int
    authors: frozenset[str]
    monthly: int | None
    spent: int = 0
    month: str = ""
    in_month: int = 0


@dataclass
class Model:
    shares: dict[str, Share] = field(default_factory=dict)
    waiting: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    keeper: str = ""
    lines: int = 0
    spent: int = 0

    def may(self, act: str, who: str, month: str, words: dict[str, Any]) -> bool:
        """Whether an act is done; if so, it is."""
        done: bool = getattr(self, f"_{act}")(who, month, **words)
        self.lines += done
        return done

    def _allow(
        self, who: str, month: str, name: str, cap: int, authors: frozenset[str], monthly: int | None
    ) -> bool:
        if self.keeper not in ("", who):
            return False
        self.keeper = who
        share = self.shares.setdefault(name, Share(cap, authors, monthly))
        if (share.monthly is None) != (monthly is None):
            share.month, share.in_month = "", 0
        share.cap, share.authors, share.monthly = cap, authors, monthly
        return True

    def _request(self, who: str, month: str, name: str, more: int) -> bool:
        if name not in self.shares or not self._fits(who, name):
            return False
        self.waiting[self.lines + 1] = (name, more, who)
        return True

    def _approve(self, who: str, month: str, line: int) -> bool:
        if line not in self.waiting or self.keeper != who or self.waiting[line][2] == who:
            return False
        name, more, _ = self.waiting.pop(line)
        self.shares[name].cap += more
        return True

    def _decline(self, who: str, month: str, line: int) -> bool:
        if line not in self.waiting or who not in (self.keeper, self.waiting[line][2]):
            return False
        del self.waiting[line]
        return True

    def _charge(self, who: str, month: str, parts: int, name: str | None) -> bool:
        if self.shares and name is None:
            mine = [name for name, share in self.shares.items() if who in share.authors]
            common = [name for name, share in self.shares.items() if not share.authors]
            names = mine or common
            name = names[0] if len(names) == 1 else None
            if name is None:
                return False
        if self.spent + parts > LIMIT:
            return False
        if name is not None:
            if name not in self.shares or not self._fits(who, name):
                return False
            share = self.shares[name]
            now = max(month, share.month)
            before = share.in_month if now == share.month else 0
            if share.spent + parts > share.cap or (
                share.monthly is not None and before + parts > share.monthly
            ):
                return False
            share.spent += parts
            if share.monthly is not None:
                share.month, share.in_month = now, before + parts
        self.spent += parts
        return True

    def _fits(self, who: str, name: str) -> bool:
        return not self.shares[name].authors or who in self.shares[name].authors


def drawn(chance: random.Random, model: Model) -> tuple[str, dict[str, Any]]:
    act = chance.choices(["charge", "allow", "request", "approve", "decline"], [10, 2, 2, 2, 1])[0]
    names = ["red", "blue", "green"]
    if act == "charge":
        return act, {"parts": chance.randint(1, 4), "name": chance.choice([None, *names])}
    if act == "allow":
        cap = chance.randint(1, 16)
        authors = frozenset(chance.sample(PEOPLE, chance.randint(0, 2)))
        monthly = chance.choice([None, None, chance.randint(1, cap)])
        return act, {"name": chance.choice(names), "cap": cap, "authors": authors, "monthly": monthly}
    if act == "request":
        return act, {"name": chance.choice(names), "more": chance.randint(1, 6)}
    return act, {"line": chance.choice([*model.waiting, chance.randint(1, 20)])}


def carried_out(book: Ledger, act: str, who: str, words: dict[str, Any]) -> bool:
    part = {name: Fraction(words[name], PARTS) for name in ("cap", "more") if name in words}
    try:
        if act == "charge":
            book.charge(spend(words["parts"]), purpose="p", author=who, allowance=words["name"])
        elif act == "allow":
            monthly = words["monthly"]
            limits: dict[str, Any] = (
                {} if monthly is None else {"period": "month", "period_limit": Fraction(monthly, PARTS)}
            )
            authors = sorted(words["authors"])
            book.allow(words["name"], epsilon=part["cap"], authors=authors, author=who, **limits)
        elif act == "request":
            book.request(words["name"], epsilon=part["more"], purpose="more", author=who)
        else:
            getattr(book, act)(words["line"], author=who)
    except (BudgetExceeded, LedgerError, InvalidParameter) as problem:
        if "Nothing was" not in str(problem):
            raise
        return False
    return True


def schedule(place: Path | str, seed: int, server: Server | None = None) -> None:
    """One schedule of several people, who have the ledger open by themselves."""
    chance, model = random.Random(seed), Model()
    Clock.moment = datetime(2026, 1, 30, tzinfo=UTC)
    made = Ledger.create(place, epsilon=Fraction(LIMIT, PARTS))
    if server is not None:
        accept_any_time(server, str(place))
    books = [made, Ledger.open(place)]
    for _ in range(chance.randint(8, 30)):
        if chance.random() < 0.15:
            Clock.moment += timedelta(days=chance.choice([-40, 1, 35]))
        who, (act, words) = chance.choice(PEOPLE), drawn(chance, model)
        done = carried_out(chance.choice(books), act, who, words)
        assert done == model.may(act, who, f"{Clock.moment:%Y-%m}", words), (seed, act, who, words)
        state = made.allowances
        assert made.status().spent * PARTS == model.spent <= LIMIT
        for name, share in model.shares.items():
            found = state.by_name[name]
            assert (found.cap * PARTS, found.spent * PARTS) == (share.cap, share.spent)
    assert {each.line for each in made.allowances.requests} == model.waiting.keys()
    entries = made.history()  # which replays every rule
    assert len(entries) == model.lines
    for name, share in model.shares.items():
        assert sum(each.price for each in entries if each.allowance == name) * PARTS == share.spent
    for book in books:
        book.close()


def schedules(first: int, count: int) -> None:
    shared = Path("/dev/shm")  # in memory: what a disk does is simulated elsewhere
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        for seed in range(first, first + count):
            schedule(Path(folder) / f"{seed}.ledger", seed)
            (Path(folder) / f"{seed}.ledger").unlink()


def test_nobody_passes_a_cap_or_the_whole(clock: type[Clock]) -> None:
    schedules(0, 5)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_nobody_passes_a_cap_or_the_whole_in_ten_thousand_schedules(clock: type[Clock], part: int) -> None:
    schedules(10**6 + 1000 * part, 1000)


def test_nobody_passes_a_cap_or_the_whole_on_a_server(clock: type[Clock], server: Server) -> None:
    for seed in range(2):
        schedule(server.new(), seed, server)


# what is said


def test_an_allowance_is_made_spent_and_seen(path: Path) -> None:
    with Ledger.create(path, epsilon=1) as book:
        book.allow("growth", epsilon=0.5, authors=["ana"], author="olga")
        receipt = book.charge(spend(1), purpose="p", author="ana")
        assert (receipt.number, receipt.left) == (2, Fraction(7, 8))
        growth = book.allowances.by_name["growth"]
        assert (growth.cap, growth.spent, growth.left) == (Fraction(1, 2), Fraction(1, 8), Fraction(3, 8))
        with pytest.raises(BudgetExceeded, match=r"the allowance 'growth' has 0.375 left") as caught:
            book.charge(spend(4), purpose="p", author="ana")
        assert caught.value.left == Fraction(3, 8)
        with pytest.raises(LedgerError, match="'ben' may not spend from the allowance 'growth'"):
            book.charge(spend(1), purpose="p", author="ben", allowance="growth")
        with pytest.raises(InvalidParameter, match=r"'ben' has none. Nothing was spent"):
            book.charge(spend(1), purpose="p", author="ben")
        with pytest.raises(InvalidParameter, match="no allowance 'grwth'"):
            book.charge(spend(1), purpose="p", author="ana", allowance="grwth")
        assert [(entry.allowance, entry.rule is None) for entry in book.history()] == [
            (None, False),
            ("growth", True),
        ]
        assert book.status().blocks == 1


def test_the_whole_holds_though_caps_add_up_to_more(path: Path) -> None:
    with Ledger.create(path, epsilon=1) as book:
        for name in ("a", "b"):
            book.allow(name, epsilon="0.75", author="olga")
        book.charge(spend(6), purpose="p", allowance="a")
        with pytest.raises(BudgetExceeded, match=r"the budget has 0.25 left"):
            book.charge(spend(3), purpose="p", allowance="b")


def test_a_request_waits_for_another_name(path: Path) -> None:
    with Ledger.create(path, epsilon=1) as book:
        book.allow("growth", epsilon="1/8", keepers=["ana"], author="olga")
        line = book.request("growth", epsilon="1/4", purpose="one more table", author="ana")
        with pytest.raises(LedgerError, match="another name must approve it"):
            book.approve(line, author="ana")
        with pytest.raises(LedgerError, match="the keepers of this ledger are olga, ana"):
            book.approve(line, author="ben")
        assert book.approve(line, author="olga").cap == Fraction(3, 8)
        with pytest.raises(InvalidParameter, match="None does"):
            book.approve(line, author="olga")
        second = book.request("growth", epsilon="1/4", purpose="again", author="ben")
        book.decline(second, author="ben")  # taken back
        assert book.allowances.requests == ()
        assert [entry.purpose for entry in book.history()][1] == "one more table"


def test_a_request_that_is_made_while_its_approval_waits_is_approved(path: Path) -> None:
    with Ledger.create(path, epsilon=1) as book, Ledger.open(path) as other:
        book.allow("growth", epsilon=0.25, authors=["ana"], author="olga")
        append = book._store.append

        def late(build: Build, digest: str = "") -> LedgerLine:
            if other.status().blocks == 0 and len(other.history()) == 1:
                other.request("growth", epsilon=0.125, purpose="p", author="ana")
            return append(build, digest)

        book._store.append = late  # type: ignore[method-assign]
        assert book.approve(2, author="olga").cap == Fraction(3, 8)
        assert len(book.history()) == 3


def test_an_allowance_by_month_is_of_the_month(path: Path, clock: type[Clock]) -> None:
    with Ledger.create(path, epsilon=2) as book:
        book.allow("growth", epsilon=1, period="month", period_limit="1/4", author="olga")
        book.charge(spend(2), purpose="p")
        with pytest.raises(BudgetExceeded, match="this month of the allowance 'growth' has 0 left"):
            book.charge(spend(1), purpose="p")
        clock.moment += timedelta(days=10)
        book.charge(spend(2), purpose="p")
        clock.moment -= timedelta(days=40)  # a clock set back opens no old month
        with pytest.raises(BudgetExceeded):
            book.charge(spend(1), purpose="p")


def test_a_cap_in_epsilon_is_kept_in_the_currency_of_the_ledger(path: Path) -> None:
    with Ledger.create(path, epsilon=3, delta=1e-6) as book:
        growth = book.allow("growth", epsilon=1, author="olga")
        assert growth.cap == ConcentratedBudget.within(1, 1e-6).limit
        assert book.terms.budget.epsilon(growth.cap, 1e-6) <= 1
        book.charge(Spend(mechanism=Gaussian(sigma=40), distance=Distance.l2(1)), purpose="p")
        mistakes: list[dict[str, Any]] = [
            {"mu": 1},
            {"epsilon": 1, "rho": 1},
            {},
            {"epsilon": 4},
            {"epsilon": -1},
        ]
        for wrong in mistakes:
            with pytest.raises(InvalidParameter):
                book.allow("other", author="olga", **wrong)


def test_charges_name_their_allowance_from_outside(path: Path) -> None:
    with Ledger.create(path, epsilon=1) as book:
        for name in ("a", "b"):
            book.allow(name, epsilon="0.5", author="olga")
        with pytest.raises(InvalidParameter, match="has more than one"):
            book.charge(spend(1), purpose="p")
        with spending_from("b"):
            book.charge(spend(1), purpose="p")
        assert book.allowances.by_name["b"].spent == Fraction(1, 8)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"spent": "1/8"', '"spent": "0"'),
        ('"cap": "1/2"', '"cap": "1"'),
        ('"allowance": "growth", ', ""),
        ('"keepers": ["olga"]', '"keepers": ["ana"]'),
    ],
)
def test_a_changed_allowance_does_not_replay(path: Path, old: str, new: str) -> None:
    with Ledger.create(path, epsilon=1) as book:
        book.allow("growth", epsilon=0.5, author="olga")
        book.charge(spend(1), purpose="p")
        content = book._store.line(2).content  # type: ignore[union-attr]
    assert old in content
    rewrite(path, 2, content=content.replace(old, new))
    with pytest.raises(LedgerError, match="does not replay"):
        Ledger.open(path).history()


@pytest.mark.parametrize("held", ["[]", '{"each": 5}', '{"each": [{"name": "a"}]}', '{"more": 1}'])
def test_allowances_that_cannot_be_read_are_one_sentence(path: Path, held: str) -> None:
    with Ledger.create(path, epsilon=1) as book:
        book.allow("growth", epsilon=0.5, author="olga")
        content = book._store.line(1).content  # type: ignore[union-attr]
    before = content.partition('"allowances": ')[0]
    rewrite(path, 1, content=f'{before}"allowances": {held}, "spends": []}}')
    for act in (Ledger.status, Ledger.history, lambda book: book.charge(spend(1), purpose="p")):
        with pytest.raises(SourdineError, match="contradicts itself"):
            act(Ledger.open(path))


def test_a_ledger_without_allowances_says_nothing_of_them(path: Path) -> None:
    with Ledger.create(path, epsilon=1) as book:
        book.charge(spend(1), purpose="p")
        assert "allowance" not in book._store.line(1).content  # type: ignore[union-attr]
        assert book.allowances == Allowances()
        with pytest.raises(InvalidParameter, match="has no allowance 'a'"):
            book.charge(spend(1), purpose="p", allowance="a")
