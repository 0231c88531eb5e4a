"""A real Chromium for tests of pages: the system's own, driven by Playwright.

Where there is none, tests of pages are skipped with a sentence that says how to install it; `.ci/run` sets
`SOURDINE_BROWSER=required`, and then they fail.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "Tests of pages need Chromium, and none of chromium, chromium-browser and google-chrome is on the PATH:"
    " install it with `apt-get install chromium`, or your system's like."
)
# every name under .example is this machine, for pages that play another site; no other name leads anywhere
NAMES_HERE = "MAP *.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", f"--host-resolver-rules={NAMES_HERE}")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def executable() -> str | None:
    """Where the system has Chromium."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(frozen=True)
class Chromium:
    """A running browser, asleep between tests: Playwright marks its loop as the thread's running one."""

    browser: "Browser"
    loop: asyncio.AbstractEventLoop | None

    @contextmanager
    def awake(self) -> Iterator["Browser"]:
        """The browser can be used, and no other loop be started."""
        asyncio._set_running_loop(self.loop)
        yield self.browser
        asyncio._set_running_loop(None)


@contextmanager
def started() -> Iterator[Chromium]:
    """One Chromium without windows; its contexts share nothing. A missing one ends the test that asks."""
    path = executable()
    if path is None:
        if os.environ.get("SOURDINE_BROWSER") == "required":
            pytest.fail(f"{MISSING} SOURDINE_BROWSER=required forbids to skip them.")
        pytest.skip(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        yield Chromium(browser, loop)
        asyncio._set_running_loop(loop)
        browser.close()


@contextmanager
def watched(browser: "Browser") -> Iterator["Page"]:
    """A page with cookies of its own; an error that its scripts did not catch fails the test."""
    context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    context.on("weberror", lambda error: errors.append(str(error.error)))
    page = context.new_page()
    page.set_default_timeout(10_000)
    try:
        yield page
    finally:
        context.close()
    assert not errors, errors


def violations(page: "Page") -> list[str]:
    """What axe-core finds inaccessible on a page as it is shown, one line for each place."""
    from axe_playwright_python.sync_playwright import Axe

    response = Axe().run(page, options={"resultTypes": ["violations"], **RULES}).response
    return [
        f"{rule['id']}: {node['html'][:160]} ({node['failureSummary']})"
        for rule in response["violations"]
        for node in rule["nodes"]
    ]
