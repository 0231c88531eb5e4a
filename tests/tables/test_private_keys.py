"""Keys chosen privately: what is paid, how rarely a unit's own key is shown, and what is read off by them."""

import html
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from sourdine.accounting.ledger import ConcentratedBudget, Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, UnsupportedLoss
from sourdine.frames import PrivacyUnit, Totals
from sourdine.frames.contributions import KeyCounts
from sourdine.frames.keys import Keys
from sourdine.mechanisms import PartitionThreshold
from sourdine.report.pages.release import release_page
from sourdine.tables import ReleasePlan, Specification, Table, forecasts, rehearse
from sourdine.tables.publication import Record
from sourdine.tables.release import _carry_out, exact_of, keyed, scans
from sourdine.tables.statistics.keys import Partitions
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.frames.every_engine import ENGINES, FEW
from tests.statistics import ALARM

COLUMNS: dict[str, Any] = {
    "town": {"type": "text"},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "age": {"type": "integer", "lower": 0, "upper": 99},
}
ASKS: list[Any] = [
    "count",
    "units",
    {"mean": "age"},
    {"sum": "age"},
    {"proportion": "age", "at_least": 50},
    {"histogram": "age", "edges": [0, 50, 99]},
    {"quantiles": "age", "levels": [0.5], "method": "tree"},
]
SMOOTH = {"quantiles": "age", "levels": [0.5], "method": "smooth"}
RANDOM = np.random.default_rng(8)
SIZE = 900
TOWNS = ["Aa", "aa", "b", "=c", "<i>d</i>", 'e, "f"', "rare 1", "rare 2"]
PEOPLE = pa.table(
    {
        "town": RANDOM.choice(TOWNS, SIZE, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.096, 0.002, 0.002]),
        "sex": RANDOM.choice(["f", "m"], SIZE),
        "age": RANDOM.integers(0, 99, SIZE),
        "who": [f"p{i // 3}" for i in range(SIZE)],
    }
)
MANY = PrivacyUnit(name="person", column="who", max_rows=2, max_groups=2)


def table_of(rows: object = PEOPLE, unit: PrivacyUnit | str = "person", **town: Any) -> Table:
    columns = {**COLUMNS, "town": {"type": "text", **town}}
    return Table(rows, unit=unit, columns=columns, size=SIZE)


def towns(plan: ReleasePlan, table: Table, seed: int = 1) -> list[Any]:
    (answer, *_) = _carry_out(plan, table.source, bits=SeededBits(seed)).values.each
    return [key[0] for key in answer.keys]


BY_TOWN: dict[str, Any] = {"name": "towns", "ask": ["count"], "by": ["town"]}


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian"])
@pytest.mark.parametrize("groups", [1, 3])
def test_a_key_of_one_unit_is_shown_with_the_probability_that_is_paid_for(noise: str, groups: int) -> None:
    """Thousands of units have keys of their own: how many see one of theirs in the release?"""
    units, delta = 4000, 0.2
    names = [f"unit {i // groups} key {i}" for i in range(units * groups)]
    rows = pa.table({"town": names, "who": [i // groups for i in range(len(names))]})
    table = Table(
        rows,
        unit=PrivacyUnit(name="person", column="who", max_groups=groups),
        columns={"town": {"type": "text"}},
    )
    selection_delta = delta if noise == "Laplace" else delta / 2
    plan = table.plan(BY_TOWN, epsilon=2.0, delta=delta, selection_delta=selection_delta, noise=noise.lower())
    mechanism = plan.lines[0].mechanism
    assert isinstance(mechanism, PartitionThreshold)
    assert mechanism.noise == noise
    claimed = mechanism.leak()
    assert selection_delta / 6 < claimed <= selection_delta
    shown = len({name.split(" key ")[0] for name in towns(plan, table, 5)})
    assert binom.sf(shown - 1, units, claimed) > ALARM
    assert binom.cdf(shown, units, claimed) > ALARM  # nor is the claim an idle one
    lower = PartitionThreshold(
        noise=mechanism.noise, scale=mechanism.scale, threshold=mechanism.threshold - 1, keys=groups
    )
    with patch.object(PartitionThreshold, "within", lambda **_: lower):
        faulty = replace(plan)
        shown = len({name.split(" key ")[0] for name in towns(faulty, table, 5)})
    assert binom.sf(shown - 1, units, claimed) < ALARM


@pytest.mark.parametrize("others", [pytest.param(None, marks=pytest.mark.slow), "others"])
@pytest.mark.parametrize("unit", [PrivacyUnit(name="person"), MANY])
def test_by_the_same_keys_and_noise_answers_are_those_of_declared_keys(
    others: str | None, unit: PrivacyUnit
) -> None:
    """Chosen keys are worth what declared ones are: half of the budget went into choosing them."""
    kept = ["=c", "Aa", "b"]
    listed = Keys.of([(town,) for town in sorted(kept)], 1)
    drawn = patch.object(PartitionThreshold, "sample", lambda self, counts, bits: np.ones(len(counts), bool))
    shown = patch.object(KeyCounts, "chosen", lambda self, places: listed)
    declared = pa.table(
        {**PEOPLE.to_pydict(), "town": [t if t in kept else others for t in PEOPLE["town"].to_pylist()]}
    )
    keys = kept if others is None else [*kept, others]
    columns = {**COLUMNS, "town": {"type": "category", "keys": keys}}
    for ask in ASKS:
        query = {"name": "q", "ask": [ask], "by": ["town", "sex"]}
        table = table_of(unit=unit, other=others)
        plan = table.plan(query, epsilon=2, delta=1e-6, selection_delta=1e-6)
        bits = SeededBits(4)
        if unit.column is not None:
            bits.words(2)  # the secret that says in which keys a unit counts
        with drawn, shown:
            found = _carry_out(plan, table.source, bits=SeededBits(4)).values.each[0]
        known = Table(declared, unit=unit, columns=columns, size=SIZE)
        plain = known.plan(query, epsilon=1)
        assert plain.lines[0].mechanism == plan.lines[1].mechanism
        wanted = {key: row for key, *row in _carry_out(plain, known.source, bits=bits).values.each[0].rows()}
        if unit.column is None or ask in ("count", "units"):
            assert sorted(wanted) == sorted(found.keys)
        if unit.column is None:  # else the hash picks other groups of a unit by other names
            assert {key: row for key, *row in found.rows()} == wanted


def test_the_budget_is_divided_and_delta_too() -> None:
    table = table_of(unit=MANY)
    apart = {"name": "apart", "ask": ["count"], "by": ["town"], "where": {"sex": ["f"]}}
    again = {"name": "again", "ask": ["units", {"mean": "age"}], "by": ["sex", "town"], "weight": 2}
    plan = table.plan(BY_TOWN, again, apart, epsilon=1, delta=1e-6, quality=False, noise="gaussian")
    keys = [line for line in plan.lines if isinstance(line.measurement, Partitions)]
    assert [line.share for line in keys] == [Fraction(1, 8) + Fraction(1, 6), Fraction(1, 8)]
    assert sum(line.share for line in plan.lines) == 1
    losses = [line.spend.one_loss() for line in plan.lines]
    assert sum(Fraction(loss.delta) for loss in losses) <= Fraction(1e-6) / 2
    assert all(Fraction(line.mechanism.leak()) <= Fraction(1e-6) / 4 for line in keys)  # type: ignore[attr-defined]
    rho = ConcentratedBudget.within(Fraction(1), 5e-7).limit
    assert (
        Fraction(99, 100) * rho
        < sum(Fraction(line.count * loss.rho) for line, loss in zip(plan.lines, losses, strict=True))
        <= rho
    )


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_a_ledger_pays_from_its_selection_delta(neighbours: Neighbours, tmp_path: Path) -> None:
    table = Table(PEOPLE, unit="person", columns=COLUMNS, neighbours=neighbours)
    budget = ConcentratedBudget.within(Fraction(1), 5e-7)
    terms: dict[str, Any] = {"budget": budget, "unit": "person", "neighbours": neighbours, "delta": 1e-6}
    plan = table.plan(BY_TOWN, epsilon=1, delta=1e-6, noise="gaussian")
    plainly = Ledger.create(tmp_path / "plain", Terms(**terms))
    with pytest.raises(UnsupportedLoss, match="selection delta"):
        table.release(plan, plainly)
    assert plainly.status().spent == 0
    ledger = Ledger.create(tmp_path / "kept", Terms(**terms, selection_delta=Fraction(5e-7)))
    made = table.release(plan, ledger)
    assert made.receipt is not None
    assert 0 < made.receipt.delta <= Fraction(5e-7)
    made.certificate(ledger).verify(ledger)
    assert any("chosen privately" in note for note in made.notes)
    with pytest.raises(BudgetExceeded):
        table.release(plan, ledger)
    pure = Ledger.create(
        tmp_path / "pure",
        Terms(
            budget=PureBudget(limit=Fraction(1)),
            unit="person",
            neighbours=neighbours,
            selection_delta=Fraction(1e-6),
        ),
    )
    with pytest.raises(InvalidParameter, match='noise="laplace"'):
        table.release(plan, pure)
    laplace = table.plan(BY_TOWN, epsilon=1, delta=1e-6)
    assert table.release(laplace, pure).receipt.price == 1  # type: ignore[union-attr]


def test_what_cannot_be_is_refused_before_anything_is_read() -> None:
    table = table_of()
    with pytest.raises(InvalidParameter, match="takes a small delta"):
        table.plan(BY_TOWN, epsilon=1)
    with refusal_of("selection_delta", "Privacy"):
        table.plan(BY_TOWN, epsilon=1, delta=1e-6, selection_delta=1e-5)
    with pytest.raises(InvalidParameter, match="only 'by' and 'top' allow"):
        table.plan({"name": "q", "ask": [{"contingency": ["sex", "town"]}]}, epsilon=1, delta=1e-6)
    with pytest.raises(InvalidParameter, match="needs a name for the others"):
        table_of(missing="other")
    both = Table(
        PEOPLE, unit="person", columns={"town": {"type": "text", "other": "o"}, "who": {"type": "text"}}
    )
    with pytest.raises(InvalidParameter, match="for each of these columns, or for none"):
        both.plan({"name": "q", "ask": ["count"], "by": ["town", "who"]}, epsilon=1, delta=1e-6)
    with pytest.raises(InvalidParameter, match="in a query of its own"):
        both.plan({"name": "q", "ask": [{"top": "who", "k": 1}], "by": ["town"]}, epsilon=1, delta=1e-6)


@pytest.mark.parametrize("engines", [FEW, pytest.param(ENGINES, marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("unit", [PrivacyUnit(name="person"), MANY])
def test_one_specification_gives_the_same_everywhere(
    unit: PrivacyUnit, engines: Iterable[str], tmp_path: Path
) -> None:
    found = set()
    for engine in engines:
        table = table_of(ENGINES[engine](PEOPLE, tmp_path), unit, other="others", at_least=5)
        queries = [{"name": str(i), "ask": [ask], "by": ["sex", "town"]} for i, ask in enumerate(ASKS)]
        plan = table.plan(*queries, {"name": "top", "ask": [{"top": "town", "k": 3}]}, epsilon=9, delta=1e-6)
        found.add(_carry_out(plan, table.source, bits=SeededBits(3)).values.csv())
    assert len(found) == 1
    assert "<i>d</i>" in found.pop()


def test_a_minimum_frequency_holds_back_smaller_keys() -> None:
    counts = Counter(PEOPLE["town"].to_pylist())
    for least in (1, 100, 170, 10**6):
        table = table_of(at_least=least)
        plan = table.plan(BY_TOWN, epsilon=500, delta=1e-3, noise="gaussian")
        assert towns(plan, table) == sorted(town for town in counts if counts[town] >= max(least, 2))


def test_several_columns_are_chosen_together() -> None:
    columns = {"town": {"type": "text", "other": "o1"}, "sex": {"type": "text", "other": "o2"}}
    table = Table(PEOPLE, unit="person", columns=columns)
    plan = table.plan(
        {"name": "q", "ask": ["count"], "by": ["town", "sex"]}, epsilon=500, delta=1e-3, noise="gaussian"
    )
    (answer,) = _carry_out(plan, table.source, bits=SeededBits(1)).values.each
    exact = Counter(zip(PEOPLE["town"].to_pylist(), PEOPLE["sex"].to_pylist(), strict=True))
    shown = {pair: count for pair, count in exact.items() if count >= plan.lines[0].mechanism.threshold}  # type: ignore[attr-defined]
    rest = SIZE - sum(shown.values())
    assert {key: value for key, value, *_ in answer.rows()} == {**shown, ("o1", "o2"): rest}


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_a_unit_moves_numbers_by_chosen_keys_no_farther_than_declared(neighbours: Neighbours) -> None:
    """The keys being chosen, on random tables: one unit gone, or another in its place."""
    queries = [{"name": str(i), "ask": [ask], "by": ["town", "sex"]} for i, ask in enumerate(ASKS[:-1])]
    largest = 0.0
    for seed in range(3):
        rows = [
            (f"p{unit}", RANDOM.choice(TOWNS), RANDOM.choice(["f", "m"]), int(RANDOM.integers(0, 99)))
            for unit in range(5)
            for _ in range(RANDOM.integers(1, 8))
        ]
        gone = [row for row in rows if row[0] != "p0"]
        came = [("p9", RANDOM.choice(TOWNS), "m", 99) for _ in range(6)]
        other = gone if neighbours is Neighbours.ADD_REMOVE else gone + came
        moved = []
        for held in (rows, other):
            names = ("who", "town", "sex", "age")
            table = Table(
                pa.table(dict(zip(names, map(list, zip(*held, strict=True)), strict=True))),
                unit=MANY,
                columns={**COLUMNS, "town": {"type": "text", "other": "others"}},
                neighbours=neighbours,
            )
            plan = table.plan(*queries, epsilon=1, delta=1e-6, selection_delta=1e-6, quality=False)
            numbers = []
            for scan in scans(plan)[1:]:
                lines, source = keyed(scan, table.source, Keys.of([("Aa",), ("b",)], 1))
                found = exact_of(lines, plan, source, SeededBits(seed))
                for line, exact in zip(scan, found, strict=True):
                    assert isinstance(exact, Totals)
                    numbers.append((line, np.array(exact.numbers[0], dtype=np.int64)))
            moved.append(numbers)
        for (line, before), (_, after) in zip(*moved, strict=True):
            far = np.abs(before - after).sum() / float(line.distance.amount)
            assert far <= 1
            largest = max(largest, far)
    assert largest > 0.5


def empty_of(asks: list[Any]) -> tuple[Table, ReleasePlan]:
    table = table_of(pa.table({name: PEOPLE[name][:0] for name in PEOPLE.column_names}))
    return table, table.plan({"name": "q", "ask": asks, "by": ["town"]}, epsilon=1, delta=1e-6)


def test_without_any_key_there_are_answers_without_groups() -> None:
    table, plan = empty_of(ASKS)
    for source in (table.source, table_of().source):
        with patch.object(
            PartitionThreshold, "sample", lambda self, counts, bits: np.zeros(len(counts), bool)
        ):
            made = _carry_out(plan, source, bits=SeededBits(1))
        assert [answer.keys for answer in made.values.each] == [()] * len(ASKS)
        assert made.values.csv().count("\n") == 1


ODD = [[], [None] * 5, [""] * 9, ["\n"] * 9, ["x" * 10**5] * 9, [str(i) for i in range(50)], ["others"] * 60]


@pytest.mark.parametrize("held", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("others", [None, "others"])
def test_after_the_charge_nothing_is_raised(held: list[str | None], others: str | None) -> None:
    size = len(held)
    rows = pa.table(
        {
            "town": pa.array(held, pa.string()),
            "sex": pa.array(["f"] * size, pa.string()),
            "age": pa.array([7] * size, pa.int64()),
            "who": pa.array(["p"] * size, pa.string()),
        }
    )
    table = table_of(rows, MANY, other=others)
    query = {"name": "q", "ask": ASKS, "by": ["sex", "town"]}
    top = {"name": "t", "ask": [{"top": "town", "k": 4}], "by": ["sex"]}
    plan = table.plan(query, top, epsilon=1, delta=1e-6, noise="gaussian")
    for answer in _carry_out(plan, table.source, bits=SeededBits(2)).values.each[:2]:
        assert [key[1] for key in answer.keys] == [others, others][: len(answer.keys)]
        assert len(answer.keys) == (0 if others is None else 2)


def test_a_condition_names_texts_that_are_known() -> None:
    table = table_of()
    query = {
        "name": "q",
        "ask": ["count", {"proportion": "town", "of": ["Aa", "zz"]}],
        "where": {"town": ["Aa", "b"]},
    }
    plan = table.plan(query, epsilon=10**4)
    count, share = _carry_out(plan, table.source, bits=SeededBits(1)).values.each
    exact = Counter(PEOPLE["town"].to_pylist())
    assert count.at()[0] == exact["Aa"] + exact["b"]
    assert share.at()[0] == pytest.approx(exact["Aa"] / (exact["Aa"] + exact["b"]), abs=1e-3)
    with pytest.raises(InvalidParameter, match="State texts of 1 to 200 characters"):
        table.plan({"name": "q", "ask": ["count"], "where": {"town": [7]}}, epsilon=1)


def test_a_plan_tells_from_how_many_on_a_key_is_shown() -> None:
    table = table_of(unit=PrivacyUnit(name="patient", column="who"))
    plan = table.plan({"name": "q", "ask": [{"mean": "age"}], "by": ["town"]}, epsilon=1, delta=1e-6)
    keys, mean = forecasts(plan)
    threshold = plan.lines[0].mechanism.threshold  # type: ignore[attr-defined]
    assert f"from about {threshold} patients on" in keys.note
    assert keys.statistic == "keys of town"
    assert mean.note.endswith(f"for groups of {threshold}")
    assert "1e-6 for keys" in plan.guarantee.words


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_quantiles_by_another_method_allow_for_any_number_of_groups(neighbours: Neighbours) -> None:
    table = Table(PEOPLE, unit=MANY, columns=COLUMNS, neighbours=neighbours)
    plan = table.plan(
        {"name": "q", "ask": [SMOOTH], "by": ["town"]}, epsilon=2, delta=1e-6, selection_delta=1e-6
    )
    assert plan.lines[1].count == 2
    assert sum(Fraction(spend.one_loss().epsilon) * spend.count for spend in plan.spends) <= 2
    (answer,) = _carry_out(plan, table.source, bits=SeededBits(1)).values.each
    assert answer.columns == ("town", "quantile")
    assert set(answer.keys) <= {(town, 0.5) for town in TOWNS}


def test_a_rehearsal_makes_keys_up() -> None:
    plan = table_of(other="others").plan(BY_TOWN, epsilon=1, delta=1e-6)
    (answer,) = rehearse(plan).values.each
    assert {str(key[0]).startswith("made up town ") for key in answer.keys[:-1]} == {True}
    assert answer.keys[-1] == ("others",)


SPEC = """
[table]
source = "people.csv"
[privacy]
unit = "person"
epsilon = 200
delta = 1e-6
noise = "gaussian"
[columns.town]
type = "text"
at_least = 3
other = "others"
[[queries]]
name = "towns"
ask = ["count"]
by = "town"
[[queries]]
name = "first"
ask = { top = "town", k = 2 }
"""


def test_files_and_pages_tell_that_keys_were_chosen(tmp_path: Path) -> None:
    ENGINES["csv"](PEOPLE, tmp_path)
    (tmp_path / "rows.csv").rename(tmp_path / "people.csv")
    (tmp_path / "spec.toml").write_text(SPEC)
    held = Specification.load(tmp_path / "spec.toml")
    plan = held.plan()
    terms = Terms(
        budget=ConcentratedBudget.within(200, 5e-7),
        unit="person",
        neighbours=Neighbours.ADD_REMOVE,
        delta=1e-6,
        selection_delta=Fraction(5e-7),
    )
    ledger = Ledger.create(tmp_path / "l", terms)
    made = Table(tmp_path / "people.csv", unit=plan.unit, columns=plan.schema).release(plan, ledger)
    text = made.values.csv()
    assert "towns,count,'=c," in text  # no formula for a spreadsheet
    assert "keys of town chosen privately" in text
    assert '"town": "=c"' in made.values.json()
    record = Record.from_json(Record.of(held, made).to_json())
    assert [each.chosen for each in record.answers.each] == [("town",)] * 2
    assert [key for key, *_ in record.answers.each[1].rows()] == [("Aa",), ("aa",)]
    page = release_page(record, made.certificate(ledger)).html()
    assert "<i>d</i>" not in page
    assert html.escape("<i>d</i>") in page
    assert "keys were chosen privately. None is shown that fewer than about 3 have" in page
    assert "The top 2 of town, in order: Aa, aa" in page
