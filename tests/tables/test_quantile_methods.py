"""The `method` of a quantiles query: what a unit changes is paid for, and a missing interval is said."""

import csv
import io
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings

from sourdine.accounting.ledger import ConcentratedBudget, Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import CountedValues, PrivacyUnit, ranks
from sourdine.tables import (
    Privacy,
    Query,
    ReleasePlan,
    Table,
    epsilon_for,
    forecasts,
    rehearse,
    write_answers,
)
from sourdine.tables.measurement import ColumnMeasurement, PlannedMeasurement
from sourdine.tables.privacy import NoiseChoice
from sourdine.tables.quantiles import METHODS, InverseSensitivity, QuantileMethod
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits
from tests.tables.measurements.test_measurement import SCHEMA, Row, cases, source_of
from tests.tables.quantiles import brute

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
NAMED = ["auto", *METHODS]
COLUMNS: dict[str, Any] = {
    "pay": {"type": "real", "lower": 0.0, "upper": 50.0, "granularity": 0.1},
    "sex": {"type": "category", "keys": ["f", "m", "x"]},
}
_RANDOM = np.random.default_rng(5)
PEOPLE = pa.table(
    {
        "pay": np.concatenate([_RANDOM.uniform(0, 60, 397), [math.nan, math.inf, -1e300]]),
        "sex": _RANDOM.choice(["f", "m", "other"], 400),
        "who": np.arange(400) % 90,
    }
)
UNITS = [
    PrivacyUnit(),
    PrivacyUnit(column="who", max_rows=2, max_groups=1),
    PrivacyUnit(column="who", max_rows=3, max_groups=3),
]
QUARTILES = [0.25, 0.5, 0.75]


def asked(method: str, at: list[float] = QUARTILES, by: tuple[str, ...] = ("sex",)) -> dict[str, Any]:
    return {"name": "q", "ask": [{"quantiles": "pay", "levels": at, "method": method}], "by": list(by)}


def table(unit: PrivacyUnit = UNITS[0], neighbours: Neighbours = ADD_REMOVE, size: int | None = 400) -> Table:
    return Table(PEOPLE, unit=unit, columns=COLUMNS, size=size, neighbours=neighbours)


def made(line: PlannedMeasurement) -> QuantileMethod:
    assert isinstance(line.mechanism, QuantileMethod)
    return line.mechanism


# --- what a unit changes, and what is paid for it


def held(plan: ReleasePlan, rows: list[Row], seed: int) -> list[Counter[int]]:
    """The values of each group as its mechanism sees them."""
    source, measured = source_of(rows), plan.lines[0].measurement
    assert isinstance(measured, ColumnMeasurement)
    groups = ranks(
        source,
        by=measured.groupings(source),
        value=source.place_of(measured.column),
        unit=plan.unit,
        bits=SeededBits(seed),
        where=measured.scope.sql(source),
    )
    return [Counter(values.values_between(0, values.size).tolist()) for values in groups.values()]


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(cases())
def test_what_a_unit_changes_in_all_groups_is_paid_for(
    case: tuple[ReleasePlan, list[Row], list[Row], int],
) -> None:
    """Group by group: values that go and come, each priced as the mechanism is proven for."""
    given_plan, one, other, seed = case
    query = given_plan.queries[0]
    assume(query.name != "cells")
    ask = {"kind": "quantiles", "column": "age", "levels": [0.5], "method": "inverse"}
    block = {"name": "q", "ask": [ask], "by": list(query.by), "where": query.where}
    for delta in (None, 1e-6):
        plan = ReleasePlan(
            schema=SCHEMA,
            queries=(Query.read(block),),
            privacy=Privacy(epsilon=Fraction(2), delta=delta),
            unit=given_plan.unit,
            neighbours=given_plan.neighbours,
            noise=None if delta is None else NoiseChoice.GAUSSIAN,
        )
        mechanism, loss = made(plan.lines[0]), plan.spends[0].loss()
        epsilon, rho = Fraction(0), Fraction(0)
        for before, after in zip(held(plan, one, seed), held(plan, other, seed), strict=True):
            gone, come = (before - after).total(), (after - before).total()
            # made for replacement, a value that goes or comes costs as much as one that is replaced
            steps = max(gone, come) if mechanism.neighbours is REPLACE else gone + come
            epsilon += steps * mechanism.epsilon
            rho += (steps * mechanism.epsilon) ** 2 * mechanism.rho_at_one(1)
        assert epsilon <= loss.epsilon
        assert rho <= loss.rho
        assert loss.neighbours is plan.neighbours
        assert Fraction(loss.epsilon if delta is None else loss.rho) <= plan.privacy.total


def reached(unit: PrivacyUnit, neighbours: Neighbours) -> tuple[Fraction, Fraction | float]:
    """The cost of the unit that changes as much as any may, and what is paid."""
    plan = ReleasePlan(
        schema=SCHEMA,
        queries=(
            Query.read(
                {
                    "name": "q",
                    "ask": [{"quantiles": "age", "levels": [0.5], "method": "inverse"}],
                    "by": ["site"],
                }
            ),
        ),
        privacy=Privacy(epsilon=Fraction(1)),
        unit=unit,
        neighbours=neighbours,
        quality=False,
    )
    here, there = (["n"], ["s"]) if unit.max_groups == 1 else (["n", "s"], ["n", "s"])
    one = [(0, 0.0, 0.0, 0.0, site, True) for site in here] * unit.max_rows
    other = (
        [(0, 20.0, 0.0, 0.0, site, True) for site in there] * unit.max_rows if neighbours is REPLACE else []
    )
    cost = Fraction(0)
    for before, after in zip(held(plan, one, 1), held(plan, other, 1), strict=True):
        gone, come = (before - after).total(), (after - before).total()
        steps = max(gone, come) if made(plan.lines[0]).neighbours is REPLACE else gone + come
        cost += steps * made(plan.lines[0]).epsilon
    return cost, plan.spends[0].loss().epsilon


@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
@pytest.mark.parametrize(
    "unit", [PrivacyUnit(), *(PrivacyUnit(column="who", max_rows=3, max_groups=g) for g in (1, 2))]
)
def test_some_unit_changes_all_that_is_paid_for(unit: PrivacyUnit, neighbours: Neighbours) -> None:
    assert reached(unit, neighbours) == (1, 1)


PLACES, LEVEL = 4, Fraction(1, 2)
Two = tuple[tuple[int, ...], tuple[int, ...]]


def replaced_in_two_groups(groups: Two) -> set[Two]:
    """Every pair of groups with one record replaced, which may leave one group for the other, or both."""
    found: set[Two] = set()
    for g, h in itertools.product((0, 1), repeat=2):
        for gone in set(groups[g]):
            left = [list(each) for each in groups]
            left[g].remove(gone)
            found.add((tuple(left[0]), tuple(left[1])))
            for new in range(PLACES):
                come = [list(each) for each in left]
                come[h] = sorted([*come[h], new])
                found.add((tuple(come[0]), tuple(come[1])))
    return found


def worst_ratio(mechanism: QuantileMethod) -> float:
    """The largest loss over all neighbours of all pairs of groups with up to three records."""

    def logs(values: tuple[int, ...]) -> list[float]:
        law = brute.inverse(values, LEVEL, mechanism.neighbours, PLACES, 0, mechanism.epsilon)
        return [math.log(mass) for mass in law]

    worst = 0.0
    for n, m in [(0, 1), (1, 0), (1, 1), (2, 1), (1, 2), (3, 0), (0, 3)]:
        for groups in itertools.product(brute.datasets(PLACES, n), brute.datasets(PLACES, m)):
            before = [logs(each) for each in groups]
            for other in replaced_in_two_groups(groups):
                apart = [
                    [a - b for a, b in zip(one, logs(each), strict=True)]
                    for one, each in zip(before, other, strict=True)
                ]
                worst = max(worst, sum(map(max, apart)), -sum(map(min, apart)))
    return worst


def test_a_record_that_moves_between_groups_by_enumeration() -> None:
    """The laws of both groups together, for every table of up to three records and each of its neighbours."""
    schema = {"x": {"type": "integer", "lower": 0, "upper": PLACES - 1}, "g": {"type": "flag"}}
    asking = {"name": "q", "ask": [{"quantiles": "x", "levels": [0.5], "method": "inverse"}], "by": ["g"]}
    rows = Table(pa.table({"x": [0], "g": [True]}), unit="record", columns=schema, neighbours=REPLACE)
    mechanism = made(rows.plan(asking, epsilon=1, quality=False).lines[0])
    assert mechanism == InverseSensitivity(
        epsilon=Fraction(1, 2), levels=(LEVEL,), places=PLACES, neighbours=ADD_REMOVE
    )
    assert worst_ratio(mechanism) <= 1 + 1e-12
    alone = InverseSensitivity(epsilon=Fraction(1), levels=(LEVEL,), places=PLACES)
    assert worst_ratio(alone) > 1.15  # as if a record could not change its group


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("neighbours", [REPLACE, pytest.param(ADD_REMOVE, marks=pytest.mark.slow)])
def test_what_is_spent_is_the_guarantee(method: str, delta: float | None, neighbours: Neighbours) -> None:
    for unit, by in [(UNITS[0], ("sex",)), (UNITS[1], ("sex",)), (UNITS[2], ())]:
        plan = table(unit, neighbours).plan(
            asked(method, by=by),
            {"name": "n", "ask": ["count"]},
            epsilon=1,
            delta=delta,
            noise=None if delta is None else "gaussian",
        )
        losses = [spend.loss() for spend in plan.spends]
        if delta is None:
            assert sum(PureBudget(limit=Fraction(1)).price(loss) for loss in losses) == 1
        else:
            budget = ConcentratedBudget.within(Fraction(1), delta)
            assert 0.999 * budget.limit <= sum(map(budget.price, losses)) <= budget.limit


# --- what comes out


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("unit", [UNITS[0], pytest.param(UNITS[1], marks=pytest.mark.slow), UNITS[2]])
def test_answers_lie_on_the_grid_in_order_for_every_declared_group(
    method: str, delta: float | None, unit: PrivacyUnit
) -> None:
    rows = table(unit, REPLACE)
    plan = rows.plan(asked(method), epsilon=2, delta=delta)
    found = _carry_out(plan, rows.source, bits=SeededBits(1)).values["q"]
    assert [key for key, *_ in found.rows()] == [(sex, level) for sex in "fmx" for level in QUARTILES]
    values = found.estimate.value
    assert np.all((values >= 0) & (values <= 50))
    assert np.all(np.diff(values.reshape(3, 3), axis=1) >= 0)
    assert all(len(repr(value)) <= 4 for value in values.tolist())  # tenths, without the dust of floats
    read = not isinstance(plan.lines[0].mechanism, QuantileMethod)  # off counts, which give intervals
    assert read <= (method == "auto")
    assert np.isnan(found.estimate.lower).all() != read
    assert np.isnan(found.estimate.upper).all() != read
    assert found.bounded == read


@pytest.mark.parametrize("method", [name for name in NAMED if name != "naive"])
def test_much_budget_finds_the_quantiles_of_each_group(method: str) -> None:
    rows = table()
    plan = rows.plan(asked(method, [0.5]), epsilon=4000)
    found = _carry_out(plan, rows.source, bits=SeededBits(1)).values["q"]
    pay, sex = PEOPLE["pay"].to_numpy(), np.array(PEOPLE["sex"].to_pylist())
    for key in "fm":
        mine = np.sort(np.clip(pay[(sex == key) & np.isfinite(pay)], 0, 50))
        rank = math.ceil(mine.size / 2)
        wide = 1.3 if "histogram" in method else 0.0  # of one of its cuts
        assert mine[rank - 4] - wide <= found.at(key, 0.5)[0] <= mine[rank + 3] + wide


def test_groups_of_a_unit_count_as_often_as_it_may() -> None:
    """Of somebody with records in all groups, one group holds a value, and there only two."""
    held = pa.table({"pay": [1.0] * 12, "sex": ["f", "m", "x"] * 4, "who": [1] * 12})
    rows = Table(held, unit=UNITS[1], columns=COLUMNS)
    plan = rows.plan(asked("smooth", [0.5]), epsilon=1)
    measured = plan.lines[0].measurement
    assert isinstance(measured, ColumnMeasurement)
    groups = ranks(
        rows.source,
        by=measured.groupings(rows.source),
        value=rows.source.place_of(measured.column),
        unit=rows.unit,
        bits=SeededBits(0),
    )
    assert sorted(values.size for values in groups.values()) == [0, 0, 2]


def released(folder: Path, method: str) -> Any:
    terms = Terms(budget=PureBudget(limit=Fraction(1)), unit="record", neighbours=ADD_REMOVE)
    ledger = Ledger.create(folder / "people.ledger", terms)
    rows = table()
    plan = rows.plan(asked(method), {"name": "n", "ask": ["count"]}, epsilon=1)
    return rows.release(plan, ledger, bits=SeededBits(2)), ledger


def test_every_form_says_that_there_is_no_interval(tmp_path: Path) -> None:
    release, _ = released(tmp_path, "joint")
    answers = release.values
    assert release.intervals[0] is None
    assert len(release.intervals[1]) == 2
    first, *_, last = csv.DictReader(io.StringIO(answers.csv()))
    assert (first["lower"], first["upper"], first["note"]) == ("", "", "no interval")
    assert (last["statistic"], last["note"]) == ("count", "")
    assert last["lower"]
    plain = json.loads(answers.json())["rows"]
    assert (plain[0]["lower"], plain[0]["upper"], plain[0]["note"]) == (None, None, "no interval")
    assert "note" not in plain[-1]
    assert "No interval" in answers._repr_html_()
    assert "nan" not in answers._repr_html_().lower()
    write_answers(answers, tmp_path / "answers.parquet")
    rows = duckdb.read_parquet(str(tmp_path / "answers.parquet")).fetchall()
    assert rows[0][-4:] == (None, None, "pay", "no interval")
    assert isinstance(rows[0][-5], float)


def test_with_intervals_only_there_is_nothing_to_note(tmp_path: Path) -> None:
    release, _ = released(tmp_path, "tree")
    assert "note" not in release.values.columns
    assert release.notes == ()
    assert all(ends is not None for ends in release.intervals)


def test_what_was_picked_is_told_and_certified(tmp_path: Path) -> None:
    release, ledger = released(tmp_path, "auto")
    why = "tree, since about 134 values at this epsilon are best counted in 12 bins"
    assert release.notes == (f"Method for the quantiles of pay in 'q': {why}.",)
    certificate = release.certificate(ledger)
    assert certificate.declared["method of quantiles of pay in q"] == why
    assert set(certificate.declared) == {*COLUMNS, "method of quantiles of pay in q"}
    assert certificate.verify(ledger) == ()


def test_a_pick_goes_by_declarations_alone() -> None:
    empty = PEOPLE.slice(0, 0)
    for held in (PEOPLE, empty):
        rows = Table(held, unit="record", columns=COLUMNS)
        plan = rows.plan(asked("auto", [i / 16 for i in range(1, 16)]), epsilon=1)
        assert plan.lines[0].choice is not None
        assert plan.lines[0].choice.name == "recursive"
        assert _carry_out(plan, rows.source, bits=SeededBits(1)).values["q"].estimate.value.shape == (45,)


def test_a_rehearsal_answers_too() -> None:
    found = rehearse(table().plan(asked("auto"), epsilon=1)).values["q"]
    assert found.bounded
    assert 10 < found.at("f", 0.5)[0] < 40


# --- forecasts


@pytest.mark.parametrize("method", NAMED)
def test_forecasts_hold_and_say_what_is_not_known(method: str) -> None:
    rows = table()
    plan = rows.plan(asked(method, by=()), epsilon=4, quality=False)
    (each,) = forecasts(plan)
    assert each.error is not None
    assert each.note.endswith("no interval")
    assert "epsilon 4 for one value" in each.noise
    assert each.measure == ("pay" if method == "naive" else "ranks")
    pay = PEOPLE["pay"].to_numpy()
    distinct, counts = np.unique(
        np.rint(np.clip(pay[np.isfinite(pay)], 0, 50) * 10).astype(np.int64), return_counts=True
    )
    source = CountedValues(distinct, np.cumsum(counts))
    aims = np.array(QUARTILES) * source.size
    if method == "naive":
        return
    drawn = made(plan.lines[0]).draw(source, 60, SeededBits(2))
    off = np.maximum(source.count_below(drawn) - aims, aims - source.count_below(drawn + 1)).max(axis=1)
    assert np.mean(off <= each.error) >= 0.95


def test_a_law_turns_ranks_into_values() -> None:
    plain, law = (
        forecasts(
            table().plan(
                {"name": "q", "ask": [{"quantiles": "pay", "levels": [0.5], "method": "smooth", **more}]},
                epsilon=1,
            )
        )[0]
        for more in ({}, {"law": "uniform"})
    )
    assert plain.error is not None
    assert law.error == pytest.approx(plain.error / 400 * 50 + 0.1)  # and the radius
    near = "at most, of a value within 0.1 of the answer; mostly far less; no interval"
    assert plain.note == f"of about 400; {near}"
    assert (law.measure, law.note) == ("pay", f"if it is uniform as declared; {near}")


@pytest.mark.parametrize("method", NAMED)
def test_a_target_finds_an_epsilon(method: str) -> None:
    plan = table().plan(asked(method, by=()), epsilon=1)
    wanted = 200.0 if method != "naive" else 20.0
    found = epsilon_for(plan, "q", wanted)
    error = forecasts(found)[0].error
    assert error is not None
    assert 0.98 * wanted <= error <= wanted


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        ({"levels": [0.5], "method": "magic"}, "method"),
        ({"levels": [0.5], "method": 3}, "method"),
        (
            {"levels": [1e-9], "method": "joint"},
            "quantiles of pay in 'q' cannot be found by the method 'joint'",
        ),
        ({"levels": [i / 1000 for i in range(1, 999)], "method": "joint"}, "Use the recursive method"),
    ],
)
def test_what_a_method_cannot_do_is_told(ask: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        _ = table().plan({"name": "q", "ask": [{"quantiles": "pay", **ask}]}, epsilon=1).spends
