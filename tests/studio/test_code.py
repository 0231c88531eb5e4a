"""The page as code, which says the same."""

import tomllib
from pathlib import Path

import pytest

from sourdine.studio.code import code_of
from sourdine.studio.review import STEPS
from tests.studio.conftest import Browser


@pytest.fixture
def whole(browser: Browser, people: str) -> str:
    browser.set(people, "/privacy/column", "id")
    for column, kind in (("sex", "category"), ("pay", "real"), ("joined", "date")):
        browser.act(people, "declare", column=column, value=kind)
    for at, typed in {
        "/columns/sex/keys": "f\nm",
        "/columns/pay/lower": "0",
        "/columns/pay/upper": "5000",
        "/columns/joined/first": "2020-01-01",
        "/columns/joined/last": "2020-12-31",
    }.items():
        browser.set(people, at, typed)
    browser.act(people, "drop-blank")
    browser.act(people, "by", query=0, column="sex", value=True)
    browser.act(people, "ask", query=0, part="add")
    browser.act(people, "ask", query=0, ask=1, part="kind", value="mean")
    browser.act(people, "where", query=0, column="pay", word="at_least", value="100")
    browser.act(people, "add-sql", value="SELECT COUNT(*) FROM people")
    assert browser.studio.desk.sheet(people).review.messages == {}
    return people


def test_python_makes_the_same_plan(
    browser: Browser, whole: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = browser.studio.desk.sheet(whole)
    code = dict(code_of("questions", sheet))
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    exec(code["Python"], names)
    assert sheet.review.specification is not None
    plan = sheet.review.specification.plan()
    made = names["plan"]
    assert getattr(made, "spends", None) == plan.spends


def test_toml_says_what_the_file_says(browser: Browser, whole: str) -> None:
    sheet = browser.studio.desk.sheet(whole)
    for step, block in (("columns", "columns"), ("questions", "queries"), ("people", "privacy")):
        text = dict(code_of(step, sheet))["TOML"]
        assert tomllib.loads(text)[block] == sheet.file.blocks[block]


def test_sql_asks_the_same(browser: Browser, whole: str) -> None:
    text = dict(code_of("questions", browser.studio.desk.sheet(whole)))["SQL"]
    assert "SELECT sex, COUNT(*), AVG(pay) FROM people\nWHERE pay >= 100\nGROUP BY sex" in text
    browser.act(whole, "ask", query=0, ask=1, part="kind", value="quantiles")
    text = dict(code_of("questions", browser.studio.desk.sheet(whole)))["SQL"]
    assert "SQL has no words for this question" in text


@pytest.mark.parametrize("step", STEPS)
def test_half_filled_steps_are_code_too(browser: Browser, people: str, step: str) -> None:
    names = [name for name, _ in code_of(step, browser.studio.desk.sheet(people))]
    assert {"TOML", "Python", "Command"} <= set(names)
