"""The names of a table's columns: never a value, also where a file has no header."""

from pathlib import Path

import pytest

from sourdine.studio.folder import Folder, read_header
from tests.studio.conftest import SECRET, Browser


def table(**fields: object) -> dict[str, object]:
    return {"table": {"source": "bare.csv", **fields}}


@pytest.fixture
def bare(folder: Path) -> Path:
    """A folder with a file whose first line is a record."""
    (folder / "bare.csv").write_text(f"{SECRET},Miller,2020-01-01\n1,Smith,2020-01-02\n")
    return folder


def test_a_first_line_that_looks_like_a_record_is_not_shown(bare: Path, browser: Browser) -> None:
    (bare / "bare.toml").write_text('[table]\nsource = "bare.csv"\n[columns]\nage = { type = "flag" }\n')
    page = browser.get("/spec/bare.toml")
    assert page.status_code == 200
    assert SECRET not in page.text
    assert "Miller" not in page.text
    assert "looks like a record" in page.text


def test_somebody_can_be_sure_that_it_holds_names(folder: Path, browser: Browser) -> None:
    (folder / "years.csv").write_text("town,2020,2021\nx,1,2\n")
    assert browser.post("/start", {"table": "years.csv"}).status_code == 422
    assert browser.post("/start", {"table": "years.csv", "sure": "yes"}).status_code == 200
    assert "header = true" in (folder / "years.toml").read_text()
    assert list(browser.studio.desk.sheet("years.toml").header.types) == ["town", "2020", "2021"]
    browser.act("years.toml", "declare", column="2020", value="out")
    assert list(browser.studio.desk.sheet("years.toml").header.types) == ["town", "2020", "2021"]


def test_of_a_line_that_may_be_a_record_only_declared_names_are_shown(folder: Path) -> None:
    (folder / "years.csv").write_text("town,2020,2021\nx,1,2\n")
    blocks = {"table": {"source": "years.csv"}, "columns": {"2020": {}, "x": {}}}
    header = read_header(blocks, Folder.of(folder), folder)
    assert list(header.types) == ["2020"]
    assert "header = true" in header.trouble


def test_names_that_are_given_are_shown(bare: Path) -> None:
    header = read_header(table(header=False, names=["a", "b", "c"]), Folder.of(bare), bare)
    assert list(header.types) == ["a", "b", "c"]
    assert not read_header(table(header=False), Folder.of(bare), bare).types
