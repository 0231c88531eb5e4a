"""The pages and acts of Studio."""

from pathlib import Path

import pytest

from tests.studio.conftest import SECRET, Browser


def test_begin_with_a_table(browser: Browser, folder: Path) -> None:
    assert "people.csv" in browser.get().text
    answer = browser.post("/start", {"table": "people.csv"}).json()
    assert answer == {"go": f"{browser.base}/spec/people.toml#people"}
    assert (folder / "people.toml").is_file()
    page = browser.get("/spec/people.toml")
    assert page.status_code == 200
    assert "visits" in page.text
    assert SECRET not in page.text


def test_a_table_that_was_begun_is_opened_again(browser: Browser, people: str, folder: Path) -> None:
    browser.set(people, "/privacy/unit", "patient")
    assert browser.post("/start", {"table": "people.csv"}).json()["go"].endswith("/spec/people.toml#people")
    assert 'unit = "patient"' in (folder / people).read_text()


def test_fields_are_kept_as_they_are_typed(browser: Browser, people: str, folder: Path) -> None:
    browser.act(people, "declare", column="age", value="integer")
    answer = browser.set(people, "/columns/age/lower", "a few")
    assert "It must be a whole number" in answer["html"]
    assert 'lower = "a few"' in (folder / people).read_text()
    answer = browser.set(people, "/columns/age/lower", "0")
    assert "It must be a whole number" not in answer["html"]


def test_another_version_is_not_written_over(browser: Browser, people: str, folder: Path) -> None:
    version = browser.studio.desk.sheet(people).file.version
    browser.set(people, "/privacy/unit", "patient")
    asked = {"version": version, "act": "set", "at": "/privacy/unit", "value": "visit"}
    answer = browser.post(f"/spec/{people}/act", asked).json()
    assert "was changed meanwhile" in answer["said"]
    assert 'unit = "patient"' in (folder / people).read_text()
    assert "patient" in answer["html"]


@pytest.mark.parametrize(
    "text",
    ["table = 3", "[table]\n[columns]\nage = 3", "privacy = 'x'", "columns = []", "queries = 5", "joins = 1"],
)
def test_what_an_editor_left_behind_is_told_of(browser: Browser, folder: Path, text: str) -> None:
    (folder / "odd.toml").write_text(text)
    page = browser.get("/spec/odd.toml")
    assert page.status_code == 404
    assert "must be a" in page.text


def test_a_record_in_the_first_line_is_no_header(browser: Browser, folder: Path) -> None:
    (folder / "bare.csv").write_text(f"{SECRET},north\n")
    (folder / "bare.toml").write_text('[table]\nsource = "bare.csv"\nheader = false\n')
    page = browser.get("/spec/bare.toml")
    assert page.status_code == 200
    assert SECRET not in page.text


def test_a_name_with_signs_of_addresses_is_found_again(browser: Browser, folder: Path) -> None:
    (folder / "a#b?c%d.csv").write_text("age\n1\n")
    go = browser.post("/start", {"table": "a#b?c%d.csv"}).json()["go"]
    assert browser.get(go.removeprefix(browser.base).removesuffix("#people")).status_code == 200
