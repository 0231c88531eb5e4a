"""Bounds found privately: paid first, within the noise's promise, total over data."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import ConcentratedBudget, Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.frames import PrivacyUnit
from sourdine.tables import BoundsPlan, Table, find_bounds
from sourdine.tables.bounds import LADDERS, _bounds_of, open_column
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.frames.every_engine import ALL_ENGINES, ENGINES


def ledger(folder: Path, limit: int = 1) -> Ledger:
    terms = Terms(budget=PureBudget(limit=Fraction(limit)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    return Ledger.create(folder / "people.ledger", terms)


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize("shift", [0.0, 5000.0, -5000.0])
def test_few_records_lie_outside(neighbours: Neighbours, shift: float) -> None:
    """The promise holds in every draw: each may fail with probability 1e-8."""
    values = np.random.default_rng(2).normal(shift, 1000, 20_000)
    plan = BoundsPlan(
        column="pay", epsilon=Fraction(1), outside=0.02, neighbours=neighbours, confidence=1 - 1e-8
    )
    source = open_column(pa.table({"pay": values}), plan)
    for seed in range(6):
        lower, upper = _bounds_of(plan, source, SeededBits(seed))
        out = int(((values < lower) | (values > upper)).sum())
        assert out <= 0.02 * len(values) + plan.off
        assert out >= 0.02 * len(values) - plan.off - 0.1 * len(values)  # and rungs are not far apart
        assert lower < upper


def test_whole_numbers_get_whole_bounds() -> None:
    values = np.random.default_rng(3).integers(18, 67, 50_000)
    plan = BoundsPlan(column="age", epsilon=Fraction(1), kind="integer")
    lower, upper = _bounds_of(plan, open_column(pa.table({"age": values}), plan), SeededBits(1))
    assert isinstance(lower, int)
    assert isinstance(upper, int)
    assert 17 <= lower <= 19
    assert 64 <= upper <= 67


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_any_table_gives_the_same(engine: str, tmp_path: Path) -> None:
    table = pa.table({"pay": [1.5 * i for i in range(400)], "who": [f"p{i}" for i in range(400)]})
    plan = BoundsPlan(column="pay", epsilon=Fraction(8), outside=0.1)
    source = open_column(ENGINES[engine](table, tmp_path), plan)
    assert _bounds_of(plan, source, SeededBits(5)) == _bounds_of(
        plan, open_column(table, plan), SeededBits(5)
    )


@pytest.mark.parametrize(
    "values", [[], [None, None], [float("nan"), float("inf"), -float("inf")], [1e308, -1e308], [0.0] * 50]
)
def test_no_value_raises(values: list[float | None]) -> None:
    table = pa.table({"pay": pa.array(values, pa.float64())})
    for kind in ("integer", "real"):
        plan = BoundsPlan(column="pay", epsilon=Fraction(1), kind=kind)
        lower, upper = _bounds_of(plan, open_column(table, plan), SeededBits(1))
        assert lower < upper


def test_text_that_is_no_number_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("pay\n" + "\n".join(["100", "x", "", "1e999", "nan"] * 500) + "\n")
    plan = BoundsPlan(column="pay", epsilon=Fraction(100), outside=0.1)
    lower, upper = _bounds_of(plan, open_column(path, plan), SeededBits(1))
    assert (lower, upper) == (99.0, 100.0)


def test_units_with_several_records_cost_the_same() -> None:
    unit = PrivacyUnit(name="person", column="who", max_rows=4)
    plan = BoundsPlan(column="pay", epsilon=Fraction(1), unit=unit)
    assert plan.mechanism.epsilon == Fraction(1, 8)
    assert sum(spend.loss().epsilon for spend in plan.spends) == 1
    assert plan.off == pytest.approx(4 * BoundsPlan(column="pay", epsilon=Fraction(1)).off)


def test_one_value_moves_the_law_by_no_more_than_epsilon() -> None:
    """How often an end lands low or high, by many draws from neighbouring tables."""
    values = [1.0] * 6 + [90.0] * 6
    plan = BoundsPlan(column="pay", epsilon=Fraction(2), outside=0.5)
    laws = []
    for held in (values, values[:-1]):
        source = open_column(pa.table({"pay": held}), plan)
        from sourdine.frames import ranks

        ladder = LADDERS["real"]
        found = ranks(
            source,
            by=(),
            value=ladder.place(source, "pay"),
            unit=plan.unit,
            bits=SeededBits(1),
            places=ladder.places,
        )[()]
        drawn = plan.mechanism.draw(found, 4000, SeededBits(8))[:, 0]
        high = ladder.places // 2 + 1 + 90 * 6
        laws.append(np.array([(drawn < high).mean(), (drawn >= high + 200).mean()]))
    low, high_ = np.minimum(*laws), np.maximum(*laws)
    assert (high_ - 5 * np.sqrt(high_ / 4000) <= np.e * (low + 5 * np.sqrt(low / 4000))).all()


def test_it_is_paid_and_said_in_later_certificates(tmp_path: Path) -> None:
    table = pa.table({"pay": np.linspace(0, 1000, 5000)})
    with ledger(tmp_path, 1) as book:
        found = Table.find_bounds(table, "pay", unit="person", epsilon=Fraction(1, 4), ledger=book)
        assert book.status().spent == Fraction(1, 4)
        assert found.certificate(book).verify(book) == ()
        assert 'found = "privately, for epsilon 0.25, line 1 of its ledger"' in found.block
        people = Table(table, unit="person", columns={"pay": found.declared})
        plan = people.plan({"name": "q", "ask": [{"mean": "pay"}]}, epsilon=Fraction(3, 4))
        released = people.release(plan, book)
        assert "privately, for epsilon 0.25" in released.certificate(book, released.declared).declared["pay"]
        with pytest.raises(BudgetExceeded):
            find_bounds(table, "pay", unit="person", epsilon=1, ledger=book)


def test_a_ledger_of_rho_pays_too(tmp_path: Path) -> None:
    terms = Terms(
        budget=ConcentratedBudget.within(Fraction(1), 1e-6),
        delta=1e-6,
        unit="person",
        neighbours=Neighbours.ADD_REMOVE,
    )
    with Ledger.create(tmp_path / "rho.ledger", terms) as book:
        find_bounds(pa.table({"pay": [1.0]}), "pay", unit="person", epsilon=Fraction(1, 8), ledger=book)
        assert 0 < book.status().spent < Fraction(1, 64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"column": "nothing"}, "none is called 'nothing'"),
        ({"unit": "household"}, "Name them alike"),
        ({"epsilon": 0}, "epsilon"),
        ({"outside": 0.9}, "outside"),
        ({"kind": "text"}, "integer or real"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    change: dict[str, object], said: str, tmp_path: Path
) -> None:
    given: dict[str, object] = {"column": "pay", "unit": "person", "epsilon": 1, **change}
    with ledger(tmp_path) as book:
        with pytest.raises(InvalidParameter, match=said):
            find_bounds(pa.table({"pay": [1.0]}), ledger=book, **given)  # type: ignore[arg-type]
        assert book.status().spent == 0


def test_text_is_refused_before_the_charge_unless_its_kind_is_said(tmp_path: Path) -> None:
    written = pa.table({"pay": ["12", "x", "30"] * 50})
    (tmp_path / "people.csv").write_text("pay\n12\n30\n")
    with ledger(tmp_path, 3) as book:
        for table in (written, tmp_path / "people.csv", written.to_pandas()):
            with pytest.raises(InvalidParameter, match=r"holds text.*Nothing was spent.*kind="):
                find_bounds(table, "pay", unit="person", epsilon=1, ledger=book)
        assert book.status().spent == 0
        find_bounds(written, "pay", unit="person", epsilon=1, kind="real", ledger=book)
        find_bounds(pa.table({"pay": [1, 2]}), "pay", unit="person", epsilon=1, ledger=book)
        assert book.status().spent == 2


def test_of_too_few_by_declaration_nothing_is_paid(tmp_path: Path) -> None:
    table = pa.table({"pay": [1.0, 2.0]})
    with ledger(tmp_path) as book:
        with pytest.raises(InvalidParameter, match=r"about 400 records\. Nothing was spent"):
            Table.find_bounds(table, "pay", unit="person", epsilon=1, ledger=book, size=400)
        with refusal_of("size", "bounds"):
            Table.find_bounds(table, "pay", unit="person", epsilon=1, ledger=book, size=0)
        assert book.status().spent == 0
        enough = BoundsPlan(column="pay", epsilon=Fraction(1)).enough
        assert enough == 1010
        Table.find_bounds(table, "pay", unit="person", epsilon=1, ledger=book, size=enough)
        assert book.status().spent == 1  # though there are two: they are not counted before


@pytest.mark.slow
def test_a_cluster_gives_the_same(spark: Any) -> None:
    table = pa.table({"pay": [1.5 * i - 100 for i in range(400)] + [float("nan"), float("inf"), None]})
    plan = BoundsPlan(column="pay", epsilon=Fraction(8), outside=0.1)
    there = _bounds_of(plan, open_column(spark.createDataFrame(table), plan), SeededBits(5))
    assert there == _bounds_of(plan, open_column(table, plan), SeededBits(5))
