"""What the page does to a specification: whatever it says, it is kept, and can be changed as text."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sourdine.studio.code import code_of
from tests.studio.conftest import Browser

RICH = """
[table]
source = "people.csv"

[privacy]
unit = "person"
epsilon = 1
ledger = "people.ledger"

[columns.age]
type = "integer"
lower = 0  # nobody is younger
upper = 120

[columns.sex]
type = "category"
keys = ["f", "m"]

[columns.region]
type = "category"
keys = ["north", "south"]

[columns.part]
type = "category"
keys = ["up", "down"]

[columns.decade]
expression = { divide = ["age", 10] }

[joins.places]
file = "places.csv"
on = "region"
columns = ["part"]

[hierarchies.place]
levels = ["part", "region"]
file = "places.csv"

[[queries]]
# by sex, and the gap between them
name = "gap"
ask = ["count", { mean = "age" }]
by = ["sex"]
compare = [{ kind = "difference", of = "mean of age", column = "sex", first = "f", second = "m" }]

[[queries]]
name = "older"
ask = [{ mean = { add = ["age", 1] } }]
weight = 2

[[queries]]
name = "places"
ask = [{ hierarchy = "place" }]
"""


@pytest.fixture
def rich(browser: Browser, folder: Path) -> str:
    """A specification that says more than the fields of the page do."""
    (folder / "places.csv").write_text("region,part\nnorth,up\nsouth,down\n")
    (folder / "rich.toml").write_text(RICH)
    assert browser.studio.desk.sheet("rich.toml").review.messages == {}
    return "rich.toml"


def blocks(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "rich.toml").read_text())


def test_what_has_no_field_is_shown_and_kept(browser: Browser, rich: str, folder: Path) -> None:
    page = browser.get(f"/spec/{rich}").text
    for words in (
        "{ kind = &#34;difference&#34;, of = &#34;mean of age&#34;",
        "mean = { add = [&#34;age&#34;, 1] }",
        "hierarchy = &#34;place&#34;",
        "expression = { divide = [&#34;age&#34;, 10] }",
        "levels = [&#34;part&#34;, &#34;region&#34;]",
        "file = &#34;places.csv&#34;",
    ):
        assert words in page
    browser.set(rich, "/privacy/epsilon", "2")
    browser.set(rich, "/columns/age/upper", "110")
    browser.act(rich, "copy-question", query=0)
    browser.act(rich, "remove-question", query=3)
    before, after = tomllib.loads(RICH), blocks(folder)
    before["privacy"]["epsilon"], before["columns"]["age"]["upper"] = 2, 110
    assert after == before
    assert "# nobody is younger" in (folder / rich).read_text()
    assert "# by sex, and the gap between them" in (folder / rich).read_text()


@pytest.mark.parametrize(
    ("kind", "name", "text", "wanted"),
    [
        ("queries", "0", 'ask = [{ mean = "age" }]\nby = ["sex"]', {"name": "gap", "by": ["sex"]}),
        ("queries", "1", 'ask = ["count"]\nweight = 5', {"name": "older", "weight": 5}),
        (
            "columns",
            "decade",
            "expression = { divide = ['age', 20] }",
            {"expression": {"divide": ["age", 20]}},
        ),
        ("columns", "new", "expression = { add = ['age', 1] }", {"expression": {"add": ["age", 1]}}),
        (
            "columns",
            "age",
            'type = "integer"\nlower = 0\nupper = 99\nmissing = 0',
            {"missing": 0, "upper": 99},
        ),
        ("joins", "places", 'file = "places.csv"\non = ["region"]\ncolumns = ["part"]', {"on": ["region"]}),
        ("hierarchies", "other", 'levels = ["part", "region"]\nfile = "places.csv"', {"file": "places.csv"}),
    ],
)
def test_blocks_are_edited_as_text(
    browser: Browser, rich: str, folder: Path, kind: str, name: str, text: str, wanted: dict[str, Any]
) -> None:
    browser.act(rich, "block", kind=kind, name=name, value=text)
    block = blocks(folder)[kind][int(name) if name.isdecimal() else name]
    assert {key: block[key] for key in wanted} == wanted
    assert browser.studio.desk.sheet(rich).review.messages == {}
    others = {each: held for each, held in blocks(folder).items() if each != kind}
    assert others == {each: held for each, held in tomllib.loads(RICH).items() if each != kind}


@pytest.mark.parametrize(
    ("kind", "name", "text", "words"),
    [
        ("queries", "0", "ask = [", "is not valid TOML"),
        ("queries", "0", "", "at least one line"),
        ("queries", "9", 'ask = ["count"]', "Give it a name"),
        ("columns", "", 'type = "flag"', "Give it a name"),
        ("table", "source", 'x = "../secret.csv"', "Give it a name"),
        ("privacy", "ledger", "x = 1", "Give it a name"),
    ],
)
def test_text_that_cannot_be_read_changes_nothing(
    browser: Browser, rich: str, folder: Path, kind: str, name: str, text: str, words: str
) -> None:
    version = browser.studio.desk.sheet(rich).file.version
    asked = {"version": version, "act": "block", "kind": kind, "name": name, "value": text}
    answer = browser.post(f"/spec/{rich}/act", asked)
    assert answer.status_code == 422
    assert words in answer.json()["said"]
    assert (folder / rich).read_text() == RICH


@pytest.mark.parametrize(
    ("kind", "name", "text", "pointer"),
    [
        ("queries", "0", 'ask = ["nothing"]', "/queries/0"),
        ("columns", "decade", "expression = { divide = ['nothing', 10] }", "/columns/decade"),
        ("joins", "places", 'file = "../places.csv"\non = "region"\ncolumns = ["part"]', "/joins/places"),
    ],
)
def test_a_mistake_in_a_text_is_told_beside_it(
    browser: Browser, rich: str, kind: str, name: str, text: str, pointer: str
) -> None:
    answer = browser.act(rich, "block", kind=kind, name=name, value=text)
    assert pointer in browser.studio.desk.sheet(rich).review.messages
    place = answer["html"].index(f'id="{pointer.replace("/", "_")}-message"')
    assert len(answer["html"][place : place + 120].split(">")[1].split("<")[0]) > 10


def test_an_empty_text_takes_a_block_away(browser: Browser, rich: str, folder: Path) -> None:
    browser.act(rich, "remove-question", query=2)
    browser.act(rich, "block", kind="hierarchies", name="place", value=" ")
    browser.act(rich, "block", kind="columns", name="decade", value="")
    assert "place" not in blocks(folder).get("hierarchies", {})
    assert "decade" not in blocks(folder)["columns"]


def test_code_leaves_nothing_out(browser: Browser, rich: str) -> None:
    sheet = browser.studio.desk.sheet(rich)
    text = tomllib.loads(dict(code_of("columns", sheet))["TOML"])
    assert {kind: text[kind] for kind in ("columns", "joins", "hierarchies")} == {
        kind: sheet.file.blocks[kind] for kind in ("columns", "joins", "hierarchies")
    }
    assert 'Specification.load("rich.toml")' in dict(code_of("budget", sheet))["Python"]
    browser.act(rich, "remove-question", query=2)
    browser.act(rich, "block", kind="hierarchies", name="place", value="")
    assert "joins=" not in dict(code_of("budget", sheet))["Python"]


SHARES = """
[table]
source = "people.csv"

[privacy]
unit = "person"
epsilon = 1

[columns.age]
type = "integer"
lower = 0
upper = 120

[columns.sex]
type = "category"
keys = ["f", "m"]

[columns.smoker]
type = "flag"

[columns.region]
type = "text"

[[queries]]
name = "people"
ask = ["count"]
"""


def fields(page: str) -> set[str]:
    """The fields of the first statistic beside its column."""
    return set(re.findall(r'id="_queries_0-ask0-(at_least|below|of)"', page))


def test_a_share_begins_with_what_needs_no_condition_and_shows_the_fields_that_fit(
    browser: Browser, folder: Path
) -> None:
    (folder / "shares.toml").write_text(SHARES)
    browser.act("shares.toml", "ask", query=0, ask=0, part="kind", value="proportion")
    assert browser.studio.desk.sheet("shares.toml").review.messages == {}
    assert fields(browser.get("/spec/shares.toml").text) == set()
    for column, wanted in (("age", {"at_least", "below"}), ("sex", {"of"}), ("smoker", set())):
        browser.act("shares.toml", "ask", query=0, ask=0, part="column", value=column)
        assert fields(browser.get("/spec/shares.toml").text) == wanted


def test_the_budget_says_what_keeps_it_from_a_forecast(browser: Browser, folder: Path) -> None:
    (folder / "shares.toml").write_text(SHARES)
    browser.act("shares.toml", "by", query=0, column="region", value=True)
    page = browser.get("/spec/shares.toml").text
    budget = page[page.index("The forecast appears when") :]
    assert '<a href="#questions" data-go="questions">Questions</a>: The query' in budget
    assert "That takes a small delta" in budget[: budget.index("Delta, if any")]
    browser.set("shares.toml", "/privacy/delta", "1e-6")
    assert "The forecast appears when" not in browser.get("/spec/shares.toml").text
