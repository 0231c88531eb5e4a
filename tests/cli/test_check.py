import json
import os
from pathlib import Path

import pytest

from tests.cli.table_case import Case, build, run


@pytest.fixture
def case(tmp_path: Path) -> Case:
    made = build(tmp_path)
    with (tmp_path / "people.csv").open("a") as file:
        file.write("31337,x\n,F\nsecret,f\n")
    return made


def test_it_counts_exactly_and_says_on_every_line_that_this_is_not_private(case: Case) -> None:
    before = {path.name: path.read_bytes() for path in case.folder.iterdir()}
    code, out, err = run("check", case.spec)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(
        line.startswith("NOT PRIVATE, for the data's holder alone, not to be published:") for line in lines
    )
    for told in (
        "303 records in all",
        "sex: unknown key: 2 (0.66 %)",
        "age: above the upper bound: 1 (0.33 %)",
        "age: missing: 1 (0.33 %)",
        "age: unreadable: 1 (0.33 %)",
        "age: fits: 300 (99 %)",
    ):
        assert any(line.endswith(told) for line in lines), told
    assert "31337" not in out
    assert "secret" not in out
    assert "outside the guarantee" in lines[-1]
    assert case.spent() == "0"
    after = {path.name: path.read_bytes() for path in case.folder.iterdir()}
    assert [name for name in after if after[name] != before.get(name)] == ["people.toml"]
    marked = case.spec.read_text()
    assert marked.replace("checked = true\n", "") == before["people.toml"].decode()
    assert run("check", case.spec)[1] == out
    assert case.spec.read_text() == marked


def test_plan_certificate_and_report_show_the_mark(case: Case) -> None:
    assert "checked against the data" not in run("plan", case.spec)[1]
    assert json.loads(run("plan", case.spec, "--json")[1])["checked"] is False
    assert run("check", case.spec)[0] == 0
    assert (
        "NOTE: The declarations were checked against the data, which is not private"
        in run("plan", case.spec)[1]
    )
    assert json.loads(run("plan", case.spec, "--json")[1])["checked"] is True
    folder = case.folder / "out"
    assert run("release", case.spec, "-o", folder)[0] == 0
    declared = json.loads((folder / "certificate.json").read_text())["declared"]
    assert declared["the declarations"] == "were checked against the data, which is not private"
    page = (folder / "report.html").read_text()
    assert "The declarations were checked against the data" in page
    assert "nothing of it depends on the data" not in page
    assert run("certificate", "verify", folder, "--ledger", case.ledger)[0] == 0
    again = case.folder / "again.html"
    assert run("report", folder, "--html", again)[0] == 0
    assert "The declarations were checked against the data" in again.read_text()


def test_the_mark_is_there_before_anything_is_read(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def ask(*_: object) -> None:
        seen.append(case.spec.read_text())
        raise RuntimeError("31337")

    monkeypatch.setattr("sourdine.frames.source.Source.ask", ask)
    code, out, err = run("check", case.spec)
    assert (code, out) == (2, "")
    assert "could not be read to its end" in err
    assert "31337" not in err
    assert "checked = true" in seen[0]


def test_json_says_it_too(case: Case) -> None:
    found = json.loads(run("check", case.spec, "--json")[1])
    assert found["records"] == 303
    assert found["without_unit"] is None
    assert found["notice"].startswith("NOT PRIVATE")
    assert "outside the guarantee" in found["notice"]
    assert all(cell["notice"].startswith("NOT PRIVATE") for cell in found["cells"])
    assert {(cell["column"], cell["what"]): cell["records"] for cell in found["cells"]}[
        "sex", "unknown key"
    ] == 2


def test_records_without_a_unit_are_told(case: Case) -> None:
    (case.folder / "people.csv").write_text("age,sex,who\n30,f,a\n40,m,\n")
    case.change('unit = "person"\n', 'unit = "person"\ncolumn = "who"\n')
    assert "without a unit: 1 (50 %)" in run("check", case.spec)[1]


def test_a_specification_that_cannot_be_marked_is_refused_before_the_data_is_read(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    code, out, err = run("check", case.spec)
    assert (code, out) == (2, "")
    assert "before anything is shown. Make the file and its folder writable." in err


def test_nothing_is_marked_if_the_specification_or_the_table_is_wrong(case: Case) -> None:
    (case.folder / "people.csv").unlink()
    code, out, err = run("check", case.spec)
    assert (code, out) == (2, "")
    assert "does not exist" in err
    assert "checked" not in case.spec.read_text()
