import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sourdine.accounting import block_loss
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.local.cleaner import Cleaner, CleanTable, Gap, Method
from sourdine.local.cleaner.cleaner import shuffled
from sourdine.testing import ScriptedBits, SeededBits
from tests.errors import refusal_of
from tests.local.cleaner.people import AGE, COLUMNS, people

# What a person pays


def test_a_person_pays_the_sum_of_the_cells_of_all_records() -> None:
    cleaner = Cleaner(COLUMNS, each=Fraction(1, 2), rows=3)
    prices = {cells.name: cells.price for cells in cleaner.cells}
    assert all(prices[name] == Fraction(1, 2) for name in ("age", "sex", "floor", "ill"))
    assert prices["weight"] < Fraction(
        41, 100
    )  # it keeps missing cells: tests/local/cleaner/test_numbers_noise.py
    assert cleaner.total == 3 * sum(prices.values())
    assert block_loss(cleaner.spends).epsilon == cleaner.total
    assert {spend.count for spend in cleaner.spends} == {3}


def test_the_epsilon_of_a_person_is_divided_over_records_and_columns() -> None:
    cleaner = Cleaner(COLUMNS, epsilon=8, rows=2, own={"ill": 2})
    assert 2 * sum(cells.epsilon for cells in cleaner.cells) == 8
    assert 7.8 < cleaner.total < 8
    assert {cells.name: cells.epsilon for cells in cleaner.cells} == {
        "age": Fraction(1, 2),
        "weight": Fraction(1, 2),
        "sex": Fraction(1, 2),
        "floor": Fraction(1, 2),
        "ill": 2,
    }


@pytest.mark.parametrize("method", Method)
def test_no_spend_costs_more_than_is_stated(method: Method) -> None:
    for cells in Cleaner(COLUMNS, each=Fraction(7, 10), method=method).cells:
        paid = float(block_loss(cells.spends).epsilon)
        assert paid <= 0.7
        assert paid == pytest.approx(0.7, rel=1e-6)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "'age' has no epsilon"),
        ({"epsilon": 0}, "must be above 0"),
        ({"each": -1}, "must be above 0"),
        ({"epsilon": 1, "each": 1}, "not both"),
        ({"epsilon": 2, "own": {"ill": 2}}, "be more than"),
        ({"epsilon": 9, "own": dict.fromkeys(COLUMNS, 1)}, "cost together"),
        ({"each": 1, "own": {"name": 1}}, "'name' that is not declared"),
        ({"each": 1, "methods": {"name": Method.LAPLACE}}, "'name' that is not declared"),
        ({"each": 1, "rows": 0}, "rows"),
        ({"each": 1, "share": 1}, "share"),
        ({"each": 65}, "the column 'age'"),
        ({"each": 1, "own": {"sex": 600}}, "the column 'sex'"),
        ({"each": 1, "method": "gauss"}, "method"),
    ],
)
def test_what_makes_no_sense_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Cleaner(COLUMNS, **more)


def test_columns_that_cannot_be_cleaned_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="No column"):
        Cleaner({}, each=1)
    with pytest.raises(InvalidParameter, match="at least two"):
        Cleaner({"x": {"type": "category", "keys": ["a"], "missing": "a"}}, each=1)
    fine = {"x": {"type": "real", "lower": 0.0, "upper": 1e6, "granularity": 0.01}}
    Cleaner(fine, each=1)
    with pytest.raises(InvalidParameter, match="coarser granularity"):
        Cleaner(fine, each=1, method=Method.STAIRCASE)


def test_epsilons_that_no_mechanism_takes_are_refused_before_a_table_is_opened() -> None:
    for declared, more in (
        ({"type": "flag"}, {"each": Fraction(1, 1 << 21)}),
        ({"type": "integer", "lower": 0, "upper": 1}, {"each": Fraction(1, 1 << 16), "share": 0.001}),
        ({"type": "integer", "lower": 0, "upper": 1 << 28, "missing": 0}, {"each": Fraction(1, 1 << 16)}),
    ):
        with pytest.raises(InvalidParameter, match=r"'(epsilon|scale)'"):
            Cleaner({"x": declared}, **more)


# The order of the records


def test_records_are_shuffled_unless_their_order_is_kept() -> None:
    table = pd.DataFrame({"x": np.arange(1000)})
    cleaner = Cleaner({"x": {"type": "integer", "lower": 0, "upper": 999, "missing": 0}}, each=64)
    kept = cleaner.clean(table, keep_order=True, bits=SeededBits(1)).values["x"]
    mixed = cleaner.clean(table, bits=SeededBits(1)).values["x"]
    assert np.corrcoef(kept, table["x"])[0, 1] > 0.9
    assert abs(np.corrcoef(mixed, table["x"])[0, 1]) < 0.2


def test_records_stay_together_when_they_are_shuffled() -> None:
    place = np.arange(500)
    table = pd.DataFrame({"a": place % 5, "b": place % 5})
    column = {"type": "category", "keys": [0, 1, 2, 3, 4], "missing": 0}
    made = Cleaner({"a": column, "b": column}, each=50).clean(table, bits=SeededBits(2)).values
    assert (made["a"] == made["b"]).all()


def test_every_order_is_as_likely() -> None:
    seen = np.zeros(6)
    bits = SeededBits(7)
    for _ in range(6000):
        order = shuffled(3, bits)
        seen[order[0] * 2 + (order[1] > order[2])] += 1
    assert ((seen - 1000) ** 2 / 1000).sum() < 40  # of 5 degrees of freedom: less than once in a million


def test_words_that_tie_are_drawn_anew() -> None:
    bits = ScriptedBits([5, 5, 1, 9, 8, 7])
    assert shuffled(3, bits).tolist() == [2, 1, 0]
    assert bits.left == 0


# What is said of a cleaning


def test_a_cleaning_is_described_and_read_back() -> None:
    cleaner = Cleaner(COLUMNS, each=0.3, rows=2, unit="patient", methods={"age": Method.STAIRCASE}, share=0.1)
    held = json.loads(json.dumps(cleaner.to_json()))
    assert Cleaner.from_json(held) == cleaner
    for change in (
        lambda: held | {"format": "other"},
        lambda: held | {"rows": 3},
        lambda: {name: value for name, value in held.items() if name != "columns"},
        lambda: 7,
    ):
        with pytest.raises(InvalidParameter, match="describes no cleaning"):
            Cleaner.from_json(change())


def test_words_say_what_a_cell_is_worth() -> None:
    cells = {each.name: each for each in Cleaner(COLUMNS, each=1).cells}
    assert cells["sex"].words() == "true 73.1 %, each other 26.8 %"
    assert "0.268941" in cells["sex"].remedy()
    assert cells["age"].words().startswith("within 11")
    assert "people at 0 have cleaned cells of mean 50, people at 120 of mean 70" in cells["age"].remedy()


# Payment


def ledger(folder: Path, limit: int, neighbours: Neighbours = Neighbours.REPLACE) -> Path:
    path = folder / "people.ledger"
    Ledger.create(path, Terms(budget=PureBudget(limit=limit), unit="person", neighbours=neighbours)).close()
    return path


def test_a_ledger_pays_before_anything_is_read(tmp_path: Path) -> None:
    path = ledger(tmp_path, 5)
    cleaner = Cleaner(COLUMNS | {"weight": COLUMNS["weight"] | {"missing": 70.0}}, epsilon=4)
    made = cleaner.clean(people(), ledger=path)
    assert made.receipt is not None
    assert made.receipt.price == 4
    with Ledger.open(path) as opened:
        certificate = made.certificate(opened)
        assert certificate.epsilon == 4
        assert certificate.verify(opened) == ()
    with pytest.raises(SourdineError, match="has 1 left"):
        Cleaner(COLUMNS, epsilon=4).clean(people(), ledger=path)


def test_a_ledger_of_others_does_not_pay(tmp_path: Path) -> None:
    path = ledger(tmp_path, 5)
    with pytest.raises(InvalidParameter, match="name them alike"):
        Cleaner(COLUMNS, epsilon=1, unit="visit").clean(people(), ledger=path)
    path.unlink()
    with pytest.raises(InvalidParameter, match="how many records"):
        Cleaner(COLUMNS, epsilon=1).clean(people(), ledger=ledger(tmp_path, 5, Neighbours.ADD_REMOVE))


@pytest.mark.parametrize(
    "spoil",
    [lambda table: table.drop(["age"]), lambda table: table.set_column(1, "age", [[b"x"] * table.num_rows])],
)
def test_a_table_that_does_not_fit_costs_nothing(
    spoil: Callable[[pa.Table], pa.Table], tmp_path: Path
) -> None:
    path = ledger(tmp_path, 5)
    with pytest.raises(InvalidParameter, match="age"):
        Cleaner(COLUMNS, epsilon=1).clean(spoil(people()), ledger=path)
    with Ledger.open(path) as opened:
        assert opened.status().spent == 0


def test_a_table_that_breaks_off_tells_nothing_of_itself(tmp_path: Path) -> None:
    table = duckdb.connect().sql("SELECT CAST(error('a secret') AS INTEGER) AS age")
    with pytest.raises(SourdineError, match="read to its end") as told:
        Cleaner({"age": AGE}, epsilon=1).clean(table)
    assert "secret" not in str(told.value)


# Cells that are shown as missing


def _complete(gap: Gap, rows: int = 400, **more: Any) -> CleanTable:
    return Cleaner(COLUMNS, each=2, gap=gap, **more).clean(people(rows), keep_order=True, bits=SeededBits(5))


def test_a_dropped_record_is_one_whose_cleaned_cells_say_missing_and_no_other() -> None:
    kept, dropped = _complete(Gap.KEEP), _complete(Gap.DROP)
    for name, each in kept.columns.items():  # the reports are the same: the rule comes after the noise
        assert np.ma.allequal(each, dropped.columns[name])
    whole = ~np.any([np.ma.getmaskarray(each) for each in kept.columns.values()], axis=0)
    assert 0 < whole.sum() < kept.size == dropped.size == kept.handed_out
    assert dropped.handed_out == len(dropped.values) == whole.sum()
    for name, each in dropped.shown.items():
        assert each.tolist() == kept.columns[name][whole].tolist()


def test_only_the_cells_of_the_named_columns_decide_about_a_record() -> None:
    dropped = _complete(Gap.KEEP, gaps={"ill": Gap.DROP})
    assert dropped.handed_out == dropped.columns["ill"].count()
    assert np.ma.getmaskarray(dropped.shown["weight"]).any()


def test_a_drawn_cell_is_any_value_alike_and_the_others_stay() -> None:
    kept, drawn = _complete(Gap.KEEP, 20_000), _complete(Gap.DRAW, 20_000)
    assert drawn.handed_out == kept.size
    for name, each in drawn.shown.items():
        reported = kept.columns[name]
        missing = np.ma.getmaskarray(reported)
        assert not np.ma.getmaskarray(each).any()
        assert (each.data[~missing] == reported.data[~missing]).all()
    new = drawn.shown["floor"].data[np.ma.getmaskarray(kept.columns["floor"])]
    assert np.abs(np.bincount(new, minlength=3) / len(new) - 1 / 3).max() < 0.03
    weights = drawn.shown["weight"].data[np.ma.getmaskarray(kept.columns["weight"])]
    assert abs(weights.mean() - 115) < 3
    assert 30 <= weights.min() < 31
    assert 199 < weights.max() <= 200


@pytest.mark.parametrize("gap", [Gap.DROP, Gap.DRAW])
@pytest.mark.parametrize("method", Method)
def test_a_table_with_a_rule_has_plain_types_that_learners_take(gap: Gap, method: Method) -> None:
    frame = people(60).to_pandas()
    made = Cleaner(COLUMNS, each=8, method=method, gap=gap).clean(frame, bits=SeededBits(1)).values
    assert not made.isna().any().any()
    assert {name: made[name].dtype.kind for name in ("age", "weight", "floor", "ill")} == {
        "age": "f" if method is Method.UNBIASED else "i",
        "weight": "f",
        "floor": "i",
        "ill": "b",
    }


def test_the_rule_changes_no_price_and_is_told_where_it_is_not_the_usual() -> None:
    plain, ruled = Cleaner(COLUMNS, each=1), Cleaner(COLUMNS, each=1, gaps={"ill": Gap.DRAW})
    assert plain.total == ruled.total
    assert "gap" not in json.dumps(plain.to_json())
    assert Cleaner.from_json(json.loads(json.dumps(ruled.to_json()))) == ruled
    with refusal_of("gap"):
        Cleaner(COLUMNS, each=1, gap="draw")  # type: ignore[arg-type]


def test_estimates_are_of_all_reports_and_not_of_what_a_rule_has_left() -> None:
    kept, dropped = _complete(Gap.KEEP), _complete(Gap.DROP)
    for name, made in kept.estimates().items():
        assert (made.value == dropped.estimates()[name].value).all()
    with pytest.raises(InvalidParameter, match="left out or drawn anew"):
        dropped.cleaner.estimates(dropped.values)
