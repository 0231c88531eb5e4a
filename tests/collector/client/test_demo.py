"""The demo page in Chromium, against a collector that runs: online, offline and online again."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sourdine.collector.period import KeptPeriod
from sourdine.collector.tokens.blind import new_key, public_text
from sourdine.local import Duchi, Oracle
from sourdine.local.words import WordTree
from tests.browser import violations, watched
from tests.collector.client.serving import LABELS, Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("collector")) as server:
        yield server


def answer(page: "Page", server: Serving, label: str) -> None:
    page.goto(f"{server.url}/client/demo.html?pin={server.pin}")
    page.get_by_label(label).check()
    page.get_by_role("button", name="Answer").click()


def test_pages_answer_and_each_is_counted_once(browser: "Browser", server: Serving) -> None:
    before = sum(server.sums())
    for number in range(3):
        with watched(browser) as page:
            answer(page, server, LABELS[number])
            page.get_by_text("Sent, and stored by the collector.").wait_for()
            line = page.locator("#line").inner_text()
            assert line.startswith(f"{server.question.fingerprint} ")
            assert len(line) == 16 + 1 + 2
            assert page.locator("#answer").inner_text() == LABELS[number]
            assert "was checked" in page.locator("#signature").inner_text()
            assert sum(server.sums()) == before + number + 1
            page.reload()  # the same device, once more
            page.get_by_label(LABELS[(number + 1) % 5]).check()
            page.get_by_role("button", name="Answer").click()
            page.get_by_text("This device has answered already").wait_for()
    assert sum(server.sums()) == before + 3


def test_nothing_is_shown_of_a_report_before_there_is_one(browser: "Browser", server: Serving) -> None:
    with watched(browser) as page:
        page.goto(f"{server.url}/client/demo.html")
        page.get_by_label("bicycle").wait_for()
        assert not page.locator("#sides").is_visible()
        assert "about 65 send this answer" in page.locator("#chances").inner_text()  # e² / (e² + 4)


@pytest.mark.parametrize(
    ("oracle", "written"),
    [(WordTree(epsilon=4, letters=6), "Äpfel!"), (Duchi(epsilon=1, lower=0, upper=9), "7")],
)
def test_a_question_without_labels_is_answered_in_words_or_numbers(
    browser: "Browser", tmp_path: Path, oracle: Oracle, written: str
) -> None:
    with serving(tmp_path, oracle, labels=()) as server, watched(browser) as page:
        page.goto(f"{server.url}/client/demo.html")
        assert not page.get_by_role("button", name="Answer").is_enabled()
        page.get_by_role("textbox", name="Your answer").fill(written)
        page.get_by_role("button", name="Answer").click()
        page.get_by_text("Sent, and stored by the collector.").wait_for()
        assert page.locator("#answer").inner_text() == written
        assert not violations(page)


def test_a_question_that_asks_for_a_token_says_so_at_once(browser: "Browser", tmp_path: Path) -> None:
    with serving(tmp_path, tokens=public_text(new_key().public_key())) as server, watched(browser) as page:
        page.goto(f"{server.url}/client/demo.html")
        page.get_by_role("alert").get_by_text("takes one report for each token").wait_for()
        assert not page.get_by_label("bicycle").is_enabled()


def test_what_is_answered_offline_is_sent_when_online_and_counted_once(
    browser: "Browser", server: Serving
) -> None:
    before = server.sums()
    with watched(browser) as page:
        page.goto(f"{server.url}/client/demo.html")
        page.get_by_label("bicycle").check()
        page.context.set_offline(True)
        page.get_by_role("button", name="Answer").click()
        page.get_by_text("Kept on this device").wait_for()
        assert server.sums() == before
        page.context.set_offline(False)
        page.get_by_text("Sent, and stored by the collector.").wait_for()
        before[int(page.locator("#line").inner_text()[-2:], 16)] += 1
        assert server.sums() == before


def test_no_period_gets_two_reports_of_a_device_that_was_offline(browser: "Browser", tmp_path: Path) -> None:
    """Answered on two days without a net, all would come in on the third, with the same noise."""
    with serving(tmp_path, period=KeptPeriod.DAY) as server, watched(browser) as page:
        page.goto(f"{server.url}/client/demo.html")
        page.get_by_label("bicycle").wait_for()

        def said(days: int) -> Any:
            page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=days))
            return page.evaluate(ANSWER)

        page.evaluate(
            """async (fingerprint) => {
          const { Client } = await import("/client/sourdine.js");
          window.client = await Client.open({ collector: location.origin, database: "other" });
          window.question = await window.client.question(fingerprint);
        }""",
            server.question.fingerprint,
        )
        page.context.set_offline(True)
        assert [said(0), said(0), said(1)] == [{"kept": 1}, "answered", "waiting"]
        page.context.set_offline(False)
        page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=2))
        assert page.evaluate("async () => (await window.client.send()).stored") == 1
        assert [said(2), said(3)] == ["answered", {"stored": 1}]
        assert sum(server.sums()) == 2


ANSWER = """async () => {
  try {
    const { sent } = await window.client.answer(window.question, "bicycle");
    const { stored, kept } = await sent;
    return stored ? { stored } : { kept };
  } catch (problem) {
    return problem.code;
  }
}"""


def test_an_answer_outlives_the_page_and_a_lost_acknowledgement(browser: "Browser", server: Serving) -> None:
    """The server stores the report and its answer is lost; the page sends it again when it is opened."""
    before = sum(server.sums())
    with watched(browser) as page:
        page.goto(f"{server.url}/client/demo.html")
        page.get_by_label("bus").check()
        page.evaluate("""() => {
          const fetched = window.fetch;
          window.fetch = async (...request) => { await fetched(...request); throw new TypeError("lost"); };
        }""")
        page.get_by_role("button", name="Answer").click()
        page.get_by_text("Kept on this device").wait_for()
        assert sum(server.sums()) == before + 1
        with page.expect_response("**/reports") as again:
            page.reload()
        assert again.value.status == 200  # stored before, under the same number
        assert sum(server.sums()) == before + 1
        page.get_by_label("bus").wait_for()
        assert page.evaluate(WAITING) == 0


WAITING = """async () => {
  const { Client } = await import("/client/sourdine.js");
  const client = await Client.open({ collector: location.origin });
  return (await client.waiting()).length;
}"""


def test_no_script_reads_the_secret_and_nothing_else_is_kept(browser: "Browser", server: Serving) -> None:
    with watched(browser) as page:
        answer(page, server, "car")
        page.get_by_text("Sent, and stored by the collector.").wait_for()
        line = page.locator("#line").inner_text()
        kept = page.evaluate("""async () => {
          const open = indexedDB.open("sourdine");
          const database = await new Promise((resolve) => { open.onsuccess = () => resolve(open.result); });
          const all = database.transaction("devices").objectStore("devices").getAll();
          const [device] = await new Promise((resolve) => { all.onsuccess = () => resolve(all.result); });
          let exported = "kept";
          try { await crypto.subtle.exportKey("raw", device.secret); exported = "read"; } catch {}
          return { ...device, secret: exported, storage: localStorage.length, cookies: document.cookie };
        }""")
    assert kept["secret"] == "kept"
    assert kept["identity"] == server.question.identity
    assert (kept["storage"], kept["cookies"], len(kept["tags"])) == (0, "", 1)
    assert kept["standing"] == line[17:]  # the report, which was sent
    ledger = {"name", "each", "paid"}  # of the device: how many answers it paid for, and not which
    whole = {"identity", "secret", "day", "tags", "standing", "period", "version", "storage", "cookies"}
    assert set(kept) == whole | ledger


def test_a_new_answer_on_another_day_is_the_same_report_and_the_person_is_told(
    browser: "Browser", tmp_path: Path
) -> None:
    with serving(tmp_path, period=KeptPeriod.DAY) as server, watched(browser) as page:
        lines = []
        for day, label in enumerate(("bicycle", "car")):
            page.clock.set_fixed_time(datetime.now(UTC) + timedelta(days=day))
            answer(page, server, label)
            page.get_by_text("Sent, and stored by the collector.").wait_for()
            lines.append(page.locator("#line").inner_text())
            assert page.get_by_text("its last report once more").is_visible() is (day == 1)
        assert lines[0] == lines[1]
        assert violations(page) == []


def test_nothing_but_the_report_is_sent(browser: "Browser", server: Serving) -> None:
    with watched(browser) as page:
        requests: list[Request] = []

        def keep(request: "Request") -> None:
            requests.append(request)

        page.on("request", keep)
        answer(page, server, "train")
        page.get_by_text("Sent, and stored by the collector.").wait_for()
        post = next(request for request in requests if request.method == "POST")
        assert post.post_data == page.locator("#line").inner_text() + "\n"
        headers = post.all_headers()
        assert "cookie" not in headers
        assert "referer" not in headers
        assert headers["idempotency-key"] == page.locator("#submission").inner_text()
        assert all(request.url.startswith(server.url) for request in requests)


@pytest.mark.parametrize(
    "pin", ["00" * 32, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]
)
def test_a_question_that_no_pinned_key_signed_is_refused(
    browser: "Browser", server: Serving, pin: str
) -> None:
    with watched(browser) as page:
        page.goto(f"{server.url}/client/demo.html?pin={pin}")
        page.get_by_role("alert").get_by_text("key").wait_for()
        assert page.get_by_role("radio").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_accessible_and_fits(
    browser: "Browser", server: Serving, scheme: str, width: int
) -> None:
    with watched(browser) as page:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        answer(page, server, "on foot")
        page.get_by_text("Sent, and stored by the collector.").wait_for()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
