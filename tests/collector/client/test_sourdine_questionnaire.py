"""Several questions in the browser: the same question is picked as in Python, and a budget that holds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sourdine.collector.period import KeptPeriod
from sourdine.local.questionnaire import Item, Questionnaire, QuestionnaireDevice, Way
from tests.collector.client import node
from tests.collector.client.serving import LABELS, Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

ITEMS = tuple(Item(name, ("no", "yes")) for name in ("a", "b", "c", "d", "e"))
SURVEY = Questionnaire(name="s", epsilon=1, items=ITEMS, given_way=Way.SAMPLE)


def test_a_secret_picks_the_same_question_as_in_python() -> None:
    secrets = [bytes([i]) * 16 for i in range(40)]
    script = """const out = [];
    for (const text of given.secrets) {
      const bytes = Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
      const reporter = await client.Reporter.from(bytes);
      out.push(await reporter.place(given.identity, given.count));
    }
    console.log(JSON.stringify(out));"""
    asked = {"secrets": [each.hex() for each in secrets], "identity": SURVEY.identity, "count": 5}
    places = node.run(script, asked)
    assert places == [QuestionnaireDevice(SURVEY, each).places[0] for each in secrets]
    assert len(set(places)) == 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("collector"), period=KeptPeriod.WHOLE) as made:
        yield made


def test_a_device_keeps_its_ledger_and_its_budget(page: "Page", server: Serving) -> None:
    page.goto(f"{server.url}/client/vectors.json")
    script = """async ([fingerprint, label, identity]) => {
      const { Client } = await import(new URL("sourdine.js", location));
      const poor = await Client.open({ collector: location.origin, budget: 1.5, database: "d" });
      const question = await poor.question(fingerprint);
      const refused = await poor.answer(question, label).catch((problem) => problem.code);
      const client = await Client.open({ collector: location.origin, budget: 2, database: "d" });
      await (await client.answer(question, label)).sent;
      const picked = [];
      const questionnaire = { identity, questions: ["x", "y", "z"] };
      for (let i = 0; i < 3; i += 1) picked.push(await client.assigned(questionnaire));
      return [refused, await client.ledger(), picked];
    }"""
    asked = [server.question.fingerprint, LABELS[0], SURVEY.identity]
    refused, ledger, picked = page.evaluate(script, asked)
    assert refused == "budget"
    assert (ledger["epsilon"], ledger["budget"]) == (2, 2)
    (entry,) = ledger["entries"]
    assert (entry["name"], entry["answers"], entry["epsilon"]) == (server.question.name, 1, 2)
    assert len(set(picked)) == 1
    assert sum(server.sums()) == 1
