"""What the page shows: nothing that a browser obeys, and nothing of the data."""

from pathlib import Path

import pytest

from sourdine.studio.page import TITLES
from tests.studio.conftest import Browser

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def test_names_of_files_and_columns_are_text(browser: Browser, folder: Path) -> None:
    name = "<img src=x onerror=alert(1)>.csv"
    (folder / name).write_text(f'"{SCRIPT.replace(chr(34), chr(34) * 2)}",age\n1,2\n')
    assert "<img src=x" not in browser.get().text
    answer = browser.post("/start", {"table": name}).json()
    page = browser.get(answer["go"].removeprefix(browser.base).split("#")[0])
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text


@pytest.mark.parametrize("at", ["/privacy/unit", "/privacy/epsilon", "/columns/age/lower", "/queries/0/name"])
def test_what_is_typed_is_text(browser: Browser, people: str, at: str) -> None:
    browser.act(people, "declare", column="age", value="integer")
    answer = browser.set(people, at, SCRIPT)
    assert "<script>alert" not in answer["html"]
    assert "<img src=x" not in answer["html"]


def test_every_step_is_on_the_page_and_as_code(browser: Browser, people: str) -> None:
    page = browser.get(f"/spec/{people}").text
    for step, title in TITLES.items():
        assert f'<section class="step" id="{step}"' in page
        assert f'id="{step}-title" tabindex="-1">{title}</h1>' in page
    assert page.count("Show as code") == len(TITLES)


def test_unknown_fields_and_acts_are_refused(browser: Browser, people: str) -> None:
    version = browser.studio.desk.sheet(people).file.version
    for asked in (
        {"act": "set", "at": "/table/source", "value": "../x.csv"},
        {"act": "set", "at": "/table/checked", "value": "false"},
        {"act": "set", "at": "/other/x", "value": "1"},
        {"act": "set", "at": "/privacy/ledger", "value": "../x.ledger"},
        {"act": "set", "at": "/privacy/ledger", "value": "postgresql://x/y"},
        {"act": "nothing"},
        {"act": "remove-question", "query": 7},
        {"act": "declare", "column": "nowhere", "value": "flag"},
    ):
        answer = browser.post(f"/spec/{people}/act", {"version": version, **asked})
        assert answer.status_code == 422, asked
    assert browser.studio.desk.sheet(people).file.version == version


def test_bounds_the_wrong_way_round_are_told_at_their_column(browser: Browser, people: str) -> None:
    browser.act(people, "declare", column="age", value="integer")
    browser.set(people, "/columns/age/lower", "130")
    answer = browser.set(people, "/columns/age/upper", "120")
    place = answer["html"].index('id="_columns_age-message"')
    assert "lower" in answer["html"][place : place + 200].lower()


def test_the_noise_is_drawn_on_a_table_that_is_made_up(browser: Browser, people: str) -> None:
    browser.act(people, "declare", column="sex", value="category")
    browser.set(people, "/columns/sex/keys", "f\nm")
    browser.act(people, "drop-blank")
    browser.act(people, "by", query=0, column="sex", value=True)
    drawn = browser.post(f"/spec/{people}/fill", {"what": "noise", "position": 200}).json()["html"]
    assert "Made up:" in drawn
    assert drawn.count('<svg class="bar"') == 2
    assert (
        "Answers of a made-up table"
        in browser.post(f"/spec/{people}/fill", {"what": "dry-run"}).json()["html"]
    )
    forecast = browser.post(f"/spec/{people}/forecast", {"position": 400}).json()
    assert forecast["epsilon"] == 20
    assert "±" in forecast["html"]
