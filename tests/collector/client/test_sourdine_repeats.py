"""Answers that change, in the browser: beyond what is paid for the last report goes on, unseen."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sourdine.collector.period import KeptPeriod
from sourdine.local import GRR
from sourdine.local.rappor import BasicRappor
from tests.collector.client.serving import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

OPEN = """async ([fingerprint, budget]) => {
  const { Client } = await import(new URL("sourdine.js", location));
  window.open = () => Client.open({ collector: location.origin, budget, database: "d" });
  window.client = await window.open();
  window.question = await window.client.question(fingerprint);
}"""
ANSWER = """async (label) => {
  try {
    const { row, earlier, sent } = await window.client.answer(window.question, label);
    return [row, earlier, (await sent).stored];
  } catch (problem) {
    return problem.code;
  }
}"""


def answers(page: "Page", server: Serving, *labels: str, budget: float | None = None) -> list[Any]:
    """What a device sends on as many days."""
    page.goto(f"{server.url}/client/vectors.json")
    page.evaluate(OPEN, [server.question.fingerprint, budget])
    said = []
    for day, label in enumerate(labels):
        page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=day))
        said.append(page.evaluate(ANSWER, label))
    return said


def test_after_the_last_answer_that_is_paid_for_its_report_goes_on(page: "Page", tmp_path: Path) -> None:
    with serving(tmp_path, GRR(epsilon=12, categories=5), period=KeptPeriod.DAY, answers=2) as server:
        said = answers(page, server, "bus", "car", "train", "bus", "bicycle", "car")
        assert [earlier for _, earlier, _ in said] == [False, False, True, False, True, False]
        rows = [row for row, _, _ in said]
        assert rows == [rows[0], rows[1], rows[1], rows[0], rows[0], rows[1]]
        assert all(stored == 1 for _, _, stored in said)
        ledger = page.evaluate("async () => (await window.client.ledger()).epsilon")
        assert ledger == 24


def test_a_budget_refuses_the_first_answer_alone(page: "Page", tmp_path: Path) -> None:
    """Whichever it is; later ones that it does not reach for are not seen to be others."""
    terms: dict[str, Any] = {"period": KeptPeriod.DAY, "answers": 5}
    with serving(tmp_path, GRR(epsilon=2, categories=5), **terms) as server:
        said = answers(page, server, "bus", "car", "bus", budget=3)
        assert said == [[said[0][0], False, 1], [said[0][0], True, 1], [said[0][0], False, 1]]
        with page.context.browser.new_context() as other:  # type: ignore[union-attr]
            assert answers(other.new_page(), server, "bus", "car", budget=1) == ["budget", "budget"]


def test_rappor_goes_on_with_its_permanent_response_and_fresh_noise(page: "Page", tmp_path: Path) -> None:
    """The very same report again would be one that no device sends twice, and so tell of the change."""
    oracle = BasicRappor(categories=5, f=Fraction(1, 2), p=Fraction(1, 4), q=Fraction(3, 4))
    with serving(tmp_path, oracle, period=KeptPeriod.DAY) as server:
        said = answers(page, server, "bus", *["car"] * 10)
        assert [earlier for _, earlier, _ in said] == [False, *[True] * 10]
        assert len({row for row, _, _ in said}) > 1


def test_of_two_tabs_one_pays(page: "Page", tmp_path: Path) -> None:
    with serving(tmp_path, period=KeptPeriod.DAY) as server:
        answers(page, server)
        script = """async (labels) => {
          const clients = await Promise.all(labels.map(() => window.open()));
          const said = await Promise.all(clients.map((one, i) =>
            one.answer(window.question, labels[i]).then(({ earlier }) => earlier, ({ code }) => code)));
          return [said.sort(), (await window.client.ledger()).entries[0].answers];
        }"""
        said, paid = page.evaluate(script, ["bus", "car", "train"])
        assert said == ["answered", "answered", False] or said == [False, "answered", "answered"]
        assert paid == 1
