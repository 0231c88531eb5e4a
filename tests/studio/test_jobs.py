"""Releases from the page: paid once, whoever asks how often."""

import threading
from pathlib import Path

import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.studio.desk import Job, Jobs, JobState, Sheet
from sourdine.studio.draft import Edit
from tests.studio.conftest import SECRET, Browser


@pytest.fixture
def whole(browser: Browser, people: str) -> str:
    """A specification with everything filled in, and a ledger."""
    browser.act(people, "declare", column="sex", value="category")
    browser.set(people, "/columns/sex/keys", "f\nm")
    browser.act(people, "drop-blank")
    browser.act(people, "by", query=0, column="sex", value=True)
    browser.act(people, "make-ledger", value="3")
    return people


def released(browser: Browser, name: str) -> dict[str, object]:
    answer = browser.act(name, "release", into="people-release", sure="yes")
    browser.studio.desk.jobs.wait()
    return answer


def test_from_a_table_to_a_release(browser: Browser, whole: str, folder: Path) -> None:
    released(browser, whole)
    files = {each.name for each in (folder / "people-release").iterdir()}
    assert {"answers.csv", "certificate.json", "release.json", "report.html"} <= files
    page = browser.get(f"/spec/{whole}").text
    assert "people-release" in page
    assert SECRET not in page
    report = browser.get("/file/people-release/report.html")
    assert report.status_code == 200
    assert report.headers["content-security-policy"].startswith("sandbox")
    assert browser.get("/file/people-release/answers.csv").status_code == 200
    assert browser.get("/file/people-release/../people.csv").status_code == 404
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().spent == 1


def test_a_crosstab_names_what_its_columns_are_of(browser: Browser, whole: str) -> None:
    browser.act(whole, "block", kind="columns", name="region", value='type = "category"\nkeys = ["n", "s"]')
    browser.act(whole, "by", query=0, column="region", value=True)
    released(browser, whole)
    page = browser.get(f"/spec/{whole}").text
    assert '<th scope="colgroup" colspan="3">region</th>' in page  # two keys, and their sum


def test_a_double_click_pays_once(browser: Browser, whole: str, folder: Path) -> None:
    version = browser.studio.desk.sheet(whole).file.version
    asked = {"version": version, "act": "release", "into": "people-release", "sure": "yes"}
    threads = [threading.Thread(target=browser.post, args=(f"/spec/{whole}/act", asked)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    browser.studio.desk.jobs.wait()
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().blocks == 1


def test_a_folder_that_is_there_is_not_paid_for_again(browser: Browser, whole: str, folder: Path) -> None:
    released(browser, whole)
    browser.studio.desk.jobs.forget(whole, "people-release/")  # as after a new start
    version = browser.studio.desk.sheet(whole).file.version
    asked = {"version": version, "act": "release", "into": "people-release", "sure": "yes"}
    answer = browser.post(f"/spec/{whole}/act", asked)
    assert answer.status_code == 422
    assert "is there already" in answer.json()["said"]
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().blocks == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sure": ""}, "Confirm first"),
        ({"into": "elsewhere"}, "a folder that it has not"),
        ({"into": "people-release/../../x"}, "a folder that it has not"),
    ],
)
def test_what_is_not_confirmed_is_not_paid(
    browser: Browser, whole: str, folder: Path, change: dict[str, str], words: str
) -> None:
    version = browser.studio.desk.sheet(whole).file.version
    asked = {"version": version, "act": "release", "into": "people-release", "sure": "yes", **change}
    answer = browser.post(f"/spec/{whole}/act", asked)
    assert answer.status_code == 422
    assert words in answer.json()["said"]
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().blocks == 0


def test_another_version_than_the_confirmed_one_is_not_paid(
    browser: Browser, whole: str, folder: Path
) -> None:
    version = browser.studio.desk.sheet(whole).file.version
    browser.set(whole, "/privacy/epsilon", "2")
    asked = {"version": version, "act": "release", "into": "people-release", "sure": "yes"}
    assert "changed meanwhile" in browser.post(f"/spec/{whole}/act", asked).json()["said"]
    assert not (folder / "people-release").exists()


def test_exact_counts_are_marked_before_they_are_shown(browser: Browser, whole: str, folder: Path) -> None:
    browser.act(whole, "exact")
    browser.studio.desk.jobs.wait()
    assert "checked = true" in (folder / whole).read_text()
    page = browser.get(f"/spec/{whole}").text
    assert "NOT PRIVATE, for the data&#39;s holder alone" in page
    assert SECRET not in page
    browser.act(whole, "hide-exact")
    assert "51 records in all" not in browser.get(f"/spec/{whole}").text


def test_work_is_begun_once_and_again_after_a_failure() -> None:
    jobs, runs = Jobs(), list[Job]()

    def fails(job: Job) -> None:
        runs.append(job)
        raise InvalidParameter("No.")

    first = jobs.begin("a", "b", fails)
    jobs.wait()
    assert (first.state, first.words) == (JobState.FAILED, "No.")
    second = jobs.begin("a", "b", runs.append)
    jobs.wait()
    assert second.state is JobState.DONE
    assert jobs.begin("a", "b", fails) is second
    assert len(runs) == 2


def test_words_of_an_unknown_failure_are_not_told() -> None:
    jobs = Jobs()

    def fails(job: Job) -> None:
        raise ValueError(SECRET)

    job = jobs.begin("a", "b", fails)
    jobs.wait()
    assert job.state is JobState.FAILED
    assert SECRET not in job.words


def test_private_counts_are_paid_once_for_a_version(browser: Browser, whole: str, folder: Path) -> None:
    for _ in range(2):
        browser.act(whole, "count-privately", value="0.5")
        browser.studio.desk.jobs.wait()
    page = browser.get(f"/spec/{whole}").text
    assert "Records that did not fit, with noise" in page
    with Ledger.open(folder / "people.ledger") as ledger:
        assert (ledger.status().blocks, float(ledger.status().spent)) == (1, 0.5)


def test_bounds_are_paid_for_and_declared(browser: Browser, whole: str, folder: Path) -> None:
    browser.act(whole, "declare", column="age", value="integer")
    answer = browser.act(whole, "find-bounds", column="age", value="1")
    assert "Bounds were found privately, for epsilon 1" in answer["html"]
    with Ledger.open(folder / "people.ledger") as ledger:
        assert float(ledger.status().spent) == 1


def test_bounds_that_were_found_are_not_paid_for_again(browser: Browser, whole: str, folder: Path) -> None:
    browser.act(whole, "declare", column="age", value="integer")
    browser.act(whole, "find-bounds", column="age", value="1")
    version = browser.studio.desk.sheet(whole).file.version  # as a page has it that was clicked twice
    asked = {"version": version, "act": "find-bounds", "column": "age", "value": "1"}
    answer = browser.post(f"/spec/{whole}/act", asked)
    assert "found already" in answer.json()["said"]
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().blocks == 1


def test_bounds_of_a_table_elsewhere_are_not_paid_for(browser: Browser, whole: str, folder: Path) -> None:
    browser.act(whole, "declare", column="age", value="integer")
    (folder.parent / "elsewhere.csv").write_text("age,sex\n3,f\n")
    text = (folder / whole).read_text().replace('source = "people.csv"', 'source = "../elsewhere.csv"')
    (folder / whole).write_text(text)
    version = browser.studio.desk.sheet(whole).file.version
    asked = {"version": version, "act": "find-bounds", "column": "age", "value": "1"}
    assert "does not lie in the folder" in browser.post(f"/spec/{whole}/act", asked).json()["said"]
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().blocks == 0


def test_what_was_paid_for_is_kept_beside_another_programs_change(
    browser: Browser, whole: str, folder: Path
) -> None:
    desk = browser.studio.desk

    def edits(sheet: Sheet) -> list[Edit]:
        sheet.file.path.write_text(sheet.file.text + "# by hand\n")
        return [Edit(("table", "size"), 51)]

    desk.change(whole, desk.sheet(whole).file.version, edits, paid=True)
    text = (folder / whole).read_text()
    assert "size = 51" in text
    assert "# by hand" in text


def test_a_specification_by_another_name_is_the_same(browser: Browser, whole: str, folder: Path) -> None:
    (folder / "link.toml").symlink_to(folder / whole)
    desk = browser.studio.desk
    assert {desk.sheet(name).name for name in (whole, f"./{whole}", "link.toml")} == {whole}


def test_an_engine_that_panics_does_not_run_for_ever() -> None:
    class Panic(BaseException):
        """As some engines raise."""

    def fails(job: Job) -> None:
        raise Panic(SECRET)

    jobs = Jobs()
    job = jobs.begin("a", "b", fails)
    jobs.wait()
    assert job.state is JobState.FAILED
    assert SECRET not in job.words
