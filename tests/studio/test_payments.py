"""What was paid and never published: told on the page, and paid for again only if somebody says so."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.cli.release import publish
from sourdine.studio.app import Studio
from sourdine.studio.desk import Desk
from sourdine.studio.folder import Folder
from tests.studio.conftest import SECRET, Browser, studio_of

SPECIFICATION = """
[table]
source = "people.csv"
[privacy]
unit = "person"
epsilon = 1
ledger = "people.ledger"
[columns]
sex = { type = "category", keys = ["f", "m"] }
age = { type = "integer", lower = 0, upper = 120 }
[[queries]]
name = "sexes"
ask = ["count"]
by = ["sex"]
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from sourdine.cli.release import publish
from sourdine.studio.acts import act_on
from sourdine.studio.desk import Desk
from sourdine.studio.folder import Folder

def stop(scans):
    os.kill(os.getpid(), signal.SIGKILL)

desk = Desk(Folder.of(Path(sys.argv[1])), lambda spec, place, watch: publish(spec, place, watch=stop))
version = desk.sheet("people.toml").file.version
act_on(desk, "people.toml", {"act": "release", "into": "people-release", "sure": "yes", "version": version})
desk.finish()
"""


@pytest.fixture
def ready(folder: Path) -> Path:
    """A folder with a whole specification, and a ledger."""
    (folder / "people.toml").write_text(SPECIFICATION)
    Ledger.create(folder / "people.ledger", epsilon=3, unit="person").close()
    return folder


def blocks(folder: Path) -> int:
    with Ledger.open(folder / "people.ledger") as ledger:
        return ledger.status().blocks


def asked(browser: Browser, act: str, **more: Any) -> Any:
    version = browser.studio.desk.sheet("people.toml").file.version
    answer = browser.post("/spec/people.toml/act", {"version": version, "act": act, **more})
    browser.studio.desk.jobs.wait()
    return answer


def release(browser: Browser, **more: Any) -> Any:
    return asked(browser, "release", into="people-release", sure="yes", **more)


def test_a_release_that_fails_after_its_charge_is_not_paid_again_silently(ready: Path) -> None:
    failures = iter([True])

    def fails_once(specification: Any, place: Path, watch: Any) -> object:
        def broken(scans: Any) -> Any:
            raise RuntimeError(SECRET)

        return publish(specification, place, watch=broken if next(failures, False) else watch)

    browser = Browser(Studio(Desk(Folder.of(ready), fails_once))).enter()
    release(browser)
    assert blocks(ready) == 1
    page = browser.get("/spec/people.toml").text
    assert "Paid, and not published here." in page
    assert "Line 1 of the ledger paid epsilon 1 for this" in page
    assert SECRET not in page
    for again in ({}, {"again": "yes"}, {"again": "7"}):
        refused = release(browser, **again)
        assert refused.status_code == 422
        assert "Line 1 of the ledger paid for this release already" in refused.json()["said"]
    assert blocks(ready) == 1
    assert release(browser, again="1").status_code == 200
    assert blocks(ready) == 2
    assert (ready / "people-release" / "certificate.json").is_file()
    assert "Line 1 of the ledger paid" in browser.get("/spec/people.toml").text  # which stays lost
    assert "Line 2 of the ledger paid" not in browser.get("/spec/people.toml").text


def test_a_release_that_failed_before_its_charge_can_be_begun_again(ready: Path) -> None:
    browser = Browser(studio_of(ready)).enter()
    (ready / "people.csv").rename(ready / "away.csv")
    release(browser)
    assert blocks(ready) == 0
    (ready / "away.csv").rename(ready / "people.csv")
    assert release(browser).status_code == 200
    assert blocks(ready) == 1
    assert "not published here" not in browser.get("/spec/people.toml").text


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such signal")
@pytest.mark.slow
def test_a_kill_between_charge_and_release_is_told_when_the_page_opens_again(ready: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(ready)], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    assert blocks(ready) == 1
    assert not (ready / "people-release").exists()
    browser = Browser(studio_of(ready)).enter()
    page = browser.get("/spec/people.toml").text
    assert "Line 1 of the ledger paid epsilon 1 for this" in page
    assert 'name="again" value="1" required' in page
    assert release(browser).status_code == 422
    assert blocks(ready) == 1
    browser.set("people.toml", "/privacy/epsilon", "0.5")  # the line is told of whatever is changed since
    assert "Line 1 of the ledger paid epsilon 1 for this" in browser.get("/spec/people.toml").text
    assert "the folder <code>people-release-2</code>" in browser.get("/spec/people.toml").text
    answer = asked(browser, "release", into="people-release-2", sure="yes", again="1")
    assert answer.status_code == 200
    assert blocks(ready) == 2
    assert (ready / "people-release-2" / "certificate.json").is_file()


def test_files_that_wait_whole_are_told_of(ready: Path) -> None:
    from sourdine.tables import Specification

    publish(Specification.load(ready / "people.toml"), ready / "people-release")
    (ready / ".people-release.unfinished").mkdir()  # as it is if the last step of all was cut off
    (ready / "people-release").rename(ready / ".people-release.unfinished" / "people-release")
    page = Browser(studio_of(ready)).enter().get("/spec/people.toml").text
    assert "Line 1 of the ledger paid" in page
    assert "whole in <code>.people-release.unfinished/people-release</code>" in page


def test_a_release_that_lies_in_another_folder_of_it_is_not_lost(ready: Path) -> None:
    from sourdine.tables import Specification

    publish(Specification.load(ready / "people.toml"), ready / "published" / "first")
    page = Browser(studio_of(ready)).enter().get("/spec/people.toml").text
    assert "not published here" not in page


def test_private_counts_of_an_earlier_start_are_not_paid_again_silently(ready: Path) -> None:
    assert asked(Browser(studio_of(ready)).enter(), "count-privately", value="0.5").status_code == 200
    later = Browser(studio_of(ready)).enter()
    assert "private counts are kept only until Studio stops" in later.get("/spec/people.toml").text
    assert "paid for private counts already" in asked(later, "count-privately", value="0.5").json()["said"]
    assert blocks(ready) == 1
    assert asked(later, "count-privately", value="0.5", again="1").status_code == 200
    assert blocks(ready) == 2


def test_bounds_that_were_paid_and_not_kept_are_not_paid_again_silently(ready: Path) -> None:
    browser = Browser(studio_of(ready)).enter()
    assert asked(browser, "find-bounds", column="age", value="0.5").status_code == 200
    browser.act("people.toml", "declare", column="age", value="real")  # forgets what was found
    assert "what was found is not declared" in browser.get("/spec/people.toml").text
    answer = asked(browser, "find-bounds", column="age", value="0.5")
    assert "Line 1 of the ledger paid for bounds of age already" in answer.json()["said"]
    assert blocks(ready) == 1
    assert asked(browser, "find-bounds", column="age", value="0.5", again="1").status_code == 200
    assert blocks(ready) == 2
