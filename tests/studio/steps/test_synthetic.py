from pathlib import Path

import pytest

from sourdine.accounting.ledger import Ledger
from tests.studio.conftest import Browser

NAME = "towns.toml"
SPECIFICATION = """\
[table]
source = "people.csv"
[privacy]
unit = "person"
epsilon = 1
delta = 1e-6
ledger = "people.ledger"
[columns]
age = { type = "integer", lower = 0, upper = 120 }
sex = { type = "category", keys = ["f", "m"] }
smoker = { type = "flag" }
"""


@pytest.fixture
def ready(browser: Browser, folder: Path) -> Browser:
    (folder / NAME).write_text(SPECIFICATION, encoding="utf-8")
    Ledger.create(folder / "people.ledger", epsilon=3, delta=1e-6, unit="person").close()
    return browser


def charges(folder: Path) -> int:
    with Ledger.open(folder / "people.ledger") as ledger:
        return len(ledger.history())


def draw(browser: Browser, into: str = "towns-synthetic", **more: object) -> dict[str, object]:
    answer = browser.act(NAME, "synthesize", into=into, sure="yes", **more)
    browser.studio.desk.jobs.wait()
    return answer


def test_a_table_is_drawn_without_any_question(ready: Browser, folder: Path) -> None:
    page = ready.get(f"/spec/{NAME}").text
    assert "Pay and draw" in page
    assert "Deviation of the noise" in page
    draw(ready)
    assert charges(folder) == 1
    page = ready.get(f"/spec/{NAME}").text
    assert "Written: <code>towns-synthetic/synthetic.csv" in page
    table = ready.get("/file/towns-synthetic/synthetic.csv")
    assert table.status_code == 200
    assert table.text.startswith("age,sex,smoker\n")
    assert ready.get("/file/towns-synthetic/report.html").status_code == 200


def test_whoever_asks_twice_pays_once(ready: Browser, folder: Path) -> None:
    version = ready.studio.desk.sheet(NAME).file.version
    asked = {"version": version, "act": "synthesize", "into": "towns-synthetic", "sure": "yes"}
    for _ in range(3):
        ready.post(f"/spec/{NAME}/act", asked)
    ready.studio.desk.jobs.wait()
    ready.post(f"/spec/{NAME}/act", asked)  # after a reload
    ready.studio.desk.jobs.wait()
    assert charges(folder) == 1
    again = Browser(type(ready.studio)(ready.studio.desk)).enter()
    ready.studio.desk.jobs.forget(NAME, "towns-synthetic/synthetic.csv")  # as if the server were new
    answer = again.post(f"/spec/{NAME}/act", asked)
    assert answer.status_code == 422
    assert "is there already" in answer.json()["said"]
    assert charges(folder) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sure": ""}, "Confirm first"),
        ({"into": "elsewhere"}, "folder that it has not"),
        ({"into": "towns-synthetic/../../x"}, "folder that it has not"),
    ],
)
def test_what_is_not_confirmed_is_not_paid(
    ready: Browser, folder: Path, wrong: dict[str, str], words: str
) -> None:
    version = ready.studio.desk.sheet(NAME).file.version
    asked = {"version": version, "act": "synthesize", "into": "towns-synthetic", "sure": "yes", **wrong}
    answer = ready.post(f"/spec/{NAME}/act", asked)
    assert answer.status_code == 422
    assert words in answer.json()["said"]
    assert charges(folder) == 0


def test_one_that_was_cut_off_is_confirmed_before_it_is_paid_again(ready: Browser, folder: Path) -> None:
    draw(ready)
    for file in (folder / "towns-synthetic").iterdir():
        file.unlink()
    (folder / "towns-synthetic").rmdir()
    ready.studio.desk.jobs.forget(NAME, "towns-synthetic/synthetic.csv")
    assert "I want to pay once more" in ready.get(f"/spec/{NAME}").text
    version = ready.studio.desk.sheet(NAME).file.version
    asked = {"version": version, "act": "synthesize", "into": "towns-synthetic", "sure": "yes"}
    answer = ready.post(f"/spec/{NAME}/act", asked)
    assert "paid for a synthetic table already" in answer.json()["said"]
    assert charges(folder) == 1
    draw(ready, again="1")
    assert charges(folder) == 2


def test_fields_are_kept_and_a_mistake_stops_nothing_else(ready: Browser, folder: Path) -> None:
    ready.set(NAME, "/synthetic/target", "sex")
    ready.set(NAME, "/synthetic/rows", "1,000")
    ready.set(NAME, "/synthetic/leave_out", "age\n")
    text = (folder / NAME).read_text(encoding="utf-8")
    assert 'target = "sex"' in text
    assert "rows = 1000" in text
    assert 'leave_out = ["age"]' in text
    code = ready.post(f"/spec/{NAME}/fill", {"what": "code-synthetic"}).json()["html"]
    assert "table.synthesize(" in code
    assert "sourdine synthesize towns.toml" in code
    ready.act(NAME, "set", at="/synthetic/leave_out", value="height")
    page = ready.get(f"/spec/{NAME}").text
    assert "&#39;height&#39;, which is not declared" in page
    assert "Pay and draw" not in page
    ready.set(NAME, "/synthetic/leave_out", "")
    assert "leave_out" not in (folder / NAME).read_text(encoding="utf-8")


def test_what_the_ledger_refuses_is_told_before(ready: Browser, folder: Path) -> None:
    ready.set(NAME, "/privacy/epsilon", "50")
    page = ready.get(f"/spec/{NAME}").text
    assert "has less left than this takes" in page
    assert "Pay and draw" not in page
    ready.set(NAME, "/privacy/epsilon", "1")
    ready.set(NAME, "/privacy/delta", "")
    assert "needs a delta" in ready.get(f"/spec/{NAME}").text
    assert charges(folder) == 0
