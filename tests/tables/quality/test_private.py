"""Data quality: a line of its own, drawn last, with intervals that hold and warnings that do not lie."""

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema
from sourdine.frames.quality import CellState, all_cells
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables import DataQuality, Privacy, Query, ReleasePlan, Table, forecasts, rehearse
from sourdine.tables.forecast import advice, quality_forecast, smallest_seen
from sourdine.tables.quality import _IS, QUERY, READ, Quality, data_quality
from sourdine.tables.query import columns_of
from sourdine.tables.release import _carry_out, _quality, exact_of
from sourdine.testing import SeededBits
from tests.tables.exact import exact_numbers

COLUMNS: dict[str, Any] = {
    "region": {"type": "category", "keys": ["north", "south"]},
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "pay": {"type": "real", "lower": 0.0, "upper": 50_000.0},
    "unused": {"type": "flag"},
}
SCHEMA = Schema.read(COLUMNS)
QUERIES: tuple[dict[str, Any], ...] = (
    {"name": "people", "ask": ["count"], "by": ["region"]},
    {"name": "pay", "ask": [{"mean": "pay"}], "by": ["region"], "where": {"age": {"at_least": 18}}},
)


def people(size: int, **odd: int) -> pa.Table:
    """So many people of whom some have an unknown region, others no pay, others too much of it."""
    region = ["North"] * odd.get("unknown", 0) + ["north"] * (size - odd.get("unknown", 0))
    pay = [None] * odd.get("missing", 0) + [1e6] * odd.get("above", 0)
    pay += [20_000.0] * (size - len(pay))
    return pa.table({"region": region, "age": [40] * size, "pay": pay, "unused": [True] * size})


def table_of(size: int, **odd: int) -> Table:
    return Table(people(size, **odd), unit="person", columns=COLUMNS, size=size)


def released(table: Table, epsilon: float = 1, seed: int = 1, **more: Any) -> DataQuality:
    plan = table.plan(*QUERIES, epsilon=epsilon, **more)
    found = _carry_out(plan, table.source, bits=SeededBits(seed)).quality
    assert found is not None
    return found


def drawn(plan: ReleasePlan, table: Table, seeds: range) -> list[DataQuality]:
    """The data quality of many releases; the table is counted once."""
    line = plan.lines[-1]
    (exact,) = exact_of([line], plan, table.source, SeededBits(1))
    measured, context = line.measurement, plan.context()
    read = [measured.read(exact, line, context, SeededBits(seed)) for seed in seeds]
    return [_quality(each, measured, plan) for each in read]  # type: ignore[arg-type]


def test_it_is_a_line_of_its_own_for_a_twentieth() -> None:
    plan = table_of(1000).plan(*QUERIES, epsilon=1)
    *others, last = plan.lines
    assert isinstance(last.measurement, Quality)
    assert last.measurement.columns == ("region", "age", "pay")  # by, where and ask, and no other
    assert last.share == Fraction(1, 20)
    assert [line.share for line in others] == [Fraction(19, 40)] * 2
    assert last.mechanism == Laplace(
        scale=Fraction(3 * 20)
    )  # three columns, of which one record moves one cell
    assert sum(spend.loss().epsilon for spend in plan.spends) == 1
    assert plan.lines == (*others, last)
    without = table_of(1000).plan(*QUERIES, epsilon=1, quality=False)
    assert [line.share for line in without.lines] == [Fraction(1, 2)] * 2
    assert quality_forecast(without) is None


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize("rows", [1, 3])
def test_its_distance_is_reached_and_no_more(neighbours: Neighbours, rows: int) -> None:
    """By hand: one unit moves each column by `rows`; replaced, it takes them from one cell to another."""
    unit = PrivacyUnit(column="who", max_rows=rows, max_groups=2)
    plan = ReleasePlan(
        schema=SCHEMA,
        queries=tuple(map(Query.read, QUERIES)),
        privacy=Privacy(epsilon=Fraction(1)),
        unit=unit,
        neighbours=neighbours,
    )
    twice = 2 if neighbours is Neighbours.REPLACE else 1
    line = plan.lines[-1]
    assert line.distance.amount == twice * 3 * rows
    squared = line.measurement.distance(SCHEMA, unit, neighbours, True)
    assert squared.amount == twice * 3 * rows**2
    bad = people(5, unknown=5, missing=5).append_column("who", pa.array([1] * 5))
    bad = bad.set_column(1, "age", pa.array([None] * 5, pa.int64()))
    good = people(5).append_column("who", pa.array([1] * 5))
    other = bad.slice(0, 0) if neighbours is Neighbours.ADD_REMOVE else bad
    numbers = []
    for held in (good, other):
        table = Table(held, unit=unit, columns=COLUMNS, neighbours=neighbours)
        numbers.append(np.array(exact_numbers(plan, table.source)[-1]))
    moved = numbers[0] - numbers[1]
    assert abs(moved).sum() == line.distance.amount
    assert moved @ moved == squared.amount


def test_with_a_delta_its_noise_is_gaussian() -> None:
    plan = table_of(1000).plan(*QUERIES, epsilon=1, delta=1e-6, noise="gaussian")
    last = plan.lines[-1]
    assert isinstance(last.mechanism, Gaussian)
    assert float(last.mechanism.sigma) == pytest.approx(math.sqrt(3 * 20 / (2 * plan.privacy.total)))


def test_other_draws_do_not_depend_on_it() -> None:
    """With the same seed and the same noise, answers are the same to the last digit."""
    table = table_of(500)
    with_it = table.plan(*QUERIES, epsilon=1)
    without = table.plan(*QUERIES, epsilon=Fraction(19, 20), quality=False)
    assert [line.mechanism for line in without.lines] == [line.mechanism for line in with_it.lines[:-1]]
    one, other = (_carry_out(plan, table.source, bits=SeededBits(4)) for plan in (with_it, without))
    assert one.values.csv() == other.values.csv()
    assert other.quality is None
    assert one.quality is not None


def test_its_noise_is_that_of_the_plan() -> None:
    """All cells of many releases: mean and variance of discrete Laplace noise, and not of one 20 % off."""
    table = table_of(100, unknown=30)
    plan = table.plan(*QUERIES, epsilon=20)
    scale = float(plan.lines[-1].mechanism.scale)  # type: ignore[attr-defined]
    exact = np.array(exact_numbers(plan, table.source)[-1])
    a = math.exp(-1 / scale)
    variance = 2 * a / (1 - a) ** 2
    counts = [[count[0] for _, _, count, _ in found.rows()] for found in drawn(plan, table, range(150))]
    noise = (np.array(counts) - exact).ravel()
    error = 6 * variance * math.sqrt(5 / noise.size)  # the kurtosis of the law is 6
    assert abs(noise.mean()) < 6 * math.sqrt(variance / noise.size)
    assert abs((noise**2).mean() - variance) < error < 0.4 * variance


def test_the_case_of_the_wrong_keys() -> None:
    """5,170 of 22,000 people have a key that nobody declared: at epsilon 1 the release says so."""
    found = released(table_of(22_000, unknown=5_170, missing=660))
    _, low, high = found.count("region", "unknown key")
    assert low <= 5_170 <= high
    assert high - low < 400
    share, least, most = found.share("region", "unknown key")
    assert least <= 0.235 <= most
    assert abs(share - 0.235) < 0.02
    assert found.records[1] <= 22_000 <= found.records[2]
    (keys,) = [each for each in found.warnings if "'region'" in each]
    assert keys.startswith("About 23.")
    assert "left out of every answer that needs it. Check the list of its keys" in keys
    assert not any("'age'" in each or "size" in each for each in found.warnings)


def test_clean_data_gives_no_warning() -> None:
    table = table_of(5_000)
    found = drawn(table.plan(*QUERIES, epsilon=1), table, range(200))
    assert sum(bool(each.warnings) for each in found) <= 2


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_warnings_and_intervals_err_as_seldom_as_they_say(delta: float | None) -> None:
    """Of noise alone: at most one release in a thousand warns, and 19 of 20 intervals hold the truth."""
    plan = table_of(3_000).plan(*QUERIES, epsilon=2, delta=delta)
    table = table_of(3_000, missing=60)
    exact = np.array(exact_numbers(plan, table.source)[-1])
    warned, held, of_shares, runs = 0, 0, 0, 200
    for found in drawn(plan, table, range(runs)):
        warned += any("'pay'" not in each for each in found.warnings)
        for truth, (_, _, count, share) in zip(exact, found.rows(), strict=True):
            held += count[1] <= truth <= count[2]
            of_shares += share[1] <= truth / 3_000 <= share[2]
    assert warned <= 2  # more than two have a probability below 1e-3
    many = runs * len(exact)
    slack = 5.0 * math.sqrt(0.05 * 0.95 * many)
    assert many - held <= 0.05 * many + slack
    assert many - of_shares <= 0.05 * many + slack


def test_what_is_seen_is_seen() -> None:
    """A cell of the smallest share that the plan tells is found with the plan's confidence."""
    plan = table_of(20_000).plan(*QUERIES, epsilon=1)
    seen = smallest_seen(plan)
    assert seen is not None
    many = math.ceil(20_000 * (seen + 0.001))  # the share of unknown keys that nobody wonders at
    found = drawn(plan, table_of(20_000, unknown=many), range(60))
    told = sum(any("'region'" in each for each in one.warnings) for one in found)
    assert told >= 0.95 * 60 - 4 * math.sqrt(60 * 0.05)
    few = drawn(plan, table_of(20_000, unknown=many // 4), range(60))
    assert sum(any("'region'" in each for each in one.warnings) for one in few) < 10


@pytest.mark.parametrize(
    ("size", "share"), [(10_000, "1/20"), (10**6, "1/50"), (10**8, "1/1000"), (None, "1/20")]
)
def test_large_tables_need_less_of_the_budget(size: int | None, share: str) -> None:
    plan = dataclasses.replace(table_of(10).plan(*QUERIES, epsilon=1), size=size)
    assert plan.lines[-1].share == Fraction(share)
    assert sum(line.share for line in plan.lines) == 1
    seen = smallest_seen(plan)
    assert (seen is None) == (size is None)
    assert seen is None or size == 10_000 or seen <= 0.002


def test_a_useless_line_is_advised_against() -> None:
    small = dataclasses.replace(table_of(10).plan(*QUERIES, epsilon=1), size=200)
    assert "would see nothing of 200 records" in advice(small)
    assert "quality=False" in advice(small)
    some = dataclasses.replace(small, size=2_000)
    assert "would see no share below 38 % of 2,000 records" in advice(some)
    for other in (
        dataclasses.replace(small, size=50_000),
        dataclasses.replace(small, size=None),
        dataclasses.replace(small, quality=False),
    ):
        assert advice(other) == ""
    told = quality_forecast(small)
    assert told is not None
    assert told.note == "sees nothing at this size"
    large = quality_forecast(dataclasses.replace(small, size=50_000))
    assert large is not None
    assert large.note == "sees from 1.5 % of the records on"
    assert "data quality" in small._repr_html_()
    assert [each.statistic for each in forecasts(small)] == ["count", "mean of pay"]


@pytest.mark.parametrize(
    ("held", "size", "told"),
    [
        (3_000, 1_000, "far more than the declared size of 1,000"),
        (1_000, 3_000, "far fewer"),
        (900, 1_000, ""),
    ],
)
def test_another_size_than_declared_is_told(held: int, size: int, told: str) -> None:
    table = Table(people(held), unit="person", columns=COLUMNS, size=size)
    warnings = released(table, epsilon=40).warnings
    assert [told in each for each in warnings] == ([True] if told else [])


def test_of_units_the_size_is_that_of_records_that_count() -> None:
    """Five records each, of which one counts: the forecasts were made for records that do not."""
    held = people(5_000).append_column("who", pa.array([i // 5 for i in range(5_000)]))
    for rows, groups, told in ((1, 1, True), (5, 1, False), (1, 5, False)):
        unit = PrivacyUnit(name="patient", column="who", max_rows=rows, max_groups=groups)
        table = Table(held, unit=unit, columns=COLUMNS, size=5_000)
        found = released(table, epsilon=40)
        assert [("of each patient and none without one" in each) for each in found.warnings] == [True] * told
        assert found.records[1] <= (5_000 if rows == 5 else 1_000) <= found.records[2]


def test_a_warning_says_what_became_of_the_records() -> None:
    declared: dict[str, Any] = {
        "age": {"type": "integer", "lower": 0, "upper": 120, "missing": 40},
        "town": {"type": "text", "other": "others", "missing": "other"},
        "well": {"type": "flag"},
        "pay": {"type": "real", "lower": 0.5, "upper": 10.0},
    }
    schema = Schema.read(declared)
    cells = all_cells(schema, list(declared))
    numbers = [10_000.0 if cell is CellState.FITS else 0.0 for _, cell in cells]
    for odd in (
        ("age", CellState.MISSING),
        ("town", CellState.UNREADABLE),
        ("well", CellState.UNREADABLE),
        ("pay", CellState.BELOW),
    ):
        place = cells.index(odd)
        numbers[place] = 2_000.0
        numbers[cells.index((odd[0], CellState.FITS))] = 8_000.0
    found = data_quality(
        numbers,
        Laplace(scale=Fraction(10)),
        columns=list(declared),
        schema=schema,
        unit=PrivacyUnit(),
        size=10_000,
        confidence=0.95,
    )
    age, town, well, pay = found.warnings
    assert "are missing in the column 'age', and counted as 40. Check that it is the right column" in age
    assert "cannot be read in the column 'town', and counted under 'others'. Check for texts of more" in town
    assert "were left out of every answer that needs it. Check how yes and no are written" in well
    assert "lie below the lower bound of the column 'pay', and counted as 0.5. Check its bounds" in pay
    assert age.startswith("About 20 % of the records (between 19.")


def test_shares_stay_possible_whatever_the_noise() -> None:
    schema = Schema.read({"well": {"type": "flag"}})
    for numbers in ([1_000.0, -300.0, 0.0], [1_300.0, -150.0, -150.0], [-5.0, 2.0, 1.0], [0.0, 0.0, 0.0]):
        found = data_quality(
            numbers,
            Laplace(scale=Fraction(10)),
            columns=["well"],
            schema=schema,
            unit=PrivacyUnit(),
            size=None,
            confidence=0.95,
        )
        for _, _, count, (value, low, high) in found.rows():
            assert count[1] <= count[0] <= count[2]
            assert 0 <= low <= value <= high <= 1
        if numbers[0] == 1_000:
            assert found.share("well", "missing")[2] < 0.1  # near 0, and not anything


def test_without_columns_records_alone_are_counted() -> None:
    table = table_of(2_000)
    plan = table.plan({"name": "n", "ask": ["count"]}, epsilon=1)
    assert plan.lines[-1].distance.amount == 1
    found = _carry_out(plan, table.source, bits=SeededBits(1)).quality
    assert found is not None
    assert list(found.rows()) == []
    assert found.records[1] <= 2_000 <= found.records[2]
    assert [each.statistic for each in found.answers.each] == [READ]


def test_it_comes_with_the_release_in_every_form(tmp_path: Path) -> None:
    table = table_of(8_000, unknown=3_000)
    terms = Terms(budget=PureBudget(limit=Fraction(3)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    with Ledger.create(tmp_path / "l", terms) as ledger:
        made = table.release(table.plan(*QUERIES, epsilon=1), ledger)
        assert ledger.status().spent == 1
        assert made.certificate(ledger).verify(ledger) == ()
    assert made.quality is not None
    assert any(note.startswith("WARNING: About ") and "'region'" in note for note in made.notes)
    assert "Data quality" in made._repr_html_()
    assert "unknown key" in made._repr_html_()
    assert "unknown key" in made.quality._repr_html_()
    told = json.loads(made.quality.answers.json())["rows"]
    assert {row["statistic"] for row in told} == {"records read", "records", "share of records"}
    assert all(row["query"] == QUERY for row in told)
    assert "data quality" not in made.values.csv()  # answers stay what they are
    with pytest.raises(InvalidParameter, match="has no group"):
        made.quality.count("region", "below the lower bound")


def test_a_rehearsal_fits() -> None:
    found = rehearse(table_of(10_000).plan(*QUERIES, epsilon=10)).quality
    assert found is not None
    assert found.warnings == ()


def test_columns_of_every_kind_of_question_are_counted() -> None:
    asks = [
        {"histogram": "age", "edges": [0, 60, 121]},
        {"proportion": "unused"},
        {"quantiles": "pay", "levels": [0.5]},
    ]
    found = columns_of([Query.read({"name": "q", "ask": asks, "where": {"region": ["north"]}})], SCHEMA)
    assert found == ("region", "age", "unused", "pay")
    top = columns_of([Query.read({"name": "q", "ask": [{"top": "region", "k": 1}]})], SCHEMA)
    assert top == ("region",)


def test_dates_that_do_not_fit_are_told() -> None:
    """Seen to fail: there was no sentence for them, so the release was paid for and then lost."""
    seen = {"type": "date", "first": "2024-01-01", "last": "2024-12-31", "period": "month"}
    days = pa.table({"seen": ["2024-05-01"] * 2_000 + ["2031-01-01"] * 2_000 + ["never"] * 1_000})
    table = Table(days, unit="person", columns={"seen": seen}, size=5_000)
    plan = table.plan({"name": "months", "ask": ["count"], "by": ["seen"]}, epsilon=1)
    found = _carry_out(plan, table.source, bits=SeededBits(1)).quality
    assert found is not None
    (warning,) = found.warnings
    assert "cannot be read in the column 'seen', or lie before its first or after its last" in warning
    assert "Check its first, its last and its zone" in warning


def test_every_state_of_a_cell_has_its_sentence() -> None:
    assert set(_IS) == set(CellState) - {CellState.FITS}
