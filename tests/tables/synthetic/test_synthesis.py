import threading
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import BudgetExceeded, InvalidParameter, SourdineError
from sourdine.frames import PrivacyUnit, Source
from sourdine.tables import Query, Table
from sourdine.tables.synthetic import SyntheticRelease
from sourdine.tables.synthetic.synthesis import carry_out
from sourdine.testing import SeededBits
from tests.tables.synthetic.case import COLUMNS, rows, table

DELTA = 1e-6
TYPES = "age long, sex string, town string, works boolean, pay double"


def book(folder: Path, epsilon: float = 5, **terms: Any) -> Path:
    path = folder / "people.ledger"
    Ledger.create(path, epsilon=epsilon, delta=DELTA, unit="person", **terms).close()
    return path


def draw(people: Table, epsilon: float = 2, seed: int = 1, **declared: Any) -> SyntheticRelease:
    plan = people.synthetic_plan(epsilon=epsilon, delta=DELTA, **declared)
    return carry_out(plan, people.source, bits=SeededBits(seed))


def test_it_is_paid_once_and_certified(tmp_path: Path) -> None:
    path = book(tmp_path)
    release = table().synthesize(epsilon=1, delta=DELTA, ledger=path, mark="kind")
    assert release.secure
    certificate = release.certificate(path)
    assert certificate.epsilon == pytest.approx(1, rel=1e-6)
    assert "synthetic table" in certificate.declared
    with Ledger.open(path) as ledger:
        assert len(ledger.history()) == 1
    frame = release.values.to_pandas()
    assert list(frame) == [*COLUMNS, "kind"]
    assert set(frame["kind"]) == {"synthetic"}
    assert frame["age"].dropna().between(0, 99).all()
    assert len(release.model.draw(17)) == 17
    assert release.values.to_polars().shape == frame.shape == release.values.to_arrow().to_pandas().shape


def test_relations_of_the_table_are_there() -> None:
    frame = draw(table(20_000), epsilon=5).values.to_polars()
    old = frame.filter(pl.col("age") >= 70)
    assert len(old.filter(pl.col("works"))) < 0.05 * len(old)
    paid = frame.filter(pl.col("works"))["pay"]
    assert paid.null_count() < 0.1 * len(paid)
    assert abs(len(frame) - 20_000) < 100
    towns = frame.filter(pl.col("sex") == "f")["town"].value_counts(normalize=True)
    assert dict(towns.rows())["Lille"] == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("target", [None, "sex"])
def test_every_engine_gives_the_same_rows_for_the_same_bits(tmp_path: Path, target: str | None) -> None:
    columns = rows(500)
    file = tmp_path / "people.csv"
    pl.DataFrame(columns).write_csv(file)
    pl.DataFrame(columns).write_parquet(tmp_path / "people.parquet")
    frame = pl.DataFrame(columns).to_pandas()
    connection = duckdb.connect()
    tables = [
        pa.table(columns),
        pl.DataFrame(columns),
        frame,
        connection.sql("SELECT * FROM frame"),
        file,
        tmp_path / "people.parquet",
    ]
    found = []
    for each in tables:
        people = Table(each, unit="person", columns=COLUMNS)
        values = draw(people, target=target).values
        found.append({name: each.tolist() for name, each in values.columns.items()})
    assert all(each == found[0] for each in found)


@pytest.mark.slow
def test_spark_gives_the_same_rows(spark: Any) -> None:
    frame = spark.createDataFrame(list(zip(*rows(300).values(), strict=True)), TYPES)
    ours = draw(Table(frame, unit="person", columns=COLUMNS)).values
    other = draw(Table(pa.table(rows(300)), unit="person", columns=COLUMNS)).values
    assert ours.to_polars().equals(other.to_polars())


@pytest.mark.slow
def test_spark_takes_one_record_of_each_unit(spark: Any) -> None:
    columns = {**rows(300), "id": [place // 3 for place in range(300)]}
    frame = spark.createDataFrame(list(zip(*columns.values(), strict=True)), f"{TYPES}, id long")
    unit = PrivacyUnit("person", column="id", max_rows=3)
    ours = draw(Table(frame, unit=unit, columns=COLUMNS), epsilon=50)
    assert len(ours.values) == pytest.approx(100, abs=5)


@pytest.mark.parametrize("declared", [{}, {"target": "town"}, {"leave_out": ("age", "works")}])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_rows_lack_no_value_where_no_record_does(declared: dict[str, Any], neighbours: str) -> None:
    columns = {name: each for name, each in rows(4700).items() if name != "pay"}
    kinds = {name: COLUMNS[name] for name in columns} | {
        "day": {"type": "date", "first": "2024-01-01", "last": "2024-12-31", "period": "month"}
    }
    columns["day"] = [date(2024, 1 + place % 12, 1) for place in range(4700)]
    people = Table(pa.table(columns), unit="person", columns=kinds, neighbours=neighbours)
    for seed in range(4):
        frame = draw(people, epsilon=1, seed=seed, **declared).values.to_polars()
        assert sum(frame.null_count().row(0)) == 0


def test_rows_lack_values_as_often_as_records_do() -> None:
    columns = rows(4700)
    columns["town"] = [None if place % 5 == 0 else town for place, town in enumerate(columns["town"])]
    people = Table(pa.table(columns), unit="person", columns=COLUMNS)
    shares = [each is None for each in columns["pay"]]
    targets: list[dict[str, Any]] = [{}, {"target": "town"}]
    for declared in targets:
        frame = draw(people, epsilon=5, **declared).values.to_polars()
        assert frame["town"].null_count() == pytest.approx(4700 / 5, abs=100)
        assert frame["pay"].null_count() == pytest.approx(sum(shares), abs=150)


def test_the_order_of_records_means_nothing() -> None:
    turned = {name: each[::-1] for name, each in rows(400).items()}
    here, there = (
        draw(Table(pa.table(each), unit="person", columns=COLUMNS)).values.to_polars()
        for each in (rows(400), turned)
    )
    assert here.equals(there)


def test_each_unit_counts_once() -> None:
    columns: dict[str, Any] = {**rows(3000), "id": [place // 3 for place in range(2997)] + [None] * 3}
    unit = PrivacyUnit("person", column="id", max_rows=3)
    release = draw(Table(pa.table(columns), unit=unit, columns=COLUMNS), epsilon=50)
    assert len(release.values) == pytest.approx(999, abs=8)
    assert any("table of units" in note for note in release.notes)


def test_zeros_rows_and_levels_are_kept(tmp_path: Path) -> None:
    people = table(4000)
    release = draw(people, epsilon=0.5, zeros=[{"sex": ["m"], "town": ["Lille"]}], rows=777)
    frame = release.values.to_polars()
    assert len(frame) == 777
    assert frame.filter((pl.col("sex") == "m") & (pl.col("town") == "Lille")).is_empty()


def test_an_empty_table_gives_a_table_like_any_other() -> None:
    nobody = pa.table({name: pa.array([], pa.string()) for name in COLUMNS})
    for target in (None, "sex"):
        release = draw(Table(nobody, unit="person", columns=COLUMNS), target=target)
        assert len(release.values) >= 1


def test_nothing_is_spent_on_what_is_wrong(tmp_path: Path) -> None:
    path = book(tmp_path)
    people = table(300)
    mistakes: list[dict[str, Any]] = [
        {"delta": None},
        {"delta": DELTA, "columns": ["height"]},
        {"delta": DELTA, "target": "town"},
        {"delta": DELTA, "bins": {"age": 1000}},
    ]
    for wrong in mistakes:
        with pytest.raises(InvalidParameter):
            people.synthesize(epsilon=1, ledger=path, **wrong)
    with pytest.raises(InvalidParameter, match="must be paid for"):
        people.synthesize(epsilon=1, delta=DELTA, ledger=None)  # type: ignore[arg-type]
    with pytest.raises(BudgetExceeded):
        people.synthesize(epsilon=50, delta=DELTA, ledger=path)
    other = Table(pa.table(rows(10)), unit="patient", columns=COLUMNS)
    with pytest.raises(InvalidParameter, match="Name them alike"):
        other.synthesize(epsilon=1, delta=DELTA, ledger=path)
    Ledger.create(tmp_path / "pure.ledger", epsilon=3, unit="person").close()
    with pytest.raises(InvalidParameter, match="keeps pure epsilon"):
        people.synthesize(epsilon=1, delta=DELTA, ledger=tmp_path / "pure.ledger")
    with Ledger.open(path) as ledger:
        assert not ledger.history()


def test_nothing_is_read_before_the_charge_and_no_error_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = book(tmp_path)
    people = table(50)
    paid: list[int] = []

    def fail(*_: object) -> None:
        with Ledger.open(path) as ledger:
            paid.append(len(ledger.history()))
        raise ValueError("the secret of row 7")

    monkeypatch.setattr(Source, "columns", fail)
    with pytest.raises(SourdineError, match="stays charged") as told:
        people.synthesize(epsilon=1, delta=DELTA, ledger=path)
    assert paid == [1]
    assert "secret" not in str(told.value)


def test_two_at_once_never_overspend(tmp_path: Path) -> None:
    path, done, refused = book(tmp_path, epsilon=1), [], []
    people = [table(200) for _ in range(4)]

    def run(one: Table) -> None:
        try:
            done.append(one.synthesize(epsilon=0.9, delta=DELTA, ledger=path))
        except BudgetExceeded as problem:
            refused.append(problem)

    threads = [threading.Thread(target=run, args=(each,)) for each in people]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (len(done), len(refused)) == (1, 3)


def test_published_counts_make_it_closer(tmp_path: Path) -> None:
    columns = {
        "sex": {"type": "category", "keys": ["f", "m"], "missing": "f"},
        "town": {"type": "category", "keys": ["Lille", "Nice", "Toulon"], "missing": "Nice"},
    }
    people = Table(pa.table(rows(3000)), unit="person", columns=columns)
    ledger = Ledger.create(tmp_path / "l", epsilon=40, delta=DELTA, unit="person")
    query = Query.read({"name": "towns", "ask": ["count"], "by": ["sex", "town"]})
    published = people.release(people.plan(query, epsilon=30, delta=DELTA, noise="gaussian"), ledger)
    truth = people.source.ask(
        f"SELECT count(*) FROM {people.source.name} WHERE sex = 'f' AND town = 'Lille'"
    )[0][0]
    off = []
    for given in (None, published):
        release = people.synthesize(
            epsilon=0.03,
            delta=DELTA,
            ledger=ledger,
            published=given,
            bits=SeededBits(1),
        )
        frame = release.values.to_polars()
        drawn = frame.filter((pl.col("sex") == "f") & (pl.col("town") == "Lille"))
        off.append(abs(len(drawn) - truth))
    assert off[1] < 20 < off[0]
    with pytest.raises(InvalidParameter, match="without a target"):
        people.synthesize(epsilon=0.1, delta=DELTA, ledger=ledger, target="sex", published=published)
    ledger.close()
