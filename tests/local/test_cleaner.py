import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mpmath import mp, mpf

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.accounting.spend import block_loss
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.local.cleaner import Cleaner, Method
from sourdine.local.cleaner.cleaner import shuffled
from sourdine.local.cleaner.correction import correction_of, pulled
from sourdine.local.cleaner.keys import KeyCells
from sourdine.local.cleaner.noise import LaplaceNoise, StaircaseNoise
from sourdine.local.cleaner.numbers import NumberCells
from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase
from sourdine.testing import ScriptedBits, SeededBits
from tests.frames.engines import ENGINES

AGE = {"type": "integer", "lower": 0, "upper": 120, "missing": 40}
INSIDE = (Method.LAPLACE, Method.STAIRCASE)
COLUMNS: dict[str, dict[str, object]] = {
    "age": AGE,
    "weight": {"type": "real", "lower": 30.0, "upper": 200.0, "granularity": 0.1},
    "sex": {"type": "category", "keys": ["f", "m"], "missing": "f"},
    "floor": {"type": "category", "keys": [-1, 0, 7]},
    "ill": {"type": "flag"},
}


def people(rows: int = 400) -> pa.Table:
    place = np.arange(rows)
    return pa.table(
        {
            "name": pa.array([f"secret {i}" for i in place]),
            "age": pa.array(place % 100, mask=place % 10 == 0),
            "weight": pa.array(50.0 + place % 37, mask=place % 4 == 0),
            "sex": pa.array(np.where(place % 3 == 0, "f", "m"), mask=place % 11 == 0),
            "floor": pa.array(np.array([-1, 0, 7, 99])[place % 4]),
            "ill": pa.array(place % 5 == 0, mask=place % 7 == 0),
        }
    )


def loud(**more: Any) -> Cleaner:
    """So little noise that hardly a cell changes."""
    return Cleaner(COLUMNS, each=60, **more)


# What a person pays


def test_a_person_pays_the_sum_of_the_cells_of_all_records() -> None:
    cleaner = Cleaner(COLUMNS, each=Fraction(1, 2), rows=3)
    assert cleaner.total == Fraction(15, 2)
    assert block_loss(cleaner.spends).epsilon == Fraction(15, 2)
    assert {spend.count for spend in cleaner.spends} == {3}


def test_the_epsilon_of_a_person_is_divided_over_records_and_columns() -> None:
    cleaner = Cleaner(COLUMNS, epsilon=8, rows=2, own={"ill": 2})
    assert cleaner.total == 8
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


# The law of a cell, by enumeration


def weights(mechanism: BoundedLaplace | BoundedStaircase, x: int) -> list[mpf]:
    """P(y | x), from the definition of each law."""
    laplace = isinstance(mechanism, BoundedLaplace)
    raw = []
    for y in range(mechanism.cells + 1):
        away = abs(y - x)
        if laplace:
            raw.append(mp.exp(-mpf(away) * mechanism.scale.denominator / mechanism.scale.numerator))
        else:
            steps = 0 if away < mechanism.inner else (away - mechanism.inner) // mechanism.period + 1
            raw.append(mp.exp(-steps * mpf(mechanism.drop.numerator) / mechanism.drop.denominator))
    total = mp.fsum(raw)
    return [each / total for each in raw]


def law(cells: NumberCells, x: int) -> list[mpf]:
    """The chances of every cleaned cell, missing last, of place x or of a missing cell (-1)."""
    assert isinstance(cells.noise, LaplaceNoise | StaircaseNoise)
    values = weights(cells.noise.mechanism, cells.last // 2 if x < 0 else x)
    if cells.coin is None:
        return values
    odds = mp.exp(mpf(cells.coin.epsilon.numerator) / cells.coin.epsilon.denominator)
    hidden = (odds if x < 0 else 1) / (1 + odds)
    return [*((1 - hidden) * each for each in values), hidden]


@pytest.mark.parametrize("method", INSIDE)
@pytest.mark.parametrize("missing", ["drop", 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_no_two_cells_are_told_apart_by_more_than_epsilon(
    method: Method, missing: object, epsilon: Fraction
) -> None:
    column = {"type": "integer", "lower": 1, "upper": 9, "missing": missing}
    (cells,) = Cleaner({"x": column}, each=epsilon, method=method).cells
    assert isinstance(cells, NumberCells)
    inputs = range(-1 if cells.keeps_missing else 0, cells.last + 1)
    with mp.workdps(40):
        laws = [law(cells, x) for x in inputs]
        worst = max(mp.log(a / b) for p in laws for q in laws for a, b in zip(p, q, strict=True))
        bound = mpf(epsilon.numerator) / epsilon.denominator
        assert worst <= bound * (1 + mpf(10) ** -30)
        if missing != "drop":
            assert worst >= bound * (1 - mpf(10) ** -6)


@pytest.mark.parametrize("method", INSIDE)
def test_cells_are_drawn_from_that_law(method: Method) -> None:
    column = {"type": "integer", "lower": 1, "upper": 9}
    (cells,) = Cleaner({"x": column}, each=2, method=method).cells
    assert isinstance(cells, NumberCells)
    n = 60_000
    for x in (-1, 0, 5):
        drawn = cells.sample(np.full(n, x), SeededBits(x + 2))
        counts = np.bincount(np.where(drawn.mask, 9, drawn.filled(0) - 1), minlength=10)
        chances = np.array([float(each) for each in law(cells, x)])
        square = ((counts - n * chances) ** 2 / (n * chances)).sum()
        assert square < 45  # of 9 degrees of freedom: once in a million


def test_unbiased_cells_are_right_on_average() -> None:
    column = {"type": "integer", "lower": 10, "upper": 130, "missing": 40}
    (cells,) = Cleaner({"x": column}, each=1, method=Method.UNBIASED).cells
    n = 100_000
    for truth in (10, 37, 130):
        drawn = cells.sample(np.full(n, truth - 10), SeededBits(truth))
        assert drawn.dtype == np.float64
        values = drawn.compressed()
        assert abs(values.mean() - truth) < 5 * values.std() / math.sqrt(n)
        assert 60**2 * 3 < values.var() < 60**2 * 4.3
        assert values.min() < 10
        assert values.max() > 130


def test_a_missing_key_is_a_key_like_others() -> None:
    (cells,) = Cleaner({"x": {"type": "category", "keys": ["a", "b"]}}, each=1).cells
    assert isinstance(cells, KeyCells)
    assert cells.mechanism.categories == 3
    n = 60_000
    p = math.e / (math.e + 2)
    for x, place in ((-1, 2), (0, 0)):
        drawn = cells.sample(np.full(n, x), SeededBits(3))
        counts = np.bincount(np.where(drawn.mask, 2, drawn.filled(0)), minlength=3)
        assert abs(counts[place] / n - p) < 5 * math.sqrt(p * (1 - p) / n)


# Tables in and out


def rows_of(made: object) -> list[dict[str, Any]]:
    if isinstance(made, pl.LazyFrame):
        made = made.collect()
    if isinstance(made, pl.DataFrame):
        return made.to_dicts()
    if isinstance(made, pd.DataFrame):
        return [
            {name: None if pd.isna(value) else value for name, value in row.items()}
            for row in made.to_dict("records")
        ]
    if isinstance(made, duckdb.DuckDBPyRelation):
        return [dict(zip(made.columns, row, strict=True)) for row in made.fetchall()]
    assert isinstance(made, pa.Table)
    return made.to_pylist()


def expected(rows: int) -> list[dict[str, Any]]:
    truth = people(rows).to_pylist()
    return [
        {
            "age": 40 if row["age"] is None else row["age"],
            "weight": row["weight"],
            "sex": row["sex"] or "f",
            "floor": row["floor"] if row["floor"] != 99 else None,
            "ill": row["ill"],
        }
        for row in truth
    ]


def alike(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> float:
    """The share of cells that are the same, numbers about the same."""
    same = 0
    for mine, theirs in zip(found, wanted, strict=True):
        assert list(mine) == list(theirs)
        for name, value in theirs.items():
            got = mine[name]
            near = name in ("age", "weight") and None not in (got, value) and abs(got - value) < 25
            same += near or got == value
    return same / (5 * len(wanted))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_kind_of_table_goes_in_and_the_same_kind_comes_out(engine: str, tmp_path: Path) -> None:
    table = ENGINES[engine](people(), tmp_path)
    cleaned = loud(share=0.5).clean(table, keep_order=True, bits=SeededBits(1))
    assert alike(rows_of(cleaned.values), expected(400)) > 0.98
    assert isinstance(
        cleaned.values, duckdb.DuckDBPyRelation if isinstance(table, str | Path) else type(table)
    )
    assert not cleaned.secure


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".ndjson", ".jsonl", ".parquet"])
def test_files_are_written_and_read_again(ending: str, tmp_path: Path) -> None:
    cleaner = loud(share=0.5)
    cleaned = cleaner.clean(people(), keep_order=True, bits=SeededBits(1))
    path = tmp_path / f"out{ending}"
    cleaned.write(path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    again = Cleaner.from_json(json.loads(json.dumps(cleaner.to_json()))).estimates(path)
    for name, made in cleaned.estimates().items():
        assert again[name].value == pytest.approx(made.value, rel=1e-12)


def test_types_depend_on_declarations_only() -> None:
    kinds = []
    for table in (people(400), people(1), people(0)):
        for cleaner in (loud(), Cleaner(COLUMNS, each=0.1)):
            cleaned = cleaner.clean(table)
            kinds.append(cleaned.values.schema)
            assert cleaned.values.num_rows == table.num_rows
    assert all(kind == kinds[0] for kind in kinds)
    assert [str(each.type) for each in kinds[0]] == ["int64", "double", "string", "int64", "bool"]
    frames = [Cleaner(COLUMNS, each=e).clean(people(20).to_pandas()).values.dtypes for e in (0.1, 60)]
    assert (frames[0] == frames[1]).all()


def test_what_is_not_declared_is_not_there() -> None:
    assert "name" not in loud().clean(people()).values.column_names


def test_odd_values_are_cleaned_like_others() -> None:
    table = pd.DataFrame({"x": [math.nan, math.inf, -math.inf, 1e300, -5.0, 3.0]})
    column = {"type": "real", "lower": 0.0, "upper": 10.0, "granularity": 1.0, "missing": 2.0}
    made = Cleaner({"x": column}, each=64).clean(table, keep_order=True, bits=SeededBits(1)).values
    assert made["x"].tolist() == [2, 2, 2, 10, 0, 3]


def test_values_lie_within_the_bounds_and_on_the_grid() -> None:
    for method in INSIDE:
        columns = {name: COLUMNS[name] for name in ("age", "weight")}
        made = Cleaner(columns, each=1, method=method).clean(people(), bits=SeededBits(4))
        ages, weight = (made.columns[name].compressed() for name in ("age", "weight"))
        assert ages.dtype == np.int64
        assert ages.min() >= 0
        assert ages.max() <= 120
        assert weight.min() >= 30
        assert weight.max() <= 200
        assert all(len(repr(float(each)).partition(".")[2]) == 1 for each in weight)


def test_a_real_without_a_grid_gets_one() -> None:
    (cells,) = Cleaner({"x": {"type": "real", "lower": -1.0, "upper": 2.0}}, each=1).cells
    assert isinstance(cells, NumberCells)
    assert 1 << 15 <= cells.last <= 1 << 17


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


# Estimates


def chances_of(mechanism: BoundedLaplace | BoundedStaircase, x: int) -> np.ndarray:
    """P(y | x) in floats."""
    away = np.abs(np.arange(mechanism.cells + 1) - x)
    if isinstance(mechanism, BoundedLaplace):
        raw = np.exp(-away / float(mechanism.scale))
    else:
        steps = np.where(away < mechanism.inner, 0, (away - mechanism.inner) // mechanism.period + 1)
        raw = np.exp(-float(mechanism.drop) * steps)
    return np.asarray(raw / raw.sum())


@pytest.mark.parametrize("method", INSIDE)
@pytest.mark.parametrize("cells", [5, 120, 5000])
def test_the_pull_towards_the_middle_is_known(method: Method, cells: int) -> None:
    kind = {Method.LAPLACE: BoundedLaplace, Method.STAIRCASE: BoundedStaircase}[method]
    mechanism = kind.calibrated(epsilon=1, lower=0, upper=cells, cells=cells)
    chances = chances_of(mechanism, 0)
    mean = float(chances @ np.arange(cells + 1)) / cells
    assert pulled(mechanism) == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize("method", INSIDE)
@pytest.mark.parametrize("cells", [7, 300])
def test_scores_have_no_more_bias_than_they_say(method: Method, cells: int) -> None:
    kind = {Method.LAPLACE: BoundedLaplace, Method.STAIRCASE: BoundedStaircase}[method]
    mechanism = kind.calibrated(epsilon=2, lower=0, upper=cells, cells=cells)
    found = correction_of(mechanism, 10_000)
    scores = found.of(np.arange(cells + 1))
    biases = []
    for x in range(cells + 1):
        chances = chances_of(mechanism, x)
        biases.append(abs(float(chances @ scores) - x))
    assert max(biases) <= found.bias
    assert found.bias <= 1.2 * max(biases) + 1e-9


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("missing", ["drop", 40])
def test_corrected_means_are_right_and_cleaned_means_are_not(method: Method, missing: object) -> None:
    truth = np.concatenate([np.full(60_000, 20.0), np.full(40_000, 35.0)])
    table = pd.DataFrame({"x": np.where(np.arange(100_000) % 5 == 0, np.nan, truth)})
    column = {"type": "integer", "lower": 0, "upper": 120, "missing": missing}
    mean = 26.0 if missing == "drop" else 28.8
    cleaned = Cleaner({"x": column}, each=3, method=method).clean(table, bits=SeededBits(5))
    made = cleaned.estimates()["x"]
    assert made.lower[0] <= mean <= made.upper[0]
    assert made.value[0] == pytest.approx(mean, abs=6)
    assert made.upper[0] - made.lower[0] < 25
    pulled_by = float(cleaned.columns["x"].mean()) - mean
    assert pulled_by > 6 if method in INSIDE else missing == "drop" or abs(pulled_by) < 2


def test_shares_are_rid_of_the_noise() -> None:
    table = pd.DataFrame({"x": ["a"] * 12_000 + ["b"] * 6_000 + [None] * 2_000})
    column = {"type": "category", "keys": ["a", "b", "c"]}
    made = Cleaner({"x": column}, each=1).clean(table, bits=SeededBits(6)).estimates()["x"]
    for found, low, high, truth in zip(made.value, made.lower, made.upper, (0.6, 0.3, 0, 0.1), strict=True):
        assert found == pytest.approx(truth, abs=0.03)
        assert low <= truth <= high


def test_where_all_is_lost_in_noise_the_whole_range_is_said() -> None:
    column = {"type": "integer", "lower": 0, "upper": 120}
    for rows in (0, 1, 3):
        table = pd.DataFrame({"x": np.full(rows, np.nan)})
        made = Cleaner({"x": column}, each=0.01).clean(table, bits=SeededBits(1)).estimates()["x"]
        assert made.lower[0] <= 0
        assert made.upper[0] >= 120


@pytest.mark.slow
@pytest.mark.parametrize("method", Method)
def test_intervals_of_means_cover(method: Method) -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(30, 9, 5_000).clip(0, 120).round().astype(np.int64)
    places = np.where(rng.random(5_000) < 0.2, -1, truth)
    mean = float(places[places >= 0].mean())
    (cells,) = Cleaner({"x": {"type": "integer", "lower": 0, "upper": 120}}, each=4, method=method).cells
    bits = SeededBits(8)
    held = 0
    for _ in range(400):
        made = cells.estimate(cells.sample(places, bits), 0.95)
        held += made.lower[0] <= mean <= made.upper[0]
    assert held >= 0.92 * 400  # of 0.95: less than once in a hundred by chance, and the seed is fixed


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_intervals_from_few_cells_are_not_too_narrow(method: Method, n: int) -> None:
    """A single cell shows no spread at all, and its interval once was a point."""
    column = {"type": "integer", "lower": 0, "upper": 100, "missing": 0}
    (cells,) = Cleaner({"x": column}, each=1, method=method).cells
    drawn = cells.sample(np.zeros(300 * n, np.int64), SeededBits(11)).reshape(300, n)
    made = [cells.estimate(row, 0.95) for row in drawn]
    held = sum(bool(each.lower[0] <= 0 <= each.upper[0]) for each in made)
    assert held >= 0.9 * 300  # with no less than the variance of the noise; as low as none without


def test_epsilons_that_no_mechanism_takes_are_refused_before_a_table_is_opened() -> None:
    for declared, more in (
        ({"type": "flag"}, {"each": Fraction(1, 1 << 21)}),
        ({"type": "integer", "lower": 0, "upper": 1}, {"each": Fraction(1, 1 << 16), "share": 0.001}),
        ({"type": "integer", "lower": 0, "upper": 1 << 28, "missing": 0}, {"each": Fraction(1, 1 << 16)}),
    ):
        with pytest.raises(InvalidParameter, match=r"'(epsilon|scale)'"):
            Cleaner({"x": declared}, **more)


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
    made = Cleaner(COLUMNS, epsilon=4).clean(people(), ledger=path)
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
    [lambda table: table.drop(["age"]), lambda table: table.set_column(1, "age", [["x"] * table.num_rows])],
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


def test_unknown_endings_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"'\.xls' is not written"):
        loud().clean(people()).write(tmp_path / "out.xls")
    with pytest.raises(InvalidParameter, match="cannot be written"):
        loud().clean(people()).write(tmp_path / "nowhere" / "out.csv")
