"""The browser client behind a proxy: only the collector's own answers settle a report."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from sourdine.collector.period import KeptPeriod
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.tokens.blind import blind_sign, new_key, public_text
from sourdine.local import Question
from tests.campaigns.collect.proxy import Fault, Proxy
from tests.collector.client.serving import WAY
from tests.collector.parts import announced, new_store
from tests.collector.wire import Wire, listening

if TYPE_CHECKING:
    from playwright.sync_api import Page

OPEN = """async ([fingerprint, database, leastBatch]) => {
  const { Client } = await import("/client/sourdine.js");
  window.client = await Client.open({ collector: location.origin, database, leastBatch });
  window.question = await window.client.question(fingerprint);
}"""
ANSWER = """async () => (await window.client.answer(window.question, "bicycle")).sent"""
AGAIN = """async () => { window.client.retryAt = 0; return window.client.send(); }"""
WAITING = """async () => (await window.client.waiting()).map(({ token }) => token ?? null)"""
KEY = new_key()
TOKENS = Question(name="with tokens", oracle=WAY.oracle, labels=WAY.labels)
KEPT = {"stored": 0, "received": 0, "kept": 1, "dropped": []}
STORED = {"stored": 1, "received": 0, "kept": 0, "dropped": []}


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """The page itself, and what it asks, comes through; what it sends meets faults."""
    settings = CollectorSettings(store=str(tmp_path_factory.mktemp("wire") / "c.db"), rate=0)
    signed = announced(TOKENS, period=KeptPeriod.WHOLE, tokens=public_text(KEY.public_key()))
    new_store(settings.store, announced(WAY, period=KeptPeriod.WHOLE), signed).close()
    with listening(settings) as port:
        proxy = Proxy(port)
        yield Wire(settings, proxy)
        proxy.close()


def opened(page: "Page", wire: Wire, question: Question = WAY, least_batch: int = 0) -> None:
    page.goto(f"{wire.address}/client/vectors.json")
    page.evaluate(OPEN, [question.fingerprint, secrets.token_hex(8), least_batch])


@pytest.mark.parametrize("fault", [each for each in Fault if each not in (Fault.NONE, Fault.SILENT)], ids=str)
def test_no_answer_of_a_proxy_settles_a_report(page: "Page", wire: Wire, fault: Fault) -> None:
    """Any 200 counted as stored, and one 403, 404, 401 or 413 dropped the report for good."""
    opened(page, wire)
    before = wire.counted()
    wire.faults = [fault]
    outcome = page.evaluate(ANSWER)
    if fault not in (Fault.CUT_BEFORE, Fault.CUT_AFTER):  # where the browser itself may send once more
        assert outcome == KEPT
    if outcome == KEPT:
        assert len(page.evaluate(WAITING)) == 1
        assert page.evaluate(AGAIN) == STORED
    assert page.evaluate(WAITING) == []
    assert wire.counted() == before + 1


def test_the_token_is_kept_with_the_report(page: "Page", wire: Wire) -> None:
    opened(page, wire, TOKENS)
    blinded = page.evaluate(
        """async () => {
      const { TokenRequest } = await import("/client/sourdine.js");
      window.request = await TokenRequest.draw(window.question.announcement.tokens);
      return [...window.request.blinded];
    }"""
    )
    signature = list(blind_sign(KEY, bytes(blinded)))
    page.evaluate(
        """async (signed) => {
      const token = await window.request.finish(new Uint8Array(signed));
      const { identity } = window.question;
      await window.client.store.change(async (devices) => {
        const asked = (request) => new Promise((done) => { request.onsuccess = () => done(request.result); });
        devices.put({ ...await asked(devices.get(identity)), token });
      });
    }""",
        signature,
    )
    wire.faults = [Fault.UNAUTHORIZED, Fault.FORBIDDEN, Fault.OK]
    assert page.evaluate(ANSWER) == KEPT
    assert [page.evaluate(AGAIN) for _ in range(2)] == [KEPT, KEPT]
    (token,) = page.evaluate(WAITING)
    assert len(token) == 640
    assert page.evaluate(AGAIN) == STORED


def test_the_collectors_own_refusal_is_final(page: "Page", wire: Wire) -> None:
    store = open_store(wire.settings.store)
    question = Question(name=f"closed {secrets.token_hex(4)}", oracle=WAY.oracle, labels=WAY.labels)
    number = store.register(announced(question, period=KeptPeriod.WHOLE))
    page.goto(f"{wire.address}/client/vectors.json")
    for _ in range(50):  # the server looks for new questions every two seconds
        if page.evaluate(f"async () => (await fetch('/v1/questions/{question.fingerprint}')).ok"):
            break
        page.wait_for_timeout(100)
    opened(page, wire, question)
    store.close_question(number, "2026-11-17")
    store.close()
    outcome: Any = page.evaluate(ANSWER)
    assert [each["status"] for each in outcome["dropped"]] == [410]
    assert page.evaluate(WAITING) == []


def test_a_report_that_nobody_can_take_any_more_is_given_up(page: "Page", wire: Wire) -> None:
    opened(page, wire)
    wire.faults = [Fault.FORBIDDEN] * 3
    assert page.evaluate(ANSWER) == KEPT
    closes = announced(WAY).announcement.closes
    for days, waiting in ((8, 1), (9, 0)):
        moment = datetime(closes.year, closes.month, closes.day, 12, tzinfo=UTC) + timedelta(days=days)
        page.clock.set_fixed_time(moment)
        page.evaluate(AGAIN)
        assert len(page.evaluate(WAITING)) == waiting
    wire.faults = []


def test_a_device_refuses_a_smaller_batch_than_it_asks_for(page: "Page", wire: Wire) -> None:
    told = """async ([fingerprint, database, leastBatch]) => {
      const { Client } = await import("/client/sourdine.js");
      const client = await Client.open({ collector: location.origin, database, leastBatch });
      return client.question(fingerprint).then(() => "taken", (problem) => problem.code);
    }"""
    store = open_store(wire.settings.store)
    question = Question(name="in batches", oracle=WAY.oracle, labels=WAY.labels)
    store.register(announced(question, period=KeptPeriod.WHOLE, batch=50))
    store.close()
    page.goto(f"{wire.address}/client/vectors.json")
    for _ in range(50):
        if page.evaluate(f"async () => (await fetch('/v1/questions/{question.fingerprint}')).ok"):
            break
        page.wait_for_timeout(100)
    found = [page.evaluate(told, [question.fingerprint, secrets.token_hex(8), least]) for least in (50, 51)]
    assert found == ["taken", "batch"]
    assert page.evaluate(told, [WAY.fingerprint, secrets.token_hex(8), 1]) == "batch"
