"""The law of what is released, the same on every engine, paid first and total over data."""

import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sourdine.accounting.ledger import ConcentratedBudget, Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, SourdineError
from sourdine.frames import PrivacyUnit
from sourdine.tables import Table, rehearse
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits
from tests.frames.every_engine import ALL_ENGINES, ENGINES, FEW
from tests.statistics import ALARM, fit
from tests.tables.alike import ASKS, answers, plan_of, table_of
from tests.tables.exact import exact_numbers

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": 0, "upper": 99},
    "pay": {"type": "real", "lower": 0.0, "upper": 50.0, "granularity": 0.5},
    "sex": {"type": "category", "keys": ["f", "m", "ü \"x' 1"]},
    "well": {"type": "flag"},
}
QUERIES: list[dict[str, Any]] = [
    {"name": "people", "ask": ["count", "units", {"mean": "age"}, {"deviation": "pay"}], "by": ["sex"]},
    {"name": "pay", "ask": [{"sum": "pay"}, {"proportion": "age", "at_least": 50}], "by": ["well"]},
    {"name": "ages", "ask": [{"histogram": "age", "edges": [0, 20, 40, 99]}], "where": {"well": [True]}},
    {"name": "cells", "ask": [{"contingency": ["sex", "well"]}]},
    {
        "name": "ranks",
        "ask": [{"quantiles": "age", "levels": [0.1, 0.5, 0.9], "method": "tree"}],
        "by": ["well"],
    },
]
_RANDOM = np.random.default_rng(5)
PEOPLE = pa.table(
    {
        "age": _RANDOM.integers(0, 99, 300),
        "pay": _RANDOM.uniform(0, 60, 300),
        "sex": _RANDOM.choice(["f", "m", "ü \"x' 1", "other"], 300),
        "well": _RANDOM.random(300) < 0.5,
        "who": [f"p{i % 90}" for i in range(300)],
    }
)


def laplace(scale: float) -> dict[int, float]:
    reach = math.ceil(40 * scale)
    share = math.tanh(1 / (2 * scale))
    return {k: share * math.exp(-abs(k) / scale) for k in range(-reach, reach + 1)}


def gaussian(sigma: float) -> dict[int, float]:
    reach = math.ceil(12 * sigma)
    masses = {k: math.exp(-(k**2) / (2 * sigma**2)) for k in range(-reach, reach + 1)}
    return {k: mass / sum(masses.values()) for k, mass in masses.items()}


def follows(noise: NDArray[np.int64], delta: float | None, size: float) -> None:
    """The noise has this law, and a law of a size 10 % off is rejected."""
    law = laplace if delta is None else gaussian
    assert fit(noise, law(size)) > ALARM
    assert fit(noise, law(size * 1.1)) < 1e-4
    assert fit(noise, law(size / 1.1)) < 1e-4


@pytest.mark.parametrize(
    ("kind", "epsilon", "delta"),
    [
        ("count", 0.25, None),
        ("count", 1.0, None),
        ("count", 1.0, 1e-6),
        ("histogram", 1.0, None),
        ("contingency", 1.0, 1e-6),
    ],
)
def test_counts_have_the_noise_of_the_plan(kind: str, epsilon: float, delta: float | None) -> None:
    table = table_of([1.0, 30.0], 8000)
    plan = plan_of(table, [ASKS[kind]], epsilon, delta)
    (answer,) = answers(table, plan, 7).each
    (exact,) = exact_numbers(plan, table.source)
    noise = np.rint(answer.estimate.value[: len(exact)] - np.array(exact)).astype(np.int64)
    assert np.all(answer.estimate.value == np.rint(answer.estimate.value))
    rho = ConcentratedBudget.within(Fraction(epsilon), delta).limit if delta else None
    follows(noise, delta, 1 / epsilon if rho is None else math.sqrt(1 / (2 * rho)))


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_sums_have_the_noise_of_the_plan(delta: float | None) -> None:
    epsilon = 25.0
    table = table_of([1.0, 30.0], 10000)
    plan = plan_of(table, [ASKS["sum"]], epsilon, delta)
    (answer,) = answers(table, plan, 8).each
    rho = ConcentratedBudget.within(Fraction(epsilon), delta).limit if delta else None
    size = 100 / epsilon if rho is None else math.sqrt(100**2 / (2 * rho))
    follows(np.rint(answer.estimate.value - 31).astype(np.int64), delta, size)


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_units_of_many_records_have_the_same_law_everywhere(engine: str, tmp_path: Path) -> None:
    """Five records a person in one group, of which two count: counts move by 2, and all stay whole."""
    groups = 1500
    rows = pa.table(
        {"group": [i // 5 for i in range(5 * groups)], "who": [i // 5 for i in range(5 * groups)]}
    )
    table = Table(
        ENGINES[engine](rows, tmp_path),
        unit=PrivacyUnit(name="person", column="who", max_rows=2),
        columns={"group": {"type": "category", "keys": list(range(groups))}},
    )
    plan = table.plan({"name": "n", "ask": ["count"], "by": ["group"]}, epsilon=0.5, quality=False)
    (answer,) = _carry_out(plan, table.source, bits=SeededBits(4)).values.each
    noise = np.rint(answer.estimate.value - 2).astype(np.int64)
    assert fit(noise, laplace(4)) > ALARM
    assert fit(noise, laplace(6)) < ALARM
    assert fit(noise, laplace(2.7)) < ALARM


@pytest.mark.parametrize(
    "unit", [PrivacyUnit(name="person"), PrivacyUnit(name="person", column="who", max_rows=3, max_groups=2)]
)
@pytest.mark.parametrize("engines", [FEW, pytest.param(ENGINES, marks=pytest.mark.slow)], ids=len)
def test_one_specification_gives_the_same_everywhere(
    unit: PrivacyUnit, engines: Iterable[str], tmp_path: Path
) -> None:
    found = {}
    for engine in engines:
        table = Table(ENGINES[engine](PEOPLE, tmp_path), unit=unit, columns=COLUMNS)
        plan = table.plan(*QUERIES, epsilon=2)
        found[engine] = _carry_out(plan, table.source, bits=SeededBits(3)).values.csv()
    assert len(set(found.values())) == 1, [name for name, text in found.items() if text != found["csv"]]


def ledger_at(path: Path, **terms: Any) -> Ledger:
    held = {"budget": PureBudget(limit=Fraction(10)), "unit": "person", "neighbours": Neighbours.ADD_REMOVE}
    return Ledger.create(path, Terms(**{**held, **terms}))


ODD: dict[str, list[Any]] = {
    "empty": [],
    "null": [None] * 5,
    "nan": ["nan"] * 5,
    "text": ["?", "it's", '"', "", "\n"],
    "huge": ["1e999", "-1e999", "9" * 400, "-1e300", "1e-999"],
}


ENGINES_OF_TEXT = ("csv", "objects", "ndjson")


@pytest.mark.parametrize(
    "unit", [PrivacyUnit(name="person"), PrivacyUnit(name="person", column="who", max_rows=2)]
)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_after_the_charge_nothing_depends_on_the_data(unit: PrivacyUnit, tmp_path: Path, every: bool) -> None:
    """Whatever a table holds, the release has the same shape and is paid in full."""
    shapes = set()
    for place, (name, values) in enumerate({"people": None, **ODD}.items()):
        if unit.column is not None and name in ("null", "nan", "huge"):
            continue  # a record without a unit is left out whatever it holds
        rows = (
            PEOPLE
            if values is None
            else pa.table({c: pa.array(values, pa.string()) for c in PEOPLE.column_names})
        )
        for engine in ENGINES_OF_TEXT if every else ENGINES_OF_TEXT[place % 3 :][:1]:
            table = Table(ENGINES[engine](rows, tmp_path), unit=unit, columns=COLUMNS)
            ledger = ledger_at(tmp_path / f"{name} {engine} {unit.max_rows}.ledger")
            made = table.release(table.plan(*QUERIES, epsilon=1), ledger, bits=SeededBits(1))
            assert ledger.status().spent == 1
            certificate = made.certificate(ledger, made.declared)
            certificate.verify(ledger)
            assert not certificate.secure
            rows_of = list(made.values.rows())
            assert all(math.isfinite(cell) for row in rows_of for cell in row[-4:-1])  # type: ignore[arg-type]
            shapes.add(tuple(row[:-4] for row in rows_of))
    assert len(shapes) == 1


def test_typed_tables_of_odd_values_are_released_as_any_other() -> None:
    for numbers in ([math.nan] * 4, [math.inf, -math.inf, 1e308, -1e308], [None] * 4):
        rows = pa.table(
            {
                "age": pa.array(numbers, pa.float64()),
                "pay": pa.array(numbers, pa.float64()),
                "sex": pa.array([None, "", "f", "?"], pa.string()),
                "well": pa.array([None] * 4, pa.bool_()),
            }
        )
        table = Table(rows, unit="person", columns=COLUMNS)
        made = _carry_out(table.plan(*QUERIES, epsilon=1), table.source, bits=SeededBits(2))
        assert all(np.isfinite(each.estimate.value).all() for each in made.values.each)


def test_a_table_that_cannot_be_read_to_its_end_says_no_more_and_stays_charged(tmp_path: Path) -> None:
    import pyarrow.parquet

    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.concat_tables([PEOPLE] * 50), path)
    held = bytearray(path.read_bytes())
    table = Table(path, unit="person", columns=COLUMNS)
    held[4 : len(held) // 2] = bytes(len(held) // 2 - 4)
    path.write_bytes(held)
    ledger = ledger_at(tmp_path / "ledger")
    with pytest.raises(SourdineError, match="could not be read to its end") as caught:
        table.release(table.plan(*QUERIES, epsilon=1), ledger)
    assert caught.value.__suppress_context__
    assert ledger.status().spent == 1


def test_what_is_refused_is_not_charged(tmp_path: Path) -> None:
    table = Table(PEOPLE, unit="person", columns=COLUMNS)
    plan = table.plan(*QUERIES, epsilon=1)
    for ledger, sentence in [
        (ledger_at(tmp_path / "0.ledger", unit="household"), "protects each 'household'"),
        (ledger_at(tmp_path / "1.ledger", neighbours=Neighbours.REPLACE), "is for replace neighbours"),
        (ledger_at(tmp_path / "2.ledger", budget=PureBudget(limit=Fraction(1, 2))), "epsilon"),
    ]:
        with pytest.raises((InvalidParameter, BudgetExceeded), match=sentence):
            table.release(plan, ledger)
        assert ledger.status().spent == 0
    small = table.plan(*QUERIES, epsilon=1, delta=1e-6)
    ledger = ledger_at(tmp_path / "pure.ledger")
    with pytest.raises(InvalidParameter, match="keeps pure epsilon"):
        table.release(small, ledger)
    other = Table(PEOPLE, unit=PrivacyUnit(name="person", column="who"), columns=COLUMNS)
    with pytest.raises(InvalidParameter, match="made for another table"):
        other.release(plan, ledger)
    assert ledger.status().spent == 0


def test_a_release_from_rho_is_paid_in_rho(tmp_path: Path) -> None:
    budget = ConcentratedBudget.within(1, 1e-6)
    ledger = ledger_at(tmp_path / "rho.ledger", budget=budget, delta=1e-6)
    table = Table(PEOPLE, unit="person", columns=COLUMNS)
    made = table.release(table.plan(*QUERIES, epsilon=1, delta=1e-6), ledger, bits=SeededBits(1))
    certificate = made.certificate(ledger)
    certificate.verify(ledger)
    assert certificate.epsilon <= 1
    assert budget.limit * Fraction(999, 1000) < ledger.status().spent <= budget.limit


def test_a_rehearsal_reads_and_spends_nothing() -> None:
    table = Table(
        PEOPLE, unit=PrivacyUnit(name="person", column="who", max_rows=3), columns=COLUMNS, size=500
    )
    plan = table.plan(*QUERIES, epsilon=1)
    made = rehearse(plan)
    assert made.receipt is None
    real = _carry_out(plan, table.source, bits=SeededBits(1))
    assert [each.keys for each in made.values.each] == [each.keys for each in real.values.each]


def test_the_largest_sums_are_not_cut_off() -> None:
    """Even where epsilon is so large that the noise is far smaller than the sums."""
    most = (1 << 31) - 1
    columns = {"x": {"type": "integer", "lower": -1, "upper": most - 1}}
    table = Table(pa.table({"x": [most] * 6000}), unit="person", columns=columns)
    asks = [{"mean": "x"}, {"sum": "x"}]
    plan = table.plan({"name": "q", "ask": asks}, epsilon=1 << 20)
    made = _carry_out(plan, table.source, bits=SeededBits(1))
    assert made.values["q", "mean of x"].at()[0] == pytest.approx(most, rel=1e-5)
    assert made.values["q", "sum of x"].at()[0] == pytest.approx(6000 * most, rel=1e-5)


def test_nothing_is_released_without_a_ledger(tmp_path: Path) -> None:
    table = Table(
        pa.table({"x": [1, 2]}), unit="person", columns={"x": {"type": "integer", "lower": 0, "upper": 9}}
    )
    plan = table.plan({"name": "q", "ask": ["count"]}, epsilon=1)
    for nothing in (None, 3, {"ledger": "l"}):
        with pytest.raises(InvalidParameter, match="A release must be paid for: give the ledger"):
            table.release(plan, nothing)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"A release needs a plan"):
        table.release("plan", tmp_path / "l")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [str, Path])
def test_the_path_of_a_ledger_pays_as_well(tmp_path: Path, kind: type) -> None:
    table = Table(
        pa.table({"x": [1, 2]}), unit="person", columns={"x": {"type": "integer", "lower": 0, "upper": 9}}
    )
    terms = Terms(budget=PureBudget(limit=Fraction(3)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    Ledger.create(tmp_path / "l", terms).close()
    made = table.release(table.plan({"name": "q", "ask": ["count"]}, epsilon=1), kind(tmp_path / "l"))
    with Ledger.open(tmp_path / "l") as ledger:
        assert ledger.status().spent == 1
        assert made.certificate(ledger).verify(ledger) == ()


def test_a_second_release_of_the_same_plan_says_that_it_is_paid_anew(tmp_path: Path) -> None:
    column = {"type": "integer", "lower": 0, "upper": 9}
    table = Table(pa.table({"x": [1, 2]}), unit="person", columns={"x": column})
    ask = {"name": "q", "ask": ["count"]}
    ledger = Ledger.create(tmp_path / "l", epsilon=9)
    first, second = (table.release(table.plan(ask, epsilon=1), ledger) for _ in range(2))
    other = table.release(table.plan(ask, epsilon=2), ledger)
    assert "Line 1 of the ledger paid for the same plan" in second.notes[0]
    assert ledger.status().spent == 4
    for made in (first, other):
        assert not any("the same plan" in note for note in made.notes)


def test_a_count_below_zero_lies_in_its_own_interval() -> None:
    keys = [f"k{i}" for i in range(200)]
    table = Table(pa.table({"k": ["k0"]}), unit="person", columns={"k": {"type": "category", "keys": keys}})
    plan = table.plan({"name": "q", "ask": ["count"], "by": ["k"]}, epsilon=0.1)
    rows = list(_carry_out(plan, table.source, bits=SeededBits(1)).values["q"].rows())
    assert any(value < 0 for _, value, _, _ in rows)
    for _, value, low, high in rows:
        assert value - low == high - value > 0
