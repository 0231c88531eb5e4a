"""A release is published alike from Python and from the command line."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.accounting.certificate import verify_release
from sourdine.core import display as view
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.tables import Count, Mean, Specification, TableRelease, rehearse
from sourdine.tables.origin import FRAME
from sourdine.tables.publication import Publication, Record, specification_of
from tests.random_plans import FORMS, random_plan

PEOPLE = pa.table({"sex": ["f", "m"] * 200, "pay": [25.0, 75.0] * 200})
COLUMNS = {
    "sex": {"type": "category", "keys": ["f", "m"]},
    "pay": {"type": "real", "lower": 0, "upper": 100},
}
FILES = ["answers.csv", "certificate.json", "quality.csv", "release.json", "report.html"]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sd.Ledger]:
    with sd.Ledger.create(tmp_path / "people.ledger", epsilon=3, unit="person") as created:
        yield created


@pytest.fixture
def release(ledger: sd.Ledger) -> TableRelease:
    people = sd.Table(PEOPLE, unit="person", columns=COLUMNS)
    return people.release(people.plan(sd.Query("pay", [Count(), Mean("pay")], by="sex"), epsilon=1), ledger)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_call_writes_what_the_command_line_writes(
    release: TableRelease, ledger: sd.Ledger, tmp_path: Path
) -> None:
    files = release.write(tmp_path / "out", ledger)
    assert sorted(path.name for path in files) == names(tmp_path / "out") == FILES
    told = verify_release(tmp_path / "out", ledger=ledger)
    assert told.files.same
    assert not told.discrepancies
    values = pd.read_csv(tmp_path / "out" / "answers.csv")
    assert values["value"].tolist() == release.to_pandas()["value"].tolist()
    record = Record.from_json((tmp_path / "out" / "release.json").read_text())
    assert (record.plan, record.specification.privacy.ledger) == (release.plan, "people.ledger")
    assert "table: pay" in (tmp_path / "out" / "report.html").read_text()


def test_formats_and_the_report_are_chosen(release: TableRelease, tmp_path: Path) -> None:
    release.write(tmp_path / "out", tmp_path / "people.ledger", formats=["json", "parquet"], report=False)
    assert [name for name in names(tmp_path / "out") if name.startswith("answers")] == [
        "answers.json",
        "answers.parquet",
    ]
    assert "report.html" not in names(tmp_path / "out")
    rows = json.loads((tmp_path / "out" / "answers.json").read_text())["rows"]
    assert len(rows) == len(release.to_pandas())


def test_nothing_is_written_over_and_the_advice_is_for_python(
    release: TableRelease, ledger: sd.Ledger, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter, match=r"already holds a file p.*Name another folder\.$"):
        release.write(tmp_path, ledger)
    with pytest.raises(InvalidParameter, match="one of csv, json, parquet, xlsx"):
        release.write(tmp_path / "out", ledger, formats="ods")
    assert names(tmp_path) == ["people.ledger"]


def test_only_what_was_paid_from_that_ledger_is_written(release: TableRelease, tmp_path: Path) -> None:
    with (
        sd.Ledger.create(tmp_path / "other.ledger", epsilon=3, unit="person") as other,
        pytest.raises(LedgerError, match="Another ledger paid"),
    ):
        release.write(tmp_path / "out", other)
    with pytest.raises(LedgerError, match="not paid"):
        rehearse(release.plan).write(tmp_path / "out", tmp_path / "people.ledger")
    assert not (tmp_path / "out").exists()


def test_what_is_paid_for_is_written_even_if_no_page_can_be_drawn(
    release: TableRelease, ledger: sd.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> view.WebPage:
        raise RuntimeError("no page")

    monkeypatch.setattr("sourdine.tables.publication.page_of", fails)
    with pytest.raises(RuntimeError, match="no page"):
        release.write(tmp_path / "out", ledger)
    assert names(tmp_path / "out") == [name for name in FILES if name != "report.html"]
    assert not verify_release(tmp_path / "out", ledger=ledger).discrepancies


@pytest.mark.parametrize("form", FORMS)
def test_a_plan_is_found_again_in_its_specification(form: str) -> None:
    """Whatever can be asked in Python, the record of a release has it as a file would."""
    plan = random_plan(form, 3)
    specification = specification_of(plan, FRAME)
    again = Specification.read(json.loads(specification.model_dump_json(exclude={"folder"})))
    assert replace(again.plan(), caveats=plan.caveats, near=plan.near) == plan
    assert again.plan().spends == plan.spends


def test_a_record_keeps_what_only_the_release_knows(
    release: TableRelease, ledger: sd.Ledger, tmp_path: Path
) -> None:
    far = replace(release, plan=replace(release.plan, near=False, caveats=("As it was read.",)))
    far.write(tmp_path / "far", ledger, report=False)
    record = Record.from_json((tmp_path / "far" / "release.json").read_text())
    assert (record.plan.near, record.plan.caveats) == (False, ("As it was read.",))
    release.write(tmp_path / "out", ledger, report=False)
    assert "near" not in json.loads((tmp_path / "out" / "release.json").read_text())


def test_joins_and_columns_of_expressions_are_kept(ledger: sd.Ledger, tmp_path: Path) -> None:
    places = pa.table({"sex": ["f", "m"], "region": ["north", "south"]})
    people = sd.Table(
        PEOPLE,
        unit="person",
        columns={
            **COLUMNS,
            "region": {"type": "category", "keys": ["north", "south"]},
            "well": {"expression": {"at_least": ["pay", 50]}},
        },
        joins={"places": {"table": places, "on": "sex", "columns": ["region"]}},
    )
    question = people.sql("SELECT region, well, COUNT(*) AS n, AVG(pay * 2) FROM p GROUP BY region, well")
    release = people.release(people.plan(question, epsilon=1), ledger)
    release.write(tmp_path / "out", ledger)
    record = Record.from_json((tmp_path / "out" / "release.json").read_text())
    assert record.plan == release.plan
    assert list(record.specification.joins) == ["places"]


def test_room_is_taken_for_what_is_declared(release: TableRelease) -> None:
    assert Publication(release.plan).names[0] == "answers.csv"
    assert Publication(release.plan, formats=["csv", "csv"]).formats == ("csv",)
