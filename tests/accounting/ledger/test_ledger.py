import json
import math
import multiprocessing
import os
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import DisjointPart, Spend
from sourdine.accounting.ledger import (
    Budget,
    ConcentratedBudget,
    Ledger,
    Period,
    PureBudget,
    RenyiBudget,
    Terms,
)
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, UnsupportedLoss
from sourdine.mechanisms import Gaussian, Geometric, Laplace
from tests.accounting.ledger.files import behind
from tests.campaigns.ledger.crash import torment
from tests.errors import refusal_of


def terms(limit: Fraction | int = 1, **others: object) -> Terms:
    made = {"budget": PureBudget(limit=limit), "unit": "person", "neighbours": Neighbours.ADD_REMOVE} | others
    return Terms(**made)  # type: ignore[arg-type]


def spend(epsilon: Fraction, **others: object) -> Spend:
    return Spend(mechanism=Geometric(scale=1 / epsilon), distance=Distance.l1(1), **others)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "survey.ledger"


def test_twenty_twentieths_fit_and_the_next_is_refused(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    for number in range(1, 21):
        receipt = ledger.charge(spend(Fraction(1, 20)), purpose="a count")
        assert receipt.number == number
        assert receipt.left == 1 - Fraction(number, 20)
    with pytest.raises(BudgetExceeded, match=r"needs epsilon 0\.05 and the budget has 0 left") as caught:
        ledger.charge(spend(Fraction(1, 20)), purpose="one too many")
    assert (caught.value.amount, caught.value.left) == (Fraction(1, 20), 0)
    assert Ledger.open(path).status().blocks == 20


@settings(max_examples=20)
@given(st.lists(st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=997), max_size=12))
def test_totals_are_exact_and_never_above_the_limit(prices: list[Fraction]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "a.ledger", terms(2))
        total = Fraction(0)
        for price in prices:
            try:
                ledger.charge(spend(price), purpose="p")
                total += price
            except BudgetExceeded:
                assert total + price > 2
        assert ledger.status().spent == total <= 2
        assert sum((entry.price for entry in ledger.history()), Fraction(0)) == total


def test_a_ledger_shows_its_terms_in_a_line(tmp_path: Path) -> None:
    shown = repr(Ledger.create(tmp_path / "a.ledger", epsilon=3, unit="visit"))
    assert shown.endswith("a.ledger': epsilon 3 for each visit, add-remove neighbours>")
    assert "rho no limit" in repr(Ledger.create(tmp_path / "b.ledger", unlimited=True, delta=1e-6))


def test_a_block_is_refused_whole(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    with pytest.raises(BudgetExceeded):
        ledger.charge(spend(Fraction(1, 2)), spend(Fraction(2, 3)), purpose="two")
    assert ledger.status().spent == 0


def test_disjoint_parts_cost_their_worst(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    regions = [spend(Fraction(1, k), part=DisjointPart("region", f"{k}")) for k in (2, 3, 4)]
    twice = spend(Fraction(1, 4), part=DisjointPart("region", "4"))
    sexes = [spend(Fraction(1, 8), part=DisjointPart("sex", key)) for key in ("f", "m")]
    assert ledger.price(*regions) == Fraction(1, 2)
    assert ledger.price(*regions, twice) == Fraction(1, 2)
    assert ledger.price(*regions, twice, twice) == Fraction(3, 4)
    assert ledger.price(*regions, *sexes) == Fraction(5, 8)


def test_parts_are_refused_where_one_unit_touches_two(path: Path) -> None:
    ledger = Ledger.create(path, terms(1, neighbours=Neighbours.REPLACE))
    distance = Distance.l1(1, neighbours=Neighbours.REPLACE)
    split = Spend(mechanism=Geometric(scale=4), distance=distance, part=DisjointPart("region", "north"))
    with pytest.raises(UnsupportedLoss, match="replace"):
        ledger.price(split)


def test_another_relation_is_refused(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    other = Spend(mechanism=Laplace(scale=4), distance=Distance.l1(1, neighbours=Neighbours.REPLACE))
    with pytest.raises(InvalidParameter, match="add-remove neighbours and the spends for replace"):
        ledger.charge(other, purpose="p")


def test_each_currency_prices_what_it_can(path: Path) -> None:
    gauss = Spend(mechanism=Gaussian(sigma=2), distance=Distance.l2(1))
    with pytest.raises(UnsupportedLoss, match="no finite epsilon"):
        Ledger.create(path, terms(1)).price(gauss)
    concentrated = terms(budget=ConcentratedBudget(limit=1), delta=1e-6)
    ledger = Ledger.create(path.with_suffix(".z"), concentrated)
    assert ledger.price(gauss, gauss) == Fraction(1, 4)
    assert ledger.price(spend(Fraction(1, 10))) == Fraction(1, 200)
    renyi = terms(budget=RenyiBudget(limit=5, order=8), delta=1e-6)
    price = Ledger.create(path.with_suffix(".r"), renyi).price(gauss)
    assert float(price) == pytest.approx(1.0, rel=1e-3)  # order * rho, as of a continuous Gaussian


def test_a_target_becomes_the_largest_rho_within_it() -> None:
    budget = ConcentratedBudget.within(3, 1e-6)
    assert budget.epsilon(budget.limit, 1e-6) <= 3
    assert budget.epsilon(budget.limit * Fraction(100001, 100000), 1e-6) > 3


def test_privacy_loss_distributions_do_not_add_up_across_blocks() -> None:
    with pytest.raises(InvalidParameter, match="spent adaptively"):
        Budget.from_json({"name": "pld", "limit": "1"})


def test_history_replays_to_the_same_total_and_keeps_the_spends(path: Path) -> None:
    ledger = Ledger.create(path, terms(3))
    block = (spend(Fraction(1, 3)), spend(Fraction(1, 7), count=2))
    ledger.charge(*block, purpose="first", author="Ada")
    ledger.charge(spend(Fraction(1, 9)), purpose="second", author="Bo")
    entries = Ledger.open(path).history()
    assert [(entry.purpose, entry.author) for entry in entries] == [("first", "Ada"), ("second", "Bo")]
    assert entries[0].spends == block
    assert entries[1].total == ledger.status().spent == Fraction(1, 3) + Fraction(2, 7) + Fraction(1, 9)


def test_forecast_counts_whole_blocks(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    ledger.charge(spend(Fraction(1, 10)), purpose="p")
    assert ledger.forecast(spend(Fraction(1, 4))) == 3
    assert ledger.forecast(spend(Fraction(19, 20))) == 0


def test_a_period_has_a_budget_of_its_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sourdine.accounting.ledger.ledger as module

    class Clock(datetime):
        moment = datetime(2026, 11, 15, tzinfo=UTC)

        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return cls.moment

    monkeypatch.setattr(module, "datetime", Clock)
    ledger = Ledger.create(path, terms(1, period=Period.MONTH, period_limit=Fraction(1, 4)))
    ledger.charge(spend(Fraction(1, 5)), purpose="november")
    with pytest.raises(BudgetExceeded, match=r"budget of this month has 0\.05 left"):
        ledger.charge(spend(Fraction(1, 10)), purpose="too much for november")
    assert ledger.forecast(spend(Fraction(1, 20))) == 1
    Clock.moment = datetime(2026, 12, 1, tzinfo=UTC)
    assert ledger.status().period_spent == 0
    ledger.charge(spend(Fraction(1, 5)), purpose="december")
    Clock.moment = datetime(2026, 11, 20, tzinfo=UTC)  # a clock set back opens no old budget
    with pytest.raises(BudgetExceeded):
        ledger.charge(spend(Fraction(1, 10)), purpose="back in november")
    assert ledger.status().spent == Fraction(2, 5)


@pytest.mark.parametrize("threads", [16])
def test_threads_never_overspend(path: Path, threads: int) -> None:
    ledger, done = Ledger.create(path, terms(1)), []

    def work() -> None:
        for _ in range(20):
            try:
                done.append(ledger.charge(spend(Fraction(1, 100)), purpose="p").number)
            except BudgetExceeded:
                return

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(done) == list(range(1, 101))
    assert ledger.status().left == 0


def _spend_all(path: str, queue: "multiprocessing.Queue[int]") -> None:
    ledger, count = Ledger.open(path), 0
    try:
        while True:
            ledger.charge(spend(Fraction(1, 100)), purpose="p")
            count += 1
    except BudgetExceeded:
        queue.put(count)


def test_processes_never_overspend(path: Path) -> None:
    Ledger.create(path, terms(2))
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[int] = context.Queue()
    workers = [context.Process(target=_spend_all, args=(str(path), queue)) for _ in range(8)]
    for worker in workers:
        worker.start()
    assert sum(queue.get(timeout=60) for _ in workers) == 200
    for worker in workers:
        worker.join()
    assert Ledger.open(path).status().left == 0


def test_a_ledger_may_be_used_on_both_sides_of_a_fork(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    ledger.charge(spend(Fraction(1, 10)), purpose="parent")
    child = os.fork()
    if child == 0:
        ledger.charge(spend(Fraction(1, 10)), purpose="child")
        os._exit(0)
    os.waitpid(child, 0)
    ledger.charge(spend(Fraction(1, 10)), purpose="parent again")
    assert [entry.purpose for entry in ledger.history()] == ["parent", "child", "parent again"]


@pytest.mark.parametrize("kills", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_writers_lose_nothing_and_overspend_nothing(tmp_path: Path, kills: int) -> None:
    outcome = torment(
        tmp_path, processes=4, kills=kills, limit=Fraction(10**6), seed=7, progress=lambda done: None
    )
    assert outcome.recorded >= outcome.acknowledged > 0
    assert outcome.unrecorded == outcome.duplicates == outcome.overspent == 0


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger of Sourdine"):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_missing_file_and_an_existing_one_are_told_apart(path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger.open(path)
    Ledger.create(path, terms(1))
    with pytest.raises(LedgerError, match="never overwritten"):
        Ledger.create(path, terms(1))


def test_lines_cannot_be_changed_or_removed(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    ledger.charge(spend(Fraction(1, 2)), purpose="p")
    statements = ("UPDATE lines SET total = '0'", "DELETE FROM lines", "UPDATE terms SET content = ''")
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                connection.execute(statement)


def test_a_line_changed_behind_the_triggers_shows(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    ledger.charge(spend(Fraction(1, 2)), purpose="p")
    with behind(path) as connection:
        connection.execute("UPDATE lines SET total = '1/100'")
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        Ledger.open(path).history()
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        Ledger.open(path).status()
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        Ledger.open(path).charge(spend(Fraction(1, 4)), purpose="p")


def test_a_full_disk_spends_nothing(path: Path) -> None:
    """The page limit of the file stands in for the disk: SQLite reports the same error."""
    ledger = Ledger.create(path, terms(10**6))
    ledger.charge(spend(Fraction(1, 2)), purpose="p")
    ((pages,),) = ledger._store._connect().execute("PRAGMA page_count").fetchall()
    ledger._store._connect().execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        for _ in range(200):
            ledger.charge(spend(Fraction(1, 2)), purpose="p" * 900)

    with pytest.raises(LedgerError, match=r"no room left .* Nothing was spent"):
        fill()
    paid = Ledger.open(path).history()
    assert len(paid) == Ledger.open(path).status().blocks


@pytest.mark.parametrize("bad", ["", "   ", "x" * 2000, None, 5])
def test_a_purpose_is_a_short_text(path: Path, bad: str) -> None:
    ledger = Ledger.create(path, terms(1))
    with refusal_of("purpose", "Ledger"):
        ledger.charge(spend(Fraction(1, 2)), purpose=bad)
    assert ledger.status().spent == 0


@pytest.mark.parametrize(
    "others",
    [
        {"budget": ConcentratedBudget(limit=1)},
        {"delta": 2.0},
        {"unit": ""},
        {"neighbours": "replace"},
        {"period": Period.DAY},
        {"period": Period.DAY, "period_limit": Fraction(5)},
    ],
)
def test_bad_terms_are_refused(others: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter, match="of Ledger"):
        terms(1, **others)


@pytest.mark.parametrize("limit", [0, -1, math.nan, "1"])
def test_a_bad_limit_is_refused(limit: object) -> None:
    with refusal_of("limit", "PureBudget"):
        PureBudget(limit=limit)  # type: ignore[arg-type]


def test_terms_survive_the_file(path: Path) -> None:
    made = terms(budget=RenyiBudget(limit=5, order=Fraction(17, 2)), delta=1e-7, unit="household")
    Ledger.create(path, made)
    assert Ledger.open(path).terms == made
    assert json.loads(made.to_json())["budget"]["order"] == "17/2"


def test_a_file_with_two_names_or_none_is_refused(path: Path) -> None:
    ledger = Ledger.create(path, terms(1))
    ledger.charge(spend(Fraction(1, 4)), purpose="p")
    second = path.with_suffix(".second")
    os.link(path, second)
    with pytest.raises(LedgerError, match="a second name"):
        ledger.charge(spend(Fraction(1, 4)), purpose="p")
    second.unlink()
    path.unlink()
    with pytest.raises(LedgerError):
        ledger.charge(spend(Fraction(1, 4)), purpose="p")


def test_opening_a_ledger_twice_in_one_process_loses_nothing(path: Path) -> None:
    """A second connection of this process, then a writer elsewhere that opens and closes the file."""
    first = Ledger.create(path, terms(1))
    first.charge(spend(Fraction(1, 4)), purpose="here")
    Ledger.open(path).status()
    context = multiprocessing.get_context("spawn")
    other = context.Process(target=_charge_once, args=(str(path),))
    other.start()
    other.join()
    first.charge(spend(Fraction(1, 4)), purpose="here again")
    assert len(Ledger.open(path).history()) == 3


def _charge_once(path: str) -> None:
    Ledger.open(path).charge(spend(Fraction(1, 4)), purpose="elsewhere")
