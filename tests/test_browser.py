"""The browser of tests is a real one that reaches this machine alone, and a missing one is never silent."""

import asyncio
from socket import socket
from typing import TYPE_CHECKING

import pytest

from tests.browser import executable, started, violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

GOOD = '<html lang="en"><title>Good</title><main><h1>Words</h1><p>More words.</p></main>'
BAD = '<html><main><h1 style="color: #ccc; background: #fff">Words</h1><input></main>'


def test_it_draws_pages_and_names_what_is_inaccessible(page: "Page") -> None:
    page.set_content(GOOD)
    assert violations(page) == []
    page.set_content(BAD)
    rules = {line.partition(":")[0] for line in violations(page)}
    assert rules >= {"html-has-lang", "document-title", "color-contrast", "label"}


def test_no_name_but_those_of_other_sites_leads_anywhere(page: "Page") -> None:
    from playwright.sync_api import Error

    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        page.goto("http://sourdine.test/")
    with socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        address = f"http://other.example:{deaf.getsockname()[1]}/"
        with pytest.raises(Error, match="ERR_CONNECTION_REFUSED"):
            page.goto(address)


def test_other_tests_can_run_loops_of_their_own() -> None:
    assert asyncio.run(asyncio.sleep(0, "done")) == "done"


def test_a_missing_browser_is_said_and_fails_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert executable() is None
    monkeypatch.delenv("SOURDINE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="install it with"), started():
        pass
    monkeypatch.setenv("SOURDINE_BROWSER", "required")
    with pytest.raises(pytest.fail.Exception, match="install it with"), started():
        pass
