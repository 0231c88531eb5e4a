"""What is left and what is wrong, said where it is."""

from pathlib import Path
from typing import Any

import pytest

from sourdine.studio.folder import Folder
from sourdine.studio.review import review, step_of
from tests.studio.conftest import Browser

WHOLE: dict[str, Any] = {
    "table": {"source": "people.csv"},
    "privacy": {"unit": "person", "epsilon": 1.0},
    "columns": {"age": {"type": "integer", "lower": 0, "upper": 120}},
    "queries": [{"name": "ages", "ask": [{"mean": "age"}]}],
}


def reviewed(folder: Path, **blocks: Any) -> dict[str, str]:
    found = review({**WHOLE, **blocks}, Folder.of(folder), folder.resolve())
    assert (found.specification is None) == bool(found.messages)
    return {pointer: message.words for pointer, message in found.messages.items()}


def test_nothing_is_said_of_what_is_whole(tmp_path: Path) -> None:
    assert reviewed(tmp_path) == {}


@pytest.mark.parametrize(
    ("blocks", "pointer", "words"),
    [
        ({"table": {"source": "../x.csv"}}, "/table/source", "does not lie in the folder"),
        ({"table": {"source": "a.csv", "size": 0}}, "/table/size", "at least 1"),
        ({"privacy": {"unit": "person", "epsilon": 0}}, "/privacy/epsilon", "above 0"),
        ({"privacy": {"unit": "person", "epsilon": "much"}}, "/privacy/epsilon", "a number"),
        ({"privacy": {"unit": "FILL IN", "epsilon": 1}}, "/privacy/unit", "Fill this in"),
        ({"columns": {}}, "/columns", "at least one"),
        ({"columns": {"age": {"type": "FILL IN"}}}, "/columns/age/type", "Choose what it holds"),
        (
            {"columns": {"age": {"type": "integer", "lower": "a", "upper": 3}}},
            "/columns/age/lower",
            "It must be a whole number",
        ),
        ({"queries": []}, "/queries", "at least one"),
        ({"queries": [{"name": "a", "ask": [{"mean": "pay"}]}]}, "/queries/0", "pay"),
        ({"queries": [*WHOLE["queries"], *WHOLE["queries"]]}, "/queries/1/name", "Two questions"),
        ({"queries": [{"name": "a", "sql": "SELECT * FROM people"}]}, "/queries/0", "records"),
        ({"joins": {"x": {"table": "../x.csv", "on": "a", "columns": ["b"]}}}, "/joins/x", "does not lie"),
        ({"hierarchies": {"x": {"levels": ["a"], "file": "/etc/x.csv"}}}, "/hierarchies/x", "does not lie"),
        ({"nothing": {}}, "/queries", "no block 'nothing'"),
    ],
)
def test_a_mistake_is_told_at_its_field(
    tmp_path: Path, blocks: dict[str, Any], pointer: str, words: str
) -> None:
    said = reviewed(tmp_path, **blocks)
    assert words in said[pointer]


def test_every_place_belongs_to_a_step() -> None:
    places = {
        "/table/source": "table",
        "/privacy/unit": "people",
        "/privacy/epsilon": "budget",
        "/privacy/quality": "check",
        "/privacy/ledger": "release",
        "/columns/a/lower": "columns",
        "/joins/x": "columns",
        "/queries/0": "questions",
    }
    assert {pointer: step_of(pointer) for pointer in places} == places


@pytest.mark.parametrize("kind", ["joins", "hierarchies"])
def test_public_files_of_another_folder_are_not_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "secret.csv").write_text("town,region\n")
    (tmp_path / "here").mkdir()
    block = {"file": "../secret.csv", "on": ["town"], "columns": ["region"]}
    words = reviewed(tmp_path / "here", **{kind: {"places": block}})
    assert "does not lie in the folder" in words[f"/{kind}/places"]


def test_a_series_is_shown_and_neither_forecast_nor_released(browser: Browser, folder: Path) -> None:
    (folder / "weeks.toml").write_text(
        '[table]\nsource = "people.csv"\n[privacy]\nunit = "person"\nepsilon = 1\nledger = "people.ledger"\n'
        '[columns]\nsex = { type = "category", keys = ["f", "m"] }\n'
        '[series]\nperiod = "week"\nfirst = 2026-01-05\nperiods = 52\n'
        '[[queries]]\nname = "sexes"\nask = ["count"]\nby = ["sex"]\n'
    )
    page = browser.get("/spec/weeks.toml")
    assert page.status_code == 200
    assert "sourdine series publish" in page.text
    assert "Pay and release" not in page.text
    browser.set("weeks.toml", "/privacy/epsilon", "2")
    assert "periods = 52" in (folder / "weeks.toml").read_text()
    version = browser.studio.desk.sheet("weeks.toml").file.version
    for act in ("release", "exact", "count-privately", "make-ledger", "aim"):
        asked = {"version": version, "act": act, "into": "weeks-release", "sure": "yes", "value": "0.1"}
        assert browser.post("/spec/weeks.toml/act", asked).status_code == 422, act
    for what in ("noise", "dry-run"):
        assert browser.post("/spec/weeks.toml/fill", {"what": what}).status_code == 422
