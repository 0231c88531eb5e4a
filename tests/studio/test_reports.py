from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from benchmarks.studio.running import RunningStudio, running
from sourdine.accounting.ledger import Ledger
from tests.browser import violations
from tests.cli.certificate.release_case import build_signed
from tests.studio.conftest import Browser, studio_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOREIGN = "<img src=x onerror=alert(1)> 'é' #?%.ledger"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release, and the ledger that paid for it, under another name too."""
    folder = tmp_path_factory.mktemp("kept")
    case = build_signed(folder)
    assert Ledger.open(case.ledger).status().spent
    Ledger.open(case.ledger).backup(folder / FOREIGN)
    return folder


@pytest.fixture
def reader(kept: Path) -> Browser:
    return Browser(studio_of(kept)).enter()


@pytest.fixture(scope="module")
def server(kept: Path) -> Iterator[RunningStudio]:
    with running(kept) as started:
        yield started


def test_the_ledger_says_what_was_paid_is_left_and_still_fits(reader: Browser) -> None:
    (name, *_) = reader.studio.desk.folder.ledgers()
    text = reader.get(f"/ledger/{quote(name)}").text
    assert "A privacy budget over time" in text
    assert "2 more charges like the last one" in text
    assert reader.get(f"/meaning/{quote(name)}").status_code == 200


def test_a_release_has_its_verdict_with_the_ledger_that_paid(reader: Browser) -> None:
    (name, *_) = reader.studio.desk.folder.releases()
    text = reader.get(f"/verdict/{quote(name)}").text
    assert "Privacy verdict" in text
    assert "The ledger holds this payment" in text
    assert "The ledger that paid" in text


@pytest.mark.parametrize(
    "where",
    [
        "/ledger/none.ledger",
        "/ledger/..%2F..%2Fetc%2Fpasswd",
        "/ledger/%2Fetc%2Fpasswd",
        "/ledger/people.csv",
        "/verdict/..%2F",
        "/verdict/%2Fetc",
        "/meaning/%00",
        "/epsilon?epsilon=many",
        "/epsilon?epsilon=1e999999999",
        "/epsilon?epsilon=-1",
        "/epsilon?epsilon=1&delta=2",
    ],
)
def test_what_is_not_in_the_folder_or_no_number_is_refused_in_a_page(reader: Browser, where: str) -> None:
    answer = reader.get(where)
    assert answer.status_code == 404
    assert "Not here" in answer.text
    assert "root:" not in answer.text


def test_only_scripts_of_the_page_itself_may_run(reader: Browser) -> None:
    policy = reader.get("/epsilon").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.partition("style-src")[0]


def test_the_pages_are_drawn_and_accessible(page: "Page", server: RunningStudio) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    server.enter(page)
    assert violations(page) == []
    page.get_by_role("link", name=FOREIGN).click()
    page.locator("#chart-0 svg").wait_for()
    assert violations(page) == []
    page.get_by_role("link", name="What all of it means").click()
    page.locator("#chart-0 svg").wait_for()
    page.get_by_role("link", name="Back to Studio").click()
    page.locator("a[href*='/verdict/']").first.click()
    page.get_by_text("Privacy verdict").wait_for()
    assert violations(page) == []
    assert said == []
