"""A series from its start to its end: paid once, in order, and each unit as often as it may."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import BudgetExceeded, InvalidParameter, SourdineError
from sourdine.frames import PrivacyUnit, Source, open_source
from sourdine.tables.series import SeriesView, TableSeries
from sourdine.testing import SeededBits
from tests.tables.series.case import make_plan

Make = Callable[..., Source]
MANY = [(i, 1 + i % 6, "north" if i % 3 else "south") for i in range(600)]


def sums(series: TableSeries) -> list[list[int]]:
    """The private exact sums, by period and key."""
    keys = series._state.keys(0)
    return series.history(0, keys, series.status().closed).T.tolist()


def test_a_series_is_paid_once_and_counts_what_arrived(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    plan = make_plan()
    series = TableSeries.start(plan, tmp_path / "visits.series", ledger)
    paid = ledger.status().spent
    assert 0 < paid <= plan.privacy.total
    for week in range(1, 7):
        answers = series.publish(source(MANY), bits=SeededBits(week))
    assert ledger.status().spent == paid
    assert sums(series) == [[0, 100], [100, 0], [100, 0]] * 2
    total = answers.value(SeriesView())
    assert total.at("north")[0] == pytest.approx(400, abs=6 * float(total.deviation[0]))
    assert series.status().next_period is None
    with pytest.raises(InvalidParameter, match="Extend it"):
        series.publish(source(MANY))


def test_a_period_again_shows_the_same_numbers(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    series = TableSeries.start(make_plan(), tmp_path / "s.series", ledger)
    first = series.publish(source(MANY)).columns
    again = TableSeries.open(make_plan(), tmp_path / "s.series").publish(source([]), 1).columns
    assert first == again
    later = series.publish(source(MANY)).columns
    assert [
        row for row, name in zip(later["value"], later["period"], strict=True) if name == "2024-W01"
    ] == first["value"]


def test_periods_are_closed_in_order(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    series = TableSeries.start(make_plan(), tmp_path / "s.series", ledger)
    with pytest.raises(InvalidParameter, match="in order"):
        series.publish(source(MANY), "2024-W03")
    with pytest.raises(InvalidParameter, match="no such period"):
        series.publish(source(MANY), "2023-W04")
    with pytest.raises(InvalidParameter, match="Publish it first"):
        series.answers()


@pytest.mark.parametrize(
    ("block", "counted"),
    [
        ({}, [1, 0, 0, 0, 0, 0]),
        ({"times": 2}, [1, 1, 0, 0, 0, 0]),
        ({"times": 3, "separation": 2}, [1, 0, 1, 0, 1, 0]),
        ({"times": 6}, [1, 1, 1, 1, 1, 1]),
        ({"total": 4}, [1, 1, 1, 1, 0, 0]),
    ],
)
def test_a_unit_counts_as_often_as_it_may(
    tmp_path: Path, ledger: Ledger, source: Make, block: dict[str, Any], counted: list[int]
) -> None:
    plan = make_plan(**block)
    series = TableSeries.start(plan, tmp_path / "s.series", ledger)
    often = [("anna", week, "north") for week in range(1, 7)]
    others = [(f"b{week}", week, "north") for week in range(1, 7)]
    for _ in range(6):
        series.publish(source(often + others))
    assert [north - 1 for north, _ in sums(series)] == counted


def test_a_rewritten_date_counts_once(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    series = TableSeries.start(make_plan(), tmp_path / "s.series", ledger)
    series.publish(source([("anna", 1, "north"), ("ben", 1, "south")]))
    series.publish(source([("anna", 2, "north"), ("ben", 1, "south")]))
    assert sums(series) == [[1, 1], [0, 0]]


def test_records_of_nobody_count_in_no_period(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    series = TableSeries.start(make_plan(), tmp_path / "s.series", ledger)
    series.publish(source([("anna", 1, "north"), (None, 1, "north"), (None, 1, "south")]))
    assert sums(series) == [[1, 0]]


def test_each_record_as_a_unit(tmp_path: Path, source: Make) -> None:
    plan = make_plan(unit=PrivacyUnit("visit"))
    ledger = Ledger.create(tmp_path / "each.ledger", epsilon=40, delta=1e-6, unit="visit")
    series = TableSeries.start(plan, tmp_path / "s.series", ledger)
    series.publish(source([("anna", 1, "north"), ("anna", 1, "north"), ("anna", 2, "north")]))
    assert sums(series) == [[2, 0]]
    with pytest.raises(InvalidParameter, match="counts in one period"):
        make_plan(unit=PrivacyUnit("visit"), times=2)


def test_each_period_may_have_a_table_of_its_own(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    series = TableSeries.start(make_plan(arrived=None), tmp_path / "s.series", ledger)
    series.publish(source([("anna", 1, "north")]))
    series.publish(source([("anna", 5, "north"), ("ben", 5, "north")]))
    assert sums(series) == [[1, 0], [1, 0]]


def test_late_records_are_dropped_where_declared(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    plan = make_plan(happened="arrived", late="drop")
    series = TableSeries.start(plan, tmp_path / "s.series", ledger)
    series.publish(source([("anna", 1, "north")]))
    assert sums(series) == [[1, 0]]
    with pytest.raises(SourdineError, match="two columns"):
        make_plan(late="drop")


def test_a_key_that_is_declared_later_has_zeros_before(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    place = tmp_path / "s.series"
    TableSeries.start(make_plan(), place, ledger).publish(source([("anna", 1, "north")]))
    wider = make_plan(keys=("north", "south", "east"))
    series = TableSeries.open(wider, place)
    answers = series.publish(source([("ben", 2, "east"), ("eve", 1, "east")], wider))
    assert sums(series) == [[1, 0, 0], [0, 0, 1]]
    period = answers.value(SeriesView(window=1))
    assert period.deviation[2] < period.deviation[0]
    with pytest.raises(InvalidParameter, match="some are gone"):
        TableSeries.open(make_plan(), place)


def test_more_keys_never_let_a_unit_move_more(tmp_path: Path, ledger: Ledger) -> None:
    unit = PrivacyUnit("person", column="id", max_groups=3)
    TableSeries.start(make_plan(unit=unit), tmp_path / "s.series", ledger)
    with pytest.raises(InvalidParameter, match="counts in more of them"):
        TableSeries.open(make_plan(unit=unit, keys=("north", "south", "east")), tmp_path / "s.series")


def test_other_declarations_are_refused(tmp_path: Path, ledger: Ledger) -> None:
    TableSeries.start(make_plan(), tmp_path / "s.series", ledger)
    for other in (make_plan(times=2), make_plan(epsilon=7), make_plan(periods=7)):
        with pytest.raises(InvalidParameter, match="other declarations"):
            TableSeries.open(other, tmp_path / "s.series")


def test_a_start_that_was_cut_off_is_paid_once(
    tmp_path: Path, ledger: Ledger, source: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, place = make_plan(), tmp_path / "s.series"
    with monkeypatch.context() as patch:
        patch.setattr("sourdine.tables.series.state.SeriesState.write_note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            TableSeries.start(plan, place, ledger)
    paid = ledger.status().spent
    assert paid > 0
    with pytest.raises(InvalidParameter, match="not paid yet"):
        TableSeries.open(plan, place).publish(source(MANY))
    TableSeries.start(plan, place, ledger).publish(source(MANY))
    assert ledger.status().spent == paid
    with pytest.raises(InvalidParameter, match="started already"):
        TableSeries.start(plan, place, ledger)


def test_too_little_budget_leaves_nothing_paid(tmp_path: Path, source: Make) -> None:
    small = Ledger.create(tmp_path / "small.ledger", epsilon=1, delta=1e-6)
    with pytest.raises(BudgetExceeded):
        TableSeries.start(make_plan(), tmp_path / "s.series", small)
    assert small.status().spent == 0


def test_a_restored_copy_refuses_rows_until_told(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    plan, place = make_plan(), tmp_path / "s.series"
    series = TableSeries.start(plan, place, ledger)
    series.publish(source(MANY))
    shutil.copy(place, tmp_path / "backup")
    shown = series.publish(source(MANY)).columns
    series.close()
    shutil.copyfile(tmp_path / "backup", place)  # the same file, with older content
    restored, paid = TableSeries.open(plan, place), ledger.status().spent
    assert restored.status().restored
    assert restored.publish(source([]), 1).closed == 1  # what it knows is still shown
    with pytest.raises(InvalidParameter, match="was restored"):
        restored.publish(source(MANY))
    assert restored.resume(2, ledger) == 1
    line = restored.lines[0]
    reach = line.mechanism.matrix.row_reach(line.mechanism.participation)
    again = reach**2 / (2 * line.mechanism.unit_noise**2)
    assert ledger.status().spent - paid == again
    assert restored.publish(source(MANY)).columns != shown


def test_a_backup_that_is_restored_twice_is_paid_for_twice(
    tmp_path: Path, ledger: Ledger, source: Make
) -> None:
    plan, place, spent = make_plan(), tmp_path / "s.series", []
    series = TableSeries.start(plan, place, ledger)
    series.publish(source(MANY))
    shutil.copy(place, tmp_path / "backup")
    series.publish(source(MANY))
    series.close()
    for _ in range(2):
        shutil.copyfile(tmp_path / "backup", place)
        with TableSeries.open(plan, place) as restored:
            spent.append(ledger.status().spent)
            restored.resume(2, ledger)
            restored.publish(source(MANY))
    spent.append(ledger.status().spent)
    assert spent[2] - spent[1] == spent[1] - spent[0] > 0


def test_a_resumption_that_was_cut_off_is_paid_once(
    tmp_path: Path, ledger: Ledger, source: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, place = make_plan(), tmp_path / "s.series"
    with TableSeries.start(plan, place, ledger) as series:
        before = ledger.status().spent
        with monkeypatch.context() as patch:
            patch.setattr("sourdine.tables.series.state.SeriesState.turn", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                series.resume(1, ledger)
        paid = ledger.status().spent
        assert paid > before
        assert series.resume(1, ledger) == 1
        assert ledger.status().spent == paid


def test_rows_that_are_read_after_a_crash_are_witnessed_before_they_are_shown(
    tmp_path: Path, ledger: Ledger, source: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an older state, put back in place of the newer one, would draw them again for nothing."""
    plan, place = make_plan(), tmp_path / "s.series"
    with TableSeries.start(plan, place, ledger) as series:
        series.publish(source(MANY))
        shutil.copy(place, tmp_path / "backup")
        with monkeypatch.context() as patch:
            patch.setattr("sourdine.tables.series.state.SeriesState.witness", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                series.publish(source(MANY))
    with TableSeries.open(plan, place) as series:
        assert series.answers().closed == 2  # somebody reads a report
    shutil.copyfile(tmp_path / "backup", place)
    with TableSeries.open(plan, place) as restored:
        assert restored.status().restored


def test_a_start_that_is_restored_does_not_forget_what_was_shown(
    tmp_path: Path, ledger: Ledger, source: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, place = make_plan(), tmp_path / "s.series"
    with monkeypatch.context() as patch:
        patch.setattr("sourdine.tables.series.state.SeriesState.write_note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            TableSeries.start(plan, place, ledger)
    shutil.copy(place, tmp_path / "backup")  # of a start that was cut off
    with TableSeries.start(plan, place, ledger) as series:
        series.publish(source(MANY))
    shutil.copyfile(tmp_path / "backup", place)
    with (
        TableSeries.start(plan, place, ledger) as restored,
        pytest.raises(InvalidParameter, match="was restored"),
    ):
        restored.publish(source(MANY))


def test_a_moved_state_is_told_from_the_one_it_was(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    plan, place = make_plan(), tmp_path / "s.series"
    TableSeries.start(plan, place, ledger).publish(source(MANY))
    shutil.copy(place, tmp_path / "copy.series")
    shutil.copy(f"{place}.shown", tmp_path / "copy.series.shown")
    copy, paid = TableSeries.open(plan, tmp_path / "copy.series"), ledger.status().spent
    assert copy.status().restored
    assert copy.resume(1, ledger) == 0
    assert ledger.status().spent == paid
    copy.publish(source(MANY))


def test_rows_committed_and_never_shown_are_shown_for_free(
    tmp_path: Path, ledger: Ledger, source: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, place = make_plan(), tmp_path / "s.series"
    series, paid = TableSeries.start(plan, place, ledger), ledger.status().spent
    for week in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr("sourdine.tables.series.state.SeriesState.witness", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                series.publish(source(MANY))
        series = TableSeries.open(plan, place)
        assert not series.status().restored
        assert series.publish(source([]), week).closed == week
    assert ledger.status().spent == paid


def test_a_longer_horizon_costs_what_its_columns_are_longer(
    tmp_path: Path, ledger: Ledger, source: Make
) -> None:
    plan, place = make_plan(extensible=True), tmp_path / "s.series"
    series = TableSeries.start(plan, place, ledger)
    first = series.publish(source(MANY)).columns["value"]
    paid = ledger.status().spent
    series.extend(12, ledger)
    whole = [line.spend.loss().rho for line in series.lines]
    assert ledger.status().spent == sum(whole)
    assert paid < ledger.status().spent < paid * 2
    again = TableSeries.open(plan, place)
    assert again.periods == 12
    assert again.publish(source([]), 1).columns["value"] == first
    for _ in range(2, 9):
        again.publish(source(MANY))
    fixed = TableSeries.start(make_plan(publish=["total"]), tmp_path / "t.series", ledger)
    with pytest.raises(InvalidParameter, match="extensible"):
        fixed.extend(12, ledger)


def test_trees_pay_for_pure_epsilon(tmp_path: Path, source: Make) -> None:
    plan = make_plan(delta=None, publish=["total"], periods=104)
    pure = Ledger.create(tmp_path / "pure.ledger", epsilon=8)
    series = TableSeries.start(plan, tmp_path / "s.series", pure)
    assert plan.choice.name.startswith("tree")
    assert pure.status().spent == 8
    for _ in range(6):
        answers = series.publish(source(MANY))
    total = answers.value(SeriesView())
    assert total.value == pytest.approx([400, 200], abs=12 * float(total.deviation.max()))


def test_the_state_is_private_and_names_nobody(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    place = tmp_path / "s.series"
    TableSeries.start(make_plan(), place, ledger).publish(source([("anna-secret", 1, "north")]))
    assert b"anna-secret" not in place.read_bytes()
    assert place.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(place)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM participations").fetchone()
        assert count == 1
        with pytest.raises(sqlite3.IntegrityError, match="never change"):
            connection.execute("UPDATE periods SET rows = sums")


def test_errors_of_engines_tell_nothing(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    series = TableSeries.start(make_plan(), tmp_path / "s.series", ledger)
    broken = source(MANY)
    broken.engine.connection.close() if hasattr(broken.engine, "connection") else None
    with pytest.raises(SourdineError):
        series.publish(broken)
    assert series.status().closed == 0


def test_sums_of_a_column_and_replaced_units(tmp_path: Path, source: Make) -> None:
    from sourdine.core.distance import Neighbours

    add = make_plan(ask=["count", {"sum": "pay"}])
    swap = make_plan(ask=["count", {"sum": "pay"}], neighbours=Neighbours.REPLACE)
    assert [line.distance.amount for line in add.lines] == [1, 100**2]
    assert [line.distance.amount for line in swap.lines] == [2, 4 * 100**2]
    assert sum(spend.loss().rho for spend in add.spends) <= add.privacy.total
    kept = json.loads(json.dumps([line.mechanism.to_json() for line in add.lines]))
    assert kept[0]["mechanism"] == "correlated-gaussian/1"


def test_what_does_not_add_up_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="does not add up"):
        make_plan(ask={"mean": "pay"})
    with pytest.raises(InvalidParameter, match="not declared as a date"):
        make_plan(arrived="region")


def test_noise_of_periods_hangs_together_as_the_matrix_says(
    tmp_path: Path, ledger: Ledger, source: Make
) -> None:
    """Totals of a series that is drawn many times deviate as forecast."""
    series = TableSeries.start(make_plan(publish=["total"]), tmp_path / "s.series", ledger)
    mechanism = series.lines[0].mechanism
    rows = mechanism.sample(np.zeros((4000, 6), np.int64), SeededBits(3))
    weights = mechanism.matrix.coefficients(1, 6)
    seen = float(np.std(rows @ weights))
    told = float(mechanism.unit_noise) * float(np.linalg.norm(weights))
    assert seen == pytest.approx(told, rel=0.06)


def test_a_period_that_is_not_over_is_refused(tmp_path: Path, ledger: Ledger, source: Make) -> None:
    today = date.today()
    plan = make_plan(period="day", first=today, arrived=None)
    series = TableSeries.start(plan, tmp_path / "s.series", ledger)
    with pytest.raises(InvalidParameter, match="is not over"):
        series.publish(source([]))
    assert series.publish(source([("anna", 1, "north")]), early=True).closed == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PySpark warns of the pandas that is installed
def test_a_series_is_published_from_spark(tmp_path: Path, ledger: Ledger, spark: Any) -> None:
    plan = make_plan()
    rows = [(7, date(2024, 1, 1), "north"), (7, date(2024, 1, 8), "north"), (8, date(2024, 1, 8), "north")]
    frame = spark.createDataFrame(rows, "id long, arrived date, region string")
    series = TableSeries.start(plan, tmp_path / "s.series", ledger)
    for _ in range(2):
        series.publish(open_source(frame, plan.schema, ["id"]))
    assert sums(series) == [[1, 0], [1, 0]]
