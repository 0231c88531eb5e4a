"""Lines that a role with the right to charge writes by SQL: refused by the database or the next charge."""

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg")

from benchmarks.servers import Server  # noqa: E402
from sourdine.accounting.ledger import Ledger  # noqa: E402
from sourdine.accounting.ledger.address import Address  # noqa: E402
from sourdine.accounting.ledger.chain import LedgerLine, Mark, mark_of, next_line  # noqa: E402
from sourdine.accounting.ledger.server import store  # noqa: E402
from sourdine.accounting.ledger.terms import Period  # noqa: E402
from sourdine.core.errors import BudgetExceeded, LedgerError, LedgerWait  # noqa: E402
from tests.accounting.ledger.files import forget  # noqa: E402
from tests.campaigns.ledger.crash import one_spend  # noqa: E402

SPEND = one_spend()
Fields = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def roles(server: Server) -> Iterator[None]:
    server.execute("DROP ROLE IF EXISTS mallory", "CREATE ROLE mallory LOGIN")
    yield
    server.execute("DROP OWNED BY mallory", "DROP ROLE mallory")


class Forger:
    """A role with the right to charge, which writes lines by itself."""

    def __init__(self, server: Server, **terms: Any) -> None:
        self.address = server.new()
        self.owner = Ledger.create(self.address, epsilon=1, **terms)
        self.schema = Address.parse(self.address).schema
        self.owner.charge(SPEND, purpose="first", author="ana")
        self.owner.grant("mallory")
        reach = self.address.partition("#")[0].replace("postgres:@", "mallory@")
        self.connection = psycopg.connect(reach, autocommit=True)

    def last(self) -> LedgerLine:
        rows = self.connection.execute(
            f"SELECT number, content, total, fingerprint FROM {self.schema}.lines "
            "ORDER BY number DESC LIMIT 1"
        ).fetchall()
        return LedgerLine._make(rows[0])

    def line(self, last: LedgerLine, total: str | None = None, drop: str = "", **changed: Any) -> LedgerLine:
        """The line that an honest charge would write, with some of it changed, under a true fingerprint."""
        fields = {**json.loads(last.content), "time": _soon(0), "price": "1/1000"}
        spends = changed.pop("spends", fields.pop("spends"))
        price = Fraction(1, 1000)
        for name in ("period_total", "delta_total"):
            if name in fields:
                fields[name] = str(Fraction(fields[name]) + (price if name == "period_total" else 0))
        fields.update(changed)
        fields.pop(drop, None)
        content = f"{json.dumps(fields)[:-1]}, " + f'"spends": {json.dumps(spends)}}}'
        return next_line(mark_of(last), content, total or str(Fraction(last.total) + price))

    def write(self, *lines: LedgerLine) -> None:
        values = ", ".join(["(%s, %s, %s, %s)"] * len(lines))
        self.connection.execute(
            f"INSERT INTO {self.schema}.lines (number, content, total, fingerprint) VALUES {values}",
            [value for line in lines for value in line],
        )

    def rule(self, last: LedgerLine, act: Fields, **state: Any) -> LedgerLine:
        """A line of a rule, with the allowances that its author claims."""
        return self.line(
            last, total=last.total, price="0", spends=[], rule=act, period_total=_of(last, "period_total"),
            allowances={"each": [], "requests": [], "keepers": [], "rules": 1, **state},
        )  # fmt: skip

    def close(self) -> None:
        self.connection.close()
        self.owner.close()


@pytest.fixture
def make(server: Server) -> Iterator[Callable[..., Forger]]:
    made = list[Forger]()

    def start(**terms: Any) -> Forger:
        made.append(Forger(server, **terms))
        return made[-1]

    yield start
    for forger in made:
        forger.close()


@pytest.fixture
def forger(make: Callable[..., Forger]) -> Forger:
    return make()


def _of(line: LedgerLine, name: str) -> Any:
    return json.loads(line.content)[name]


def _soon(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def _chain(forger: Forger, last: LedgerLine, *changes: Fields) -> list[LedgerLine]:
    """Lines in a row, each after the one before."""
    lines = []
    for change in changes:
        last = forger.line(last, **change)
        lines.append(last)
    return lines


def _much(price: str, total: str) -> Fields:
    return {"price": price, "total": total, "period_total": total}


def _half(last: LedgerLine) -> str:
    return str(Fraction(last.total) / 2)


REFUSED: dict[str, Callable[[Forger, LedgerLine], list[LedgerLine]]] = {
    "total of nothing": lambda f, last: [f.line(last, total="0")],
    "all given back": lambda f, last: [f.line(last, price="0", total="0", period_total="0")],
    "total that stays": lambda f, last: [f.line(last, total=last.total)],
    "total a little less": lambda f, last: [f.line(last, total="1999999/1000000000")],
    "total not in lowest terms": lambda f, last: [f.line(last, total="4/2000")],
    "total of twice the digits": lambda f, last: [f.line(last, total="0.002")],
    "negative price": lambda f, last: [f.line(last, price="-1/1000", total="0", period_total="0")],
    "refund": lambda f, last: [f.line(last, price="-1/1000", total="0", spends=[], rule={"act": "allow"})],
    "price of zero below": lambda f, last: [f.line(last, price="1/0")],
    "price not a text": lambda f, last: [f.line(last, price=0, total=last.total)],
    "price named twice": lambda f, last: [
        next_line(mark_of(last), last.content.replace('"price"', '"price": "0", "price"', 1), last.total)
    ],
    "no price": lambda f, last: [f.line(last, drop="price", total=last.total)],
    "beyond the budget": lambda f, last: [f.line(last, **_much("2", "2001/1000"))],
    "beyond the period": lambda f, last: [f.line(last, **_much("3/5", "601/1000"))],
    "total of the period": lambda f, last: [f.line(last, period_total="1/1000")],
    "no period": lambda f, last: [f.line(last, drop="period_total")],
    "period to come": lambda f, last: [
        f.line(last, time=_soon(400), period=f"{datetime.now(UTC).year + 1}", period_total="1/1000")
    ],
    "period gone by": lambda f, last: [f.line(last, time=_soon(-400), period="2001", period_total="1/1000")],
    "total of delta": lambda f, last: [f.line(last, delta="1/10000000", delta_total="0")],
    "beyond the selection delta": lambda f, last: [f.line(last, delta="1/2", delta_total="1/2")],
    "no delta": lambda f, last: [f.line(last, drop="delta")],
    "allowance that nobody made": lambda f, last: [f.line(last, allowance="all")],
    "keeper by a charge": lambda f, last: [
        f.line(last, allowances={"each": [], "requests": [], "keepers": ["mallory"], "rules": 1})
    ],
    "rule with allowances of its own": lambda f, last: [
        f.rule(last, {"act": "allow", "name": "all", "cap": "1", "authors": [], "period": None,
                      "period_limit": None, "keepers": []}, keepers=["mallory", "eve"])
    ],
    "rule that is unknown": lambda f, last: [f.rule(last, {"act": "take"})],
    "request of an allowance that is not there": lambda f, last: [
        f.rule(last, {"act": "request", "name": "all", "amount": "1"})
    ],
    "number left out": lambda f, last: [f.line(last._replace(number=last.number + 1))],
    "number used": lambda f, last: [f.line(last)._replace(number=last.number)],
    "fingerprint": lambda f, last: [f.line(last)._replace(fingerprint="0" * 64)],
    "another branch": lambda f, last: [next_line(Mark(last.number, "0" * 64), last.content, last.total)],
    "no JSON": lambda f, last: [next_line(mark_of(last), "spent nothing", last.total)],
    "a list": lambda f, last: [next_line(mark_of(last), "[]", last.total)],
    "letters beyond ASCII": lambda f, last: [
        next_line(mark_of(last), f.line(last).content.replace("first", "f\u00efrst"), f.line(last).total)
    ],
    "no spends": lambda f, last: [f.line(last, spends=[])],
    "another clock": lambda f, last: [f.line(last, time="2026-01-01T00:00:00+14:00")],
    "two in a row": lambda f, last: _chain(f, last, {"total": _half(last)}, {}),
    "three in a row": lambda f, last: _chain(f, last, {}, {"total": "1/1000"}, {"total": "2/1000"}),
    "three, of which the last is forged": lambda f, last: _chain(f, last, {}, {}, {"total": "0"}),
}  # fmt: skip
"""Lines that the database refuses, by what is forged about them."""


def test_the_database_refuses_what_does_not_follow_from_the_line_before(make: Callable[..., Forger]) -> None:
    forger = make(period="year", period_limit="1/2", selection_delta=1e-6)
    assert len(REFUSED) > 20
    for name, forge in REFUSED.items():
        before = forger.last()
        lines = forge(forger, before)
        with pytest.raises(psycopg.Error):
            forger.write(*lines)
        assert forger.last() == before, name
    forger.write(forger.line(forger.last()))  # a line that follows is one, whoever wrote it
    forget()
    with Ledger.open(forger.address) as ledger:
        assert ledger.charge(SPEND, purpose="p").spent == Fraction(3, 1000)
        assert len(ledger.history()) == 3


PRICED: dict[str, Callable[[Forger, LedgerLine], list[LedgerLine]]] = {
    "price of nothing": lambda f, last: [f.line(last, price="0", total=last.total)],
    "half the price": lambda f, last: [f.line(last, price="1/2000", total="3/2000")],
    "two in a row": lambda f, last: _chain(
        f, last, {"price": "0", "total": last.total}, {"price": "0", "total": last.total}
    ),
    "three in a row, two of them true": lambda f, last: _chain(
        f, last, {"price": "0", "total": last.total}, {"total": "1/500"}, {"total": "3/1000"}
    ),
    "a hundred true ones after it": lambda f, last: _chain(
        f, last, {"price": "0", "total": last.total},
        *({"total": str(Fraction(number, 1000))} for number in range(2, 102)),
    ),
    "spends that are none": lambda f, last: [f.line(last, spends=[1])],
}  # fmt: skip
"""Lines whose totals follow, and whose price is not that of their spends."""


@pytest.mark.parametrize("name", PRICED)
def test_the_next_charge_prices_again_what_others_wrote(server: Server, forger: Forger, name: str) -> None:
    with Ledger.open(forger.address) as other:
        assert other.status().blocks == 1
        forger.write(*PRICED[name](forger, forger.last()))
        for fresh in (False, True):  # the owner has seen the ledger before, and somebody new has not
            if fresh:
                forget()
            for act in (lambda: other.charge(SPEND, purpose="p"), other.status, other.history):
                with pytest.raises(LedgerError, match=r"does not replay|contradicts itself"):
                    act()
    assert forger.owner._store.path == other.path


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {0}.lines SET total = '0'",
        "INSERT INTO {0}.checkpoints VALUES (1, 'x')",
        "INSERT INTO {0}.mark VALUES (1, 'x')",
        "UPDATE {0}.mark SET number = 0",
        "ALTER TABLE {0}.lines DISABLE TRIGGER ALL",
        "DROP TRIGGER lines_marked ON {0}.lines",
        "CREATE OR REPLACE FUNCTION {0}.derive() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "SELECT {0}.plus('1', '1')",
        "SET session_replication_role = replica",
        "INSERT INTO {0}.lines (number, content, total, fingerprint, role) VALUES (2, '', '', '', 'ana')",
        "DROP SCHEMA {0} CASCADE",
    ],
)
def test_a_role_that_charges_changes_nothing_of_the_derivation(
    server: Server, forger: Forger, statement: str
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        forger.connection.execute(statement.format(forger.schema))


def test_functions_and_tables_of_a_role_are_not_taken_for_those_of_the_derivation(
    server: Server, forger: Forger
) -> None:
    forger.connection.execute("CREATE TEMP TABLE lines (number bigint, content text, total text)")
    forger.connection.execute(
        "CREATE FUNCTION pg_temp.gcd(numeric, numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 0::numeric'"
    )
    forger.connection.execute("SET search_path = pg_temp, pg_catalog")
    forger.connection.execute("SET standard_conforming_strings = off")
    with pytest.raises(psycopg.Error, match="is not the sum"):
        forger.write(forger.line(forger.last(), total="0"))
    forger.write(forger.line(forger.last()))


# what the database computes is what Sourdine computes


def test_sums_are_those_of_whole_numbers(server: Server, forger: Forger) -> None:
    """Against whole-number arithmetic: exact up to 512 bits of a denominator, then up to 2^-256."""
    chance = random.Random(7)
    grid = 2**256
    for _ in range(60):
        bits = chance.choice([3, 40, 255, 256, 257, 400, 513])
        parts = [(chance.getrandbits(bits), chance.getrandbits(bits) | 1) for _ in range(2)]
        (a, b), (c, d) = parts
        top, bottom = a * d + c * b, b * d
        common = math.gcd(top, bottom)
        top, bottom = top // common, bottom // common
        if bottom.bit_length() > 512:
            top, bottom = -(-top * grid // bottom), grid
            common = math.gcd(top, bottom)
            top, bottom = top // common, bottom // common
        expected = str(top) if bottom == 1 else f"{top}/{bottom}"
        ((told,),) = server.execute(f"SELECT {forger.schema}.plus('{a}/{b}', '{c}/{d}')")
        assert told == expected


def test_stretches_are_those_of_the_calendar(server: Server, forger: Forger) -> None:
    for period in Period:
        days = [
            datetime(2024, 12, 20, 23, 59, 59, 999999, tzinfo=UTC) + timedelta(days=n) for n in range(800)
        ]
        values = ", ".join(f"('{day.isoformat()}'::timestamptz)" for day in days)
        rows = server.execute(
            "SET timezone = 'Asia/Tokyo'",
            f"SELECT {forger.schema}.stretch('{period}', at) FROM (VALUES {values}) AS days(at)",
        )
        assert [row[0] for row in rows] == [period.key(day) for day in days]


def test_names_that_a_server_cannot_keep_as_text_are_charged(server: Server, forger: Forger) -> None:
    for purpose in ("nul \0", "half \ud83d", "whole \U0001f600", 'quote " \\ \\u0000 \n \x7f'):
        number = forger.owner.charge(SPEND, purpose=purpose).number
        assert forger.owner.history()[-1].purpose == purpose
    assert number == 5


def test_allowances_are_derived_as_they_are_written(server: Server, forger: Forger) -> None:
    ledger = forger.owner
    ledger.allow("blue", epsilon="0.01", authors=["ana"], keepers=["olga"], author="olga")
    ledger.allow("red", epsilon="0.5", period="day", period_limit="0.003", author="olga")
    ledger.allow("blue", epsilon="0.002", authors=["ana", "ben"], keepers=["max", "olga"], author="olga")
    first = ledger.request("blue", epsilon="0.001", purpose="more", author="ben")
    ledger.charge(SPEND, purpose="p", author="ana")
    second = ledger.request("red", epsilon="0.001", purpose="more", author="ben")
    ledger.approve(first, author="max")
    ledger.decline(second, author="ben")
    ledger.charge(SPEND, purpose="p", author="ben", allowance="red")
    with pytest.raises(BudgetExceeded):
        ledger.charge(SPEND, SPEND, SPEND, purpose="p", author="ben", allowance="red")
    last = forger.last()
    state = _of(last, "allowances")
    more = [{**state["each"][0], "cap": "1"}, state["each"][1]]
    refused: list[Fields] = [
        {"allowances": {**state, "each": more}},
        {"allowances": state},  # nothing was taken of it
        {"allowance": "blue", "author": "eve"},
        {"allowance": "green"},
        {"drop": "allowance"},
        {"drop": "allowances"},
        {"rule": {"act": "approve", "line": second}, "price": "0", "spends": [], "drop": "allowance"},
        {"rule": {"act": "allow", "name": "red", "cap": "1"}, "author": "eve", "price": "0", "spends": []},
    ]
    for change in refused:
        with pytest.raises(psycopg.Error):
            forger.write(forger.line(last, **change))
    assert len(ledger.history()) == 10


def test_totals_that_are_rounded_are_derived(server: Server, forger: Forger) -> None:
    """Forty prices whose denominators have no common factor, so that sums leave 512 bits."""
    chance = random.Random(3)
    spends = [
        type(SPEND)(
            mechanism=type(SPEND.mechanism)(scale=Fraction(chance.randrange(2**36, 2**39), 7)),  # type: ignore[call-arg]
            distance=SPEND.distance,
        )
        for _ in range(40)
    ]
    for spend in spends:
        forger.owner.charge(spend, purpose="p")
    assert len(forger.owner.history()) == 41
    assert forger.owner.status().spent.denominator.bit_length() <= 512


# what a role may keep for itself


@pytest.mark.parametrize("kept", ["pg_advisory_lock", "pg_advisory_lock_shared", "a line"])
def test_a_role_that_keeps_others_waiting_is_named(
    server: Server, forger: Forger, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to a role with no more rights than to charge, which sees little of the sessions of others."""
    server.execute("DROP ROLE IF EXISTS ana", "CREATE ROLE ana LOGIN")
    forger.owner.grant("ana")
    monkeypatch.setattr(store, "LOCK_WAIT", "20ms")
    with Ledger.open(forger.address.replace("postgres:@", "ana@")) as ledger:
        assert ledger.charge(SPEND, purpose="p").number == 2
        forger.connection.execute("BEGIN")
        if kept == "a line":
            forger.write(forger.line(forger.last()))
        else:
            forger.connection.execute(f"SELECT {kept}({ledger._store._lock})")  # type: ignore[union-attr]
        named = rf"kept busy by the role 'mallory' in its session {forger.connection.info.backend_pid}\."
        with monkeypatch.context() as patch:
            patch.setattr(store.ServerStore, "quiet", 0.0)
            patch.setattr(store.ServerStore, "patience", 0.5)
            with pytest.raises(LedgerError, match=named), pytest.warns(LedgerWait, match=named):
                ledger.charge(SPEND, purpose="p")
        forger.connection.execute("ROLLBACK")
        forger.connection.execute("SELECT pg_advisory_unlock_all()")
        assert ledger.charge(SPEND, purpose="p").number == 3
    server.execute("DROP OWNED BY ana", "DROP ROLE ana")


# checkpoints


def test_a_process_that_begins_goes_on_from_the_newest_checkpoint(
    server: Server, forger: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_OFTEN", 10)
    for number in range(25):
        forger.owner.charge(SPEND, purpose=f"p{number}")
    ((made,),) = server.execute(f"SELECT max(number) FROM {forger.schema}.checkpoints")
    assert 10 < made < 26
    forget()
    with Ledger.open(forger.address.replace("postgres:@", "mallory@")) as ledger:
        assert first_verified(ledger) == made + 1


def test_a_checkpoint_that_cannot_be_kept_takes_nothing_from_the_charge(
    server: Server, forger: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its line was on the disk already: an error would call it unspent, and a second try would pay again."""
    monkeypatch.setattr(store, "_OFTEN", 2)
    execute = store.ServerStore._execute

    def cut(held: Any, connection: Any, text: str, *values: object) -> Any:
        if "checkpoints VALUES" in text:
            connection.close()
        return execute(held, connection, text, *values)

    with monkeypatch.context() as patch:
        patch.setattr(store.ServerStore, "_execute", cut)
        patch.setattr(store.ServerStore, "patience", 0.5)
        for number in range(2, 6):
            assert forger.owner.charge(SPEND, purpose="p").number == number
    assert server.execute(f"SELECT * FROM {forger.schema}.checkpoints") == []
    forger.owner.charge(SPEND, purpose="p")
    assert server.execute(f"SELECT number FROM {forger.schema}.checkpoints") == [(6,)]


def test_only_the_owner_makes_checkpoints(
    server: Server, forger: Forger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_OFTEN", 10)
    made = f"SELECT * FROM {forger.schema}.checkpoints"
    with Ledger.open(forger.address.replace("postgres:@", "mallory@")) as ledger:
        for number in range(25):
            ledger.charge(SPEND, purpose=f"p{number}")
        forget()
        assert first_verified(ledger) == 1
        assert server.execute(made) == []
        forget()
        forger.owner.status()
        assert server.execute(made) == [(26, ledger.history()[-1].fingerprint)]
        forger.owner.charge(SPEND, purpose="p")
        forget()
        assert first_verified(ledger) == 27


def first_verified(ledger: Ledger) -> int:
    """The first line that a charge verifies again."""
    verified, verify = list[int](), ledger._store.verify

    def note(before: LedgerLine | None, lines: Sequence[LedgerLine]) -> None:
        verified.extend(line.number for line in lines)
        verify(before, lines)

    ledger._store.verify = note
    ledger.check(SPEND)
    return verified[0]


def test_shares_of_orders_are_summed_and_one_must_be_left(make: Callable[..., Forger]) -> None:
    forger = make(delta=1e-6, composition="renyi")
    last = forger.last()
    before = list(map(Fraction, _of(last, "share_totals")))

    def stated(*shares: str, totals: Sequence[str] | None = None) -> Fields:
        summed = [str(total + Fraction(share)) for total, share in zip(before, shares, strict=False)]
        return {"shares": list(shares), "share_totals": summed if totals is None else totals}

    for changes in (
        {"shares": None, "share_totals": None},
        stated("1/1000", "1/1000"),
        stated("1/1000", "1/1000", "1/1000", totals=["1/1000"] * 3),
        stated("2", "1", "3/2"),
    ):
        with pytest.raises(psycopg.Error, match="does not follow"):
            forger.write(forger.line(last, **changes))
    forger.write(forger.line(last, **stated("2", "1/500", "3/2")))
    with pytest.raises(LedgerError, match="does not replay"):
        Ledger.open(forger.address).history()


def test_an_honest_ledger_of_several_orders_is_charged_and_moved(server: Server, tmp_path: Path) -> None:
    address = server.new()
    ledger = Ledger.create(address, epsilon=1, delta=1e-6, composition="renyi")
    for _ in range(3):
        ledger.charge(SPEND, purpose="a count")
    spent = ledger.status().spent
    moved = ledger.move(tmp_path / "moved.ledger")
    assert (moved.status().spent, len(moved.history())) == (spent, 3)
