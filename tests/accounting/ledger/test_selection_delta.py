"""A ledger that keeps a part of its delta for keys that are chosen privately."""

import json
import math
import re
import sqlite3
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.accounting import DisjointPart, Spend, ZeroConcentrated
from sourdine.accounting.certificate import Certificate
from sourdine.accounting.explain import explain_ledger
from sourdine.accounting.ledger import ConcentratedBudget, Ledger, Period, PureBudget, RenyiBudget, Terms
from sourdine.accounting.ledger.file.database import APPLICATION, VERSION
from sourdine.accounting.release import Release
from sourdine.accounting.zcdp import RhoCost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import BudgetExceeded, LedgerError, SourdineError, UnsupportedLoss
from sourdine.mechanisms import Gaussian, PartitionThreshold
from tests.accounting.ledger.files import rewrite
from tests.errors import refusal_of

SELECTION_DELTA = Fraction(1, 10**6)
CONCENTRATED = ConcentratedBudget(limit=1)
KEYS = Spend(
    mechanism=PartitionThreshold.within(rho=Fraction(1, 100), delta=3e-7, keys=2), distance=Distance.linf(1)
)
DELTA = Fraction(KEYS.one_loss().delta)
NOISE = Spend(mechanism=Gaussian(sigma=Fraction(10)), distance=Distance.l2(1))


def terms(**others: object) -> Terms:
    made = {
        "budget": CONCENTRATED,
        "unit": "person",
        "neighbours": Neighbours.ADD_REMOVE,
        "delta": 2e-6,
        "selection_delta": SELECTION_DELTA,
    }
    return Terms(**made | others)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "survey.ledger"


def test_deltas_add_up_to_the_selection_delta_and_no_further(path: Path) -> None:
    ledger = Ledger.create(path, terms())
    fits = int(SELECTION_DELTA // DELTA)
    assert 2 < fits == ledger.forecast(KEYS)
    for number in range(1, fits + 1):
        receipt = ledger.charge(KEYS, purpose="which towns")
        assert (receipt.delta, receipt.selection_delta_left) == (DELTA, SELECTION_DELTA - number * DELTA)
    with pytest.raises(
        BudgetExceeded, match=r"the selection delta has .* left\. Nothing was spent"
    ) as caught:
        ledger.charge(KEYS, purpose="which streets")
    assert (caught.value.amount, caught.value.left) == (DELTA, SELECTION_DELTA - fits * DELTA)
    assert ledger.charge(NOISE, purpose="what needs no delta").delta == 0
    found = Ledger.open(path).status()
    assert (found.selection_delta, found.selection_delta_spent, found.blocks) == (
        SELECTION_DELTA,
        fits * DELTA,
        fits + 1,
    )
    assert [entry.delta for entry in ledger.history()] == [DELTA] * fits + [Fraction(0)]
    assert ledger.history()[-1].delta_total == fits * DELTA


def test_a_charge_that_only_the_budget_refuses_takes_nothing_of_the_selection_delta(path: Path) -> None:
    ledger = Ledger.create(path, terms(budget=ConcentratedBudget(limit=Fraction(1, 1000))))
    with pytest.raises(BudgetExceeded, match="needs rho"):
        ledger.charge(KEYS, purpose="which towns")
    assert ledger.status().selection_delta_spent == 0


def test_epsilon_is_read_at_what_the_selection_delta_leaves(path: Path) -> None:
    ledger = Ledger.create(path, terms())
    assert ledger.terms.rest <= Fraction(2e-6) - SELECTION_DELTA
    assert ledger.terms.rest == pytest.approx(1e-6, rel=1e-9)
    ledger.charge(KEYS, purpose="which towns")
    cost = RhoCost(Neighbours.ADD_REMOVE, ledger.status().spent)
    assert ledger.status().epsilon == ZeroConcentrated().epsilon(cost, ledger.terms.rest).upper
    whole = RhoCost(Neighbours.ADD_REMOVE, ledger.status().spent, SELECTION_DELTA)
    assert ledger.status().epsilon >= ZeroConcentrated().epsilon(whole, 2e-6).upper
    assert ledger.status().epsilon > ZeroConcentrated().epsilon(cost, 2e-6).upper


def test_a_ledger_without_a_selection_delta_says_what_to_do(path: Path) -> None:
    ledger = Ledger.create(path, terms(selection_delta=None))
    for act in (ledger.price, ledger.delta, ledger.forecast):
        with pytest.raises(UnsupportedLoss, match=r"Nothing was spent.*selection_delta=5e-7"):
            act(KEYS)
    with pytest.raises(UnsupportedLoss, match="chooses keys privately"):
        ledger.charge(NOISE, KEYS, purpose="both")
    assert ledger.status().blocks == 0
    assert ledger.status().selection_delta is None


def test_a_pure_ledger_keeps_a_delta_for_keys(path: Path) -> None:
    ledger = Ledger.create(path, terms(budget=PureBudget(limit=1), delta=None))
    assert ledger.terms.delta == pytest.approx(1e-6)
    keys = Spend(mechanism=PartitionThreshold.within(epsilon=0.25, delta=3e-7), distance=Distance.linf(1))
    ledger.charge(keys, purpose="which towns")
    found = ledger.status()
    assert (found.spent, found.epsilon, found.delta) == (Fraction(1, 4), 0.25, ledger.terms.delta)
    assert explain_ledger(ledger).delta == pytest.approx(float(keys.one_loss().delta))


def test_a_divergence_ledger_keeps_one_too(path: Path) -> None:
    budget = RenyiBudget(limit=Fraction(2), order=Fraction(8))
    ledger = Ledger.create(path, terms(budget=budget))
    ledger.charge(KEYS, purpose="which towns")
    assert float(ledger.status().spent) == pytest.approx(8 / 100)
    assert ledger.status().epsilon == budget.epsilon(ledger.status().spent, ledger.terms.rest)


@pytest.mark.parametrize("selection_delta", [0, -1, 2e-6, 1, "half", math.nan])
def test_a_selection_delta_lies_below_delta(selection_delta: object) -> None:
    with refusal_of("selection_delta", "Ledger"):
        terms(selection_delta=selection_delta)


def test_a_pure_selection_delta_may_be_all_of_delta_and_no_more() -> None:
    pure = PureBudget(limit=1)
    assert terms(budget=pure, selection_delta=2e-6).rest == 0
    with refusal_of("selection_delta", "Ledger"):
        terms(budget=pure, selection_delta=3e-6)


def test_parts_take_the_worst_delta_and_counts_multiply(path: Path) -> None:
    ledger = Ledger.create(path, terms())
    strict = PartitionThreshold.within(rho=Fraction(1, 100), delta=1e-9, keys=2)
    parts = [
        Spend(mechanism=made, distance=Distance.linf(1), part=DisjointPart("region", key))
        for made, key in ((KEYS.mechanism, "north"), (strict, "south"))
    ]
    assert ledger.delta(*parts) == DELTA
    assert ledger.delta(*parts, KEYS) == 2 * DELTA
    assert ledger.delta(Spend(mechanism=KEYS.mechanism, distance=Distance.linf(1), count=3)) == 3 * DELTA


def test_terms_and_lines_survive_the_file_and_a_backup(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.create(path, terms())
    ledger.charge(KEYS, NOISE, purpose="towns and a count")
    for copy in (Ledger.open(path), ledger.backup(tmp_path / "kept.ledger")):
        assert copy.terms == ledger.terms
        assert copy.history() == ledger.history()
        assert copy.status().selection_delta_spent == DELTA
    assert copy.is_backup


def test_software_that_knows_no_mark_is_kept_out(tmp_path: Path) -> None:
    for name, made in {"kept": terms(), "plain": terms(selection_delta=None)}.items():
        Ledger.create(tmp_path / name, made).backup(tmp_path / f"{name}-backup").close()
        for file in (name, f"{name}-backup"):
            with closing(sqlite3.connect(tmp_path / file)) as connection:
                assert connection.execute("PRAGMA user_version").fetchone()[0] == VERSION == 4


def test_a_ledger_made_before_there_were_reserves_opens_and_verifies(path: Path) -> None:
    """The terms and lines of such a file have no word of deltas."""
    ledger = Ledger.create(path, terms(selection_delta=None))
    ledger.charge(NOISE, purpose="a count")
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        held = [json.loads(row[0]) for row in connection.execute("SELECT content FROM terms")]
        held += [json.loads(row[0]) for row in connection.execute("SELECT content FROM lines")]
        assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    assert all("reserve" not in one and "delta_total" not in one for one in held)
    assert Ledger.open(path).history()[0].delta == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [('"delta": "', '"delta": "0/1", "x": "'), ('"delta_total": "', '"delta_total": "1/2", "x": "')],
)
def test_a_delta_changed_behind_the_ledger_shows(path: Path, old: str, new: str) -> None:
    """Even where the chain is mended, a line must replay to its delta and its total."""
    ledger = Ledger.create(path, terms())
    ledger.charge(KEYS, purpose="which towns")
    line = ledger._store.line(1)
    assert line is not None
    changed = line.content.replace(old, new)
    assert changed != line.content
    rewrite(path, 1, content=changed)
    with pytest.raises(LedgerError, match="Line 1"):
        Ledger.open(path).history()


def test_threads_never_take_more_than_the_selection_delta(path: Path) -> None:
    ledger = Ledger.create(path, terms())
    refused = []

    def take() -> None:
        for _ in range(4):
            try:
                ledger.charge(KEYS, purpose="which towns")
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fits = int(SELECTION_DELTA // DELTA)
    assert (ledger.status().blocks, len(refused)) == (fits, 16 - fits)
    assert ledger.history()[-1].delta_total == fits * DELTA


def test_the_selection_delta_is_for_all_periods_together(path: Path) -> None:
    ledger = Ledger.create(path, terms(period=Period.MONTH, period_limit=Fraction(1, 2)))
    ledger.charge(KEYS, purpose="which towns")
    ledger.charge(KEYS, purpose="which towns")
    assert ledger.status().selection_delta_spent == 2 * DELTA
    assert ledger.history()[1].period is not None


def test_a_certificate_tells_what_keys_took(path: Path) -> None:
    ledger = Ledger.create(path, terms())
    spends = (KEYS, NOISE)
    receipt = ledger.charge(*spends, purpose="towns", secure=True, declared={"town": "open"})
    release = Release(values=[1], intervals=None, spends=spends, receipt=receipt)
    certificate = release.certificate(ledger, {"town": "open"})
    assert certificate.selection_delta == DELTA
    assert certificate.epsilon == ledger.terms.budget.epsilon(receipt.price, ledger.terms.rest)
    assert certificate.delta == 2e-6
    read = Certificate.from_json(certificate.to_json())
    assert read == certificate
    assert read.verify(ledger) == ()
    forged = json.loads(certificate.to_json()) | {"from_reserve": "0"}
    with pytest.raises(LedgerError, match="from_reserve"):
        Certificate.from_json(json.dumps(forged)).verify(ledger)


def test_an_explanation_counts_what_leaked(path: Path) -> None:
    ledger = Ledger.create(path, terms())
    ledger.charge(NOISE, purpose="a count")
    before = explain_ledger(ledger)
    ledger.charge(KEYS, purpose="which towns")
    after = explain_ledger(ledger)
    assert after.curve.remove.min() >= float(DELTA) > before.curve.remove.min()
    assert after.epsilon.upper > before.epsilon.upper


@pytest.mark.parametrize("spends", [(KEYS,), (NOISE,), (KEYS,) * 100, (NOISE,) * 1000, ()])
def test_what_a_charge_would_refuse_is_refused_without_one(path: Path, spends: tuple[Spend, ...]) -> None:
    ledger, refusal = Ledger.create(path, terms(period=Period.MONTH, period_limit=Fraction(1, 2))), ""
    try:
        ledger.check(*spends)
    except SourdineError as problem:
        refusal = str(problem)
    assert ledger.status().blocks == 0
    assert bool(refusal) == (len(spends) != 1)
    if refusal:
        with pytest.raises(SourdineError, match=f"^{re.escape(refusal)}$"):
            ledger.charge(*spends, purpose="p")
    else:
        ledger.charge(*spends, purpose="p")
        with pytest.raises(LedgerError, match="a backup pays for nothing"):
            ledger.backup(path.with_name("kept.ledger")).check(*spends)
