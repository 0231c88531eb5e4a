from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import SourdineError
from sourdine.frames import PrivacyUnit
from sourdine.tables import Table
from sourdine.tables.synthetic import SyntheticRelease
from sourdine.tables.synthetic.synthesis import carry_out
from sourdine.testing import SeededBits

JOBS = ["nurse"] * 400 + ["smith"] * 300 + [f"rare {place}" for place in range(100)] + [None, "", "x" * 300]
SEX = {"type": "category", "keys": ["f", "m"]}


def people(text: dict[str, Any], jobs: list[str | None] = JOBS, unit: Any = "person", **more: Any) -> Table:
    table = {"job": jobs, "sex": ["f", "m"] * (len(jobs) // 2) + ["f"] * (len(jobs) % 2), **more}
    return Table(pa.table(table), unit=unit, columns={"job": {"type": "text", **text}, "sex": SEX})


def draw(table: Table, epsilon: float = 5, **declared: Any) -> SyntheticRelease:
    plan = table.synthetic_plan(epsilon=epsilon, delta=1e-6, **declared)
    return carry_out(plan, table.source, bits=SeededBits(1))


def counts(release: SyntheticRelease) -> dict[str | None, int]:
    return dict(release.values.to_polars()["job"].value_counts().rows())


def test_keys_that_many_have_are_drawn_and_no_other_is() -> None:
    found = counts(draw(people({})))
    assert found.keys() == {"nurse", "smith", None}
    assert found["nurse"] == pytest.approx(400, abs=25)
    assert found[None] == pytest.approx(103, abs=25)


@pytest.mark.parametrize(
    ("missing", "there"),
    [("drop", {"nurse", "smith", "others", None}), ("other", {"nurse", "smith", "others"})],
)
def test_the_others_may_have_a_name(missing: str, there: set[str | None]) -> None:
    found = counts(draw(people({"other": "others", "missing": missing}), epsilon=50))
    assert found.keys() == there
    assert found["others"] == pytest.approx(100 + 3 * (missing == "other"), abs=3)


@pytest.mark.parametrize("sex", [None, "sex"])
def test_a_table_without_such_keys_has_an_empty_column(sex: str | None) -> None:
    jobs: list[str | None] = [f"rare {place}" for place in range(200)]
    for table in (people({}, jobs), people({}, [None] * 7), people({"at_least": 10_000})):
        assert counts(draw(table, target=sex)).keys() == {None}


def test_a_text_alone_makes_a_table() -> None:
    assert counts(draw(people({}), columns=["job"])).keys() == {"nurse", "smith", None}


def test_a_unit_counts_for_one_key() -> None:
    """Each of 300 people has all of 40 keys: none of them is held by enough, counted once."""
    jobs: list[str | None] = [f"job {place % 40}" for place in range(12_000)]
    ids = [place // 40 for place in range(12_000)]
    unit = PrivacyUnit("person", column="id", max_rows=40, max_groups=40)
    release = draw(people({"at_least": 60}, jobs, unit, id=ids))
    assert counts(release).keys() == {None}
    assert len(release.values) == pytest.approx(300, abs=30)


# Texts that engines are known to order, fold or trim in different ways, with what is no key at all.
ALIKE = ["Ärzte", "Zug", "zug", "ärzte", "a b", " a b", "O'Neil", 'say "no"', "\U0001f375", "ﬀ", "1", "01"]
TEXTS = [key for key in ALIKE for _ in range(40)] + [f"rare {place}" for place in range(40)] + [None, "", ""]


@pytest.mark.parametrize("declared", [{}, {"other": "others", "missing": "other"}], ids=["plain", "other"])
def test_every_engine_chooses_and_draws_the_same_texts(declared: dict[str, Any], tmp_path: Path) -> None:
    columns = {"job": TEXTS, "sex": (["f", "m"] * len(TEXTS))[: len(TEXTS)]}
    frame = pl.DataFrame(columns)
    frame.write_parquet(tmp_path / "people.parquet")
    pandas = frame.to_pandas()
    connection = duckdb.connect()
    found = []
    for each in (
        pa.table(columns),
        frame,
        frame.lazy(),
        pandas,
        connection.sql("SELECT * FROM pandas"),
        tmp_path / "people.parquet",
    ):
        table = Table(each, unit="person", columns={"job": {"type": "text", **declared}, "sex": SEX})
        found.append(draw(table).values.to_polars())
    assert set(ALIKE) <= set(found[0]["job"])
    assert all(each.equals(found[0]) for each in found)


@pytest.mark.slow
def test_spark_chooses_and_draws_the_same_texts(spark: Any) -> None:
    sex = (["f", "m"] * len(TEXTS))[: len(TEXTS)]
    frame = spark.createDataFrame(list(zip(TEXTS, sex, strict=True)), "job string, sex string")
    ours, other = (
        draw(Table(each, unit="person", columns={"job": {"type": "text"}, "sex": SEX})).values.to_polars()
        for each in (frame, pa.table({"job": TEXTS, "sex": sex}))
    )
    assert ours.equals(other)


def test_a_ledger_without_a_part_for_keys_refuses_and_nothing_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with Ledger.create(path, epsilon=3, delta=1e-6, unit="person") as ledger:
        with pytest.raises(SourdineError, match="Nothing was spent"):
            people({}).synthesize(epsilon=1, delta=1e-6, ledger=ledger)
        assert not ledger.history()
    path = tmp_path / "keys.ledger"
    with Ledger.create(path, epsilon=3, delta=1e-6, selection_delta=5e-7, unit="person") as ledger:
        release = people({}).synthesize(epsilon=1, delta=1e-6, ledger=ledger)
        certificate = release.certificate(ledger)
    assert certificate.epsilon <= 1
    assert certificate.delta is not None
    assert certificate.delta <= 1e-6
